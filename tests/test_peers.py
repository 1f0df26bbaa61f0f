"""Mistakes that users found in other analytic tools, each as a case with its right answer.

The issue that reports a mistake is named where there is one; the others were found by reading the tools' sources.
"""

from __future__ import annotations

from typing import Any

import pytest

import roofline
from roofline import catalog
from roofline.engines import tensor
from roofline.errors import RooflineError
from roofline.models import DecoderConfig, Precision, decoder_step, read_config
from roofline.ops import Attention, Embedding, Linear, LMHead, Node, leaves, masks
from roofline.ops.tree import parameters, resident_bytes, total

H100_BF16, H100_BANDWIDTH = 989.4e12, 3.35e12


def model(name: str) -> DecoderConfig:
    document = catalog.read_yaml(catalog.resolve("workloads/models", name))
    config = read_config(document.data, document)
    assert isinstance(config, DecoderConfig)
    return config


def op_of(tree: Node, name: str) -> Any:
    """The op of a tree whose path ends so."""
    [found] = {leaf.op for leaf in leaves(tree) if leaf.name.endswith(name)}
    return found


def traffic(tree: Node) -> int:
    return total(tree, lambda op: op.traffic_bytes)


# ---------------------------------------------------------------- attention: bytes


def test_the_cache_that_decode_reads_is_that_of_the_key_heads():
    """LLM-Viewer #12: Llama 3 70B, one sequence of 8192: 33.55 MB a layer, not the 268.4 MB of 64 query heads."""
    attention = op_of(decoder_step(model("llama-3.1-70b"), "decode", context=8191), "attn")
    q, k, v, out = attention.tensors()
    assert k.traffic_bytes + v.traffic_bytes == 33_554_432
    # the query and the output have all 64 heads of 128, one position: not those of the keys, and no length squared
    assert q.traffic_bytes == out.traffic_bytes == 64 * 128 * 2


def test_fused_prefill_moves_its_operands_once():
    """LLMRoofline #2: Llama 3 70B, 8192 tokens: 302 MB and 1.10 TFLOP, compute bound, no less than 1.11 ms."""
    op = op_of(decoder_step(model("llama-3.1-70b"), "prefill", tokens=8192), "attn")
    assert op.traffic_bytes == 2 * (2 * 64 + 2 * 8) * 8192 * 128 == 301_989_888
    assert op.arithmetic()[op.engine] == 4 * 64 * 128 * (8192 * 8193 // 2) == pytest.approx(1.10e12, rel=2e-3)
    prediction = roofline.analyze(op, hardware="h100")
    assert (prediction.bound, prediction.limiter) == ("compute", "tensor:bf16")
    assert prediction.floor_s == pytest.approx(1.11e-3, rel=2e-3)


def test_a_cached_prefix_is_read_at_the_width_of_the_cache():
    """A chunk after a prefix in an fp8 cache reads a byte an element, whatever the activations are."""
    chunk = {"heads": 8, "head_dim": 128, "queries": 64, "cached": 4096}
    wide, narrow = Attention(**chunk), Attention(**chunk, kv_dtype="fp8")
    assert wide.traffic_bytes - narrow.traffic_bytes == 2 * 8 * (4096 + 64) * 128
    assert narrow.engine == tensor("bf16"), "a narrow cache is unpacked: the products stay what they were"


def test_a_window_bounds_the_cache_of_its_layers_alone():
    """aiconfigurator #1537: 18 full and 18 layers with a window of 128, 8 heads of 64, 65,536 positions in fp8."""
    config = DecoderConfig(
        model_type="any", hidden_size=2880, intermediate_size=2880, layers=36, heads=64, kv_heads=8, head_dim=64,
        vocab_size=201_088, sliding_window=128, sliding_layers=18,
    )  # fmt: skip
    step = decoder_step(config, "decode", context=65_535, precision=Precision(weights="bf16", kv="fp8"))
    assert resident_bytes(step)["kv_cache"] == 18 * (65_536 + 128) * 2 * 8 * 64
    assert resident_bytes(step)["kv_cache"] / 2**30 == pytest.approx(1.13, abs=0.005)


@pytest.mark.parametrize(("name", "bytes_"), [("llama-3.1-8b", 131_072), ("llama-3.1-70b", 327_680)])
def test_cache_bytes_of_a_position(name, bytes_):
    for context in (0, 1, 4095):
        step = decoder_step(model(name), "decode", batch=3, context=context)
        assert resident_bytes(step)["kv_cache"] == 3 * (context + 1) * bytes_


# ---------------------------------------------------------------- attention: pairs


def test_two_prompts_do_not_attend_to_each_other():
    """SGLang #34298: two prompts of 100 tokens are 10,100 pairs, not the 20,100 of one prompt of 200."""
    op = op_of(decoder_step(model("llama-3.1-8b"), "prefill", batch=2, tokens=100), "attn")
    assert op.batch * op.pairs == 10_100
    assert masks.pairs(200) == 20_100


def test_a_chunk_attends_to_its_prefix():
    """SGLang #34316: chunk c at prefix P is c P + c (c + 1) / 2."""
    assert masks.pairs(8192, 122_880) == 8192 * 122_880 + 8192 * 8193 // 2 == 1_040_191_488
    chunks = [masks.pairs(512, start) for start in range(0, 4096, 512)]
    assert sum(chunks) == masks.pairs(4096), "a prompt in chunks is the prompt"


@pytest.mark.parametrize(("length", "expected"), [(128, 8_256), (129, 8_384), (256, 24_640)])
def test_a_window_keeps_its_triangle(length, expected):
    """A window of 128 at 129 tokens sees 8,384 pairs, and not 129 x 128 = 16,512: nothing jumps when it fills."""
    assert masks.pairs(length, window=128) == sum(min(position + 1, 128) for position in range(length)) == expected
    assert Attention(heads=1, head_dim=64, queries=length, window=128).pairs == expected


def test_a_causal_mask_halves_a_prompt_and_not_a_decode_step():
    """verl #4959, Megatron-LM #831, ROCm/triton #742: half for a prompt, nothing for one query, nothing for images."""
    prompt = {"heads": 12, "head_dim": 64, "queries": 1024}
    causal, full = Attention(**prompt), Attention(**prompt, mask="full")
    assert causal.arithmetic()[causal.engine] * 2048 == full.arithmetic()[full.engine] * 1025
    step = {"heads": 12, "head_dim": 64, "queries": 1, "cached": 1023}
    assert Attention(**step).flops == Attention(**step, mask="full").flops
    # five draft tokens verified after a prefix are neither a prompt nor one query
    assert Attention(heads=1, head_dim=64, queries=5, cached=1000).pairs == 5 * 1000 + 15


def test_attention_is_counted_and_grows_as_the_square():
    """calflops #26, PyTorch #195460: (1, 12, 64, 64) is 12,582,912 FLOPs, not 0; twice the prompt is four times."""
    op = Attention(heads=12, head_dim=64, queries=64, mask="full")
    assert op.arithmetic()[op.engine] == 12_582_912
    long, twice = (Attention(heads=1, head_dim=128, queries=n) for n in (8192, 16_384))
    assert twice.arithmetic()[twice.engine] / long.arithmetic()[long.engine] == pytest.approx(4, rel=1e-3)


def test_keys_and_values_may_differ_in_width():
    """NeMo #14376: the expanded form of latent attention is 192 + 128 a pair, not twice 192."""
    op = Attention(heads=128, head_dim=192, head_dim_v=128, queries=100)
    assert op.arithmetic()[op.engine] == 2 * 128 * 5050 * (192 + 128)


def test_decode_attends_to_its_context():
    steps = [op_of(decoder_step(model("llama-3.1-8b"), "decode", context=c), "attn") for c in (999, 1999)]
    assert steps[1].flops == 2 * steps[0].flops


# ---------------------------------------------------------------- shapes of models


def test_heads_need_not_divide_the_width():
    """ollama #17201, prime-rl #1246: Qwen3 4B has 32 heads of 128 on a width of 2560."""
    config = read_config(
        {"model_type": "qwen3", "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36,
         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151_936,
         "tie_word_embeddings": True}
    )  # fmt: skip
    assert isinstance(config, DecoderConfig)
    apart = decoder_step(config, "decode", fusion="none")
    assert op_of(apart, "q_proj").out_features == 4096
    assert op_of(apart, "o_proj").in_features == 4096
    assert parameters(apart) == 4_022_468_096, "as in the published safetensors"


def test_a_gated_mlp_has_three_matrices():
    """Llama 3 8B: 13.96 GB in its layers, 15.01 GB with the LM head; two matrices would make that 10.2 GB."""
    step = decoder_step(model("llama-3.1-8b"), "decode", precision=Precision(weights="bf16"))
    in_layers = sum(
        leaf.count * leaf.op.tensors()[1].traffic_bytes for leaf in leaves(step) if leaf.op.kind == "linear"
    )
    assert in_layers == pytest.approx(13.96e9, rel=1e-3)
    assert traffic(step) == pytest.approx(15.01e9, rel=1e-3)


def test_the_embedding_table_is_not_streamed():
    """Of a table of 1.05 GB a step reads a row for each sequence; charged whole it would be 0.314 ms more."""
    op = op_of(decoder_step(model("llama-3.1-8b"), "decode", batch=7), "embed_tokens")
    assert isinstance(op, Embedding)
    assert op.tensors()[1].resident_bytes == 128_256 * 4096 * 2
    assert op.tensors()[1].traffic_bytes == 7 * 4096 * 2


def test_the_lm_head_is_streamed_and_multiplies_and_adds():
    """0.314 ms at batch 1 on an H100, and two FLOPs a weight: 1.05 GFLOP for Llama 3 8B, 2.10 for 70B."""
    for name, flops in (("llama-3.1-8b", 2 * 128_256 * 4096), ("llama-3.1-70b", 2 * 128_256 * 8192)):
        head = op_of(decoder_step(model(name), "decode"), "lm_head")
        assert isinstance(head, LMHead)
        assert head.flops == flops
    prediction = roofline.analyze(op_of(decoder_step(model("llama-3.1-8b"), "decode"), "lm_head"), hardware="h100")
    assert (prediction.bound, prediction.floor_s) == ("memory", pytest.approx(0.314e-3, rel=2e-3))


def test_of_a_prompt_the_last_position_goes_through_the_lm_head():
    head = op_of(decoder_step(model("llama-3.1-8b"), "prefill", batch=3, tokens=4096), "lm_head")
    assert head.rows == 3


def test_norms_rotary_and_copies_cost_something():
    """Ops without a matrix product take time, too; an append to the cache moves bytes without a FLOP."""
    tree = decoder_step(model("llama-3.1-8b"), "prefill", tokens=512, fusion="none")
    prediction = roofline.analyze(tree, hardware="h100")
    assert all(op.floor_s > 0 for op in prediction.ops)
    append = next(op for op in prediction.ops if op.op.kind == "kv-append")
    assert (append.flops, append.bound) == (0, "memory")


def test_a_step_takes_longer_with_more_tokens():
    """inference-sim #559: one token and 2048 must not cost the same."""
    floors = [
        roofline.analyze(decoder_step(model("llama-3.1-8b"), "prefill", tokens=n), hardware="h100").floor_s
        for n in (1, 64, 512, 1024, 2048, 4096)
    ]
    assert floors == sorted(set(floors))
    assert floors[-1] > 1.9 * floors[-2], "compute bound"


# ---------------------------------------------------------------- dtypes


def test_each_operand_moves_at_its_own_width():
    """A product of 8192 cubed with 4-bit weights moves 302 MB: x and y stay at 16 bits (101 MB if they did not)."""
    op = Linear(tokens=8192, in_features=8192, out_features=8192, weight_dtype="int4-g128", compute="bf16")
    scales = 8192 * 64 * 2
    assert op.traffic_bytes == 301_989_888 + scales
    # x in fp8, y in bf16
    narrow = Linear(tokens=8192, in_features=8192, out_features=8192, dtype="fp8")
    assert narrow.traffic_bytes == (1 + 1 + 2) * 8192**2


@pytest.mark.parametrize(
    ("dtype", "bits"), [("int4-g128", 4.125), ("mxfp4", 4.25), ("nvfp4", 4.5), ("mxfp8", 8.25), ("int4-g128-zp", 4.25)]
)
def test_scales_are_counted(dtype, bits):
    op = Linear(tokens=1, in_features=4096, out_features=4096, weight_dtype=dtype, compute="bf16")
    assert op.tensors()[1].traffic_bytes * 8 == bits * 4096**2


@pytest.mark.parametrize(
    ("precision", "engine"),
    [
        (Precision(weights="fp8"), "tensor:fp8"),  # not the bf16 peak
        (Precision(weights="fp8", compute="bf16"), "tensor:bf16"),  # weight-only: not the fp8 peak
        (Precision(weights="int4-g128", compute="bf16"), "tensor:bf16"),
        (Precision(weights="int8", kv="bf16"), "tensor:int8"),  # a wide cache does not widen the linears
        (Precision(weights="int8", compute="bf16", kv="fp8"), "tensor:bf16"),
    ],
)
def test_products_run_where_they_are_computed_and_not_where_they_are_stored(precision, engine):
    step = decoder_step(model("llama-3.1-8b"), "prefill", tokens=4096, precision=precision)
    prediction = roofline.analyze(step, hardware="h100")
    assert {op.limiter for op in prediction.ops if op.op.kind == "linear"} == {engine}


@pytest.mark.parametrize(
    ("device", "dtype"), [("a100", "fp8"), ("h100", "nvfp4"), ("l40s", "nvfp4"), ("v100", "bf16"), ("tpu-v5e", "fp8")]
)
def test_a_dtype_that_the_device_lacks_is_an_error(device, dtype):
    """aiconfigurator #1418: a peak that is not listed is refused, not derived from that of bf16."""
    with pytest.raises(RooflineError) as refused:
        roofline.analyze(Linear(tokens=1, in_features=128, out_features=128, dtype=dtype), hardware=device)
    assert refused.value.code == "no-engine"
    assert device.partition("-")[0] in refused.value.message


# ---------------------------------------------------------------- devices


@pytest.mark.parametrize(
    ("device", "engine", "tflops"),
    [
        ("a100", "tensor:bf16", 312),  # OLMo-core #614: halved twice
        ("h100", "tensor:bf16", 989.5),  # lightning #21743, PyTorch #182023: sparse or halved
        ("h100-pcie", "tensor:bf16", 756.5),
        ("h100-nvl", "tensor:bf16", 835.5),
        ("h200", "tensor:bf16", 989.5),
        ("gh200", "tensor:bf16", 989.5),  # listed with its sparse 1979 elsewhere
        ("b200", "tensor:bf16", 2250),
        ("gb200", "tensor:bf16", 2500),
        ("b300", "tensor:int8", 153.5),  # aiconfigurator #1418: not twice that of bf16
        ("b300", "tensor:fp4", 13_500),  # nor fp4 four times
        ("l40s", "tensor:fp8", 733),  # 1466 is sparse
        ("rtx-4090", "tensor:fp8", 330.3),  # accumulating in fp32
        ("rtx-4090", "tensor:fp8+fp16", 660.6),
        ("rtx-5090", "tensor:fp16", 209.5),  # imp #1668
        ("rtx-5090", "tensor:fp16+fp16", 419),
    ],
)
def test_peaks_are_dense_and_each_is_its_own(device, engine, tflops):
    peak = roofline.load_hardware(device).peaks[engine].value
    assert peak == pytest.approx(tflops * 1e12, rel=1e-3), "and TFLOP/s are powers of 1000"


@pytest.mark.parametrize(
    ("device", "terabytes", "ridge"),
    [("h100", 3.35, 295), ("h200", 4.8, 206), ("b200", 7.7, 292), ("gb200", 8.0, 312.5)],
)
def test_bandwidths_and_ridges(device, terabytes, ridge):
    """nsys-ai #577: an H200 is not an H100. aiconfigurator #1246: 7.7 TB/s for B200. 13.4 TB are a rack's capacity."""
    hardware = roofline.load_hardware(device)
    assert hardware.bandwidth == terabytes * 1e12
    assert hardware.ridge(tensor("bf16")) == pytest.approx(ridge, abs=0.5)


def test_a10_and_links():
    assert roofline.load_hardware("a10").main.capacity == 24 * 2**30  # 28 in a table
    links = {link.name: link for link in roofline.load_hardware("h100").links}
    assert (links["nvlink"].bandwidth, links["nvlink"].devices) == (450e9, 8)  # llm-analysis #30: 8 share it


@pytest.mark.parametrize(
    ("asked", "found"), [("b200", "b200-sxm"), ("gb200", "gb200"), ("h200", "h200-sxm"), ("h100-nvl", "h100-nvl")]
)
def test_names_match_whole(asked, found):
    """marin #7334: GB200 contains B200, and is another device."""
    assert roofline.load_hardware(asked).name == found


@pytest.mark.parametrize("name", ["gb", "h100 ", "nvidia gb200", "gb300x", "h10", "200"])
def test_an_unknown_device_is_refused(name):
    """PyTorch #196944: no fall-back."""
    with pytest.raises(RooflineError):
        roofline.load_hardware(name)


# ---------------------------------------------------------------- anchors


def crossing(weight: str) -> int:
    """The first batch at which an 8192 x 8192 product is compute bound on an H100."""
    compute = None if weight == "bf16" else "bf16"
    shape = {"in_features": 8192, "out_features": 8192, "weight_dtype": weight, "compute": compute}
    return next(
        m for m in range(1, 1000) if roofline.analyze(Linear(tokens=m, **shape), hardware="h100").bound == "compute"
    )


def test_the_critical_batch_counts_activations():
    """318.3 and not 295, with 4.25-bit weights 84.5."""
    assert crossing("bf16") == 319
    assert crossing("int4-g128-zp") == 85


def test_decode_steps_of_llama_8b():
    one = roofline.analyze(decoder_step(model("llama-3.1-8b"), "decode", context=0), hardware="h100")
    assert one.bytes == pytest.approx(15.009e9, rel=2e-3)
    assert one.floor_s == pytest.approx(4.48e-3, rel=2e-3)
    many = roofline.analyze(decoder_step(model("llama-3.1-8b"), "decode", batch=64, context=8192), hardware="h100")
    # weights and cache alone are 83.73 GB and 24.99 ms; what goes between the kernels is a little under one per cent
    assert 83.73e9 < many.bytes < 1.01 * 83.73e9
    assert 24.99e-3 < many.floor_s < 1.01 * 24.99e-3
    assert many.lower_bound_s == pytest.approx(24.99e-3, rel=1e-3)
    assert many.intensity == pytest.approx(14.8, rel=0.015)


LLAMA_7B = DecoderConfig(
    model_type="llama", hidden_size=4096, intermediate_size=11_008, layers=32, heads=32, kv_heads=32, head_dim=128,
    vocab_size=32_000,
)  # fmt: skip


@pytest.mark.parametrize(("batch", "prompt", "new", "measured"), [(256, 128, 128, 5353), (16, 2048, 2048, 613)])
def test_a_floor_is_a_floor_and_not_a_forecast(batch, prompt, new, measured):
    """LLM-Viewer #4: LLaMA 7B on an A100 is estimated at 8934 and 1169 tokens/s and measured at 5353 and 613."""
    step = decoder_step(LLAMA_7B, "decode", batch=batch, context=prompt + new // 2, precision=Precision(weights="fp16"))
    prediction = roofline.analyze(step, hardware="a100")
    assert prediction.bound == "memory"
    assert measured < batch / prediction.floor_s < 3 * measured


def test_the_prefill_of_2048_tokens_takes_longer_than_its_floor():
    """LLM-Viewer #4 again: estimated at 100.9 ms, measured at 120.5."""
    step = decoder_step(LLAMA_7B, "prefill", tokens=2048, precision=Precision(weights="fp16"))
    prediction = roofline.analyze(step, hardware="a100")
    assert prediction.bound == "compute"
    assert 0.7 < prediction.floor_s / 120.5e-3 < 1

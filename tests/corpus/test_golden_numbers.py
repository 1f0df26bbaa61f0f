"""Published analytic figures (no measurements): equal to ours, or to ours by a formula that says what differs.

A row that is wrong is called so, with what it should say.
"""

from __future__ import annotations

import pytest

from roofline.hardware import load
from roofline.models import Precision, decoder_step
from roofline.ops import (
    Attention,
    AttentionScores,
    AttentionValues,
    GatedActivation,
    Linear,
    Op,
    Residual,
    RMSNorm,
    Softmax,
    node_of,
)
from roofline.ops.tree import parameters, resident_bytes, total
from tests.corpus.models import BY_SIZE, DECODERS, decoder
from tests.models.measures import tensor_flops
from tests.reference import Published, needs_corpus, published

pytestmark = [*needs_corpus]


COMPARED = (
    "ridge",
    "v5e",
    "naive",
    "gqa",
    "marlin",
    "kvbytes",
    "cursor",
    "kipply",
    "scalingbook",
    "baseten",
    "llmviewer",
)
NOT_COMPARED = {
    "r-ridge-a6000-fp16": "the device is not in the catalogue",
    "r-kvbytes-Qwen3-235B-A22B": "experts",
    "r-kvbytes-gpt-oss-120b": "experts",
    "r-kvbytes-DeepSeek-V3": "latent attention",
    "r-kvbytes-DeepSeek-V3.2-fp8": "latent attention",
    "r-flashmla-compute-bound": "latent attention",
    "r-mla-decode-ai": "latent attention",
    "r-palm-540b-decode-token": "parallel attention and MLP",
    "r-scalingbook-30b-int8-b4": "a model without a shape",
    "r-scalingbook-30b-int8-b256": "a model without a shape",
}
"""Rows of the analytic category that are left out, and why; the others are compared below by the kind in their id."""


def test_every_row_is_compared_or_says_why_not():
    rows = {row.id for row in published() if row.category == "roofline"}
    assert set(NOT_COMPARED) <= rows
    assert all(name.split("-")[1] in COMPARED for name in rows - set(NOT_COMPARED))
    assert len(rows - set(NOT_COMPARED)) == 122


def row(name: str) -> Published:
    [found] = [row for row in published() if row.id == name]
    return found


def value(name: str) -> float:
    return row(name).value


# ---------------------------------------------------------------- ridges and batches


@pytest.mark.parametrize(
    ("name", "device", "engine", "ours_over_theirs"),
    [
        ("r-ridge-h100-bf16", "h100-sxm", "tensor:bf16", 989.4 / 989),
        ("r-ridge-h100-fp8", "h100-sxm", "tensor:fp8", 1978.9 / 1979),
        ("r-ridge-h200-bf16", "h200-sxm", "tensor:bf16", 989.4 / 989),
        ("r-ridge-a100-40", "a100-sxm-40gb", "tensor:fp16", 1),
        ("r-ridge-a100-40-kipply", "a100-sxm-40gb", "tensor:fp16", 1.5 / 1.555),  # rounded down to 1.5 TB/s there
        ("r-ridge-a100-80", "a100-sxm-80gb", "tensor:bf16", 1),
        ("r-ridge-a10-fp16", "a10", "tensor:fp16", 1),
        ("r-ridge-b200-bf16", "b200-sxm", "tensor:bf16", 8.0 / 7.7),  # the announced bandwidth, not the shipped one
        ("r-ridge-h20-bf16", "h20", "tensor:bf16", 1),
        ("r-ridge-rtx4090", "rtx-4090", "tensor:fp16", 165.2 / 165),
        ("r-ridge-v5e-bf16", "tpu-v5e", "tensor:bf16", 1),
        # wrong by its own numbers: 394 TOP/s over the 0.82 TB/s of its bf16 row is 480
        ("r-ridge-v5e-int8", "tpu-v5e", "tensor:int8", 0.81 / 0.82),
    ],
)
def test_ridges(name, device, engine, ours_over_theirs):
    hardware = load(device)
    ridge = hardware.peaks[engine].value / hardware.bandwidth
    assert ridge == pytest.approx(value(name) * ours_over_theirs, rel=2.5e-3)
    said = row(name).shape
    assert said["peak_tflops"] / said["mem_tbs"] == pytest.approx(value(name), rel=2e-3)


def test_critical_batches_of_the_scaling_book_leave_the_activations_out():
    """Tokens at which a weight matmul turns compute bound: the ridge, halved where weights take half the bytes."""
    device = load("tpu-v5e")
    bf16, int8 = (device.peaks[f"tensor:{dtype}"].value / device.bandwidth for dtype in ("bf16", "int8"))
    assert bf16 == pytest.approx(value("r-v5e-bcrit-bf16"), rel=3e-3)
    assert bf16 / 2 == pytest.approx(value("r-v5e-bcrit-int8w-bf16a"), rel=3e-3)
    assert int8 / 2 == pytest.approx(value("r-v5e-bcrit-int8"), rel=0.015)  # 0.81 TB/s there
    # exactly 2 M N K / (2 K N + 2 M (K + N)): larger, and so near the ridge only for weights far larger than x and y
    wide = 2**20
    for batch, memory_bound in ((239, True), (242, False)):
        op = Linear(tokens=batch, in_features=wide, out_features=wide)
        assert (op.flops / op.traffic_bytes < bf16) == memory_bound


def test_intensities():
    for n in (1024, 2048, 4096, 8192):
        naive = node_of(
            "attention", Attention(heads=1, head_dim=128, queries=n, mask="full", implementation="naive", dtype="fp16")
        )
        flops, moved = total(naive, lambda op: op.flops), total(naive, lambda op: op.traffic_bytes)
        assert flops / moved == pytest.approx(value(f"r-naive-attn-n{n}-d128"), abs=0.005)
    # the matrix products alone over the cache alone: 4 G d / 4 d for groups of four heads
    op = Attention(heads=32, kv_heads=8, head_dim=128, queries=1, cached=65535)
    cache = sum(tensor.traffic_bytes for tensor in op.tensors() if tensor.role == "kv_cache")
    assert op.arithmetic()[op.engine] / cache == value("r-gqa-decode-ai")


def test_weight_only_products_gain_what_the_narrower_weight_saves():
    """Marlin, 72k x 18k with group 128 on an A10: 16 bits over 4 + 16/128, at a batch where activations are nothing."""
    shape = {"tokens": 1, "in_features": 18432, "out_features": 73728, "dtype": "fp16"}
    wide, narrow = Linear(**shape), Linear(**shape, weight_dtype="int4-g128", compute="fp16")
    assert wide.traffic_bytes / narrow.traffic_bytes == pytest.approx(value("r-marlin-ideal"), abs=0.005)


# ---------------------------------------------------------------- caches


def test_cache_bytes_of_a_position():
    compared = 0
    for row_ in published():
        name = row_.shape.get("model")
        if row_.metric == "kv_bytes_per_token" and (name in DECODERS or name in BY_SIZE):
            compared += 1
            step = decoder_step(decoder(name), "decode", context=99, precision=Precision(weights="bf16"))
            assert resident_bytes(step)["kv_cache"] == 100 * row_.value
    assert compared == 4
    grouped = decoder_step(decoder("Llama-2-70B"), "decode", context=0, precision=Precision(weights="fp16"))
    assert resident_bytes(grouped)["kv_cache"] == value("r-cursor-llama2-70b-kv")
    # 52 billion parameters with as many key and value heads as query heads: 2 x 2 x 64 layers x 8192
    whole = Attention(heads=64, head_dim=128, queries=1)
    cache = sum(tensor.resident_bytes for tensor in whole.tensors() if tensor.role == "kv_cache")
    assert 64 * cache == value("r-kipply-52b-kv")


# ---------------------------------------------------------------- step times


def test_step_times_of_the_scaling_book_are_weights_and_cache_over_bandwidth():
    """Llama 2 13B on 8 TPU v5e. The book rounds 26.03 GB of weights to 26 and 6.71 GB of cache a sequence to 6.7,
    and streams the embedding table, of which a step reads a row only.
    """
    step = decoder_step(decoder("Llama-2-13B"), "decode", context=8191, precision=Precision(weights="bf16"))
    held = resident_bytes(step)
    weights, cache = round(held["weight"] / 1e9, 0) * 1e9, round(held["kv_cache"] / 1e9, 1) * 1e9
    assert (weights, cache) == (26e9, 6.7e9)
    bandwidth = 8 * 0.82e12
    for batch in (1, 8, 16, 32, 64, 240):
        for label, each in (("mha", cache), ("kv_5", cache / 5)):
            seconds = (weights + batch * each) / bandwidth
            name = f"r-scalingbook-13b-{label}-b{batch}"
            assert 1e3 * seconds == pytest.approx(value(name), rel=1.5e-3)
            assert batch / seconds == pytest.approx(value(f"{name}-tps"), rel=1e-3)
            ours = decoder_step(decoder("Llama-2-13B"), "decode", batch=batch, context=8191)
            moved = total(ours, lambda op: op.traffic_bytes)
            if label == "mha":
                table = 2 * 32000 * 5120
                between_kernels = 0.02 * moved
                assert 0 < moved - (weights - table + batch * cache) < between_kernels
    assert load("tpu-v5e").bandwidth == pytest.approx(0.82e12, rel=2e-3)


def test_the_step_of_a_70b_in_int8_takes_the_books_112_gigabytes():
    """70 GB of weights and 160 kB of cache a token, as the book rounds 2 x 80 x 8 x 128 = 163,840 bytes."""
    said = row("r-scalingbook-70b-int8-b32").shape
    step = decoder_step(
        decoder("Llama-3-70B"), "decode", batch=32, context=8191, precision=Precision(weights="int8", kv="int8")
    )
    position = resident_bytes(step)["kv_cache"] / (32 * 8192)
    assert position == 80 * 2 * 8 * (128 + 2)  # ours has a scale of two bytes a head as well
    books = 70e9 + 32 * 8192 * 160e3
    assert books == pytest.approx(said["bytes_gb"] * 1e9, rel=2e-3)
    assert 1e3 * books / (8 * 0.82e12) == pytest.approx(value("r-scalingbook-70b-int8-b32"), rel=5e-3)
    assert parameters(step) / 1e9 == pytest.approx(70, rel=0.01)
    assert 32 / (books / (8 * 0.82e12)) / 8 == pytest.approx(value("r-scalingbook-70b-int8-b32-tps"), rel=5e-3)


def test_flops_of_a_token_are_two_a_parameter_that_it_meets():
    """Published: 2 x 70 billion for Llama 2 70B. It has 68.98, of which a token does not meet the embedding table."""
    config = decoder("Llama-2-70B")
    step = decoder_step(config, "decode", context=0)
    met = parameters(step) - config.vocab_size * config.hidden_size - (2 * config.layers + 1) * config.hidden_size
    attention = 4 * config.layers * config.heads * config.head_dim
    assert tensor_flops(step) == 2 * met + attention
    assert value("r-cursor-llama2-70b-flops") == 2 * 70e9
    assert tensor_flops(step) == pytest.approx(2 * 68.72e9, rel=1e-3)


def test_kielys_llama_on_an_a10_streams_every_parameter():
    """14 GB over 600 GB/s and 2 x 7 x 10^9 x 350 over 125 TFLOP/s; exactly, a step reads all but the embedding table.

    6.74 billion parameters, 0.13 of them in the table.
    """
    config = decoder("Llama-2-7B")
    device = load("a10")
    step = decoder_step(config, "decode", precision=Precision(weights="fp16"))
    assert 14e9 / device.bandwidth * 1e3 == pytest.approx(value("r-baseten-llama7b-a10-decode"), abs=0.05)
    moved = total(step, lambda op: op.traffic_bytes)
    assert moved == pytest.approx(2 * (parameters(step) - 32000 * 4096), rel=1e-3)
    assert moved / device.bandwidth * 1e3 == pytest.approx(22.0, abs=0.05)
    peak = device.peaks["tensor:fp16"].value
    assert 2 * 7e9 * 350 / peak * 1e3 == pytest.approx(value("r-baseten-llama7b-a10-prefill350"), abs=0.05)


# ---------------------------------------------------------------- LLM-Viewer, layer by layer

HIDDEN, INNER, HEADS, LAYERS, SEQUENCE, VOCABULARY = 4096, 11008, 32, 32, 2048, 32000


def layer(phase: str) -> dict[str, tuple[int, Op]]:
    """The ops of a layer of Llama 2 7B as LLM-Viewer lists them, with how many there are of each."""
    tokens = SEQUENCE if phase == "prefill" else 1
    half = {"dtype": "fp16"}
    heads = {"heads": HEADS, "queries": tokens, "keys": SEQUENCE, **half}
    return {
        "q_proj": (4, Linear(tokens=tokens, in_features=HIDDEN, out_features=HIDDEN, **half)),
        "gate_proj": (3, Linear(tokens=tokens, in_features=HIDDEN, out_features=INNER, **half)),
        "qk_matmul": (1, AttentionScores(**heads, head_dim=128)),
        "sv_matmul": (1, AttentionValues(**heads, head_dim_v=128)),
        "softmax": (1, Softmax(rows=HEADS * tokens, columns=SEQUENCE, **half)),
        "norm": (2, RMSNorm(tokens=tokens, hidden_size=HIDDEN, **half)),
        "add": (2, Residual(tokens=tokens, hidden_size=HIDDEN, **half)),
        "mlp_act": (1, GatedActivation(tokens=tokens, intermediate_size=INNER, **half)),
    }


def their_ops(name: str, op: Op) -> float:
    """LLM-Viewer's operations from our FLOPs."""
    if name == "softmax":
        return op.flops * 5 / 3  # five a score
    if isinstance(op, RMSNorm):
        return 7 * op.tokens * op.hidden_size  # as for LayerNorm; RMSNorm has no mean and no bias
    if isinstance(op, GatedActivation):
        return 2 * op.tokens * HIDDEN  # wrong: it is the MLP's width that is activated
    return op.flops


def their_bytes(op: Op) -> float:
    """LLM-Viewer's bytes from ours."""
    if isinstance(op, RMSNorm):
        return op.traffic_bytes - 2 * op.hidden_size  # without the weight
    if isinstance(op, Residual):
        return op.traffic_bytes * 2 / 3  # wrong: two streams are read and one written
    if isinstance(op, GatedActivation):
        return op.traffic_bytes * HIDDEN / INNER
    return op.traffic_bytes


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_llm_viewer_counts_as_we_do_but_for_its_quirks(phase):
    for name, (_, op) in layer(phase).items():
        prefix = f"r-llmviewer-{phase}-{name}"
        if phase == "decode" and name == "mlp_act":
            continue  # not in its table
        ops, moved = their_ops(name, op), their_bytes(op)
        assert ops == pytest.approx(value(f"{prefix}-ops"), rel=6e-4), name
        assert moved == pytest.approx(value(f"{prefix}-bytes"), rel=6e-4), name
        assert ops / moved == pytest.approx(value(f"{prefix}-ai"), rel=6e-4), name
        # an RTX A6000: 154.8 TFLOP/s, 768 GB/s
        attainable = min(154.8e12, 768e9 * ops / moved)
        assert attainable == pytest.approx(value(f"{prefix}-perf"), rel=6e-4), name
        bound = "compute" if attainable == 154.8e12 else "memory"
        assert bound == row(f"{prefix}-ops").shape["bound"], name


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_llm_viewers_totals_are_its_layers_and_half_an_lm_head(phase):
    """Its LM head is one row, and one operation a multiply-add: half of what it computes. Times are added up."""
    head = Linear(tokens=1, in_features=HIDDEN, out_features=VOCABULARY, dtype="fp16")
    ops, moved = head.flops / 2, head.traffic_bytes
    seconds = moved / 768e9
    for name, (count, op) in layer(phase).items():
        each, bytes_ = their_ops(name, op), their_bytes(op)
        ops += LAYERS * count * each
        moved += LAYERS * count * bytes_
        seconds += LAYERS * count * max(each / 154.8e12, bytes_ / 768e9)
    prefix = f"r-llmviewer-{phase}-total"
    assert ops == pytest.approx(value(f"{prefix}-ops"), rel=4e-5)
    assert moved == pytest.approx(value(f"{prefix}-memory_access"), rel=4e-5)
    assert 1e3 * seconds == pytest.approx(value(f"{prefix}-latency"), rel=2e-4)

"""Published times of whole models against our lower bounds: decoding, prefill, generation, denoising."""

from __future__ import annotations

from collections import Counter

import pytest

from roofline.models import decoder_step
from roofline.models.diffusion import diffusion_step
from roofline.models.phases import Denoise
from roofline.ops import Node
from roofline.ops.tree import leaves, parameters
from tests.corpus.measured import ENDS, Measured, datasheet, median
from tests.corpus.models import (
    BY_SIZE,
    DECODERS,
    NO_DEVICE,
    NO_MODEL,
    PRECISIONS,
    decoder,
    denoising,
    diffuser,
    model_rows,
    models,
    reason_to_skip,
)
from tests.models.measures import tensor_flops
from tests.reference import Published, needs_corpus, published

pytestmark = [*needs_corpus]


def rows(op: str) -> list[tuple[Published, Measured]]:
    """The compared rows of a kind, each with its counterpart."""
    return [(row, models()[row.id]) for row in model_rows() if row.op == op and row.id in models()]


def test_every_row_is_compared_or_says_why_not():
    skipped = Counter(reason_to_skip(row) for row in model_rows())
    assert skipped.pop(None) == len(models()) == 130
    assert set(NO_MODEL) <= {row.shape["model"] for row in model_rows()}
    assert set(NO_DEVICE) <= {row.hardware for row in model_rows()}
    assert not set(NO_DEVICE) & set(ENDS)


def test_no_time_is_under_our_lower_bound():
    """No exception is needed. Several devices are charged with their share and with nothing for the links."""
    under = {name: round(one.lower_bound_s / one.seconds, 3) for name, one in models().items()}
    assert {name: share for name, share in under.items() if share > 1} == {}
    assert max(under.values()) < 0.85


def test_the_serial_floor_holds_as_well():
    """These programs run one kernel after the other, so that the sum over ops bounds them, too."""
    assert {name: one.fraction for name, one in models().items() if one.fraction > 1} == {}


# ---------------------------------------------------------------- the bound


def test_batch_one_decoding_is_memory_bound_and_denoising_is_not():
    for row, one in rows("decode_e2e"):
        assert one.prediction.bound == "memory", row.id
    for row, one in rows("diffusion_e2e"):
        assert one.prediction.bound == "compute", row.id


def test_a_prefill_of_2048_is_compute_bound_and_one_of_128_is_not():
    for row, one in rows("prefill_e2e"):
        tokens = row.shape.get("isl") or row.shape["n"]
        assert one.prediction.bound == ("compute" if tokens >= 1024 else "memory"), row.id


def test_generations_are_bound_by_their_cache_except_short_ones_in_large_batches():
    compute = {row.id for row, one in rows("e2e_throughput") if one.prediction.bound == "compute"}
    assert compute == {
        "m-trtllm06-H100-LLaMA-70B-128-128-b1024-tp2",
        "m-trtllm06-H100-LLaMA-70B-128-2048-b480-tp4",
    }


# ---------------------------------------------------------------- how near programs come


def shares(prefix: str, op: str, **equal: object) -> list[float]:
    return [
        one.lower_bound_s / one.seconds
        for row, one in rows(op)
        if row.id.startswith(prefix) and all(row.shape.get(key) == value for key, value in equal.items())
    ]


@pytest.mark.parametrize(
    ("prefix", "op", "equal", "low", "high"),
    [
        ("m-gptfast-A100", "decode_e2e", {"model": "Llama-2-7B", "quant": "bf16", "tp": 1}, 0.67, 0.69),
        ("m-gptfast-A100", "decode_e2e", {"model": "Llama-2-7B", "quant": "int8-wo", "tp": 1}, 0.50, 0.52),
        # 4.125 bits a weight are charged where 5 are stored
        ("m-gptfast-A100", "decode_e2e", {"model": "Llama-2-7B", "quant": "int4-g32-wo"}, 0.42 / 5 * 4, 0.42),
        ("m-gptfast-A100", "decode_e2e", {"model": "Llama-2-7B", "quant": "bf16", "tp": 8}, 0.25, 0.35),
        ("m-llamacpp-RTX", "decode_e2e", {"quant": "f16"}, 0.70, 0.80),
        ("m-llamacpp-A100", "decode_e2e", {"quant": "f16"}, 0.46, 0.49),
        ("m-wan21-A100", "diffusion_e2e", {"gpus": 1}, 0.61, 0.65),
        ("m-wan21-H20", "diffusion_e2e", {"gpus": 1}, 0.63, 0.65),
        ("m-wan21-H100", "diffusion_e2e", {"gpus": 1}, 0.35, 0.37),
        ("m-flux-a100-base", "diffusion_e2e", {}, 0.47, 0.49),
        ("m-flux-a100-compile", "diffusion_e2e", {}, 0.66, 0.68),
    ],
)
def test_the_median_share_is_what_good_programs_reach(prefix, op, equal, low, high):
    found = shares(prefix, op, **equal)
    assert found
    # the int4 row is held to the share of its own bits, a little under 0.42
    assert low * 0.95 <= median(found) <= high


# ---------------------------------------------------------------- bytes and FLOPs that sources state


def test_gpt_fast_moves_the_weights_that_we_say_a_step_reads():
    """Its GB/s are model bytes a token: all weights but the embedding table, and less than 1 % of buffers.

    Its int8 rows are left out: that of Llama 2 7B holds the table after all, that of Llama 3.1 8B is smaller than the
    linear layers are.
    """
    compared = 0
    for row, one in rows("decode_e2e"):
        if row.id.startswith("m-gptfast-A100") and one.devices == 1 and row.shape["quant"] == "bf16":
            compared += 1
            config = decoder(row.shape["model"])
            weights = 2 * (parameters(one.tree) - config.vocab_size * config.hidden_size)
            assert 1 < row.shape["implied_bytes_per_token_per_gpu"] / weights < 1.01
            # a step of ours reads those, 5 positions of cache, and rows of what is between the kernels
            assert 1 < one.prediction.bytes / weights < 1.002
    assert compared == 2


def test_a_prefill_of_unknown_length_computes_at_least_its_linears():
    """Qwen3 8B in fp8 on an H20: the row gives tokens a second and no length, so that attention is left out."""
    [row] = [row for row in model_rows() if row.id == "m-infersim-q8-h20-prefill"]
    step = decoder_step(decoder("Qwen3-8B"), "prefill", tokens=1000, precision=PRECISIONS["fp8"])
    linear = sum(leaf.count * leaf.op.arithmetic()[leaf.op.engine] for leaf in leaves(step) if leaf.op.kind == "linear")
    peak = datasheet("h20").hardware.peaks["tensor:fp8"].value
    assert 0.6 < row.value * linear / 1000 / peak < 0.8


def test_denoising_flops_are_the_published_estimates_but_for_what_those_leave_out():
    """Estimates: every parameter times every token, and self-attention.

    FLUX: 74.4 TFLOP a step, ours to the digits given. Wan: text and timestep have weights (2.3 of 14.3 billion) that
    image tokens never meet, and the estimate leaves cross-attention out.
    """
    for row in model_rows():
        if row.op != "diffusion_e2e" or "flops_est" not in row.shape or row.hardware in NO_DEVICE:
            continue
        passes = row.shape["steps"] * (2 if row.shape.get("cfg") else 1)
        ours, estimate = tensor_flops(denoising(row)) / passes, row.shape["flops_est"] / passes
        if row.shape["model"].startswith("FLUX"):
            assert estimate == pytest.approx(ours, rel=5e-4), row.id
            continue
        config, tokens, text = diffuser(row.shape["model"]), row.shape["dit_tokens"], 512
        hidden, inner = config.hidden_size, config.intermediate_size
        rounded = 1.3e9 if row.shape["model"].endswith("1.3B") else 14e9
        self_attention = 4 * config.layers * tokens**2 * hidden
        assert estimate == 2 * rounded * tokens + self_attention, row.id
        layer = 2 * tokens * (6 * hidden**2 + 2 * hidden * inner) + 2 * text * 2 * hidden**2
        layer += 4 * tokens * text * hidden
        patches = 2 * tokens * 2 * (16 * 4) * hidden
        embedders = 2 * text * (4096 * hidden + hidden**2) + 2 * (256 * hidden + hidden**2 + 6 * hidden**2)
        assert ours == self_attention + config.layers * layer + patches + embedders, row.id


NAMED = {"FLUX.1-dev": 12, "Wan2.1-T2V-14B": 14, "Wan2.1-T2V-1.3B": 1.3}
"""Billions of parameters as the name of the model has them, not as they were counted: within a tenth."""


def test_parameters_are_the_published_ones():
    """Of every model that we describe, to the last digit that the source prints, rounded or truncated."""
    compared = set()
    for row in published():
        name = row.shape.get("model", "")
        if row.category == "params" and row.metric == "params_total" and (tree := tree_of_model(name)) is not None:
            compared.add(name)
            unit = 10.0 ** -len(str(row.value).partition(".")[2])
            low, high = (0.1 * NAMED[name],) * 2 if name in NAMED else (0.5 * unit, unit)
            assert row.value - low <= parameters(tree) / 1e9 < row.value + high, name
    assert len(compared) == 12


def tree_of_model(name: str) -> Node | None:
    if name in DECODERS or name in BY_SIZE:
        return decoder_step(decoder(name), "decode")
    if name in NAMED or name == "SD3.5-Large":
        return diffusion_step(diffuser(name), Denoise(height=1024, width=1024))
    return None

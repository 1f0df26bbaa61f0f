"""Worked numbers of linear layers, the LM head and the embedding, counted by hand: every factor is written out."""

from __future__ import annotations

import pytest

from roofline.engines import VECTOR, tensor
from roofline.errors import RooflineError
from roofline.ops import Embedding, Linear, LMHead

SQUARE = {"in_features": 4096, "out_features": 4096}


def traffic(op) -> dict[str, int]:
    return {tensor.name: tensor.traffic_bytes for tensor in op.tensors()}


@pytest.mark.parametrize(
    ("tokens", "flops", "bytes_moved", "intensity"),
    [
        (1, 33_554_432, 33_570_816, 0.9995),
        (64, 2_147_483_648, 34_603_008, 62.06),
        (345, 11_576_279_040, 39_206_912, 295.26),
        (4096, 137_438_953_472, 100_663_296, 1365.33),
    ],
)
def test_a_square_bf16_layer(tokens, flops, bytes_moved, intensity):
    op = Linear(tokens=tokens, **SQUARE)
    assert op.arithmetic() == {tensor("bf16"): flops}
    assert op.traffic_bytes == op.resident_bytes == bytes_moved
    assert op.flops / op.traffic_bytes == pytest.approx(intensity, rel=1e-4)


def test_a_bias_is_added_on_the_vector_engine_and_read_once():
    op = Linear(tokens=128, **SQUARE, bias=True)
    assert op.arithmetic() == {tensor("bf16"): 4_294_967_296, VECTOR: 524_288}
    assert op.traffic_bytes == 35_659_776
    assert traffic(op)["bias"] == 4096 * 2


@pytest.mark.parametrize(
    ("weight_dtype", "weight_bytes", "total"),
    [
        ("int8", 4096 * (4096 + 2), 16_801_792),
        ("int4-g128", 4096 * (2048 + 32 * 2), 8_667_136),
        ("int4-g128-zp", 4096 * (2048 + 32 * 4), 8_929_280),
        ("nvfp4", 4096 * (2048 + 256), 9_453_568),
        ("mxfp4", 4096 * (2048 + 128), 8_929_280),
        ("mxfp8", 4096 * (4096 + 128), 17_317_888),
    ],
)
def test_weight_only_formats_read_their_scales_and_compute_in_bf16(weight_dtype, weight_bytes, total):
    op = Linear(tokens=1, **SQUARE, weight_dtype=weight_dtype, compute="bf16")
    assert op.arithmetic() == {tensor("bf16"): 33_554_432}
    assert traffic(op) == {"x": 8192, "weight": weight_bytes, "y": 8192}
    assert op.traffic_bytes == total


def test_fp8_writes_bf16():
    op = Linear(tokens=4096, **SQUARE, dtype="fp8")
    assert op.arithmetic() == {tensor("fp8"): 137_438_953_472}
    assert op.traffic_bytes == 4096 * 4096 * (1 + 1 + 2) == 67_108_864


def test_tf32_is_computed_over_fp32_storage():
    op = Linear(tokens=1, **SQUARE, dtype="fp32", compute="tf32")
    assert list(op.arithmetic()) == [tensor("tf32")]
    assert traffic(op)["weight"] == 4096 * 4096 * 4


@pytest.mark.parametrize(
    ("rows", "out_dtype", "flops", "bytes_moved", "intensity"),
    [(1, None, 1_050_673_152, 1_050_937_856, 0.9997), (64, "fp32", 67_243_081_728, 1_084_030_976, 62.03)],
)
def test_the_head_of_llama_3(rows, out_dtype, flops, bytes_moved, intensity):
    op = LMHead(rows=rows, hidden_size=4096, vocab_size=128_256, out_dtype=out_dtype)
    assert (op.flops, op.traffic_bytes) == (flops, bytes_moved)
    assert op.flops / op.traffic_bytes == pytest.approx(intensity, rel=1e-3)


def test_an_embedding_reads_rows_and_not_the_table():
    op = Embedding(tokens=4096, vocab_size=128_256, hidden_size=4096)
    assert op.flops == 0
    assert traffic(op) == {"ids": 4096 * 8, "weight": 4096 * 8192, "y": 4096 * 8192}
    assert op.traffic_bytes == 67_141_632
    assert op.resident_bytes == 4096 * 8 + 128_256 * 8192 + 4096 * 8192


def test_repeated_ids_read_their_row_once_and_never_more_rows_than_there_are():
    sizes = {"tokens": 100, "vocab_size": 64, "hidden_size": 8}
    assert traffic(Embedding(**sizes, distinct=10))["weight"] == 10 * 16
    assert traffic(Embedding(**sizes))["weight"] == 64 * 16


@pytest.mark.parametrize(
    ("op", "key"),
    [
        (Linear(tokens=1, **SQUARE, weight_dtype="int4-g128"), "compute"),
        (Linear(tokens=1, **SQUARE, compute="fp8"), "compute"),
        (Linear(tokens=0, **SQUARE), "tokens"),
        (Embedding(tokens=4, vocab_size=9, hidden_size=2, distinct=5), "distinct"),
        (Embedding(tokens=40, vocab_size=9, hidden_size=2, distinct=10), "distinct"),
    ],
)
def test_what_makes_no_sense_is_refused_by_key(op, key):
    with pytest.raises(RooflineError) as refused:
        op.check()
    assert refused.value.key == key

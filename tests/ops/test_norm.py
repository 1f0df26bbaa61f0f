"""Worked numbers of norms on 4096 x 4096 bf16 elements (33,554,432 bytes), and of the softmax of a vocabulary."""

from __future__ import annotations

from roofline.engines import SPECIAL, VECTOR
from roofline.ops import LayerNorm, RMSNorm, Softmax

SQUARE = {"tokens": 4096, "hidden_size": 4096}
STREAM = 33_554_432


def test_rms_norm():
    op = RMSNorm(**SQUARE)
    assert op.arithmetic() == {VECTOR: 67_121_152, SPECIAL: 4096}
    assert op.traffic_bytes == 67_117_056


def test_a_fused_residual_add_reads_two_streams_and_writes_two():
    op = RMSNorm(**SQUARE, residual=True)
    assert op.flops == 83_898_368
    assert op.traffic_bytes == 134_225_920 == 4 * STREAM + 8192
    assert op.resident_bytes == 3 * STREAM + 8192  # the sum takes the place of the residual
    apart = 167_780_352  # an add of three streams, then a norm of two
    assert apart - op.traffic_bytes == STREAM


def test_layer_norm():
    op = LayerNorm(**SQUARE)
    assert op.arithmetic() == {VECTOR: 117_440_512, SPECIAL: 4096}
    assert op.traffic_bytes == 67_125_248


def test_layer_norm_without_weights():
    op = LayerNorm(**SQUARE, affine=False)
    assert op.arithmetic() == {VECTOR: 5 * 4096 * 4096, SPECIAL: 4096}
    assert op.traffic_bytes == 2 * STREAM
    assert LayerNorm(**SQUARE, residual=True).traffic_bytes == 4 * STREAM + 2 * 8192


def test_softmax_counts_three_a_score():
    op = Softmax(rows=64, columns=128_256, dtype="fp32")
    assert op.arithmetic() == {VECTOR: 3 * 64 * 128_256, SPECIAL: 64 * 128_256}
    assert op.traffic_bytes == 65_667_072

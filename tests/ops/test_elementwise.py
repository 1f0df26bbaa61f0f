"""Worked numbers of elementwise operations on 4096 x 4096 bf16 elements (33,554,432 bytes) and on Llama 3's MLP."""

from __future__ import annotations

import pytest

from roofline.engines import SPECIAL, VECTOR
from roofline.errors import RooflineError
from roofline.ops import Activation, GatedActivation, Multiply, Residual, ScaleShift, node_of
from roofline.ops.tree import total

SQUARE = {"tokens": 4096, "hidden_size": 4096}
ELEMENTS = 4096 * 4096


@pytest.mark.parametrize(
    ("function", "flops", "special"),
    [("relu", 16_777_216, 0), ("silu", 67_108_864, 1), ("gelu", 83_886_080, 1), ("gelu-tanh", 150_994_944, 1)],
)
def test_activations(function, flops, special):
    op = Activation(tokens=4096, features=4096, function=function)
    assert op.flops == flops
    assert op.arithmetic().get(SPECIAL, 0) == special * ELEMENTS
    assert op.traffic_bytes == 67_108_864


def test_swiglu_fused_and_not():
    op = GatedActivation(tokens=4096, intermediate_size=14336)
    assert op.arithmetic() == {VECTOR: 293_601_280, SPECIAL: 58_720_256}
    assert op.traffic_bytes == 352_321_536
    naive = node_of("act", op.with_(implementation="naive"))
    assert total(naive, lambda part: part.traffic_bytes) == 587_202_560
    assert total(naive, lambda part: part.flops) == 293_601_280


def test_a_product_moves_three_streams():
    op = Multiply(tokens=4096, features=4096)
    assert (op.flops, op.traffic_bytes) == (ELEMENTS, 3 * 33_554_432)


def test_a_residual_add():
    op = Residual(**SQUARE)
    assert (op.flops, op.traffic_bytes) == (16_777_216, 100_663_296)
    gated = Residual(**SQUARE, gate=True, images=2)
    assert (gated.flops, gated.traffic_bytes) == (2 * 16_777_216, 100_663_296 + 2 * 8192)


def test_modulation_reads_one_scale_and_one_shift_an_image():
    op = ScaleShift(**SQUARE, images=2)
    assert op.arithmetic() == {VECTOR: 2 * ELEMENTS}
    assert op.traffic_bytes == 2 * 33_554_432 + 2 * (2 * 8192)


def test_a_norm_before_it_adds_arithmetic_and_no_bytes():
    plain, normed = (ScaleShift(**SQUARE, images=2, norm=norm) for norm in (False, True))
    assert normed.arithmetic() == {VECTOR: 7 * ELEMENTS, SPECIAL: 4096}
    assert normed.traffic_bytes == plain.traffic_bytes


@pytest.mark.parametrize("op", [Residual(**SQUARE, gate=True, images=3), ScaleShift(**SQUARE, images=3)])
def test_images_have_rows_of_one_number(op):
    with pytest.raises(RooflineError) as refused:
        op.check()
    assert refused.value.key == "images"

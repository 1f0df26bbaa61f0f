from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch", reason="needs torch (the extra 'measure')")

import torch

from roofline.kernels import Packed, packed, storage_bytes
from roofline.ops.sizes import bytes_of

from ..strategies import NARROW

SCALED = tuple(name for name in NARROW if name != "fp8")
SHAPES = st.lists(st.integers(1, 5), max_size=2).flatmap(
    lambda leading: st.integers(1, 300).map(lambda columns: (*leading, columns))
)

ERROR_OF_ROW = {"int8": 0.5 / 127, "int4-g128": 0.5 / 7, "int4-g128-zp": 0.5 / 7, "nvfp4": 0.2, "mxfp4": 0.2}
ERROR_OF_VALUE = {"fp8-row": 2**-4, "mxfp8": 2**-4}


def normal(shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", SCALED)
@settings(max_examples=40)
@given(shape=SHAPES)
def test_storage_is_what_the_table_of_dtypes_says(name, shape):
    """Also for rows that are no multiple of a block."""
    expected = bytes_of(shape, name)
    assert storage_bytes(packed.quantize(normal(shape), name)) == expected
    assert storage_bytes(packed.empty(shape, name, torch.device("cpu"))) == expected


@pytest.mark.parametrize("name", SCALED)
@given(shape=SHAPES, scale=st.sampled_from((0.3, 1.0, 100.0)))
def test_dequantising_gives_the_data_back_within_the_error_of_the_format(name, shape, scale):
    values = normal(shape) * scale
    error = (packed.quantize(values, name).dequantize() - values).abs()
    largest = values.abs().amax(-1, keepdim=True)
    slack = 1.01  # the scale itself is rounded
    if name in ERROR_OF_ROW:
        assert (error <= slack * ERROR_OF_ROW[name] * largest + 1e-6 * scale).all()
    else:
        smallest_step = largest * 2**-15  # subnormals of E4M3 below 2^-6 of 448
        assert (error <= slack * ERROR_OF_VALUE[name] * values.abs() + smallest_step).all()


@pytest.mark.parametrize("name", SCALED)
def test_quantising_what_was_quantised_changes_nothing(name):
    once = packed.quantize(normal((6, 200)), name).dequantize()
    twice = packed.quantize(once, name).dequantize()
    tolerance = 1e-3 if name.startswith("int") else 0.0  # fp16 scales of rounded integers move by their last bit
    assert torch.allclose(once, twice, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", SCALED)
def test_zeros_and_single_large_values_are_held(name):
    values = torch.zeros(3, 160)
    values[1, 5] = 12.0
    values[2] = -0.25
    back = packed.quantize(values, name).dequantize()
    assert torch.equal(back[0], values[0])
    assert back[1, 5] == pytest.approx(12.0, rel=0.07)
    assert torch.allclose(back[2], values[2], rtol=0.1)


@pytest.mark.parametrize("name", SCALED)
def test_poison_shows(name):
    storage = packed.empty((2, 3, 70), name, torch.device("cpu"))
    storage.poison()
    assert storage.dequantize().isnan().all()


@pytest.mark.parametrize("name", SCALED)
def test_a_view_of_the_last_positions_writes_through(name):
    cache = packed.empty((2, 3, 7, 40), name, torch.device("cpu"))
    cache.poison()
    new = packed.quantize(normal((2, 3, 2, 40)), name)
    cache.last_positions(2).copy_(new)
    whole = cache.dequantize()
    assert whole[:, :, :5].isnan().all()
    assert torch.equal(whole[:, :, 5:], new.dequantize())


@given(st.lists(st.integers(0, 15), min_size=1, max_size=9))
def test_halves_of_bytes(codes):
    row = torch.tensor(codes, dtype=torch.uint8)
    halves = packed.pack_halves(row)
    assert halves.numel() == (len(codes) + 1) // 2
    assert packed.unpack_halves(halves)[: len(codes)].tolist() == codes
    assert halves[0] & 15 == codes[0]


def test_known_bits():
    """E2M1 codes 0..7 are 0, 0.5, 1, 1.5, 2, 3, 4, 6; E8M0 is a biased exponent."""
    values = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0] * 4)
    held = packed.quantize(values, "mxfp4")
    assert held.scales.tolist() == [127]
    assert held.codes().tolist() == list(range(8)) * 4
    assert packed.quantize(-values * 2, "mxfp4").scales.tolist() == [128]
    assert packed.quantize(-values, "mxfp4").codes()[1:8].tolist() == list(range(9, 16))


def test_zero_points_follow_torch():
    held = packed.quantize(torch.linspace(0, 15, 128), "int4-g128-zp")
    assert (float(held.scales[0]), float(held.zeros[0])) == (1.0, 8.0)
    assert isinstance(held, Packed)
    assert held.codes()[0] == 0
    assert held.codes()[-1] == 15

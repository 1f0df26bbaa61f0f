from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="needs torch (the extra 'measure')")

import torch

from roofline.errors import RooflineError
from roofline.kernels import Packed, inputs, make_inputs
from roofline.kernels.reference import exact
from roofline.ops import OPS, Attention, Embedding, Fill, Linear, RMSNorm, Tensor

from ..strategies import ops

EACH_OP = pytest.mark.parametrize("op_type", OPS.values(), ids=list(OPS))


@EACH_OP
@given(data=st.data())
def test_inputs_are_normal_data_and_outputs_are_poisoned(op_type, data):
    op = data.draw(ops(op_type))
    for tensor, operand in zip(op.tensors(), make_inputs(op, "cpu").values(), strict=True):
        if tensor.role == "index":
            continue
        values = exact(operand)
        assert bool(values.isnan().all()) == (tensor.access == "write")
        assert bool(values.isfinite().all()) == (tensor.access != "write")


def test_data_is_normal_and_never_zero():
    x = make_inputs(RMSNorm(tokens=100, hidden_size=1000, dtype="fp32"), "cpu")["x"]
    assert abs(x.mean()) < 0.02
    assert abs(x.std() - 1) < 0.02
    assert (x != 0).all()


def test_a_seed_repeats_and_another_differs():
    op = Linear(tokens=3, in_features=8, out_features=4)
    first, again, other = (make_inputs(op, "cpu", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first["x"], again["x"])
    assert torch.equal(first["weight"], again["weight"])
    assert not torch.equal(first["x"], other["x"])


def test_a_generator_goes_on():
    op = Linear(tokens=3, in_features=8, out_features=4)
    generator = torch.Generator().manual_seed(1)
    first, second = (make_inputs(op, "cpu", generator=generator) for _ in range(2))
    assert torch.equal(first["x"], make_inputs(op, "cpu", seed=1)["x"])
    assert not torch.equal(first["x"], second["x"])


def test_the_state_of_torch_is_left_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    make_inputs(Linear(tokens=3, in_features=8, out_features=4), "cpu")
    assert torch.equal(torch.rand(3), expected)


def test_no_two_rows_of_a_large_matrix_are_alike(monkeypatch):
    """A large tensor repeats a block of a prime length."""
    monkeypatch.setattr(inputs, "BLOCK", 101)
    x = make_inputs(RMSNorm(tokens=64, hidden_size=50, dtype="fp32"), "cpu")["x"]
    assert torch.equal(x.flatten()[:101], x.flatten()[101:202])
    assert len({tuple(row.tolist()) for row in x}) == 64


@given(ops(Embedding, most=30))
def test_as_many_ids_differ_as_are_charged(op):
    ids = make_inputs(op, "cpu")["ids"]
    weight = next(tensor for tensor in op.tensors() if tensor.name == "weight")
    assert ids.unique().numel() == weight.touched[0]
    assert 0 <= ids.min() <= ids.max() < op.vocab_size
    assert ids.dtype == torch.int64


def _index(fill, shape):
    """An index tensor with a fill that no operation uses yet."""

    class Indices:
        def tensors(self):
            return (Tensor("i", shape, "int32", "index", fill=fill),)

    return make_inputs(Indices(), "cpu")["i"]


def test_integers_cover_their_range():
    values = _index(Fill("integers", 5), (1000,))
    assert values.dtype == torch.int32
    assert sorted(set(values.tolist())) == [0, 1, 2, 3, 4]


def test_a_permutation_has_each_index_once():
    values = _index(Fill("permutation"), (50,)).tolist()
    assert sorted(values) == list(range(50)) != values


def test_offsets_rise_to_the_end():
    ends = _index(Fill("offsets", 40), (7,)).tolist()
    assert ends == sorted(ends)
    assert ends[-1] == 40


def test_routing_picks_different_experts_for_each_token():
    chosen = _index(Fill("routing", 8), (64, 3))
    assert all(len(set(row)) == 3 for row in chosen.tolist())
    assert sorted(set(chosen.flatten().tolist())) == list(range(8))


def test_an_index_is_not_filled_with_noise():
    with pytest.raises(RooflineError, match="normal"):
        _index(Fill(), (3,))


def test_formats_with_scales_are_packed_and_others_are_plain():
    op = Attention(heads=2, head_dim=32, queries=1, cached=3, kv_dtype="fp8-row")
    operands = make_inputs(op, "cpu")
    assert isinstance(operands["k"], Packed)
    assert operands["k"].payload.dtype == torch.float8_e4m3fn
    assert operands["q"].dtype == torch.bfloat16

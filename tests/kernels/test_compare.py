from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch (the extra 'measure')")

import torch

from roofline.kernels import make_inputs, mismatch, reference, tolerance
from roofline.ops import Attention, KVAppend, Linear, RMSNorm

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def linear(dtype="bf16"):
    return Linear(tokens=8, in_features=64, out_features=16, dtype=dtype)


def expected_of(op):
    return reference(op, make_inputs(op, "cpu"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_reference_rounded_to_the_dtype_matches(dtype):
    expected = expected_of(linear(dtype))
    assert mismatch(linear(dtype), expected, {"y": expected["y"].to(DTYPES[dtype])}) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_wrong_element_does_not(dtype):
    expected = expected_of(linear(dtype))
    wrong = expected["y"].clone()
    wrong[3, 5] *= 1.1
    wrong[3, 5] += 1.0
    reason = mismatch(linear(dtype), expected, {"y": wrong.to(DTYPES[dtype])})
    assert reason.startswith("y is ")
    assert "at [3, 5]" in reason


def test_fp32_is_not_allowed_the_error_of_tf32():
    """A kernel that silently computes in TF32 is found out; where TF32 is asked for, it is fine."""
    op = Linear(tokens=32, in_features=256, out_features=32, dtype="fp32")
    operands = make_inputs(op, "cpu")
    x, weight = ((operands[name].view(torch.int32) & ~0x1FFF).view(torch.float32) for name in ("x", "weight"))
    product = {"y": x @ weight.T}
    assert mismatch(op, reference(op, operands), product) is not None
    assert mismatch(op.with_(compute="tf32"), reference(op, operands), product) is None


def test_swapped_heads_and_hidden_keys_are_found():
    op = Attention(heads=4, kv_heads=2, head_dim=16, queries=8)
    expected = expected_of(op)
    assert mismatch(op, expected, {"out": expected["out"].flip(1).bfloat16()}) is not None
    seen = expected_of(op.with_(mask="full"))
    assert mismatch(op, expected, {"out": seen["out"].bfloat16()}) is not None


def test_a_missing_output_and_a_wrong_shape_are_named():
    op = RMSNorm(tokens=2, hidden_size=8, residual=True)
    expected = expected_of(op)
    assert mismatch(op, expected, {"y": expected["y"]}) == "residual is missing"
    both = {"residual": expected["residual"], "y": expected["y"].flatten()}
    assert mismatch(op, expected, both) == "y has shape (16,), not (2, 8)"


def test_poison_must_be_overwritten_where_it_should_be_and_only_there():
    op = KVAppend(kv_heads=1, head_dim=4, queries=1, cached=2, dtype="fp32")
    expected = expected_of(op)
    assert mismatch(op, expected, dict(expected)) is None
    for value in (torch.nan, 0.0):
        touched = {name: cache.clone() for name, cache in expected.items()}
        touched["v_cache"][0, 0, 2 if value != 0.0 else 1] = value
        assert "NaN" in mismatch(op, expected, touched)


def test_narrower_formats_are_allowed_more():
    allowed = []
    for kv_dtype in ("fp64", "fp32", "fp16", "bf16", "fp8", "int4-g128"):
        op = KVAppend(
            kv_heads=1, head_dim=4, queries=1, dtype=kv_dtype if kv_dtype[0] == "f" else "bf16", kv_dtype=kv_dtype
        )
        allowed.append(tolerance(op, op.tensors()[-1]))
    assert allowed == sorted(allowed)
    assert allowed[-1] < 0.25

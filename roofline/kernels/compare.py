"""Whether a kernel's output is the reference, within what its dtypes can hold."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from roofline.dtypes import DTYPES
from roofline.kernels.base import Operand
from roofline.kernels.reference import exact
from roofline.ops.attention import Attention
from roofline.ops.base import Op, Tensor

_ROUNDING = {
    "fp64": 2.0**-53,
    "fp32": 2.0**-24,
    "tf32": 2.0**-11,
    "bf16": 2.0**-9,
    "fp16": 2.0**-12,
    "fp8": 2.0**-4,
    "fp8-row": 2.0**-4,
    "mxfp8": 2.0**-4,
    "int8": 0.5 / 127,
    "int4-g128": 0.5 / 7,
    "int4-g128-zp": 0.5 / 7,
    "nvfp4": 0.5 / 3,
    "mxfp4": 0.5 / 3,
}
"""Largest error of rounding to a format: relative to the value, for integers and 4 bits to the largest of its block."""

_RESULT = 2
"""Roundings to the format of the result: one, and one more where it is accumulated there."""

_STEPS = 8
"""Roundings of intermediates that may add up in one element."""

_SCORE = 4
"""How much more an error of a score counts after the exponential: a score of normal data is at most about 4."""

_SUMS = 256
"""Roundings of fp32 sums (fp64 for fp64) that may add up: sums of a few thousand terms, in any order."""


def tolerance(op: Op, tensor: Tensor) -> float:
    """Allowed error of an element of an output, relative to its magnitude as ``_magnitude`` has it.

    What is read is exact in the reference too, so only what is computed in and what is written counts.
    """
    stored = {other.dtype for other in op.tensors() if other.role != "index"}
    engines = {engine.dtype for engine in op.arithmetic() if engine.unit == "tensor"}
    sums = _ROUNDING["fp64" if stored | engines == {"fp64"} else "fp32"]
    narrow = [name for name in ("tf32", "fp16", "bf16") if name in stored | engines]
    if (stored | engines) - {"fp64", "fp32", "tf32", "fp16", "bf16"}:
        narrow.append("bf16")  # formats of 8 bits and fewer are computed on through bf16
    steps = max((_ROUNDING[name] for name in narrow), default=0.0)
    if isinstance(op, Attention):
        steps *= _SCORE
    return _RESULT * _ROUNDING[tensor.dtype] + _STEPS * steps + _SUMS * sums


def mismatch(op: Op, expected: Mapping[str, torch.Tensor], actual: Mapping[str, Operand]) -> str | None:
    """What is wrong with the outputs ``actual`` of ``op``, in one line; None where they are the expected ones."""
    for tensor in op.tensors():
        if not tensor.writes:
            continue
        if tensor.name not in actual:
            return f"{tensor.name} is missing"
        wrong = _difference(tensor, expected[tensor.name], actual[tensor.name], tolerance(op, tensor))
        if wrong is not None:
            return f"{tensor.name} {wrong}"
    return None


def _difference(tensor: Tensor, expected: torch.Tensor, operand: Operand, allowed: float) -> str | None:
    if tuple(operand.shape) != tuple(expected.shape):
        return f"has shape {tuple(operand.shape)}, not {tuple(expected.shape)}"
    actual = exact(operand).to(expected.device)
    if bool((actual.isnan() != expected.isnan()).any()):
        return "has NaN where it should have numbers, or numbers where it should be untouched"
    error = ((actual - expected).abs() / _magnitude(tensor, expected)).nan_to_num(0.0)
    worst = int(error.argmax())
    if float(error.flatten()[worst]) <= allowed:
        return None
    where = [int(i) for i in torch.unravel_index(torch.tensor(worst), tuple(error.shape))]
    got, want = float(actual.flatten()[worst]), float(expected.flatten()[worst])
    return f"is {got:.6g} at {where} where the reference is {want:.6g} (allowed relative error {allowed:.2g})"


def _magnitude(tensor: Tensor, expected: torch.Tensor) -> torch.Tensor:
    """What an error is relative to: the largest of the row for block-scaled integers and 4 bits, whose steps are equal
    or nearly so; else the value, and no less than the root mean square of the output, as sums cancel.
    """
    size = expected.abs()
    if DTYPES[tensor.dtype].block_bits and DTYPES[tensor.dtype].torch_name != "float8_e4m3fn":
        return size.nan_to_num(0.0).amax(-1, keepdim=True).expand_as(size)
    return size.clamp(min=float(expected.square().nanmean().sqrt().nan_to_num(0.0)))

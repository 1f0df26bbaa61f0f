"""Whether a kernel's output is the reference, within what its dtypes can hold."""

from __future__ import annotations

from collections.abc import Mapping

import torch

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
    "int8": 2.0**-5,
    "int4-g128": 0.35,
    "int4-g128-zp": 0.35,
    "nvfp4": 0.35,
    "mxfp4": 0.35,
}
"""Largest error of rounding to a format, relative to the larger of the value and the root mean square of normal data
(half a step of the largest value of a block for the integer formats)."""

_RESULT = 2
"""Roundings to the format of the result: one, and one more where it is accumulated there."""

_STEPS = 8
"""Roundings of intermediates that may add up in one element."""

_SCORE = 4
"""How much more an error of a score counts after the exponential: a score of normal data is at most about 4."""

_SUMS = 256
"""Roundings of fp32 sums (fp64 for fp64) that may add up: sums of a few thousand terms, in any order."""


def tolerance(op: Op, tensor: Tensor) -> float:
    """Allowed error of an output, relative to the larger of its value and the root mean square of the output.

    What is read is exact in the reference too, so only what is computed in and what is written counts.
    """
    stored = {other.dtype for other in op.tensors() if other.role != "index"}
    engines = {engine.dtype for engine in op.arithmetic() if engine.unit == "tensor"}
    sums = _ROUNDING["fp64" if stored == {"fp64"} else "fp32"]
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
        wrong = _difference(expected[tensor.name], actual[tensor.name], tolerance(op, tensor))
        if wrong is not None:
            return f"{tensor.name} {wrong}"
    return None


def _difference(expected: torch.Tensor, operand: Operand, allowed: float) -> str | None:
    if tuple(operand.shape) != tuple(expected.shape):
        return f"has shape {tuple(operand.shape)}, not {tuple(expected.shape)}"
    actual = exact(operand).to(expected.device)
    unset = expected.isnan()
    if bool((actual.isnan() != unset).any()):
        return "has NaN where it should have numbers, or numbers where it should be untouched"
    scale = expected[~unset].square().mean().sqrt() if bool((~unset).any()) else torch.zeros((), dtype=torch.float64)
    error = ((actual - expected).abs() / expected.abs().clamp(min=scale.item())).nan_to_num(0.0)
    worst = int(error.argmax())
    if float(error.flatten()[worst]) <= allowed:
        return None
    where = [int(i) for i in torch.unravel_index(torch.tensor(worst), tuple(error.shape))]
    got, want = float(actual.flatten()[worst]), float(expected.flatten()[worst])
    return f"is {got:.6g} at {where} where the reference is {want:.6g} (allowed relative error {allowed:.2g})"

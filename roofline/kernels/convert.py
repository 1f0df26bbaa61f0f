"""The surrogate of last resort: convert the operands to a dtype that torch computes in, run, convert back."""

from __future__ import annotations

from typing import Any

import torch

from roofline.engines import Engine
from roofline.kernels import packed
from roofline.kernels.base import FLOATS, Call, Kernel, NotRunnable, Operand, Operands, Outputs
from roofline.kernels.packed import Packed
from roofline.ops.base import Op, Tensor, op_fields

_E4M3_MAX = 448.0


def converted(kind: str, *bases: Kernel) -> Kernel:
    """A kernel for any storage dtype: converts, runs the first of ``bases`` that can, and converts the result."""

    def bind(op: Op, operands: Operands) -> Call:
        wide, base = _choose(op, operands, bases)

        def call() -> Outputs:
            plain = _converted(op, wide, operands)
            return _stored(op, operands, plain, base.run(wide, plain))

        return call

    def refuses(op: Op, device: torch.device) -> str | None:
        reasons = [base.refuses(_widened(op), device) for base in bases]
        return None if None in reasons else reasons[0]

    return Kernel(
        "converted",
        kind,
        bind,
        f"converts to a dtype that torch computes in, then {' or '.join(base.name for base in bases)}",
        refuses,
        surrogate="operands are converted through copies in memory, which the byte model does not charge for",
        fresh=any(base.fresh for base in bases),
    )


def _choose(op: Op, operands: Operands, bases: tuple[Kernel, ...]) -> tuple[Op, Kernel]:
    wide = _widened(op)
    plain = _converted(op, wide, operands)
    device = next(iter(operands.values())).device
    reason = "there is nothing to run after converting"
    for base in bases:
        refusal = base.refuses(wide, device)
        if refusal is None:
            try:
                base.bind(wide, plain)
            except NotRunnable as error:
                refusal = str(error)
            else:
                return wide, base
        reason = refusal
    raise NotRunnable(reason)


def _target(op: Op) -> str:
    """What to convert to: what the engine computes in, else the op's dtype; bf16 for what torch cannot compute in."""
    engine = getattr(op, "engine", None)
    name = engine.dtype if isinstance(engine, Engine) else str(getattr(op, "dtype", "bf16"))
    if name == "tf32":
        return "fp32"
    return name if name in FLOATS else "bf16"


def _widened(op: Op) -> Op:
    """The same op with everything stored in the target dtype; one that appends, with a cache of new positions only."""
    target = _target(op)
    changes: dict[str, Any] = {"cached": 0} if any(_is_append(tensor) for tensor in op.tensors()) else {}
    for name, info in op_fields(type(op)).items():
        if info.kind == "storage":
            changes[name] = target
        elif info.kind == "compute":
            changes[name] = "tf32" if getattr(op, name) == "tf32" else target
    return op.with_(**changes)


def _is_append(tensor: Tensor) -> bool:
    return tensor.access == "write" and tensor.touched is not None


def written_part(tensor: Tensor, operand: Operand) -> Operand:
    """A view of what an op writes: of a cache that it appends to, the last positions."""
    if not _is_append(tensor) or tensor.touched is None:
        return operand
    count = int(tensor.touched[-2])
    if isinstance(operand, Packed):
        return operand.last_positions(count)
    return operand[..., operand.shape[-2] - count :, :]


def _converted(op: Op, wide: Op, operands: Operands) -> dict[str, Operand]:
    """The operands of ``wide``; those that are stored as it wants them are handed on."""
    pairs = zip(op.tensors(), wide.tensors(), strict=True)
    return {
        tensor.name: written_part(tensor, operands[tensor.name])
        if tensor.dtype == widened.dtype
        else _convert(tensor, operands[tensor.name], FLOATS[widened.dtype])
        for tensor, widened in pairs
    }


def _convert(tensor: Tensor, operand: Operand, dtype: torch.dtype) -> Operand:
    if tensor.access == "write":
        shape = tuple(written_part(tensor, operand).shape)
        return torch.empty(shape, dtype=dtype, device=operand.device)
    return operand.dequantize(dtype) if isinstance(operand, Packed) else operand.to(dtype)


def _stored(op: Op, operands: Operands, plain: Operands, outputs: Outputs) -> Outputs:
    """Convert what was computed into the declared outputs; what is already of their dtype is handed on."""
    fresh = dict(outputs or {})
    for tensor in op.tensors():
        target, held = written_part(tensor, operands[tensor.name]), plain[tensor.name]
        if not tensor.writes or held.dtype == target.dtype:
            continue
        store(target, fresh.pop(tensor.name, held))
    return fresh or None


def store(operand: Operand, value: Any) -> None:
    """Write a plain tensor into an operand of any format."""
    if isinstance(operand, Packed):
        operand.copy_(packed.quantize(value, operand.dtype))
    elif operand.dtype == torch.float8_e4m3fn:
        operand.copy_(value.clamp(-_E4M3_MAX, _E4M3_MAX))
    else:
        operand.copy_(value)

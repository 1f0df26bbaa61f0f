"""What a kernel is: a named way to run one kind of operation in torch, and the small words that kernels share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from roofline.dtypes import DTYPES
from roofline.kernels.packed import Packed
from roofline.ops.base import Op

Operand: TypeAlias = "torch.Tensor | Packed"
Operands: TypeAlias = Mapping[str, Operand]
"""The op's tensors by name: a torch tensor, or ``Packed`` where the format has scales."""

Outputs: TypeAlias = "Mapping[str, torch.Tensor] | None"
"""Outputs that a call allocated itself, by name; every other output is in the operands."""

Call: TypeAlias = Callable[[], Outputs]

FLOATS: dict[str, torch.dtype] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
"""Storage dtypes that torch computes in."""

EPSILON = 1e-6
"""What every norm adds to the mean square or the variance."""


class NotRunnable(Exception):
    """A kernel cannot run this op here; the message is the reason, for people."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One way to run a kind of op.

    ``bind(op, operands)`` does once what is not part of the operation (views, masks, scale vectors, a packed layout)
    and returns the call that is timed. That call writes into the preallocated outputs; with ``fresh`` it returns the
    outputs that torch can only allocate, by name (on a CPU their pages fault unless the allocator keeps its blocks).
    ``refuses(op, device)`` says why it does not cover an op, or None; whether this build of torch has the routine is
    not said there but tried (``registry.availability``).
    ``surrogate``: why its time is not the time of the declared op (None: it is): it moves bytes or does arithmetic
    that the declaration does not charge for.
    ``compiled``: the first call compiles, which takes seconds.
    """

    name: str
    kind: str
    bind: Callable[[Any, Operands], Call]
    about: str
    refuses: Callable[[Any, torch.device], str | None]
    surrogate: str | None = None
    fresh: bool = False
    compiled: bool = False

    def run(self, op: Op, operands: Operands) -> Outputs:
        """Bind and call once."""
        return self.bind(op, operands)()


def tensor_of(operand: Operand) -> torch.Tensor:
    """The operand as a plain tensor; raises ``NotRunnable`` for a format with scales."""
    if isinstance(operand, Packed):
        raise NotRunnable(f"takes no {operand.dtype} operand")
    return operand


def packed_of(operand: Operand) -> Packed:
    """The operand as ``Packed``; raises ``NotRunnable`` for a plain tensor."""
    if not isinstance(operand, Packed):
        raise NotRunnable(f"takes no plain {operand.dtype} operand")
    return operand


def float_dtypes(op: Op) -> tuple[str, ...]:
    """The distinct storage dtypes of the op's operands, index tensors left out."""
    return tuple(dict.fromkeys(tensor.dtype for tensor in op.tensors() if tensor.role != "index"))


def one_float(op: Op, device: torch.device) -> str | None:
    """Refuse unless all operands are of one dtype that torch computes in."""
    names = float_dtypes(op)
    if len(names) > 1:
        return f"needs one dtype for all its tensors, not {' and '.join(names)}"
    return all_float(op, device)


def all_float(op: Op, device: torch.device) -> str | None:
    """Refuse unless every operand is of a dtype that torch computes in."""
    for name in float_dtypes(op):
        if name not in FLOATS:
            return f"torch has no arithmetic on {name} here"
    return None


def unscaled(op: Op, device: torch.device) -> str | None:
    """Refuse formats with scales: only a copy that converts is needed."""
    for name in float_dtypes(op):
        if DTYPES[name].block_bits or DTYPES[name].torch_name is None:
            return f"{name} needs scales, which a plain copy does not make"
    return None

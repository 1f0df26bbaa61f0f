"""The kernels of each kind of op: which there are, which run here, and one made ready to be timed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from roofline.errors import RooflineError, nearest
from roofline.kernels import attention, elementwise, kv_cache, linear, norm
from roofline.kernels.base import Call, Kernel, NotRunnable, Operands, Outputs
from roofline.kernels.compare import mismatch
from roofline.kernels.inputs import make_inputs, storage_bytes
from roofline.kernels.reference import reference
from roofline.ops.base import Op, sizes_of

_KERNELS: tuple[Kernel, ...] = (
    *linear.KERNELS,
    *elementwise.KERNELS,
    *norm.KERNELS,
    *kv_cache.KERNELS,
    *attention.KERNELS,
)

_KEPT_SIZES = ("heads", "kv_heads", "head_dim", "head_dim_v", "images")
_ALIGNMENT = 128
"""Nothing that torch requires of a size is coarser: a group of int4 weights is 128."""


def kernels_for(kind: str) -> tuple[Kernel, ...]:
    """The kernels of a kind of op (``linear``), best first: genuine ones, then surrogates."""
    return tuple(kernel for kernel in _KERNELS if kernel.kind == kind)


def availability(kernel: Kernel, op: Op, device: torch.device | str) -> str | None:
    """Why ``kernel`` does not run ``op`` on ``device``, or None where it does.

    What the kernel covers is asked; whether this build of torch has the routine on this device, and computes the right
    thing with it, is tried on the same op with smaller sizes (alignments kept) and remembered.
    """
    device = torch.device(device)
    if device.type == "cuda" and not torch.cuda.is_available():
        return "this build of torch finds no CUDA or ROCm device"
    return kernel.refuses(op, device) or _tried(kernel, shrunk(op), device)


def choose(op: Op, device: torch.device | str, name: str | None = None, *, compile: bool = True) -> Kernel:
    """The best kernel that runs ``op`` on ``device``, or the one called ``name``.

    ``compile=False`` passes over kernels whose first call compiles for seconds. Raises ``RooflineError``: code
    ``unknown-kernel`` for a name that the kind of op does not have, ``no-kernel`` where none runs, with the reasons.
    """
    kernels = kernels_for(op.kind)
    if name is not None:
        kernels = tuple(kernel for kernel in kernels if kernel.name == name)
        if not kernels:
            known = [kernel.name for kernel in kernels_for(op.kind)]
            raise RooflineError(
                f"{op.kind} has no kernel {name!r}: one of {', '.join(known)}",
                code="unknown-kernel",
                suggestions=nearest(name, known),
            )
    reasons = []
    for kernel in kernels:
        if kernel.compiled and not compile and name is None:
            reasons.append(f"{kernel.name}: compiling is switched off")
            continue
        reason = availability(kernel, op, device)
        if reason is None:
            return kernel
        reasons.append(f"{kernel.name}: {reason}")
    raise RooflineError(f"no kernel runs {op.kind} on {device}: {'; '.join(reasons) or 'none'}", code="no-kernel")


@dataclass(frozen=True, slots=True)
class Prepared:
    """One op with its operands, ready to be called again and again.

    ``call`` is what is timed. Several of them with different seeds are the copies that a timer rotates over.
    """

    op: Op
    kernel: Kernel
    operands: Operands
    call: Call

    @property
    def bytes(self) -> int:
        """Bytes of all operands together, outputs included."""
        return storage_bytes(self.operands.values())

    def outputs(self) -> dict[str, Any]:
        """Call once and return every output by name in its declared shape (``Packed`` where the format has scales).

        An output that is updated in place (a residual stream) is right only the first time: it accumulates.
        """
        return named_outputs(self.op, self.operands, self.call())


def prepare(
    op: Op,
    device: torch.device | str,
    *,
    kernel: Kernel | str | None = None,
    seed: int = 0,
    generator: torch.Generator | None = None,
    given: Operands | None = None,
) -> Prepared:
    """Make the operands of ``op`` and bind a kernel to them: the best one, or ``kernel`` (itself or its name).

    Operands that are ``given`` by name are shared, not made.

    Raises ``RooflineError`` with code ``no-kernel`` where it does not run.
    """
    if not isinstance(kernel, Kernel):
        kernel = choose(op, device, kernel)
    operands = make_inputs(op, device, seed=seed, generator=generator, given=given)
    try:
        call = kernel.bind(op, operands)
    except NotRunnable as error:
        raise RooflineError(f"{kernel.name} does not run {op.kind} on {device}: {error}", code="no-kernel") from error
    return Prepared(op, kernel, operands, call)


def named_outputs(op: Op, operands: Operands, returned: Outputs) -> dict[str, Any]:
    """Every output of a call: what it returned, else the operand it wrote into; in the declared shape."""
    fresh = returned or {}
    outputs: dict[str, Any] = {}
    for tensor in op.tensors():
        if tensor.writes:
            value = fresh.get(tensor.name)
            outputs[tensor.name] = operands[tensor.name] if value is None else value.reshape(tensor.shape)
    return outputs


def shrunk(op: Op) -> Op:
    """The same op with smaller sizes, equal modulo 128 so that alignments hold; ``op`` itself where that is no op."""
    sizes = {name: _shrink(value) for name, value in sizes_of(op).items() if name not in _KEPT_SIZES}
    if "batch" in sizes:
        sizes["batch"] = min(sizes["batch"], 2)
    small = op.with_(**sizes)
    try:
        small.check()
    except RooflineError:
        return op
    return small


def _shrink(size: int) -> int:
    return size if size <= 2 * _ALIGNMENT else _ALIGNMENT + size % _ALIGNMENT


@lru_cache(maxsize=4096)
def _tried(kernel: Kernel, op: Op, device: torch.device) -> str | None:
    """Run a small op and judge its output: why it failed, or None. Compiled kernels, seconds each, are trusted."""
    if kernel.compiled:
        return None
    operands = make_inputs(op, device)
    expected = reference(op, operands)
    try:
        returned = kernel.run(op, operands)
    except (NotRunnable, RooflineError) as error:
        return str(error)
    except Exception as error:  # torch's refusals have no common type, and a user's kernel may raise anything
        return f"raises {type(error).__name__}: {_first_line(error)}"
    wrong = mismatch(op, expected, named_outputs(op, operands, returned))
    return wrong and f"computes something else on this device: {wrong}"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].partition(". ")[0] if lines else "without a message"

"""Ops that torch runs as several kernels, fused into one by torch.compile.

``compiled_kernel`` turns a factory into a kernel: ``factory(op)`` returns a function of the op's tensors in the order
of ``op.tensors()`` (of an output that is written in part, the part) that writes the outputs it is given, and returns
by name those that it allocates. Arithmetic is in fp32 (fp64 for fp64), as in the fused kernels of serving engines.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import torch
from torch.nn.functional import gelu, silu

from roofline.kernels.base import EPSILON, FLOATS, Call, Kernel, Operands, float_dtypes, tensor_of
from roofline.kernels.convert import written_part
from roofline.ops.base import Op
from roofline.ops.elementwise import GatedActivation, ScaleShift
from roofline.ops.kv_cache import RotaryEmbedding
from roofline.ops.norm import LayerNorm, RMSNorm

Factory = Callable[[Any], Callable[..., Any]]

_serial = itertools.count()

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relu": torch.relu,
    "silu": silu,
    "gelu": gelu,
    "gelu-tanh": lambda x: gelu(x, approximate="tanh"),
}


def compiled_kernel(kind: str, factory: Factory, covers: Callable[[Any], str | None] = lambda op: None) -> Kernel:
    """The kernel ``compiled`` of a kind; ``covers`` gives the reason for ops that ``factory`` has no function for."""

    def bind(op: Op, operands: Operands) -> Call:
        function = _compile(factory, op)
        arguments = [tensor_of(written_part(tensor, operands[tensor.name])) for tensor in op.tensors()]
        return lambda: function(*arguments)

    def refuses(op: Op, device: torch.device) -> str | None:
        for name in float_dtypes(op):
            if name not in FLOATS:
                return f"torch has no arithmetic on {name}"
        return covers(op) or compiler_missing(device.type)

    about = "one kernel made by torch.compile (C++ on a CPU, Triton on a GPU)"
    return Kernel("compiled", kind, bind, about, refuses, fresh=True, compiled=True)


@cache
def compiler_missing(device_type: str) -> str | None:
    """Why torch.compile does not work for a kind of device, or None: found by compiling one line (seconds, once)."""
    x = torch.ones(8, device=device_type)
    try:
        torch.compile(lambda a: a.mul_(2), fullgraph=True, dynamic=False)(x)
    except Exception as error:  # whatever a toolchain can do wrong
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        return f"torch.compile does not work here: {first}"
    return None if bool((x == 2).all()) else "torch.compile computes wrong results here"


@cache
def _compile(factory: Factory, op: Op) -> Callable[..., Any]:
    """One compiled function an op, shared by all copies of its operands.

    Its code object is its own: torch counts recompilations by code object, and gives up after eight.
    """
    function = factory(op)
    assert isinstance(function, FunctionType)
    code = function.__code__.replace(co_name=f"{function.__name__}_{next(_serial)}")
    own = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    compiled: Callable[..., Any] = torch.compile(own, fullgraph=True, dynamic=False)
    return compiled


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype == torch.float64 else x.float()


def rms_norm(op: RMSNorm) -> Callable[..., Any]:
    """RMSNorm; the sum with the residual comes back fresh, as Inductor fails to write it in place here."""

    def normal(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * _wide(weight)

    def plain(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor) -> None:
        y.copy_(normal(_wide(x), weight))

    def added(
        x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, y: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        total = _wide(x) + _wide(residual)
        y.copy_(normal(total, weight))
        return {"residual": total.to(residual.dtype)}

    return added if op.residual else plain


def added_layer_norm(op: LayerNorm) -> Callable[..., Any]:
    """LayerNorm of the sum with the residual."""

    def added(x: torch.Tensor, residual: torch.Tensor, *rest: torch.Tensor) -> dict[str, torch.Tensor]:
        total = _wide(x) + _wide(residual)
        normal = _normalised(total)
        if len(rest) > 1:
            normal = normal * _wide(rest[0]) + _wide(rest[1])
        rest[-1].copy_(normal)
        return {"residual": total.to(residual.dtype)}

    return added


def _normalised(x: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + EPSILON)


def modulated_norm(op: ScaleShift) -> Callable[..., Any]:
    """LayerNorm and adaLN modulation."""

    def modulated(x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor, y: torch.Tensor) -> None:
        rows = _wide(x).unflatten(0, (op.images, -1))
        normal = _normalised(rows)
        y.unflatten(0, (op.images, -1)).copy_(normal * (1 + _wide(scale)[:, None]) + _wide(shift)[:, None])

    return modulated


def gated_activation(op: GatedActivation) -> Callable[..., Any]:
    """The activation of the gate times up."""
    function = _FUNCTIONS[op.function]

    def gated(gate_up: torch.Tensor, y: torch.Tensor) -> None:
        gate, up = _wide(gate_up).chunk(2, -1)
        y.copy_(function(gate) * up)

    return gated


def rotary_embedding(op: RotaryEmbedding) -> Callable[..., Any]:
    """Both rotations and, when appending, the copy of v, in the parts of the caches that are new."""
    half = op.head_dim // 2

    def turned(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        # (.., 2, half): swapping the halves by flip keeps the loads contiguous, where cat would mask every element
        halves = _wide(x).unflatten(-1, (2, half))
        cos, sin = table.view(op.batch, 1, op.queries, 2, half).unbind(-2)
        signs = torch.tensor((-1.0, 1.0), device=x.device)[:, None]
        return (halves * cos.unsqueeze(-2) + halves.flip(-2) * (sin.unsqueeze(-2) * signs)).flatten(-2)

    def append(cache: torch.Tensor, new: torch.Tensor) -> None:
        # an indexed store goes straight into a strided cache; a copy would go through a buffer
        cache.index_copy_(2, torch.arange(op.queries, device=new.device), new.to(cache.dtype))

    def rotated(q: torch.Tensor, k: torch.Tensor, *rest: torch.Tensor) -> None:
        if op.append:
            v, table, q_out, k_new, v_new = rest
            append(k_new, turned(k, table))
            append(v_new, v)
        else:
            table, q_out, k_out = rest
            k_out.copy_(turned(k, table))
        q_out.copy_(turned(q, table))

    return rotated

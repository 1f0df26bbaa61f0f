"""Activations, gated activations, products, residual adds and adaLN modulation in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import layer_norm

from roofline.kernels import fused
from roofline.kernels.base import EPSILON, Call, Kernel, Operands, one_float, tensor_of
from roofline.kernels.convert import converted
from roofline.ops.elementwise import Activation, GatedActivation, Multiply, Residual, ScaleShift

ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "relu": lambda x, out: torch.clamp_min(x, 0, out=out),
    "silu": lambda x, out: torch.ops.aten.silu.out(x, out=out),
    "gelu": lambda x, out: torch.ops.aten.gelu.out(x, out=out),
    "gelu-tanh": lambda x, out: torch.ops.aten.gelu.out(x, approximate="tanh", out=out),
}
"""Each function of ``Activation``, writing into ``out``."""


def _bind_activation(op: Activation, operands: Operands) -> Call:
    x, y, function = tensor_of(operands["x"]), tensor_of(operands["y"]), ACTIVATIONS[op.function]

    def call() -> None:
        function(x, y)

    return call


def _bind_gated(op: GatedActivation, operands: Operands) -> Call:
    gate, up = tensor_of(operands["gate_up"]).chunk(2, -1)
    y, function = tensor_of(operands["y"]), ACTIVATIONS[op.function]

    def call() -> None:
        function(gate, y)
        y.mul_(up)

    return call


def _bind_multiply(op: Multiply, operands: Operands) -> Call:
    a, b, y = (tensor_of(operands[name]) for name in ("a", "b", "y"))

    def call() -> None:
        torch.mul(a, b, out=y)

    return call


def _by_image(rows: torch.Tensor, images: int) -> torch.Tensor:
    """(tokens, width) as (images, tokens of one, width)."""
    return rows.view(images, -1, rows.shape[-1])


def _bind_residual(op: Residual, operands: Operands) -> Call:
    x, residual, y = (tensor_of(operands[name]) for name in ("x", "residual", "y"))
    if not op.gate:

        def add() -> None:
            torch.add(residual, x, out=y)

        return add
    gate = tensor_of(operands["gate"]).unsqueeze(1)
    x, residual, y = (_by_image(rows, op.images) for rows in (x, residual, y))

    def add_gated() -> None:
        torch.addcmul(residual, x, gate, out=y)

    return add_gated


def _bind_modulated_norm(op: ScaleShift, operands: Operands) -> Call:
    """With one image the modulation is LayerNorm's own weight and bias."""
    x, scale, shift = (tensor_of(operands[name]) for name in ("x", "scale", "shift"))

    def call() -> dict[str, torch.Tensor]:
        return {"y": layer_norm(x, x.shape[-1:], scale[0] + 1, shift[0], EPSILON)}

    return call


def _bind_modulation(op: ScaleShift, operands: Operands) -> Call:
    x, y = tensor_of(operands["x"]), _by_image(tensor_of(operands["y"]), op.images)
    scale, shift = (tensor_of(operands[name]).unsqueeze(1) for name in ("scale", "shift"))

    def call() -> None:
        normal = layer_norm(x, x.shape[-1:], eps=EPSILON) if op.norm else x
        torch.addcmul(shift, _by_image(normal, op.images), scale + 1, out=y)

    return call


def _refuse_modulated_norm(op: ScaleShift, device: torch.device) -> str | None:
    if not op.norm:
        return "is for a fused LayerNorm"
    return "takes one image" if op.images != 1 else one_float(op, device)


def _refuse_norm(op: ScaleShift, device: torch.device) -> str | None:
    return "has no LayerNorm" if op.norm else one_float(op, device)


_ROUND_TRIP = "runs as separate kernels: the intermediate goes through memory once more"

_GATED_EAGER = Kernel(
    "unfused",
    "gated-activation",
    _bind_gated,
    "the activation with out=, then an in-place product: 5 passes instead of 3",
    one_float,
    surrogate=_ROUND_TRIP,
)
_NORM_EAGER = Kernel(
    "unfused",
    "scale-shift",
    _bind_modulation,
    "torch.nn.functional.layer_norm, then torch.addcmul with out=",
    one_float,
    surrogate=_ROUND_TRIP,
)
_ACTIVATION = Kernel("out", "activation", _bind_activation, "the torch function with out=", one_float)
_MULTIPLY = Kernel("mul", "multiply", _bind_multiply, "torch.mul with out=", one_float)
_RESIDUAL = Kernel("add", "residual", _bind_residual, "torch.add or torch.addcmul with out=", one_float)
_ADDCMUL = Kernel(
    "addcmul", "scale-shift", _bind_modulation, "torch.addcmul with out=, after 1 + scale of each image", _refuse_norm
)

KERNELS = (
    _ACTIVATION,
    converted("activation", _ACTIVATION),
    fused.compiled_kernel("gated-activation", fused.gated_activation),
    _GATED_EAGER,
    converted("gated-activation", _GATED_EAGER),
    _MULTIPLY,
    converted("multiply", _MULTIPLY),
    _RESIDUAL,
    converted("residual", _RESIDUAL),
    _ADDCMUL,
    Kernel(
        "layer-norm",
        "scale-shift",
        _bind_modulated_norm,
        "torch.nn.functional.layer_norm with the modulation as its weight and bias",
        _refuse_modulated_norm,
        fresh=True,
    ),
    fused.compiled_kernel(
        "scale-shift", fused.modulated_norm, lambda op: None if op.norm else "has nothing to fuse without a LayerNorm"
    ),
    _NORM_EAGER,
    converted("scale-shift", _NORM_EAGER),
)

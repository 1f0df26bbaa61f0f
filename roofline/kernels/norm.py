"""RMSNorm, LayerNorm (also after a residual add) and softmax in torch."""

from __future__ import annotations

import torch
from torch.nn.functional import layer_norm
from torch.nn.functional import rms_norm as torch_rms_norm

from roofline.kernels import fused
from roofline.kernels.base import EPSILON, Call, Kernel, Operands, Outputs, one_float, tensor_of
from roofline.kernels.convert import converted
from roofline.ops.norm import LayerNorm, RMSNorm, Softmax

_ADD_THEN_NORM = "adds the residual in a kernel of its own: 5 passes instead of 4"
_COMPOSITE = "torch composes RMSNorm of elementwise kernels here: many passes instead of 2"


def _bind_rms_norm(op: RMSNorm, operands: Operands) -> Call:
    x, weight, residual = _norm_operands(op, operands)

    def call() -> Outputs:
        rows = x if residual is None else residual.add_(x)
        return {"y": torch_rms_norm(rows, rows.shape[-1:], weight, EPSILON)}

    return call


def _bind_layer_norm(op: LayerNorm, operands: Operands) -> Call:
    x, weight, residual = _norm_operands(op, operands)
    bias = tensor_of(operands["bias"]) if op.affine else None

    def call() -> Outputs:
        rows = x if residual is None else residual.add_(x)
        return {"y": layer_norm(rows, rows.shape[-1:], weight, bias, EPSILON)}

    return call


def _norm_operands(
    op: RMSNorm | LayerNorm, operands: Operands
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    weight = tensor_of(operands["weight"]) if "weight" in operands else None
    residual = tensor_of(operands["residual"]) if op.residual else None
    return tensor_of(operands["x"]), weight, residual


def _bind_softmax(op: Softmax, operands: Operands) -> Call:
    x, y = tensor_of(operands["x"]), tensor_of(operands["y"])

    def call() -> None:
        torch.softmax(x, -1, out=y)

    return call


def _refuse_unless_fused(op: RMSNorm, device: torch.device) -> str | None:
    """torch has one kernel for RMSNorm on CUDA from 2.8, and only a composite elsewhere."""
    if device.type != "cuda" or not hasattr(torch.ops.aten, "_fused_rms_norm"):
        return f"torch has no fused RMSNorm on {device.type}"
    return "adds no residual" if op.residual else one_float(op, device)


def _refuse_residual(op: LayerNorm, device: torch.device) -> str | None:
    return "adds no residual" if op.residual else one_float(op, device)


def _refuse_plain(op: LayerNorm) -> str | None:
    return None if op.residual else "has nothing to fuse without a residual"


_RMS_EAGER = Kernel(
    "unfused",
    "rms-norm",
    _bind_rms_norm,
    "the residual add in place, then torch.nn.functional.rms_norm",
    one_float,
    surrogate=_COMPOSITE,
    fresh=True,
)
_LAYER_EAGER = Kernel(
    "unfused",
    "layer-norm",
    _bind_layer_norm,
    "the residual add in place, then torch.nn.functional.layer_norm",
    one_float,
    surrogate=_ADD_THEN_NORM,
    fresh=True,
)
_SOFTMAX = Kernel("softmax", "softmax", _bind_softmax, "torch.softmax with out=", one_float)

KERNELS = (
    Kernel("rms-norm", "rms-norm", _bind_rms_norm, "torch.nn.functional.rms_norm", _refuse_unless_fused, fresh=True),
    fused.compiled_kernel("rms-norm", fused.rms_norm),
    _RMS_EAGER,
    converted("rms-norm", _RMS_EAGER),
    Kernel(
        "layer-norm", "layer-norm", _bind_layer_norm, "torch.nn.functional.layer_norm", _refuse_residual, fresh=True
    ),
    fused.compiled_kernel("layer-norm", fused.added_layer_norm, _refuse_plain),
    _LAYER_EAGER,
    converted("layer-norm", _LAYER_EAGER),
    _SOFTMAX,
    converted("softmax", _SOFTMAX),
)

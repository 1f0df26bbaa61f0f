"""Linear layers, the LM head and the embedding lookup in torch."""

from __future__ import annotations

from functools import partial

import torch

from roofline.dtypes import DTYPES
from roofline.kernels import int4
from roofline.kernels.base import FLOATS, Call, Kernel, Operands, all_float, packed_of, tensor_of
from roofline.kernels.convert import converted, store
from roofline.kernels.packed import Packed
from roofline.kernels.precision import scoped
from roofline.ops.linear import Embedding, Linear, LMHead

Product = Linear | LMHead


def _out_name(op: Product) -> str:
    return "logits" if isinstance(op, LMHead) else "y"


def _bias(operands: Operands) -> torch.Tensor | None:
    return tensor_of(operands["bias"]) if "bias" in operands else None


# mm ------------------------------------------------------------------------------------------------------------------


def _bind_mm(op: Product, operands: Operands) -> Call:
    x, weight, out = (tensor_of(operands[name]) for name in ("x", "weight", _out_name(op)))
    transposed, bias = weight.t(), _bias(operands)

    def call() -> None:
        if bias is None:
            torch.mm(x, transposed, out=out)
        else:
            torch.addmm(bias, x, transposed, out=out)

    return scoped(call, op.engine.dtype)


def _refuse_mm(op: Product, device: torch.device) -> str | None:
    reason = all_float(op, device) or _refuse_engine(op, device)
    if reason is None and op.out_dtype != op.dtype:
        return f"torch.mm with out= writes the dtype of x ({op.dtype}), not {op.out_dtype}"
    return reason


def _refuse_engine(op: Product, device: torch.device) -> str | None:
    """Refuse unless x and weight are stored in what the engine computes in (tf32: fp32 storage, not on a CPU)."""
    wanted = "fp32" if op.engine.dtype == "tf32" else op.engine.dtype
    if op.engine.dtype == "tf32" and device.type == "cpu":
        return "a CPU does not compute in tf32"
    for name in (op.dtype, op.weight_dtype):
        if name != wanted:
            return f"computes in {op.engine.dtype}, but {name} is stored"
    return None


def _bind_mm_wider(op: Product, operands: Operands) -> Call:
    x, transposed, name = tensor_of(operands["x"]), tensor_of(operands["weight"]).t(), _out_name(op)
    wider = FLOATS[op.out_dtype]

    def call() -> dict[str, torch.Tensor]:
        return {name: torch.mm(x, transposed, out_dtype=wider)}

    return scoped(call, op.engine.dtype)


def _refuse_mm_wider(op: Product, device: torch.device) -> str | None:
    if getattr(op, "bias", False):
        return "adds no bias"
    if op.out_dtype == op.dtype:
        return "is for a result wider than x"
    return all_float(op, device) or _refuse_engine(op, device)


# 8 bits --------------------------------------------------------------------------------------------------------------


def _fp8_operand(operand: torch.Tensor | Packed, column: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Payload and scale as ``_scaled_mm`` takes them: one for the tensor, or one a row of x, a column of weight.T."""
    if not isinstance(operand, Packed):
        return operand, torch.ones((), device=operand.device)
    return operand.payload, operand.scales.t() if column else operand.scales


def _bind_scaled_mm(op: Product, operands: Operands) -> Call:
    x, scale_x = _fp8_operand(operands["x"], column=False)
    weight, scale_w = _fp8_operand(operands["weight"], column=True)
    transposed, out, bias = weight.t(), tensor_of(operands[_out_name(op)]), _bias(operands)

    def call() -> None:
        torch._scaled_mm(
            x,
            transposed,
            scale_a=scale_x,
            scale_b=scale_w,
            bias=bias,
            out_dtype=out.dtype,
            use_fast_accum=False,
            out=out,
        )

    return call


def _refuse_scaled_mm(op: Product, device: torch.device) -> str | None:
    if op.engine.dtype != "fp8":
        return "computes in fp8"
    if op.dtype != op.weight_dtype or op.dtype not in ("fp8", "fp8-row"):
        return f"needs x and weight both in fp8 or both in fp8-row, not {op.dtype} and {op.weight_dtype}"
    return None if op.out_dtype in FLOATS else f"writes no {op.out_dtype}"


def _bind_int_mm(op: Product, operands: Operands) -> Call:
    x, weight = packed_of(operands["x"]), packed_of(operands["weight"])
    transposed, out, bias = weight.payload.t(), tensor_of(operands[_out_name(op)]), _bias(operands)
    scale_x, scale_w = x.scales.float(), weight.scales.float().t()

    def call() -> None:
        sums = torch._int_mm(x.payload, transposed)
        torch.mul(sums * scale_x, scale_w, out=out)
        if bias is not None:
            out.add_(bias)

    return call


def _refuse_int_mm(op: Product, device: torch.device) -> str | None:
    if (op.dtype, op.weight_dtype, op.engine.dtype) != ("int8", "int8", "int8"):
        return "needs x and weight in int8"
    return None if op.out_dtype in FLOATS else f"writes no {op.out_dtype}"


# weight only ---------------------------------------------------------------------------------------------------------


def _bind_weight_int8(op: Product, operands: Operands) -> Call:
    x, weight, name, bias = tensor_of(operands["x"]), packed_of(operands["weight"]), _out_name(op), _bias(operands)
    scales = weight.scales.flatten().to(x.dtype)

    def call() -> dict[str, torch.Tensor]:
        y = torch._weight_int8pack_mm(x, weight.payload, scales)
        return {name: y if bias is None else y.add_(bias)}

    return call


def _bind_weight_int4(op: Product, operands: Operands) -> Call:
    x, name, bias = tensor_of(operands["x"]), _out_name(op), _bias(operands)
    multiply = int4.bind(x, packed_of(operands["weight"]))

    def call() -> dict[str, torch.Tensor]:
        y = multiply()
        return {name: y if bias is None else y.add_(bias)}

    return call


def _refuse_weight_only(op: Product, device: torch.device, *, formats: tuple[str, ...]) -> str | None:
    if op.weight_dtype not in formats:
        return f"is for weights in {' or '.join(formats)}"
    if op.dtype not in FLOATS or op.out_dtype != op.dtype:
        return f"needs x and the result in one float dtype, not {op.dtype} and {op.out_dtype}"
    if op.engine.dtype != op.dtype:
        return f"computes in the dtype of x ({op.dtype}), not in {op.engine.dtype}"
    if op.weight_dtype != "int8":
        inner = op.in_features if isinstance(op, Linear) else op.hidden_size
        if inner % DTYPES[op.weight_dtype].block:
            return "needs rows of whole blocks of 128"
    return None


# embedding -----------------------------------------------------------------------------------------------------------


def _bind_index_select(op: Embedding, operands: Operands) -> Call:
    ids, table, out = (tensor_of(operands[name]) for name in ("ids", "weight", "y"))

    def call() -> None:
        torch.index_select(table, 0, ids, out=out)

    return call


def _refuse_index_select(op: Embedding, device: torch.device) -> str | None:
    if op.dtype not in FLOATS:
        return f"copies rows and does not convert them ({op.dtype})"
    return None


def _bind_gather_rows(op: Embedding, operands: Operands) -> Call:
    ids, table, out = tensor_of(operands["ids"]), operands["weight"], operands["y"]

    def call() -> None:
        if isinstance(table, Packed):
            store(out, table.map(out.shape, lambda part: part[ids]).dequantize())
        else:
            store(out, table[ids])

    return call


def _product_kernels(kind: str) -> tuple[Kernel, ...]:
    int8 = partial(_refuse_weight_only, formats=("int8",))
    narrow = partial(_refuse_weight_only, formats=("int4-g128", "int4-g128-zp"))
    genuine = (
        Kernel("mm", kind, _bind_mm, "torch.mm, or torch.addmm for a bias, with out=", _refuse_mm),
        Kernel(
            "mm-wider",
            kind,
            _bind_mm_wider,
            "torch.mm(out_dtype=): a result wider than its operands",
            _refuse_mm_wider,
            fresh=True,
        ),
        Kernel(
            "scaled-mm", kind, _bind_scaled_mm, "torch._scaled_mm with tensor or row scales, out=", _refuse_scaled_mm
        ),
        Kernel(
            "weight-int8",
            kind,
            _bind_weight_int8,
            "torch._weight_int8pack_mm; a bias is one more pass over y",
            int8,
            fresh=True,
        ),
        Kernel(
            "weight-int4",
            kind,
            _bind_weight_int4,
            "torch._weight_int4pack_mm; its layout has a scale and a zero point a block; "
            "a bias is one more pass over y",
            narrow,
            fresh=True,
        ),
        Kernel(
            "int-mm",
            kind,
            _bind_int_mm,
            "torch._int_mm, then two multiplies by the scales",
            _refuse_int_mm,
            surrogate="the int32 sums go through memory, as torch has no kernel that scales them on the way out",
        ),
    )
    return (*genuine, converted(kind, genuine[0]))


KERNELS = (
    *_product_kernels("linear"),
    *_product_kernels("lm-head"),
    Kernel("index-select", "embedding", _bind_index_select, "torch.index_select with out=", _refuse_index_select),
    Kernel(
        "gather-convert",
        "embedding",
        _bind_gather_rows,
        "gathers the stored rows, then converts them",
        lambda op, device: None,
        surrogate="the gathered rows go through memory before they are converted",
    ),
)

"""The table of storage dtypes: payload bits, block-scale overhead, torch name, native engine.

Sizes are exact: a row of n elements (the last axis of a tensor) takes
``ceil((n * bits + ceil(n / block) * block_bits) / 8)`` bytes, scales and zero points included.
Formats: OCP Microscaling 1.0 (mxfp4, mxfp8: an E8M0 scale per 32), NVIDIA nvfp4 (an E4M3 scale per 16; its one
fp32 per tensor is left out), GPTQ/AWQ-like int4-g128 (an fp16 scale per 128; with ``-zp`` also an fp16 zero point,
as torch packs them).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roofline.errors import RooflineError, nearest

ROW: Final = 0
"""Block length of formats with one scale for each row (the last axis)."""


@dataclass(frozen=True, slots=True)
class DType:
    """One storage format.

    ``bits`` per element; ``block`` elements share ``block_bits`` of scale and zero point (``ROW``: the whole last
    axis does; with ``block_bits`` 0 there is no scale); ``torch_name`` is the dtype of the payload in torch, or
    None where torch has none; ``native`` names the matrix engine that consumes the format directly, or None for
    formats that are only unpacked (weight-only).
    """

    name: str
    bits: int
    torch_name: str | None
    native: str | None
    block: int = ROW
    block_bits: int = 0
    about: str = ""


_TABLE = (
    DType("fp64", 64, "float64", "fp64"),
    DType("fp32", 32, "float32", "fp32"),
    DType("bf16", 16, "bfloat16", "bf16"),
    DType("fp16", 16, "float16", "fp16"),
    DType("fp8", 8, "float8_e4m3fn", "fp8", about="E4M3, one scale per tensor (not counted)"),
    DType("fp8-row", 8, "float8_e4m3fn", "fp8", ROW, 32, "E4M3, one fp32 scale per row"),
    DType("int8", 8, "int8", "int8", ROW, 16, "one fp16 scale per row (output channel, token or head)"),
    DType("int4-g128", 4, None, None, 128, 16, "an fp16 scale per 128"),
    DType("int4-g128-zp", 4, None, None, 128, 32, "an fp16 scale and an fp16 zero point per 128"),
    DType("nvfp4", 4, None, "fp4", 16, 8, "E2M1, an E4M3 scale per 16"),
    DType("mxfp4", 4, None, "fp4", 32, 8, "E2M1, an E8M0 scale per 32"),
    DType("mxfp8", 8, "float8_e4m3fn", "mxfp8", 32, 8, "E4M3, an E8M0 scale per 32"),
    DType("int64", 64, "int64", None),
    DType("int32", 32, "int32", None),
    DType("bool", 8, "bool", None),
)

DTYPES: Final[dict[str, DType]] = {row.name: row for row in _TABLE}

INDEX_DTYPES: Final = ("int64", "int32", "bool")

STORAGE_DTYPES: Final = tuple(name for name in DTYPES if name not in INDEX_DTYPES)
"""The dtypes that a user may name for weights, activations and caches."""

COMPUTE_DTYPES: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "fp4", "int8")
"""The dtypes that a matrix engine may be asked to compute in."""


def dtype(name: str) -> DType:
    """The row of the table called ``name``; raises ``RooflineError`` with the nearest names."""
    try:
        return DTYPES[name]
    except KeyError:
        raise RooflineError(
            f"unknown dtype {name!r}: one of {', '.join(STORAGE_DTYPES)}",
            code="unknown-dtype",
            suggestions=nearest(name, STORAGE_DTYPES),
        ) from None


def native_compute(storage: str) -> str:
    """The dtype that a matrix engine computes in when fed with ``storage`` directly.

    Raises ``RooflineError`` for weight-only formats, which no engine consumes: those need a ``compute`` dtype.
    """
    native = dtype(storage).native
    if native is None:
        raise RooflineError(
            f"{storage} is a weight-only format that no engine computes in: say compute: bf16 (or fp16)",
            code="compute-needed",
            key="compute",
        )
    return native

"""Engines: the units of a device that do arithmetic, each with its own peak rate.

``tensor:bf16`` is the matrix engine fed with bf16 and accumulating in fp32; ``tensor:fp16+fp16``
accumulates in fp16 (GeForce runs that twice as fast, so the accumulate type is part of the name);
``vector:fp32`` are the FMA lanes; ``special:fp32`` is the unit for exp, tanh, erf and rsqrt.
"""

from __future__ import annotations

from dataclasses import dataclass

from roofline.errors import RooflineError, nearest

UNITS = ("tensor", "vector", "special")
DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "mxfp8", "fp6", "fp4", "int8", "int4")


@dataclass(frozen=True, slots=True, order=True)
class Engine:
    """One arithmetic unit with the dtype it is fed with and the dtype it accumulates in."""

    unit: str
    dtype: str
    accumulate: str = ""

    def __post_init__(self) -> None:
        """Fill the usual accumulate type: fp32, int32 for integers, fp64 for fp64."""
        if not self.accumulate:
            object.__setattr__(self, "accumulate", _usual_accumulate(self.dtype))

    def __str__(self) -> str:
        """``unit:dtype``, with ``+accumulate`` only where that is not the usual one."""
        usual = self.accumulate == _usual_accumulate(self.dtype)
        return f"{self.unit}:{self.dtype}" + ("" if usual else f"+{self.accumulate}")

    @classmethod
    def parse(cls, text: str) -> Engine:
        """Read ``tensor:bf16`` or ``tensor:fp16+fp16``; raises ``RooflineError`` otherwise."""
        unit, _, rest = text.partition(":")
        dtype, _, accumulate = rest.partition("+")
        if unit not in UNITS:
            raise RooflineError(
                f"{text!r} is no engine: write UNIT:DTYPE with a unit of {', '.join(UNITS)}",
                code="unknown-engine",
                suggestions=nearest(unit, UNITS),
            )
        if dtype not in DTYPES or (accumulate and accumulate not in (*DTYPES, "int32")):
            raise RooflineError(
                f"{text!r} is no engine: its dtype must be one of {', '.join(DTYPES)}",
                code="unknown-engine",
                suggestions=nearest(dtype, DTYPES),
            )
        return cls(unit, dtype, accumulate)


def _usual_accumulate(dtype: str) -> str:
    if dtype.startswith("int"):
        return "int32"
    return "fp64" if dtype == "fp64" else "fp32"


def tensor(dtype: str) -> Engine:
    """The matrix engine fed with ``dtype`` under its usual accumulate type."""
    return Engine("tensor", dtype)


VECTOR = Engine("vector", "fp32")
SPECIAL = Engine("special", "fp32")

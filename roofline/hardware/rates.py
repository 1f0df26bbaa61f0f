"""What hardware is known to do: tensor rates by compute capability, memory by kind, links by generation.

Only for plausibility: the rules of ``rules.py`` compare a spec with these tables, nothing is computed from them.
Tensor rates are dense FLOP per clock and unit (SM or CU) with fp32 accumulate, from NVIDIA's and AMD's architecture
documents; they agree with the catalogue's peaks, units and clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class TensorRates:
    """Rate of 16-bit matmuls at full speed, and what a dtype runs at in multiples of it (absent: no engine)."""

    full: int
    multiples: Mapping[str, float]

    def rate(self, dtype: str) -> float | None:
        """FLOP per clock and unit, or None where there is no engine for the dtype."""
        multiple = self.multiples.get(dtype)
        return None if multiple is None else self.full * multiple


_TURING: Final = {"fp16": 1, "int8": 2, "int4": 4}
_AMPERE: Final = {"tf32": 0.5, "bf16": 1, **_TURING}
_ADA: Final = {**_AMPERE, "fp8": 2}
_HOPPER: Final = {"fp64": 1 / 16, "tf32": 0.5, "bf16": 1, "fp16": 1, "fp8": 2, "int8": 2}
_BLACKWELL: Final = {"tf32": 0.5, "bf16": 1, "fp16": 1, "fp8": 2, "mxfp8": 2, "fp6": 2, "fp4": 4, "int8": 2}
_CDNA: Final = {"bf16": 1, "fp16": 1}
_RDNA3: Final = {"bf16": 1, "fp16": 1, "int8": 1, "int4": 2}

TENSOR_RATES: Final[dict[str, TensorRates]] = {
    "7.0": TensorRates(1024, {"fp16": 1}),
    "7.5": TensorRates(1024, _TURING),
    "8.0": TensorRates(2048, {"fp64": 1 / 16, **_AMPERE}),
    "8.6": TensorRates(1024, _AMPERE),
    "8.7": TensorRates(2048, _AMPERE),
    "8.9": TensorRates(1024, _ADA),
    "9.0": TensorRates(4096, _HOPPER),
    "10.0": TensorRates(8192, {"fp64": 1 / 64, **_BLACKWELL}),
    # Blackwell Ultra gave its fp64 and int8 units up for more fp4.
    "10.3": TensorRates(8192, {"fp64": 1 / 1024, **_BLACKWELL, "fp4": 6, "int8": 1 / 14.6}),
    "11.0": TensorRates(8192, _BLACKWELL),
    "12.0": TensorRates(1024, _BLACKWELL),
    "12.1": TensorRates(1024, _BLACKWELL),
    "gfx90a": TensorRates(1024, {"fp64": 1 / 4, "fp32": 1 / 4, **_CDNA, "int8": 1}),
    "gfx942": TensorRates(2048, {"fp64": 1 / 8, "fp32": 1 / 8, "tf32": 0.5, **_CDNA, "fp8": 2, "int8": 2}),
    "gfx950": TensorRates(
        4096,
        {"fp64": 1 / 32, "fp32": 1 / 16, **_CDNA, "fp8": 2, "mxfp8": 2, "int8": 2, "fp6": 4, "fp4": 4},
    ),
    "gfx1100": TensorRates(512, _RDNA3),
    "gfx1151": TensorRates(512, _RDNA3),
}

USUAL_MULTIPLES: Final = {"tf32": 0.5, "bf16": 1, "fp16": 1, "fp8": 2, "mxfp8": 2, "int8": 2, "fp4": 4, "int4": 4}
"""What a dtype runs at in multiples of 16 bits on most devices, for one that the table above does not know."""

LARGEST_OVER_LANES: Final = 35
"""Dense 16-bit matmuls over fp32 on the FMA lanes: 32 on the most lopsided device (Jetson T5000)."""

TWO_CLOCKS: Final = ("9.0", "10.0", "10.3")
"""Compute capabilities whose tensor peaks are rated at another clock than their vector peaks."""

GEFORCE_HALF_RATE: Final = ("8.6", "8.9", "12.0")
"""Compute capabilities whose GeForce parts run fp32 accumulate at half rate."""

GEFORCE_HALVED: Final = ("tf32", "bf16", "fp16", "fp8")
"""The dtypes that GeForce halves; integers and block-scaled formats run at full rate."""

MEMORY_BANDWIDTH: Final[dict[str, tuple[float, float]]] = {
    "HBM2": (0.2e12, 1.7e12),
    "HBM2E": (0.4e12, 3.8e12),
    "HBM3": (2.4e12, 6.7e12),
    "HBM3E": (2.0e12, 10e12),
    "HBM4": (2.0e12, 30e12),
    "GDDR6": (0.1e12, 1.3e12),
    "GDDR6X": (0.4e12, 1.3e12),
    "GDDR7": (0.2e12, 2.1e12),
    "LPDDR5": (0.02e12, 0.9e12),
    "LPDDR5X": (0.02e12, 1.2e12),
    "DDR4": (0.01e12, 0.5e12),
    "DDR5": (0.02e12, 1.3e12),
}
"""Slowest and fastest a whole device has been built with, by kind: stacks or bus width times data rate, in B/s."""

NVLINK: Final = {"7.0": 150e9, "8.0": 300e9, "8.6": 56.25e9, "9.0": 450e9, "10.0": 900e9, "10.3": 900e9}
"""NVLink of one device in one direction, in B/s, by compute capability."""

NVLINK_GENERATION: Final = {"1": 80e9, "2": 150e9, "3": 300e9, "4": 450e9, "5": 900e9, "6": 1800e9}
"""The most NVLink that one device has in one direction, in B/s, by generation."""

FASTEST_LINK: Final = 1800e9
"""No link of one device is faster in one direction, in B/s."""

NVLINK_C2C: Final = 450e9
"""NVLink-C2C between a GPU and its Grace CPU in one direction, in B/s."""

PCIE_LANE: Final = {"3": 1e9, "4": 2e9, "5": 4e9, "6": 8e9}
"""One PCIe lane in one direction, in B/s, by generation."""

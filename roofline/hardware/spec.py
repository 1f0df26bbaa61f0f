"""The spec of one device as its YAML file holds it: dense peaks, memory, links, each with its source.

Numbers are in base SI units (FLOP/s, B/s, B, Hz, W, s). Rates are decimal, capacities binary, a link is one
direction of one device. A device is what software sees: an MI250X is listed as one of its two dies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from roofline.dtypes import COMPUTE_DTYPES
from roofline.engines import DTYPES, Engine
from roofline.errors import RooflineError
from roofline.hardware.reading import (
    TEXT,
    TEXT_MAPPING,
    TEXT_OR_TEXTS,
    TEXTS,
    Kind,
    Loc,
    Problem,
    count,
    declare,
    members,
    one_of,
    part,
    parts,
    quantity,
    read_part,
    schema_of,
)

SPARE_CLOCK: Final = "boost"
"""The clock of an engine whose own is not listed."""

_LANES_FOR: Final = ("fp32", "fp64")


def _name(value: Any, loc: Loc, faults: list[Problem]) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", value):
        message = f"name must be lower-case words with hyphens between, not {str(value)[:60]!r}"
        faults.append(Problem(loc, message, "bad-name"))
    return str(value)


def _peak_engine(name: str) -> dict[str, Engine]:
    engine = Engine.parse(name)
    if str(engine) != name:
        message = f"write {str(engine)!r}, not {name!r}"
        raise RooflineError(message, code="unknown-engine", suggestions=[str(engine)])
    return {"engine": engine}


NAME: Final = Kind(_name, {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"})
FLOPS: Final = quantity("flop/s", "989.4 TFLOP/s")
SECONDS: Final = quantity("seconds", "4 us")
RATE: Final = quantity("bytes/s", "3.35 TB/s")
SIZE: Final = quantity("bytes", "80 GiB")


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A number and where it comes from; ``unverified`` where it was recalled, assumed or is in dispute."""

    source: tuple[str, ...] = declare(
        TEXT_OR_TEXTS, "where the number is from: keys of `sources` (single words), or sources in full"
    )
    confidence: Literal["unverified"] | None = declare(
        one_of("unverified"), "unverified: recalled, assumed or in dispute", None
    )
    note: str | None = declare(TEXT, "what a reader of this number should know", None)


@dataclass(frozen=True, kw_only=True)
class Units(Sourced):
    """The repeating units (SM, CU, core) that rates per clock are for."""

    kind: str = declare(TEXT, "what the units are called: SM, CU, core")
    count: int = declare(count(), "how many of them are enabled")


@dataclass(frozen=True, kw_only=True)
class Clock(Sourced):
    """A clock that peaks are computed from, in Hz."""

    value: float = declare(quantity("hertz", "1830 MHz"), "frequency")


@dataclass(frozen=True, kw_only=True)
class Peak(Sourced):
    """The dense peak of one engine, in FLOP/s (integer and special-function engines: operations per second).

    ``per_unit_per_clock`` x units x clock should give ``value``. ``checked`` says what that proves: ``independent``
    (the three were found apart from the peak), ``derived`` (one of them came from it: agreement proves nothing) or
    ``disputed`` (the vendor's own documents disagree; the notes say how).
    """

    engine: Engine
    value: float = declare(FLOPS, "DENSE peak, multiply-add counted as 2")
    per_unit_per_clock: int | None = declare(count(), "FLOP of one unit in one clock, dense", None)
    clock: str | None = declare(
        TEXT, "name of the clock behind it, where that is not the one of its kind of engine", None
    )
    checked: Literal["independent", "derived", "disputed"] | None = declare(
        one_of("independent", "derived", "disputed"), "what units x rate x clock proves about the value", None
    )


@dataclass(frozen=True, kw_only=True)
class MemoryLevel(Sourced):
    """A memory or cache: ``capacity`` in bytes (of one unit where ``scope`` is unit), ``bandwidth`` of the device.

    ``usable`` is what the driver leaves of the capacity. A cache whose rate nobody has published has none.
    """

    name: str = declare(TEXT, "hbm, gddr, dram, l2, smem ...")
    kind: str | None = declare(TEXT, "what it is: HBM3, GDDR7, LPDDR5X", None)
    scope: Literal["device", "unit"] = declare(one_of("device", "unit"), "whether each unit has its own", "device")
    capacity: int | None = declare(SIZE, "size in GiB, MiB or KiB; of one unit's where scope is unit", None)
    usable: int | None = declare(SIZE, "what the driver reports", None)
    bandwidth: float | None = declare(RATE, "bandwidth of the whole device", None)


@dataclass(frozen=True, kw_only=True)
class Link(Sourced):
    """A way to other devices or the host: bytes per second in one direction, all ``ports`` of this device together."""

    name: str = declare(TEXT, "nvlink, xgmi, ici, pcie ...")
    kind: str | None = declare(TEXT, "generation and width: NVLink 4, PCIe 5.0 x16", None)
    bandwidth: float = declare(RATE, "of this device, in ONE direction")
    devices: int | None = declare(count(2), "how many devices it joins, this one included", None)
    ports: int | None = declare(count(), "how many ports the bandwidth is the sum of", None)


@dataclass(frozen=True, kw_only=True)
class Power(Sourced):
    """The power limit of the device, in W."""

    value: float = declare(quantity("watts", "700 W"), "power limit")


@dataclass(frozen=True, kw_only=True)
class LaunchOverhead(Sourced):
    """Host time from one kernel launch to the next, in s, which a chain of small kernels cannot beat."""

    value: float = declare(SECONDS, "time of one launch")


@dataclass(frozen=True, kw_only=True)
class MeasuredCeiling:
    """What a calibration reached: the median, and the spread that a single run may show."""

    value: float = declare(RATE, "median, in the unit of the ceiling")
    low: float = declare(RATE, "lower end of its spread")
    high: float = declare(RATE, "upper end of its spread")


def _ceilings(value: Any, loc: Loc, faults: list[Problem]) -> dict[str, MeasuredCeiling]:
    """Measured ceilings, each in the dimension that its name stands for."""
    if not isinstance(value, dict) or not value:
        faults.append(Problem(loc, "ceilings must be a mapping of names to value, low and high", "bad-value"))
        return {}
    return {name: _ceiling(name, item, (*loc, name), faults) for name, item in value.items()}


def _ceiling(name: str, item: Any, loc: Loc, faults: list[Problem]) -> Any:
    kind = FLOPS if ":" in name else SECONDS if name == "launch" else RATE
    read = read_part(MeasuredCeiling, item, loc, faults, kinds=dict.fromkeys(("value", "low", "high"), kind))
    if read and not read.low <= read.value <= read.high:
        faults.append(Problem(loc, f"the value of {name} is not between its low and high", "bad-spread"))
    return read


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Ceilings measured on a real device of this kind; beside the datasheet values, never in their place.

    A ceiling is named after an engine, a memory level or a link, perhaps with a variant after a dot (``hbm.copy``),
    or is ``launch`` (seconds).
    """

    date: str = declare(TEXT, "when")
    device: str = declare(TEXT, "the device as its driver calls it")
    driver: str | None = declare(TEXT, "version of its driver", None)
    versions: Mapping[str, str] = declare(TEXT_MAPPING, "versions of what measured it: torch, roofline", dict)
    ceilings: Mapping[str, MeasuredCeiling] = declare(
        Kind(_ceilings, {"type": "object", "additionalProperties": schema_of(MeasuredCeiling), "minProperties": 1}),
        "by name: tensor:bf16, hbm, hbm.copy, launch",
    )


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """One device. ``peaks`` are by engine name, ``memory`` is from the farthest level to the nearest."""

    name: str = declare(NAME, "canonical name, the same as the file's")
    title: str = declare(TEXT, "name for people")
    vendor: str = declare(TEXT, "who sells it")
    architecture: str = declare(TEXT, "generation and die")
    form_factor: str | None = declare(TEXT, "SXM5, PCIe, OAM", None)
    compute_capability: str | None = declare(TEXT, "NVIDIA's, or AMD's gfx name", None)
    status: Literal["released", "pre-release"] = declare(
        one_of("released", "pre-release"), "pre-release: nobody has measured one", "released"
    )
    device_names: tuple[str, ...] = declare(TEXTS, "what its driver calls it, exactly", ())
    units: Units = declare(part(Units), "the repeating units that rates per clock are for")
    clocks: Mapping[str, Clock] = declare(
        members(Clock), "clocks by kind of engine (tensor, vector, special), or boost for all", dict
    )
    peaks: Mapping[str, Peak] = declare(members(Peak, _peak_engine), "DENSE peaks by engine: tensor:bf16, vector:fp32")
    memory: tuple[MemoryLevel, ...] = declare(parts(MemoryLevel), "memory and caches, the farthest first")
    links: tuple[Link, ...] = declare(parts(Link), "ways to other devices and to the host", ())
    power: Power | None = declare(part(Power), "power limit", None)
    launch_overhead: LaunchOverhead | None = declare(part(LaunchOverhead), "host time of one kernel launch", None)
    notes: tuple[str, ...] = declare(TEXTS, "what a user of these numbers should know", ())
    sources: Mapping[str, str] = declare(TEXT_MAPPING, "sources by the word they go by above", dict)
    measured: Measured | None = declare(part(Measured), "written by a calibration", None)

    @property
    def main(self) -> MemoryLevel:
        """The farthest memory, where weights and caches live."""
        return self.memory[0]

    @property
    def bandwidth(self) -> float:
        """Bandwidth of the main memory, in bytes per second (0 where the file lacks it, which no loader passes)."""
        return self.main.bandwidth or 0.0

    @property
    def launch_overhead_s(self) -> float | None:
        """Seconds from one kernel launch to the next, or None where nobody has published them."""
        return self.launch_overhead.value if self.launch_overhead else None

    def cite(self, sourced: Sourced) -> tuple[str, ...]:
        """The sources of a number in full."""
        return tuple(self.sources.get(source, source) for source in sourced.source)

    def clock_of(self, peak: Peak) -> Clock | None:
        """The clock that a peak is computed from: its own, that of its kind of engine, or the one of all."""
        wanted = (peak.clock,) if peak.clock else (peak.engine.unit, SPARE_CLOCK)
        return next((self.clocks[name] for name in wanted if name in self.clocks), None)

    def computed_peak(self, peak: Peak) -> float | None:
        """Units x rate per clock x clock, in FLOP/s; None where the rate or the clock is not known."""
        clock = self.clock_of(peak)
        if clock is None or peak.per_unit_per_clock is None:
            return None
        return self.units.count * peak.per_unit_per_clock * clock.value

    def ceiling(self, engine: Engine) -> Peak | None:
        """The dense peak that bounds work on ``engine``, or None where the device lists none.

        The engine itself, except that a matmul in fp32 or fp64 without a matrix engine runs on the FMA lanes
        (on a device without any matrix engine, whatever the lanes can do), and mxfp8 runs on the fp8 engine of a
        device that takes block-scaled operands. The peak says which engine it is (``peak.engine``).
        """
        return next((self.peaks[name] for name in self._stand_ins(engine) if name in self.peaks), None)

    def _stand_ins(self, engine: Engine) -> tuple[str, ...]:
        own = str(engine)
        if engine.unit != "tensor" or engine != Engine("tensor", engine.dtype):
            return (own,)
        if engine.dtype in _LANES_FOR or not self._tensor_engines():
            return (own, str(Engine("vector", engine.dtype)))
        # An fp4 engine takes its operands with block scales, and such engines take fp8 with them at the fp8 rate.
        if engine.dtype == "mxfp8" and "tensor:fp4" in self.peaks:
            return (own, "tensor:fp8")
        return (own,)

    def _tensor_engines(self) -> list[Engine]:
        engines = [peak.engine for peak in self.peaks.values() if peak.engine.unit == "tensor"]
        return sorted(engines, key=lambda engine: (DTYPES.index(engine.dtype), engine.accumulate))

    def peak(self, engine: Engine) -> Peak:
        """The dense peak that bounds work on ``engine``, as ``ceiling``.

        Raises ``RooflineError`` ("no-engine") that names what the device does compute in.
        """
        found = self.ceiling(engine)
        if found is None:
            raise self._no_engine(engine)
        return found

    def _no_engine(self, engine: Engine) -> RooflineError:
        dtypes = [dtype for dtype in self.ridges() if dtype in COMPUTE_DTYPES] if engine.unit == "tensor" else []
        names = [name for name in self.peaks if name.startswith(f"{engine.unit}:")]
        has = ", ".join(dtypes or names) or "nothing listed"
        what = str(engine).partition(":")[2]
        wanted = f"no {what} tensor engine" if engine.unit == "tensor" else f"no {engine} engine"
        return RooflineError(f"{self.name} has {wanted}; it computes in {has}", code="no-engine")

    def ridge(self, engine: Engine) -> float:
        """The ridge point of an engine: FLOPs per byte of main memory at which compute and memory take equally long.

        Raises ``RooflineError`` ("no-engine") as ``peak`` does.
        """
        return self.peak(engine).value / self.bandwidth

    def ridges(self) -> dict[str, float]:
        """The ridge point of every dtype that a matmul can be computed in, widest dtype first."""
        asked = {str(engine): engine for dtype in DTYPES for engine in self._matmul_engines(dtype)}
        return {name.partition(":")[2]: self.ridge(engine) for name, engine in asked.items()}

    def _matmul_engines(self, dtype: str) -> list[Engine]:
        usual = Engine("tensor", dtype)
        others = [engine for engine in self._tensor_engines() if engine.dtype == dtype and engine != usual]
        return ([usual] if self.ceiling(usual) else []) + others

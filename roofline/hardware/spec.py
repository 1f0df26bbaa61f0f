"""The spec of one device as its YAML file holds it: dense peaks, memory, links, each with its source.

Numbers are in base SI units (FLOP/s, B/s, B, Hz, W, s). Rates are decimal, capacities binary, a link is one
direction of one device. A device is what software sees: an MI250X is listed as one of its two dies.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)

from roofline.catalog import for_pydantic
from roofline.engines import DTYPES, Engine
from roofline.errors import RooflineError, nearest
from roofline.quantities import Dimension, parse

SPARE_CLOCK: Final = "boost"
"""The clock of an engine whose own is not listed."""

_LANES_FOR: Final = ("fp32", "fp64")


def _reads(dimension: Dimension) -> BeforeValidator:
    def read(value: Any) -> int | float:
        return parse(value, dimension)

    return BeforeValidator(for_pydantic(read))


def _shown(example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": ["string", "number"], "examples": [example]})


def _engine(text: str) -> str:
    engine = Engine.parse(text)
    if str(engine) != text:
        message = f"write {str(engine)!r}, not {text!r}"
        raise RooflineError(message, code="unknown-engine", suggestions=[str(engine)])
    return text


def _many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Positive = Field(gt=0)
Flops: TypeAlias = Annotated[float, _reads("flop/s"), Positive, _shown("989.4 TFLOP/s")]
Rate: TypeAlias = Annotated[float, _reads("bytes/s"), Positive, _shown("3.35 TB/s")]
Bytes: TypeAlias = Annotated[int, _reads("bytes"), Positive, _shown("80 GiB")]
Hertz: TypeAlias = Annotated[float, _reads("hertz"), Positive, _shown("1830 MHz")]
Watts: TypeAlias = Annotated[float, _reads("watts"), Positive, _shown("700 W")]
Seconds: TypeAlias = Annotated[float, _reads("seconds"), Positive, _shown("4 us")]
AnyRate: TypeAlias = Annotated[float, Positive, _shown("2.94 TB/s")]
Count: TypeAlias = Annotated[int, Positive]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
EngineName: TypeAlias = Annotated[str, AfterValidator(for_pydantic(_engine))]
Texts: TypeAlias = Annotated[
    tuple[Text, ...],
    BeforeValidator(_many),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]


def _read_ceilings(ceilings: Any) -> Any:
    """Measured ceilings with their quantities read in the dimension that each name stands for."""
    if not isinstance(ceilings, dict):
        return ceilings
    return {str(name): _read_ceiling(str(name), ceiling) for name, ceiling in ceilings.items()}


def _read_ceiling(name: str, ceiling: Any) -> Any:
    if not isinstance(ceiling, dict):
        return ceiling
    dimension: Dimension = "flop/s" if ":" in name else "seconds" if name == "launch" else "bytes/s"
    read = dict(ceiling)
    for key in {"value", "low", "high"} & ceiling.keys():
        try:
            read[key] = parse(ceiling[key], dimension)
        except RooflineError as error:
            raise RooflineError(error.message, code=error.code, key=f"{name}.{key}") from None
    if {"value", "low", "high"} <= read.keys() and not read["low"] <= read["value"] <= read["high"]:
        raise RooflineError(f"the value of {name} is not between its low and high", code="bad-spread", key=name)
    return read


class Spec(BaseModel):
    """What every part of a spec has in common: unknown keys are faults, and nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Sourced(Spec):
    """A number and where it comes from.

    ``source`` is one or several: a single word is a key of the file's ``sources``, anything longer is the source
    itself. ``unverified`` marks a number that was recalled, assumed or is disputed, and it is shown so.
    """

    source: Texts
    confidence: Literal["unverified"] | None = None
    note: Text | None = None


class Units(Sourced):
    """How many of the repeating units (SM, CU, core) the device has; rates per clock are for one of them."""

    kind: Text
    count: Count


class Clock(Sourced):
    """A clock that peaks are computed from."""

    value: Hertz


class Peak(Sourced):
    """The dense peak of one engine, in FLOP/s (integer and special-function engines: operations per second).

    ``per_unit_per_clock`` x units x the clock named ``clock`` should give ``value``. ``checked`` says what that
    proves: ``independent`` (count, rate and clock were found apart from the peak), ``derived`` (one of them came
    from it: agreement proves nothing) or ``disputed`` (the vendor's own documents disagree; the notes say how).
    """

    value: Flops
    per_unit_per_clock: Count | None = None
    clock: Text | None = None
    checked: Literal["independent", "derived", "disputed"] | None = None
    _engine: Engine = PrivateAttr()

    @property
    def engine(self) -> Engine:
        """The engine whose peak this is."""
        return self._engine


class MemoryLevel(Sourced):
    """A memory or cache: ``capacity`` (of one unit where ``scope`` is unit) and ``bandwidth`` of the whole device.

    ``usable`` is what the driver leaves of the capacity. A cache whose rate nobody has published has none.
    """

    name: Text
    kind: Text | None = None
    scope: Literal["device", "unit"] = "device"
    capacity: Bytes | None = None
    usable: Bytes | None = None
    bandwidth: Rate | None = None


class Link(Sourced):
    """A way to other devices or to the host: bandwidth in one direction, all ``ports`` of this device together.

    ``devices`` is how many devices it joins, this one included, where that is known.
    """

    name: Text
    kind: Text | None = None
    bandwidth: Rate
    devices: Annotated[int, Field(ge=2)] | None = None
    ports: Count | None = None


class Power(Sourced):
    """The power limit of the device."""

    value: Watts


class LaunchOverhead(Sourced):
    """Host time from one kernel launch to the next, which a chain of small kernels cannot beat."""

    value: Seconds


class MeasuredCeiling(Spec):
    """What a calibration reached: the median, and the spread that a single run may show."""

    value: AnyRate
    low: AnyRate
    high: AnyRate


class Measured(Spec):
    """Ceilings measured on a real device of this kind; beside the datasheet values, never in their place.

    A ceiling is named after an engine, a memory level or a link, perhaps with a variant after a dot (``hbm.copy``),
    or is ``launch`` (seconds).
    """

    date: Text
    device: Text
    driver: Text | None = None
    versions: dict[str, str] = {}
    ceilings: Annotated[dict[str, MeasuredCeiling], BeforeValidator(for_pydantic(_read_ceilings)), Field(min_length=1)]


class Hardware(Spec):
    """One device. ``peaks`` are by engine name, ``memory`` is from the farthest level to the nearest."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    title: Text
    vendor: Text
    architecture: Text
    form_factor: Text | None = None
    compute_capability: Text | None = None
    status: Literal["released", "pre-release"] = "released"
    device_names: tuple[Text, ...] = ()
    sources: dict[str, Text] = {}
    units: Units
    clocks: dict[str, Clock] = {}
    peaks: Annotated[dict[EngineName, Peak], Field(min_length=1)]
    memory: Annotated[tuple[MemoryLevel, ...], Field(min_length=1)]
    links: tuple[Link, ...] = ()
    power: Power | None = None
    launch_overhead: LaunchOverhead | None = None
    notes: tuple[Text, ...] = ()
    measured: Measured | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for text, peak in self.peaks.items():
            peak._engine = Engine.parse(text)
        for_pydantic(self._check)()
        return self

    def _check(self) -> None:
        if self.memory[0].bandwidth is None or self.memory[0].scope != "device":
            message = "the first level of memory must have the bandwidth of the whole device"
            raise RooflineError(message, code="no-bandwidth", key="memory.0")
        known = {level.name for level in self.memory} | {link.name for link in self.links} | {"launch"}
        for name in self.measured.ceilings if self.measured else ():
            if ":" in name:
                _engine(name)
            elif name.partition(".")[0] not in known:
                message = f"{name!r} is no engine, memory level or link of this device"
                near = nearest(name, sorted(known))
                raise RooflineError(message, code="unknown-ceiling", key="measured", suggestions=near)

    @property
    def main(self) -> MemoryLevel:
        """The farthest memory, where weights and caches live."""
        return self.memory[0]

    @property
    def bandwidth(self) -> float:
        """Bandwidth of the main memory, in bytes per second."""
        assert self.main.bandwidth is not None  # held by _complete
        return self.main.bandwidth

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
        dtypes = list(self.ridges()) if engine.unit == "tensor" else []
        names = [name for name in self.peaks if name.startswith(f"{engine.unit}:")]
        has = ", ".join(dtypes or names) or "nothing listed"
        what = str(engine).partition(":")[2]
        wanted = f"no {what} tensor engine" if engine.unit == "tensor" else f"no {engine} engine"
        hint = next((dtype for dtype in ("bf16", "fp16", "fp32") if dtype in dtypes), None)
        advice = f": for {what} weights say compute: {hint}" if hint and hint != what else ""
        return RooflineError(f"{self.name} has {wanted}; it computes in {has}{advice}", code="no-engine", key="compute")

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

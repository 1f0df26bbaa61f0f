"""A device's ceilings, measured in this session, with their spread, and touched again around every op.

Machines drift: a shared host gives half the bandwidth to a neighbour for seconds at a time. So a ceiling is a series
of readings. A reading is the fastest sample of several kernels, as nothing but the kernel's own speed makes a sample
fast. Around an op, the ceiling is the higher of the readings before and after each stretch of its timing, then the
median over the stretches; its upper end is the fastest sample ever seen on this device, and only beyond that end is
an op *above roof*.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from roofline.analysis import MemoryCeiling, OpPrediction, Rate, is_engine
from roofline.engines import VECTOR, Engine
from roofline.errors import RooflineError
from roofline.measure import probes, thresholds
from roofline.measure.devices import Device
from roofline.measure.timer import Sampler

_FP32 = "tensor:fp32"

_RUN_IN_FP32 = {str(VECTOR), *(f"tensor:{dtype}" for dtype in ("tf32", "bf16", "fp16", "fp8"))}
"""What is no slower than a full fp32 product: a kernel may convert to fp32, which holds products of these exactly (a
CPU's fused attention does, where fp16 products are slow); and those products are the longest FMA chains there are."""

MEMORY = "dram"
"""Name of the farthest memory level in a prediction."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a ceiling: the rate of the fastest sample, that kernel's median sample, and which kernel it was.

    ``disturbed``: something else ran during every one of its samples.
    """

    value: float
    low: float
    kernel: str
    disturbed: bool = False


@dataclass(frozen=True, slots=True)
class MeasuredCeilings:
    """Ceilings for an analysis. ``missing`` says why an engine has none."""

    name: str
    rates: Mapping[str, Rate]
    launch_s: float | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def memory(self) -> Sequence[MemoryCeiling]:
        """One level: the bandwidth of each mix of reads and writes."""
        best: dict[float, Rate] = {}
        for name, written in probes.WRITTEN.items():
            rate = self.rates.get(name)
            if rate is not None and (written not in best or rate.value > best[written].value):
                high = max(rate.high, best[written].high) if written in best else rate.high
                best[written] = Rate(rate.value, rate.low, high)
        return (MemoryCeiling(MEMORY, tuple(sorted(best.items()))),)

    def engine(self, engine: Engine) -> Rate | None:
        """The measured rate of an engine. Raises ``RooflineError`` for a matrix engine that could not be measured."""
        rate = self.rates.get(str(engine))
        if rate is None and engine.unit == "tensor":
            reason = self.missing.get(str(engine), "it was not measured")
            raise RooflineError(f"no {engine} on {self.name}: {reason}", code="no-engine")
        return rate

    def upper(self) -> MeasuredCeilings:
        """The same ceilings at their upper ends."""
        rates = {name: Rate.exactly(rate.high) for name, rate in self.rates.items()}
        return MeasuredCeilings(self.name, rates, self.launch_s, self.missing)


@dataclass(slots=True)
class Evidence:
    """What earlier sessions saw on the same device: their fastest readings, the kernels worth touching, the cache."""

    readings: dict[str, Reading]
    kernels: dict[str, tuple[str, ...]]
    believed_cache: int


@dataclass(slots=True)
class Calibration:
    """The ceilings of one device in one session."""

    device: Device
    believed_cache: int
    held_bytes: int = 0
    """What the buffers of its probes take of the run's memory."""
    missing: dict[str, str] = field(default_factory=dict)
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    measured: dict[str, str] = field(default_factory=dict)
    earlier: dict[str, Reading] = field(default_factory=dict)
    earlier_kernels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _samplers: dict[str, list[tuple[probes.Probe, Sampler]]] = field(default_factory=dict)

    def read(self, name: str) -> Reading:
        """One reading of a ceiling."""
        looks = [_look(probe, sampler) for probe, sampler in self._samplers[name] if not probe.serial]
        if all(look.disturbed for look in looks):
            looks += [_look(probe, sampler) for probe, sampler in self._samplers[name] if probe.serial]
        best = max(looks, key=lambda look: look.fastest)
        reading = Reading(best.fastest, best.median, best.kernel, all(look.disturbed for look in looks))
        self.readings.setdefault(name, []).append(reading)
        self.measured[name] = datetime.now(UTC).date().isoformat()
        return reading

    def touch(self, names: Iterable[str]) -> dict[str, Reading]:
        """A fresh reading of each of the ceilings that are known here."""
        wanted = dict.fromkeys(names)
        if any(name in _RUN_IN_FP32 for name in wanted):
            wanted[_FP32] = None
        return {name: self.read(name) for name in wanted if name in self._samplers}

    def ceilings(self) -> MeasuredCeilings:
        """Every ceiling over the whole session: typical value, slowest and fastest."""
        return self._measured(
            {
                name: Rate(statistics.median(reading.value for reading in _quiet(seen)), *_ends(seen))
                for name, seen in self.readings.items()
            }
        )

    def around(self, touches: Sequence[Mapping[str, Reading]]) -> MeasuredCeilings:
        """The ceilings of one op from the touches before, between and after its timing (see the head of this file)."""
        rates = {}
        for name in touches[0] if touches else ():
            series = _quiet([touch[name] for touch in touches])
            stretches = [max(a.value, b.value) for a, b in pairwise(series)]
            value = statistics.median(stretches or [series[0].value])
            rates[name] = Rate(value, *_ends(series))
        return self._measured({**self.ceilings().rates, **rates})

    def _measured(self, rates: Mapping[str, Rate]) -> MeasuredCeilings:
        rates = dict(rates)
        if _FP32 in rates:
            for name in _RUN_IN_FP32 & rates.keys():
                rates[name] = max(rates[name], rates[_FP32], key=lambda rate: rate.value)
        raised = {name: Rate(rate.value, rate.low, max(rate.high, self.fastest(name))) for name, rate in rates.items()}
        raised.pop(probes.LAUNCH, None)
        return MeasuredCeilings(self.device.name, raised, self.launch_s, dict(self.missing))

    @property
    def launch_s(self) -> float | None:
        """Seconds that the smallest kernel takes."""
        seen = [reading.value for reading in self.readings.get(probes.LAUNCH, ()) if reading.value > 0]
        return 1 / statistics.median(seen) if seen else None

    def fastest(self, name: str) -> float:
        """The fastest sample ever seen of a ceiling on this device."""
        seen = [reading.value for reading in self.readings.get(name, ())]
        if name in self.earlier:
            seen.append(self.earlier[name].value)
        if name in _RUN_IN_FP32:
            seen.append(self.fastest(_FP32))
        return max(seen, default=0.0)

    def best_kernel(self, name: str) -> str:
        """The kernel of the highest reading, its own or that of the fp32 products that it may run in."""
        seen: list[Reading] = [*self.readings[name], *(self.readings.get(_FP32, ()) if name in _RUN_IN_FP32 else ())]
        return max(seen, key=lambda reading: reading.value).kernel

    def kernels(self, name: str) -> tuple[str, ...]:
        """The kernels that are touched for a ceiling."""
        return tuple(probe.kernel for probe, _ in self._samplers[name])

    def add(self, found: Iterable[probes.Probe], keep: Mapping[str, Sequence[str]]) -> None:
        """Take up probes, and only those named in ``keep`` for the ceilings that it knows.

        Kernels that another release named otherwise are not known: then all of the ceiling's are taken.
        """
        offered = list(found)
        known = {probe.ceiling for probe in offered if probe.kernel in keep.get(probe.ceiling, ())}
        for probe in offered:
            if probe.ceiling in known and probe.kernel not in keep[probe.ceiling]:
                continue
            sampler = Sampler([probe.call], self.device)
            sampler.warm_up()
            self._samplers.setdefault(probe.ceiling, []).append((probe, sampler))

    def forget_slow_kernels(self) -> None:
        """Keep the fastest kernels of each ceiling; what the others held is freed."""
        for name, entries in self._samplers.items():
            ranked = sorted(entries, key=_best_time)
            parallel = [entry for entry in ranked if not entry[0].serial][: thresholds.TOUCHED_KERNELS]
            self._samplers[name] = parallel + [entry for entry in ranked if entry[0].serial]

    @property
    def names(self) -> tuple[str, ...]:
        """The ceilings that can be read."""
        return tuple(self._samplers)


def _quiet(readings: Sequence[Reading]) -> Sequence[Reading]:
    """The readings that something left alone, or all where nothing did."""
    return [reading for reading in readings if not reading.disturbed] or readings


def _best_time(entry: tuple[probes.Probe, Sampler]) -> float:
    probe, sampler = entry
    return min((sample.seconds for sample in sampler.samples), default=math.inf) / probe.work


@dataclass(frozen=True, slots=True)
class _Look:
    """Rates of the fastest and the median sample of one kernel; ``disturbed``: not one sample was left alone."""

    fastest: float
    median: float
    kernel: str
    disturbed: bool


def _look(probe: probes.Probe, sampler: Sampler) -> _Look:
    """A few samples, or more until one of them was left alone."""
    start, fresh = sampler.device.now(), [sampler.take()]
    while len(fresh) < thresholds.MAX_READING_SAMPLES:
        spent = sampler.device.now() - start
        quiet = any(not sample.disturbed for sample in fresh)
        if len(fresh) >= thresholds.READING_SAMPLES and spent >= thresholds.READING_S * (1 if quiet else 10):
            break
        fresh.append(sampler.take())
    seconds = [sample.seconds for sample in fresh]
    return _Look(
        fastest=_rate(probe, min(seconds)),
        median=_rate(probe, statistics.median(seconds)),
        kernel=probe.kernel,
        disturbed=all(sample.disturbed for sample in fresh),
    )


def _rate(probe: probes.Probe, seconds: float) -> float:
    return probe.work / seconds if seconds > 0 else 0.0


def _ends(readings: Sequence[Reading]) -> tuple[float, float]:
    return min(reading.low for reading in readings), max(reading.value for reading in readings)


def calibrate(
    device: Device,
    engines: Iterable[Engine],
    *,
    earlier: Evidence | None = None,
    progress: Callable[[str], Any] = lambda what: None,
) -> Calibration:
    """Measure the memory, the engines asked for and the launch floor of ``device``.

    With ``earlier`` evidence only the kernels that were fastest then are measured again.
    """
    keep = earlier.kernels if earlier else {}
    calibration = Calibration(device, earlier.believed_cache if earlier else 0, earlier_kernels=keep)
    calibration.earlier = dict(earlier.readings) if earlier else {}
    progress("memory ceilings")
    _memory(calibration, keep)
    calibration.add([probes.launch_probe(device)], keep)
    for engine in dict.fromkeys([Engine.parse(_FP32), VECTOR, *engines]):
        progress(f"{engine} ceiling")
        try:
            calibration.add(probes.engine_probes(device, engine), keep)
        except (RooflineError, RuntimeError, NotImplementedError) as error:
            calibration.missing[str(engine)] = str(error).splitlines()[0]
    start = device.now()
    for round_ in range(thresholds.CALIBRATION_ROUNDS):
        if round_ and device.now() - start > thresholds.CALIBRATION_S:
            break
        for name in calibration.names:
            progress(f"{name} ceiling, round {round_ + 1} of {thresholds.CALIBRATION_ROUNDS}")
            calibration.read(name)
    calibration.forget_slow_kernels()
    return calibration


def _memory(calibration: Calibration, keep: Mapping[str, Sequence[str]]) -> None:
    """Memory probes over a working set far larger than the cache that is believed, within the memory limit."""
    device = calibration.device
    reported = device.caches[-1]
    most = int(device.memory_bytes * thresholds.CEILING_MEMORY / 3)
    doubtful = min(thresholds.CEILING_SPAN * reported, thresholds.DOUBTFUL_SPAN)
    working_set = min(most, int(max(doubtful, thresholds.CEILING_SPAN * calibration.believed_cache)))
    calibration.add(probes.memory_probes(device, working_set), keep)
    calibration.held_bytes = 3 * working_set
    if calibration.believed_cache:
        return
    calibration.believed_cache = _believed_cache(calibration)
    wanted = min(most, int(thresholds.CEILING_SPAN * calibration.believed_cache))
    if wanted > working_set:
        calibration._samplers.clear()
        calibration.add(probes.memory_probes(device, wanted), keep)
        calibration.held_bytes = 3 * wanted


def _believed_cache(calibration: Calibration) -> int:
    """The largest cache level whose reads are at least twice as fast as the memory's; a GPU's is taken as reported."""
    device = calibration.device
    if device.kind != "cpu":
        return device.caches[-1]
    memory = calibration.read(probes.READ).value
    for size in reversed(device.caches[1:]):
        sampler = Sampler([(probe := probes.cache_probe(device, size // 4)).call], device)
        sampler.warm_up()
        if _look(probe, sampler).fastest >= thresholds.CACHE_GAIN * memory:
            return size
    return device.caches[-2] if len(device.caches) > 1 else device.caches[-1]


def relevant(prediction: OpPrediction) -> tuple[str, ...]:
    """The ceilings that matter to an op: the memory patterns around its mix, the engines that come near its floor."""
    written = prediction.written_bytes / max(1.0, prediction.bytes)
    points = sorted(set(probes.WRITTEN.values()))
    below = max(point for point in points if point <= written + 1e-12)
    above = min(point for point in points if point >= written - 1e-12)
    names = [name for name, point in probes.WRITTEN.items() if point in (below, above)]
    near = thresholds.MATTERS * prediction.floor_s
    return (*names, *(name for name, seconds in prediction.times.items() if is_engine(name) and seconds >= near))

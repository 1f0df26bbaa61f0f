"""A tree of ops against a device's ceilings: the floor of each op, what bounds it, and what bounds the whole.

A floor is what the ceilings allow, not a forecast. Two are given up the tree: ``floor_s``, the sum over ops (no
program that runs one kernel after the other with data in memory beats it), and ``lower_bound_s``, the largest over
resources of the whole compulsory work (nothing beats that).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from roofline.engines import Engine
from roofline.ops.base import Op
from roofline.ops.tree import Node, compulsory_bytes, leaves, resident_bytes

if TYPE_CHECKING:
    from roofline.hardware import Hardware

Bound = Literal["compute", "memory", "communication"]

NEAR_RIDGE = 2.0
"""Two floors within this factor of each other are near the ridge: no measured verdict is drawn there."""

CO_LIMITER = 0.05
"""Ceilings whose time is within this fraction of the largest limit as well."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A ceiling in operations or bytes per second; ``low`` and ``high`` span it where it was measured."""

    value: float
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Rate:
        """A rate without a spread: a datasheet figure."""
        return cls(value, value, value)


@dataclass(frozen=True, slots=True)
class MemoryCeiling:
    """A memory level: its bandwidth as a function of the fraction of the traffic that is written.

    ``points`` are (written fraction, rate), sorted; a datasheet has one. Between points the time per byte is
    interpolated, because times, not rates, add.
    """

    name: str
    points: tuple[tuple[float, Rate], ...]
    capacity_bytes: int | None = None

    def rate(self, read: float, written: float) -> Rate:
        """The ceiling of a mix of reads and writes."""
        if len(self.points) == 1 or read + written == 0:
            return self.points[0][1]
        fraction = written / (read + written)
        below = max((p for p in self.points if p[0] <= fraction), default=self.points[0], key=lambda p: p[0])
        above = min((p for p in self.points if p[0] >= fraction), default=self.points[-1], key=lambda p: p[0])
        if below[0] >= above[0]:
            return below[1]
        weight = (fraction - below[0]) / (above[0] - below[0])
        return Rate(*(_between(below[1], above[1], weight, side) for side in ("value", "low", "high")))

    @property
    def best(self) -> float:
        """The highest bandwidth of any mix."""
        return max(rate.value for _, rate in self.points)


def _between(a: Rate, b: Rate, weight: float, side: str) -> float:
    return float(1 / ((1 - weight) / getattr(a, side) + weight / getattr(b, side)))


class Ceilings(Protocol):
    """What an analysis needs to know of a device: its rates, from a datasheet or from measurements."""

    @property
    def name(self) -> str:
        """Name of the device."""

    @property
    def memory(self) -> Sequence[MemoryCeiling]:
        """Memory levels from the farthest to the nearest."""

    @property
    def launch_s(self) -> float | None:
        """Time that each launch costs, where known."""

    def engine(self, engine: Engine) -> Rate | None:
        """The rate of an engine; None where a vector or special engine is not known (its ceiling is left out).

        Raises ``RooflineError`` for a matrix engine that the device lacks.
        """


@dataclass(frozen=True, slots=True)
class Datasheet:
    """The ceilings of a hardware file."""

    hardware: Hardware

    @property
    def name(self) -> str:
        """Canonical name of the device."""
        return self.hardware.name

    @property
    def memory(self) -> Sequence[MemoryCeiling]:
        """Levels with a bandwidth, the farthest first."""
        return tuple(
            MemoryCeiling(level.name, ((0.0, Rate.exactly(level.bandwidth)),), level.capacity)
            for level in self.hardware.memory
            if level.bandwidth is not None
        )

    @property
    def launch_s(self) -> float | None:
        """Launch overhead of the hardware file."""
        return self.hardware.launch_overhead_s

    def engine(self, engine: Engine) -> Rate | None:
        """Dense peak of the engine."""
        if engine.unit == "tensor":
            return Rate.exactly(self.hardware.peak(engine).value)
        peak = self.hardware.ceiling(engine)
        return None if peak is None else Rate.exactly(peak.value)


@dataclass(frozen=True, slots=True)
class OpPrediction:
    """One op, once: its work, its time against every ceiling, and the ceiling that holds it back.

    ``times`` maps each resource (``tensor:bf16``, ``hbm``) to seconds; ``floor_s`` is the largest of them;
    ``headroom`` is the largest over the second largest (None with a single ceiling).
    """

    path: tuple[str, ...]
    op: Op
    count: int
    arithmetic: Mapping[Engine, float]
    read_bytes: float
    written_bytes: float
    times: Mapping[str, float]
    bound: Bound
    limiter: str
    co_limiters: tuple[str, ...]
    ridge: float | None
    overhead_s: float | None

    @property
    def name(self) -> str:
        """Path as one word."""
        return "/".join(self.path)

    @property
    def flops(self) -> float:
        """Tensor plus vector FLOPs."""
        return _flops(self.arithmetic)

    @property
    def bytes(self) -> float:
        """Compulsory traffic."""
        return self.read_bytes + self.written_bytes

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.bytes

    @property
    def floor_s(self) -> float:
        """The largest of the times: nothing runs faster under these ceilings."""
        return self.times[self.limiter]

    @property
    def headroom(self) -> float | None:
        """How much longer the limiting ceiling takes than the next one."""
        return _headroom(self.times)

    @property
    def near_ridge(self) -> bool:
        """Whether the memory floor and the compute floor are within a factor of two."""
        memory = [t for name, t in self.times.items() if not is_engine(name)]
        compute = [t for name, t in self.times.items() if is_engine(name)]
        if not memory or not compute:
            return False
        low, high = sorted((max(memory), max(compute)))
        return high < NEAR_RIDGE * low


@dataclass(frozen=True, slots=True)
class Prediction:
    """A whole tree: its ops in order, and what follows for it as one program."""

    name: str
    device: str
    ops: tuple[OpPrediction, ...]
    arithmetic: Mapping[Engine, float]
    bytes: float
    floor_s: float
    lower_bound_s: float
    shares: Mapping[str, float]
    ridge: float | None
    resident: Mapping[str, int]
    capacity_bytes: int | None
    overhead_s: float | None

    @property
    def flops(self) -> float:
        """Tensor plus vector FLOPs of all executions."""
        return _flops(self.arithmetic)

    @property
    def intensity(self) -> float:
        """FLOPs per byte of the whole; shown, but it does not decide the bound."""
        return self.flops / self.bytes

    @property
    def limiter(self) -> str:
        """The resource that holds the largest share of the floor."""
        return next(iter(self.shares))

    @property
    def co_limiters(self) -> tuple[str, ...]:
        """Other resources whose share is within 5 % of the largest."""
        return _close(self.shares)

    @property
    def bound(self) -> Bound:
        """The kind of the limiter."""
        return _kind(self.limiter)

    @property
    def expected_s(self) -> float | None:
        """The floor plus the overhead of every launch, where that is known."""
        return None if self.overhead_s is None else self.floor_s + self.overhead_s

    @property
    def resident_bytes(self) -> int:
        """All that must be in memory at once: weights, caches, states, the operands of the largest op."""
        return sum(self.resident.values())

    @property
    def fits(self) -> bool | None:
        """Whether that fits the farthest memory; None where its capacity is not known."""
        return None if self.capacity_bytes is None else self.resident_bytes <= self.capacity_bytes

    def share(self, op: OpPrediction) -> float:
        """The part of the floor that all executions of ``op`` take."""
        return op.count * op.floor_s / self.floor_s


def analyse(root: Node, ceilings: Ceilings) -> Prediction:
    """The prediction for ``root`` under ``ceilings``; raises ``RooflineError`` for a matrix engine that is missing."""
    ops = tuple(_predict(leaf.path, leaf.op, leaf.count, ceilings) for leaf in leaves(root))
    arithmetic: dict[Engine, float] = {}
    held: dict[str, float] = {}
    for op in ops:
        held[op.limiter] = held.get(op.limiter, 0) + op.count * op.floor_s
        for engine, count in op.arithmetic.items():
            arithmetic[engine] = arithmetic.get(engine, 0) + op.count * count
    floor = sum(held.values())
    main = ceilings.memory[0]
    times = {str(engine): seconds for engine, seconds in _engine_times(arithmetic, ceilings)}
    launches = [op.count * op.overhead_s for op in ops if op.overhead_s is not None]
    return Prediction(
        name=root.name,
        device=ceilings.name,
        ops=ops,
        arithmetic=arithmetic,
        bytes=sum(op.count * op.bytes for op in ops),
        floor_s=floor,
        lower_bound_s=max([compulsory_bytes(root) / main.best, *times.values()]),
        shares={name: held[name] / floor for name in sorted(held, key=lambda name: (-held[name], is_engine(name)))},
        ridge=_ridge(arithmetic, ceilings, main.best),
        resident=resident_bytes(root),
        capacity_bytes=main.capacity_bytes,
        overhead_s=sum(launches) if launches else None,
    )


def _predict(path: tuple[str, ...], op: Op, count: int, ceilings: Ceilings) -> OpPrediction:
    tensors = op.tensors()
    read = sum(tensor.touched_bytes for tensor in tensors if tensor.reads)
    written = sum(tensor.touched_bytes for tensor in tensors if tensor.writes)
    main = ceilings.memory[0]
    bandwidth = main.rate(read, written).value
    arithmetic = op.arithmetic()
    engines = {str(engine): seconds for engine, seconds in _engine_times(arithmetic, ceilings)}
    # memory first: max() keeps the first of equals, so that a tie goes to memory
    times = {main.name: (read + written) / bandwidth, **engines}
    limiter = max(times, key=times.__getitem__)
    return OpPrediction(
        path=path,
        op=op,
        count=count,
        arithmetic=arithmetic,
        read_bytes=read,
        written_bytes=written,
        times=times,
        bound=_kind(limiter),
        limiter=limiter,
        co_limiters=_close({limiter: times[limiter], **times}),
        ridge=_ridge(arithmetic, ceilings, bandwidth),
        overhead_s=None if ceilings.launch_s is None else op.launches * ceilings.launch_s,
    )


def _engine_times(arithmetic: Mapping[Engine, float], ceilings: Ceilings) -> Iterator[tuple[Engine, float]]:
    for engine, count in arithmetic.items():
        rate = ceilings.engine(engine)
        if rate is not None:
            yield engine, count / rate.value


def _ridge(arithmetic: Mapping[Engine, float], ceilings: Ceilings, bandwidth: float) -> float | None:
    """FLOPs per byte at which the slowest engine takes as long as the memory.

    Special engines are left out: intensity counts FLOPs, and their evaluations are none.
    """
    counted = {engine: count for engine, count in arithmetic.items() if engine.unit != "special"}
    times = {engine: seconds for engine, seconds in _engine_times(counted, ceilings) if seconds > 0}
    if not times:
        return None
    slowest = max(times, key=times.__getitem__)
    return counted[slowest] / times[slowest] / bandwidth


def _flops(arithmetic: Mapping[Engine, float]) -> float:
    return sum(count for engine, count in arithmetic.items() if engine.unit != "special")


def _headroom(times: Mapping[str, float]) -> float | None:
    ordered = sorted(times.values(), reverse=True)
    return ordered[0] / ordered[1] if len(ordered) > 1 and ordered[1] > 0 else None


def _close(times: Mapping[str, float]) -> tuple[str, ...]:
    """The others within 5 % of the first."""
    first, *others = times
    return tuple(name for name in others if times[name] >= (1 - CO_LIMITER) * times[first])


def is_engine(resource: str) -> bool:
    """Whether a resource is an engine (``tensor:bf16``) and not a memory level or a link."""
    return ":" in resource


def _kind(resource: str) -> Bound:
    return "compute" if is_engine(resource) else "memory"

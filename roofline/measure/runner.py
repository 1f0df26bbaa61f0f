"""One op under the clock: itself and its neighbours in turn, with the ceilings touched in between.

Everything that is compared is interleaved, so that a machine that drifts, drifts under all of it alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roofline.analysis import OpPrediction, analyse
from roofline.kernels import Kernel, Operands, Prepared, availability, choose, prepare
from roofline.measure import elasticity, thresholds
from roofline.measure.ceilings import Calibration, MeasuredCeilings, Reading, relevant
from roofline.measure.devices import Device
from roofline.measure.elasticity import Neighbour, Point
from roofline.measure.timer import Sample, Sampler, cold_span, copies_needed, why_stop
from roofline.ops.base import Op
from roofline.ops.tree import Node
from roofline.quantities import binary, duration
from roofline.results.run import Elasticity

WARM_UP_CALLS = 2
"""Calls of a shape before the first round."""


class Skipped(Exception):
    """An op that is not timed; the message is the reason, for people."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape that was timed: the op, or it with ``field`` times ``factor``; ``cold``: operands not in a cache."""

    op: Op
    field: str = ""
    factor: float = 1.0
    cold: bool = True


@dataclass(frozen=True, slots=True)
class OpTiming:
    """What was seen of one op.

    ``samples`` are its own; ``rounds`` has a row for each of ``shapes`` (the op first) and a column for each round;
    ``touches`` are the ceilings before, between and after.
    """

    kernel: Kernel
    samples: tuple[Sample, ...]
    stop_reason: str
    batch: int
    copies: int
    shapes: tuple[Shape, ...]
    rounds: tuple[tuple[Sample, ...], ...]
    touches: tuple[Mapping[str, Reading], ...]

    @property
    def cold(self) -> bool:
        """Whether the op's operands were kept out of the cache."""
        return self.shapes[0].cold

    def __add__(self, later: OpTiming) -> OpTiming:
        """Both timings of one op; no sample of either is lost, and rounds add up where the same shapes were timed."""
        same = self.shapes == later.shapes
        rounds = [(*a, *b) for a, b in zip(self.rounds, later.rounds, strict=True)] if same else later.rounds
        return OpTiming(
            kernel=later.kernel,
            samples=(*self.samples, *later.samples),
            stop_reason=f"timed twice; {later.stop_reason}",
            batch=later.batch,
            copies=later.copies,
            shapes=later.shapes,
            rounds=tuple(rounds),
            touches=(*self.touches, *later.touches),
        )


@dataclass(slots=True)
class _Lane:
    """A shape with its operands, being timed."""

    shape: Shape
    sampler: Sampler
    ready: list[Prepared]
    prepare_s: float

    @property
    def copies(self) -> int:
        return len(self.ready)

    @property
    def bytes(self) -> int:
        """What its operands hold, shared ones counted once."""
        return sum({id(operand): operand.nbytes for one in self.ready for operand in one.operands.values()}.values())


def predict(op: Op, ceilings: MeasuredCeilings) -> OpPrediction:
    """The prediction of a single op."""
    return analyse(Node("op", op=op), ceilings).ops[0]


def elasticities(timing: OpTiming, ceilings: MeasuredCeilings) -> Elasticity:
    """How the times of an op and its neighbours answer to size."""
    points = [Point.of(predict(shape.op, ceilings), shape.field, shape.factor) for shape in timing.shapes]
    hot = [not shape.cold for shape in timing.shapes]
    return elasticity.read(points, timing.rounds, ceilings.launch_s or 0.0, hot=hot)


def time_op(
    op: Op,
    calibration: Calibration,
    budget_s: float,
    *,
    seed: int = 0,
    compile: bool = False,
) -> OpTiming:
    """Time ``op`` and its neighbours on the device of ``calibration`` for about ``budget_s``.

    Neighbours are left out where they could not change the verdict: near the ridge, for a surrogate kernel, and for
    a small part of something large, which stays in the cache.
    Raises ``Skipped`` where the op does not fit memory or time, ``RooflineError`` where no kernel runs it.
    """
    device = calibration.device
    clock = _Clock(device, device.now(), budget_s)
    prediction = predict(op, calibration.ceilings())
    _refuse_too_large(op, prediction, calibration, budget_s)
    kernel = choose(op, device.torch_name, compile=compile)
    own = _lane(Shape(op), calibration, kernel, seed, _room(calibration))
    own.sampler.warm_up()
    touches = _Touches(calibration, relevant(prediction))
    _head_start(own.sampler, clock)
    alone = len(own.sampler.samples)
    lanes = [own]
    tells = own.shape.cold or op.resident_bytes < _span(calibration)
    if tells and kernel.surrogate is None and not prediction.near_ridge:
        lanes += _neighbour_lanes(prediction, calibration, kernel, own, clock, seed)
    else:
        clock = _Clock(device, clock.start, thresholds.HEAD_START * budget_s)
    reason = _rounds(lanes, touches, clock)
    touches.take()
    rounds = len(own.sampler.samples) - alone
    return OpTiming(
        kernel=kernel,
        samples=tuple(own.sampler.samples),
        stop_reason=reason,
        batch=own.sampler.batch,
        copies=own.copies,
        shapes=tuple(lane.shape for lane in lanes),
        rounds=tuple(tuple(lane.sampler.samples[len(lane.sampler.samples) - rounds :]) for lane in lanes),
        touches=tuple(touches.readings),
    )


@dataclass(frozen=True, slots=True)
class _Clock:
    """A share of the budget."""

    device: Device
    start: float
    budget_s: float

    @property
    def spent_s(self) -> float:
        return self.device.now() - self.start

    @property
    def left_s(self) -> float:
        return self.budget_s - self.spent_s


class _Touches:
    """The ceilings that matter to an op, read before, between and after its timing."""

    def __init__(self, calibration: Calibration, names: Sequence[str]) -> None:
        self._calibration, self._names = calibration, names
        self.readings: list[Mapping[str, Reading]] = []
        self.take()

    def take(self) -> None:
        self.readings.append(self._calibration.touch(self._names))
        self._taken = self._calibration.device.now()

    def take_when_due(self) -> None:
        if self._calibration.device.now() - self._taken >= thresholds.TOUCH_EVERY_S:
            self.take()


def _head_start(sampler: Sampler, clock: _Clock) -> None:
    """The op's own samples come first: its neighbours may take more time than there is."""
    while True:
        sampler.take()
        enough = len(sampler.samples) >= thresholds.MIN_SAMPLES
        if enough or clock.spent_s >= thresholds.HEAD_START * clock.budget_s:
            return


def _room(calibration: Calibration) -> int:
    """Bytes that operands may take beside the buffers of the ceilings."""
    return calibration.device.memory_bytes - calibration.held_bytes


def _refuse_too_large(op: Op, prediction: OpPrediction, calibration: Calibration, budget_s: float) -> None:
    if op.resident_bytes > _room(calibration):
        raise Skipped(
            f"its operands take {binary(op.resident_bytes)}, more than the {binary(_room(calibration))} "
            "that are left for them (--max-memory)"
        )
    expected = prediction.floor_s / thresholds.EFFICIENCY
    if expected > budget_s:
        raise Skipped(
            f"one run of it takes about {duration(expected)}, more than the {duration(budget_s)} that it has of the "
            "budget (--budget)"
        )


def _lane(
    shape: Shape, calibration: Calibration, kernel: Kernel, seed: int, room: int, shared: Operands | None = None
) -> _Lane:
    """Operands for ``shape``: so many copies that they come from memory, or one where that cannot be had."""
    device = calibration.device
    start = device.now()
    op = shape.op
    whole = _gathered(op)
    each = sum(tensor.resident_bytes for tensor in op.tensors() if tensor.name not in whole)
    touched = sum(tensor.touched_bytes for tensor in op.tensors())
    room_for = (room - (op.resident_bytes - each)) // max(1, each)
    copies, cold = copies_needed(touched, _span(calibration), room_for * touched)
    ready = [prepare(op, device.torch_name, kernel=kernel, seed=seed, given=shared)]
    common = {**(shared or {}), **{name: ready[0].operands[name] for name in whole}}
    for copy in range(1, copies if cold else 1):
        ready.append(prepare(op, device.torch_name, kernel=kernel, seed=seed + copy, given=common))
    shape = Shape(op, shape.field, shape.factor, cold)
    return _Lane(shape, Sampler([one.call for one in ready], device), ready, device.now() - start)


def _gathered(op: Op) -> set[str]:
    """Tensors of which an index picks a part: copies share them, as each has indices of its own."""
    tensors = op.tensors()
    if not any(tensor.role == "index" for tensor in tensors):
        return set()
    return {tensor.name for tensor in tensors if tensor.touched is not None and not tensor.writes}


def _span(calibration: Calibration) -> float:
    return cold_span(calibration.device.caches[-1], calibration.believed_cache)


def _shared(op: Op, own: _Lane) -> Operands:
    """Operands of the op that a neighbour reads as well, where one copy of them outgrows the cache by itself."""
    if own.copies > 1 or not own.shape.cold:
        return {}
    read = {tensor.name: tensor for tensor in own.shape.op.tensors() if not tensor.writes}
    operands = own.ready[0].operands
    return {tensor.name: operands[tensor.name] for tensor in op.tensors() if read.get(tensor.name) == tensor}


def _neighbour_lanes(
    prediction: OpPrediction, calibration: Calibration, kernel: Kernel, own: _Lane, clock: _Clock, seed: int
) -> list[_Lane]:
    """Neighbours made ready one by one, while time for a few rounds over them is left."""
    lanes: list[_Lane] = []
    own_s = min(sample.seconds for sample in own.sampler.samples)
    each_round = own_s
    for neighbour in _neighbours(prediction, own_s, calibration, kernel, own, clock.left_s):
        each_round += own_s * predict(neighbour.op, calibration.ceilings()).floor_s / prediction.floor_s
        if clock.left_s < thresholds.FEWEST_ROUNDS * each_round:
            break
        room = _room(calibration) - sum(lane.bytes for lane in (own, *lanes))
        shape = Shape(neighbour.op, neighbour.field, neighbour.factor)
        lane = _lane(shape, calibration, kernel, seed, room, _shared(neighbour.op, own))
        lane.sampler.warm_up()
        lanes.append(lane)
    return lanes


def _neighbours(
    prediction: OpPrediction, own_s: float, calibration: Calibration, kernel: Kernel, own: _Lane, left_s: float
) -> list[Neighbour]:
    """The neighbours that tell most and fit the memory and the time that is left, for many rounds or else for few."""
    ceilings = calibration.ceilings()
    span = _span(calibration)
    known: dict[Op, OpPrediction] = {}
    held = own.bytes

    def predicted(op: Op) -> OpPrediction:
        if op not in known:
            known[op] = predict(op, ceilings)
        return known[op]

    def runs(op: Op) -> bool:
        return availability(kernel, op, calibration.device.torch_name) is None

    def chosen(rounds: int) -> list[Neighbour]:
        def affordable(points: Sequence[OpPrediction]) -> bool:
            each_round = own_s * (1 + sum(point.floor_s for point in points) / prediction.floor_s)
            made = sum(max(span, _made_bytes(point.op, own)) for point in points)
            needed = (rounds + WARM_UP_CALLS) * each_round + made * own.prepare_s / held
            return bool(needed <= left_s and held + made <= _room(calibration))

        return elasticity.choose(prediction, found, predicted, affordable, runs)

    found = elasticity.neighbours(own.shape.op)
    many = chosen(thresholds.ENOUGH_ROUNDS)
    return many if len(many) >= thresholds.MIN_POINTS - 1 else chosen(thresholds.FEWEST_ROUNDS)


def _made_bytes(op: Op, own: _Lane) -> float:
    """Bytes of the operands that have to be made for a neighbour."""
    shared = _shared(op, own)
    return float(sum(tensor.resident_bytes for tensor in op.tensors() if tensor.name not in shared))


def _rounds(lanes: Sequence[_Lane], touches: _Touches, clock: _Clock) -> str:
    """Sample every lane in turn until the op's own time is known and there are rounds enough, or time is up."""
    own = lanes[0].sampler
    enough = thresholds.ENOUGH_ROUNDS if len(lanes) > 1 else 1
    done = 0
    while True:
        turn = done % len(lanes)
        for lane in (*lanes[turn:], *lanes[:turn]):
            lane.sampler.take()
        done += 1
        reason = why_stop(own.samples, clock.spent_s, clock.budget_s, clock.device.kind)
        if reason is not None and (done >= enough or reason.startswith("budget")):
            return reason
        touches.take_when_due()

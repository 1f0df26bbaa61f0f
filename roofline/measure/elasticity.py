"""The bound of an op as its times show it: how time answers when FLOPs and bytes are changed apart.

An op is timed at neighbours, the same op with a size doubled, quadrupled, halved or quartered, and
log(t - launch) = a log FLOPs + b log bytes + c is fitted over them. Where FLOPs and bytes always move together, one
slope of time over the floor is all that can be had.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

from roofline.analysis import OpPrediction
from roofline.errors import RooflineError
from roofline.measure import stats, thresholds
from roofline.measure.stats import Cell
from roofline.measure.timer import Sample
from roofline.ops.base import Op, op_fields, sizes_of
from roofline.results.run import Elasticity, Estimate

FACTORS: Final = (2.0, 4.0, 0.5, 0.25)
"""What a size is multiplied by; never a few percent, which would only show tile edges."""

KEPT: Final = frozenset({"head_dim", "head_dim_v", "window", "sinks"})
"""Sizes that choose a kernel or a mask rather than an amount of work: they stay as they are."""

MOST: Final = 6
"""Neighbours that an op is timed at."""

THRIFT: Final = 0.25
"""How much the time that shapes take counts against what they tell."""

COLLINEAR: Final = thresholds.MAX_CORRELATION - 0.05
"""Correlation from which shapes with two sizes changed are tried as well: losing one point must not spoil the fit."""

COLUMNS: Final = 64
"""Rounds that a fit tells apart; more are taken together."""

MOVES: Final = math.log(1.4)
"""Change of the floor from which a point says something about time over size."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The op with ``field`` times ``factor``; for ``a/b`` the one is multiplied and the other divided by it."""

    op: Op
    field: str
    factor: float


@dataclass(frozen=True, slots=True)
class Point:
    """One shape that was timed: where it stands, its work, and its floor under the ceilings of the op."""

    field: str
    factor: float
    flops: float
    bytes: float
    floor_s: float

    @classmethod
    def of(cls, prediction: OpPrediction, field: str = "", factor: float = 1.0) -> Point:
        """The point of a prediction."""
        return cls(field, factor, prediction.flops, prediction.bytes, prediction.floor_s)


def neighbours(op: Op) -> list[Neighbour]:
    """The op with a size changed by each of the factors, or with two changed against each other.

    Follows from the declaration alone: what is below a minimum, not an integer, or refused by ``Op.check()`` (query
    heads that no longer fill their groups) is left out, and so is what changes neither arithmetic nor traffic.
    """
    names = [name for name in sizes_of(op) if name not in KEPT]
    larger = [name for name in names if getattr(op, name) > 1]  # one is often a kernel of its own
    axes = [*((name,) for name in names), *combinations(larger, 2)]
    found = []
    for axis in axes:
        for factor in FACTORS:
            scaled = {name: getattr(op, name) * by for name, by in zip(axis, (factor, 1 / factor), strict=False)}
            changed = _changed(op, scaled)
            if changed is not None and _work(changed) != _work(op):
                found.append(Neighbour(changed, "/".join(axis), factor))
    return found


def _changed(op: Op, sizes: Mapping[str, float]) -> Op | None:
    infos = op_fields(type(op))
    if any(value != int(value) or value < infos[name].minimum or value == 0 for name, value in sizes.items()):
        return None
    changed = op.with_(**{name: int(value) for name, value in sizes.items()})
    return changed if _is_sound(changed) else None


def _is_sound(op: Op) -> bool:
    try:
        op.check()
    except RooflineError:
        return False
    return True


def _work(op: Op) -> tuple[float, float]:
    return op.flops, op.traffic_bytes


def choose(
    base: OpPrediction,
    found: Sequence[Neighbour],
    predict: Callable[[Op], OpPrediction],
    affordable: Callable[[Sequence[OpPrediction]], bool],
    runs: Callable[[Op], bool] = lambda op: True,
) -> list[Neighbour]:
    """The neighbours to time: those that tell FLOPs from bytes best, on the same side of the ridge as the op.

    Shapes with one size changed where they can tell them apart; else also those with two changed against each other.
    ``affordable`` says whether a set fits time and memory, ``runs`` whether the kernel takes a shape.
    """
    known = [(neighbour, prediction) for neighbour in found if (prediction := _same_side(base, predict, neighbour))]
    single = _best_set(base, [entry for entry in known if "/" not in entry[0].field], affordable, runs)
    together = _collinear(base, single)
    if together >= COLLINEAR:
        reshaped = _best_set(base, known, affordable, runs)
        if _collinear(base, reshaped) < together:
            single = reshaped
    return [neighbour for neighbour, _ in single]


_Entry = tuple[Neighbour, OpPrediction]


def _best_set(
    base: OpPrediction,
    known: Sequence[_Entry],
    affordable: Callable[[Sequence[OpPrediction]], bool],
    runs: Callable[[Op], bool],
) -> list[_Entry]:
    """Taken one by one, each time the one that adds most (``_merit``)."""
    left, chosen = list(known), list[_Entry]()
    while len(chosen) < MOST:
        options = [entry for entry in left if _nearer_taken(entry[0], chosen, left)]
        options = [entry for entry in options if affordable([p for _, p in (*chosen, entry)])]
        if not options:
            break
        best = max(options, key=lambda entry: _merit(base, [p for _, p in (*chosen, entry)]))
        left.remove(best)
        if runs(best[0].op):
            chosen.append(best)
    return chosen


def _collinear(base: OpPrediction, chosen: Sequence[_Entry]) -> float:
    points = [base, *(prediction for _, prediction in chosen)]
    return abs(stats.correlation([_log(p.flops) for p in points], [_log(p.bytes) for p in points]))


def _same_side(base: OpPrediction, predict: Callable[[Op], OpPrediction], neighbour: Neighbour) -> OpPrediction | None:
    prediction = predict(neighbour.op)
    return prediction if prediction.bound == base.bound and not prediction.near_ridge else None


def _nearer_taken(neighbour: Neighbour, chosen: Sequence[_Entry], left: Sequence[_Entry]) -> bool:
    """Four times a size comes only after twice, so that a kernel switch between them is seen."""
    if neighbour.factor in (2.0, 0.5) or "/" in neighbour.field:
        return True
    nearer = (neighbour.field, math.sqrt(neighbour.factor))
    return not any((entry[0].field, entry[0].factor) == nearer for entry in left)


def _merit(base: OpPrediction, others: Sequence[OpPrediction]) -> float:
    """How well shapes tell FLOPs from bytes: the area that their logs span, less where the two move together.

    A little of both variances keeps the choice sensible where they always do; of like sets the cheaper one wins.
    """
    points = [base, *others]
    x, y = [_log(point.flops) for point in points], [_log(point.bytes) for point in points]
    spread = statistics.pvariance(x) + statistics.pvariance(y)
    apart = 1 - stats.correlation(x, y) ** 2
    gain = statistics.pvariance(x) * statistics.pvariance(y) * apart**3 + 1e-3 * spread
    cost = sum(point.floor_s for point in points) / base.floor_s
    return float(gain / cost**THRIFT)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else 0.0


# The fit -------------------------------------------------------------------------------------------------------------


def read(
    points: Sequence[Point], times: Sequence[Sequence[Sample]], launch_s: float, *, hot: Sequence[bool] = ()
) -> Elasticity:
    """The elasticities of ``points`` (the op first) from their ``times``, one list a point, one entry a round.

    Samples that were disturbed are left out, unless a point has too few others. Points in another cache class than
    the op (``hot``) are left out, and so is everything beyond a step along one size in which time grew by more than
    the work or fell: another kernel took over there.
    """
    table = [_condensed(_log_times(row, launch_s)) for row in times]
    kept = [i for i in range(len(points)) if not hot or hot[i] == hot[0]]
    effects = stats.polish(table)
    kept = [i for i in kept if effects[i] is not None]
    if not kept or kept[0] != 0:
        return Elasticity(len(kept), note="the op itself took no time")
    kept, note = _before_switches(points, [effect or 0.0 for effect in effects], kept)
    found = _separate(points, table, kept) or Elasticity(len(kept), _together(points, kept))
    return replace(found, **_slope(points, table, kept, note))


def _log_times(row: Sequence[Sample], launch_s: float) -> list[Cell]:
    quiet = sum(not sample.disturbed for sample in row)
    usable = quiet >= thresholds.QUIET_SAMPLES
    return [None if sample.disturbed and usable else _log_time(sample.seconds, launch_s) for sample in row]


def _condensed(row: Sequence[Cell]) -> list[Cell]:
    """The row in at most so many columns, each the median of a few rounds in a row."""
    width = -(-len(row) // COLUMNS)
    parts = [[cell for cell in row[start : start + width] if cell is not None] for start in range(0, len(row), width)]
    return [statistics.median(part) if part else None for part in parts]


def _log_time(seconds: float, launch_s: float) -> Cell:
    # a time below two launches leaves nothing to take the launch from: it is kept whole, and judged as overhead
    return math.log(seconds - launch_s if seconds > 2 * launch_s else seconds) if seconds > 0 else None


def _before_switches(
    points: Sequence[Point], effects: Sequence[float], kept: Sequence[int]
) -> tuple[list[int], str | None]:
    """The points up to the first step of each size, in either direction, that one kernel's time cannot take."""
    good, note = [0], None
    for field, up in {(points[i].field, points[i].factor > 1) for i in kept if i}:
        at = 0
        for i in sorted(
            (i for i in kept if i and points[i].field == field and (points[i].factor > 1) == up),
            key=lambda i: abs(math.log(points[i].factor)),
        ):
            if not _plausible(points[at], points[i], effects[i] - effects[at]):
                note = f"another kernel takes over at {field} x{points[i].factor:g}"
                break
            good.append(i)
            at = i
    return sorted(good), note


def _plausible(a: Point, b: Point, grown: float) -> bool:
    work = [math.log(y / x) for x, y in ((a.flops, b.flops), (a.bytes, b.bytes)) if x > 0 and y > 0]
    doublings = abs(math.log(b.factor / a.factor))
    rise, fall = (slack * doublings + math.log(1.1) for slack in (thresholds.STEP_SLACK, thresholds.FALL_SLACK))
    return min(0.0, *work) - (fall if b.factor > a.factor else rise) <= grown <= max(0.0, *work) + rise


def _separate(points: Sequence[Point], table: Sequence[Sequence[Cell]], kept: Sequence[int]) -> Elasticity | None:
    """Both elasticities; None where they cannot be told apart, or where no power law passes near the points.

    One point may be left out, the op itself never: another kernel took over there too smoothly to be seen as a step.
    """
    found = _plane(points, table, kept)
    if found is None:
        return None
    if found.residual <= thresholds.MAX_RESIDUAL:
        return found.elasticity
    others = [_plane(points, table, [i for i in kept if i != out]) for out in kept if out]
    best = min((other for other in others if other is not None), key=lambda other: other.residual, default=None)
    return best.elasticity if best is not None and best.residual <= thresholds.MAX_RESIDUAL else None


def _together(points: Sequence[Point], kept: Sequence[int]) -> float | None:
    """How far FLOPs and bytes move together; None where there are none of one of them, or a single point."""
    if len(kept) < 2 or any(points[i].flops <= 0 or points[i].bytes <= 0 for i in kept):
        return None
    return stats.correlation([math.log(points[i].flops) for i in kept], [math.log(points[i].bytes) for i in kept])


@dataclass(frozen=True, slots=True)
class _Plane:
    elasticity: Elasticity
    residual: float


def _plane(points: Sequence[Point], table: Sequence[Sequence[Cell]], kept: Sequence[int]) -> _Plane | None:
    together = _together(points, kept)
    if len(kept) < thresholds.MIN_POINTS or together is None or abs(together) >= thresholds.MAX_CORRELATION:
        return None
    x, y = [math.log(points[i].flops) for i in kept], [math.log(points[i].bytes) for i in kept]
    if min(max(x) - min(x), max(y) - min(y)) < math.log(thresholds.MIN_SPAN) - 1e-9:
        return None

    def fit(columns: Sequence[int]) -> Mapping[str, float] | None:
        z = _effects(table, kept, columns)
        plane = stats.plane(x, y, z) if z else None
        if z is None or plane is None:
            return None
        a, b, c = plane
        worst = max(abs(a * u + b * v + c - w) for u, v, w in zip(x, y, z, strict=True))
        return {"a": a, "b": b, "residual": worst}

    whole = fit(range(len(table[0])))
    if whole is None:
        return None
    drawn = stats.bootstrap(len(table[0]), fit)
    flops, traffic = _estimate(whole["a"], drawn["a"]), _estimate(whole["b"], drawn["b"])
    return _Plane(Elasticity(len(kept), together, flops, traffic), whole["residual"])


def _slope(
    points: Sequence[Point], table: Sequence[Sequence[Cell]], kept: Sequence[int], note: str | None
) -> dict[str, Any]:
    """The slope of time over the floor, over the points that move the floor, or why there is none."""
    used = [0, *(i for i in kept if i and abs(math.log(points[i].floor_s / points[0].floor_s)) > MOVES)]
    if len(used) < 3:
        return {"note": note or "too few shapes that change its floor could be timed"}
    x = [math.log(points[i].floor_s) for i in used]

    def fit(columns: Sequence[int]) -> Mapping[str, float] | None:
        z = _effects(table, used, columns)
        value = stats.slope(x, z) if z else None
        return None if value is None else {"slope": value}

    whole = fit(range(len(table[0])))
    if whole is None:
        return {"note": note or "too few times"}
    return {"slope": _estimate(whole["slope"], stats.bootstrap(len(table[0]), fit)["slope"]), "note": note}


def _effects(table: Sequence[Sequence[Cell]], rows: Sequence[int], columns: Sequence[int]) -> list[float] | None:
    effects = stats.polish([[table[row][column] for column in columns] for row in rows])
    known = [effect for effect in effects if effect is not None]
    return known if len(known) == len(effects) else None


def _estimate(value: float, drawn: Sequence[float]) -> Estimate:
    low, high = stats.percentile_interval(drawn)
    return Estimate(value, min(low, value), max(high, value))

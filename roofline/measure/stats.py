"""The few statistics that timing rests on: order-statistic intervals, median polish, a fit with a bootstrap."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Final, TypeVar

from roofline.measure import thresholds

RESAMPLES: Final = 200

Cell = float | None
T = TypeVar("T")


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, low and high end of its interval, from order statistics: no assumption on the shape of the noise.

    The number of values below the true median is binomial(n, 1/2); the ends are the values at symmetric ranks that
    cover it with the confidence of ``thresholds`` (all values where they are too few for that). Hahn and Meeker,
    Statistical Intervals, section 5.2.
    """
    ordered = sorted(values)
    rank = _rank(len(ordered))
    return statistics.median(ordered), ordered[rank], ordered[-1 - rank]


@lru_cache
def _rank(count: int) -> int:
    """Largest k such that the values at ranks k and count - 1 - k still cover the median often enough."""
    tail, rank = 0.0, 0
    for k in range(count // 2):
        tail += math.comb(count, k) * 0.5**count
        if 2 * tail > 1 - thresholds.CONFIDENCE:
            break
        rank = k
    return rank


def percentile_interval(values: Sequence[float]) -> tuple[float, float]:
    """The central interval of bootstrap replicates."""
    ordered = sorted(values)
    cut = int(len(ordered) * (1 - thresholds.CONFIDENCE) / 2)
    return ordered[cut], ordered[-1 - cut]


def polish(table: Sequence[Sequence[Cell]], sweeps: int = 6) -> list[float | None]:
    """Row effects of a table of rows (points) by columns (rounds), by Tukey's median polish.

    A column effect is whatever slowed the whole round; medians let single disturbed cells do no harm. Empty cells
    are left out; a row without any is None.
    """
    columns = len(table[0]) if table else 0
    rows = [statistics.median(known) if (known := _known(row)) else None for row in table]
    offsets = [0.0] * columns
    for _ in range(sweeps):
        for column in range(columns):
            left = [
                cell - effect
                for row, effect in zip(table, rows, strict=True)
                if (cell := row[column]) is not None and effect is not None
            ]
            offsets[column] = statistics.median(left) if left else 0.0
        for index, row in enumerate(table):
            left = [cell - offset for cell, offset in zip(row, offsets, strict=True) if cell is not None]
            rows[index] = statistics.median(left) if left else None
    return rows


def _known(row: Sequence[Cell]) -> list[float]:
    return [cell for cell in row if cell is not None]


def bootstrap(columns: int, estimate: Callable[[Sequence[int]], Mapping[T, float] | None]) -> dict[T, list[float]]:
    """Replicates of every estimate over rounds drawn with replacement; ``estimate`` gets the columns of one draw."""
    random = Random(columns)
    found: dict[T, list[float]] = {}
    for _ in range(RESAMPLES):
        drawn = [random.randrange(columns) for _ in range(columns)]
        for key, value in (estimate(drawn) or {}).items():
            found.setdefault(key, []).append(value)
    return found


def plane(x: Sequence[float], y: Sequence[float], z: Sequence[float]) -> tuple[float, float, float] | None:
    """Least squares z = a x + b y + c; None where x and y are collinear."""
    mx, my, mz = statistics.fmean(x), statistics.fmean(y), statistics.fmean(z)
    dx, dy, dz = [v - mx for v in x], [v - my for v in y], [v - mz for v in z]
    xx, yy, xy = _dot(dx, dx), _dot(dy, dy), _dot(dx, dy)
    xz, yz = _dot(dx, dz), _dot(dy, dz)
    determinant = xx * yy - xy * xy
    if determinant <= 1e-9 * max(xx * yy, 1e-30):
        return None
    a = (xz * yy - yz * xy) / determinant
    b = (yz * xx - xz * xy) / determinant
    return a, b, mz - a * mx - b * my


def slope(x: Sequence[float], z: Sequence[float]) -> float | None:
    """The median of the slopes between all pairs of points that differ in x (Theil and Sen); None where none do."""
    pairs = [
        (z[j] - z[i]) / (x[j] - x[i]) for i in range(len(x)) for j in range(i + 1, len(x)) if abs(x[j] - x[i]) > 1e-9
    ]
    return statistics.median(pairs) if pairs else None


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's; 1 where one of them does not vary, as they cannot be told apart then either."""
    mx, my = statistics.fmean(x), statistics.fmean(y)
    dx, dy = [v - mx for v in x], [v - my for v in y]
    scale = math.sqrt(_dot(dx, dx) * _dot(dy, dy))
    return _dot(dx, dy) / scale if scale > 1e-12 else 1.0


def _dot(x: Sequence[float], y: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True))

from __future__ import annotations

import math
import random

import pytest

from roofline.measure import stats


def test_interval_of_the_median_by_hand() -> None:
    # n = 7: P(all above or below) = 2/128 = 1.6 %, with the next rank 12.5 %: only the extremes cover 95 %
    assert stats.median_interval([5, 1, 4, 2, 7, 3, 6]) == (4, 1, 7)
    # n = 9: ranks 2 and 8 leave out 2 (1 + 9) / 512 = 3.9 %
    assert stats.median_interval(range(1, 10)) == (5, 2, 8)
    assert stats.median_interval([3.0]) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize("count", [7, 20, 101])
def test_the_interval_covers_the_median_of_skewed_noise(count: int) -> None:
    rng = random.Random(1)
    inside = 0
    for _ in range(1000):
        _, low, high = stats.median_interval([rng.expovariate(1.0) for _ in range(count)])
        inside += low <= math.log(2) <= high
    assert inside / 1000 >= 0.94


def test_polish_finds_row_effects_under_drift_and_outliers() -> None:
    rng = random.Random(2)
    rows, columns = [0.0, 0.7, 1.4, -0.7], [0.0] * 5 + [0.7] * 6  # the machine halves its speed midway
    table = [[row + column + rng.gauss(0, 0.01) for column in columns] for row in rows]
    table[1][3] += 2.0
    table[2][7] += 2.0
    effects = stats.polish(table)
    assert [effect - effects[0] for effect in effects] == pytest.approx(rows, abs=0.02)


def test_polish_leaves_out_empty_cells_and_rows() -> None:
    effects = stats.polish([[1.0, None, 3.0], [2.0, 9.0, 4.0], [None, None, None]])
    assert effects[2] is None
    assert effects[1] - effects[0] == pytest.approx(1.0)
    assert stats.polish([]) == []


def test_plane_is_exact_and_refuses_collinear_points() -> None:
    x, y = [0.0, 1.0, 2.0, 0.0, 1.0], [0.0, 0.0, 1.0, 2.0, 2.0]
    z = [0.3 * a + 0.9 * b - 4 for a, b in zip(x, y, strict=True)]
    assert stats.plane(x, y, z) == pytest.approx((0.3, 0.9, -4.0))
    assert stats.plane(x, [2 * a + 1 for a in x], z) is None
    assert stats.plane([1.0, 1.0], [2.0, 2.0], [0.0, 1.0]) is None


def test_slope_is_not_moved_by_one_point() -> None:
    x = [0.0, 1.0, 2.0, 3.0, 4.0]
    assert stats.slope(x, [0.0, 1.0, 2.0, 9.0, 4.0]) == pytest.approx(1.0)
    assert stats.slope([1.0, 1.0], [2.0, 3.0]) is None


def test_what_does_not_vary_cannot_be_told_apart() -> None:
    assert stats.correlation([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) == pytest.approx(1.0)
    assert stats.correlation([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]) == 1.0
    assert stats.correlation([0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]) == pytest.approx(0.0)


def test_bootstrap_widens_with_noise_and_repeats_itself() -> None:
    def spread(values):
        drawn = stats.bootstrap(len(values), lambda columns: {"mean": sum(values[i] for i in columns) / len(values)})
        low, high = stats.percentile_interval(drawn["mean"])
        return high - low

    calm, wild = [1.0 + 0.01 * (i % 3) for i in range(12)], [1.0 + 0.5 * (i % 3) for i in range(12)]
    assert spread(calm) < spread(wild)
    assert spread(wild) == spread(wild)

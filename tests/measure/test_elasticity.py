from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from roofline.measure import elasticity, thresholds
from roofline.measure.elasticity import Point, choose, neighbours, read
from roofline.measure.runner import predict
from roofline.measure.timer import Sample
from roofline.ops import OPS, Activation, Attention, Linear
from roofline.ops.base import Op
from roofline.results.run import Elasticity
from tests.measure.machines import LAUNCH, ceilings, seconds

GEMV = Linear(tokens=1, in_features=4096, out_features=4096)
GEMM = Linear(tokens=2048, in_features=2048, out_features=2048)
ACTIVATION = Activation(tokens=4096, features=4096, function="relu")


def chosen(op: Op, affordable: Callable[..., bool] = lambda points: True) -> list[elasticity.Neighbour]:
    known = ceilings()
    return choose(predict(op, known), neighbours(op), lambda changed: predict(changed, known), affordable)


def timed(
    op: Op,
    time: Callable[[Op], float] = seconds,
    *,
    rounds: int = 12,
    noise: float = 0.02,
    drift: float = 0.0,
    disturbed: Callable[[int, int], bool] = lambda row, column: False,
    hot: tuple[int, ...] = (),
) -> Elasticity:
    """What ``read`` makes of ``op`` and the neighbours that it chooses, timed by a law with noise."""
    rng = random.Random(7)
    known = ceilings()
    shapes = [(op, "", 1.0), *((n.op, n.field, n.factor) for n in chosen(op))]
    points = [Point.of(predict(shape, known), field, factor) for shape, field, factor in shapes]
    rows = []
    for row, (shape, *_) in enumerate(shapes):
        samples = []
        for column in range(rounds):
            slow = 1 + drift * (column >= rounds // 2)
            shaken = disturbed(row, column)
            value = time(shape) * slow * math.exp(rng.gauss(0, noise)) * (3 if shaken else 1)
            samples.append(Sample(value, shaken))
        rows.append(samples)
    return read(points, rows, LAUNCH, hot=[index in hot for index in range(len(points))])


# neighbours ----------------------------------------------------------------------------------------------------------


def test_neighbours_are_the_op_with_one_size_doubled_quadrupled_halved_or_quartered() -> None:
    op = Linear(tokens=1, in_features=64, out_features=64)
    single = {(n.field, n.factor): n.op for n in neighbours(op) if "/" not in n.field}
    assert set(single) == {
        ("tokens", 2), ("tokens", 4),
        *((name, factor) for name in ("in_features", "out_features") for factor in (2, 4, 0.5, 0.25)),
    }  # fmt: skip
    for (name, factor), changed in single.items():
        assert changed == op.with_(**{name: int(getattr(op, name) * factor)})


def test_two_sizes_are_changed_against_each_other_but_never_from_one() -> None:
    pairs = {(n.field, n.factor): n.op for n in neighbours(GEMM) if "/" in n.field}
    assert pairs["tokens/in_features", 4] == Linear(tokens=8192, in_features=512, out_features=2048)
    assert pairs["tokens/in_features", 4].flops == GEMM.flops
    assert not any("tokens" in n.field.split("/") and "/" in n.field for n in neighbours(GEMV))


def test_neighbours_keep_query_heads_in_whole_groups_and_head_sizes_as_they_are() -> None:
    op = Attention(heads=8, kv_heads=8, head_dim=64, queries=1, cached=1023)
    found = {(n.field, n.factor) for n in neighbours(op)}
    assert ("heads", 2) in found
    assert ("heads", 0.5) not in found  # fewer query heads than KV heads
    assert ("kv_heads", 2) not in found
    assert ("kv_heads", 0.5) in found
    assert not any(field.startswith("head_dim") for field, _ in found)
    assert ("cached", 0.5) not in found  # 511.5


@pytest.mark.parametrize("kind", sorted(OPS))
def test_neighbours_of_every_kind_are_sound_and_change_its_work(kind: str) -> None:
    from roofline.ops.base import op_fields

    values = {
        name: 64
        for name, info in op_fields(OPS[kind]).items()
        if info.kind == "size" and not info.optional and name not in ("sinks", "cached", "images", "batch")
    }
    op = OPS[kind](**values)
    op.check()
    found = neighbours(op)
    assert found
    for neighbour in found:
        neighbour.op.check()
        assert (neighbour.op.flops, neighbour.op.traffic_bytes) != (op.flops, op.traffic_bytes)


def test_chosen_shapes_stay_on_the_side_of_the_ridge() -> None:
    known = ceilings()
    for op in (GEMV, GEMM):
        base = predict(op, known)
        for neighbour in chosen(op):
            near = predict(neighbour.op, known)
            assert near.bound == base.bound
            assert not near.near_ridge


def test_chosen_shapes_part_flops_from_bytes_where_that_can_be() -> None:
    for op in (GEMV, GEMM, Attention(batch=8, heads=32, kv_heads=8, head_dim=128, queries=1, cached=4096)):
        found = timed(op)
        assert found.correlation is not None
        assert abs(found.correlation) < thresholds.MAX_CORRELATION


def test_four_times_a_size_comes_only_with_twice() -> None:
    have = {(n.field, n.factor) for n in chosen(GEMV)}
    for field, factor in have:
        if factor in (4, 0.25):
            assert (field, math.sqrt(factor)) in have


def test_shapes_that_cannot_be_afforded_are_not_chosen() -> None:
    base = predict(GEMM, ceilings()).floor_s
    small = chosen(GEMM, lambda points: sum(point.floor_s for point in points) <= base)
    assert small
    assert all(neighbour.factor < 1 for neighbour in small)
    assert chosen(GEMM, lambda points: False) == []


# the fit -------------------------------------------------------------------------------------------------------------


def test_a_memory_bound_op_follows_bytes() -> None:
    found = timed(GEMV)
    assert found.bytes is not None
    assert found.flops is not None
    assert found.bytes.value == pytest.approx(1, abs=0.05)
    assert found.flops.value == pytest.approx(0, abs=0.05)
    assert found.bytes.low <= found.bytes.value <= found.bytes.high


def test_a_compute_bound_op_follows_flops() -> None:
    found = timed(GEMM)
    assert found.bytes is not None
    assert found.flops is not None
    assert found.flops.value == pytest.approx(1, abs=0.1)
    assert found.bytes.value == pytest.approx(0, abs=0.15)


def test_a_machine_that_halves_its_speed_midway_changes_nothing() -> None:
    found = timed(GEMV, drift=1.0)
    assert found.bytes is not None
    assert found.bytes.value == pytest.approx(1, abs=0.05)


def test_disturbed_samples_change_nothing() -> None:
    found = timed(GEMV, disturbed=lambda row, column: (row + column) % 3 == 0)
    assert found.bytes is not None
    assert found.bytes.value == pytest.approx(1, abs=0.05)
    assert timed(GEMV, disturbed=lambda row, column: True).bytes is not None  # all alike: better than nothing


def test_more_noise_means_wider_intervals() -> None:
    calm, wild = timed(GEMV, noise=0.01), timed(GEMV, noise=0.2)
    assert calm.bytes is not None
    assert calm.slope is not None
    assert wild.slope is not None
    assert wild.slope.high - wild.slope.low > calm.slope.high - calm.slope.low


def test_overhead_answers_to_nothing() -> None:
    found = timed(GEMV, lambda op: 1e-3)
    assert found.flops is not None
    assert found.bytes is not None
    assert max(abs(found.flops.value), abs(found.bytes.value)) < 0.1


def test_flops_and_bytes_that_move_together_leave_one_slope() -> None:
    found = timed(ACTIVATION)
    assert found.flops is None
    assert found.bytes is None
    assert found.correlation == pytest.approx(1.0)
    assert found.slope is not None
    assert found.slope.value == pytest.approx(1.0, abs=0.05)


def test_a_kernel_that_switches_is_cut_off() -> None:
    """One token runs a GEMV, two or more a GEMM that takes thrice the time: seen with fp32 in MKL."""
    found = timed(GEMV, lambda op: seconds(op) * (1 if op.tokens == 1 else 3))
    assert found.note is not None
    assert "tokens x2" in found.note
    assert found.flops is None  # what is left moves together
    assert found.slope is not None
    assert found.slope.value == pytest.approx(1.0, abs=0.05)


def test_a_size_at_which_time_falls_is_another_kernel() -> None:
    found = timed(GEMV, lambda op: seconds(op) * (1 if op.tokens == 1 else 0.4))
    assert found.note is not None
    assert "another kernel" in found.note


def test_points_in_another_cache_class_are_left_out() -> None:
    shapes = 1 + len(chosen(GEMV))
    found = timed(GEMV, hot=(1, 2))
    assert found.points <= shapes - 2
    assert timed(GEMV, hot=tuple(range(1, shapes))).note == "too few shapes that change its floor could be timed"


def test_a_thousand_rounds_are_read_like_a_few() -> None:
    few, many = timed(GEMV, rounds=12), timed(GEMV, rounds=1000)
    assert few.bytes is not None
    assert many.bytes is not None
    assert many.bytes.value == pytest.approx(1, abs=0.01)
    assert many.bytes.high - many.bytes.low < few.bytes.high - few.bytes.low
    assert len(elasticity._condensed([1.0] * 1000)) <= elasticity.COLUMNS
    assert elasticity._condensed([1.0, None, 3.0]) == [1.0, None, 3.0]


def test_no_times_are_no_evidence() -> None:
    point = Point("", 1.0, 1.0, 1.0, 1.0)
    found = read([point], [[Sample(0.0), Sample(-1.0)]], LAUNCH)
    assert found.slope is None
    assert found.note is not None

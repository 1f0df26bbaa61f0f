from __future__ import annotations

import pytest

from roofline.analysis import MemoryCeiling, Rate, analyse
from roofline.errors import RooflineError
from roofline.ops import Attention, Embedding, Linear, Residual, RMSNorm, group, node_of
from tests.fakes import FakeDevice


def one(op, **device):
    return analyse(node_of("op", op), FakeDevice(**device))


def test_floor_is_the_largest_time_and_names_its_ceiling():
    linear = Linear(tokens=1, in_features=100, out_features=100)
    prediction = one(linear)
    op = prediction.ops[0]
    assert op.times == {"hbm": linear.traffic_bytes / 10, "tensor:bf16": 20000 / 1000}
    assert (op.bound, op.limiter, op.floor_s) == ("memory", "hbm", linear.traffic_bytes / 10)
    assert prediction.floor_s == prediction.lower_bound_s == op.floor_s
    assert op.headroom == pytest.approx(op.times["hbm"] / 20)


def test_compute_bound_on_the_other_side_of_the_ridge():
    op = one(Linear(tokens=1000, in_features=1000, out_features=1000)).ops[0]
    assert (op.bound, op.limiter) == ("compute", "tensor:bf16")
    assert op.intensity > op.ridge == 100
    assert not op.near_ridge


def test_a_tie_goes_to_memory():
    linear = Linear(tokens=8, in_features=8, out_features=8)
    bandwidth = linear.traffic_bytes / (linear.flops / 1000)
    op = one(linear, bandwidth=bandwidth).ops[0]
    assert op.times["hbm"] == op.times["tensor:bf16"]
    assert (op.bound, op.limiter, op.co_limiters) == ("memory", "hbm", ("tensor:bf16",))
    assert op.near_ridge


@pytest.mark.parametrize(("factor", "near"), [(1.9, True), (2.1, False), (1 / 1.9, True), (1 / 2.1, False)])
def test_near_the_ridge_is_a_factor_of_two(factor, near):
    linear = Linear(tokens=8, in_features=8, out_features=8)
    balanced = linear.traffic_bytes / (linear.flops / 1000)
    assert one(linear, bandwidth=balanced * factor).ops[0].near_ridge is near


def test_special_evaluations_limit_but_are_not_flops():
    attention = Attention(heads=1, head_dim=4, queries=64, mask="full", kv_cache=False)
    op = one(attention, bandwidth=1e9).ops[0]
    scores = 64 * 64
    assert op.limiter == "special:fp32"
    assert op.bound == "compute"
    assert op.flops == 2 * scores * 8 + 3 * scores
    # the ridge compares FLOPs per byte, so the slowest FLOP engine sets it: 3 scores / 100 against 16 scores / 1000
    assert op.ridge == pytest.approx(100 / 1e9)


def test_an_unknown_vector_rate_leaves_that_ceiling_out():
    op = one(RMSNorm(tokens=4, hidden_size=4), rates={}).ops[0]
    assert set(op.times) == {"hbm"}
    assert op.ridge is None
    assert op.headroom is None


def test_a_missing_matrix_engine_is_an_error():
    with pytest.raises(RooflineError, match="no tensor:fp8"):
        one(Linear(tokens=1, in_features=8, out_features=8, dtype="fp8"))


def test_an_op_without_arithmetic_has_no_ridge():
    op = one(Embedding(tokens=2, vocab_size=10, hidden_size=4)).ops[0]
    assert (op.flops, op.intensity, op.ridge, op.bound) == (0, 0, None, "memory")


def test_the_floor_of_a_tree_is_the_sum_and_shares_decide_the_bound():
    small = Linear(tokens=1, in_features=64, out_features=64)
    large = Linear(tokens=999, in_features=500, out_features=500)
    tree = group("step", node_of("small", small, repeat=3), node_of("large", large))
    prediction = analyse(tree, FakeDevice())
    floors = {op.name: op.floor_s for op in prediction.ops}
    assert prediction.floor_s == pytest.approx(3 * floors["small"] + floors["large"])
    assert prediction.shares["tensor:bf16"] == pytest.approx(floors["large"] / prediction.floor_s)
    assert prediction.shares["hbm"] == pytest.approx(3 * floors["small"] / prediction.floor_s)
    assert list(prediction.shares) == ["tensor:bf16", "hbm"]
    assert sum(prediction.shares.values()) == pytest.approx(1)
    assert sum(prediction.share(op) for op in prediction.ops) == pytest.approx(1)
    assert prediction.bound == "compute"


def test_nothing_beats_the_lower_bound_so_it_is_at_most_the_floor():
    norm = node_of("norm", RMSNorm(tokens=64, hidden_size=64, residual=True))
    linear = node_of("linear", Linear(tokens=64, in_features=64, out_features=64))
    layer = group("layer", norm, linear, node_of("add", Residual(tokens=64, hidden_size=64)), repeat=5)
    prediction = analyse(group("step", layer), FakeDevice())
    assert prediction.lower_bound_s < prediction.floor_s


def test_repeated_layers_have_their_own_weights_and_shared_steps_do_not():
    linear = Linear(tokens=1, in_features=8, out_features=8)
    layers = analyse(group("all", node_of("linear", linear), repeat=4), FakeDevice())
    steps = analyse(group("all", node_of("linear", linear), repeat=4, shared=True), FakeDevice())
    assert layers.resident["weight"] == 4 * steps.resident["weight"] == 4 * 8 * 8 * 2
    assert layers.floor_s == steps.floor_s
    assert layers.lower_bound_s > steps.lower_bound_s


def test_capacity_decides_whether_it_fits():
    linear = Linear(tokens=1, in_features=10, out_features=10)
    needed = one(linear).resident_bytes
    assert needed == linear.resident_bytes
    assert one(linear, capacity=needed).fits is True
    assert one(linear, capacity=needed - 1).fits is False
    assert one(linear, capacity=None).fits is None


def test_overhead_counts_every_launch():
    tree = group("step", node_of("a", Linear(tokens=1, in_features=8, out_features=8), repeat=3))
    prediction = analyse(tree, FakeDevice(launch_s=0.5))
    assert prediction.overhead_s == 1.5
    assert prediction.expected_s == prediction.floor_s + 1.5
    assert analyse(tree, FakeDevice()).expected_s is None


class TestMemoryCeiling:
    level = MemoryCeiling("dram", ((0.0, Rate(100, 90, 110)), (0.5, Rate(50, 45, 55)), (1.0, Rate(25, 20, 30))), 10**9)

    def test_pure_mixes_are_the_measured_points(self):
        assert self.level.rate(8, 0).value == 100
        assert self.level.rate(4, 4).value == 50
        assert self.level.rate(0, 8).value == 25

    def test_between_points_times_add(self):
        rate = self.level.rate(3, 1)  # half way between reading and copying
        assert rate.value == pytest.approx(2 / (1 / 100 + 1 / 50))
        assert rate.low < rate.value < rate.high

    def test_best_is_the_fastest_mix(self):
        assert self.level.best == 100

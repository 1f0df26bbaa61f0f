from __future__ import annotations

from dataclasses import replace

import pytest

from roofline.measure import thresholds
from roofline.measure.runner import predict
from roofline.measure.verdict import Evidence, fractions, judge
from roofline.ops import Activation, Attention, Linear, Residual
from roofline.ops.base import Op
from roofline.results.run import Elasticity, Estimate
from tests.measure import machines
from tests.measure.machines import LAUNCH, ceilings, seconds
from tests.measure.test_elasticity import timed

GEMV = Linear(tokens=1, in_features=4096, out_features=4096)
GEMM = Linear(tokens=2048, in_features=4096, out_features=4096)
RESIDUAL = Residual(tokens=4096, hidden_size=4096)


def exactly(value: float) -> Estimate:
    return Estimate(value, value - 0.01, value + 0.01)


BYTES = Elasticity(6, 0.5, flops=exactly(0.0), bytes=exactly(1.0))
FLOPS = Elasticity(6, 0.5, flops=exactly(1.0), bytes=exactly(0.0))
LINE = Elasticity(6, 1.0, slope=exactly(1.0))


def evidence(op: Op = GEMV, fraction: float = 0.8, elasticity: Elasticity | None = BYTES, **changes) -> Evidence:
    """``op`` at a fraction of its floor on the made-up machine."""
    known = ceilings()
    prediction = predict(op, known)
    made = Evidence(
        prediction=prediction,
        least_floor_s=predict(op, known.upper()).floor_s,
        time_s=prediction.floor_s / fraction,
        launch_s=LAUNCH,
        kind="cpu",
        cold=True,
        elasticity=elasticity,
    )
    return replace(made, **changes)


def test_confirmed_takes_the_right_slopes_and_the_roof() -> None:
    memory = judge(evidence())
    assert (memory.verdict, memory.bound) == ("confirmed", "memory")
    assert "80 % of its memory roof" in memory.reason
    compute = judge(evidence(GEMM, elasticity=FLOPS))
    assert (compute.verdict, compute.bound) == ("confirmed", "compute")


def test_the_right_slopes_at_a_low_fraction_are_inefficient() -> None:
    found = judge(evidence(fraction=0.3))
    assert (found.verdict, found.bound) == ("inefficient", "memory")
    assert "30 % of its memory roof" in found.reason


@pytest.mark.parametrize(("kind", "verdict"), [("cpu", "confirmed"), ("cuda", "inefficient")])
def test_a_gpu_must_come_nearer_to_its_roof_than_a_cpu(kind: str, verdict: str) -> None:
    assert judge(evidence(fraction=0.55, kind=kind)).verdict == verdict


def test_slopes_of_the_other_side_contradict() -> None:
    found = judge(evidence(fraction=0.2, elasticity=FLOPS))
    assert (found.verdict, found.bound) == ("contradicted", "compute")
    assert "predicted memory bound" in found.reason


def test_slopes_of_other_shapes_do_not_contradict_an_op_that_sits_on_its_roof() -> None:
    """Its neighbours then ran another kernel: the op's own time is the better evidence."""
    assert judge(evidence(fraction=0.9, elasticity=replace(FLOPS, slope=exactly(1.0)))).verdict == "confirmed"


def test_wide_intervals_decide_nothing() -> None:
    wide = Elasticity(6, 0.5, flops=Estimate(1.0, 0.2, 1.8), bytes=exactly(0.0))
    assert judge(evidence(fraction=0.2, elasticity=wide)).verdict == "inefficient"


def test_nothing_is_contradicted_on_a_busy_machine() -> None:
    found = judge(evidence(fraction=0.2, elasticity=FLOPS, disturbed=0.9))
    assert found.verdict == "inefficient"
    assert "other work ran" in found.reason


def test_one_slope_and_one_roof_confirm_where_flops_and_bytes_move_together() -> None:
    found = judge(evidence(RESIDUAL, elasticity=LINE))
    assert (found.verdict, found.bound) == ("confirmed", "memory")


@pytest.mark.parametrize("slope", [0.5, 1.4])
def test_a_slope_that_is_not_proportional_confirms_nothing(slope: float) -> None:
    found = judge(evidence(RESIDUAL, elasticity=Elasticity(6, 1.0, slope=exactly(slope))))
    assert found.verdict == "inefficient"
    assert found.bound is None
    assert f"{slope:.2f}" in found.reason


def test_proportional_but_on_no_roof_is_inefficient() -> None:
    assert judge(evidence(RESIDUAL, fraction=0.3, elasticity=LINE)).verdict == "inefficient"


@pytest.mark.parametrize("nothing", [None, Elasticity(1, note="too few shapes")])
def test_without_neighbours_the_bound_is_not_judged(nothing: Elasticity | None) -> None:
    on_its_roof = judge(evidence(fraction=0.97, elasticity=nothing))
    assert (on_its_roof.verdict, on_its_roof.bound) == ("skipped", None)
    assert "--budget" in on_its_roof.reason
    low = judge(evidence(fraction=0.2, elasticity=nothing))
    assert (low.verdict, low.bound) == ("inefficient", None)
    assert "not measured" in low.reason


def test_no_reason_speaks_of_more_than_the_whole_roof() -> None:
    for fraction in (1.02, 1.08):
        assert "100 % of its memory roof" in judge(evidence(fraction=fraction)).reason


def test_a_time_under_the_fastest_ceiling_is_above_roof_with_suspects() -> None:
    found = judge(evidence(fraction=1.2))
    assert found.verdict == "above-roof"
    assert "suspects" in found.reason


def test_within_the_spread_of_the_ceiling_nothing_is_above_roof() -> None:
    assert judge(evidence(fraction=1.05)).verdict == "confirmed"


def test_hot_operands_are_cache_resident_never_above_roof() -> None:
    assert judge(evidence(fraction=3.0, cold=False)).verdict == "cache-resident"
    assert judge(evidence(fraction=0.5, cold=False)).verdict == "cache-resident"
    assert judge(evidence(GEMM, elasticity=FLOPS, cold=False)).verdict == "confirmed"  # it does not wait for memory


def test_near_the_ridge_nothing_is_judged() -> None:
    near = Linear(tokens=16, in_features=4096, out_features=4096)
    found = judge(evidence(near, elasticity=FLOPS))
    assert found.verdict == "near-ridge"
    assert found.bound is None


def test_a_few_launches_are_overhead() -> None:
    found = judge(evidence(time_s=2 * LAUNCH, least_floor_s=0.0))
    assert (found.verdict, found.bound) == ("overhead-bound", "overhead")


@pytest.mark.parametrize(
    "flat", [Elasticity(6, 0.5, flops=exactly(0.1), bytes=exactly(0.1)), Elasticity(6, 1.0, slope=exactly(0.1))]
)
def test_a_time_that_answers_to_nothing_is_overhead(flat: Elasticity) -> None:
    assert judge(evidence(fraction=0.05, elasticity=flat)).verdict == "overhead-bound"


def test_a_stand_in_is_not_judged_but_its_time_must_be_possible() -> None:
    assert judge(evidence(fraction=0.1, surrogate="three kernels")).verdict == "surrogate"
    assert judge(evidence(fraction=2.0, surrogate="three kernels")).verdict == "above-roof"


def test_exponentials_hold_an_activation_back() -> None:
    silu = Activation(tokens=4096, features=4096, dtype="fp32")
    known = ceilings(special=1e9)
    prediction = predict(silu, known)
    found = judge(evidence(elasticity=LINE, prediction=prediction, time_s=prediction.floor_s / 0.9, least_floor_s=0.0))
    assert (found.verdict, found.bound) == ("confirmed", "compute")


def test_fractions_are_of_both_roofs() -> None:
    prediction = predict(GEMM, ceilings())
    reached = fractions(prediction, 2 * prediction.floor_s)
    assert reached["compute"] == pytest.approx(0.5)
    assert 0 < reached["memory"] < 0.5


# Wrong declarations, timed by what the machine really does ------------------------------------------------------------


def by_its_times(op: Op, **options):
    known = ceilings()
    return judge(
        Evidence(
            prediction=predict(op, known),
            least_floor_s=predict(op, known.upper()).floor_s,
            time_s=seconds(op, **options),
            launch_s=LAUNCH,
            kind="cpu",
            cold=True,
            elasticity=timed(op, lambda shape: seconds(shape, **options)),
        )
    )


@pytest.mark.parametrize("efficiency", [0.6, 0.8, 1.0])
def test_right_declarations_are_confirmed_by_true_times(efficiency: float) -> None:
    for op, bound in ((GEMV, "memory"), (GEMM, "compute"), (RESIDUAL, "memory")):
        found = by_its_times(op, efficiency=efficiency)
        assert (found.verdict, found.bound) == ("confirmed", bound), found.reason


def test_bytes_overstated_fourfold_are_above_roof() -> None:
    op = machines.Overstated(tokens=1, in_features=4096, out_features=4096)
    assert by_its_times(op).verdict == "above-roof"


def test_bytes_of_the_wrong_form_are_contradicted() -> None:
    """Bytes that ignore the KV heads make decode attention look compute bound; its time follows the real bytes."""
    op = machines.WrongForm(batch=8, heads=64, kv_heads=32, head_dim=128, queries=1, cached=4096)
    assert predict(op, ceilings()).bound == "compute"
    found = by_its_times(op)
    assert (found.verdict, found.bound) == ("contradicted", "memory"), found.reason
    right = Attention(batch=8, heads=64, kv_heads=32, head_dim=128, queries=1, cached=4096)
    assert by_its_times(right).verdict == "confirmed"


def test_every_threshold_that_a_verdict_rests_on_leaves_room_on_both_sides() -> None:
    assert thresholds.NEGLIGIBLE < thresholds.DOMINANT
    assert thresholds.PROPORTIONAL[0] < 1 < thresholds.PROPORTIONAL[1]
    assert all(fraction >= thresholds.OFF_ROOF for fraction in thresholds.ON_ROOF.values())

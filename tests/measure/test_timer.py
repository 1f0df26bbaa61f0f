from __future__ import annotations

import gc

import pytest

from roofline.errors import RooflineError
from roofline.measure import thresholds, timer
from roofline.measure.timer import Sample, Sampler, copies_needed, standing, time_op
from tests.measure.fakes import FakeCall, FakeDevice


def time(noise=(1.0,), *, seconds=0.01, budget_s=10.0, **device):
    return time_op([FakeCall(seconds)], FakeDevice(noise=noise, **device), budget_s)


def test_stops_as_soon_as_the_median_is_tight() -> None:
    seen = time(noise=(1.0, 1.001, 0.999))
    assert seen.stop_reason.startswith("tight")
    assert len(seen.samples_s) == thresholds.MIN_SAMPLES
    assert seen.low_s <= seen.median_s <= seen.high_s
    assert seen.median_s == pytest.approx(0.01, rel=1e-3)


def test_stops_when_more_samples_do_not_help() -> None:
    seen = time(noise=(1.0, 2.0), budget_s=1e6)  # two speeds: the interval of the median never narrows
    assert seen.stop_reason.startswith("plateau")
    assert len(seen.samples_s) >= thresholds.PLATEAU_SAMPLES


def test_stops_when_the_budget_is_spent_and_says_so() -> None:
    seen = time(noise=(1.0, 1.5, 2.0, 1.2), seconds=1.0, budget_s=12.0)
    assert seen.stop_reason.startswith("budget")
    assert len(seen.samples_s) >= thresholds.MIN_SAMPLES


def test_a_long_op_may_overdraw_only_a_little() -> None:
    device = FakeDevice(noise=(1.0, 1.5, 2.0))
    seen = time_op([FakeCall(5.0)], device, budget_s=10.0)
    assert len(seen.samples_s) < thresholds.MIN_SAMPLES
    assert device.clock <= 10.0 * thresholds.GRACE + 10.0


def test_every_stop_rule_knows_both_kinds_of_device() -> None:
    for kind in ("cpu", "cuda"):
        assert time(kind=kind).stop_reason.startswith("tight")


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_clock_that_stands_still_or_runs_back_is_an_error_and_divides_nothing(seconds: float) -> None:
    with pytest.raises(RooflineError) as caught:
        time(seconds=seconds)
    assert caught.value.code == "no-time"


def test_a_coarse_clock_is_met_with_larger_batches() -> None:
    ticks = FakeDevice()
    plain = ticks.sample

    def coarse(calls):
        sample = plain(calls)
        return Sample(int(sample.seconds / 1e-4) * 1e-4)  # ticks of 0.1 ms, an op of 1 us

    ticks.sample = coarse
    seen = time_op([FakeCall(1e-6)], ticks, budget_s=1.0)
    assert seen.median_s == pytest.approx(1e-6, rel=0.2)
    assert seen.calls_per_sample >= 100


def test_short_calls_share_a_sample_long_enough_for_the_clock() -> None:
    seen = time(seconds=2e-6)
    assert seen.calls_per_sample * 2e-6 >= 1e-3
    assert seen.median_s == pytest.approx(2e-6)


def test_copies_take_turns() -> None:
    copies = [FakeCall(0.01) for _ in range(3)]
    time_op(copies, FakeDevice(noise=(1.0, 1.1, 1.3)), budget_s=0.6)
    runs = [copy.run for copy in copies]
    assert min(runs) >= 3
    assert max(runs) - min(runs) <= 1


def test_a_batch_goes_on_where_the_last_one_stopped() -> None:
    copies = [FakeCall(1e-4, op=index) for index in range(3)]
    sampler = Sampler(copies, FakeDevice())
    sampler.batch = 4
    order = [call.op for _ in range(3) for call in sampler._calls()]
    assert order == [0, 1, 2] * 4


def test_no_garbage_is_collected_while_timing_and_the_collector_is_put_back() -> None:
    states = []
    call = FakeCall(0.01)
    device = FakeDevice(law=lambda call: states.append(gc.isenabled()) or call.seconds)
    assert gc.isenabled()
    time_op([call], device, budget_s=1.0)
    assert states
    assert not any(states)
    assert gc.isenabled()


def test_disturbed_samples_are_kept_and_counted_but_do_not_stand_for_the_op() -> None:
    seen = time(noise=(1.0, 1.0, 3.0), disturbed=(False, False, True), budget_s=0.4)
    assert seen.disturbed == sum(s > 0.02 for s in seen.samples_s) > 0
    assert seen.time_s == pytest.approx(0.01)


def test_with_too_few_quiet_samples_the_fastest_stands() -> None:
    samples = [Sample(3.0, True), Sample(2.0, True), Sample(4.0), Sample(2.5, True)]
    assert standing(samples) == 2.0


def test_copies_span_the_cache_or_are_called_hot() -> None:
    assert copies_needed(100, 1000, 10**9) == (10, True)
    assert copies_needed(5000, 1000, 10**9) == (1, True)
    assert copies_needed(100, 1000, 450) == (4, False)  # memory
    assert copies_needed(1, 10**6, 10**9) == (thresholds.MAX_COPIES, False)
    assert copies_needed(0, 1000, 10**9)[1] is False


def test_a_doubtful_cache_is_spanned_up_to_a_bound() -> None:
    mib = 1 << 20
    assert timer.cold_span(32 * mib, 32 * mib) == 160 * mib
    assert timer.cold_span(300 * mib, 2 * mib) == thresholds.DOUBTFUL_SPAN
    assert timer.cold_span(300 * mib, 300 * mib) == 1500 * mib

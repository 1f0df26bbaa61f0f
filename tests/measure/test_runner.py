from __future__ import annotations

from types import SimpleNamespace

import pytest

from roofline.errors import RooflineError
from roofline.measure import runner, thresholds
from roofline.measure.runner import Skipped, elasticities, predict, time_op
from roofline.measure.timer import summary
from roofline.ops import Activation, Embedding, Linear
from tests.measure.fakes import FakeCall, FakeDevice
from tests.measure.machines import FakeCalibration, ceilings, seconds

GEMV = Linear(tokens=1, in_features=4096, out_features=4096)


class Kernels:
    """Stands for ``roofline.kernels``: calls that know their op, and a note of the operands that were made."""

    def __init__(self, surrogate: str | None = None, refused: str = "") -> None:
        self.kernel = SimpleNamespace(name="fake", surrogate=surrogate)
        self.refused = refused
        self.made: list[tuple[object, int, tuple[str, ...]]] = []

    def choose(self, op, device, name=None, *, compile=True):
        return self.kernel

    def availability(self, kernel, op, device):
        return self.refused or None

    def prepare(self, op, device, *, kernel=None, seed=0, given=None):
        self.made.append((op, seed, tuple(given or ())))
        made = {tensor.name: SimpleNamespace(nbytes=tensor.resident_bytes) for tensor in op.tensors()}
        operands = {name: (given or {}).get(name, operand) for name, operand in made.items()}
        return SimpleNamespace(call=FakeCall(op=op), operands=operands, kernel=kernel)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Kernels:
        for name in ("choose", "availability", "prepare"):
            monkeypatch.setattr(runner, name, getattr(self, name))
        return self


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    return Kernels().install(monkeypatch)


def machine(**device) -> FakeCalibration:
    return FakeCalibration(FakeDevice(law=lambda call: seconds(call.op), **device), ceilings())


def test_an_op_is_timed_beside_its_neighbours_round_by_round(kernels: Kernels) -> None:
    calibration = machine(noise=(1.0, 1.02, 0.98, 1.01))
    seen = time_op(GEMV, calibration, 30.0)
    assert len(seen.shapes) > thresholds.MIN_POINTS
    (rounds,) = {len(row) for row in seen.rounds}
    assert rounds >= thresholds.ENOUGH_ROUNDS
    assert len(seen.samples) == rounds + thresholds.MIN_SAMPLES
    assert seen.rounds[0] == seen.samples[-rounds:]
    assert seen.shapes[0].op == GEMV
    found = elasticities(seen, calibration.known)
    assert found.bytes is not None
    assert found.bytes.value == pytest.approx(1.0, abs=0.1)


def test_ceilings_are_touched_before_between_and_after(kernels: Kernels) -> None:
    calibration = machine(noise=(1.0, 2.0, 3.0))
    slow = Linear(tokens=1, in_features=65536, out_features=65536)
    seen = time_op(slow, calibration, 20.0)
    assert len(seen.touches) == len(calibration.touched) >= 3
    assert all(names == calibration.touched[0] for names in calibration.touched)


def test_operands_rotate_over_copies_that_span_the_cache(kernels: Kernels) -> None:
    small = Linear(tokens=1, in_features=256, out_features=256)
    seen = time_op(small, machine(), 5.0)
    held = small.traffic_bytes * seen.copies
    assert held >= thresholds.COLD_COPIES * (1 << 20) > held - small.traffic_bytes
    assert seen.cold
    assert len({seed for op, seed, _ in kernels.made if op == small}) == seen.copies


def test_copies_of_a_gather_share_the_table_that_they_pick_from(kernels: Kernels) -> None:
    op = Embedding(tokens=64, vocab_size=100_000, hidden_size=256)
    limit = 2 * op.resident_bytes
    seen = time_op(op, machine(memory_bytes=limit), 10.0)
    assert seen.cold
    assert seen.copies * op.traffic_bytes >= thresholds.COLD_COPIES * (1 << 20)
    made = [(seed, given) for made_op, seed, given in kernels.made if made_op == op]
    assert made[0] == (0, ())
    assert all(given == ("weight",) for _, given in made[1:])
    assert len({seed for seed, _ in made}) == seen.copies  # other rows each time


def test_what_cannot_be_kept_out_of_the_cache_is_called_hot(kernels: Kernels) -> None:
    tiny = Linear(tokens=1, in_features=16, out_features=16)
    seen = time_op(tiny, machine(), 5.0)
    assert not seen.cold
    assert seen.copies == 1


def test_memory_bounds_the_copies_and_the_neighbours(kernels: Kernels) -> None:
    limit = 3 * GEMV.resident_bytes
    seen = time_op(GEMV, machine(memory_bytes=limit, caches=(1 << 10, 40 << 20)), 30.0)
    assert seen.copies * GEMV.resident_bytes <= limit
    held = sum(shape.op.resident_bytes * (seen.copies if index == 0 else 1) for index, shape in enumerate(seen.shapes))
    assert held <= limit


def test_what_does_not_fit_memory_is_skipped_before_anything_is_made(kernels: Kernels) -> None:
    with pytest.raises(Skipped, match="--max-memory"):
        time_op(GEMV, machine(memory_bytes=1000), 5.0)
    assert kernels.made == []


def test_the_buffers_of_the_ceilings_are_part_of_the_memory(kernels: Kernels) -> None:
    calibration = machine(memory_bytes=2 * GEMV.resident_bytes)
    calibration.held_bytes = int(1.5 * GEMV.resident_bytes)
    with pytest.raises(Skipped, match="--max-memory"):
        time_op(GEMV, calibration, 5.0)


def test_what_does_not_fit_the_budget_is_skipped_before_anything_is_made(kernels: Kernels) -> None:
    with pytest.raises(Skipped, match="--budget"):
        time_op(Linear(tokens=1 << 20, in_features=8192, out_features=8192), machine(), 1.0)
    assert kernels.made == []


def test_large_weights_are_shared_with_neighbours_and_small_ones_never(kernels: Kernels) -> None:
    time_op(GEMV, machine(), 30.0)
    shared = {op: given for op, _, given in kernels.made if given}
    weights = {op for op, given in shared.items() if "weight" in given}
    assert weights
    assert all(op.in_features == op.out_features == 4096 and op.tokens > 1 for op in weights)
    assert not any("y" in given for given in shared.values())  # what is written is never shared
    kernels.made.clear()
    time_op(Linear(tokens=1, in_features=256, out_features=256), machine(), 5.0)
    assert not any(given for _, _, given in kernels.made)  # a copy that another shape has just read is warm


def test_no_neighbours_where_they_could_not_change_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernels(surrogate="a stand-in").install(monkeypatch)
    assert len(time_op(GEMV, machine(), 5.0).shapes) == 1
    Kernels().install(monkeypatch)
    near = Linear(tokens=16, in_features=4096, out_features=4096)
    assert predict(near, ceilings()).near_ridge
    assert len(time_op(near, machine(), 5.0).shapes) == 1


def test_shapes_that_the_kernel_refuses_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Kernels(refused="only these sizes").install(monkeypatch)
    seen = time_op(GEMV, machine(), 5.0)
    assert len(seen.shapes) == 1
    assert {op for op, *_ in refusing.made} == {GEMV}
    assert elasticities(seen, ceilings()).slope is None


def test_the_budget_is_kept_on_a_slow_machine(kernels: Kernels) -> None:
    slow = Linear(tokens=1, in_features=65536, out_features=65536)  # 0.36 s
    calibration = machine(noise=(1.0, 1.7, 1.3))
    seen = time_op(slow, calibration, 6.0)
    assert seen.stop_reason.startswith("budget")
    assert calibration.device.now() <= 6.0 * thresholds.GRACE + 3


def test_an_ops_own_samples_come_before_neighbours_that_cannot_be_afforded(kernels: Kernels) -> None:
    slow = Linear(tokens=1, in_features=65536, out_features=65536)  # 0.36 s
    seen = time_op(slow, machine(), 4.0)
    assert len(seen.shapes) < thresholds.MIN_POINTS
    assert len(seen.samples) >= 3


def test_two_timings_add_up_and_lose_nothing(kernels: Kernels) -> None:
    calibration = machine(noise=(1.0, 1.01))
    first, second = time_op(GEMV, calibration, 10.0), time_op(GEMV, calibration, 10.0)
    both = first + second
    assert both.samples == first.samples + second.samples
    assert both.touches == first.touches + second.touches
    assert [len(row) for row in both.rounds] == [
        len(a) + len(b) for a, b in zip(first.rounds, second.rounds, strict=True)
    ]
    assert summary(both.samples, both.stop_reason).median_s == pytest.approx(seconds(GEMV), rel=0.02)
    assert "twice" in both.stop_reason


def test_a_kernel_that_raises_is_the_callers_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Kernels().install(monkeypatch)

    def fails(*args, **kwargs):
        raise RooflineError("no kernel", code="no-kernel")

    monkeypatch.setattr(runner, "choose", fails)
    with pytest.raises(RooflineError, match="no kernel"):
        time_op(Activation(tokens=64, features=64), machine(), 5.0)
    assert broken.made == []

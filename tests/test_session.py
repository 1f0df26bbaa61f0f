from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import jsonschema
import pytest

from roofline import session
from roofline.errors import RooflineError
from roofline.measure import cache, ceilings, runner
from roofline.measure.timer import Sample
from roofline.ops import Linear, Residual, group, node_of
from roofline.ops.tree import distinct, prune
from roofline.results.files import dumps
from roofline.results.run import RunRecord, json_schema
from tests.measure import machines
from tests.measure.fakes import FakeDevice
from tests.measure.machines import FakeCalibration, seconds

GEMV = Linear(tokens=1, in_features=4096, out_features=4096)
RESIDUAL = Residual(tokens=4096, hidden_size=4096)
WIDE = Linear(tokens=1, in_features=4096, out_features=8192)


TREE = group(
    "work",
    node_of("embed", RESIDUAL),
    group("layers", node_of("q", GEMV), node_of("k", GEMV), node_of("up", WIDE), node_of("add", RESIDUAL), repeat=3),
)


class Machine:
    """Answers ``time_op`` for the made-up machine.

    What ``faults`` names raises instead; ``second`` is the efficiency when an op is timed again; an op takes ``used``
    of its share of the budget.
    """

    def __init__(
        self, faults: dict | None = None, efficiency: float = 0.8, second: float | None = None, used: float = 0.5
    ) -> None:
        self.faults, self.efficiency, self.second, self.used = faults or {}, efficiency, second, used
        self.timed: list[tuple[object, float]] = []

    def time_op(self, op, calibration, budget_s, *, seed=0, compile=False):
        again = any(known == op for known, _ in self.timed)
        self.timed.append((op, budget_s))
        calibration.device.clock += budget_s * self.used
        runner.predict(op, calibration.ceilings())  # raises where the device lacks the engine
        if op in self.faults:
            raise self.faults[op]
        efficiency = self.second if again and self.second else self.efficiency
        samples = tuple(
            Sample(seconds(op, efficiency=efficiency) * noise) for noise in (1.0, 1.01, 0.99, 1.0, 1.0, 1.0)
        )
        return runner.OpTiming(
            kernel=SimpleNamespace(name="mm", surrogate=None),
            samples=samples,
            stop_reason="tight",
            batch=1,
            copies=3,
            shapes=(runner.Shape(op),),
            rounds=(samples,),
            touches=(calibration.touch(["memory:read"]),),
        )


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def made_up(torch, monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    """A session on a fake device whose ceilings and times are made up."""
    calibration = FakeCalibration(FakeDevice(), machines.ceilings())
    calibration.readings = {"launch": [ceilings.Reading(5e5, 4e5, "empty")]}
    calibration.measured = dict.fromkeys((*calibration.known.rates, "launch"), "2026-01-02")
    calibration.best_kernel = lambda name: "kernel"
    monkeypatch.setattr(ceilings, "calibrate", lambda *args, **kwargs: calibration)
    monkeypatch.setattr(cache, "save", lambda *args: None)
    return calibration.device


def run(made_up: FakeDevice, monkeypatch: pytest.MonkeyPatch, machine: Machine, **options) -> RunRecord:
    monkeypatch.setattr(runner, "time_op", machine.time_op)
    return session.validate(TREE, made_up, **options)


def test_equal_ops_are_timed_once_with_every_place_where_they_run() -> None:
    found = distinct(TREE)
    assert [(item.op, (item.name, *item.also), item.count) for item in found] == [
        (RESIDUAL, ("embed", "layers/add"), 4),
        (GEMV, ("layers/q", "layers/k"), 6),
        (WIDE, ("layers/up",), 3),
    ]


def test_every_distinct_op_is_predicted_timed_and_judged(made_up, monkeypatch) -> None:
    record = run(made_up, monkeypatch, Machine())
    assert record.complete
    assert [op.path for op in record.ops] == ["embed", "layers/q", "layers/up"]
    gemv = record.ops[1]
    assert gemv.count == 6
    assert gemv.also == ("layers/k",)
    assert gemv.predicted.bound == "memory"
    assert gemv.predicted.limiter == "dram"
    assert gemv.measured.time_s == pytest.approx(seconds(GEMV), rel=0.01)
    assert gemv.roof_fraction == pytest.approx(gemv.predicted.floor_s / gemv.measured.time_s)
    assert gemv.mbu == pytest.approx(0.8, rel=0.01)
    assert gemv.mfu == pytest.approx(GEMV.flops / machines.PEAK / gemv.measured.time_s)
    assert record.ops[0].mfu is None  # no matrix engine
    assert len(gemv.measured.processes[0].samples_s) == 6


def test_the_record_is_valid_and_comes_back(made_up, monkeypatch) -> None:
    record = run(made_up, monkeypatch, Machine({WIDE: ValueError("boom")}))
    data = json.loads(dumps(record.to_json()))
    jsonschema.validate(data, json_schema())
    assert RunRecord.from_json(data) == record
    assert {"memory:read", "tensor:bf16", "launch"} <= set(data["ceilings"])
    assert data["ceilings"]["launch"]["unit"] == "s"


@pytest.mark.parametrize(
    ("fault", "verdict", "reason"),
    [
        (ValueError("boom\nsecond line"), "errored", "ValueError: boom"),
        (MemoryError(), "errored", "MemoryError"),
        (runner.Skipped("it takes 2 TB"), "skipped", "it takes 2 TB"),
        (RooflineError("no kernel runs it", code="no-kernel"), "skipped", "no kernel runs it"),
        (RooflineError("the clock stands still", code="no-time"), "errored", "the clock stands still"),
    ],
)
def test_one_op_that_fails_leaves_the_others(made_up, monkeypatch, fault: Exception, verdict: str, reason: str) -> None:
    record = run(made_up, monkeypatch, Machine({GEMV: fault}))
    assert [op.verdict for op in record.ops][1] == verdict
    assert record.ops[1].reason == reason
    assert record.ops[1].measured.processes == ()
    assert record.ops[2].measured.processes
    assert record.complete


def test_an_engine_that_the_device_lacks_skips_only_its_ops(made_up, monkeypatch) -> None:
    fp8 = Linear(tokens=1, in_features=4096, out_features=4096, dtype="fp8")
    monkeypatch.setattr(runner, "time_op", Machine().time_op)
    record = session.validate(group("work", node_of("a", fp8), node_of("b", GEMV)), made_up)
    assert record.ops[0].verdict == "skipped"
    assert "tensor:fp8" in record.ops[0].reason
    assert record.ops[1].measured.processes


def test_an_interrupt_keeps_what_was_measured(made_up, monkeypatch) -> None:
    record = run(made_up, monkeypatch, Machine({GEMV: KeyboardInterrupt()}))
    assert not record.complete
    assert record.ops[0].measured.processes
    assert [op.verdict for op in record.ops[1:]] == ["skipped", "skipped"]
    assert "interrupted" in record.ops[1].reason


def test_the_budget_is_shared_and_what_is_left_goes_on(made_up, monkeypatch) -> None:
    machine = Machine()
    run(made_up, monkeypatch, machine, budget_s=20.0)
    shares = [share for _, share in machine.timed]
    assert sum(shares) <= 30
    assert all(share > 0 for share in shares)
    assert made_up.clock <= 20.0
    assert shares[2] > 20 / 3  # the last one has what the others did not use


def test_ops_after_the_budget_are_skipped_and_say_so(made_up, monkeypatch) -> None:
    record = run(made_up, monkeypatch, Machine(used=20.0), budget_s=5.0)
    assert record.ops[0].measured.processes
    assert [op.verdict for op in record.ops[1:]] == ["skipped", "skipped"]
    assert "--budget" in record.ops[1].reason


def test_no_row_is_under_its_floor_unless_it_is_called_so(made_up, monkeypatch) -> None:
    within = run(made_up, monkeypatch, Machine(efficiency=1.06))
    assert all(op.roof_fraction <= 1.0 for op in within.ops)
    assert not any(op.verdict == "above-roof" for op in within.ops)
    beyond = run(made_up, monkeypatch, Machine(efficiency=1.5))
    assert all(op.verdict == "above-roof" for op in beyond.ops)
    assert beyond.exit_code == 1


def test_a_suspect_is_timed_again_before_it_is_called_one(made_up, monkeypatch) -> None:
    machine = Machine(efficiency=1.5, second=0.8)
    record = run(made_up, monkeypatch, machine)
    assert len(machine.timed) == 6
    samples = record.ops[0].measured.processes[0].samples_s
    assert len(samples) == 12  # none is lost
    once = Machine()
    run(made_up, monkeypatch, once)
    assert len(once.timed) == 3


def test_a_pattern_selects_ops(made_up, monkeypatch) -> None:
    monkeypatch.setattr(runner, "time_op", Machine().time_op)
    record = session.validate(prune(TREE, "layers/*"), made_up)
    assert [op.path for op in record.ops] == ["layers/q", "layers/up", "layers/add"]
    with pytest.raises(RooflineError, match="no op matches"):
        session.validate(prune(TREE, "nothing"), made_up)


@pytest.mark.parametrize("budget", [0.0, -1.0])
def test_a_budget_is_positive(made_up, budget: float) -> None:
    with pytest.raises(RooflineError, match="positive"):
        session.validate(TREE, made_up, budget_s=budget)


def test_progress_counts_ops(made_up, monkeypatch) -> None:
    told: list[tuple[str, int, int]] = []
    run(made_up, monkeypatch, Machine(), progress=lambda what, done, total: told.append((what, done, total)))
    assert told[0] == ("embed", 0, 3)
    assert told[-1] == ("done", 3, 3)


def test_the_record_says_where_it_ran(made_up, monkeypatch) -> None:
    made_up.is_throttled = True
    environment = run(made_up, monkeypatch, Machine(), seed=7, budget_s=5).environment
    assert environment.device == "fake"
    assert environment.throttled is True
    assert environment.seed == 7
    assert environment.cache_bytes == 1 << 20
    assert environment.started
    assert replace(environment).roofline


def test_ordering_a_session_loads_no_torch_before_a_device_is_picked() -> None:
    code = "import sys, roofline.session; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_for_real_a_small_linear_on_this_cpu(torch) -> None:
    """The whole way once: real ceilings, a real kernel. Nothing is said of how fast either is."""
    op = Linear(tokens=1, in_features=1024, out_features=1024, dtype="fp32")
    record = session.validate(node_of("linear", op), "cpu", budget_s=1.5, max_memory=1 << 30)
    (row,) = record.ops
    assert row.kernel == "mm"
    assert row.predicted.limiter == "dram"
    assert row.verdict not in ("errored", "skipped"), row.reason
    assert row.measured.time_s > 0
    assert 0 < row.roof_fraction <= 1 or row.verdict in ("above-roof", "cache-resident")
    assert record.ceilings["memory:read"].value > 0
    assert record.ceilings["tensor:fp32"].kernel
    assert cache.load(session.pick("cpu").key, torch.__version__) is not None
    jsonschema.validate(json.loads(dumps(record.to_json())), json_schema())

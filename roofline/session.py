"""Orders measuring and judging: ``validate`` takes a workload to the record of a run."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from roofline.analysis import OpPrediction, is_engine
from roofline.engines import Engine
from roofline.errors import RooflineError
from roofline.measure import thresholds
from roofline.measure.devices import Device, measuring, pick, torch_module
from roofline.ops.tree import Leaf, Node, distinct
from roofline.quantities import duration
from roofline.results.run import (
    Ceiling,
    Environment,
    Measured,
    OpRun,
    Predicted,
    Process,
    RunRecord,
    Verdict,
    op_id,
)
from roofline.version import __version__

if TYPE_CHECKING:
    from roofline.measure.ceilings import Calibration, MeasuredCeilings
    from roofline.measure.runner import OpTiming

DEFAULT_BUDGET_S: Final = 60.0

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many ops are done, and of how many."""


def validate(
    root: Node,
    device: str | Device = "auto",
    *,
    budget_s: float = DEFAULT_BUDGET_S,
    max_memory: int | None = None,
    seed: int = 0,
    recalibrate: bool = False,
    compile: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> RunRecord:
    """Predict, time and judge every distinct op of the tree ``root``, which has the workload's name, on ``device``.

    ``budget_s`` is shared out over the ops by expected time; the calibration before it takes some seconds more.
    ``compile`` allows kernels whose first call compiles. Layers are folded: one layer's worth is timed. An op that
    cannot run is *errored* or *skipped* with its reason and the rest goes on; an interrupt keeps what was measured.

    Raises ``RooflineError`` where torch or the device is missing or no op matches.
    """
    if budget_s <= 0:
        raise RooflineError(f"the budget must be positive, not {budget_s:g} s", code="out-of-range", key="--budget")
    ops = distinct(root)
    chosen = pick(device, max_memory=max_memory) if isinstance(device, str) else device
    started = datetime.now(UTC).date().isoformat()
    with measuring():
        calibration = _calibrate(chosen, ops, recalibrate, lambda what: progress(what, 0, len(ops)))
        runs: list[OpRun] = []
        complete = True
        try:
            for run in _each(root.name, ops, calibration, budget_s, seed, compile, progress):
                runs.append(run)
        except KeyboardInterrupt:
            complete = False
            why = ("interrupted while it was timed", *["interrupted before its turn"] * len(ops))
            left = ops[len(runs) :]
            runs += [_unmeasured(root.name, item, "skipped", why[index]) for index, item in enumerate(left)]
        _keep(calibration)
    return RunRecord(
        environment=_environment(chosen, calibration, started, seed, budget_s),
        ceilings=_ceilings(calibration),
        ops=tuple(runs),
        complete=complete,
    )


# Ceilings ------------------------------------------------------------------------------------------------------------


def _calibrate(device: Device, ops: Sequence[Leaf], recalibrate: bool, progress: Callable[[str], None]) -> Calibration:
    from roofline.measure import cache
    from roofline.measure.ceilings import calibrate

    earlier = None if recalibrate else cache.load(device.key, torch_module().__version__)
    engines: dict[Engine, None] = {}
    for item in ops:
        engines.update(dict.fromkeys(item.op.arithmetic()))
    return calibrate(device, engines, earlier=earlier, progress=progress)


def _keep(calibration: Calibration) -> None:
    from roofline.measure import cache

    cache.save(calibration, torch_module().__version__)


def _ceilings(calibration: Calibration) -> dict[str, Ceiling]:
    from roofline.measure import probes

    measured = calibration.ceilings()
    found = {
        name: Ceiling(
            rate.value,
            rate.low,
            rate.high,
            probes.unit(name),
            calibration.best_kernel(name),
            calibration.measured[name],
        )
        for name, rate in measured.rates.items()
    }
    launches = calibration.readings[probes.LAUNCH]
    seconds = sorted(1 / reading.value for reading in launches)
    found[probes.LAUNCH] = Ceiling(
        measured.launch_s or seconds[0],
        seconds[0],
        1 / min(reading.low for reading in launches),
        probes.unit(probes.LAUNCH),
        calibration.best_kernel(probes.LAUNCH),
        calibration.measured[probes.LAUNCH],
    )
    return found


# Ops -----------------------------------------------------------------------------------------------------------------


def _each(
    workload: str,
    ops: Sequence[Leaf],
    calibration: Calibration,
    budget_s: float,
    seed: int,
    compile: bool,
    progress: Progress,
) -> Iterator[OpRun]:
    """Run the ops one by one; what one leaves of its share goes to those after it."""
    device = calibration.device
    weights = _weights(ops, calibration)
    start = device.now()
    for index, item in enumerate(ops):
        progress(item.name, index, len(ops))
        left = budget_s - (device.now() - start)
        rest = sum(weights[index:])
        share = max(thresholds.MIN_SHARE, left * weights[index] / rest) if rest else left
        if left <= 0:
            reason = f"the budget of {duration(budget_s)} was spent before its turn (--budget)"
            yield _unmeasured(workload, item, "skipped", reason)
            continue
        yield _run(workload, item, calibration, share, seed, compile)
        device.release()
    progress("done", len(ops), len(ops))


def _weights(ops: Sequence[Leaf], calibration: Calibration) -> list[float]:
    """Shares of the budget: the square root of what an op costs, so that long ops get more but do not take all.

    It costs its floor and the making of its operands. Small ones get a part as well, as theirs must be made many
    times over to be cold; what they leave goes on.
    """
    from roofline.measure.runner import predict

    ceilings = calibration.ceilings()
    roots = []
    for item in ops:
        try:
            cost = predict(item.op, ceilings).floor_s + item.op.resident_bytes / thresholds.MAKING_BYTES_PER_S
            roots.append(cost**0.5)
        except RooflineError:
            roots.append(0.0)
    least = max(roots, default=0.0) / 5
    return [max(root, least) if root else 0.0 for root in roots]


def _run(workload: str, item: Leaf, calibration: Calibration, share_s: float, seed: int, compile: bool) -> OpRun:
    from roofline.measure.runner import Skipped, time_op

    try:
        timing = time_op(item.op, calibration, share_s, seed=seed, compile=compile)
        run = _judged(workload, item, calibration, timing)
        for _ in range(thresholds.AGAIN):
            if run.verdict not in ("above-roof", "contradicted"):
                break
            timing = timing + time_op(item.op, calibration, share_s / 2, seed=seed, compile=compile)
            run = _judged(workload, item, calibration, timing)
    except Skipped as reason:
        return _unmeasured(workload, item, "skipped", str(reason))
    except RooflineError as error:
        verdict: Verdict = "skipped" if error.code in ("no-kernel", "no-engine") else "errored"
        return _unmeasured(workload, item, verdict, str(error))
    except Exception as error:  # a kernel may raise anything: that op has failed, the others have not
        return _unmeasured(workload, item, "errored", _first_line(error))
    return run


def _judged(workload: str, item: Leaf, calibration: Calibration, timing: OpTiming) -> OpRun:
    """The row of an op: its prediction under the ceilings around it, and what its times say of it."""
    from roofline.measure.runner import elasticities, predict
    from roofline.measure.timer import summary
    from roofline.measure.verdict import Evidence, fractions, judge

    ceilings = calibration.around(timing.touches)
    prediction = predict(item.op, ceilings)
    least = predict(item.op, ceilings.upper()).floor_s
    seen = summary(timing.samples, timing.stop_reason, timing.batch)
    found = elasticities(timing, ceilings) if len(timing.shapes) > 1 else None
    judgement = judge(
        Evidence(
            prediction=prediction,
            least_floor_s=least,
            time_s=seen.time_s,
            launch_s=ceilings.launch_s or 0.0,
            kind=calibration.device.kind,
            cold=timing.cold,
            elasticity=found,
            surrogate=timing.kernel.surrogate,
            disturbed=seen.disturbed / len(seen.samples_s),
        )
    )
    # within the spread of its ceilings an op is itself the evidence of what they are at least
    within = judgement.verdict not in ("above-roof", "cache-resident")
    floor = min(prediction.floor_s, seen.time_s) if within else prediction.floor_s
    most = 1.0 if within else math.inf
    process = Process(seen.median_s, seen.low_s, seen.high_s, seen.samples_s, seen.disturbed, seen.calls_per_sample)
    return OpRun(
        id=op_id(item.op, timing.kernel.name),
        workload=workload,
        path=item.name,
        kernel=timing.kernel.name,
        predicted=_predicted(prediction, ceilings, floor),
        measured=Measured((process,), judgement.bound, seen.time_s, timing.cold, timing.copies, found),
        roof_fraction=None if judgement.verdict == "cache-resident" else floor / seen.time_s,
        verdict=judgement.verdict,
        reason=judgement.reason,
        stop_reason=timing.stop_reason,
        kind=item.op.kind,
        count=int(item.count),
        also=item.also,
        flops=prediction.flops,
        bytes=prediction.bytes,
        mfu=_mfu(prediction, seen.time_s, most),
        mbu=min(most, fractions(prediction, seen.time_s)["memory"]) if timing.cold else None,
        surrogate=timing.kernel.surrogate,
    )


def _mfu(prediction: OpPrediction, time_s: float, most: float) -> float | None:
    """The op's work on its matrix engine over what that engine's measured peak does in the time; None without one."""
    times = [seconds for name, seconds in prediction.times.items() if name.startswith("tensor:")]
    return min(most, max(times) / time_s) if times else None


def _predicted(prediction: OpPrediction, ceilings: MeasuredCeilings, floor_s: float) -> Predicted:
    main = ceilings.memory[0].rate(prediction.read_bytes, prediction.written_bytes)
    used = {ceilings.memory[0].name: main.value}
    for name in prediction.times:
        if is_engine(name) and (rate := ceilings.engine(Engine.parse(name))) is not None:
            used[name] = rate.value
    return Predicted(floor_s, prediction.bound, prediction.limiter, dict(prediction.times), used, prediction.near_ridge)


def _unmeasured(workload: str, item: Leaf, verdict: Verdict, reason: str) -> OpRun:
    return OpRun(
        id=op_id(item.op, None),
        workload=workload,
        path=item.name,
        kernel=None,
        predicted=Predicted(None, None, None),
        measured=Measured(),
        roof_fraction=None,
        verdict=verdict,
        reason=reason,
        stop_reason=None,
        kind=item.op.kind,
        count=int(item.count),
        also=item.also,
        flops=item.op.flops,
        bytes=item.op.traffic_bytes,
    )


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def _environment(device: Device, calibration: Calibration, started: str, seed: int, budget_s: float) -> Environment:
    return Environment(
        device=device.name,
        torch=str(torch_module().__version__),
        driver=device.driver,
        python=platform.python_version(),
        roofline=__version__,
        kind=device.kind,
        threads=device.threads,
        memory_bytes=device.memory_bytes,
        cache_bytes=device.caches[-1],
        believed_cache_bytes=calibration.believed_cache,
        started=started,
        seed=seed,
        budget_s=budget_s,
        throttled=device.throttled(),
    )

"""The verdict on one op: what was predicted against what its times say, from a closed list, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from roofline.analysis import OpPrediction, is_engine
from roofline.measure import thresholds
from roofline.quantities import duration, percent, ratio
from roofline.results.run import Bound, Elasticity, Estimate, Verdict


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a verdict rests on.

    ``prediction`` is under the ceilings around the op, ``least_floor_s`` under the fastest ever seen of them;
    ``time_s`` stands for the op; ``cold``: its operands came from memory each time.
    """

    prediction: OpPrediction
    least_floor_s: float
    time_s: float
    launch_s: float
    kind: str
    cold: bool
    elasticity: Elasticity | None = None
    surrogate: str | None = None
    disturbed: float = 0.0
    """Part of the samples that were disturbed."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, its reason in a sentence, and the bound that the times show (None where they show none)."""

    verdict: Verdict
    reason: str
    bound: Bound | None = None


MOSTLY: Final = 0.5
"""Part of the samples that must have been disturbed for that to be the reason."""

SUSPECTS: Final = "suspects: a wrong byte or FLOP model, operands left in a cache, a ceiling measured too low"


def judge(evidence: Evidence) -> Judgement:
    """The first rule that applies: above roof, surrogate, launch, ridge, cache, then what the times say."""
    prediction, time = evidence.prediction, evidence.time_s
    if time < evidence.least_floor_s:
        return _above(evidence)
    if evidence.surrogate is not None:
        return Judgement("surrogate", f"timed through a stand-in: {evidence.surrogate}")
    overhead = _overhead(evidence)
    if overhead is not None:
        return overhead
    if prediction.near_ridge:
        memory, compute = _sides(prediction)
        reason = f"memory floor {duration(memory)} and compute floor {duration(compute)} are within a factor of two"
        return Judgement("near-ridge", reason)
    if not evidence.cold and prediction.bound == "memory":
        reason = (
            "its operands are too few or too small to be kept out of the cache, so memory was not what it read from"
        )
        return Judgement("cache-resident", reason)
    judgement = _by_times(evidence)
    if judgement.verdict == "contradicted" and evidence.disturbed > MOSTLY:
        return Judgement("inefficient", f"not judged, as {_busy(evidence)} ({judgement.reason})")
    return judgement


def fractions(prediction: OpPrediction, time_s: float) -> Mapping[Bound, float]:
    """The fraction of the memory ceiling and of the slowest engine's that a time reaches."""
    memory, compute = _sides(prediction)
    return {"memory": memory / time_s, "compute": compute / time_s}


def _sides(prediction: OpPrediction) -> tuple[float, float]:
    times = prediction.times
    memory = max((seconds for name, seconds in times.items() if not is_engine(name)), default=0.0)
    compute = max((seconds for name, seconds in times.items() if is_engine(name)), default=0.0)
    return memory, compute


def _above(evidence: Evidence) -> Judgement:
    reached = percent(evidence.least_floor_s / evidence.time_s)
    floor = f"{duration(evidence.time_s)} is under the floor of {duration(evidence.least_floor_s)}"
    if not evidence.cold and evidence.prediction.bound == "memory":
        return Judgement("cache-resident", f"{floor}: its operands stay in the cache")
    limiter = evidence.prediction.limiter
    return Judgement("above-roof", f"{floor} at the fastest {limiter} ever seen here ({reached} of it); {SUSPECTS}")


def _overhead(evidence: Evidence) -> Judgement | None:
    launches = evidence.launch_s * evidence.prediction.op.launches
    if launches > 0 and evidence.time_s < thresholds.LAUNCH_BOUND * launches:
        times = ratio(evidence.time_s / launches)
        reason = (
            f"{duration(evidence.time_s)} is {times} times what a kernel on one element takes ({duration(launches)})"
        )
        return Judgement("overhead-bound", reason, "overhead")
    found = evidence.elasticity
    if found is None:
        return None
    if found.flops is not None and found.bytes is not None:
        if not (_flat(found.flops) and _flat(found.bytes)):
            return None
        answers = _pair(found)
    elif found.slope is not None and _flat(found.slope):
        answers = _slope(found)
    else:
        return None
    why = _busy(evidence) if evidence.disturbed > MOSTLY else "what it does per call outweighs its work"
    return Judgement("overhead-bound", f"its time hardly answers to size ({answers}): {why}", "overhead")


def _flat(estimate: Estimate) -> bool:
    return estimate.value < thresholds.NEGLIGIBLE and estimate.high < (1 + thresholds.NEGLIGIBLE) / 2


def _by_times(evidence: Evidence) -> Judgement:
    """Separate elasticities where there are any that decide, else the one slope and the fractions of both roofs."""
    prediction, found = evidence.prediction, evidence.elasticity
    predicted = prediction.bound
    reached = fractions(prediction, evidence.time_s).get(predicted, 0.0)
    on = reached >= thresholds.ON_ROOF[evidence.kind]
    roof = f"{percent(min(1.0, reached))} of its {predicted} roof"
    if found is None or (found.flops is None and found.slope is None):
        missing = f"its bound was not measured: {found.note if found else 'there was no time for its neighbours'}"
        if on:
            return Judgement("skipped", f"{roof}, but {missing} (--budget)")
        return Judgement("inefficient", f"{roof}; {missing}")
    decided = _decided(found)
    if decided == predicted:
        if on:
            return Judgement("confirmed", f"time follows {_answers(decided)} ({_pair(found)}); {roof}", decided)
        reason = f"time follows {_answers(decided)} ({_pair(found)}) but at {roof}: {_held(evidence)}"
        return Judgement("inefficient", reason, decided)
    if decided is not None and not on:
        reason = f"predicted {predicted} bound, but time follows {_answers(decided)} ({_pair(found)}); {roof}"
        return Judgement("contradicted", reason, decided)
    return _by_slope(evidence, found, on, roof)


def _by_slope(evidence: Evidence, found: Elasticity, on: bool, roof: str) -> Judgement:
    """One slope, one roof. The other roof is never nearer: the predicted one has the larger floor."""
    predicted = evidence.prediction.bound
    other: Bound = "compute" if predicted == "memory" else "memory"
    rest = fractions(evidence.prediction, evidence.time_s)[other]
    if found.slope is not None and _proportional(found.slope) and on and rest < thresholds.OFF_ROOF:
        reason = f"time is proportional to size ({_slope(found)}); {roof}, {percent(rest)} of the other"
        return Judgement("confirmed", reason, predicted)
    shape = _pair(found) if found.flops is not None else _slope(found)
    return Judgement("inefficient", f"{roof}, {shape}: {_held(evidence)}")


def _decided(found: Elasticity) -> Bound | None:
    """The side that both elasticities agree on within their intervals."""
    flops, traffic = found.flops, found.bytes
    if flops is None or traffic is None:
        return None
    if any((e.high - e.low) / 2 > thresholds.MAX_SPREAD for e in (flops, traffic)):
        return None
    if flops.value >= thresholds.DOMINANT and traffic.value <= thresholds.NEGLIGIBLE:
        return "compute"
    if traffic.value >= thresholds.DOMINANT and flops.value <= thresholds.NEGLIGIBLE:
        return "memory"
    return None


def _proportional(slope: Estimate) -> bool:
    """Whether a slope is 1 within the thresholds; an interval that is wide but covers 1 does not speak against it."""
    low, high = thresholds.PROPORTIONAL
    return low <= slope.value <= high and (slope.high - slope.low) / 2 <= thresholds.MAX_SPREAD


def _held(evidence: Evidence) -> str:
    if evidence.disturbed > MOSTLY:
        return _busy(evidence)
    return "held back by instructions, latency or occupancy"


def _busy(evidence: Evidence) -> str:
    return f"other work ran on the machine during {percent(evidence.disturbed)} of its samples"


def _answers(bound: Bound) -> str:
    return "bytes" if bound == "memory" else "FLOPs"


def _pair(found: Elasticity) -> str:
    assert found.flops is not None and found.bytes is not None
    return f"elasticity {_signed(found.flops)} to FLOPs, {_signed(found.bytes)} to bytes over {found.points} shapes"


def _slope(found: Elasticity) -> str:
    if found.slope is None:
        return found.note or "no slope"
    return f"slope {_signed(found.slope)} over {found.points} shapes"


def _signed(estimate: Estimate) -> str:
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"

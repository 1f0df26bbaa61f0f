"""What would change the verdict: where it flips, what else would, the largest batch that fits.

Everything is a search on plain ints over the same analysis: stride until the answer changes, then bisect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from roofline.analysis import Bound, Ceilings, Prediction, analyse, is_engine
from roofline.dtypes import dtype
from roofline.errors import RooflineError
from roofline.ops import Attention
from roofline.ops.tree import node_of, resident_bytes, total
from roofline.workload import OpRun, Workload

VARIED = ("batch", "context", "tokens", "prefix", "queries", "cached", "keys", "rows")
"""Sizes that change from request to request; the others are the shape of the model."""

NARROWER = (("fp8", None), ("int4-g128", "bf16"), ("nvfp4", None))
"""Weight formats to try, each with what it is computed in (None: its native engine)."""

FARTHEST = 2**30
"""How far a search goes at least: past the largest context or token count that anyone serves."""

STRIDE = 16
"""A search looks this much farther each time before it bisects; a bound that flips twice in between is not seen."""


@dataclass(frozen=True, slots=True)
class Flip:
    """``parameter``: from ``value`` on (``side`` up: at and above; down: at and below) the bound is ``bound``.

    ``crossing`` is where the two times are equal, between two ints; only for a single op, whose times are smooth.
    With ``value`` None it never flips on that side, however far: then ``intensity`` is what it tends to.
    """

    parameter: str
    side: str
    bound: Bound
    value: int | None = None
    crossing: float | None = None
    intensity: float | None = None


def explore(work: Workload, ceilings: Ceilings, prediction: Prediction) -> dict[str, Any]:
    """Flips over the workload's variables, other dtypes, and the largest batch that fits, as a record."""
    flips: list[Flip] = []
    for parameter in variables(work):
        for search in (_upwards, _downwards):
            flip = search(work, parameter, ceilings, prediction)
            if flip is not None:
                flips.append(flip)
    return {
        "flips": [
            {
                "parameter": flip.parameter,
                "from": work.get(flip.parameter),
                "side": flip.side,
                "bound": flip.bound,
                "value": flip.value,
                "crossing": flip.crossing,
                "intensity": flip.intensity,
            }
            for flip in flips
        ],
        "dtypes": _dtypes(work, ceilings, prediction),
        "largest": _largest(work, prediction),
    }


def variables(work: Workload) -> list[str]:
    """The sizes of the workload that vary from request to request."""
    return [name for name in VARIED if name in work.sizes and work.get(name) is not None]


def lessons(work: Workload) -> list[str]:
    """What a reader might take the workload for and should not."""
    notes = list(work.notes)
    for op in (work.subject.op,) if isinstance(work.subject, OpRun) else ():
        if isinstance(op, Attention) and op.implementation == "naive" and op.queries > 1 and op.keys is None:
            decode = node_of("decode", op.with_(queries=1, cached=op.all_keys - 1))
            flops, moved = total(decode, lambda op: op.flops), total(decode, lambda op: op.traffic_bytes)
            notes.append(
                f"this has {op.queries:,} queries, the shape of a prefill; a decode step at the same length has one "
                f"query and an intensity of {flops / moved:.2f}"
            )
    return notes


def crossing(work: Workload, parameter: str, value: int, ceilings: Ceilings) -> float | None:
    """Where between ``value - 1`` and ``value`` a single op takes as long on its engine as on memory."""
    below, above = (_margin(_at(work, parameter, at, ceilings)) for at in (value - 1, value))
    if below is None or above is None or below == above:
        return None
    return value - 1 + below / (below - above)


def _margin(prediction: Prediction) -> float | None:
    """Memory time less the longest engine time of a workload that is one op."""
    if len(prediction.ops) != 1:
        return None
    times = prediction.ops[0].times
    memory = max(seconds for name, seconds in times.items() if not is_engine(name))
    return memory - max((seconds for name, seconds in times.items() if is_engine(name)), default=0.0)


def _upwards(work: Workload, parameter: str, ceilings: Ceilings, now: Prediction) -> Flip | None:
    """The least value above the present one where the bound is another."""
    here = work.get(parameter)

    def changed(value: int) -> bool:
        return _at(work, parameter, value, ceilings).bound != now.bound

    low, high = here, max(STRIDE * here, 1)
    while high < FARTHEST and not changed(high):
        low, high = high, STRIDE * high
    far = _at(work, parameter, high, ceilings)
    if far.floor_s == now.floor_s:
        return None  # it plays no part in what is left of the workload
    if far.bound == now.bound:
        return Flip(parameter, "up", now.bound, intensity=far.intensity)
    value = bisect(changed, low, high)
    bound = _at(work, parameter, value, ceilings).bound
    return Flip(parameter, "up", bound, value, crossing(work, parameter, value, ceilings))


def _downwards(work: Workload, parameter: str, ceilings: Ceilings, now: Prediction) -> Flip | None:
    """The greatest value below the present one where the bound is another; None where there is none."""
    here, least = work.get(parameter), work.sizes[parameter].minimum
    if here <= least:
        return None
    other = _at(work, parameter, least, ceilings).bound
    if other == now.bound:
        return None
    first = bisect(lambda value: _at(work, parameter, value, ceilings).bound == now.bound, least, here)
    return Flip(parameter, "down", other, first - 1, crossing(work, parameter, first, ceilings))


def _at(work: Workload, parameter: str, value: int, ceilings: Ceilings) -> Prediction:
    return analyse(work.with_(**{parameter: value}).tree, ceilings)


def bisect(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least int in (low, high] for which ``holds``, which is false at ``low`` and true at ``high``."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _dtypes(work: Workload, ceilings: Ceilings, now: Prediction) -> list[dict[str, Any]]:
    """The floor and bound with narrower weights or caches that this device can compute in."""
    found = []
    for label, other in _narrower(work):
        try:
            then = analyse(other.tree, ceilings)
        except RooflineError:
            continue  # the device lacks the engine
        if abs(then.floor_s / now.floor_s - 1) > 0.01 or then.bound != now.bound:
            found.append(
                {
                    "change": label,
                    "bound": then.bound,
                    "limiter": then.limiter,
                    "intensity": then.intensity,
                    "ridge": then.ridge,
                    "floor_s": then.floor_s,
                }
            )
    return found


def _narrower(work: Workload) -> Iterator[tuple[str, Workload]]:
    """The workload with its weights, then its KV cache, in narrower formats, each with a name for the change."""
    subject = work.subject
    stored = subject.dtypes
    if (weights := stored.get("weights")) is not None:
        for name, compute in NARROWER:
            if dtype(name).bits < dtype(weights).bits:
                which = "weights" if isinstance(subject, OpRun) else "layer weights"  # not the LM head
                label = f"{which} in {name}" + (f", computed in {compute}" if compute else "")
                yield label, replace(work, subject=subject.with_dtypes(weights=name, compute=compute))
    if (cache := stored.get("kv")) is not None and dtype(cache).bits > 8:
        yield "KV cache in fp8", replace(work, subject=subject.with_dtypes(kv="fp8"))


def _largest(work: Workload, now: Prediction) -> Mapping[str, Any] | None:
    """The largest batch whose weights, caches and operands fit; 0 where not even one does."""
    capacity = now.capacity_bytes
    if capacity is None or not work.whole or "batch" not in variables(work):
        return None  # the rest of a model, which is not here, needs memory too

    def too_large(value: int) -> bool:
        return bool(sum(resident_bytes(work.with_(batch=value).tree).values()) > capacity)

    if too_large(1):
        return {"parameter": "batch", "value": 0}
    high = 2
    while high < FARTHEST and not too_large(high):
        high *= 2
    return {"parameter": "batch", "value": bisect(too_large, high // 2, high) - 1 if high < FARTHEST else None}

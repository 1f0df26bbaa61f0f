"""Timing calls: samples until the median is known well enough, the noise has levelled off, or the budget is spent.

The device supplies one thing, ``sample(calls)``: all calls back to back under its clock. What is here is the same on
every device and runs under a fake one in the tests. No sample is ever deleted: one that was disturbed is marked.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from roofline.errors import RooflineError
from roofline.measure import thresholds
from roofline.measure.stats import median_interval

Call = Callable[[], Any]

MAX_BATCH: Final = 1 << 16
"""Calls that a sample holds at most."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds of one sample; ``disturbed`` when something else is known to have run in between."""

    seconds: float
    disturbed: bool = False


class Clocked(Protocol):
    """What the timer needs of a device."""

    @property
    def kind(self) -> str:
        """``cpu`` or ``cuda``."""

    @property
    def min_sample_s(self) -> float:
        """Shortest sample in which reading the clock does not count."""

    def sample(self, calls: Sequence[Call]) -> Sample:
        """Run all calls back to back and time them together."""

    def now(self) -> float:
        """Seconds of a clock that never goes back, for budgets."""


@dataclass(frozen=True, slots=True)
class ProcessTiming:
    """What one process saw of one op.

    ``median_s`` with ``low_s`` to ``high_s`` is over all ``samples_s``. ``time_s`` is what stands for the op: the
    median of the samples that nothing disturbed, or the fastest one where there are too few of those (a disturbance
    only ever adds time).
    """

    median_s: float
    low_s: float
    high_s: float
    samples_s: tuple[float, ...]
    stop_reason: str
    time_s: float
    disturbed: int = 0
    calls_per_sample: int = 1


@dataclass(slots=True)
class Sampler:
    """One op under the clock: its calls, one for each copy of its operands, taken in turn."""

    copies: Sequence[Call]
    device: Clocked
    batch: int = 1
    samples: list[Sample] = field(default_factory=list)
    _next: int = 0

    def warm_up(self, budget_s: float = 0.5) -> float:
        """Run what is slow the first time, then find how many calls make a sample long enough; seconds of a call.

        Raises ``RooflineError`` where even the largest batch takes no time: the clock stands still.
        """
        start = self.device.now()
        seconds = self.device.sample(self._calls()).seconds
        if seconds > budget_s / 2:
            return seconds
        while True:
            seconds = self.device.sample(self._calls()).seconds
            long_enough = seconds >= self.device.min_sample_s
            if long_enough or (seconds > 0 and self.device.now() - start > budget_s):
                return seconds / self.batch
            if self.batch >= MAX_BATCH:
                break
            # a clock that has not ticked yet says nothing of how much longer a sample must be
            wanted = self.batch * 1.2 * self.device.min_sample_s / seconds if seconds > 0 else self.batch * 8
            self.batch = min(MAX_BATCH, max(self.batch + 1, int(min(wanted, self.batch * 8.0))))
        if seconds > 0:
            return seconds / self.batch
        raise RooflineError(
            f"{self.batch} calls took no time: the clock of {self.device.kind} stands still", code="no-time"
        )

    def take(self) -> Sample:
        """One more sample, per call."""
        whole = self.device.sample(self._calls())
        sample = Sample(whole.seconds / self.batch, whole.disturbed)
        self.samples.append(sample)
        return sample

    def _calls(self) -> list[Call]:
        count = len(self.copies)
        calls = [self.copies[(self._next + index) % count] for index in range(self.batch)]
        self._next = (self._next + self.batch) % count
        return calls


def time_op(copies: Sequence[Call], device: Clocked, budget_s: float) -> ProcessTiming:
    """Time an op given as one call for each copy of its operands, until a stop rule holds.

    Raises ``RooflineError`` where the clock stands still.
    """
    sampler = Sampler(copies, device)
    start = device.now()
    with undisturbed():
        sampler.warm_up()
        while True:
            sampler.take()
            reason = why_stop(sampler.samples, device.now() - start, budget_s, device.kind)
            if reason is not None:
                return summary(sampler.samples, reason, sampler.batch)


def why_stop(samples: Sequence[Sample], spent_s: float, budget_s: float, kind: str) -> str | None:
    """The reason to stop sampling now, or None: tight, plateau, limit or budget."""
    seconds = [sample.seconds for sample in samples]
    count = len(seconds)
    if count >= thresholds.MIN_SAMPLES:
        target = thresholds.TIGHT[kind]
        width = half_width(seconds)
        if width <= target:
            return f"tight: the 95 % interval of the median is within {100 * target:g} %"
        if count >= thresholds.PLATEAU_SAMPLES:
            before = half_width(seconds[: count // 2])
            if width > thresholds.PLATEAU_GAIN * before:
                return f"plateau: the interval of the median stays at {100 * width:.2g} % with more samples"
        if count >= thresholds.MAX_SAMPLES:
            return f"limit: {count} samples"
    if spent_s >= budget_s * (1 if count >= thresholds.MIN_SAMPLES else thresholds.GRACE):
        return f"budget: {spent_s:.3g} s spent"
    return None


def half_width(seconds: Sequence[float]) -> float:
    """Half the width of the interval of the median, relative to it; 0 where the median is not positive."""
    middle, low, high = median_interval(seconds)
    return (high - low) / (2 * middle) if middle > 0 else 0.0


def summary(samples: Sequence[Sample], stop_reason: str, batch: int = 1) -> ProcessTiming:
    """What samples say. Raises ``RooflineError`` where none took any time."""
    seconds = [sample.seconds for sample in samples]
    if not seconds or max(seconds) <= 0:
        raise RooflineError("no sample took any time: the clock stands still", code="no-time")
    middle, low, high = median_interval(seconds)
    return ProcessTiming(
        median_s=middle,
        low_s=low,
        high_s=high,
        samples_s=tuple(seconds),
        stop_reason=stop_reason,
        time_s=standing(samples),
        disturbed=sum(sample.disturbed for sample in samples),
        calls_per_sample=batch,
    )


def standing(samples: Sequence[Sample]) -> float:
    """The time that stands for the op: the median of the quiet samples, or the fastest where those are too few."""
    quiet = [sample.seconds for sample in samples if not sample.disturbed]
    if len(quiet) >= thresholds.QUIET_SAMPLES:
        return statistics.median(quiet)
    return min(sample.seconds for sample in samples)


def copies_needed(bytes_per_copy: int, span_bytes: float, room_bytes: int) -> tuple[int, bool]:
    """How many copies of an op's operands to rotate over, and whether that keeps them cold.

    Cold means that ``copies x bytes`` is at least ``span_bytes`` (``cold_span``); memory or the limit on copies may
    not allow that.
    """
    size = max(1, bytes_per_copy)
    wanted = max(1, -int(-span_bytes // size))
    copies = max(1, min(wanted, thresholds.MAX_COPIES, room_bytes // size))
    return copies, copies * size >= span_bytes


def cold_span(reported_cache: int, believed_cache: int) -> float:
    """Bytes that rotating operands must span so that no cache holds them for the next turn.

    That many times the cache that is believed; one that is only reported (and may be shared with strangers) may
    still hold something, so the same multiple of it is taken up to a bound.
    """
    times = thresholds.COLD_COPIES
    return max(times * believed_cache, min(times * reported_cache, thresholds.DOUBTFUL_SPAN))


@contextmanager
def undisturbed() -> Iterator[None]:
    """No garbage collection while timing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

"""A device whose clock and times are made up, so that nothing in these tests depends on the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from roofline.measure.timer import Sample


@dataclass
class FakeCall:
    """A call that takes ``seconds`` on a fake device; ``op`` for laws that depend on it."""

    seconds: float = 0.0
    op: Any = None
    run: int = 0

    def __call__(self) -> None:
        self.run += 1


@dataclass
class FakeDevice:
    """Runs calls, says that each took what ``law`` says times the next of ``noise``, and moves its clock by that."""

    law: Callable[[FakeCall], float] = lambda call: call.seconds
    noise: Iterable[float] = (1.0,)
    disturbed: Iterable[bool] = (False,)
    kind: str = "cpu"
    torch_name: str = "cpu"
    name: str = "fake"
    key: str = "fake|1"
    threads: int | None = 1
    driver: str | None = None
    memory_bytes: int = 1 << 40
    caches: tuple[int, ...] = (1 << 10, 1 << 20)
    min_sample_s: float = 1e-3
    clock: float = 0.0
    batches: list[int] = field(default_factory=list)
    is_throttled: bool | None = None
    _noise: Iterator[float] | None = None
    _disturbed: Iterator[bool] | None = None

    def now(self) -> float:
        return self.clock

    def sample(self, calls: Sequence[Any]) -> Sample:
        if self._noise is None or self._disturbed is None:
            self._noise, self._disturbed = cycle(self.noise), cycle(self.disturbed)
        for call in calls:
            call()
        seconds = sum(self.law(call) for call in calls) * next(self._noise)
        self.clock += max(seconds, 1e-6)
        self.batches.append(len(calls))
        return Sample(seconds, next(self._disturbed))

    def synchronize(self) -> None: ...

    def release(self) -> None: ...

    def throttled(self) -> bool | None:
        return self.is_throttled

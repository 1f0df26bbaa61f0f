"""The devices that a run may use. All that differs between a CPU and a GPU while measuring is in this file.

torch is imported when a device is picked, not before, so that a missing torch is one clear line.
"""

from __future__ import annotations

import contextlib
import platform
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, Protocol

from roofline.errors import RooflineError
from roofline.measure import host, thresholds
from roofline.measure.timer import Call, Sample, undisturbed

INSTALL: Final = "pip install 'roofline[measure]'"

UNKNOWN_CACHE: Final = 64 << 20
"""Last-level cache assumed of a GPU whose driver does not say."""

_HOLD_MARGIN: Final = 2.0
_LONGEST_HOLD_S: Final = 0.05
_SPIN_HZ: Final = 2e9
"""Cycles a second assumed for the spin that holds a stream; too long a hold costs only time."""


class Device(Protocol):
    """What measuring needs of a device, beside the clock of ``timer.Clocked``."""

    @property
    def kind(self) -> str:
        """``cpu`` or ``cuda`` (ROCm is reached through ``torch.cuda`` as well)."""

    @property
    def torch_name(self) -> str:
        """``cpu`` or ``cuda:0``."""

    @property
    def name(self) -> str:
        """The model, for people."""

    @property
    def key(self) -> str:
        """What makes two devices the same for the cache of ceilings."""

    @property
    def threads(self) -> int | None:
        """Threads that torch computes on, where it is a CPU."""

    @property
    def driver(self) -> str | None:
        """Version of the driver, where there is one."""

    @property
    def memory_bytes(self) -> int:
        """Bytes that a run may take."""

    @property
    def caches(self) -> tuple[int, ...]:
        """Bytes of each data cache as reported, the last level last."""

    @property
    def min_sample_s(self) -> float:
        """Shortest sample in which reading the clock does not count."""

    def now(self) -> float:
        """Seconds of a clock that never goes back."""

    def sample(self, calls: Sequence[Call]) -> Sample:
        """Run all calls back to back and time them together."""

    def synchronize(self) -> None:
        """Wait until all that was started has ended."""

    def release(self) -> None:
        """Give memory that is no longer used back, where the device keeps it."""

    def throttled(self) -> bool | None:
        """Whether it runs slower than it could right now; None where that cannot be told."""


def pick(name: str = "auto", *, max_memory: int | None = None) -> Device:
    """The device called ``auto``, ``cpu``, ``cuda`` or ``cuda:1``; ``auto`` takes a GPU where torch has one.

    ``max_memory`` bounds what a run takes; by default half of what is available now. Raises ``RooflineError``
    where torch is not installed or has no such device.
    """
    wanted = re.fullmatch(r"(auto|cpu|cuda)(?::(\d+))?", name)
    if wanted is None or (wanted[2] and wanted[1] != "cuda"):
        raise RooflineError(
            f"no device {name!r}: write auto, cpu, cuda or cuda:N", code="unknown-device", key="--device"
        )
    torch = torch_module()
    if wanted[1] == "cpu" or (wanted[1] == "auto" and not torch.cuda.is_available()):
        return _cpu(torch, max_memory)
    if not torch.cuda.is_available():
        built = "was built without CUDA" if torch.version.cuda is None and not _is_rocm(torch) else "finds no GPU"
        raise RooflineError(
            f"no device {name!r}: torch {torch.__version__} {built}; --device cpu measures this machine's CPU",
            code="no-cuda",
            key="--device",
            suggestions=("cpu",),
        )
    index, count = int(wanted[2] or 0), torch.cuda.device_count()
    if index >= count:
        have = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        raise RooflineError(f"no device {name!r}: there is {have}", code="unknown-device", key="--device")
    return _cuda(torch, index, max_memory)


def torch_module() -> Any:
    """torch; raises ``RooflineError`` (``torch-missing``) where it is not installed or does not load."""
    try:
        return import_module("torch")
    except Exception as error:  # a broken install raises OSError for its libraries, or whatever else it likes
        raise RooflineError(
            f"measuring needs torch, which cannot be imported ({error}): {INSTALL}", code="torch-missing"
        ) from error


@contextmanager
def measuring() -> Iterator[None]:
    """No gradients and no garbage collection: everything that is timed runs inside."""
    torch = torch_module()
    with torch.inference_mode(), undisturbed():
        yield


def _room(available: int, max_memory: int | None) -> int:
    return int(available * thresholds.MEMORY_SHARE) if max_memory is None else min(available, max_memory)


# CPU -----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Cpu:
    """The host's processor on all the physical cores that this process may use."""

    name: str
    key: str
    threads: int | None
    memory_bytes: int
    caches: tuple[int, ...]
    min_sample_s: float
    kind: str = "cpu"
    torch_name: str = "cpu"
    driver: str | None = None
    waited_ns: Callable[[], int | None] = host.waited_ns

    def now(self) -> float:
        """Seconds of the performance counter."""
        return time.perf_counter()

    def sample(self, calls: Sequence[Call]) -> Sample:
        """Wall time; disturbed when a thread of this process waited for a core meanwhile."""
        before = self.waited_ns()
        start = time.perf_counter_ns()
        for call in calls:
            call()
        elapsed = time.perf_counter_ns() - start
        after = self.waited_ns()
        waited = after - before if before is not None and after is not None else 0
        return Sample(elapsed * 1e-9, waited > thresholds.WAITED * elapsed)

    def synchronize(self) -> None:
        """Nothing runs behind a CPU's back."""

    def release(self) -> None:
        """Freed blocks stay with the allocator on purpose: fresh pages would be timed."""

    def throttled(self) -> bool | None:
        """Not known."""
        return None


def _cpu(torch: Any, max_memory: int | None) -> Cpu:
    host.keep_freed_blocks()
    threads = host.usable_cores()
    torch.set_num_threads(threads)
    model = host.cpu_name()
    capability = torch.backends.cpu.get_cpu_capability()
    return Cpu(
        name=f"{model}, {threads} {'core' if threads == 1 else 'cores'}",
        key=f"cpu|{model}|{platform.machine()}|{capability}|{threads}",
        threads=threads,
        memory_bytes=_room(host.available_memory(), max_memory),
        caches=host.caches(),
        min_sample_s=max(1e-3, _clock_cost() / thresholds.OVERHEAD),
    )


def _clock_cost(repeats: int = 200) -> float:
    """Seconds that a reading of the clock takes."""
    start = time.perf_counter_ns()
    for _ in range(repeats):
        time.perf_counter_ns()
    return (time.perf_counter_ns() - start) * 1e-9 / repeats


# CUDA and ROCm -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Cuda:
    """A GPU that torch reaches through ``torch.cuda``: NVIDIA, or AMD under ROCm."""

    torch: Any
    index: int
    name: str
    key: str
    uuid: str | None
    driver: str | None
    memory_bytes: int
    caches: tuple[int, ...]
    kind: str = "cuda"
    threads: int | None = None
    min_sample_s: float = 200e-6
    """Events tick at half a microsecond; short kernels are batched up to this."""
    _flusher: Any = None
    _hold_s: dict[int, float] = field(default_factory=dict)

    @property
    def torch_name(self) -> str:
        """``cuda:0``."""
        return f"cuda:{self.index}"

    def now(self) -> float:
        """Seconds of the host's performance counter."""
        return time.perf_counter()

    def sample(self, calls: Sequence[Call]) -> Sample:
        """Device time of the calls, between two events in a stream that is held until all is queued.

        The cache is flushed first, and a finite spin holds the stream while the host queues, so that neither launch
        gaps nor a warm cache are timed. Disturbed when the spin ended too early: the device then waited for the host.
        """
        torch = self.torch
        with torch.cuda.device(self.index):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._flush()
            torch.cuda._sleep(int(self._hold_for(calls) * _SPIN_HZ))
            start.record()
            queued = time.perf_counter()
            for call in calls:
                call()
            starved = bool(start.query())
            end.record()
            self._hold_s[len(calls)] = max(self._hold_s[len(calls)], time.perf_counter() - queued)
            end.synchronize()
            return Sample(start.elapsed_time(end) * 1e-3, starved)

    def _hold_for(self, calls: Sequence[Call]) -> float:
        """How long the host takes to queue so many calls, measured the first time, with a margin."""
        if len(calls) not in self._hold_s:
            self.synchronize()
            begun = time.perf_counter()
            for call in calls:
                call()
            self._hold_s[len(calls)] = time.perf_counter() - begun
            self.synchronize()
        return min(_LONGEST_HOLD_S, _HOLD_MARGIN * self._hold_s[len(calls)] + 50e-6)

    def _flush(self) -> None:
        """Write twice the cache, so that nothing of the last run is left in it."""
        if self._flusher is None:
            self._flusher = self.torch.empty(2 * self.caches[-1], dtype=self.torch.int8, device=self.torch_name)
        self._flusher.zero_()

    def synchronize(self) -> None:
        """Wait for the device."""
        self.torch.cuda.synchronize(self.index)

    def release(self) -> None:
        """Give cached blocks back to the driver."""
        self.torch.cuda.empty_cache()

    def throttled(self) -> bool | None:
        """Whether NVML names a reason for lower clocks (power cap, heat, hardware); None without NVML."""
        return nvml_throttled(self.uuid)


def _cuda(torch: Any, index: int, max_memory: int | None) -> Cuda:
    properties = torch.cuda.get_device_properties(index)
    with torch.cuda.device(index):
        free, _ = torch.cuda.mem_get_info()
    rocm = _is_rocm(torch)
    uuid = str(properties.uuid) if getattr(properties, "uuid", None) else None
    identity = uuid or f"{properties.total_memory}|{properties.multi_processor_count}"
    return Cuda(
        torch=torch,
        index=index,
        name=str(properties.name),
        key=f"cuda|{properties.name}|{identity}|{torch.version.hip if rocm else torch.version.cuda}",
        uuid=uuid,
        driver=f"ROCm {torch.version.hip}" if rocm else _nvidia_driver(),
        memory_bytes=_room(free, max_memory),
        caches=(int(getattr(properties, "L2_cache_size", 0) or UNKNOWN_CACHE),),
    )


def _is_rocm(torch: Any) -> bool:
    return getattr(torch.version, "hip", None) is not None


# NVML, which is optional and never breaks a run ----------------------------------------------------------------------

_THROTTLE_BITS: Final = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""Software power cap, hardware slowdown, software and hardware thermal slowdown, power brake."""


@contextmanager
def _nvml() -> Iterator[Any]:
    module = import_module("pynvml")
    module.nvmlInit()
    try:
        yield module
    finally:
        module.nvmlShutdown()


def _nvidia_driver() -> str | None:
    with contextlib.suppress(Exception), _nvml() as nvml:
        version = nvml.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else str(version)
    return None


def nvml_throttled(uuid: str | None) -> bool | None:
    """Whether the driver names a reason for lower clocks now; None where NVML is missing or does not answer.

    The device is found by its UUID: NVML and CUDA number devices differently.
    """
    if uuid is None:
        return None
    with contextlib.suppress(Exception), _nvml() as nvml:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
        return bool(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle) & _THROTTLE_BITS)
    return None

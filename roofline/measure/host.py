"""What this host has for a run: memory within limits, cores, caches, and an allocator that keeps its blocks.

Everything is read from the kernel's files; where one is missing the answer is None or a stated default, never an
error. ``root`` stands for ``/`` so that tests can show other machines.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path("/")
UNKNOWN_MEMORY: Final = 4 << 30
"""Memory assumed available where the system does not say."""

UNKNOWN_CACHE: Final = 32 << 20
"""Last-level cache assumed where the system does not say."""

_UNLIMITED: Final = 1 << 60
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4
_LARGEST_INT: Final = 2**31 - 1


def available_memory(root: Path = ROOT) -> int:
    """Bytes that a new process may still take: what is free, and what the control groups leave."""
    room = [limit - used for limit, used in _memory_limits(root)]
    free = _meminfo(root).get("MemAvailable")
    if free is None:
        free = _physical_memory() if root == ROOT else None
    if free is not None:
        room.append(free)
    return max(0, min(room, default=UNKNOWN_MEMORY))


def _meminfo(root: Path) -> dict[str, int]:
    found = {}
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdecimal():
            found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _memory_limits(root: Path) -> Iterator[tuple[int, int]]:
    """(limit, used) of every control group that this process is in, version 1 and 2."""
    for folder in _groups(root, "memory"):
        for limit_file, used_file in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit = _integer(folder / limit_file)
            if limit is not None and limit < _UNLIMITED:
                # what the kernel caches of files counts as used and is given back on demand
                cached = _keyed(folder / "memory.stat", "inactive_file") or 0
                yield limit, max(0, (_integer(folder / used_file) or 0) - cached)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's control groups, from its own to the root."""
    base = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0" and not names:
            tops = [base, base / "unified"]
        elif controller in names.split(","):
            tops = [base / controller, base / names]
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for top in tops:
            for depth in range(len(parts), -1, -1):
                yield top.joinpath(*parts[:depth])


def usable_cores(root: Path = ROOT) -> int:
    """Physical cores that this process may keep busy: its affinity, hyperthreads once, whole ones of its quota."""
    allowed = _affinity()
    cores = {_siblings(root, cpu) for cpu in allowed}
    quotas = [quota for folder in _groups(root, "cpu") if (quota := _quota(folder)) is not None]
    return max(1, min([len(cores), *(int(quota) for quota in quotas)]))


def _affinity() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _siblings(root: Path, cpu: int) -> str:
    path = root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
    return _text(path).strip() or str(cpu)


def _quota(folder: Path) -> float | None:
    words = _text(folder / "cpu.max").split()
    if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal():
        return int(words[0]) / int(words[1])
    quota, period = _integer(folder / "cpu.cfs_quota_us"), _integer(folder / "cpu.cfs_period_us")
    return quota / period if quota is not None and quota > 0 and period else None


def caches(root: Path = ROOT) -> tuple[int, ...]:
    """Bytes of each level of data cache that the usable cores reach, the last level last, as reported.

    A virtual machine reports caches that it shares with strangers.
    """
    seen: dict[tuple[int, str], int] = {}
    for cpu in _affinity():
        for folder in sorted((root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")):
            level, size = _integer(folder / "level"), _size(_text(folder / "size"))
            if level is not None and size is not None and _text(folder / "type").strip() != "Instruction":
                seen[level, _text(folder / "shared_cpu_list").strip() or str(cpu)] = size
    levels = sorted({level for level, _ in seen})
    return tuple(sum(size for (of, _), size in seen.items() if of == level) for level in levels) or (UNKNOWN_CACHE,)


def cpu_name(root: Path = ROOT) -> str:
    """The model of the processor."""
    match = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", _text(root / "proc/cpuinfo"), re.MULTILINE)
    return " ".join((match[1] if match else platform.processor() or platform.machine() or "CPU").split())


def keep_freed_blocks() -> bool:
    """Tell glibc never to give large blocks back, so that page faults are not timed; False where it is not glibc.

    Fresh pages cost up to three times the operation that writes them. Blocks that are mapped one by one, or trimmed
    from the heap, are fresh each time.
    """
    try:
        library = ctypes.CDLL(None)
        if not hasattr(library, "gnu_get_libc_version"):
            return False
        mallopt = library.mallopt
    except (OSError, AttributeError, TypeError):
        return False
    kept = mallopt(_M_MMAP_THRESHOLD, _LARGEST_INT) == 1 or mallopt(_M_MMAP_MAX, 0) == 1
    return bool(mallopt(_M_TRIM_THRESHOLD, _LARGEST_INT) == 1 and kept)


def waited_ns(root: Path = ROOT) -> int | None:
    """Nanoseconds that the threads of this process have waited for a core so far; None where that is not told."""
    total = None
    try:
        threads = list((root / "proc/self/task").iterdir())
    except OSError:
        return None
    for thread in threads:
        words = _text(thread / "schedstat").split()
        if len(words) == 3:
            total = (total or 0) + int(words[1])
    return total


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _integer(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _keyed(path: Path, key: str) -> int | None:
    for line in _text(path).splitlines():
        words = line.split()
        if words[:1] == [key] and words[1:2] and words[1].isdecimal():
            return int(words[1])
    return None


def _size(text: str) -> int | None:
    """``32768K`` in bytes."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip())
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else None

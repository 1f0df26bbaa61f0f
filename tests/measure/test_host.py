from __future__ import annotations

from pathlib import Path

import pytest

from roofline.measure import host

GIB = 1 << 30


def machine(root: Path, files: dict[str, str]) -> Path:
    """A made-up ``/`` with these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MEMINFO = "MemTotal:       33554432 kB\nMemAvailable:   16777216 kB\nHugePages_Total:       0\n"


def test_memory_is_what_is_available(tmp_path: Path) -> None:
    assert host.available_memory(machine(tmp_path, {"proc/meminfo": MEMINFO})) == 16 * GIB


def test_a_version_2_control_group_limits_memory(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/user/job\n",
            "sys/fs/cgroup/user/job/memory.max": f"{8 * GIB}\n",
            "sys/fs/cgroup/user/job/memory.current": f"{3 * GIB}\n",
            "sys/fs/cgroup/user/job/memory.stat": f"anon 1\ninactive_file {GIB}\n",
            "sys/fs/cgroup/user/memory.max": "max\n",
        },
    )
    assert host.available_memory(root) == 6 * GIB  # page cache is given back on demand


def test_the_limit_of_a_parent_counts(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/memory.max": f"{2 * GIB}\n",
        },
    )
    assert host.available_memory(root) == 2 * GIB


def test_a_version_1_control_group_limits_memory(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n",
            # inside a container the path is often not there, and the root of the mount is this group
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{4 * GIB}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{5 * GIB}\n",
        },
    )
    assert host.available_memory(root) == 0


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "4:memory:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert host.available_memory(root) == 16 * GIB


def test_a_system_that_says_nothing_gets_stated_defaults(tmp_path: Path) -> None:
    assert host.available_memory(tmp_path) == host.UNKNOWN_MEMORY
    assert host.caches(tmp_path) == (host.UNKNOWN_CACHE,)
    assert host.waited_ns(tmp_path) is None
    assert host.cpu_name(tmp_path)


def test_hyperthreads_are_one_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_affinity", lambda: [0, 1, 2, 3])
    siblings = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}
    folder = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    root = machine(tmp_path, {folder.format(cpu): text for cpu, text in siblings.items()})
    assert host.usable_cores(root) == 2


@pytest.mark.parametrize(("quota", "cores"), [("150000 100000", 1), ("300000 100000", 3), ("max 100000", 4)])
def test_a_quota_bounds_the_cores(quota: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_affinity", lambda: [0, 1, 2, 3])
    root = machine(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": quota})
    assert host.usable_cores(root) == cores


def test_a_version_1_quota_bounds_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_affinity", lambda: [0, 1, 2, 3])
    base = "sys/fs/cgroup/cpu"
    files = {
        "proc/self/cgroup": "3:cpu:/\n",
        f"{base}/cpu.cfs_quota_us": "200000",
        f"{base}/cpu.cfs_period_us": "100000",
    }
    assert host.usable_cores(machine(tmp_path, files)) == 2


def test_caches_are_added_up_over_the_cores_that_do_not_share_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_affinity", lambda: [0, 1])
    files = {}
    for cpu in (0, 1):
        for index, (level, kind, size, shared) in enumerate(
            ((1, "Data", "32K", f"{cpu}"), (1, "Instruction", "64K", f"{cpu}"), (2, "Unified", "1M", f"{cpu}"),
             (3, "Unified", "32768K", "0-1"))
        ):  # fmt: skip
            folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
            files |= {f"{folder}/level": f"{level}\n", f"{folder}/type": f"{kind}\n", f"{folder}/size": f"{size}\n"}
            files[f"{folder}/shared_cpu_list"] = f"{shared}\n"
    assert host.caches(machine(tmp_path, files)) == (64 << 10, 2 << 20, 32 << 20)


def test_time_spent_waiting_for_a_core_is_that_of_all_threads(tmp_path: Path) -> None:
    files = {"proc/self/task/1/schedstat": "900 50 3\n", "proc/self/task/2/schedstat": "800 7 3\n"}
    assert host.waited_ns(machine(tmp_path, files)) == 57


def test_the_name_of_the_processor_is_one_line(tmp_path: Path) -> None:
    text = "processor : 0\nmodel name\t: Some  CPU @ 2.0GHz\nflags: x\n"
    assert host.cpu_name(machine(tmp_path, {"proc/cpuinfo": text})) == "Some CPU @ 2.0GHz"


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: object) -> object:
        raise OSError("no library")

    monkeypatch.setattr(host.ctypes, "CDLL", missing)
    assert host.keep_freed_blocks() is False
    monkeypatch.setattr(host.ctypes, "CDLL", lambda name: object())
    assert host.keep_freed_blocks() is False


class Glibc:
    def __init__(self, refused: set[int]) -> None:
        self.refused, self.asked = refused, []

    def gnu_get_libc_version(self) -> None: ...

    def mallopt(self, option: int, value: int) -> int:
        self.asked.append(option)
        return 0 if option in self.refused else 1


@pytest.mark.parametrize(("refused", "kept"), [(set(), True), ({-3}, True), ({-3, -4}, False), ({-1}, False)])
def test_glibc_is_told_to_keep_its_blocks(refused: set[int], kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Glibc(refused)
    monkeypatch.setattr(host.ctypes, "CDLL", lambda name: library)
    assert host.keep_freed_blocks() is kept
    assert -3 in library.asked
    assert (-4 in library.asked) is (-3 in refused)  # no mmap at all where its threshold is refused

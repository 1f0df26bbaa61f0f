from __future__ import annotations

import json
from pathlib import Path

import pytest

from roofline.measure import cache
from roofline.measure.ceilings import Calibration, Reading
from roofline.measure.probes import READ, WRITE, Probe
from tests.measure.fakes import FakeCall, FakeDevice


def calibration(seconds: float = 0.01, name: str = READ) -> Calibration:
    made = Calibration(FakeDevice(noise=(1.0, 1.5)), believed_cache=1 << 20)
    made.add([Probe(name, "sum", 1.0, FakeCall(seconds))], {})
    made.read(name)
    return made


def test_what_was_seen_comes_back(tmp_path: Path) -> None:
    cache.save(calibration(), "2.9")
    seen = cache.load("fake|1", "2.9")
    assert seen is not None
    assert seen.readings[READ].value == pytest.approx(100)
    assert seen.kernels[READ] == ("sum",)
    assert seen.believed_cache == 1 << 20
    (file,) = (tmp_path / "cache").rglob("*.json")
    assert json.loads(file.read_text())["schema"] == cache.SCHEMA
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_another_torch_or_device_has_seen_nothing() -> None:
    cache.save(calibration(), "2.9")
    assert cache.load("fake|1", "2.10") is None
    assert cache.load("fake|2", "2.9") is None


def test_ceilings_that_a_later_session_had_no_use_for_are_kept() -> None:
    cache.save(calibration(), "2.9")
    later = calibration(0.02, WRITE)
    earlier = cache.load("fake|1", "2.9")
    assert earlier is not None
    later.earlier, later.earlier_kernels = earlier.readings, earlier.kernels
    cache.save(later, "2.9")
    seen = cache.load("fake|1", "2.9")
    assert seen is not None
    assert seen.readings[READ].value == pytest.approx(100)
    assert seen.readings[WRITE].value == pytest.approx(50)
    assert seen.kernels[READ] == ("sum",)


def test_the_fastest_sample_ever_is_kept() -> None:
    made = calibration()
    made.earlier = {READ: Reading(1e6, 10.0, "sum")}
    made.earlier_kernels = {READ: ("sum",)}
    cache.save(made, "2.9")
    seen = cache.load("fake|1", "2.9")
    assert seen is not None
    assert seen.readings[READ].value == 1e6


def damaged(**changes: object) -> str:
    """A file of the cache with some keys changed, one dropped for each that is None."""
    entry = {"value": 1, "low": 1, "high": 2, "kernel": "k", "kernels": ["k"]}
    record = {
        "schema": cache.SCHEMA,
        "device": "fake|1",
        "torch": "2.9",
        "believed_cache_bytes": 1,
        "ceilings": {READ: {**entry, **changes}},
    }
    record |= {key: value for key, value in changes.items() if key in record}
    return json.dumps({key: value for key, value in record.items() if value is not None})


def test_the_file_that_is_damaged_below_is_read_while_it_is_whole() -> None:
    path = cache.path_of("fake|1", "2.9")
    path.parent.mkdir(parents=True)
    path.write_text(damaged())
    assert cache.load("fake|1", "2.9") is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "\xff\xfe",
        damaged(schema="roofline/ceilings/9"),
        damaged(schema=None),
        damaged(ceilings={}),
        damaged(ceilings=[1]),
        damaged(believed_cache_bytes=0),
        damaged(believed_cache_bytes="much"),
        damaged(high=-1),
        damaged(high=0.5),
        damaged(high="x"),
        damaged(high=float("inf")),
        damaged(low=0),
        damaged(kernels=None),
    ],
)
def test_a_damaged_file_is_as_good_as_none(text: str) -> None:
    path = cache.path_of("fake|1", "2.9")
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="latin-1")
    assert cache.load("fake|1", "2.9") is None
    cache.save(calibration(), "2.9")  # and is replaced
    assert cache.load("fake|1", "2.9") is not None


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    cache.save(calibration(), "2.9")
    assert cache.load("fake|1", "2.9") is None


def test_the_cache_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "roofline" / "ceilings"
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", "relative/path"):  # the specification says to ignore a relative one
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache.folder() == tmp_path / ".cache" / "roofline" / "ceilings"

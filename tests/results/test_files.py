from __future__ import annotations

import errno
import json
import os
import stat

import pytest

from roofline.errors import RooflineError
from roofline.results import files


def test_integers_stay_integers_and_ratios_without_meaning_are_null():
    text = files.dumps({"a": 8640266240.0, "b": 62.5, "c": float("inf"), "d": float("nan"), "e": [1, (2.0,)]})
    assert json.loads(text) == {"a": 8640266240, "b": 62.5, "c": None, "d": None, "e": [1, [2]]}
    assert "8640266240," in text


def test_the_same_record_gives_the_same_bytes():
    record = {"schema": "roofline/analysis/1", "results": [{"x": 0.1}]}
    assert files.dumps(record) == files.dumps(json.loads(files.dumps(record)))


def test_writes_a_new_file(tmp_path):
    target = tmp_path / "out.json"
    files.write(target, "text")
    assert target.read_text() == "text"
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~files._umask()
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_replaces_what_roofline_wrote_and_nothing_else(tmp_path):
    ours, theirs, empty = tmp_path / "ours.json", tmp_path / "theirs.json", tmp_path / "empty.json"
    ours.write_text('{"schema": "roofline/analysis/1"}')
    theirs.write_text("precious")
    empty.touch()
    files.write(ours, "new")
    files.write(empty, "new")
    with pytest.raises(RooflineError, match="--force") as caught:
        files.write(theirs, "new")
    assert caught.value.exit_code == 2
    assert theirs.read_text() == "precious"
    files.write(theirs, "new", force=True)
    assert [path.read_text() for path in (ours, theirs, empty)] == ["new"] * 3


def test_a_link_is_written_through(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("roofline/analysis/1")
    link.symlink_to(real)
    files.write(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch, code):
    target = tmp_path / "out.json"
    target.write_text("roofline/analysis/1 old")

    def full(_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(RooflineError, match=os.strerror(code)):
        files.write(target, "new")
    assert target.read_text() == "roofline/analysis/1 old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_interrupting_a_write_leaves_no_litter(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write(tmp_path / "out.json", "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["missing/out.json", "."])
def test_places_that_cannot_be_written_are_one_clear_line(tmp_path, place):
    with pytest.raises(RooflineError) as caught:
        files.write(tmp_path / place, "new")
    assert "\n" not in str(caught.value)
    assert caught.value.code == "unwritable"


def test_devices_are_written_to():
    files.write(files.Path(os.devnull), "new")
    assert files.Path(os.devnull).is_char_device()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not JSON"),
        (b"[]", "no schema"),
        (b'{"schema": "other/1"}', "no schema"),
        (b"\xff\xfe\x00", "not a text file"),
    ],
)
def test_reading_what_is_no_record(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(RooflineError, match=message):
        files.read_record(path)


def test_reading_a_missing_file_or_a_directory(tmp_path):
    with pytest.raises(RooflineError, match="no such file"):
        files.read_record(tmp_path / "x.json")
    with pytest.raises(RooflineError, match="not a file"):
        files.read_record(tmp_path)


def test_reading_a_record_back(tmp_path):
    record = {"schema": "roofline/analysis/1", "results": []}
    files.write(tmp_path / "x.json", files.dumps(record))
    assert files.read_record(tmp_path / "x.json") == record

from __future__ import annotations

import errno
import json
import os
import stat

import pytest

from roofline.errors import RooflineError
from roofline.results import files

OURS = {
    "json": '{"schema": "roofline/analysis/1"}',
    "json, indented": files.dumps({"schema": "roofline/hardware-list/1", "rows": []}),
    "csv": "schema,path,flops\nroofline/run/1,mlp/up,2\n",
    "csv, line ends changed": "schema,path,flops\r\nroofline/run/1,mlp/up,2\r\n",
    "markdown": "<!-- roofline/analysis/1 -->\n\n### decode\n",
    "table": "op  bound\nup  memory\n# roofline/analysis/1\n",
}
THEIRS = {
    "prose": "precious",
    "prose about it": "# Contributing\n\nCode is in roofline/ops/1 and `roofline/analysis/1` is a schema.\n",
    "title": "# roofline/analysis/1\n\nNotes on this schema.\n",
    "comment further down": "# Notes\n\n<!-- roofline/analysis/1 -->\n",
    "json about it": '{"tool": "x", "schema": "roofline/analysis/1"}',
    "json of another": '{"schema": "https://example.org/roofline/analysis/1"}',
    "paths": "file,lines\nsrc/roofline/cli.py,10\n",
    "paths of another schema": "schema,file\npublic,roofline/run/1\n",
    "descriptor": "# see roofline/workloads\nop: linear\n",
}


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


@pytest.mark.parametrize("kind", OURS)
def test_replaces_what_roofline_wrote(tmp_path, kind):
    target = tmp_path / "out"
    target.write_bytes(OURS[kind].encode())
    files.write(target, "new")
    assert target.read_text() == "new"


@pytest.mark.parametrize("kind", THEIRS)
def test_replaces_nothing_else(tmp_path, kind):
    target = tmp_path / "CONTRIBUTING.md"
    target.write_text(THEIRS[kind])
    for attempt in (files.check_target, lambda path: files.write(path, "new")):
        with pytest.raises(RooflineError, match="--force") as caught:
            attempt(target)
        assert caught.value.exit_code == 2
        assert target.read_text() == THEIRS[kind]
    files.check_target(target, force=True)
    files.write(target, "new", force=True)
    assert target.read_text() == "new"


def test_the_mark_of_a_long_table_is_found(tmp_path):
    target = tmp_path / "out.txt"
    target.write_text("a line\n" * 10_000 + files.mark("roofline/analysis/1"))
    files.write(target, "new")
    assert target.read_text() == "new"


def test_an_empty_file_is_replaced(tmp_path):
    (tmp_path / "out.json").touch()
    files.write(tmp_path / "out.json", "new")
    assert (tmp_path / "out.json").read_text() == "new"


def test_a_link_is_written_through(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text(OURS["json"])
    link.symlink_to(real)
    files.write(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch, code):
    target = tmp_path / "out.json"
    target.write_text(OURS["json"])

    def full(_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(RooflineError, match=os.strerror(code)):
        files.write(target, "new")
    assert target.read_text() == OURS["json"]
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_interrupting_a_write_leaves_no_litter(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write(tmp_path / "out.json", "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("missing/out.json", "no such folder"),
        (".", "is a directory"),
        ("loop", "symbolic links"),
        ("file/out.json", "Not a directory"),
        ("x" * 300, "too long"),
    ],
)
def test_places_that_cannot_be_written_are_one_clear_line(tmp_path, place, message):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    for attempt in (files.check_target, lambda path: files.write(path, "new")):
        with pytest.raises(RooflineError, match=message) as caught:
            attempt(tmp_path / place)
        assert "\n" not in str(caught.value)
        assert caught.value.code == "unwritable"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("locked", ["folder", "file"])
def test_no_permission(tmp_path, locked):
    target = tmp_path / "out.json"
    target.write_text(OURS["json"])
    place = tmp_path if locked == "folder" else target
    place.chmod(0o555)
    try:
        with pytest.raises(RooflineError, match="Permission denied"):
            files.check_target(target)
    finally:
        place.chmod(0o755)


def test_checking_leaves_no_trace(tmp_path):
    files.check_target(tmp_path / "out.json")
    assert list(tmp_path.iterdir()) == []


def test_a_name_as_long_as_names_can_be(tmp_path):
    target = tmp_path / ("x" * 250 + ".json")
    files.write(target, "new")
    assert target.read_text() == "new"


def test_devices_are_written_to():
    files.write(files.Path(os.devnull), "new")
    assert files.Path(os.devnull).is_char_device()


def test_a_pipe_without_a_name_is_written_to():
    receive, send = os.pipe()
    try:
        files.check_target(files.Path(f"/proc/self/fd/{send}"))
        files.write(files.Path(f"/proc/self/fd/{send}"), "new")
        assert os.read(receive, 10) == b"new"
        os.close(receive)
        receive = -1
        with pytest.raises(OSError):  # no reader: the caller says nothing and ends
            files.write(files.Path(f"/dev/fd/{send}"), "new")
    finally:
        os.close(send)
        if receive != -1:
            os.close(receive)


def test_a_full_device_is_one_clear_line():
    with pytest.raises(RooflineError, match="No space left"):
        files.write(files.Path("/dev/full"), "new")


def test_names_that_are_not_text_are_written_as_escapes(tmp_path):
    files.write(tmp_path / "out.md", "file \udcff.yaml")
    assert (tmp_path / "out.md").read_text() == "file \\udcff.yaml"
    assert json.loads(files.dumps({"file": "\udcff.yaml"}).encode("ascii")) == {"file": "\udcff.yaml"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0"), (-3.0, "-3"), (1.35e16, "13500000000000000"), (1e20, "1" + "0" * 20), (1e22, "1e+22"), (0.1, "0.1")],
)
def test_whole_numbers_have_no_fraction(value, expected):
    assert str(files.number(value)) == expected
    assert files.dumps({"x": value}) == f'{{\n  "x": {expected}\n}}\n'


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

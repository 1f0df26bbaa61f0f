"""Bad input: one clear line that says what, where and the nearest right thing, and exit code 2."""

from __future__ import annotations

import json
import os

import pytest

LINEAR = "op: linear\ntokens: 1\nin_features: 64\nout_features: 64\n"

CASES = {
    "misspelt key": ("op: linear\ntokns: 1\nin_features: 64\nout_features: 64\n", "2:1", "tokns", "tokens"),
    "negative size": ("op: linear\ntokens: -4\nin_features: 64\nout_features: 64\n", "2:9", "-4", None),
    "zero size": ("op: linear\ntokens: 0\nin_features: 64\nout_features: 64\n", "2:9", "at least 1", None),
    "a word for a size": ("op: linear\ntokens: many\nin_features: 64\nout_features: 64\n", "2:9", "many", None),
    "a fraction for a size": ("op: linear\ntokens: 1.5\nin_features: 64\nout_features: 64\n", "2:9", "1.5", None),
    "missing key": ("op: linear\ntokens: 1\nin_features: 64\n", "1:1", "out_features", None),
    "unknown dtype": (LINEAR + "dtype: bf61\n", "5:8", "bf61", "bf16"),
    "unknown op": ("op: liner\ntokens: 1\n", "1:5", "liner", "linear"),
    "unknown model": ("model: lama-3.1-8b\nphase: decode\ncontext: 1\n", "1:8", "lama-3.1-8b", "llama-3.1-8b"),
    "unknown phase": ("model: llama-3.1-8b\nphase: decod\ncontext: 1\n", "2:8", "decod", "decode"),
    "weight-only without compute": (LINEAR + "weight_dtype: int4-g128\n", None, "compute", None),
    "uneven groups": ("op: attention\nheads: 8\nkv_heads: 3\nhead_dim: 8\nqueries: 1\n", "3:11", "multiple", None),
    "empty file": ("", None, "empty", None),
    "only comments": ("# nothing\n", None, "empty", None),
    "a list": ("- op: linear\n", "1:1", "a list at the top", None),
    "python tag": ("op: !!python/object/apply:os.system ['true']\n", "1:5", "!!python", None),
    "alias bomb": ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", None, "alias", None),
    "self-reference": ("op: &a [*a]\n", None, "alias", None),
    "duplicate key": (LINEAR + "tokens: 2\n", "5:1", "tokens", None),
    "syntax": ("op: [linear\n", None, "", None),
}


def only_line(outcome):
    """The one line on stderr; nothing may be on stdout."""
    assert outcome.code == 2, outcome.out + outcome.err
    assert outcome.out == ""
    (line,) = outcome.err.splitlines()
    assert line.startswith("roofline: ")
    assert "Traceback" not in line
    return line


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("command", ["analyze", "explain", "validate"])
def test_a_bad_descriptor(roofline, tmp_path, name, command):
    content, place, what, nearest = CASES[name]
    (tmp_path / "bad.yaml").write_text(content)
    line = only_line(roofline(command, "bad.yaml"))
    assert "bad.yaml" in line
    if place:
        assert f"bad.yaml:{place}:" in line
    assert what in line
    if nearest:
        assert f"did you mean {nearest}" in line


@pytest.mark.parametrize("name", CASES)
def test_json_stays_json_when_it_fails(roofline, tmp_path, name):
    (tmp_path / "bad.yaml").write_text(CASES[name][0])
    outcome = roofline("analyze", "bad.yaml", "--format", "json")
    record = json.loads(outcome.out)
    assert record["schema"] == "roofline/error/1"
    assert record["exit_code"] == outcome.code == 2
    assert set(record["error"]) == {"code", "message", "file", "line", "column", "key", "suggestions"}
    assert record["error"]["file"] == "bad.yaml"


def test_a_dtype_that_the_hardware_lacks_names_what_it_has(roofline):
    line = only_line(roofline("analyze", "linear", "--set", "dtype=fp8", "-H", "a100"))
    assert "a100" in line
    assert "fp8" in line
    assert "bf16" in line


@pytest.mark.parametrize("text", ["h10", "h100-smx", "H100SXM", "NVIDIA"])
def test_hardware_is_never_matched_by_substring(roofline, text):
    only_line(roofline("analyze", "linear", "-H", text))


def test_unknown_hardware_gets_a_suggestion(roofline):
    assert "did you mean h100-sxm" in only_line(roofline("analyze", "linear", "-H", "h100-smx"))


def test_unknown_workload_gets_a_suggestion(roofline):
    assert "did you mean decode" in only_line(roofline("analyze", "decoed"))


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("batch", "KEY=VALUE"),
        ("=4", "KEY=VALUE"),
        ("bacth=4", "batch"),
        ("batch=-1", "at least 1"),
        ("batch=x", "batch"),
    ],
)
def test_bad_overrides(roofline, override, what):
    assert what in only_line(roofline("analyze", "decode", "--set", override))


class TestFilesThatAreNoDescriptors:
    def test_missing(self, roofline):
        assert "nowhere.yaml" in only_line(roofline("analyze", "nowhere.yaml"))
        assert "nowhere" in only_line(roofline("analyze", "some/nowhere.yaml"))

    def test_directory(self, roofline, tmp_path):
        (tmp_path / "dir.yaml").mkdir()
        assert "directory" in only_line(roofline("analyze", "dir.yaml"))

    @pytest.mark.parametrize("content", [b"\x00\x01\x02\xff\xfe", b"\x7fELF\x02\x01", bytes(range(256))])
    def test_binary(self, roofline, tmp_path, content):
        (tmp_path / "bin.yaml").write_bytes(content)
        only_line(roofline("analyze", "bin.yaml"))

    def test_ten_megabytes(self, roofline, tmp_path):
        (tmp_path / "big.yaml").write_text("# " + "x" * 10_000_000 + "\n" + LINEAR)
        assert "large" in only_line(roofline("analyze", "big.yaml"))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
    def test_no_permission(self, roofline, tmp_path):
        path = tmp_path / "secret.yaml"
        path.write_text(LINEAR)
        path.chmod(0)
        assert "ermission" in only_line(roofline("analyze", "secret.yaml"))

    def test_endless_device(self, roofline):
        only_line(roofline("analyze", "/dev/zero"))


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["analyse"], "analyze"),
        (["analyze"], "WORKLOAD"),
        (["analyze", "decode", "--formt", "json"], "--format"),
        (["analyze", "decode", "--format", "jsn"], "json"),
        (["analyze", "decode", "-o", "out.xyz"], ".json"),
        (["explain"], "--conventions"),
        (["schema", "workloda"], "workload"),
        (["hardware", "list", "--sort", "speed"], "bandwidth"),
        (["hardware", "list", "zzz*"], "zzz"),
        (["hardware", "show", "h1000"], "h100"),
        (["explain", "decode", "--op", "q_proj"], "qkv_proj"),
    ],
)
def test_a_bad_command_line(roofline, arguments, what):
    assert what in only_line(roofline(*arguments))


def test_nothing_is_written_when_it_fails(roofline, tmp_path):
    roofline("analyze", "linear", "-H", "nope", "-o", "out.json")
    assert not (tmp_path / "out.json").exists()


def test_a_file_of_somebody_else_is_not_replaced(roofline, tmp_path):
    (tmp_path / "notes.md").write_text("mine")
    assert "--force" in only_line(roofline("analyze", "linear", "-o", "notes.md"))
    assert (tmp_path / "notes.md").read_text() == "mine"
    assert roofline("analyze", "linear", "-o", "notes.md", "--force").code == 0
    assert roofline("analyze", "linear", "-o", "notes.md").code == 0  # now it is ours

"""stdout and stderr that are full, closed, narrow or abandoned, and what may be printed on them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
import typer

from roofline.cli import common, streams
from roofline.errors import RooflineError
from roofline.results.analysis import SCHEMA

ROOFLINE = f"{sys.executable} -m roofline"


def shell(command, **environment):
    """Run a bash line in which ``roofline`` is this interpreter's."""
    return subprocess.run(
        ["bash", "-c", f'roofline() {{ {ROOFLINE} "$@"; }}; {command}'],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": os.environ["PATH"], **environment},
    )


@pytest.mark.parametrize(
    "arguments",
    ["analyze decode prefill --format json", "schema workload", "--help", "workload show decode", "--version"],
)
def test_a_reader_that_has_gone_is_no_error(arguments):
    done = shell(f"roofline {arguments} | true; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_reader_that_goes_while_an_error_is_told():
    done = shell("roofline nope --format json | true; echo ${PIPESTATUS[0]}")
    assert done.stdout == "0\n"
    assert done.stderr.splitlines() == ["roofline: no such command 'nope' (see roofline --help)"]


def test_a_reader_of_a_file_that_is_a_pipe():
    done = shell("roofline analyze linear --format json -o /dev/stdout | head -1; echo ${PIPESTATUS[0]}")
    assert done.stdout == "{\n0\n"


def test_a_record_through_a_pipe_is_whole():
    done = shell("roofline analyze linear --format json -o /dev/stdout | cat")
    assert json.loads(done.stdout)["schema"] == SCHEMA
    assert done.stderr == "wrote /dev/stdout\n"


@pytest.mark.parametrize(
    "arguments", ["analyze linear", "analyze linear --format json", "--help", "workload show decode"]
)
def test_a_full_stdout_is_one_line(arguments):
    done = shell(f"roofline {arguments} > /dev/full")
    assert done.returncode == 2
    assert done.stderr == "roofline: cannot write the result: No space left on device\n"


def test_a_closed_stdout_is_one_line():
    done = shell("roofline analyze linear >&-")
    assert done.returncode == 2
    assert done.stderr == "roofline: cannot write the result: stdout is closed\n"


def test_a_closed_stdout_is_not_missed_where_a_file_is_written(tmp_path):
    done = shell(f"roofline analyze linear -o {tmp_path}/out.json >&-")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["schema"] == SCHEMA


@pytest.mark.parametrize("stderr", ["&-", "/dev/full"])
@pytest.mark.parametrize(
    ("arguments", "code"), [("analyse", 2), ("analyze linear", 0), ("analyze linear -o /dev/null --format csv", 0)]
)
def test_a_stderr_that_takes_nothing_changes_no_exit_code(stderr, arguments, code):
    assert shell(f"roofline {arguments} 2>{stderr}").returncode == code


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_encoding_can_print_every_name(tmp_path, encoding):
    name = "d\u00e9code-\u20ac-\U0001f600"
    (tmp_path / "w.yaml").write_text(
        f'op: linear\nname: "{name}"\ntokens: 1\nin_features: 64\nout_features: 64\n', encoding="utf-8"
    )
    for fmt in ("table", "json", "csv", "markdown"):
        command = [sys.executable, "-m", "roofline", "analyze", "w.yaml", "--format", fmt]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, timeout=120, env={"PYTHONIOENCODING": encoding}
        )
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode(encoding)
        if fmt == "json":
            assert json.loads(text)["results"][0]["workload"]["name"] == name


def test_names_that_are_not_text_reach_no_terminal(tmp_path):
    name = b"a\x1b[31m\xff.yaml"
    command = [sys.executable.encode(), b"-m", b"roofline", b"analyze", name, b"--format", b"json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith(rb"roofline: a\x1b[31m\udcff.yaml: ")
    assert json.loads(done.stdout)["error"]["file"] == "a\x1b[31m\udcff.yaml"


@pytest.mark.parametrize("override", ["x\x1b]0;title\x07=2", "batch=1\x1b[31m\n", "a\nb"])
def test_errors_show_control_characters_as_escapes(roofline, override):
    outcome = roofline("analyze", "decode", "--set", override)
    assert outcome.code == 2
    (line,) = outcome.err.splitlines()
    assert line.isprintable()


def test_a_file_name_with_a_line_end_is_told_in_one_line(roofline):
    outcome = roofline("analyze", "linear", "-o", "a\n\x1b[31mb.json")
    assert outcome.code == 0
    assert outcome.err == "wrote a\\n\\x1b[31mb.json\n"


@pytest.mark.parametrize("columns", ["9" * 5000, "99999", "0", "-5", "wide", ""])
def test_a_width_that_is_none_is_ignored(roofline, monkeypatch, columns):
    expected = roofline("analyze", "linear").out
    monkeypatch.setenv("COLUMNS", columns)
    assert roofline("analyze", "linear").out == expected


@pytest.mark.parametrize(("arguments", "command"), [((), "analyze"), (("hardware",), "lint"), (("workload",), "show")])
def test_a_command_without_its_command_prints_its_help(roofline, arguments, command):
    outcome = roofline(*arguments)
    assert (outcome.code, outcome.err) == (2, "")
    assert outcome.out == roofline(*arguments, "--help").out
    assert any(line.split()[:1] == [command] for line in outcome.out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message", "suggestion"),
    [(["analyse"], "no such command 'analyse'", "analyze"), (["analyze", "x", "--formt"], "--formt", "--format")],
)
def test_suggestions_of_the_parser_are_suggestions(roofline, arguments, message, suggestion):
    outcome = roofline(*arguments, "--format", "json")
    error = outcome.json["error"]
    assert suggestion in error["suggestions"]
    assert message in error["message"]
    assert suggestion not in error["message"].removesuffix("--help)")
    assert outcome.err.count(suggestion) == 1


class TestInterrupts:
    def test_a_partial_record_stays_the_only_document(self, roofline, monkeypatch):
        def partial(*_, **__):
            common.emit({"schema": "roofline/names/1", "rows": []}, fmt="json")
            raise typer.Exit(130)

        monkeypatch.setattr("roofline.workload.load", partial)
        outcome = roofline("analyze", "linear", "--format", "json")
        assert (outcome.code, outcome.err) == (130, "")
        assert outcome.json["schema"] == "roofline/names/1"

    def test_an_error_is_the_only_document(self, roofline, monkeypatch):
        def half(*_, **__):
            sys.stdout.write("{half")
            raise KeyboardInterrupt

        monkeypatch.setattr("roofline.workload.load", half)
        outcome = roofline("analyze", "linear", "--format", "json")
        assert outcome.code == outcome.json["exit_code"] == 130
        assert outcome.err == "roofline: interrupted\n"

    def test_while_a_library_loads(self):
        code = (
            "import sys\n"
            "class Interrupt:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name == 'typer':\n"
            "            raise KeyboardInterrupt\n"
            "sys.meta_path.insert(0, Interrupt())\n"
            "from roofline.cli.main import main\n"
            "main(['analyze', 'linear'])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "roofline: interrupted\n")


@pytest.mark.parametrize(
    ("module", "arguments", "install"),
    [
        ("sympy", ["explain", "linear"], "pip install sympy"),
        ("yaml", ["analyze", "linear"], "pip install pyyaml"),
        ("typer", ["--help"], "pip install typer"),
    ],
)
def test_a_missing_library_is_one_line(module, arguments, install):
    code = f"import sys; sys.modules[{module!r}] = None; from roofline.cli.main import main; main({arguments!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr == f"roofline: {module} is missing: {install}\n"


class TestReady:
    def test_what_emit_would_refuse_is_refused_before(self, tmp_path):
        (tmp_path / "notes.md").write_text("about roofline/analysis/1")
        with pytest.raises(RooflineError, match="--force"):
            common.ready(SCHEMA, None, tmp_path / "notes.md", False)
        assert common.ready(SCHEMA, None, tmp_path / "notes.md", True) == "markdown"
        with pytest.raises(RooflineError, match="no such folder"):
            common.ready(SCHEMA, None, tmp_path / "missing" / "x.json", False)
        with pytest.raises(RooflineError, match="no format"):
            common.ready(SCHEMA, "jsn", None, False)

    def test_stdout_needs_nothing(self):
        assert common.ready(SCHEMA, None, None, False) == "table"


@pytest.mark.parametrize("name", ["out.json", "out.csv", "out.md", "out.txt"])
def test_its_own_files_are_replaced(roofline, name):
    arguments = ("analyze", "linear", "-o", name, *(["--format", "table"] if name == "out.txt" else []))
    assert roofline(*arguments).code == 0
    assert roofline(*arguments).code == 0


def test_a_stream_without_a_descriptor_can_fail():
    class Broken(io.StringIO):
        def flush(self):
            raise OSError(5, "Input/output error")

    held = streams.Held(Broken())
    held.write("text")
    with pytest.raises(RooflineError, match="Input/output error"):
        held.deliver()

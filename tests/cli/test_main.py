from __future__ import annotations

import json
import subprocess
import sys

import pytest

from roofline import __version__
from roofline.cli import main

HEAVY = {"torch", "numpy", "sympy", "matplotlib", "scipy"}


def child(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze", "decode"],
        ["analyze", "decode", "--format", "json"],
        ["hardware", "list"],
        ["--help"],
        ["workload", "list"],
    ],
)
def test_commands_that_need_no_heavy_library_load_none(arguments):
    code = (
        f"import sys; from roofline.cli.main import run; code = run({arguments!r}); "
        f"print(sorted(set(sys.modules) & {HEAVY!r}), file=sys.stderr); sys.exit(code)"
    )
    done = child(code)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_help_loads_neither_pydantic_nor_rich():
    code = "import sys; from roofline.cli.main import run; run(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    loaded = child(code).stderr
    assert "'pydantic'" not in loaded
    assert "'rich.table'" not in loaded


def test_version(roofline):
    outcome = roofline("--version")
    assert (outcome.code, outcome.out) == (0, f"roofline {__version__}\n")


def test_help_of_every_command_names_its_exit_codes(roofline):
    top = roofline("--help").out
    for command in ("analyze", "explain", "validate", "hardware", "workload", "schema"):
        assert command in top
        assert roofline(command, "--help").code == 0
    for command in ("analyze", "explain", "validate"):
        assert "Exit codes" in roofline(command, "--help").out


def test_a_crash_is_one_line_and_exit_code_70(roofline, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr("roofline.analysis.analyse", broken)
    outcome = roofline("analyze", "linear")
    assert outcome.code == 70
    (line,) = outcome.err.splitlines()
    assert "ZeroDivisionError: surprise" in line
    assert "report" in line
    record = json.loads(roofline("analyze", "linear", "--format", "json").out)
    assert record["exit_code"] == 70
    assert record["error"]["code"] == "crash"


def test_debugging_shows_the_traceback(roofline, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr("roofline.analysis.analyse", broken)
    monkeypatch.setenv("ROOFLINE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        roofline("analyze", "linear")


def test_interrupting_is_exit_code_130(roofline, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("roofline.analysis.analyse", interrupt)
    outcome = roofline("analyze", "linear")
    assert outcome.code == 130
    assert len(outcome.err.splitlines()) == 1


def test_a_reader_that_goes_away_is_no_error():
    command = (
        f"{sys.executable} -m roofline hardware list --format json | head -c 10 > /dev/null; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout == "0\n"


def test_output_survives_an_ascii_terminal():
    done = child(
        "from roofline.cli.main import main; main(['analyze', 'decode', '-v'])",
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["x", "--format", "json"], True),
        (["x", "--format=json"], True),
        (["x", "--format", "csv"], False),
        (["x", "--format"], False),
        (["--set", "name=--format"], False),
    ],
)
def test_json_is_recognised_before_the_command_line_is_parsed(arguments, expected):
    assert main.wants_json(arguments) is expected

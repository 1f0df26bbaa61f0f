"""What the renderers print, whole, against files that a person has read. Rewritten by ``pytest --regenerate``."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofline.cli.main import run

GOLDEN = Path(__file__).parent / "golden"
ONE = ("analyze", "attention-naive", "-H", "h100-sxm")
SEVERAL = ("analyze", "linear", "-H", "h100-sxm", "-H", "l40s")
PREFILL = ("analyze", "prefill", "-H", "h100-sxm")
CASES = {
    "naive.txt": ONE,
    "naive.json": (*ONE, "--format", "json"),
    "naive.csv": (*ONE, "--format", "csv"),
    "naive.md": (*ONE, "--format", "markdown"),
    "prefill.txt": PREFILL,
    "prefill-verbose.txt": (*PREFILL, "-v"),
    "prefill.md": (*PREFILL, "--format", "markdown"),
    "several.txt": SEVERAL,
    "several.md": (*SEVERAL, "--format", "markdown"),
    "explain.txt": ("explain", "attention-decode"),
    "explain-symbolic.txt": ("explain", "attention-decode", "--symbolic"),
    "explain.json": ("explain", "linear", "--format", "json"),
    "explain.md": ("explain", "linear", "--format", "markdown"),
    "conventions.txt": ("explain", "--conventions"),
    "hardware.txt": ("hardware", "show", "h100"),
    "hardware.json": ("hardware", "show", "h100", "--format", "json"),
    "hardware.md": ("hardware", "show", "h100", "--format", "markdown"),
    "hardware-list.txt": ("hardware", "list", "h*", "--sort", "bandwidth"),
    "hardware-list.csv": ("hardware", "list", "h*", "--format", "csv"),
    "workloads.txt": ("workload", "list"),
}


@pytest.mark.parametrize("name", CASES)
def test_output(name, capsys, monkeypatch, tmp_path, request):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.delenv("ROOFLINE_HARDWARE", raising=False)
    assert run(CASES[name]) == 0
    printed = capsys.readouterr().out
    if request.config.getoption("--regenerate"):
        (GOLDEN / name).write_text(printed)
    assert printed == (GOLDEN / name).read_text()


def test_no_golden_file_is_left_over():
    assert {path.name for path in GOLDEN.iterdir()} == set(CASES)

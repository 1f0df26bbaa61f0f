"""What the README shows works as it is written there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from roofline import catalog
from roofline.cli.main import run

README = (Path(__file__).resolve().parent.parent / "README.md").read_text()
SNIPPETS = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
WORKLOADS = [text for text in SNIPPETS if re.search(r"^(op|model):", text, re.MULTILINE)]
DEVICES = [text for text in SNIPPETS if text not in WORKLOADS]


def test_there_are_snippets_of_both_kinds():
    assert len(WORKLOADS) == 2
    assert len(DEVICES) == 1


@pytest.mark.parametrize("text", WORKLOADS)
def test_its_descriptors_are_analysed(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(text)
    assert run(["analyze", "mine.yaml"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("text", DEVICES)
def test_its_device_is_clean_and_can_be_predicted_for(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-device.yaml").write_text(text)
    assert run(["hardware", "lint", "my-device.yaml"]) == 0
    assert ": error:" not in capsys.readouterr().out
    assert run(["analyze", "decode", "-H", "h100", "-H", "h200", "-H", "my-device.yaml"]) == 0


def test_it_names_every_model_of_the_catalogue():
    for name in catalog.names("workloads/models"):
        stem, _, size = name.rpartition("-")
        assert name in README or (stem in README and f"-{size}" in README)


def test_the_commands_that_it_names_exist(capsys):
    commands = set(re.findall(r"`roofline ([a-z]+)", README))
    assert {"analyze", "explain", "validate", "hardware", "workload", "schema"} <= commands
    for command in commands:
        assert run([command, "--help"]) == 0
    capsys.readouterr()


def test_the_screen_of_analyze_is_what_it_prints(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.delenv("ROOFLINE_HARDWARE", raising=False)
    assert run(["analyze", "decode"]) == 0
    assert capsys.readouterr().out.strip() in README

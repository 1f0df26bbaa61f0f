from __future__ import annotations

import json

import pytest

from roofline.cli.main import run


class Outcome:
    """What a command line left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def roofline(capsys, monkeypatch, tmp_path):
    """Run a command line in an empty directory, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROOFLINE_HARDWARE", raising=False)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return call

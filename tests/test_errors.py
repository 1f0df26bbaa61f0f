"""The one error type: its line for people, its object for machines, and the nearest right thing."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import SCHEMA, RooflineError, nearest


def test_the_message_alone():
    assert str(RooflineError("no such device")) == "no such device"


def test_the_place_comes_before_the_message_and_the_suggestions_after_it():
    error = RooflineError("unknown key", file="a.yaml", line=3, column=5, suggestions=["batch", "bits"])
    assert str(error) == "a.yaml:3:5: unknown key (did you mean batch or bits?)"


def test_a_file_without_a_line():
    assert str(RooflineError("is empty", file="a.yaml")) == "a.yaml: is empty"


def test_bad_input_exits_with_2_unless_said_otherwise():
    assert RooflineError("x").exit_code == 2
    assert RooflineError("x", exit_code=3).exit_code == 3


def test_the_object_for_machines_has_every_field():
    error = RooflineError(
        "unknown key", code="unknown-key", file="a.yaml", line=3, column=5, key="mem.bw", suggestions=("bandwidth",)
    )
    assert json.loads(json.dumps(error.as_json())) == {
        "schema": SCHEMA,
        "exit_code": 2,
        "error": {
            "code": "unknown-key",
            "message": "unknown key",
            "file": "a.yaml",
            "line": 3,
            "column": 5,
            "key": "mem.bw",
            "suggestions": ["bandwidth"],
        },
    }


def test_what_is_unknown_is_null_for_machines():
    fields = RooflineError("x").as_json()["error"]
    assert isinstance(fields, dict)
    assert [fields[name] for name in ("file", "line", "column", "key")] == [None] * 4
    assert fields["suggestions"] == []


@settings(deadline=None)
@given(st.text(), st.lists(st.text(alphabet="abc", min_size=1), max_size=3))
def test_it_is_one_line_whatever_the_message(message: str, suggestions: list[str]):
    assert len(str(RooflineError(message, suggestions=suggestions)).splitlines()) <= 1


@pytest.mark.parametrize(
    ("word", "expected"),
    [("h10", "h100"), ("H100", "h100"), ("bacth", "batch"), ("qwen", None)],
)
def test_nearest_finds_what_looks_alike(word: str, expected: str | None):
    found = nearest(word, ["h100", "batch", "context"])
    assert (found[0] if found else None) == expected


def test_nearest_gives_names_as_they_are_spelt_and_no_more_than_asked():
    assert nearest("tflop/s", ["TFLOP/s", "GB/s"]) == ("TFLOP/s",)
    assert len(nearest("rtx-1", ["rtx-2", "rtx-3", "rtx-4"], n=2)) == 2

from __future__ import annotations

import dataclasses

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.dtypes import COMPUTE_DTYPES, STORAGE_DTYPES
from roofline.errors import RooflineError
from roofline.fields import (
    LARGEST,
    SHARED_SCHEMAS,
    Nowhere,
    Within,
    build,
    declared,
    read_size,
    required,
    schema_of,
    shown,
)
from roofline.ops.base import compute, flag, option, size, storage


@dataclasses.dataclass(frozen=True, kw_only=True)
class Thing:
    rows: int = size("r", "rows")
    offset: int = size("o", "rows before", min=0, default=0)
    window: int | None = size("w", "window", default=None)
    word: str = option("a word", ("red", "green"), default="red")
    on: bool = flag("switched on")
    dtype: str = storage("dtype")
    narrow: str | None = storage("another dtype", default=None)
    compute: str | None = compute()

    def check(self) -> None:
        if self.offset > self.rows:
            raise RooflineError("offset is past the rows", code="bad-value", key="offset", suggestions=["1"])


def refused(data, of="") -> RooflineError:
    with pytest.raises(RooflineError) as caught:
        build(Thing, data, Nowhere(), of=of)
    return caught.value


def test_a_thing_from_a_mapping():
    data = {"rows": "8k", "offset": 0, "window": None, "word": "green", "on": True, "dtype": "fp8", "compute": None}
    assert build(Thing, data, Nowhere()) == Thing(rows=8000, word="green", on=True, dtype="fp8")
    assert build(Thing, {"rows": 1}, Nowhere()) == Thing(rows=1)


def test_what_is_declared_and_what_must_be_given():
    assert list(declared(Thing)) == ["rows", "offset", "window", "word", "on", "dtype", "narrow", "compute"]
    assert required(Thing) == ("rows",)


@pytest.mark.parametrize(
    ("changes", "code", "key", "words"),
    [
        ({"rosw": 1}, "unknown-key", "rosw", "allowed are compute, dtype"),
        ({"rows": ...}, "missing-key", "rows", "missing key 'rows'"),
        ({"rows": None}, "bad-value", "rows", "nothing is not a whole number"),
        ({"rows": 0}, "out-of-range", "rows", "at least 1, not 0"),
        ({"rows": -4}, "out-of-range", "rows", "at least 1, not -4"),
        ({"rows": -0.5}, "out-of-range", "rows", "at least 1"),
        ({"rows": "0"}, "out-of-range", "rows", "at least 1"),
        ({"rows": 1.5}, "bad-value", "rows", "fraction"),
        ({"rows": "many"}, "bad-value", "rows", "8k"),
        ({"rows": True}, "bad-value", "rows", "true is not"),
        ({"rows": [4]}, "bad-value", "rows", "is not a whole number"),
        ({"rows": 2**62 + 1}, "out-of-range", "rows", "at most 2^62"),
        ({"rows": "1e30"}, "out-of-range", "rows", "at most 2^62"),
        ({"rows": "1e400"}, "bad-value", "rows", "too large"),
        ({"offset": -1}, "out-of-range", "offset", "at least 0"),
        ({"offset": 9}, "bad-value", "offset", "past the rows"),
        ({"word": "gren"}, "bad-value", "word", "one of red, green, not 'gren'"),
        ({"word": 7}, "bad-value", "word", "not 7"),
        ({"on": "true"}, "bad-value", "on", "true or false"),
        ({"dtype": None}, "unknown-dtype", "dtype", "not nothing"),
        ({"dtype": "int64"}, "unknown-dtype", "dtype", "one of fp64"),
        ({"compute": "int4-g128"}, "unknown-dtype", "compute", "tf32"),
    ],
)
def test_what_is_refused_and_what_is_said(changes, code, key, words):
    data = {name: value for name, value in {"rows": 4, **changes}.items() if value is not ...}
    error = refused(data, of="a thing")
    assert (error.code, error.key) == (code, key)
    assert words in error.message
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize(
    ("key", "value", "near"),
    [
        ("word", "gren", "green"),
        ("dtype", "fp17", "fp16"),
        ("dtype", "bfloat16", "bf16"),
        ("dtype", "torch.float16", "fp16"),
        ("dtype", "float8_e4m3fn", "fp8"),
        ("compute", "tf23", "tf32"),
    ],
)
def test_the_nearest_right_word(key, value, near):
    assert refused({"rows": 1, key: value}).suggestions[0] == near


def test_a_key_that_is_read_elsewhere_is_named_among_those_allowed():
    with pytest.raises(RooflineError) as caught:
        build(Thing, {"rows": 1, "nmae": "x"}, Nowhere(), of="a thing", also=("name",))
    assert caught.value.suggestions == ("name",)
    assert "for a thing" in caught.value.message


def test_an_error_within_a_part_has_the_whole_key():
    with pytest.raises(RooflineError) as caught:
        build(Thing, {"rows": 0}, Within(Within(Nowhere(), "model"), "inner"))
    assert caught.value.key == "model.inner.rows"


@given(st.integers(1, LARGEST))
def test_every_size_up_to_the_limit_is_read_exactly(value):
    assert read_size("n", value, Nowhere()) == value
    assert read_size("n", str(value), Nowhere()) == value


def test_values_in_messages_are_short_and_as_yaml_writes_them():
    assert [shown(value) for value in (None, True, {}, [1], "a", 2.5)] == [
        "nothing",
        "true",
        "a mapping",
        "a list",
        "'a'",
        "2.5",
    ]
    assert len(shown("x" * 999)) == 60


# ---------------------------------------------------------------- schema

SCHEMA = {
    "type": "object",
    "properties": schema_of(Thing),
    "required": list(required(Thing)),
    "additionalProperties": False,
    "$defs": SHARED_SCHEMAS,
}


def test_the_schema_says_what_the_declaration_says():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    properties = SCHEMA["properties"]
    assert properties["rows"] == {"description": "rows", "$ref": "#/$defs/size"}
    assert properties["offset"] == {"description": "rows before", "$ref": "#/$defs/count", "default": 0}
    assert properties["word"] == {"description": "a word", "enum": ["red", "green"], "default": "red"}
    assert {"type": "null"} in properties["window"]["anyOf"]


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10),
    st.just(2**62 + 1),
    st.floats(-2, 10),
    st.sampled_from(["8k", "4Ki", "1_000", "1.5k", "1e3", "x", "8q", "red", "gren", "", "-4", "1e400"]),
    st.sampled_from([*STORAGE_DTYPES, *COMPUTE_DTYPES]),
    st.just([1]),
    st.just({}),
)


@given(st.dictionaries(st.sampled_from([*declared(Thing), "other"]), values))
def test_what_is_read_is_valid_against_the_schema(data):
    try:
        build(Thing, data, Nowhere())
    except RooflineError:
        return
    jsonschema.validate(data, SCHEMA)


@given(st.dictionaries(st.sampled_from([*declared(Thing), "other"]), values))
def test_what_is_valid_against_the_schema_is_read_but_for_what_only_arithmetic_sees(data):
    if not jsonschema.Draft202012Validator(SCHEMA).is_valid(data):
        return
    try:
        build(Thing, data, Nowhere())
    except RooflineError as error:
        # fractions like "0.5k" and combinations of fields are beyond a schema
        assert error.code in ("bad-value", "out-of-range")
        assert error.key in ("offset", "rows", "window")

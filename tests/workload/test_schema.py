from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import catalog
from roofline.documents import Document, parse_yaml
from roofline.errors import RooflineError
from roofline.fields import declared, required
from roofline.models.phases import PHASES
from roofline.ops import OPS
from roofline.results.files import dumps
from roofline.workload import from_document, json_schema

ROOT = Path(__file__).parents[2]
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def test_the_committed_schema_is_current():
    committed = (ROOT / "docs" / "schema" / "workload.json").read_text(encoding="utf-8")
    assert committed == dumps(json_schema()), "write `roofline schema workload` to docs/schema/workload.json"


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("name", catalog.names("workloads"))
def test_every_workload_of_the_catalogue_is_valid_and_tells_editors_its_schema(name):
    path = catalog.resolve("workloads", name)
    assert list(VALIDATOR.iter_errors(catalog.read_yaml(path).data)) == []
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=../docs/schema/workload.json"
    assert (path.parent / first.partition("=")[2]).is_file()


def a_value(info):
    """A strategy for values that the declaration of a field allows, written in the ways that YAML allows."""
    if info.kind == "size":
        return st.one_of(st.integers(max(info.minimum, 1), 9999), st.sampled_from(["8k", "4Ki", "1e3", 2e3]))
    if info.kind == "flag":
        return st.booleans()
    return st.sampled_from(info.choices)


@st.composite
def descriptors(draw):
    kind = draw(st.sampled_from([*OPS, *PHASES]))
    declaring = OPS[kind] if kind in OPS else PHASES[kind]
    data = {"op": kind} if kind in OPS else {"model": "llama-3.1-8b", "phase": kind}
    if draw(st.booleans()):
        data["name"] = "x"
    for key, info in declared(declaring).items():
        if key in required(declaring) or draw(st.booleans()):
            data[key] = draw(a_value(info))
    return data


def document(data) -> Document:
    return parse_yaml(json.dumps(data), "generated")


@given(descriptors())
@settings(max_examples=150, deadline=None)
def test_what_is_read_is_valid(data):
    assert VALIDATOR.is_valid(data)
    try:
        from_document(document(data))
    except RooflineError as error:
        # what a schema cannot say: fields that do not go together
        assert error.code in ("bad-value", "bad-combination", "compute-needed", "out-of-range")


@pytest.mark.parametrize(
    "tokens", [".5k", "5.k", "8E", "4Ei", "4E", "3.9E", "0E", "1e3", "01k", "1_000", "1k k", "5Ei"]
)
def test_sizes_in_words_are_valid_where_they_are_read(tokens):
    data = {"op": "linear", "tokens": tokens, "in_features": 8, "out_features": 8}
    try:
        from_document(document(data))
    except RooflineError:
        assert not VALIDATOR.is_valid(data) or tokens.startswith("0")
    else:
        assert VALIDATOR.is_valid(data)


def test_what_may_be_left_out_may_be_null():
    op = {"op": "linear", "tokens": 8, "in_features": 8, "out_features": 8}
    model = {"model": "llama-3.1-8b", "phase": "decode", "context": 8, "part": None, "precision": None}
    for data in (op, model):
        data = {**data, "name": None, "description": None, "hardware": None}
        assert VALIDATOR.is_valid(data)
        assert from_document(document(data)).name == "workload"


@given(descriptors(), st.sampled_from(["tokesn", "Batch", "op ", "dtypes"]))
@settings(max_examples=30, deadline=None)
def test_a_key_that_nothing_reads_is_invalid_and_refused(data, key):
    data = {**data, key: 1}
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(RooflineError) as caught:
        from_document(document(data))
    assert caught.value.code == "unknown-key"


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"name": "x"},
        {"op": "linear", "model": "llama-3.1-8b"},
        {"op": "lniear"},
        {"op": "linear", "tokens": 0, "in_features": 1, "out_features": 1},
        {"op": "linear", "tokens": 1, "in_features": 1},
        {"model": "llama-3.1-8b", "phase": "decod", "context": 1},
        {"model": "llama-3.1-8b", "phase": "decode"},
        {"model": "llama-3.1-8b", "phase": "decode", "context": 1, "precision": {"wieghts": "fp8"}},
        {"model": {"kind": "diffusion-transformer"}, "height": 16, "width": 16},
        {"model": {"model_type": "llama", "hiden_size": 3}, "phase": "decode", "context": 1},
    ],
)
def test_what_is_refused_is_invalid(data):
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(RooflineError):
        from_document(document(data))

from __future__ import annotations

import pytest

from roofline.documents import parse_yaml
from roofline.errors import RooflineError
from roofline.workload.source import Source

TEXT = "op: linear\ntokens: 4\nprecision: bf16\nmodel:\n  heads: 2\n"


def source(*overrides: str) -> Source:
    return Source(parse_yaml(TEXT, "w.yaml"), overrides)


def test_values_are_read_as_yaml_reads_plain_scalars():
    data = source("tokens=8", "bias=true", "x=1e3", "y=8k", "z=null", "w=yes", "name=a=b", "model.heads= 3 ").data
    assert data["tokens"] == 8
    assert (data["bias"], data["x"], data["y"], data["z"]) == (True, 1000.0, "8k", None)
    assert (data["w"], data["name"], data["model"]) == ("yes", "a=b", {"heads": 3})


def test_a_dotted_key_makes_the_mapping_that_it_needs():
    assert source("a.b.c=1").data["a"] == {"b": {"c": 1}}


def test_a_precision_in_one_word_is_short_for_its_weights():
    assert source("precision.kv=fp8").data["precision"] == {"weights": "bf16", "kv": "fp8"}


def test_the_last_of_two_overrides_wins():
    assert source("tokens=1", "tokens=2").data["tokens"] == 2


@pytest.mark.parametrize("text", ["tokens", "", "=4", "a..b=1", ".a=1"])
def test_an_override_is_a_key_and_a_value(text):
    with pytest.raises(RooflineError, match="KEY=VALUE") as caught:
        source(text)
    assert caught.value.code == "bad-override"


def test_what_has_no_keys_cannot_have_one_set():
    with pytest.raises(RooflineError, match="tokens is 4 in the descriptor"):
        source("tokens.x=1")


def test_an_error_points_into_the_file_or_at_the_override_that_is_to_blame():
    read = source("model.heads=0")
    inside = read.error(("tokens",), "wrong", code="bad-value")
    assert (inside.file, inside.line, inside.column, inside.key) == ("w.yaml", 2, 9, "tokens")
    outside = read.error(("model", "heads"), "wrong", code="bad-value")
    assert (str(outside), outside.file, outside.key) == ("--set model.heads=0: wrong", None, "model.heads")
    assert read.overridden("model")
    assert not read.overridden("tokens")

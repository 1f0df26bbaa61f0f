from __future__ import annotations

import pytest

from roofline.errors import RooflineError
from roofline.fields import Nowhere
from roofline.models import Precision, read_precision


def read(value):
    return read_precision(value, Nowhere())


def refused(value):
    with pytest.raises(RooflineError) as caught:
        read(value)
    return caught.value


def test_a_wide_word_is_the_dtype_of_everything():
    assert read("fp16") == Precision(
        weights="fp16", activations="fp16", kv="fp16", lm_head="fp16", compute=None
    )  # fmt: skip


@pytest.mark.parametrize("word", ["fp8", "fp8-row", "int8", "nvfp4", "mxfp4", "mxfp8"])
def test_a_narrow_word_is_the_dtype_of_the_weights_and_leaves_the_stream_and_the_head_in_bf16(word):
    precision = read(word)
    assert (precision.weights, precision.activations, precision.kv) == (word, "bf16", "bf16")
    assert (precision.lm_head, precision.compute, precision.lm_head_compute) == ("bf16", None, None)


def test_a_mapping_says_each_part():
    precision = read({"weights": "int4-g128", "compute": "fp16", "activations": "fp16", "kv": "fp8"})
    assert (precision.lm_head, precision.kv, precision.compute) == ("fp16", "fp8", "fp16")
    assert precision.lm_head_compute is None, "the head is not quantised, so it computes in its own dtype"


def test_a_head_stored_like_the_weights_computes_like_them():
    assert read({"weights": "int8", "lm_head": "int8", "compute": "bf16"}).lm_head_compute == "bf16"
    assert read({"weights": "fp32", "compute": "tf32"}).lm_head_compute == "tf32"


def test_a_weight_only_format_must_say_what_it_computes_in_and_is_shown_how():
    assert "precision: {weights: int4-g128, compute: bf16}" in refused("int4-g128").message
    assert refused({"weights": "int4-g128-zp"}).code == "compute-needed"


@pytest.mark.parametrize(
    ("value", "code", "near"),
    [
        ("bf61", "unknown-dtype", "bf16"),
        ("int64", "unknown-dtype", None),
        (16, "bad-value", None),
        ({"weight": "bf16"}, "unknown-key", "weights"),
        ({"weights": None}, "unknown-dtype", None),
        ({"weights": "bf16", "kv": "bfloat16"}, "unknown-dtype", "bf16"),
        ({"weights": "fp8", "activations": "fp8"}, "bad-value", None),
        ({"weights": "bf16", "compute": "fp8"}, "bad-value", None),
    ],
)
def test_what_is_refused(value, code, near):
    error = refused(value)
    assert error.code == code
    assert near is None or near in error.suggestions

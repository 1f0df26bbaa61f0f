from __future__ import annotations

import pytest

from roofline import whatif
from roofline.analysis import analyse
from roofline.catalog import parse_yaml
from roofline.workload import from_document
from tests.fakes import FakeDevice


def workload(text):
    return from_document(parse_yaml(text, "test.yaml"))


def explore(work, **device):
    fake = FakeDevice(**device)
    return whatif.explore(work, fake, analyse(work.tree, fake))


LINEAR = "op: linear\ntokens: {tokens}\nin_features: 1000\nout_features: 1000\n"


def test_a_linear_flips_where_its_two_times_cross():
    found = explore(workload(LINEAR.format(tokens=4)))["flips"]
    assert [(flip["parameter"], flip["side"], flip["bound"]) for flip in found] == [("tokens", "up", "compute")]
    # 2 M N K / 1000 = 2 (M K + K N + M N) / 10 with K = N = 1000: M = 100 / (1 - 0.2)
    assert found[0]["crossing"] == pytest.approx(125, rel=1e-9)
    assert found[0]["value"] == 126  # at 125 the times are equal, and a tie goes to memory


def test_the_flip_is_where_the_analysis_changes_its_mind():
    work, fake = workload(LINEAR.format(tokens=4)), FakeDevice()
    value = explore(work)["flips"][0]["value"]
    assert analyse(work.with_(tokens=value - 1).tree, fake).bound == "memory"
    assert analyse(work.with_(tokens=value).tree, fake).bound == "compute"


def test_from_the_other_side_it_flips_downwards():
    found = explore(workload(LINEAR.format(tokens=5000)))["flips"]
    down = [flip for flip in found if flip["side"] == "down"]
    assert [(flip["value"], flip["bound"]) for flip in down] == [(125, "memory")]


def test_what_never_flips_says_what_its_intensity_tends_to():
    work = workload("op: attention\nheads: 8\nkv_heads: 2\nhead_dim: 64\nqueries: 1\ncached: 100\n")
    found = {flip["parameter"]: flip for flip in explore(work, rates={"tensor:bf16": 1e6})["flips"]}
    assert found["batch"]["value"] is None
    assert found["cached"]["value"] is None
    # the group of 4 query heads reads each key once: 4 FLOPs a byte, and softmax adds 3 / (2 * 128)
    assert found["cached"]["intensity"] == pytest.approx(4 * (1 + 3 / 256), rel=1e-3)


def test_a_search_that_starts_at_zero_and_one_that_starts_far_out():
    attention = "op: attention\nheads: 1\nhead_dim: 64\nqueries: 1\ncached: {}\n"
    for cached in (0, 2**40):
        found = explore(workload(attention.format(cached)), rates={"tensor:bf16": 1e6})["flips"]
        assert {flip["value"] for flip in found if flip["parameter"] == "cached"} == {None}


def test_narrower_dtypes_are_tried_where_the_device_has_the_engine():
    work = workload(LINEAR.format(tokens=4))
    changes = [change["change"] for change in explore(work)["dtypes"]]
    assert changes == ["weights in int4-g128, computed in bf16"]
    with_fp8 = explore(work, rates={"tensor:bf16": 1000.0, "tensor:fp8": 2000.0})["dtypes"]
    assert [change["change"] for change in with_fp8] == ["weights in fp8", "weights in int4-g128, computed in bf16"]
    assert with_fp8[0]["floor_s"] == pytest.approx((1000 * 1000 + 2 * 2 * 4 * 1000) / 10)


def test_the_largest_batch_is_the_last_that_fits():
    work = workload("op: attention\nbatch: 4\nheads: 2\nhead_dim: 8\nqueries: 1\ncached: 9\n")
    each = work.with_(batch=1).subject.op.resident_bytes
    assert explore(work, capacity=10 * each)["largest"] == {"parameter": "batch", "value": 10}
    assert explore(work, capacity=11 * each - 1)["largest"] == {"parameter": "batch", "value": 10}
    assert explore(work, capacity=each - 1)["largest"] == {"parameter": "batch", "value": 0}
    assert explore(work, capacity=None)["largest"] is None


def test_naive_attention_over_many_queries_is_told_from_decode():
    text = "op: attention\nimplementation: naive\ndtype: fp16\nmask: full\nheads: 1\nhead_dim: 128\nqueries: {}\n"
    (note,) = whatif.lessons(workload(text.format(4096)))
    assert "4,096 queries" in note
    assert note.endswith("0.99")
    assert whatif.lessons(workload(text.format(1) + "cached: 4095\n")) == []


def test_bisect_finds_the_first():
    for first in range(1, 40):
        assert whatif.bisect(lambda value, first=first: value >= first, 0, 40) == first

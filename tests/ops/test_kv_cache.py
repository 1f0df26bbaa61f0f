"""Worked numbers of the append to the KV cache and of the rotary embedding of Llama 3 (32 and 8 heads of 128)."""

from __future__ import annotations

import pytest

from roofline.engines import VECTOR
from roofline.errors import RooflineError
from roofline.ops import KVAppend, RotaryEmbedding

LLAMA = {"heads": 32, "kv_heads": 8, "head_dim": 128}
TOKEN = 8 * 128 * 2
"""Bytes of the keys (or values) of one token in one layer, bf16."""


def traffic(op) -> dict[str, int]:
    return {tensor.name: tensor.traffic_bytes for tensor in op.tensors()}


def test_rope():
    op = RotaryEmbedding(**LLAMA, queries=4096)
    assert op.arithmetic() == {VECTOR: 62_914_560}
    assert op.traffic_bytes == 85_983_232


def test_the_table_is_read_once_a_position_of_each_sequence():
    op = RotaryEmbedding(**LLAMA, batch=3, queries=5)
    assert traffic(op)["cos_sin"] == 3 * 5 * 128 * 4


def test_an_append_writes_the_new_positions_only():
    op = KVAppend(batch=2, kv_heads=8, head_dim=128, queries=1, cached=4095)
    new = 2 * TOKEN
    assert traffic(op) == {"k": new, "v": new, "k_cache": new, "v_cache": new}
    assert op.resident_bytes == 2 * new + 2 * 4096 * new
    assert op.arithmetic() == {}


def test_an_append_converts_and_writes_scales():
    op = KVAppend(kv_heads=8, head_dim=128, queries=1, kv_dtype="fp8-row")
    assert traffic(op)["k_cache"] == 8 * (128 + 4) == 2112 // 2  # 2112 bytes for k and v, against 4096 in bf16


def test_values_may_have_another_size():
    op = KVAppend(kv_heads=1, head_dim=192, head_dim_v=128, queries=3)
    assert (traffic(op)["k_cache"], traffic(op)["v_cache"]) == (3 * 192 * 2, 3 * 128 * 2)


def test_rope_fused_with_the_append_writes_keys_once():
    op = RotaryEmbedding(**LLAMA, queries=1, cached=4095, append=True)
    q = 32 * 128 * 2
    table = 128 * 4
    assert traffic(op) == {
        "q": q,
        "k": TOKEN,
        "v": TOKEN,
        "cos_sin": table,
        "q_out": q,
        "k_cache": TOKEN,
        "v_cache": TOKEN,
    }
    apart = (
        RotaryEmbedding(**LLAMA, queries=1).traffic_bytes
        + KVAppend(kv_heads=8, head_dim=128, queries=1, cached=4095).traffic_bytes
    )
    assert apart - op.traffic_bytes == 2 * TOKEN  # the rotated keys, written and read once more


@pytest.mark.parametrize(
    ("changes", "key"), [({"head_dim": 33}, "head_dim"), ({"cached": 4}, "cached"), ({"queries": 0}, "queries")]
)
def test_what_makes_no_sense_is_refused_by_key(changes, key):
    with pytest.raises(RooflineError) as refused:
        RotaryEmbedding(**(LLAMA | {"queries": 1} | changes)).check()
    assert refused.value.key == key

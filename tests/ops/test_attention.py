"""Worked numbers of attention: published shapes, with 3 vector FLOPs a score."""

from __future__ import annotations

import pytest

from roofline.engines import SPECIAL, VECTOR, tensor
from roofline.errors import RooflineError
from roofline.ops import Attention, AttentionScores, AttentionValues, leaves, node_of
from roofline.ops.tree import total

ONE_HEAD = {"heads": 1, "head_dim": 128, "queries": 4096, "mask": "full", "dtype": "fp16"}
LLAMA = {"heads": 32, "kv_heads": 8, "head_dim": 128}


def counts(op) -> tuple[int, int]:
    """Tensor FLOPs and bytes."""
    return op.arithmetic()[op.engine], op.traffic_bytes


def test_naive_attention_of_one_head():
    """Kiely's worked example: 4 N^2 d + 3 N^2 FLOPs over 8 N^2 + 8 N d bytes."""
    tree = node_of("attention", Attention(**ONE_HEAD, implementation="naive"))
    n, d = 4096, 128
    flops, moved = total(tree, lambda op: op.flops), total(tree, lambda op: op.traffic_bytes)
    assert flops == 4 * n * n * d + 3 * n * n == 8_640_266_240
    assert moved == 8 * n * n + 8 * n * d == 138_412_032
    assert flops / moved == pytest.approx(62.42, abs=0.005)
    steps = [(leaf.name, leaf.op.traffic_bytes) for leaf in leaves(tree)]
    score_bytes, q_bytes = 2 * n * n, 2 * n * d
    assert steps == [
        ("scores", 2 * q_bytes + score_bytes),
        ("softmax", 2 * score_bytes),
        ("values", score_bytes + 2 * q_bytes),
    ]


def test_fused_attention_of_one_head():
    op = Attention(**ONE_HEAD)
    assert op.arithmetic() == {tensor("fp16"): 8_589_934_592, VECTOR: 50_331_648, SPECIAL: 16_777_216}
    assert op.traffic_bytes == 4_194_304
    assert op.flops / op.traffic_bytes == pytest.approx(2060)


def test_a_decode_of_the_same_length_has_an_intensity_of_one():
    op = Attention(**(ONE_HEAD | {"queries": 1, "cached": 4095}))
    assert (op.flops, op.traffic_bytes) == (2_109_440, 2 * 4096 * 128 * 2 + 2 * 128 * 2)
    assert op.flops / op.traffic_bytes == pytest.approx(1.0056, abs=1e-4)


@pytest.mark.parametrize(
    ("queries", "cached", "sizes", "flops", "moved"),
    [
        pytest.param(512, 0, LLAMA, 2_151_677_952, 10_485_760, id="prefill of 512"),
        pytest.param(4096, 0, LLAMA, 137_472_507_904, 83_886_080, id="prefill of 4096"),
        pytest.param(4096, 0, {"heads": 32, "head_dim": 64}, 68_736_253_952, 67_108_864, id="prefill, MHA, d 64"),
        pytest.param(512, 8192, LLAMA, 70_871_154_688, 44_040_192, id="chunk of 512 behind 8192"),
    ],
)
def test_causal_prefill(queries, cached, sizes, flops, moved):
    op = Attention(**sizes, queries=queries, cached=cached)
    assert counts(op) == (flops, moved)
    assert op.arithmetic()[VECTOR] == 3 * op.heads * op.pairs
    assert op.arithmetic()[SPECIAL] == op.heads * op.pairs


@pytest.mark.parametrize(
    ("queries", "kv_heads", "kv_dtype", "flops", "moved", "intensity"),
    [
        pytest.param(1, 32, None, 536_870_912, 537_001_984, 1.0, id="MHA"),
        pytest.param(1, 8, None, 536_870_912, 134_348_800, 4.0, id="GQA of 4"),
        pytest.param(1, 1, None, 536_870_912, 16_908_288, 31.8, id="MQA"),
        pytest.param(1, 8, "fp8-row", 536_870_912, 69_337_088, 7.74, id="GQA of 4, fp8 cache with scales"),
        pytest.param(5, 8, None, 2_683_043_840, 134_873_088, 19.9, id="verify of 5"),
    ],
)
def test_decode_over_4096_keys_for_8_sequences(queries, kv_heads, kv_dtype, flops, moved, intensity):
    op = Attention(
        batch=8, heads=32, kv_heads=kv_heads, head_dim=128, queries=queries, cached=4096 - queries, kv_dtype=kv_dtype
    )
    assert counts(op) == (flops, moved)
    assert flops / moved == pytest.approx(intensity, rel=5e-3)


def test_a_sliding_window():
    op = Attention(**LLAMA, queries=32768, window=4096)
    assert counts(op) == (2_061_617_856_512, 671_088_640)
    step = Attention(**LLAMA, queries=1, cached=32767, window=4096)
    assert step.keys_read == 4096
    assert step.traffic_bytes == 2 * 4096 * 8 * 128 * 2 + 2 * 32 * 128 * 2
    assert step.resident_bytes == 2 * 32768 * 8 * 128 * 2 + 2 * 32 * 128 * 2


@pytest.mark.parametrize(
    ("op", "flops", "moved"),
    [
        pytest.param(
            Attention(heads=20, head_dim=64, queries=1, keys=1500, mask="full"), 7_680_000, 7_685_120, id="Whisper"
        ),
        pytest.param(
            Attention(batch=2, heads=8, head_dim=40, queries=4096, keys=77, mask="full"),
            807_403_520,
            10_682_880,
            id="Stable Diffusion",
        ),
    ],
)
def test_cross_attention(op, flops, moved):
    op.check()
    assert counts(op) == (flops, moved)


def test_values_of_another_size():
    """DeepSeek's expanded form: keys of 192, values of 128."""
    op = Attention(heads=128, head_dim=192, head_dim_v=128, queries=4096)
    assert op.arithmetic()[op.engine] == 687_362_539_520
    assert op.traffic_bytes == 671_088_640


def test_unfused_causal_attention_is_charged_for_the_whole_square():
    op = Attention(**LLAMA, queries=512)
    naive = node_of("attention", op.with_(implementation="naive"))
    assert total(naive, lambda part: part.traffic_bytes) == 77_594_624
    matmul = total(naive, lambda part: part.arithmetic().get(op.engine, 0))
    assert matmul == 2 * 32 * 512 * 512 * (128 + 128) > op.arithmetic()[op.engine]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"kv_heads": 5}, "kv_heads"),
        ({"keys": 7, "cached": 2}, "cached"),
        ({"keys": 7, "window": 2}, "window"),
        ({"sinks": 2}, "sinks"),
        ({"sinks": 2, "window": 4, "mask": "full"}, "sinks"),
        ({"dtype": "nvfp4"}, "dtype"),
        ({"mask": "causla"}, "mask"),
    ],
)
def test_what_makes_no_sense_is_refused_by_key(changes, key):
    with pytest.raises(RooflineError) as refused:
        Attention(**(LLAMA | {"queries": 3} | changes)).check()
    assert refused.value.key == key


@pytest.mark.parametrize("part", [AttentionScores(heads=2, head_dim=4, queries=2, keys=2, dtype="mxfp4")])
def test_products_need_an_engine(part):
    with pytest.raises(RooflineError) as refused:
        part.check()
    assert refused.value.key == "dtype"


def test_the_probabilities_of_an_unfused_fp8_attention_are_bf16():
    sizes = {"heads": 2, "queries": 3, "keys": 5, "dtype": "fp8"}
    scores, values = AttentionScores(head_dim=4, **sizes), AttentionValues(head_dim_v=4, **sizes)
    assert scores.traffic_bytes == 2 * 3 * 4 + 2 * 5 * 4 + 2 * (2 * 3 * 5)
    assert values.traffic_bytes == 2 * (2 * 3 * 5) + 2 * 5 * 4 + 2 * (2 * 3 * 4)

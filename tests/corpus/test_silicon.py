"""Kernel times of four GPUs and three serving engines against our floors and bounds: every row of every table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest

from roofline.ops import Attention, Linear
from tests.corpus.measured import median
from tests.corpus.silicon import FAMILIES, L2_MIB, NOT_YET, Timed, timed
from tests.reference import CORPUS, needs_corpus

pytestmark = [*needs_corpus]

RESIDENT = {
    "l40s": "its inputs are reused from call to call and stay in an L2 of 96 MiB, several times as fast as its GDDR6",
}
"""Devices on which times under the DRAM floor are legitimate, and why. On the others HBM is so fast that the L2 saves
too little: not one of their rows is under the floor."""


def all_rows() -> Iterator[tuple[str, Timed]]:
    for family in FAMILIES:
        for one in timed(family):
            yield family, one


def test_every_table_is_compared_or_waits_for_its_op():
    tables = {path.stem for path in (CORPUS / "silicon").glob("*.csv")}
    assert tables == {*FAMILIES, *NOT_YET}
    assert {family: len(timed(family)) for family in FAMILIES} == {
        "gemm": 16000,
        "attention_context": 13600,
        "attention_decode": 13600,
        "encoder_attention": 6400,
        "mla_context": 13097,
    }


def test_no_time_is_under_our_floor_but_of_data_that_the_cache_holds():
    excused: set[str] = set()
    unexplained = []
    for family, one in all_rows():
        if one.fraction <= 1:
            continue
        cache = L2_MIB[one.device] * 2**20
        # what does not fit has to come from memory whatever happened before, and no cache computes
        cold = (one.moved - cache) / one.moved * one.floor_s
        if one.device in RESIDENT and one.bound == "memory" and one.caches < 1.1 and one.seconds > cold:
            excused.add(one.device)
        else:
            unexplained.append((family, round(one.fraction, 3), one.limiter, one.row))
    assert unexplained == []
    assert excused == set(RESIDENT), "an exception that no row needs is taken out"


def test_what_the_cache_cannot_hold_is_never_under_the_floor():
    """Also on the device with the exception: from 1.1 caches on its best times are the DRAM's."""
    large = [one for _, one in all_rows() if one.caches > 1.1]
    assert len(large) > 15000
    assert max(one.fraction for one in large) < 0.975


# ---------------------------------------------------------------- how near to the floor kernels come


@pytest.mark.parametrize(
    ("family", "device", "best"),
    [
        ("attention_decode", "h100-sxm", 0.92),
        ("attention_decode", "h200-sxm", 0.91),
        ("attention_decode", "b200-sxm", 0.95),
        ("attention_decode", "l40s", 0.86),
        ("gemm", "h100-sxm", 0.90),
        ("gemm", "h200-sxm", 0.86),
        ("gemm", "b200-sxm", 0.89),
        ("gemm", "l40s", 0.86),
    ],
)
def test_the_best_kernels_draw_nearly_the_bandwidth(family, device, best):
    """Were a byte in ten missing in the model, or one too many, the best of a thousand kernels would show it."""
    fractions = sorted(
        one.fraction for one in timed(family) if one.device == device and one.bound == "memory" and one.caches > 4
    )
    assert fractions[int(0.98 * len(fractions))] == pytest.approx(best, abs=0.02)


def large_gemm(one: Timed) -> bool:
    return isinstance(one.op, Linear) and min(one.op.tokens, one.op.in_features, one.op.out_features) >= 4096


def skinny_gemm(one: Timed) -> bool:
    return isinstance(one.op, Linear) and one.op.tokens <= 64 and one.moved > 1.3e8


def long_context(one: Timed) -> bool:
    assert isinstance(one.op, Attention)
    return one.op.queries >= 16384 and one.op.head_dim == 128 and one.op.window is None


def much_kv(one: Timed) -> bool:
    assert isinstance(one.op, Attention)
    return one.moved > 5e8 and one.op.window is None


BF16 = {"dtype": "bfloat16"}
ATTENTION = {"attn_dtype": "bfloat16", "kv_dtype": "bfloat16"}


@pytest.mark.parametrize(
    ("family", "device", "which", "columns", "low", "high"),
    [
        ("gemm", "h100-sxm", large_gemm, BF16, 0.75, 0.83),
        ("gemm", "h200-sxm", large_gemm, BF16, 0.70, 0.83),
        ("gemm", "b200-sxm", large_gemm, BF16, 0.61, 0.75),
        ("gemm", "h100-sxm", large_gemm, {"dtype": "fp8", "backend": "trtllm"}, 0.60, 0.71),
        ("gemm", "b200-sxm", large_gemm, {"dtype": "fp8", "backend": "trtllm"}, 0.50, 0.62),
        ("gemm", "b200-sxm", large_gemm, {"dtype": "nvfp4"}, 0.35, 0.47),
        ("gemm", "h100-sxm", skinny_gemm, BF16, 0.81, 0.86),
        ("gemm", "h200-sxm", skinny_gemm, BF16, 0.73, 0.90),
        ("gemm", "b200-sxm", skinny_gemm, BF16, 0.61 * 8 / 7.7, 0.79 * 8 / 7.7),
        ("gemm", "l40s", skinny_gemm, BF16, 0.73, 0.90),
        ("attention_decode", "h100-sxm", much_kv, {**ATTENTION, "backend": "vllm"}, 0.87, 0.91),
        ("attention_decode", "h200-sxm", much_kv, {**ATTENTION, "backend": "vllm"}, 0.78, 0.91),
        ("attention_decode", "b200-sxm", much_kv, {**ATTENTION, "backend": "trtllm"}, 0.83 * 8 / 7.7, 0.89 * 8 / 7.7),
        ("attention_context", "h100-sxm", long_context, ATTENTION, 0.51, 0.67),
        ("attention_context", "h200-sxm", long_context, ATTENTION, 0.51, 0.67),
        ("attention_context", "b200-sxm", long_context, ATTENTION, 0.49, 0.57),
    ],
)  # fmt: skip
def test_the_median_fraction_is_what_good_kernels_reach(family, device, which: Callable, columns, low, high):
    found = [
        one.fraction
        for one in timed(family)
        if one.device == device and which(one) and all(one.row[name] == value for name, value in columns.items())
    ]
    assert len(found) >= 7
    assert low <= median(found) <= high


# ---------------------------------------------------------------- the bound, by times alone


def slopes(rows: list[Timed], varied: str, by: Callable[[Timed], float]) -> list[float]:
    """d log t / d log of what ``by`` gives, over rows of one kernel on one device that differ in ``varied`` alone."""
    groups: dict[tuple[str, ...], list[Timed]] = {}
    for one in rows:
        groups.setdefault(one.key(varied), []).append(one)
    found = []
    for group in groups.values():
        ordered = sorted(group, key=by)
        for index, low in enumerate(ordered):
            found += [
                math.log(high.seconds / low.seconds) / math.log(by(high) / by(low))
                for high in ordered[index + 1 :]
                if by(high) >= 2 * by(low)
            ]
    return sorted(found)


def quartiles(values: list[float]) -> tuple[float, float, float]:
    return values[len(values) // 4], values[len(values) // 2], values[3 * len(values) // 4]


def size(column: str) -> Callable[[Timed], float]:
    return lambda one: float(one.row[column])


def test_rows_of_x_are_free_where_we_say_memory_bound():
    """Twice the rows are twice the FLOPs over nearly the same bytes; the memory does not notice them."""
    rows = [one for one in timed("gemm") if one.balance < 0.5 and one.caches > 2 and one.seconds > 30e-6]
    found = slopes([one for one in rows if weights_dominate(one)], "m", size("m"))
    assert len(found) >= 150
    low, middle, high = quartiles(found)
    assert low > -0.05 and abs(middle) < 0.06 and high < 0.12


def weights_dominate(one: Timed) -> bool:
    assert isinstance(one.op, Linear)
    return one.op.tensors()[1].traffic_bytes > 0.8 * one.moved


def test_rows_of_x_cost_their_flops_where_we_say_compute_bound():
    rows = [one for one in timed("gemm") if one.balance > 2 and one.seconds > 100e-6]
    found = slopes(rows, "m", size("m"))
    assert len(found) > 250
    low, middle, high = quartiles(found)
    assert low > 0.85 and middle == pytest.approx(1, abs=0.05) and high < 1.1


def test_query_heads_are_free_in_decode():
    """More query heads on the same cache are more FLOPs over the same bytes: decode attention is memory bound."""
    rows = [one for one in timed("attention_decode") if one.moved > 3e8]
    found = slopes(rows, "heads_q", size("heads_q"))
    assert len(found) > 200
    low, middle, high = quartiles(found)
    assert low > -0.05 and abs(middle) < 0.03 and high < 0.05


def test_decode_takes_as_long_as_its_bytes():
    rows = [one for one in timed("attention_decode") if one.moved > 4e8 and one.row["window"] == "0"]
    found = slopes(rows, "kv_len", lambda one: one.moved)
    assert len(found) > 50
    low, middle, high = quartiles(found)
    assert low > 0.85 and middle == pytest.approx(0.95, abs=0.06) and high < 1


def test_long_prompts_take_as_long_as_their_pairs():
    """The FLOPs of causal attention grow as the square of the prompt, its bytes as the prompt: times as the square."""
    rows = [one for one in timed("attention_context") if one.bound == "compute" and one.seconds > 200e-6]
    found = slopes([one for one in rows if one.row["window"] == "0"], "seq_len", size("seq_len"))
    assert len(found) > 300
    low, middle, high = quartiles(found)
    assert low > 1.65 and middle == pytest.approx(1.9, abs=0.1) and high < 2.05


def test_a_window_bounds_what_decode_reads():
    """Charged with the whole context these rows would be far under the floor; charged with the window none is."""
    rows = [one for one in timed("attention_decode") if 0 < int(one.row["window"]) < int(one.row["kv_len"])]
    assert len(rows) > 1000
    impossible = 0
    for one in rows:
        assert isinstance(one.op, Attention)
        whole = one.op.with_(window=None).traffic_bytes
        floor = one.floor_s * whole / one.moved if one.bound == "memory" else 0.0
        impossible += one.device not in RESIDENT and floor > one.seconds
    assert impossible > 100


def test_decode_attention_is_memory_bound():
    """But for three rows in which 96 or more query heads share narrow fp8 keys: there the exponentials take longest."""
    others = [one for one in timed("attention_decode") if one.bound != "memory"]
    assert len(others) == 3
    for one in others:
        assert isinstance(one.op, Attention)
        assert one.limiter == "special:fp32" and one.balance < 2
        assert one.op.heads >= 96 * one.op.kv_heads and one.op.head_dim == 64 and one.op.kv_dtype == "fp8"


@pytest.mark.parametrize("device", L2_MIB)
def test_long_causal_prefill_of_wide_heads_is_compute_bound(device):
    rows = [one for one in timed("attention_context") if one.device == device and one.row["head_dim"] == "128"]
    long = [one for one in rows if int(one.row["seq_len"]) >= 4096 and one.row["window"] == "0"]
    assert len(long) > 50
    assert {one.bound for one in long} == {"compute"}
    assert all(one.balance > 2 for one in long)


def test_narrow_heads_on_blackwell_wait_for_exponentials():
    """Blackwell doubled the matrix engine and not the unit for exp: 64 wide heads are limited by it (FlashAttention-4).

    On Hopper the same rows are limited by the matrix engine.
    """
    for device, limiter in (("b200-sxm", "special:fp32"), ("h100-sxm", "tensor:bf16")):
        rows = [one for one in timed("encoder_attention") if one.device == device and one.row["head_dim"] == "64"]
        long = [one for one in rows if int(one.row["seq_len"]) >= 4096]
        assert len(long) > 50
        assert {one.limiter for one in long} == {limiter}

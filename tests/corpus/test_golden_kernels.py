"""Published kernel times and counts against ours: no time under our floor, the same FLOPs and bytes.

Where a source counts by another convention, the difference is written out as a formula and must hold to the byte.
"""

from __future__ import annotations

import math
from collections import Counter

import pytest

from roofline.dtypes import dtype
from roofline.ops import Attention, LayerNorm, Linear, RMSNorm
from roofline.ops.tree import total
from tests.corpus.kernels import NO_OP, NO_SHAPE, OTHER_OP, RAGGED, expanded, kernel_rows, kernels, reason_to_skip
from tests.corpus.measured import Measured, median
from tests.models.measures import tensor_flops
from tests.reference import Published, needs_corpus

pytestmark = [*needs_corpus]


def rows(*ops: str) -> list[tuple[Published, Measured]]:
    """The compared rows of some kinds, each with its counterpart."""
    return [(row, kernels()[row.id]) for row in kernel_rows() if row.op in ops and row.id in kernels()]


def moved(one: Measured) -> int:
    return total(one.tree, lambda op: op.traffic_bytes)


def test_every_row_is_compared_or_says_why_not():
    skipped = Counter(reason_to_skip(row) for row in kernel_rows())
    assert skipped.pop(None) == len(kernels()) == 441
    # a reason that no row needs any more is taken out
    present = {str(row.op) for row in kernel_rows()} | {row.id for row in kernel_rows()}
    assert {*NO_OP, *NO_SHAPE, *OTHER_OP} <= present


def test_no_time_is_under_our_floor():
    """No exception is needed: these sources flush or rotate, or their data are larger than the caches."""
    under = {name: round(one.fraction, 3) for name, one in kernels().items() if one.fraction > 1}
    assert under == {}


# ---------------------------------------------------------------- FLOPs


def test_flops_of_products_are_the_published_ones():
    for row, one in rows("gemm", "bmm"):
        assert tensor_flops(one.tree) == row.shape["flops"], row.id


def test_flops_of_attention_are_the_published_ones():
    for row, one in rows("attn_prefill", "attn_decode", "mla_prefill"):
        sequence, visible = row.shape.get("seq_q", 1), tensor_flops(one.tree)
        if is_flash_attention_count(row):
            # FlashAttention credits a causal mask with S^2 / 2 pairs where S (S + 1) / 2 are visible, and a backward
            # with 2.5 forwards
            visible = visible * sequence / (sequence + 1) if row.shape.get("causal") else visible
            assert row.shape["flops"] == visible * (3.5 if row.shape["pass"] == "fwd+bwd" else 1), row.id
        else:
            assert row.shape["flops"] == visible, row.id


def test_flops_of_ragged_sequences_add_up():
    ragged = [row for row in kernel_rows() if reason_to_skip(row) == RAGGED]
    assert len(ragged) == 3
    for row in ragged:
        each = [expanded(row, 1, length) for length in row.shape["seq_lens"]]
        # FlashInfer counts S^2 / 2 pairs of each sequence, too: half a pair a query is missing
        diagonal = sum(2 * op.heads * op.queries * (op.head_dim + op.head_dim_v) / 2 for op in each)
        assert sum(op.arithmetic()[op.engine] for op in each) == row.shape["flops"] + diagonal


def is_flash_attention_count(row: Published) -> bool:
    """Rows of the FlashAttention papers and of benchmarks that count like them name the pass."""
    return "pass" in row.shape


def test_unfused_attention_is_credited_with_the_half_but_does_the_square():
    for row, one in rows("attn_naive"):
        credited = (1 / 2 if row.shape["causal"] else 1) * (3.5 if row.shape["pass"] == "fwd+bwd" else 1)
        assert row.shape["flops"] == credited * tensor_flops(one.tree), row.id
        shape = row.shape
        square = shape["batch"] * shape["heads_q"] * shape["seq_q"] ** 2
        assert tensor_flops(one.tree) == 4 * square * shape["head_dim"]


# ---------------------------------------------------------------- bytes


def test_bytes_of_products_are_the_published_ones():
    for row, one in rows("gemm", "bmm"):
        if "min_bytes" not in row.shape:
            continue
        assert moved(one) == row.shape["min_bytes"] + scales(one), row.id
        # and the columns of the row agree with each other
        m, n, k = (row.shape[key] for key in "mnk")
        widths = (row.shape[key] for key in ("a_bytes", "b_bytes", "out_bytes"))
        each = sum(width * size for width, size in zip(widths, (m * k, n * k, m * n), strict=True))
        assert row.shape["min_bytes"] == each * row.shape.get("batch", 1), row.id


def scales(one: Measured) -> int:
    """Scales of integer formats, which the corpus leaves out: fp16, one a row of int8, one per 128 of int4."""
    [op] = {leaf.op for leaf in one.leaves}
    assert isinstance(op, Linear)
    left_out = 0
    for stored, rows_, width in (
        (op.dtype, op.tokens, op.in_features),
        (op.weight_dtype, op.out_features, op.in_features),
    ):
        if stored.startswith("int"):
            block = dtype(stored).block or width
            left_out += 2 * rows_ * math.ceil(width / block)
    return left_out


def test_bytes_of_attention_are_the_published_ones():
    for row, one in rows("attn_prefill", "attn_decode", "mla_prefill"):
        if "min_bytes" not in row.shape:
            continue
        [op] = {leaf.op for leaf in one.leaves}
        assert isinstance(op, Attention)
        ours = op.traffic_bytes
        if op.dtype == "fp8":  # counted there with q, k and v in bf16, as they come in; here in what is computed with
            ours += sum(tensor.traffic_bytes for tensor in op.tensors() if tensor.reads)
        assert ours == row.shape["min_bytes"], row.id


def test_bytes_of_norms_and_softmax_are_the_published_ones():
    for row, one in rows("rmsnorm", "layernorm", "softmax", "elementwise"):
        [op] = {leaf.op for leaf in one.leaves}
        # x read, y written; the weights of a norm are left out there
        width = dtype(op.dtype).bits // 8
        vectors = 1 if isinstance(op, RMSNorm) else 2 if isinstance(op, LayerNorm) else 0
        assert op.traffic_bytes == row.shape["min_bytes"] + vectors * width * row.shape.get("cols", 0), row.id


def test_deepgemm_tables_give_one_time_by_either_column():
    """TFLOP/s and GB/s of a row are of the same call, so that our two counts must divide to the same time."""
    pairs = 0
    for row, one in rows("gemm"):
        other = kernels().get(f"{row.id}-bw")
        if other is not None:
            pairs += 1
            assert one.seconds == pytest.approx(other.seconds, rel=4e-3), row.id  # three digits are printed
    assert pairs == 18


# ---------------------------------------------------------------- how near to the floor kernels come


def fractions(prefix: str, *ops: str, **bounds: tuple[int, int]) -> list[float]:
    """Fractions of the roof of the rows whose id starts so and whose shape lies within bounds."""
    found = [
        one.fraction
        for row, one in rows(*ops)
        if row.id.startswith(prefix) and all(low <= row.shape[key] <= high for key, (low, high) in bounds.items())
    ]
    assert found, prefix
    return found


LARGE = {"m": (4096, 10**9), "n": (8192, 10**9)}
SKINNY = {"m": (1, 64), "n": (8192, 10**9)}
LONG = {"seq_q": (16384, 16384), "head_dim": (128, 128), "window": (0, 0)}

B200 = 8.0 / 7.7
"""The corpus divides by 8.0 TB/s; the memory that the driver reports does 7.7."""


@pytest.mark.parametrize(
    ("prefix", "op", "shape", "low", "high"),
    [
        ("k-gemm-h100-bfloat16", "gemm", LARGE, 0.75, 0.83),
        ("k-gemm-h100-fp8-", "gemm", LARGE, 0.62, 0.71),
        ("k-gemm-a100-bfloat16", "gemm", LARGE, 0.83, 0.85),
        ("k-gemm-a100-llmcompass", "gemm", LARGE, 0.84, 0.94),
        ("k-gemm-b200-bfloat16", "gemm", LARGE, 0.61, 0.75),
        ("k-gemm-b200-fp8", "gemm", LARGE, 0.54, 0.62),
        ("k-gemm-b200-nvfp4", "gemm", LARGE, 0.35, 0.42),
        ("k-gemm-h100-bfloat16", "gemm", SKINNY, 0.81, 0.87),
        ("k-gemm-h200-bfloat16", "gemm", SKINNY, 0.73, 0.90),
        ("k-gemm-b200-bfloat16", "gemm", SKINNY, 0.61 * B200, 0.79 * B200),
        ("k-gemm-h100-bfloat16", "gemm", {"m": (1, 64), "n": (4096, 4096)}, 0.59, 0.61),
        ("k-gemm-h100-fp8-", "gemm", SKINNY, 0.52, 0.56),
        ("k-dec-h100", "attn_decode", {"min_bytes": (5 * 10**8, 10**11)}, 0.87, 0.91),
        ("k-dec-h200", "attn_decode", {"min_bytes": (10**9, 10**11)}, 0.87, 0.91),
        ("k-dec-b200", "attn_decode", {"min_bytes": (10**9, 10**11)}, 0.83 * B200, 0.89 * B200),
        ("k-ctx-h100", "attn_prefill", LONG, 0.51, 0.67),
        ("k-ctx-a100", "attn_prefill", LONG, 0.46, 0.47),
        ("k-ctx-b200-trtllm-b1-s16384-h64.8-d128-w0-bfloat16", "attn_prefill", LONG, 0.50, 0.52),
        ("k-ctx-h20", "attn_prefill", {"seq_q": (16384, 32768)}, 0.92, 0.95),
        ("k-fa3h100-FA3", "attn_prefill", {"seq_q": (4096, 16384), "head_dim": (128, 128)}, 0.58, 0.66),
        ("k-rmsnorm-h100-QuACK", "rmsnorm", {"cols": (4096, 10**6)}, 0.85, 0.90),
        ("k-softmax-h100-QuACK", "softmax", {"cols": (4096, 10**6)}, 0.85, 0.90),
        ("k-rmsnorm-h100-QuACK", "rmsnorm", {"cols": (256, 256)}, 0.56, 0.58),
        ("k-softmax-h100-QuACK", "softmax", {"cols": (256, 256)}, 0.56, 0.58),
    ],
)
def test_the_median_fraction_is_what_good_kernels_reach(prefix, op, shape, low, high):
    """A floor that leaves bytes or FLOPs out would be beaten by less than these kernels are known to lose."""
    assert low <= median(fractions(prefix, op, **shape)) <= high


@pytest.mark.parametrize(
    ("device", "dtype_", "share"),
    [("a100-sxm-80gb", "bf16", 0.87), ("h100-sxm", "bf16", 0.80), ("h100-sxm", "fp8", 0.71), ("b200-sxm", "bf16", 0.78),
     ("b200-sxm", "fp8", 0.76), ("mi300x", "bf16", 0.51)],
)  # fmt: skip
def test_the_best_matmul_of_a_search_reaches_a_known_share_of_the_peak(device, dtype_, share):
    [one] = [
        one for row, one in rows("gemm") if "mamf" in row.id and one.device == device and row.dtype.startswith(dtype_)
    ]
    assert one.prediction.bound == "compute"
    assert one.fraction == pytest.approx(share, abs=0.01)


def test_unfused_attention_is_slower_than_fused_by_its_round_trips():
    """Its floor is several times that of the fused kernel, and a causal mask does not lower it."""
    for row, one in rows("attn_naive"):
        fused = one.with_work(one.work.with_(implementation="fused"))
        assert one.prediction.bound == "memory"
        assert one.floor_s > 2 * fused.floor_s, row.id
        unmasked = one.with_work(one.work.with_(mask="full"))
        assert one.floor_s == unmasked.floor_s
        # what is measured needs the round trips: no fused kernel of these papers is so slow
        assert one.seconds > one.floor_s > 0.15 * one.seconds, row.id


# ---------------------------------------------------------------- the bound


def test_decode_attention_is_memory_bound_on_every_device():
    for row, one in rows("attn_decode"):
        assert one.prediction.bound == "memory", row.id
        assert one.prediction.ops[0].headroom > 3, row.id


def test_long_causal_prefill_is_compute_bound():
    for row, one in rows("attn_prefill"):
        if row.shape["seq_q"] >= 4096 and not row.shape.get("window"):
            assert one.prediction.bound == "compute", row.id


def test_twice_the_query_heads_on_the_same_cache_take_the_same_time():
    """Decode is bound by the cache: doubled FLOPs leave time and floor where they are; half the bytes halve both."""
    by_shape = {
        (one.device, row.workload, row.shape["heads_q"], row.shape["heads_kv"], row.shape["kv_bytes"]): one
        for row, one in rows("attn_decode")
        if (row.shape["batch"], row.shape["kv_len"], row.shape["head_dim"]) == (64, 4096, 128)
    }
    compared = 0
    for (device, workload, queries, kv, width), one in by_shape.items():
        more = by_shape.get((device, workload, 2 * queries, kv, width))
        if more is not None and queries // kv == 4:
            compared += 1
            assert more.seconds == pytest.approx(one.seconds, rel=0.03)
            assert more.floor_s == pytest.approx(one.floor_s, rel=0.01)
        narrow = by_shape.get((device, workload, queries, kv, 1)) if width == 2 else None
        if narrow is not None:
            compared += 1
            assert narrow.seconds / one.seconds == pytest.approx(0.5, abs=0.06)
            assert narrow.floor_s / one.floor_s == pytest.approx(0.5, abs=0.01)
    assert compared >= 8


KNEES = {
    ("h100-sxm", "bfloat16"): 0.15,
    ("h200-sxm", "bfloat16"): 0.15,
    ("b200-sxm", "bfloat16"): 0.15,
    ("a100-sxm-80gb", "bfloat16"): 0.15,
    ("l40s", "bfloat16"): 0.35,  # it draws 0.73 of its bandwidth and only 0.60 of its peak, which moves the knee
    ("h100-sxm", "fp8"): 0.15,
    ("h200-sxm", "fp8"): 0.30,  # fp8 at 8192 x 8192 is too short to draw the bandwidth
}


@pytest.mark.parametrize(("device", "dtype_"), KNEES)
def test_a_product_turns_compute_bound_where_its_times_do(device, dtype_):
    """n = k = 8192: the measured knee is where the flat time of few rows meets the straight line of many.

    On an H100 in bf16 50 us stay 56 at m = 256 and become 90 at 512 and 191 at 1024.
    """
    times = {
        row.shape["m"]: one
        for row, one in rows("gemm")
        if row.id.startswith(f"k-gemm-{device.partition('-')[0]}-{dtype_}-") and row.id.endswith("x8192x8192")
    }
    flat, line = times[64].seconds, times[4096].seconds / 4096
    knee = flat / line
    below = min(m for m in range(1, 4096) if bound_at(times[64], m) == "compute")
    assert knee == pytest.approx(below, rel=KNEES[device, dtype_])
    for m, one in times.items():
        assert one.prediction.bound == ("compute" if m >= below else "memory")


def bound_at(one: Measured, m: int) -> str:
    assert isinstance(one.work, Linear)
    return one.with_work(one.work.with_(tokens=m)).prediction.bound


def test_prefill_grows_as_its_flops_and_not_as_its_bytes():
    for prefix in ("k-ctx-h100-trtllm-b1", "k-ctx-h100-vllm-b1", "k-ctx-b200-trtllm-b1", "k-ctx-a100-trtllm-b1"):
        name = f"{prefix}-s{{}}-h32.8-d128-w0-bfloat16-kvbfloat16"
        short, long = kernels()[name.format(4096)], kernels()[name.format(16384)]
        measured, flops, bytes_ = (
            math.log(value, 4)
            for value in (
                long.seconds / short.seconds,
                tensor_flops(long.tree) / tensor_flops(short.tree),
                moved(long) / moved(short),
            )
        )
        assert flops == pytest.approx(2, abs=1e-3) and bytes_ == pytest.approx(1)
        assert 1.6 < measured < 2.1, prefix
        assert not long.prediction.ops[0].near_ridge

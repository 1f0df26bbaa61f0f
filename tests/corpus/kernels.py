"""Rows of golden.csv that time one kernel, as ops."""

from __future__ import annotations

from functools import cache

from roofline.ops import Activation, Attention, LayerNorm, Linear, Node, Op, RMSNorm, Softmax
from tests.corpus.measured import Measured, device_of
from tests.reference import Published, published

NO_OP = {
    "moe": "experts",
    "grouped_gemm": "experts",
    "mla_decode": "latent attention",
    "dsa_decode": "sparse attention",
    "dsa_prefill": "sparse attention",
    "dsa_indexer": "sparse attention",
    "nsa_decode": "sparse attention, and no time",
    "nsa_prefill": "sparse attention, and no time",
    "gdn_decode": "gated delta rule",
    "gdn_prefill": "gated delta rule",
    "all_to_all": "collectives",
    "cross_entropy": "a loss: training",
    "sampling": "sampling, and no time",
    "cascade_decode": "a prefix shared by sequences, and no time",
}
"""Kinds of kernel that no op describes yet; an op that comes with them takes its rows out of here."""

RAGGED = "sequences of several lengths in one kernel"
NO_SHAPE = {
    "k-fa4-b200-max": "the best of a sweep over shapes that are not given",
    "k-flashinfer-ragged-b200-fa2": RAGGED,
    "k-flashinfer-ragged-b200-cutlass": RAGGED,
    "k-flashinfer-ragged-b200-cudnn": RAGGED,
}
OTHER_OP = {"k-flashinfer-mxfp8quant-b300": "a quantisation by itself is no op"}

DTYPES = {
    "bf16": ("bf16", "bf16", None),
    "fp16": ("fp16", "fp16", None),
    "fp32": ("fp32", "fp32", None),
    "bf16/fp16": ("bf16", "bf16", None),
    "fp8": ("fp8", "fp8", None),
    "fp8 -> bf16": ("fp8", "fp8", None),
    "fp8 (1x128 act,128x128 weight scales)": ("fp8", "fp8", None),
    "nvfp4": ("nvfp4", "nvfp4", None),
    "w8a16 int8": ("bf16", "int8", "bf16"),
    "w4a16 int4": ("bf16", "int4-g128", "bf16"),
    "int8 w8a8": ("int8", "int8", None),
}
"""Label in the corpus -> storage of x, of the weight, and what is computed in."""

KV = {"bf16, KV bf16": "bf16", "bf16, KV fp8": "fp8", "bf16 q, fp8 KV": "fp8", "bf16": "bf16"}

BACKWARD = 3
"""Forward and backward take at least thrice the forward: the backward computes 2.5 times as much (it recomputes the
scores: five products to the forward's two) and moves twice as much (eight tensors to four)."""


def reason_to_skip(row: Published) -> str | None:
    """Why a row cannot be compared; None where it can."""
    return NO_OP.get(str(row.op)) or NO_SHAPE.get(row.id) or OTHER_OP.get(row.id)


def kernel_rows() -> list[Published]:
    """All rows that time a kernel."""
    return [row for row in published() if row.category == "kernel"]


@cache
def kernels() -> dict[str, Measured]:
    """Every row that an op of ours describes, by its id."""
    return {row.id: measured(row) for row in kernel_rows() if reason_to_skip(row) is None}


def measured(row: Published) -> Measured:
    """The row as a time of one of our ops."""
    found = device_of(row.hardware)
    assert found is not None, row.hardware
    device, count = found
    assert count == 1
    times = BACKWARD if row.op == "attn_prefill" and row.shape.get("pass") == "fwd+bwd" else 1
    return Measured(row.id, device, work_of(row), seconds(row), times=times)


def seconds(row: Published) -> float:
    """The time, given as such, or as a rate of the row's own FLOPs or bytes."""
    if row.metric == "latency":
        return row.value * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[row.unit]
    if row.metric == "throughput" and row.unit == "TFLOPS":
        return float(row.shape["flops"]) / (row.value * 1e12)
    assert (row.metric, row.unit) == ("bandwidth", "GB/s"), row.id
    return float(row.shape["min_bytes"]) / (row.value * 1e9)


def work_of(row: Published) -> Op | Node:
    """The row's shape as an op."""
    shape = row.shape
    if row.op == "gemm":
        return gemm(row)
    if row.op == "bmm":
        return Node("bmm", op=gemm(row), repeat=shape["batch"])
    if row.op == "attn_decode":
        return Attention(**heads(row), queries=1, cached=shape["kv_len"] - 1, kv_dtype=KV[row.dtype])
    if row.op in ("attn_prefill", "attn_naive"):
        return prefill(row)
    if row.op == "mla_prefill":
        return expanded(row, shape["batch"], shape["seq"])
    stored, rows = DTYPES[row.dtype][0], shape.get("rows", 1)
    if row.op == "softmax":
        return Softmax(rows=rows, columns=shape["cols"], dtype=stored)
    if row.op == "rmsnorm":
        return RMSNorm(tokens=rows, hidden_size=shape["cols"], dtype=stored)
    if row.op == "layernorm":
        return LayerNorm(tokens=rows, hidden_size=shape["cols"], dtype=stored)
    assert row.op == "elementwise" and "gelu" in row.workload, row.id
    return Activation(tokens=1, features=shape["elems"], function="gelu", dtype=stored)


def gemm(row: Published) -> Linear:
    """A product; fp8 in blocks is stored like plain fp8, its scales (0.02 %) left out as in the corpus."""
    x, weight, compute = DTYPES[row.dtype]
    return Linear(
        tokens=row.shape["m"],
        in_features=row.shape["k"],
        out_features=row.shape["n"],
        dtype=x,
        weight_dtype=weight,
        compute=compute,
    )


def heads(row: Published) -> dict[str, int | None]:
    """What all attention rows say."""
    shape = row.shape
    return {
        "batch": shape["batch"],
        "heads": shape["heads_q"],
        "kv_heads": shape["heads_kv"],
        "head_dim": shape["head_dim"],
        "window": shape.get("window") or None,
    }


def prefill(row: Published) -> Attention:
    """Self-attention of whole sequences; keys and values come from this step."""
    assert row.shape["seq_q"] == row.shape["seq_kv"]
    return Attention(
        **heads(row),
        queries=row.shape["seq_q"],
        mask="causal" if row.shape.get("causal") else "full",
        implementation="naive" if row.op == "attn_naive" else "fused",
        kv_cache=False,
        dtype=DTYPES[row.dtype][0],
    )


def expanded(row: Published, batch: int, sequence: int) -> Attention:
    """Latent attention in its expanded form: as many key and value heads as query heads, values narrower than keys."""
    shape = row.shape
    return Attention(
        batch=batch,
        heads=shape["heads_q"],
        head_dim=shape["qk_dim"],
        head_dim_v=shape["v_dim"],
        queries=sequence,
        kv_cache=False,
        dtype=DTYPES[row.dtype][0],
    )

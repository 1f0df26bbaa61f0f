"""Measured kernels of the corpus (silicon/*.csv) as ops, one for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from roofline.analysis import analyse
from roofline.ops import Attention, Linear, Op, node_of
from tests.corpus.measured import datasheet, device_of
from tests.reference import table

Row = dict[str, str]

L2_MIB = {"h100-sxm": 50, "h200-sxm": 50, "b200-sxm": 126, "l40s": 96}
"""Last-level caches as the notes beside the tables give them."""

WEIGHTS = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4"}
DTYPES = {"bfloat16": "bf16", "fp8": "fp8", "unrecorded": "fp8"}
"""``unrecorded`` may compute in fp8, so that only the floor of fp8 holds."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One row: its op, what we say of it, and its time. ``times`` is by ceiling, ``fraction`` the floor over it."""

    device: str
    row: Row
    op: Op
    seconds: float
    moved: int
    limiter: str
    bound: str
    times: dict[str, float]
    floor_s: float

    @property
    def fraction(self) -> float:
        """Fraction of the roof that the kernel reached."""
        return self.floor_s / self.seconds

    @property
    def balance(self) -> float:
        """Compute time over memory time."""
        memory = [seconds for name, seconds in self.times.items() if ":" not in name]
        return max(seconds for name, seconds in self.times.items() if ":" in name) / max(memory)

    @property
    def caches(self) -> float:
        """How many times the last-level cache its operands are."""
        return self.moved / (L2_MIB[self.device] * 2**20)

    def key(self, *without: str) -> tuple[str, ...]:
        """The row without some columns, and without its time: what rows that differ only in those have in common."""
        left_out = {*without, "latency_us", "version"}
        return tuple(value for name, value in self.row.items() if name not in left_out)


def gemm(row: Row) -> Op:
    """x comes in bf16 and is quantised inside of the time; scales of fp8 are left out (they only raise the floor)."""
    m, n, k = (int(row[name]) for name in "mnk")
    return Linear(tokens=m, in_features=k, out_features=n, dtype="bf16", weight_dtype=WEIGHTS[row["dtype"]])


def context(row: Row) -> Op:
    """A prompt without a prefix. The write to the cache is inside of the time, and not in the floor of the op."""
    return Attention(**_heads(row), queries=int(row["seq_len"]), window=_window(row), kv_cache=False)


def decode(row: Row) -> Op:
    """One new position; ``kv_len`` counts it in."""
    return Attention(**_heads(row), queries=1, cached=int(row["kv_len"]) - 1, window=_window(row))


def encoder(row: Row) -> Op:
    """Every position sees every other."""
    sizes = {"batch": int(row["batch"]), "heads": int(row["heads"]), "head_dim": int(row["head_dim"])}
    return Attention(**sizes, queries=int(row["seq_len"]), mask="full", kv_cache=False, dtype=DTYPES[row["attn_dtype"]])


def latent(row: Row) -> Op:
    """Latent attention of a prompt in its expanded form: 192 a head for queries and keys, 128 for values."""
    return Attention(
        batch=int(row["batch"]),
        heads=int(row["heads_local"]),
        head_dim=192,
        head_dim_v=128,
        queries=int(row["seq_len"]),
        kv_cache=False,
        dtype=DTYPES[row["attn_dtype"]],
        kv_dtype=DTYPES[row["kv_dtype"]],
    )


def _heads(row: Row) -> dict[str, object]:
    return {
        "batch": int(row["batch"]),
        "heads": int(row["heads_q"]),
        "kv_heads": int(row["heads_kv"]),
        "head_dim": int(row["head_dim"]),
        "dtype": DTYPES[row["attn_dtype"]],
        "kv_dtype": DTYPES[row["kv_dtype"]],
    }


def _window(row: Row) -> int | None:
    return int(row["window"]) or None


FAMILIES: dict[str, Callable[[Row], Op]] = {
    "gemm": gemm,
    "attention_context": context,
    "attention_decode": decode,
    "encoder_attention": encoder,
    "mla_context": latent,
}
"""The tables that our ops describe, each with how a row becomes an op."""

NOT_YET = ("comm", "gdn", "kda", "mamba2", "mla_bmm", "mla_decode", "moe", "quantize")


@cache
def timed(family: str) -> tuple[Timed, ...]:
    """Every row of a family with its prediction."""
    return tuple(_predicted(family))


def _predicted(family: str) -> Iterator[Timed]:
    for row in table(f"silicon/{family}.csv"):
        found = device_of(row["system"])
        assert found is not None
        op = FAMILIES[family](row)
        op.check()
        one = analyse(node_of(family, op), datasheet(found[0])).ops[0]
        yield Timed(
            device=found[0],
            row=row,
            op=op,
            seconds=float(row["latency_us"]) * 1e-6,
            moved=int(one.bytes),
            limiter=one.limiter,
            bound=one.bound,
            times=dict(one.times),
            floor_s=one.floor_s,
        )

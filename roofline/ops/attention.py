"""Attention: fused (one kernel, scores stay on chip) and naive (three kernels, scores through memory)."""

from dataclasses import dataclass
from typing import ClassVar

from roofline.dtypes import dtype as dtype_named
from roofline.engines import SPECIAL, VECTOR, Engine
from roofline.errors import RooflineError
from roofline.ops import masks
from roofline.ops.base import (
    Arithmetic,
    Op,
    Tensor,
    accumulated,
    fill,
    flag,
    matrix_engine,
    option,
    size,
    storage,
)
from roofline.ops.kv_cache import kv_tensor
from roofline.ops.norm import Softmax
from roofline.ops.sizes import Size, product


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(Op):
    """softmax(q k^T / sqrt(d)) v for ``batch`` sequences, grouped-query heads, exact masks.

    Self-attention: the ``queries`` are the last of ``cached + queries`` keys (decode: 1 query; a prompt: 0 cached; a
    chunk or a speculative verify: both). Cross-attention: ``keys`` of another sequence, all visible.

    Tensor FLOPs 2 H pairs (d + d_v); softmax 3 H pairs vector FLOPs and H pairs exponentials, pairs per sequence from
    ``masks.pairs``. Bytes (fused): q and the output once, each key and value that any query sees once per KV head.
    ``implementation: naive`` runs scores, softmax and values as three kernels over the whole square.
    """

    kind: ClassVar[str] = "attention"
    about: ClassVar[str] = "softmax(q k^T) v: prefill, chunk, decode or cross; MHA, GQA or MQA"
    source: ClassVar[str] = (
        "Dao et al., FlashAttention (4 N^2 d, halved exactly when causal); Kiely 2023 for 3 FLOPs per score"
    )

    batch: Size = size("B", "sequences", default=1)
    heads: Size = size("H", "query heads")
    kv_heads: Size = size("G", "key and value heads; by default as many as query heads", default=None)
    head_dim: Size = size("d", "size of a query and of a key head")
    head_dim_v: Size = size("d_v", "size of a value head; by default head_dim", default=None)
    queries: Size = size("q", "new positions of each sequence")
    cached: Size = size("c", "positions of each sequence that are cached already", min=0, default=0)
    keys: Size | None = size("S", "cross-attention: positions of the other sequence", default=None)
    mask: str = option("causal or full", masks.MASKS, default=masks.CAUSAL)
    window: Size | None = size("w", "sliding window: keys that a query sees, itself included", default=None)
    sinks: Size = size("s", "first keys that stay visible outside of the window", min=0, default=0)
    kv_cache: bool = flag("k and v live in a KV cache (false: activations of this step)", default=True)
    implementation: str = option("one kernel, or three", ("fused", "naive"), default="fused")
    dtype: str = storage("dtype of q and the output, and what the matrix engine computes in")
    kv_dtype: str = storage("dtype k and v are stored in; by default that of q", default=None)

    def __post_init__(self) -> None:
        """Fill what follows from other fields."""
        fill(self, kv_heads=self.heads, head_dim_v=self.head_dim, kv_dtype=self.dtype)

    @property
    def engine(self) -> Engine:
        """The matrix engine of both products: the dtype of q (a narrower cache is unpacked)."""
        return matrix_engine(self.dtype)

    @property
    def all_keys(self) -> Size:
        """Keys of one sequence, the new ones included."""
        return self.cached + self.queries if self.keys is None else self.keys

    @property
    def pairs(self) -> Size:
        """Visible query-key pairs of one head of one sequence."""
        if self.keys is not None:
            return self.queries * self.keys
        return masks.pairs(self.queries, self.cached, mask=self.mask, window=self.window, sinks=self.sinks)

    @property
    def keys_read(self) -> Size:
        """Distinct keys of one sequence that are visible to any query."""
        if self.keys is not None:
            return self.keys
        return masks.keys_read(self.queries, self.cached, mask=self.mask, window=self.window, sinks=self.sinks)

    def tensors(self) -> tuple[Tensor, ...]:
        """``q``, ``k``, ``v``, ``out``, each (batch, heads, positions, head size)."""
        q = (self.batch, self.heads, self.queries, self.head_dim)
        out = (self.batch, self.heads, self.queries, self.head_dim_v)
        k = (self.batch, self.kv_heads, self.all_keys, self.head_dim)
        v = (self.batch, self.kv_heads, self.all_keys, self.head_dim_v)
        return (
            Tensor("q", q, self.dtype),
            kv_tensor("k", k, self.kv_dtype, self.kv_cache, self.keys_read),
            kv_tensor("v", v, self.kv_dtype, self.kv_cache, self.keys_read),
            Tensor("out", out, accumulated(self.dtype), access="write"),
        )

    def arithmetic(self) -> Arithmetic:
        """2 B H pairs (d + d_v) tensor FLOPs, 3 B H pairs vector FLOPs, B H pairs exponentials."""
        scores = self.batch * self.heads * self.pairs
        return {
            self.engine: 2 * scores * (self.head_dim + self.head_dim_v),
            VECTOR: 3 * scores,
            SPECIAL: scores,
        }

    def parts(self) -> tuple[tuple[str, Op], ...]:
        """Naive: scores, softmax and values, each over all keys: an unfused mask saves neither FLOPs nor bytes."""
        if self.implementation == "fused":
            return ()
        shared = {
            "batch": self.batch,
            "heads": self.heads,
            "kv_heads": self.kv_heads,
            "queries": self.queries,
            "keys": self.all_keys,
            "kv_cache": self.kv_cache,
            "dtype": self.dtype,
            "kv_dtype": self.kv_dtype,
        }
        rows = self.batch * self.heads * self.queries
        return (
            ("scores", AttentionScores(head_dim=self.head_dim, **shared)),
            ("softmax", Softmax(rows=rows, columns=self.all_keys, dtype=accumulated(self.dtype))),
            ("values", AttentionValues(head_dim_v=self.head_dim_v, **shared)),
        )

    def check(self) -> None:
        """Also: heads come in whole groups, and the cross, window and sink fields fit together."""
        Op.check(self)
        check_groups(self.heads, self.kv_heads)
        if self.keys is not None and (self.cached or self.window is not None):
            wrong = "cached" if self.cached else "window"
            raise RooflineError(f"cross-attention (keys) has no {wrong}", code="bad-combination", key=wrong)
        if self.sinks and (self.window is None or self.mask != masks.CAUSAL):
            raise RooflineError("sinks need a window and a causal mask", code="bad-combination", key="sinks")
        check_computed_in(self.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Product(Op):
    """What the two matrix products of naive attention have in common: their sizes, their engine, their checks."""

    batch: Size = size("B", "sequences", default=1)
    heads: Size = size("H", "query heads")
    kv_heads: Size = size("G", "key and value heads; by default as many as query heads", default=None)
    queries: Size = size("q", "query positions of each sequence")
    keys: Size = size("S", "key positions of each sequence")
    kv_cache: bool = flag("k or v lives in a KV cache", default=True)
    dtype: str = storage("dtype of q and the scores, of the probabilities and the output")
    kv_dtype: str = storage("dtype of k or v; by default the other", default=None)

    def __post_init__(self) -> None:
        """Fill what follows from other fields."""
        fill(self, kv_heads=self.heads, kv_dtype=self.dtype)

    @property
    def engine(self) -> Engine:
        """The matrix engine of the product."""
        return matrix_engine(self.dtype)

    @property
    def square(self) -> tuple[Size, ...]:
        """The shape of scores and probabilities: every query against every key."""
        return (self.batch, self.heads, self.queries, self.keys)

    def check(self) -> None:
        """Also: heads come in whole groups, and the products are computed in 8 bits or more."""
        Op.check(self)
        check_groups(self.heads, self.kv_heads)
        check_computed_in(self.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionScores(_Product):
    """s = q k^T / sqrt(d) written to memory: the first of the three kernels of naive attention.

    2 B H q S d tensor FLOPs; the scale is a factor of the product itself and costs nothing. The query heads of a
    group multiply the same keys, which are read once.
    """

    kind: ClassVar[str] = "attention-scores"
    about: ClassVar[str] = "the query-key product of naive attention"
    source: ClassVar[str] = "Kiely, A guide to LLM inference and performance, Baseten 2023: step 1"

    head_dim: Size = size("d", "size of a head")

    def tensors(self) -> tuple[Tensor, ...]:
        """``q``, ``k``, ``scores``."""
        q = (self.batch, self.heads, self.queries, self.head_dim)
        k = (self.batch, self.kv_heads, self.keys, self.head_dim)
        return (
            Tensor("q", q, self.dtype),
            kv_tensor("k", k, self.kv_dtype, self.kv_cache),
            Tensor("scores", self.square, accumulated(self.dtype), "intermediate", "write"),
        )

    def arithmetic(self) -> Arithmetic:
        """2 B H q S d tensor FLOPs."""
        return {self.engine: 2 * product(self.square) * self.head_dim}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionValues(_Product):
    """out = p v with the probabilities read from memory: the last of the three kernels of naive attention.

    2 B H q S d_v tensor FLOPs.
    """

    kind: ClassVar[str] = "attention-values"
    about: ClassVar[str] = "the probability-value product of naive attention"
    source: ClassVar[str] = "Kiely, A guide to LLM inference and performance, Baseten 2023: step 3"

    head_dim_v: Size = size("d_v", "size of a value head")

    def tensors(self) -> tuple[Tensor, ...]:
        """``probabilities``, ``v``, ``out``."""
        v = (self.batch, self.kv_heads, self.keys, self.head_dim_v)
        out = (self.batch, self.heads, self.queries, self.head_dim_v)
        return (
            Tensor("probabilities", self.square, accumulated(self.dtype), "intermediate"),
            kv_tensor("v", v, self.kv_dtype, self.kv_cache),
            Tensor("out", out, accumulated(self.dtype), access="write"),
        )

    def arithmetic(self) -> Arithmetic:
        """2 B H q S d_v tensor FLOPs."""
        return {self.engine: 2 * product(self.square) * self.head_dim_v}


def check_groups(heads: int, kv_heads: int) -> None:
    """Query heads must come in groups of one size per KV head."""
    if heads % kv_heads:
        raise RooflineError(
            f"heads ({heads}) must be a multiple of kv_heads ({kv_heads})", code="bad-value", key="kv_heads"
        )


def check_computed_in(dtype: str) -> None:
    """The products of attention need an engine for the dtype of q, which is not unpacked."""
    if dtype_named(dtype).bits < 8:
        raise RooflineError(
            f"attention computes in 8 bits or more, not in {dtype}: use kv_dtype for a narrow cache",
            code="bad-value",
            key="dtype",
        )

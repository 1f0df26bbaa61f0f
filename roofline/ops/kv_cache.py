"""The KV cache of one layer: its storage, the append of new keys and values, and the rotary embedding before it."""

from dataclasses import dataclass
from typing import ClassVar

from roofline.engines import VECTOR
from roofline.errors import RooflineError
from roofline.ops.base import Arithmetic, Op, Tensor, fill, flag, size, storage
from roofline.ops.sizes import Size


def kv_tensor(
    name: str,
    shape: tuple[Size, ...],
    dtype: str,
    cached: bool,
    keys: Size | None = None,
    *,
    append: bool = False,
) -> Tensor:
    """The keys (``k``) or values (``v``) of a layer, (batch, kv_heads, positions, head size).

    ``cached``: they live in the KV cache, whose storage the ops of the layer share. ``keys``: the positions that move
    (None: all of them). ``append``: they are written, not read.
    """
    batch, heads, _, width = shape
    return Tensor(
        f"{name}_cache" if append else name,
        shape,
        dtype,
        "kv_cache" if cached else "activation",
        "write" if append else "read",
        touched=None if keys is None else (batch, heads, keys, width),
        storage=f"{name}_cache" if cached else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KVAppend(Op):
    """Write the keys and values of the new positions into the cache, converting to its dtype.

    No arithmetic; the new keys and values are read and written once.
    """

    kind: ClassVar[str] = "kv-append"
    about: ClassVar[str] = "append new keys and values to the KV cache"
    source: ClassVar[str] = "a copy: k and v of the new positions read, written at the dtype of the cache"

    batch: Size = size("B", "sequences", default=1)
    kv_heads: Size = size("G", "key and value heads")
    head_dim: Size = size("d", "size of a key head")
    head_dim_v: Size = size("d_v", "size of a value head; by default head_dim", default=None)
    queries: Size = size("q", "new positions of each sequence")
    cached: Size = size("c", "positions of each sequence that are cached already", min=0, default=0)
    dtype: str = storage("dtype of the new keys and values")
    kv_dtype: str = storage("dtype of the cache; by default that of the new keys and values", default=None)

    def __post_init__(self) -> None:
        """Fill what follows from other fields."""
        fill(self, head_dim_v=self.head_dim, kv_dtype=self.dtype)

    def tensors(self) -> tuple[Tensor, ...]:
        """``k``, ``v``, ``k_cache``, ``v_cache``."""
        new, all_keys = self.queries, self.cached + self.queries
        sides = (("k", self.head_dim), ("v", self.head_dim_v))
        return (
            *(Tensor(name, (self.batch, self.kv_heads, new, width), self.dtype) for name, width in sides),
            *(
                kv_tensor(name, (self.batch, self.kv_heads, all_keys, width), self.kv_dtype, True, new, append=True)
                for name, width in sides
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryEmbedding(Op):
    """Rotate queries and keys by their position; with ``append`` also write keys and values to the cache.

    3 vector FLOPs an element (two multiplies and an add; 6 for each rotated pair). The table of sines and cosines is
    read once a position, fp32. With ``append`` the rotated keys go straight into the cache, and v is copied.
    """

    kind: ClassVar[str] = "rotary-embedding"
    about: ClassVar[str] = "RoPE on queries and keys, optionally fused with the append to the KV cache"
    source: ClassVar[str] = "Su et al., RoFormer, eq. 34: 6 operations for each rotated pair"

    batch: Size = size("B", "sequences", default=1)
    heads: Size = size("H", "query heads")
    kv_heads: Size = size("G", "key heads; by default as many as query heads", default=None)
    head_dim: Size = size("d", "size of a head")
    queries: Size = size("q", "new positions of each sequence")
    cached: Size = size("c", "positions that are cached already (only with append)", min=0, default=0)
    append: bool = flag("also append keys and values to the KV cache")
    dtype: str = storage("dtype of queries, keys and values")
    kv_dtype: str = storage("dtype of the cache; by default that of the keys", default=None)

    def __post_init__(self) -> None:
        """Fill what follows from other fields."""
        fill(self, kv_heads=self.heads, kv_dtype=self.dtype)

    def tensors(self) -> tuple[Tensor, ...]:
        """``q``, ``k``, ``v`` when appending, ``cos_sin``, ``q_out``, then ``k_out`` or ``k_cache`` and ``v_cache``."""
        q = (self.batch, self.heads, self.queries, self.head_dim)
        k = (self.batch, self.kv_heads, self.queries, self.head_dim)
        table = Tensor("cos_sin", (self.batch * self.queries, self.head_dim), "fp32")
        q_in, q_out = Tensor("q", q, self.dtype), Tensor("q_out", q, self.dtype, access="write")
        if not self.append:
            return (
                q_in,
                Tensor("k", k, self.dtype),
                table,
                q_out,
                Tensor("k_out", k, self.dtype, access="write"),
            )
        cache = (self.batch, self.kv_heads, self.cached + self.queries, self.head_dim)
        return (
            q_in,
            Tensor("k", k, self.dtype),
            Tensor("v", k, self.dtype),
            table,
            q_out,
            kv_tensor("k", cache, self.kv_dtype, True, self.queries, append=True),
            kv_tensor("v", cache, self.kv_dtype, True, self.queries, append=True),
        )

    def arithmetic(self) -> Arithmetic:
        """3 B q (H + G) d vector FLOPs."""
        return {VECTOR: 3 * self.batch * self.queries * (self.heads + self.kv_heads) * self.head_dim}

    def check(self) -> None:
        """Also: heads have whole pairs to rotate, and only an append has something cached."""
        Op.check(self)
        if self.head_dim % 2:
            raise RooflineError(
                f"head_dim ({self.head_dim}) must be even: RoPE rotates pairs", code="bad-value", key="head_dim"
            )
        if self.cached and not self.append:
            raise RooflineError("cached needs append: true", code="bad-combination", key="cached")

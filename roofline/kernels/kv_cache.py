"""The append to the KV cache and the rotary embedding in torch."""

from __future__ import annotations

import torch

from roofline.kernels import fused
from roofline.kernels.base import Call, Kernel, Operands, all_float, tensor_of, unscaled
from roofline.kernels.convert import converted
from roofline.ops.kv_cache import KVAppend, RotaryEmbedding


def _new_positions(operands: Operands, name: str, count: int) -> torch.Tensor:
    """A view of the last ``count`` positions of a cache (batch, kv_heads, positions, head size)."""
    cache = tensor_of(operands[name])
    return cache[:, :, cache.shape[2] - count :]


def _bind_append(op: KVAppend, operands: Operands) -> Call:
    k, v = tensor_of(operands["k"]), tensor_of(operands["v"])
    k_new, v_new = (_new_positions(operands, name, op.queries) for name in ("k_cache", "v_cache"))

    def call() -> None:
        k_new.copy_(k)
        v_new.copy_(v)

    return call


def _bind_rotary(op: RotaryEmbedding, operands: Operands) -> Call:
    q, k = tensor_of(operands["q"]), tensor_of(operands["k"])
    table = tensor_of(operands["cos_sin"]).view(op.batch, 1, op.queries, op.head_dim)
    cos, sin = table.chunk(2, -1)
    q_out = tensor_of(operands["q_out"])
    if not op.append:
        k_out = tensor_of(operands["k_out"])

        def rotate() -> None:
            _rotate(q, cos, sin, q_out)
            _rotate(k, cos, sin, k_out)

        return rotate
    v = tensor_of(operands["v"])
    k_new, v_new = (_new_positions(operands, name, op.queries) for name in ("k_cache", "v_cache"))

    def rotate_and_append() -> None:
        _rotate(q, cos, sin, q_out)
        _rotate(k, cos, sin, k_new)
        v_new.copy_(v)

    return rotate_and_append


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, out: torch.Tensor) -> None:
    """(x1 cos - x2 sin, x2 cos + x1 sin) of the two halves of each head."""
    first, second = x.chunk(2, -1)
    out_first, out_second = out.chunk(2, -1)
    torch.mul(first, cos, out=out_first)
    out_first.addcmul_(second, sin, value=-1)
    torch.mul(second, cos, out=out_second)
    out_second.addcmul_(first, sin)


_APPEND = Kernel("append", "kv-append", _bind_append, "Tensor.copy_ into the cache, converting", unscaled)
_ROTARY = Kernel(
    "unfused",
    "rotary-embedding",
    _bind_rotary,
    "a product and an in-place addcmul for each half of q and of k, straight into the cache; a copy of v",
    all_float,
    surrogate="runs as separate kernels: every half is read twice and written twice",
)

KERNELS = (
    _APPEND,
    converted("kv-append", _APPEND),
    fused.compiled_kernel("rotary-embedding", fused.rotary_embedding),
    _ROTARY,
    converted("rotary-embedding", _ROTARY),
)

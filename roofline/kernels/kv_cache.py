"""The append to the KV cache and the rotary embedding in torch."""

from __future__ import annotations

import torch

from roofline.kernels import fused
from roofline.kernels.base import FLOATS, Call, Kernel, Operand, Operands, tensor_of, unscaled
from roofline.kernels.convert import store
from roofline.kernels.packed import Packed
from roofline.ops.kv_cache import KVAppend, RotaryEmbedding


def new_positions(cache: Operand, count: int) -> Operand:
    """A view of the last ``count`` positions of a cache (batch, kv_heads, positions, head size)."""
    if isinstance(cache, Packed):
        return cache.last_positions(count)
    return cache[:, :, cache.shape[2] - count :]


def _bind_append(op: KVAppend, operands: Operands) -> Call:
    k, v = tensor_of(operands["k"]), tensor_of(operands["v"])
    k_new, v_new = (new_positions(operands[name], op.queries) for name in ("k_cache", "v_cache"))

    def call() -> None:
        store(k_new, k)
        store(v_new, v)

    return call


def _refuse_append(op: KVAppend, device: torch.device) -> str | None:
    return unscaled(op, device)


def _refuse_scaled_input(op: KVAppend, device: torch.device) -> str | None:
    return None if op.dtype in FLOATS else f"new keys and values in {op.dtype} are not written by any layer here"


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
    k_new, v_new = (new_positions(operands[name], op.queries) for name in ("k_cache", "v_cache"))
    direct = isinstance(k_new, torch.Tensor) and k_new.dtype == k.dtype

    def rotate_and_append() -> None:
        _rotate(q, cos, sin, q_out)
        turned = k_new if direct else torch.empty_like(k)
        _rotate(k, cos, sin, turned)
        if not direct:
            store(k_new, turned)
        store(v_new, v)

    return rotate_and_append


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, out: torch.Tensor) -> None:
    """(x1 cos - x2 sin, x2 cos + x1 sin) of the two halves of each head."""
    first, second = x.chunk(2, -1)
    out_first, out_second = out.chunk(2, -1)
    torch.mul(first, cos, out=out_first)
    out_first.addcmul_(second, sin, value=-1)
    torch.mul(second, cos, out=out_second)
    out_second.addcmul_(first, sin)


def _refuse_rotary(op: RotaryEmbedding, device: torch.device) -> str | None:
    return None if op.dtype in FLOATS else f"torch has no arithmetic on {op.dtype}"


KERNELS = (
    Kernel("append", "kv-append", _bind_append, "Tensor.copy_ into the cache, converting", _refuse_append),
    Kernel(
        "append-quantized",
        "kv-append",
        _bind_append,
        "finds the scales, divides and rounds in several kernels, then copies into the cache",
        _refuse_scaled_input,
        surrogate="torch has no kernel that quantises with scales: the steps go through memory",
    ),
    fused.compiled_kernel("rotary-embedding", fused.rotary_embedding),
    Kernel(
        "unfused",
        "rotary-embedding",
        _bind_rotary,
        "a product and an in-place addcmul for each half of q and of k, then copies into the cache",
        _refuse_rotary,
        surrogate="runs as separate kernels: every half is read twice and written twice",
    ),
)

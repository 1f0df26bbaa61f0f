"""Attention in torch: fused (``scaled_dot_product_attention``), and the two products of the naive one."""

from __future__ import annotations

from typing import Literal

import torch
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

from roofline.kernels.base import Call, Kernel, NotRunnable, Operands, Outputs, one_float, tensor_of
from roofline.kernels.convert import converted
from roofline.kernels.masks import visible
from roofline.kernels.precision import scoped
from roofline.ops import masks
from roofline.ops.attention import Attention, AttentionScores, AttentionValues

Pattern = Literal["all", "tail", "square", "chunk", "band"]


def pattern(op: Attention) -> Pattern:
    """Which keys the queries see, as far as kernels differ.

    ``all``: every key; ``tail``: one query, the last ``keys_read`` keys; ``square``: causal, nothing cached;
    ``chunk``: causal behind cached keys, so aligned bottom-right; ``band``: a window or sinks, for several queries.
    """
    if op.keys is not None or (op.mask == masks.FULL and op.window is None):
        return "all"
    if _window_bites(op):
        return "tail" if op.queries == 1 and not op.sinks else "band"
    if op.mask == masks.FULL or op.queries == 1:
        return "all"
    return "square" if op.cached == 0 else "chunk"


def _window_bites(op: Attention) -> bool:
    """Whether the window hides any key that the mask alone would show."""
    if op.window is None:
        return False
    reach = op.window // 2 + 1 if op.mask == masks.FULL else op.window + op.sinks
    return bool(reach < op.all_keys)


def mask_of(op: Attention, device: torch.device) -> torch.Tensor:
    """The boolean mask (queries, keys) of ``op``."""
    if op.keys is not None:
        return torch.ones((op.queries, op.keys), dtype=torch.bool, device=device)
    return visible(op.queries, op.cached, device, mask=op.mask, window=op.window, sinks=op.sinks)


def grouped(rows: torch.Tensor, kv_heads: int) -> torch.Tensor:
    """(batch, heads, positions, size) as (batch, kv_heads, heads of a group x positions, size), without a copy.

    Query heads of a group share keys and values, so without a mask they are more rows of one head.
    """
    return rows.reshape(rows.shape[0], kv_heads, -1, rows.shape[-1])


# fused ---------------------------------------------------------------------------------------------------------------


def _bind_sdpa(op: Attention, operands: Operands) -> Call:
    q, k, v = _qkv(operands)
    seen = pattern(op)
    causal = seen == "square"
    if not causal:
        q = grouped(q, op.kv_heads)
    if seen == "tail":
        k, v = (side[:, :, op.all_keys - op.keys_read :] for side in (k, v))
    shared = causal and op.heads != op.kv_heads
    _require_fused(q, k, v, None, causal, shared)

    def call() -> Outputs:
        return {"out": scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=shared)}

    return scoped(call, op.engine.dtype)


def _require_fused(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, causal: bool, shared: bool
) -> None:
    """Refuse where torch would silently take its unfused path, which writes the scores to memory."""
    backend = torch._fused_sdp_choice(q, k, v, mask, 0.0, causal, enable_gqa=shared)
    if backend == int(torch.nn.attention.SDPBackend.MATH.value):
        raise NotRunnable("torch has no fused attention for these shapes and dtypes here, only its unfused math path")


def _refuse_sdpa(op: Attention, device: torch.device) -> str | None:
    if pattern(op) in ("chunk", "band"):
        return "is_causal is aligned top-left, which is wrong behind cached keys, and knows no window"
    return one_float(op, device)


def _bind_lower_right(op: Attention, operands: Operands) -> Call:
    q, k, v = _qkv(operands)
    shared = op.heads != op.kv_heads
    parameters = torch.backends.cuda.SDPAParams(q, k, v, None, 0.0, False, shared)
    if not torch.backends.cuda.can_use_flash_attention(parameters):
        raise NotRunnable("the flash kernel does not take these shapes and dtypes, and others would build a mask")
    mask = causal_lower_right(op.queries, op.all_keys)

    def call() -> Outputs:
        return {"out": scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=shared)}

    return scoped(call, op.engine.dtype)


def _refuse_lower_right(op: Attention, device: torch.device) -> str | None:
    if device.type != "cuda":
        return "torch builds a dense mask for causal_lower_right outside of CUDA"
    return _refuse_unless_chunk(op, device)


def _refuse_unless_chunk(op: Attention, device: torch.device) -> str | None:
    return one_float(op, device) if pattern(op) == "chunk" else "is for a causal chunk behind cached keys"


def _bind_split(op: Attention, operands: Operands) -> Call:
    """Attend to the cached keys, all visible, and to the new ones, causal; weigh the two by their sums."""
    q, k, v = _qkv(operands)
    rows = grouped(q, op.kv_heads)
    old, new = ((k[:, :, part], v[:, :, part]) for part in (slice(op.cached), slice(op.cached, None)))
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu

    def call() -> Outputs:
        out_old, sum_old = attend(rows, *old, 0.0, False)
        out_new, sum_new = attend(q, *new, 0.0, True)
        weight = torch.sigmoid(sum_old.reshape(sum_new.shape) - sum_new).unsqueeze(-1)
        return {"out": torch.lerp(out_new, out_old.reshape(out_new.shape), weight.to(out_new.dtype))}

    return scoped(call, op.engine.dtype)


def _refuse_split(op: Attention, device: torch.device) -> str | None:
    if device.type != "cpu":
        return "is made of torch's CPU kernel"
    if op.head_dim != op.head_dim_v:
        return "needs one head size for keys and values"
    return _refuse_unless_chunk(op, device)


def _bind_masked(op: Attention, operands: Operands) -> Call:
    q, k, v = _qkv(operands)
    shared = op.heads != op.kv_heads
    mask = mask_of(op, q.device)
    _require_fused(q, k, v, mask, False, shared)

    def call() -> Outputs:
        return {"out": scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=shared)}

    return scoped(call, op.engine.dtype)


def _bind_unfused(op: Attention, operands: Operands) -> Call:
    q, k, v = _qkv(operands)
    rows, transposed, scale = grouped(q, op.kv_heads), k.mT, op.head_dim**-0.5
    square = (op.batch, op.heads, op.queries, op.all_keys)
    hidden = None if pattern(op) == "all" else ~mask_of(op, q.device)

    def call() -> Outputs:
        scores = torch.matmul(rows, transposed).mul_(scale)
        if hidden is not None:
            scores.view(square).masked_fill_(hidden, -torch.inf)
        return {"out": torch.matmul(torch.softmax(scores, -1), v)}

    return scoped(call, op.engine.dtype)


def _qkv(operands: Operands) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return tensor_of(operands["q"]), tensor_of(operands["k"]), tensor_of(operands["v"])


# naive ---------------------------------------------------------------------------------------------------------------


def _flat(tensor: torch.Tensor, batches: int) -> torch.Tensor:
    """(batch, heads, positions, size) as (batches, rows, size)."""
    return tensor.view(batches, -1, tensor.shape[-1])


def _bind_scores(op: AttentionScores, operands: Operands) -> Call:
    groups = op.batch * op.kv_heads
    q, k, scores = (_flat(tensor_of(operands[name]), groups) for name in ("q", "k", "scores"))
    transposed, scale = k.mT, op.head_dim**-0.5

    def call() -> None:
        torch.baddbmm(scores, q, transposed, beta=0, alpha=scale, out=scores)

    return scoped(call, op.engine.dtype)


def _bind_values(op: AttentionValues, operands: Operands) -> Call:
    groups = op.batch * op.kv_heads
    probabilities, v, out = (_flat(tensor_of(operands[name]), groups) for name in ("probabilities", "v", "out"))

    def call() -> None:
        torch.bmm(probabilities, v, out=out)

    return scoped(call, op.engine.dtype)


_SDPA = Kernel(
    "sdpa",
    "attention",
    _bind_sdpa,
    "torch scaled_dot_product_attention without a mask tensor; without a causal mask a group of query heads is rows",
    _refuse_sdpa,
    fresh=True,
)
_SPLIT = Kernel(
    "sdpa-split",
    "attention",
    _bind_split,
    "torch's CPU attention over the cached and over the new keys, merged by their log-sum-exp (out passes twice more)",
    _refuse_split,
    fresh=True,
)
_MASKED = Kernel(
    "sdpa-mask",
    "attention",
    _bind_masked,
    "torch scaled_dot_product_attention with a boolean mask",
    one_float,
    surrogate="reads a dense mask and computes the whole square of scores, hidden pairs included",
    fresh=True,
)
_UNFUSED = Kernel(
    "unfused",
    "attention",
    _bind_unfused,
    "two torch.matmul around torch.softmax",
    one_float,
    surrogate="not fused: the scores go through memory, hidden pairs included",
    fresh=True,
)
_SCORES = Kernel("baddbmm", "attention-scores", _bind_scores, "torch.baddbmm with out=, scaled in alpha", one_float)
_VALUES = Kernel("bmm", "attention-values", _bind_values, "torch.bmm with out=", one_float)

KERNELS = (
    _SDPA,
    Kernel(
        "sdpa-lower-right",
        "attention",
        _bind_lower_right,
        "torch scaled_dot_product_attention with causal_lower_right: the flash kernel's own alignment",
        _refuse_lower_right,
        fresh=True,
    ),
    _SPLIT,
    _MASKED,
    _UNFUSED,
    converted("attention", _SDPA, _SPLIT, _MASKED, _UNFUSED),
    _SCORES,
    converted("attention-scores", _SCORES),
    _VALUES,
    converted("attention-values", _VALUES),
)

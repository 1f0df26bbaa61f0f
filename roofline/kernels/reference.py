"""Every operation in plain float64: what a kernel's output is judged against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import gelu, silu

from roofline.errors import RooflineError
from roofline.kernels.attention import mask_of
from roofline.kernels.base import EPSILON, Operand, Operands
from roofline.kernels.packed import Packed
from roofline.ops.attention import Attention, AttentionScores, AttentionValues
from roofline.ops.base import Op
from roofline.ops.elementwise import Activation, GatedActivation, Multiply, Residual, ScaleShift
from roofline.ops.kv_cache import KVAppend, RotaryEmbedding
from roofline.ops.linear import Embedding, Linear, LMHead
from roofline.ops.norm import LayerNorm, RMSNorm, Softmax

Values = dict[str, torch.Tensor]

_FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "silu": silu,
    "gelu": gelu,
    "gelu-tanh": lambda x: gelu(x, approximate="tanh"),
}


def reference(op: Op, operands: Operands) -> Values:
    """The outputs of ``op`` by name in float64, from operands as they are before a kernel runs.

    A cache that is appended to comes back whole, the part before the new positions unchanged. Scores are scaled by
    the square root of the head size, as attention needs them.
    """
    rule = _RULES.get(op.kind)
    if rule is None:
        raise RooflineError(f"there is no reference for {op.kind}", code="no-kernel")
    values = {name: exact(operand) for name, operand in operands.items()}
    return rule(op, values)


def exact(operand: Operand) -> torch.Tensor:
    """The values of an operand in float64; indices stay what they are."""
    if isinstance(operand, Packed):
        return operand.dequantize(torch.float64)
    return operand.double() if operand.dtype.is_floating_point else operand


def _linear(op: Linear, values: Values) -> Values:
    return {"y": values["x"] @ values["weight"].T + values.get("bias", 0)}


def _lm_head(op: LMHead, values: Values) -> Values:
    return {"logits": values["x"] @ values["weight"].T}


def _embedding(op: Embedding, values: Values) -> Values:
    return {"y": values["weight"][values["ids"].long()]}


def _rms_norm(op: RMSNorm, values: Values) -> Values:
    added, x = _add_residual(values)
    return {**added, "y": x / (x.square().mean(-1, keepdim=True) + EPSILON).sqrt() * values["weight"]}


def _layer_norm(op: LayerNorm, values: Values) -> Values:
    added, x = _add_residual(values)
    return {**added, "y": _normal(x) * values.get("weight", 1) + values.get("bias", 0)}


def _add_residual(values: Values) -> tuple[Values, torch.Tensor]:
    if "residual" not in values:
        return {}, values["x"]
    total = values["x"] + values["residual"]
    return {"residual": total}, total


def _normal(x: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + EPSILON).sqrt()


def _softmax(op: Softmax, values: Values) -> Values:
    weights = (values["x"] - values["x"].amax(-1, keepdim=True)).exp()
    return {"y": weights / weights.sum(-1, keepdim=True)}


def _activation(op: Activation, values: Values) -> Values:
    return {"y": _FUNCTIONS[op.function](values["x"])}


def _gated_activation(op: GatedActivation, values: Values) -> Values:
    gate, up = values["gate_up"].chunk(2, -1)
    return {"y": _FUNCTIONS[op.function](gate) * up}


def _multiply(op: Multiply, values: Values) -> Values:
    return {"y": values["a"] * values["b"]}


def _residual(op: Residual, values: Values) -> Values:
    x = values["x"] * _each_row(values["gate"], op.tokens) if op.gate else values["x"]
    return {"y": values["residual"] + x}


def _scale_shift(op: ScaleShift, values: Values) -> Values:
    x = _normal(values["x"]) if op.norm else values["x"]
    scale, shift = (_each_row(values[name], op.tokens) for name in ("scale", "shift"))
    return {"y": x * (1 + scale) + shift}


def _each_row(vectors: torch.Tensor, tokens: int) -> torch.Tensor:
    """(images, width) repeated for the rows of each image."""
    return vectors.repeat_interleave(tokens // vectors.shape[0], 0)


def _rotary_embedding(op: RotaryEmbedding, values: Values) -> Values:
    table = values["cos_sin"].view(op.batch, 1, op.queries, op.head_dim)
    q, k = (_rotate(values[name], table) for name in ("q", "k"))
    if not op.append:
        return {"q_out": q, "k_out": k}
    return {
        "q_out": q,
        "k_cache": _appended(values["k_cache"], k),
        "v_cache": _appended(values["v_cache"], values["v"]),
    }


def _rotate(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """x cos + (-x2, x1) sin, with the cosine and the sine of each pair in both of its places."""
    half = x.shape[-1] // 2
    cos, sin = (torch.cat((part, part), -1) for part in table.chunk(2, -1))
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def _kv_append(op: KVAppend, values: Values) -> Values:
    return {f"{name}_cache": _appended(values[f"{name}_cache"], values[name]) for name in ("k", "v")}


def _appended(cache: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    return torch.cat((cache[:, :, : cache.shape[2] - new.shape[2]], new), 2)


def _attention(op: Attention, values: Values) -> Values:
    group = op.heads // op.kv_heads
    k, v = (values[name].repeat_interleave(group, 1) for name in ("k", "v"))
    scores = values["q"] @ k.mT / op.head_dim**0.5
    scores = scores.masked_fill(~mask_of(op, scores.device), -torch.inf)
    return {"out": scores.softmax(-1) @ v}


def _scores(op: AttentionScores, values: Values) -> Values:
    k = values["k"].repeat_interleave(op.heads // op.kv_heads, 1)
    return {"scores": values["q"] @ k.mT / op.head_dim**0.5}


def _values(op: AttentionValues, values: Values) -> Values:
    return {"out": values["probabilities"] @ values["v"].repeat_interleave(op.heads // op.kv_heads, 1)}


_RULES: dict[str, Callable[[Any, Values], Values]] = {
    Linear.kind: _linear,
    LMHead.kind: _lm_head,
    Embedding.kind: _embedding,
    RMSNorm.kind: _rms_norm,
    LayerNorm.kind: _layer_norm,
    Softmax.kind: _softmax,
    Activation.kind: _activation,
    GatedActivation.kind: _gated_activation,
    Multiply.kind: _multiply,
    Residual.kind: _residual,
    ScaleShift.kind: _scale_shift,
    RotaryEmbedding.kind: _rotary_embedding,
    KVAppend.kind: _kv_append,
    Attention.kind: _attention,
    AttentionScores.kind: _scores,
    AttentionValues.kind: _values,
}

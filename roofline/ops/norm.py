"""Normalisations over the last axis: RMSNorm and LayerNorm (also fused with the residual add before), softmax."""

from dataclasses import dataclass
from typing import ClassVar

from roofline.engines import SPECIAL, VECTOR
from roofline.ops.base import Arithmetic, Op, Tensor, flag, size, storage
from roofline.ops.sizes import Size


@dataclass(frozen=True, slots=True, kw_only=True)
class RMSNorm(Op):
    """y = x / sqrt(mean(x^2) + eps) * weight for each of ``tokens`` rows.

    Per element: square, accumulate, scale, multiply by the weight (4); per row: divide, add eps, rsqrt (3, the
    rsqrt also 1 special). With ``residual`` the add before it is fused: reads x and residual, writes their sum and y.
    """

    kind: ClassVar[str] = "rms-norm"
    about: ClassVar[str] = "RMSNorm, optionally fused with the residual add before it"
    source: ClassVar[str] = "Zhang and Sennrich, Root Mean Square Layer Normalization, eq. 4, counted by hand"

    tokens: Size = size("T", "rows")
    hidden_size: Size = size("h", "width of a row")
    residual: bool = flag("fuse the residual add: reads two streams, writes two")
    dtype: str = storage("dtype of all its tensors")

    def tensors(self) -> tuple[Tensor, ...]:
        """``x``, ``weight``, ``y``; with ``residual`` also ``residual`` (updated in place to x + residual)."""
        return _norm_tensors(self.tokens, self.hidden_size, self.dtype, self.residual, ("weight",))

    def arithmetic(self) -> Arithmetic:
        """4 T h + 3 T vector FLOPs, one rsqrt a row; the fused add is T h more."""
        added = self.tokens * self.hidden_size if self.residual else 0
        flops = 4 * self.tokens * self.hidden_size + 3 * self.tokens + added
        return {VECTOR: flops, SPECIAL: self.tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNorm(Op):
    """y = (x - mean) / sqrt(var + eps) * weight + bias for each of ``tokens`` rows: 7 FLOPs an element.

    Without ``affine`` (diffusion transformers scale and shift from the timestep instead) there is no weight and no
    bias, and 5 FLOPs an element.
    """

    kind: ClassVar[str] = "layer-norm"
    about: ClassVar[str] = "LayerNorm, optionally fused with the residual add before it"
    source: ClassVar[str] = "Ba, Kiros and Hinton, Layer Normalization, counted by hand"

    tokens: Size = size("T", "rows")
    hidden_size: Size = size("h", "width of a row")
    affine: bool = flag("has weight and bias", default=True)
    residual: bool = flag("fuse the residual add: reads two streams, writes two")
    dtype: str = storage("dtype of all its tensors")

    def tensors(self) -> tuple[Tensor, ...]:
        """``x``, ``weight`` and ``bias`` when affine, ``y``; with ``residual`` also ``residual`` (updated)."""
        weights = ("weight", "bias") if self.affine else ()
        return _norm_tensors(self.tokens, self.hidden_size, self.dtype, self.residual, weights)

    def arithmetic(self) -> Arithmetic:
        """7 T h vector FLOPs (5 without affine), one rsqrt a row; the fused add is T h more."""
        per_element = (7 if self.affine else 5) + (1 if self.residual else 0)
        return {VECTOR: per_element * self.tokens * self.hidden_size, SPECIAL: self.tokens}


def _norm_tensors(
    tokens: Size, hidden: Size, dtype: str, residual: bool, weights: tuple[str, ...]
) -> tuple[Tensor, ...]:
    tensors = [Tensor("x", (tokens, hidden), dtype)]
    if residual:
        tensors.append(Tensor("residual", (tokens, hidden), dtype, access="update"))
    tensors += [Tensor(name, (hidden,), dtype, "weight") for name in weights]
    tensors.append(Tensor("y", (tokens, hidden), dtype, access="write"))
    return tuple(tensors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(Op):
    """p = exp(s - max) / sum over the last axis: 3 vector FLOPs a score (exponentiate, accumulate, normalise).

    The exponential is also one special evaluation. Read once, written once: rows that do not fit on chip cost more.
    """

    kind: ClassVar[str] = "softmax"
    about: ClassVar[str] = "softmax over the last axis"
    source: ClassVar[str] = "three operations a score: Kiely, A guide to LLM inference and performance, Baseten 2023"

    rows: Size = size("R", "rows")
    columns: Size = size("C", "scores in a row")
    dtype: str = storage("dtype of scores and probabilities")

    def tensors(self) -> tuple[Tensor, ...]:
        """``x``, ``y``."""
        shape = (self.rows, self.columns)
        return (
            Tensor("x", shape, self.dtype, "intermediate"),
            Tensor("y", shape, self.dtype, "intermediate", "write"),
        )

    def arithmetic(self) -> Arithmetic:
        """3 R C vector FLOPs, R C exponentials."""
        scores = self.rows * self.columns
        return {VECTOR: 3 * scores, SPECIAL: scores}

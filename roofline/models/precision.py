"""``Precision``: the dtypes that a model is stored, computed and cached in."""

from dataclasses import dataclass
from typing import Any

from roofline.dtypes import INDEX_DTYPES, dtype
from roofline.errors import RooflineError
from roofline.fields import Where, build, shown
from roofline.ops.base import check_compute, compute, storage

STREAM_BITS = 16
"""The least bits of the stream between kernels: norms and residual adds work on it, so engines keep it wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """The dtypes of a step; what is left out follows from ``weights``.

    ``weights`` are those of the linear layers inside the layers. The embedding table, norms and biases stay in the
    dtype of ``activations``, and so does the LM head where the weights are quantised: published fp8 and int4
    checkpoints leave it out of quantisation. ``kv`` is what keys and values are cached in. ``compute`` is what the
    matrix engines compute in where they multiply with ``weights``; attention computes in ``activations``.
    """

    weights: str = storage("dtype the linear layers' weights are stored in; by default as published")
    activations: str = storage("dtype between kernels; that of weights, or bf16 below 16 bits", default=None)
    kv: str = storage("dtype of the KV cache; by default that of activations", default=None)
    lm_head: str = storage(
        "dtype the LM head is stored in; that of weights, or of activations below 16 bits", default=None
    )
    compute: str | None = compute()

    def __post_init__(self) -> None:
        """Fill what follows from other fields."""
        wide = dtype(self.weights).bits >= STREAM_BITS
        self._default("activations", self.weights if wide else "bf16")
        self._default("kv", self.activations)
        self._default("lm_head", self.weights if wide else self.activations)

    def _default(self, name: str, value: str) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, value)

    @property
    def lm_head_compute(self) -> str | None:
        """What the LM head computes in: as the other weights where it is stored like them, else its native dtype."""
        return self.compute if self.lm_head == self.weights else None

    def check(self) -> None:
        """Raise ``RooflineError`` where an engine cannot consume the weights, or the stream is too narrow."""
        check_compute(self.weights, self.compute)
        check_compute(self.lm_head, self.lm_head_compute)
        if dtype(self.activations).bits < STREAM_BITS:
            raise RooflineError(
                f"activations must be of 16 bits or more, not {self.activations}: weights and compute may be narrower",
                code="bad-value",
                key="activations",
            )


def read_precision(value: Any, where: Where) -> Precision:
    """A precision from a word that names the weights' dtype (``bf16``, ``fp8``), or from a mapping of its fields.

    ``where`` is the place of the value itself. Raises ``RooflineError`` as ``build`` does.
    """
    if isinstance(value, dict):
        precision: Precision = build(Precision, value, where, of="precision")
        return precision
    if not isinstance(value, str):
        raise where.error((), f"precision must be a dtype or a mapping, not {shown(value)}", code="bad-value")
    if value in INDEX_DTYPES:
        raise where.error((), f"{value} stores indices, not weights", code="unknown-dtype")
    try:
        precision = Precision(weights=dtype(value).name)
        precision.check()
    except RooflineError as error:
        message = error.message
        if error.code == "compute-needed":
            message = (
                f"{value} is a weight-only format that no engine computes in: "
                f"write precision: {{weights: {value}, compute: bf16}}"
            )
        raise where.error((), message, code=error.code, suggestions=error.suggestions) from None
    return precision

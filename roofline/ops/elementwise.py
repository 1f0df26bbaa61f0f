"""Elementwise operations: activations, gated activations, residual adds, adaLN modulation."""

from dataclasses import dataclass
from typing import ClassVar

from roofline.engines import SPECIAL, VECTOR
from roofline.errors import RooflineError
from roofline.ops.base import Arithmetic, Op, Tensor, flag, option, size, storage
from roofline.ops.sizes import Size

_FLOPS = {"relu": 1, "silu": 4, "gelu": 5, "gelu-tanh": 9}
"""FLOPs an element: max | x / (1 + e^-x) | x/2 (1 + erf(x / sqrt 2)) | the tanh form; each transcendental is one."""

FUNCTIONS = tuple(_FLOPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation(Op):
    """y = f(x) on ``tokens`` x ``features`` elements: read once, written once."""

    kind: ClassVar[str] = "activation"
    about: ClassVar[str] = "ReLU, SiLU or GELU"
    source: ClassVar[str] = "the functions as torch defines them, counted by hand; a transcendental counts 1"

    tokens: Size = size("T", "rows")
    features: Size = size("f", "width of a row")
    function: str = option("relu, silu, gelu (erf) or gelu-tanh", FUNCTIONS, default="silu")
    dtype: str = storage("dtype of x and y")

    def tensors(self) -> tuple[Tensor, ...]:
        """``x``, ``y``."""
        shape = (self.tokens, self.features)
        return (Tensor("x", shape, self.dtype), Tensor("y", shape, self.dtype, access="write"))

    def arithmetic(self) -> Arithmetic:
        """A few vector FLOPs an element and one special evaluation (none for ReLU)."""
        return _per_element(self.function, 0, self.tokens * self.features)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedActivation(Op):
    """y = f(gate) * up, gate and up side by side in one tensor as a fused gate-up projection leaves them.

    Unfused (``parts``): f writes its result, and a multiply reads it again.
    """

    kind: ClassVar[str] = "gated-activation"
    about: ClassVar[str] = "SwiGLU or GeGLU: activation of the gate times the up projection"
    source: ClassVar[str] = "Shazeer, GLU Variants Improve Transformer, counted by hand"

    tokens: Size = size("T", "rows")
    intermediate_size: Size = size("f", "width of gate, of up and of y")
    function: str = option("function applied to the gate", FUNCTIONS, default="silu")
    implementation: str = option("one kernel, or one per step", ("fused", "naive"), default="fused")
    dtype: str = storage("dtype of all its tensors")

    def tensors(self) -> tuple[Tensor, ...]:
        """``gate_up``, ``y``."""
        return (
            Tensor("gate_up", (self.tokens, 2 * self.intermediate_size), self.dtype),
            Tensor("y", (self.tokens, self.intermediate_size), self.dtype, access="write"),
        )

    def arithmetic(self) -> Arithmetic:
        """The activation and one multiply an element."""
        return _per_element(self.function, 1, self.tokens * self.intermediate_size)

    def parts(self) -> tuple[tuple[str, Op], ...]:
        """Unfused: the activation, then the product."""
        if self.implementation == "fused":
            return ()
        act = Activation(tokens=self.tokens, features=self.intermediate_size, function=self.function, dtype=self.dtype)
        return (
            ("activation", act),
            ("product", Multiply(tokens=self.tokens, features=self.intermediate_size, dtype=self.dtype)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiply(Op):
    """y = a * b, element by element: what an unfused gate does after its activation."""

    kind: ClassVar[str] = "multiply"
    about: ClassVar[str] = "the elementwise product of two tensors"
    source: ClassVar[str] = "one FLOP an element; two inputs, one output"

    tokens: Size = size("T", "rows")
    features: Size = size("f", "width of a row")
    dtype: str = storage("dtype of all its tensors")

    def tensors(self) -> tuple[Tensor, ...]:
        """``a``, ``b``, ``y``."""
        shape = (self.tokens, self.features)
        return (
            Tensor("a", shape, self.dtype),
            Tensor("b", shape, self.dtype),
            Tensor("y", shape, self.dtype, access="write"),
        )

    def arithmetic(self) -> Arithmetic:
        """One vector FLOP an element."""
        return {VECTOR: self.tokens * self.features}


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual(Op):
    """y = residual + x, or residual + gate * x with one gate vector an image (adaLN-zero)."""

    kind: ClassVar[str] = "residual"
    about: ClassVar[str] = "the residual add, optionally gated per image"
    source: ClassVar[str] = "one FLOP an element, two with a gate; two inputs, one output"

    tokens: Size = size("T", "rows of all images together")
    hidden_size: Size = size("h", "width of a row")
    gate: bool = flag("multiply x by a gate vector of its image first")
    images: Size = size("B", "gate vectors (only with gate)", default=1)
    dtype: str = storage("dtype of all its tensors")

    def tensors(self) -> tuple[Tensor, ...]:
        """``x``, ``residual``, ``gate`` when gated, ``y``."""
        shape = (self.tokens, self.hidden_size)
        gates = (Tensor("gate", (self.images, self.hidden_size), self.dtype),) if self.gate else ()
        return (
            Tensor("x", shape, self.dtype),
            Tensor("residual", shape, self.dtype),
            *gates,
            Tensor("y", shape, self.dtype, access="write"),
        )

    def arithmetic(self) -> Arithmetic:
        """One vector FLOP an element, two with a gate."""
        return {VECTOR: (2 if self.gate else 1) * self.tokens * self.hidden_size}

    def check(self) -> None:
        """Also: every image has the same number of rows."""
        Op.check(self)
        if self.gate:
            check_images(self.tokens, self.images)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleShift(Op):
    """y = x * (1 + scale) + shift with one scale and one shift vector an image (adaLN).

    With ``norm`` the LayerNorm without weights that comes before it is fused: 5 FLOPs an element and one rsqrt a row
    more, no bytes more.
    """

    kind: ClassVar[str] = "scale-shift"
    about: ClassVar[str] = "adaLN modulation, optionally fused with the LayerNorm before it"
    source: ClassVar[str] = "Peebles and Xie, Scalable Diffusion Models with Transformers, section 3.2"

    tokens: Size = size("T", "rows of all images together")
    hidden_size: Size = size("h", "width of a row")
    images: Size = size("B", "scale and shift vectors", default=1)
    norm: bool = flag("fuse the LayerNorm (without weights) before it")
    dtype: str = storage("dtype of all its tensors")

    def tensors(self) -> tuple[Tensor, ...]:
        """``x``, ``scale``, ``shift``, ``y``."""
        shape, vectors = (self.tokens, self.hidden_size), (self.images, self.hidden_size)
        return (
            Tensor("x", shape, self.dtype),
            Tensor("scale", vectors, self.dtype),
            Tensor("shift", vectors, self.dtype),
            Tensor("y", shape, self.dtype, access="write"),
        )

    def arithmetic(self) -> Arithmetic:
        """2 T h vector FLOPs (the 1 + scale of each image is left out); 7 T h and T rsqrt with the norm."""
        elements = self.tokens * self.hidden_size
        return {VECTOR: 7 * elements, SPECIAL: self.tokens} if self.norm else {VECTOR: 2 * elements}

    def check(self) -> None:
        """Also: every image has the same number of rows."""
        Op.check(self)
        check_images(self.tokens, self.images)


def check_images(tokens: int, images: int) -> None:
    """Rows must divide evenly among images."""
    if tokens % images:
        raise RooflineError(
            f"tokens ({tokens}) must be a multiple of images ({images})", code="bad-value", key="images"
        )


def _per_element(function: str, more: int, elements: Size) -> Arithmetic:
    """The function and ``more`` FLOPs on each element; every function but ReLU evaluates one transcendental."""
    vector = {VECTOR: (_FLOPS[function] + more) * elements}
    return vector if function == "relu" else {**vector, SPECIAL: elements}

"""Linear layers, the LM head and the embedding lookup."""

from dataclasses import dataclass
from typing import ClassVar

from roofline.engines import VECTOR, Engine
from roofline.errors import RooflineError
from roofline.ops.base import (
    Arithmetic,
    Fill,
    Op,
    Tensor,
    accumulated,
    check_compute,
    compute,
    fill,
    flag,
    matrix_engine,
    size,
    storage,
)
from roofline.ops.sizes import Size, minimum

EMBEDDING_STORAGE = "/embedding"
"""Storage of an embedding table that the LM head is tied to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(Op):
    """y[tokens, out] = x[tokens, in] @ weight[out, in].T + bias[out], as ``torch.nn.functional.linear``.

    Tensor FLOPs 2 M N K at the compute dtype, M N vector FLOPs for a bias (added in the epilogue).
    Bytes: x once, the weight with its scales once, y once.
    """

    kind: ClassVar[str] = "linear"
    about: ClassVar[str] = "a linear layer (GEMM, GEMV for one token)"
    source: ClassVar[str] = "2MNK with a multiply-add as two: NVIDIA, Matrix Multiplication Background, section 2"

    tokens: Size = size("M", "rows of x: tokens of all sequences together")
    in_features: Size = size("K", "width of x")
    out_features: Size = size("N", "width of y")
    bias: bool = flag("add a bias")
    dtype: str = storage("dtype of x, and of weight and y unless said otherwise")
    weight_dtype: str = storage("dtype the weight is stored in; by default that of x", default=None)
    out_dtype: str = storage("dtype of y; by default that of x, or bf16 where x is below 16 bits", default=None)
    compute: str | None = compute()

    def __post_init__(self) -> None:
        """Fill the dtypes that follow from others."""
        fill(self, weight_dtype=self.dtype, out_dtype=accumulated(self.dtype))

    @property
    def engine(self) -> Engine:
        """The matrix engine it runs on."""
        return matrix_engine(self.weight_dtype, self.compute)

    def tensors(self) -> tuple[Tensor, ...]:
        """``x``, ``weight``, ``bias`` when there is one, ``y``."""
        weights = [Tensor("weight", (self.out_features, self.in_features), self.weight_dtype, "weight")]
        if self.bias:
            weights.append(Tensor("bias", (self.out_features,), accumulated(self.out_dtype), "weight"))
        return (
            Tensor("x", (self.tokens, self.in_features), self.dtype),
            *weights,
            Tensor("y", (self.tokens, self.out_features), self.out_dtype, access="write"),
        )

    def arithmetic(self) -> Arithmetic:
        """2 M N K on the matrix engine; a bias adds M N on the vector engine."""
        outputs = self.tokens * self.out_features
        counts = {self.engine: 2 * outputs * self.in_features}
        if self.bias:
            counts[VECTOR] = outputs
        return counts

    def check(self) -> None:
        """Also: the engine must be able to consume the stored weight."""
        Op.check(self)
        check_compute(self.weight_dtype, self.compute)


@dataclass(frozen=True, slots=True, kw_only=True)
class LMHead(Op):
    """logits[rows, vocab] = x[rows, hidden] @ weight[vocab, hidden].T: one row for each position that is sampled.

    In prefill that is the last position of each sequence only.
    """

    kind: ClassVar[str] = "lm-head"
    about: ClassVar[str] = "the projection to the vocabulary, one row per sampled position"
    source: ClassVar[str] = "2MNK; only sampled positions go through the head (transformers' logits_to_keep)"

    rows: Size = size("M", "sampled positions: one per sequence")
    hidden_size: Size = size("K", "width of the model")
    vocab_size: Size = size("N", "vocabulary")
    tied: bool = flag("the weight is the embedding table")
    dtype: str = storage("dtype of x")
    weight_dtype: str = storage("dtype the weight is stored in; by default that of x", default=None)
    out_dtype: str = storage("dtype of the logits; by default that of x", default=None)
    compute: str | None = compute()

    def __post_init__(self) -> None:
        """Fill the dtypes that follow from others."""
        fill(self, weight_dtype=self.dtype, out_dtype=accumulated(self.dtype))

    @property
    def engine(self) -> Engine:
        """The matrix engine it runs on."""
        return matrix_engine(self.weight_dtype, self.compute)

    def tensors(self) -> tuple[Tensor, ...]:
        """``x``, ``weight``, ``logits``."""
        shared = EMBEDDING_STORAGE if self.tied else ""
        return (
            Tensor("x", (self.rows, self.hidden_size), self.dtype),
            Tensor("weight", (self.vocab_size, self.hidden_size), self.weight_dtype, "weight", storage=shared),
            Tensor("logits", (self.rows, self.vocab_size), self.out_dtype, "logits", "write"),
        )

    def arithmetic(self) -> Arithmetic:
        """2 M N K on the matrix engine."""
        return {self.engine: 2 * self.rows * self.hidden_size * self.vocab_size}

    def check(self) -> None:
        """Also: the engine must be able to consume the stored weight."""
        Op.check(self)
        check_compute(self.weight_dtype, self.compute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding(Op):
    """y[tokens, hidden] = weight[ids]: no arithmetic; only the rows of distinct ids are read, not the table."""

    kind: ClassVar[str] = "embedding"
    about: ClassVar[str] = "the embedding lookup: a gather of rows"
    source: ClassVar[str] = "a gather: ids, the distinct rows, the output"

    tokens: Size = size("T", "ids to look up")
    vocab_size: Size = size("V", "rows of the table")
    hidden_size: Size = size("h", "width of a row")
    distinct: Size | None = size("U", "distinct ids among them; by default as many as can differ", default=None)
    tied: bool = flag("the LM head uses the same table")
    dtype: str = storage("dtype of table and output")

    def tensors(self) -> tuple[Tensor, ...]:
        """``ids``, ``weight``, ``y``."""
        rows = minimum(self.tokens, self.vocab_size) if self.distinct is None else self.distinct
        shared = EMBEDDING_STORAGE if self.tied else ""
        return (
            Tensor("ids", (self.tokens,), "int64", "index", fill=Fill("integers", self.vocab_size, rows)),
            Tensor(
                "weight",
                (self.vocab_size, self.hidden_size),
                self.dtype,
                "weight",
                touched=(rows, self.hidden_size),
                storage=shared,
            ),
            Tensor("y", (self.tokens, self.hidden_size), accumulated(self.dtype), access="write"),
        )

    def check(self) -> None:
        """Also: no more distinct ids than ids or rows of the table."""
        Op.check(self)
        if self.distinct is not None and self.distinct > min(self.tokens, self.vocab_size):
            raise RooflineError(
                f"distinct ({self.distinct}) must be at most tokens ({self.tokens}) and vocab_size ({self.vocab_size})",
                code="out-of-range",
                key="distinct",
            )

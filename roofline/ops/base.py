"""``Op`` and ``Tensor``: an operation is declared once, and everything else follows from the declaration.

An op states its tensors and its arithmetic. The fields that are sizes carry their symbol, minimum and meaning as
metadata; from that come YAML validation, JSON schema, sweeps, closed forms, neighbours for timing and test strategies.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self

from roofline.dtypes import COMPUTE_DTYPES, STORAGE_DTYPES, dtype, native_compute
from roofline.engines import Engine, tensor
from roofline.errors import RooflineError, nearest
from roofline.ops.sizes import Size, bytes_of, product

Role = Literal["weight", "activation", "kv_cache", "state", "intermediate", "index", "logits"]
Access = Literal["read", "write", "update"]
Arithmetic = Mapping[Engine, Size]

PERSISTENT_ROLES: tuple[Role, ...] = ("weight", "kv_cache", "state")
"""Roles of storage that outlives the op: what must be resident on the device."""


@dataclass(frozen=True, slots=True)
class Fill:
    """What a timed run puts into a tensor; ``high`` bounds the integers.

    ``distinct``: exactly so many different integers occur (None: as chance has it).
    """

    kind: Literal["normal", "integers", "permutation", "offsets", "routing"] = "normal"
    high: Size = 0
    distinct: Size | None = None


@dataclass(frozen=True, slots=True)
class Tensor:
    """One operand. ``shape`` is what is stored; ``touched`` the shape of the part that moves (None: all of it).

    ``storage`` names storage that several ops share: a plain name is shared by the ops of one node (a layer's KV
    cache, written by one op and read by another), one with a leading slash by the whole tree (tied embeddings).
    """

    name: str
    shape: tuple[Size, ...]
    dtype: str
    role: Role = "activation"
    access: Access = "read"
    touched: tuple[Size, ...] | None = None
    fill: Fill = Fill()
    storage: str = ""

    @property
    def elements(self) -> Size:
        """How many elements are stored."""
        return product(self.shape)

    @property
    def resident_bytes(self) -> Size:
        """Bytes that it occupies, scales included."""
        return bytes_of(self.shape, self.dtype)

    @property
    def touched_bytes(self) -> Size:
        """Bytes of the part that the op touches, counted once."""
        return bytes_of(self.shape if self.touched is None else self.touched, self.dtype)

    @property
    def traffic_bytes(self) -> Size:
        """Bytes that move: the touched part, twice where it is read and written back."""
        return self.touched_bytes * (2 if self.access == "update" else 1)

    @property
    def reads(self) -> bool:
        """Whether the op reads it."""
        return self.access != "write"

    @property
    def writes(self) -> bool:
        """Whether the op writes it."""
        return self.access != "read"


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """What a field of an op is, for every reader of the declaration (see ``size``, ``storage``, ``option``...)."""

    kind: Literal["size", "storage", "compute", "option", "flag"]
    doc: str
    symbol: str = ""
    minimum: int = 0
    choices: tuple[str, ...] = ()
    optional: bool = False


def size(symbol: str, doc: str, *, min: int = 1, default: Any = MISSING) -> Any:
    """A field that is a size: ``symbol`` in formulas, ``min`` its least value; ``default=None`` makes it optional."""
    info = FieldInfo("size", doc, symbol, min, optional=default is None)
    return field(default=default, metadata={"info": info})


def storage(doc: str, *, default: Any = "bf16") -> Any:
    """A field that names a storage dtype; ``default=None``: taken from another field, as ``doc`` says."""
    info = FieldInfo("storage", doc, choices=STORAGE_DTYPES, optional=default is None)
    return field(default=default, metadata={"info": info})


def compute() -> Any:
    """The dtype a matrix engine computes in; None: the native engine of the storage dtype."""
    doc = "dtype the matrix engine computes in; by default the native one of the storage dtype"
    info = FieldInfo("compute", doc, choices=COMPUTE_DTYPES, optional=True)
    return field(default=None, metadata={"info": info})


def option(doc: str, choices: tuple[str, ...], *, default: Any = MISSING) -> Any:
    """A field that is one of a few words."""
    return field(default=default, metadata={"info": FieldInfo("option", doc, choices=choices)})


def flag(doc: str, *, default: bool = False) -> Any:
    """A field that is true or false."""
    return field(default=default, metadata={"info": FieldInfo("flag", doc)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """An operation: fields that are sizes or structure, ``tensors()`` and ``arithmetic()``.

    Both are evaluated on ints, float64 arrays and sympy symbols alike, so they use only arithmetic and
    ``ops/sizes.py``, and never branch on a size. Ops that hold arrays are never hashed or compared.
    """

    kind: ClassVar[str]
    """The name in YAML (``op: linear``)."""
    about: ClassVar[str]
    """One line for people."""
    source: ClassVar[str]
    """Where the formulas come from, for ``explain``."""
    launches: ClassVar[int] = 1
    """Kernels that a run of it launches."""

    def tensors(self) -> tuple[Tensor, ...]:
        """Every operand, in the order in which the kernel takes them, outputs last."""
        raise NotImplementedError

    def arithmetic(self) -> Arithmetic:
        """Operations per engine: FLOPs on tensor and vector engines, evaluations on the special one."""
        return {}

    def parts(self) -> "tuple[tuple[str, Op], ...]":
        """The ops that an unfused implementation runs instead of this one; empty when this is one kernel."""
        return ()

    def check(self) -> None:
        """Raise ``RooflineError`` (with ``key``) where a field or a combination of fields makes no sense."""
        for name, info in op_fields(type(self)).items():
            _check_field(name, info, getattr(self, name))

    @property
    def flops(self) -> Size:
        """Tensor plus vector FLOPs (special-function evaluations are operations and are not among them)."""
        return sum_of(count for engine, count in self.arithmetic().items() if engine.unit != "special")

    @property
    def traffic_bytes(self) -> Size:
        """Compulsory traffic: each distinct input once, each output once."""
        return sum_of(tensor.traffic_bytes for tensor in self.tensors())

    @property
    def resident_bytes(self) -> Size:
        """Bytes of all operands."""
        return sum_of(tensor.resident_bytes for tensor in self.tensors())

    def with_(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return replace(self, **changes)


def op_fields(op_type: type[Op]) -> dict[str, FieldInfo]:
    """Name and meaning of each declared field, in order."""
    return {item.name: item.metadata["info"] for item in fields(op_type) if "info" in item.metadata}


def sizes_of(op: Op) -> dict[str, Size]:
    """The fields of ``op`` that are sizes and are set."""
    return {
        name: getattr(op, name)
        for name, info in op_fields(type(op)).items()
        if info.kind == "size" and getattr(op, name) is not None
    }


def fill(op: Op, **values: Any) -> None:
    """Set the fields that were left out (None) to the values that they follow; for ``__post_init__`` only."""
    for name, value in values.items():
        if getattr(op, name) is None:
            object.__setattr__(op, name, value)


def symbolic(op: Op) -> Op:
    """The same op with every size that is set replaced by its symbol (a positive integer; nonnegative if min is 0)."""
    import sympy

    infos = op_fields(type(op))
    symbols = {
        name: sympy.Symbol(infos[name].symbol, integer=True, **_sign(infos[name].minimum)) for name in sizes_of(op)
    }
    return replace(op, **symbols)


def _sign(minimum: int) -> dict[str, bool]:
    return {"positive": True} if minimum > 0 else {"nonnegative": True}


def sum_of(values: Any) -> Size:
    """Their sum, 0 for none (``sum`` typed for sizes)."""
    total: Size = 0
    for value in values:
        total = total + value
    return total


def _check_field(name: str, info: FieldInfo, value: Any) -> None:
    if value is None:
        if not info.optional:
            raise RooflineError(f"{name} is missing", code="missing-key", key=name)
        return
    if info.kind == "size" and value < info.minimum:
        raise RooflineError(f"{name} must be at least {info.minimum}, not {value}", code="out-of-range", key=name)
    if info.choices and value not in info.choices:
        raise RooflineError(
            f"{name} must be one of {', '.join(info.choices)}, not {value!r}",
            code="unknown-dtype" if info.kind in ("storage", "compute") else "bad-value",
            key=name,
            suggestions=nearest(str(value), info.choices),
        )


def accumulated(name: str) -> str:
    """The dtype a result is written in when its inputs are ``name``: itself, or bf16 for formats below 16 bits."""
    return name if dtype(name).bits >= 16 else "bf16"


def matrix_engine(stored: str, compute_dtype: str | None = None) -> Engine:
    """The matrix engine for operands stored as ``stored``: that of ``compute_dtype``, else the native one."""
    return tensor(compute_dtype or native_compute(stored))


def check_compute(weight_dtype: str, compute_dtype: str | None) -> None:
    """Refuse a weight-only format without a compute dtype, and an engine too narrow for the stored weight.

    A matrix engine of 8 bits or fewer cannot consume weights of 16: they would have to be rewritten first.
    """
    if compute_dtype is None:
        native_compute(weight_dtype)
    narrow = ("fp8", "mxfp8", "fp4", "int8")
    if compute_dtype in narrow and dtype(weight_dtype).bits >= 16:
        raise RooflineError(
            f"compute: {compute_dtype} needs weights stored in at most 8 bits, not {weight_dtype}",
            code="bad-value",
            key="compute",
        )

"""What a descriptor runs: one op, a phase of a decoder, or denoising steps.

All three answer the same questions: ``tree()``; ``sizes``, ``get`` and ``with_`` (the sizes of the descriptor, their
values, the same with others); ``dtypes`` and ``with_dtypes`` (what weights and KV cache are stored in); ``summary``
(what runs, in a line); ``notes`` (what a reader of the numbers should know); ``new_tokens`` (how many a whole decode
step generates).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from roofline.fields import declared
from roofline.models import DecoderConfig, Fusion, Precision, decoder_step
from roofline.models.phases import Decode, Denoise, Prefill
from roofline.ops import Node, Op, node_of
from roofline.ops.base import FieldInfo

if TYPE_CHECKING:
    from roofline.models.diffusion_config import DiffusionConfig


@dataclass(frozen=True, slots=True)
class OpRun:
    """One op, run once. ``given`` are the fields that the descriptor states; the others follow from them."""

    kind: type[Op]
    given: Mapping[str, Any]

    @property
    def op(self) -> Op:
        """The op."""
        return self.kind(**self.given)

    def tree(self) -> Node:
        """The op under its own name, or the kernels of its unfused form."""
        return node_of(self.kind.kind, self.op)

    @property
    def sizes(self) -> dict[str, FieldInfo]:
        """The op's fields that are sizes."""
        return _sizes(self.kind)

    def get(self, key: str) -> Any:
        """The value of a size; None where an optional one is not set."""
        return getattr(self.op, key)

    def with_(self, **sizes: Any) -> OpRun:
        """The same with other sizes."""
        return OpRun(self.kind, {**self.given, **sizes})

    @property
    def dtypes(self) -> dict[str, str]:
        """What its weights and its KV cache are stored in, where it has them."""
        op, fields = self.op, {"weights": "weight_dtype", "kv": "kv_dtype"}
        return {key: getattr(op, name) for key, name in fields.items() if hasattr(op, name)}

    def with_dtypes(self, *, weights: str | None = None, compute: str | None = None, kv: str | None = None) -> OpRun:
        """The same with other weights (and what they are computed in) or another KV cache."""
        changes = {"kv_dtype": kv} if weights is None else {"weight_dtype": weights, "compute": compute}
        return OpRun(self.kind, {**self.given, **changes})

    @property
    def summary(self) -> str:
        """The op and the fields that are given: ``op linear, tokens 64, in_features 4096, ...``."""
        return f"op {self.kind.kind}, {_listed(self.given)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """None: an op says all there is."""
        return ()

    @property
    def new_tokens(self) -> int | None:
        """None: an op is no step."""
        return None


class _OfPhase:
    """The sizes of a run of a model: those of its phase."""

    __slots__ = ()
    phase: Any

    @property
    def sizes(self) -> dict[str, FieldInfo]:
        """The sizes of the phase."""
        return _sizes(type(self.phase))

    def get(self, key: str) -> Any:
        """The value of a size; None where an optional one is not set."""
        return getattr(self.phase, key)

    def with_(self, **sizes: Any) -> Self:
        """The same with other sizes."""
        return replace(self, phase=replace(self.phase, **sizes))  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class DecoderRun(_OfPhase):
    """A phase of a decoder, called ``model`` by its descriptor. ``part`` keeps one node of its tree, run once."""

    model: str
    config: DecoderConfig
    phase: Prefill | Decode
    precision: Precision
    fusion: Fusion = "serving"
    part: str | None = None

    def tree(self) -> Node:
        """The step, or the part of it that is wanted."""
        sizes = _values(self.phase)
        step = decoder_step(self.config, self.phase.phase, precision=self.precision, fusion=self.fusion, **sizes)
        return part_of(step, self.part)

    @property
    def dtypes(self) -> dict[str, str]:
        """What its weights and its KV cache are stored in."""
        return {"weights": self.precision.weights, "kv": self.precision.kv}

    def with_dtypes(
        self, *, weights: str | None = None, compute: str | None = None, kv: str | None = None
    ) -> DecoderRun:
        """The same with other weights (and what they are computed in) or another KV cache."""
        return replace(self, precision=_changed(self.precision, weights, compute, kv))

    @property
    def summary(self) -> str:
        """``llama-3.1-8b decode: batch 64, context 8192, weights bf16, kv bf16``."""
        return _model_summary(self.model, self.phase.phase, self.part, {**_values(self.phase), **self.dtypes})

    @property
    def notes(self) -> tuple[str, ...]:
        """A context that is longer than the model was made for."""
        phase, most = self.phase, self.config.max_positions
        length = phase.context + 1 if isinstance(phase, Decode) else phase.prefix + phase.tokens
        if most is None or length <= most:
            return ()
        return (f"{length:,} positions are more than the {most:,} that the model's config allows",)

    @property
    def new_tokens(self) -> int | None:
        """One a sequence, in a whole decode step."""
        return self.phase.batch if isinstance(self.phase, Decode) and self.part is None else None


@dataclass(frozen=True, slots=True)
class DiffusionRun(_OfPhase):
    """Denoising steps of the transformer that is called ``model``. ``part`` keeps one node of its tree, run once."""

    model: str
    config: DiffusionConfig
    phase: Denoise
    precision: Precision
    fusion: Fusion = "serving"
    part: str | None = None

    def tree(self) -> Node:
        """The steps, or the part of them that is wanted."""
        from roofline.models.diffusion import diffusion_step  # only what a command needs is loaded

        step = diffusion_step(self.config, self.phase, precision=self.precision, fusion=self.fusion)
        return part_of(step, self.part)

    @property
    def dtypes(self) -> dict[str, str]:
        """What its weights are stored in; there is no KV cache."""
        return {"weights": self.precision.weights}

    def with_dtypes(
        self, *, weights: str | None = None, compute: str | None = None, kv: str | None = None
    ) -> DiffusionRun:
        """The same with other weights (and what they are computed in); ``kv`` changes nothing."""
        return replace(self, precision=_changed(self.precision, weights, compute, None))

    @property
    def summary(self) -> str:
        """``flux.1-dev denoising: batch 1, height 1024, width 1024, ...``."""
        return _model_summary(self.model, "denoising", self.part, {**_values(self.phase), **self.dtypes})

    @property
    def notes(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def new_tokens(self) -> int | None:
        """None: it generates no tokens."""
        return None


def _sizes(declaring: type) -> dict[str, FieldInfo]:
    return {key: info for key, info in declared(declaring).items() if info.kind == "size"}


def _values(phase: Any) -> dict[str, Any]:
    """The declared fields that are set."""
    return {key: value for key in declared(type(phase)) if (value := getattr(phase, key)) is not None}


def _model_summary(model: str, phase: str, part: str | None, values: Mapping[str, Any]) -> str:
    return f"{model} {phase}{f', its {part}' if part else ''}: {_listed(values)}"


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key} {str(value).lower() if isinstance(value, bool) else value}" for key, value in values.items()
    )


def _changed(precision: Precision, weights: str | None, compute: str | None, kv: str | None) -> Precision:
    if weights is not None:
        precision = replace(precision, weights=weights, compute=compute)
    return precision if kv is None else replace(precision, kv=kv)


def part_names(root: Node) -> set[str]:
    """The names of all nodes below ``root``."""
    return {child.name for child in root.children} | {name for child in root.children for name in part_names(child)}


def part_of(root: Node, name: str | None) -> Node:
    """The first node of that name, run once; the whole tree without a name."""
    if name is None:
        return root
    return replace(next(found for found in map(_finder(name), root.children) if found is not None), repeat=1)


def _finder(name: str) -> Callable[[Node], Node | None]:
    def find(node: Node) -> Node | None:
        if node.name == name:
            return node
        return next((found for found in map(find, node.children) if found is not None), None)

    return find

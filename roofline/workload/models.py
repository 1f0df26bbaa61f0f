"""A model and what is run of it, read from a descriptor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from roofline import catalog
from roofline.errors import RooflineError, nearest
from roofline.fields import Where, Within, build, declared, shown
from roofline.models import FUSIONS, DecoderConfig, Fusion, Precision, decoder_step, read_decoder, read_precision
from roofline.ops import Node, leaves
from roofline.ops.base import FieldInfo
from roofline.workload.phases import PHASES, Decode, Prefill
from roofline.workload.source import Source

MODEL_KEYS: Final = ("model", "phase", "part", "precision", "fusion")


@dataclass(frozen=True, slots=True)
class ModelRun:
    """A phase of a decoder. ``part`` keeps one node of its tree, run once."""

    config: DecoderConfig
    phase: Prefill | Decode
    precision: Precision
    fusion: Fusion = "serving"
    part: str | None = None

    def tree(self) -> Node:
        """The step, or the part of it that is wanted."""
        root = self._step()
        if self.part is None:
            return root
        node = _find(root, self.part)
        assert node is not None, "the part was checked when the descriptor was read"
        return replace(node, repeat=1)

    def _step(self) -> Node:
        values = {key: getattr(self.phase, key) for key in declared(type(self.phase))}
        return decoder_step(self.config, self.phase.phase, precision=self.precision, fusion=self.fusion, **values)

    @property
    def sizes(self) -> dict[str, FieldInfo]:
        """The sizes that a descriptor of it sets, by key."""
        return declared(type(self.phase))

    def get(self, key: str) -> Any:
        """The value of a size."""
        return getattr(self.phase, key)

    @property
    def dtypes(self) -> dict[str, str]:
        """What its weights and its KV cache are stored in."""
        return {"weights": self.precision.weights, "kv": self.precision.kv}

    def with_dtypes(self, *, weights: str | None = None, compute: str | None = None, kv: str | None = None) -> ModelRun:
        """The same with other weights (and what they are computed in) or another KV cache."""
        if weights is not None:
            return replace(self, precision=replace(self.precision, weights=weights, compute=compute))
        return replace(self, precision=replace(self.precision, kv=kv))

    def with_(self, **sizes: Any) -> ModelRun:
        """The same with other sizes."""
        return replace(self, phase=replace(self.phase, **sizes))

    @property
    def new_tokens(self) -> int | None:
        """Tokens that it generates: one a sequence in a whole decode step."""
        return self.phase.batch if isinstance(self.phase, Decode) and self.part is None else None

    @property
    def notes(self) -> tuple[str, ...]:
        """A context that is longer than the model was made for."""
        phase, most = self.phase, self.config.max_positions
        length = phase.context + 1 if isinstance(phase, Decode) else phase.prefix + phase.tokens
        if most is None or length <= most:
            return ()
        return (f"{length:,} positions are more than the {most:,} that the model's config allows",)


def read_model_run(rest: Mapping[str, Any], source: Source, base: Path | None, common: tuple[str, ...]) -> ModelRun:
    """Read ``model``, ``phase`` and the keys that go with them; ``common`` are keys read elsewhere."""
    config = read_model(rest["model"], source, base, precision_given=rest.get("precision") is not None)
    phase_type = _phase(rest, source)
    keys = {key: value for key, value in rest.items() if key not in MODEL_KEYS}
    phase = build(phase_type, keys, source, of=f"phase: {phase_type.phase}", also=(*MODEL_KEYS, *common))
    precision = _precision(rest.get("precision"), source, config)
    run = ModelRun(config, phase, precision, _fusion(rest, source))
    for leaf in leaves(run.tree()):
        _check(leaf.op, source)
    return replace(run, part=_part(rest, source, run.tree()))


def _check(op: Any, source: Source) -> None:
    try:
        op.check()
    except RooflineError as error:
        raise source.error((), error.message, code=error.code, suggestions=error.suggestions) from None


def _phase(rest: Mapping[str, Any], source: Source) -> type[Prefill] | type[Decode]:
    name = rest.get("phase")
    if name is None:
        raise source.error(("phase",), f"missing key 'phase': one of {', '.join(PHASES)}", code="missing-key")
    if name not in PHASES:
        raise source.error(
            ("phase",),
            f"phase must be one of {', '.join(PHASES)}, not {shown(name)}",
            code="bad-value",
            suggestions=nearest(str(name), PHASES),
        )
    return PHASES[name]


def _precision(value: Any, source: Source, config: DecoderConfig) -> Precision:
    """As stated; else as the checkpoint is published; else bf16."""
    place = Within(source, "precision")
    if value is not None:
        precision = read_precision(value, place)
    else:
        precision = read_precision(config.dtype or "bf16", place)
    if config.tied and precision.lm_head != precision.activations:
        if isinstance(value, dict) and "lm_head" in value:
            raise place.error(
                ("lm_head",),
                f"this model's LM head is its embedding table, which is stored as {precision.activations}",
                code="bad-combination",
            )
        precision = replace(precision, lm_head=precision.activations)
    return precision


def _fusion(rest: Mapping[str, Any], source: Source) -> Fusion:
    name = rest.get("fusion", FUSIONS[0])
    if name not in FUSIONS:
        raise source.error(
            ("fusion",),
            f"fusion must be one of {', '.join(FUSIONS)}, not {shown(name)}",
            code="bad-value",
            suggestions=nearest(str(name), FUSIONS),
        )
    fusion: Fusion = name
    return fusion


def _part(rest: Mapping[str, Any], source: Source, root: Node) -> str | None:
    name = rest.get("part")
    if name is None:
        return None
    known = sorted(_names(root))
    if name not in known:
        raise source.error(
            ("part",),
            f"part must be one of {', '.join(known)}, not {shown(name)}",
            code="bad-value",
            suggestions=nearest(str(name), known),
        )
    return str(name)


def _names(root: Node) -> set[str]:
    return {child.name for child in root.children} | {name for child in root.children for name in _names(child)}


def _find(root: Node, name: str) -> Node | None:
    for child in root.children:
        found = child if child.name == name else _find(child, name)
        if found is not None:
            return found
    return None


def read_model(value: Any, source: Source, base: Path | None, *, precision_given: bool) -> DecoderConfig:
    """The description that ``model:`` means: a name of the catalogue, a path, or the description itself."""
    if isinstance(value, dict):
        return read_config(value, Within(source, "model"), strict=True, precision_given=precision_given)
    if not isinstance(value, str):
        message = f"model must be a name, a path or a mapping, not {shown(value)}"
        raise source.error(("model",), message, code="bad-value")
    path = _find_model(value, source, base)
    document = catalog.read_yaml(path)
    return read_config(document.data, document, strict=False, precision_given=precision_given)


def _find_model(text: str, source: Source, base: Path | None) -> Path:
    """Beside the descriptor first (where it was the descriptor that named it), then from the working directory."""
    bases = [None] if base is None or source.overridden("model") else [base, None]
    fault: RooflineError | None = None
    for start in bases:
        try:
            path = catalog.resolve("workloads/models", text, base=start)
        except RooflineError as error:
            fault = error
            continue
        return path / "config.json" if path.is_dir() else path
    assert fault is not None
    raise source.error(("model",), f"model: {fault.message}", code=fault.code, suggestions=fault.suggestions)


def read_config(data: Mapping[str, Any], where: Where, *, strict: bool, precision_given: bool) -> DecoderConfig:
    """The description in a config's data."""
    return read_decoder(data, where, strict=strict, precision_given=precision_given)

"""``model:`` and the keys that go with it, read from a descriptor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from roofline import catalog
from roofline.dtypes import dtype
from roofline.errors import RooflineError, nearest
from roofline.fields import Nowhere, Where, Within, build, shown
from roofline.models import FUSIONS, DecoderConfig, Fusion, Precision, read_config, read_precision
from roofline.models.phases import PHASES, Decode, Denoise, Prefill
from roofline.ops import leaves
from roofline.workload.runs import DecoderRun, DiffusionRun, part_names
from roofline.workload.source import Source

if TYPE_CHECKING:
    from roofline.models.diffusion_config import DiffusionConfig

MODEL_KEYS: Final = {
    "model": "a name of the catalogue, a path to a config.json or to its folder, or the description itself",
    "part": "one node of the model's tree, run once (layers, self_attn, mlp, ...), in place of the whole step",
    "precision": "a dtype for the weights, from which the others follow, or a mapping; by default as published",
    "fusion": "serving: fused as a serving engine fuses; none: every round trip through memory is charged",
}
"""Keys that go with every model, beside those of what is run of it."""

_Run = TypeVar("_Run", DecoderRun, DiffusionRun)


def read_model_run(
    rest: Mapping[str, Any], source: Source, base: Path | None, common: tuple[str, ...]
) -> DecoderRun | DiffusionRun:
    """Read ``model``, what is run of it, and the keys that go with both; ``common`` are keys read elsewhere.

    Raises ``RooflineError`` at the key that is wrong, in the descriptor or in the model's file.
    """
    config = _read_model(rest["model"], source, base, precision_given=_states_weights(rest.get("precision")))
    fusion = _word(rest, "fusion", FUSIONS, source)
    with source.chosen_by("model"):
        if isinstance(config, DecoderConfig):
            return _read_decoder_run(config, rest, source, common, fusion)
        return _read_diffusion_run(config, rest, source, common, fusion)


def _read_decoder_run(
    config: DecoderConfig, rest: Mapping[str, Any], source: Source, common: tuple[str, ...], fusion: Fusion
) -> DecoderRun:
    if rest.get("phase") is None:
        raise source.error(("phase",), f"missing key 'phase': one of {', '.join(PHASES)}", code="missing-key")
    phase_type = PHASES[_word(rest, "phase", tuple(PHASES), source)]
    keys = {key: value for key, value in rest.items() if key not in (*MODEL_KEYS, "phase")}
    also = (*MODEL_KEYS, "phase", *common)
    with source.chosen_by("phase"):
        phase: Prefill | Decode = build(phase_type, keys, source, of=f"phase: {phase_type.phase}", also=also)
    precision = _decoder_precision(rest.get("precision"), source, config)
    return _finished(DecoderRun(_label(rest), config, phase, precision, fusion), rest, source)


def _read_diffusion_run(
    config: DiffusionConfig, rest: Mapping[str, Any], source: Source, common: tuple[str, ...], fusion: Fusion
) -> DiffusionRun:
    keys = {key: value for key, value in rest.items() if key not in MODEL_KEYS}
    what: Denoise = build(Denoise, keys, source, of="a diffusion model", also=(*MODEL_KEYS, *common))
    try:
        what.check_with(config)
    except RooflineError as error:
        loc = (error.key,) if error.key else ()
        raise source.error(loc, error.message, code=error.code, suggestions=error.suggestions) from None
    value = rest.get("precision")
    for key in ("kv", "lm_head"):
        if isinstance(value, dict) and key in value:
            message = f"a diffusion transformer has no {key}"
            raise source.error(("precision", key), message, code="bad-combination", of="key")
    precision = read_precision("bf16" if value is None else value, Within(source, "precision"))
    return _finished(DiffusionRun(_label(rest), config, what, precision, fusion), rest, source)


def _label(rest: Mapping[str, Any]) -> str:
    """What the descriptor calls the model; its kind where the description is written out."""
    model = rest["model"]
    return str(
        model if isinstance(model, str) else model.get("model_type") or model.get("kind") or model["_class_name"]
    )


def _finished(run: _Run, rest: Mapping[str, Any], source: Source) -> _Run:
    """The run with its ``part``, its ops checked."""
    root = run.tree()
    for leaf in leaves(root):
        try:
            leaf.op.check()
        except RooflineError as error:
            message = f"{leaf.name}: {error.message}"
            raise source.error((), message, code=error.code, suggestions=error.suggestions) from None
    if rest.get("part") is None:
        return run
    return replace(run, part=_word(rest, "part", tuple(sorted(part_names(root))), source))


def _word(rest: Mapping[str, Any], key: str, choices: tuple[Any, ...], source: Source) -> Any:
    """The value of ``key``, one of ``choices``; the first of them where the key is missing."""
    value = rest.get(key, choices[0])
    if not isinstance(value, str) or value not in choices:
        raise source.error(
            (key,),
            f"{key} must be one of {', '.join(choices)}, not {shown(value)}",
            code="bad-value",
            suggestions=nearest(str(value), choices),
        )
    return value


def _decoder_precision(value: Any, source: Source, config: DecoderConfig) -> Precision:
    """As stated; else as the checkpoint is published; else bf16. A tied LM head is stored as the embedding table."""
    place: Where = Nowhere() if value is None else Within(source, "precision")
    if not _states_weights(value):
        value = {**_published(config), **(value or {})}
    precision = read_precision(value, place)
    if not config.tied or precision.lm_head == precision.activations:
        return precision
    if isinstance(value, dict) and "lm_head" in value:
        raise place.error(
            ("lm_head",),
            f"this model's LM head is its embedding table, which is stored as {precision.activations}",
            code="bad-combination",
        )
    return replace(precision, lm_head=precision.activations)


def _states_weights(value: Any) -> bool:
    """Whether a precision says what the weights are stored in."""
    return "weights" in value if isinstance(value, dict) else value is not None


def _published(config: DecoderConfig) -> dict[str, str]:
    """The checkpoint's dtype; formats that no engine consumes are unpacked to bf16, as their kernels do."""
    stored = config.dtype or "bf16"
    return {"weights": stored} if dtype(stored).native else {"weights": stored, "compute": "bf16"}


def _read_model(
    value: Any, source: Source, base: Path | None, *, precision_given: bool
) -> DecoderConfig | DiffusionConfig:
    """The description that ``model:`` means: a name of the catalogue, a path, or the description itself."""
    if isinstance(value, dict):
        return read_config(value, Within(source, "model"), strict=True, precision_given=precision_given)
    if not isinstance(value, str):
        message = f"model must be a name, a path or a mapping, not {shown(value)}"
        raise source.error(("model",), message, code="bad-value")
    path = _find_model(value, source, base)
    document = catalog.read_yaml(path)
    beside = path.with_name("hf_quant_config.json")
    if not precision_given and path.name == "config.json" and beside.is_file():
        message = f"this checkpoint is quantised as {beside} says, which is not read: state `precision`"
        raise source.error(("model",), message, code="unsupported-quantization")
    return read_config(document.data, document, precision_given=precision_given)


def _find_model(text: str, source: Source, base: Path | None) -> Path:
    """Beside the descriptor first (where it was the descriptor that named it), then from the working directory."""
    starts = [base] if base is not None and not source.overridden("model") else []
    for start in starts:
        try:
            return _config_file(catalog.resolve("workloads/models", text, base=start))
        except RooflineError as error:
            if error.code != "missing-file":
                raise _at_model(error, source) from None
    try:
        return _config_file(catalog.resolve("workloads/models", text))
    except RooflineError as error:
        raise _at_model(error, source) from None


def _at_model(error: RooflineError, source: Source) -> RooflineError:
    named = f"{error.file}: " if error.file else ""
    message = f"model: {named}{error.message}"
    return source.error(("model",), message, code=error.code, suggestions=error.suggestions)


def _config_file(path: Path) -> Path:
    """The ``config.json`` of a folder: of a decoder, or of the transformer in a diffusers pipeline."""
    if not path.is_dir():
        return path
    inner = path / "transformer" / "config.json"
    return inner if inner.is_file() and not (path / "config.json").is_file() else path / "config.json"

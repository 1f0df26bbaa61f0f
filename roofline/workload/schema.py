"""The JSON schema of workload descriptors, from the same declarations that validate them: for editors and checks."""

from __future__ import annotations

from typing import Any, Final

from roofline.fields import SHARED_SCHEMAS, required, schema_of

SCHEMA_ID: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema of a descriptor: the common keys, and for each op and phase the keys that go with it."""
    from roofline.models.phases import PHASES, Denoise
    from roofline.ops import OPS

    cases = [_op_case(kind) for kind in OPS]
    cases += [_phase_case(name, phase) for name, phase in PHASES.items()]
    cases.append(_diffusion_case(Denoise))
    return {
        "$schema": SCHEMA_ID,
        "title": "roofline workload descriptor",
        "description": "One operation (op), or a model and what is run of it (model).",
        "type": "object",
        "oneOf": [{"required": ["op"]}, {"required": ["model"]}],
        "properties": {
            "op": {"description": "kind of operation", "enum": list(OPS)},
            "phase": {"description": "what is run of a decoder", "enum": list(PHASES)},
            **_common(),
        },
        "allOf": cases,
        "$defs": {**SHARED_SCHEMAS, "precision": _precision(), "model": _model()},
    }


def _common() -> dict[str, Any]:
    from roofline.workload.descriptor import COMMON, LONGEST_NAME

    shapes: dict[str, dict[str, Any]] = {key: {"type": ["string", "null"]} for key in COMMON}
    shapes["name"] |= {"maxLength": LONGEST_NAME, "pattern": "^[^/]*$"}
    return {key: {**shapes[key], "description": doc} for key, doc in COMMON.items()}


def _op_case(kind: str) -> dict[str, Any]:
    from roofline.ops import OPS

    op = OPS[kind]
    about = {"op": {"const": kind, "description": op.about}}
    return _case({"required": ["op"], "properties": {"op": {"const": kind}}}, op, about)


def _phase_case(name: str, phase: type) -> dict[str, Any]:
    about = {**_model_keys(), "phase": {"const": name, "description": str(phase.__doc__).strip()}}
    return _case({"required": ["model", "phase"], "properties": {"phase": {"const": name}}}, phase, about)


def _diffusion_case(phase: type) -> dict[str, Any]:
    """A model without a phase is a diffusion model."""
    return _case({"required": ["model"], "not": {"required": ["phase"]}}, phase, _model_keys())


def _case(condition: dict[str, Any], declaring: type, more: dict[str, Any]) -> dict[str, Any]:
    properties = {**more, **_common(), **schema_of(declaring)}
    then = {"properties": properties, "required": list(required(declaring)), "additionalProperties": False}
    return {"if": condition, "then": then}


def _model_keys() -> dict[str, Any]:
    from roofline.models import FUSIONS
    from roofline.workload.models import MODEL_KEYS

    shapes: dict[str, dict[str, Any]] = {
        "model": {"$ref": "#/$defs/model"},
        "part": {"type": ["string", "null"]},
        "precision": {"$ref": "#/$defs/precision"},
        "fusion": {"enum": list(FUSIONS), "default": FUSIONS[0]},
    }
    return {key: {"description": doc, **shapes[key]} for key, doc in MODEL_KEYS.items()}


def _precision() -> dict[str, Any]:
    from roofline.models import Precision

    mapping = {
        "type": "object",
        "properties": schema_of(Precision),
        "required": list(required(Precision)),
        "additionalProperties": False,
    }
    return {"anyOf": [{"$ref": "#/$defs/storage"}, mapping, {"type": "null"}]}


def _model() -> dict[str, Any]:
    """A name or path, or a description written out: of a decoder, or of a diffusion transformer."""
    from roofline.models.config import KIND
    from roofline.models.decoder_config import CONFIG_KEYS, DECODERS
    from roofline.models.diffusion_config import DiffusionConfig

    decoder = {
        "type": "object",
        "properties": {key: {} for key in CONFIG_KEYS} | {"model_type": {"enum": list(DECODERS)}},
        "required": ["model_type"],
        "additionalProperties": False,
    }
    diffusion = {
        "type": "object",
        "properties": {"kind": {"const": KIND}, **schema_of(DiffusionConfig)},
        "required": ["kind", *required(DiffusionConfig)],
        "additionalProperties": False,
    }
    published = {"type": "object", "required": ["_class_name"]}
    return {"anyOf": [{"type": "string"}, decoder, diffusion, published]}

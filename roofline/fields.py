"""Declared fields read from plain YAML data, and described as JSON schema.

A class whose fields carry ``FieldInfo`` (an op, a model's description, a phase) says in one place what each field is;
this module turns a mapping into the arguments of such a class, and the same declaration into a schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Final, Literal, Protocol, TypeAlias

from roofline.dtypes import COMPUTE_DTYPES, DTYPES, STORAGE_DTYPES
from roofline.errors import RooflineError, nearest
from roofline.ops.base import FieldInfo
from roofline.quantities import parse

LARGEST: Final = 2**62
"""No size may be larger: products of a few of them stay far from anything that a float can hold."""

Loc: TypeAlias = tuple[str | int, ...]


class Where(Protocol):
    """Whatever can point an error at a key: a ``Document``, or part of one."""

    def error(
        self,
        loc: Sequence[str | int],
        message: str,
        *,
        code: str,
        of: Literal["key", "value"] = "value",
        suggestions: Iterable[str] = (),
    ) -> RooflineError:
        """An error at ``loc``."""


class Nowhere:
    """Errors about data that no file holds: they name only the key."""

    def error(
        self,
        loc: Sequence[str | int],
        message: str,
        *,
        code: str,
        of: Literal["key", "value"] = "value",
        suggestions: Iterable[str] = (),
    ) -> RooflineError:
        """An error that knows its key and no place."""
        return RooflineError(message, code=code, key=".".join(map(str, loc)) or None, suggestions=suggestions)


class Within:
    """The part of a place below ``prefix``."""

    def __init__(self, where: Where, *prefix: str | int) -> None:
        self._where, self._prefix = where, prefix

    def error(
        self,
        loc: Sequence[str | int],
        message: str,
        *,
        code: str,
        of: Literal["key", "value"] = "value",
        suggestions: Iterable[str] = (),
    ) -> RooflineError:
        """An error at ``loc`` below the prefix."""
        return self._where.error((*self._prefix, *loc), message, code=code, of=of, suggestions=suggestions)


def declared(cls: type) -> dict[str, FieldInfo]:
    """Name and meaning of each declared field of a dataclass, in order."""
    return {item.name: item.metadata["info"] for item in fields(cls) if "info" in item.metadata}


def required(cls: type) -> tuple[str, ...]:
    """The declared fields that have no default."""
    return tuple(item.name for item in fields(cls) if "info" in item.metadata and item.default is MISSING)


def build(cls: type[Any], data: Mapping[str, Any], where: Where, *, of: str = "", also: Iterable[str] = ()) -> Any:
    """An instance of ``cls`` from a mapping that holds its fields and nothing else.

    For messages ``of`` names what is read (``op: linear``) and ``also`` are further keys that are allowed beside its
    fields. Raises ``RooflineError``: ``unknown-key`` (with all that
    is allowed and the nearest), ``missing-key``, ``bad-value``, ``out-of-range``, ``unknown-dtype``, and whatever the
    instance's own ``check()`` refuses, each at its place.
    """
    infos = declared(cls)
    for key in data:
        if key not in infos:
            raise unknown_key(where, key, (*infos, *also), of)
    for key in required(cls):
        if key not in data:
            raise where.error((key,), f"missing key {key!r}{_for(of)} ({infos[key].doc})", code="missing-key")
    values = {key: read_value(key, infos[key], value, where) for key, value in data.items()}
    instance = cls(**values)
    if hasattr(instance, "check"):
        try:
            instance.check()
        except RooflineError as error:
            loc = _place_of(error, values, infos)
            raise where.error(loc, error.message, code=error.code, suggestions=error.suggestions) from None
    return instance


def _place_of(error: RooflineError, values: Mapping[str, Any], infos: Mapping[str, FieldInfo]) -> tuple[str, ...]:
    """The key that an instance's own check complains of; where a dtype needs a key that is missing, the dtype's."""
    if error.code == "compute-needed" and error.key not in values:
        stored = (key for key, value in values.items() if infos[key].kind == "storage" and value is not None)
        return next(((key,) for key in stored if DTYPES[values[key]].native is None), ())
    return (error.key,) if error.key else ()


def unknown_key(where: Where, key: str, allowed: Iterable[str], of: str = "") -> RooflineError:
    """The error for a key that nothing reads."""
    known = sorted(allowed)
    message = f"unknown key {key!r}{_for(of)}: allowed are {', '.join(known)}"
    return where.error((key,), message, code="unknown-key", of="key", suggestions=nearest(key, known))


def _for(of: str) -> str:
    return f" for {of}" if of else ""


def read_value(key: str, info: FieldInfo, value: Any, where: Where) -> Any:
    """One field's value, of the type that its declaration says; null only where the field is optional."""
    if value is None and info.optional:
        return None
    if info.kind == "size":
        return read_size(key, value, where, info.minimum)
    if info.kind == "flag":
        if not isinstance(value, bool):
            raise where.error((key,), f"{key} must be true or false, not {shown(value)}", code="bad-value")
        return value
    if not isinstance(value, str) or value not in info.choices:
        dtype = info.kind in ("storage", "compute")
        raise where.error(
            (key,),
            f"{key} must be one of {', '.join(info.choices)}, not {shown(value)}",
            code="unknown-dtype" if dtype else "bad-value",
            suggestions=_near(value, info.choices) if isinstance(value, str) else (),
        )
    return value


def _near(value: str, choices: Sequence[str]) -> tuple[str, ...]:
    """The choice that torch calls so (``bfloat16``), else those that look alike."""
    word = value.removeprefix("torch.")
    by_torch = [name for name in choices if name in DTYPES and DTYPES[name].torch_name == word]
    return tuple(by_torch[:1]) or nearest(value, choices)


def read_size(key: str, value: Any, where: Where, minimum: int = 1) -> int:
    """A size: a whole number of at least ``minimum``, also written as ``8k`` or ``1e6``."""
    negative = isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0
    if negative:
        raise where.error((key,), f"{key} must be at least {minimum}, not {shown(value)}", code="out-of-range")
    try:
        number = parse(value, "count")
    except RooflineError as error:
        raise where.error((key,), f"{key}: {error.message}", code="bad-value", suggestions=error.suggestions) from None
    if number < minimum:
        raise where.error((key,), f"{key} must be at least {minimum}, not {shown(value)}", code="out-of-range")
    if number > LARGEST:
        raise where.error((key,), f"{key} must be at most 2^62, not {shown(value)}", code="out-of-range")
    return number


def shown(value: Any) -> str:
    """A value as it may stand in a message: short, and as YAML writes it."""
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# ---------------------------------------------------------------- JSON schema


def schema_of(cls: type) -> dict[str, dict[str, Any]]:
    """The JSON schema of each declared field; it refers to ``SHARED_SCHEMAS`` under ``#/$defs``."""
    defaults = {item.name: item.default for item in fields(cls)}
    return {name: _field_schema(info, defaults[name]) for name, info in declared(cls).items()}


def _field_schema(info: FieldInfo, default: Any) -> dict[str, Any]:
    schema = _type_schema(info)
    if info.optional:
        schema = {"anyOf": [schema, {"type": "null"}]}
    schema = {"description": info.doc, **schema}
    if default is not MISSING and default is not None:
        schema["default"] = default
    return schema


def _type_schema(info: FieldInfo) -> dict[str, Any]:
    if info.kind == "size":
        return {"$ref": f"#/$defs/{'size' if info.minimum else 'count'}"}
    if info.kind == "flag":
        return {"type": "boolean"}
    if info.choices in (STORAGE_DTYPES, COMPUTE_DTYPES):
        return {"$ref": f"#/$defs/{'storage' if info.choices == STORAGE_DTYPES else 'compute'}"}
    return {"enum": list(info.choices)}


def _size_schema(least: int) -> dict[str, Any]:
    number = r"((0|[1-9][0-9]*(_[0-9]+)*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,4})?"
    exa = r"([0-3](\.[0-9]*)?|4(\.0*)?)"  # up to 4Ei, which is 2^62
    return {
        "description": f"a whole number of at least {least}, also written as 8k, 1M or 4Ki",
        "anyOf": [
            {"type": "integer", "minimum": least, "maximum": LARGEST},
            {"type": "string", "pattern": f"^ *[+]?({number} *(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?|{exa} *Ei?) *$"},
        ],
    }


SHARED_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "size": _size_schema(1),
    "count": _size_schema(0),
    "storage": {"description": "a dtype that tensors are stored in", "enum": list(STORAGE_DTYPES)},
    "compute": {"description": "a dtype that a matrix engine computes in", "enum": list(COMPUTE_DTYPES)},
}
"""What ``schema_of`` refers to."""

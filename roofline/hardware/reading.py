"""Reading plain YAML data into frozen dataclasses whose fields say how they are read.

By hand, because importing pydantic takes as long as all the rest of ``roofline analyze``, and so that a check of a
file collects every fault with its place. The same declarations give the JSON schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, TypeAlias

from roofline.errors import RooflineError, nearest
from roofline.quantities import Dimension, parse

Loc: TypeAlias = tuple[str | int, ...]
Schema: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of a file and where it is; ``of`` says whether the key or its value is at fault."""

    loc: Loc
    message: str
    code: str
    severity: Literal["error", "warning"] = "error"
    of: Literal["key", "value"] = "value"
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """How a value is read (faults are added to the list, the result is then of no use), and its JSON schema."""

    read: Callable[[Any, Loc, list[Problem]], Any]
    schema: Schema


def declare(kind: Kind, doc: str, default: Any = MISSING) -> Any:
    """A field that is read as ``kind``; one without a default must be there; ``default=dict`` is an empty one."""
    metadata = {"kind": kind, "doc": doc}
    if default is dict:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


# ---------------------------------------------------------------- values


def _value(read: Callable[[Any], Any], schema: Schema) -> Kind:
    """A kind whose reader raises ``RooflineError``."""

    def collect(value: Any, loc: Loc, faults: list[Problem]) -> Any:
        try:
            return read(value)
        except RooflineError as error:
            faults.append(_fault(loc, error))
            return None

    return Kind(collect, schema)


def _fault(loc: Loc, error: RooflineError) -> Problem:
    """The fault at a place, its message beginning with the key."""
    key = ".".join(map(str, loc if loc and isinstance(loc[-1], int) else loc[-1:])) or "the file"
    message = f"{key} {error.message}" if error.code == "bad-value" else f"{key}: {error.message}"
    return Problem(loc, message, error.code, suggestions=error.suggestions)


def _refuse(value: Any, must: str, choices: Iterable[str] = ()) -> RooflineError:
    shown = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else repr(value)[:60]
    near = nearest(value, choices) if isinstance(value, str) else ()
    return RooflineError(f"must be {must}, not {shown}", code="bad-value", suggestions=near)


def quantity(dimension: Dimension, example: str) -> Kind:
    """A number with a unit, more than 0, in base units."""

    def read(value: Any) -> int | float:
        number = parse(value, dimension)
        if not number:
            raise RooflineError(f"{value!r} is nothing: write it like {example}", code="bad-quantity")
        return number

    return _value(read, {"type": ["string", "number"], "examples": [example]})


LARGEST_COUNT = 10**9


def count(least: int = 1) -> Kind:
    """A whole number of at least ``least``, and at most a thousand million."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_COUNT:
            raise _refuse(value, f"a whole number from {least} to {LARGEST_COUNT:,}")
        return value

    return _value(read, {"type": "integer", "minimum": least, "maximum": LARGEST_COUNT})


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _refuse(value, "text")
    return value


TEXT = _value(_text, {"type": "string", "minLength": 1})


def one_of(*choices: str) -> Kind:
    """One of a few words."""

    def read(value: Any) -> str:
        if value not in choices or not isinstance(value, str):
            raise _refuse(value, f"one of {', '.join(choices)}" if len(choices) > 1 else choices[0], choices)
        return value

    return _value(read, {"enum": list(choices)})


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise _refuse(value, "a list of text")
    return tuple(_text(item) for item in value)


_TEXT_LIST: Schema = {"type": "array", "items": TEXT.schema, "minItems": 1}

TEXTS = _value(_texts, _TEXT_LIST)

TEXT_OR_TEXTS = _value(
    lambda value: (_text(value),) if isinstance(value, str) else _texts(value), {"anyOf": [TEXT.schema, _TEXT_LIST]}
)


def _text_mapping(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _refuse(value, "a mapping of names to text")
    return {key: _text(text) for key, text in value.items()}


TEXT_MAPPING = _value(_text_mapping, {"type": "object", "additionalProperties": TEXT.schema})


# ---------------------------------------------------------------- parts


def part(cls: type[Any]) -> Kind:
    """A mapping that holds the declared fields of ``cls``."""
    return Kind(lambda value, loc, faults: read_part(cls, value, loc, faults), schema_of(cls))


def parts(cls: type[Any]) -> Kind:
    """A list of at least one such mapping."""

    def read(value: Any, loc: Loc, faults: list[Problem]) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            faults.append(_fault(loc, _refuse(value, "a list of mappings")))
            return ()
        return tuple(read_part(cls, item, (*loc, i), faults) for i, item in enumerate(value))

    return Kind(read, {"type": "array", "items": schema_of(cls), "minItems": 1})


def members(cls: type[Any], read_key: Callable[[str], Mapping[str, Any]] = lambda _: {}) -> Kind:
    """A mapping from at least one name to such a mapping; ``read_key`` turns a name into further fields of ``cls``.

    ``read_key`` raises ``RooflineError`` for a name that cannot be.
    """

    def read(value: Any, loc: Loc, faults: list[Problem]) -> dict[str, Any]:
        if not isinstance(value, dict) or not value:
            faults.append(_fault(loc, _refuse(value, "a mapping of names to mappings")))
            return {}
        return {name: read_one(name, item, (*loc, name), faults) for name, item in value.items()}

    def read_one(name: str, item: Any, loc: Loc, faults: list[Problem]) -> Any:
        try:
            further = read_key(name)
        except RooflineError as error:
            faults.append(Problem(loc, error.message, error.code, of="key", suggestions=error.suggestions))
            return None
        return read_part(cls, item, loc, faults, further)

    return Kind(read, {"type": "object", "additionalProperties": schema_of(cls), "minProperties": 1})


def declared(cls: type[Any]) -> dict[str, Kind]:
    """The fields of ``cls`` that are read from a file, in order."""
    return {item.name: item.metadata["kind"] for item in fields(cls) if "kind" in item.metadata}


def _required(cls: type[Any]) -> list[str]:
    read = (item for item in fields(cls) if "kind" in item.metadata)
    return [item.name for item in read if item.default is MISSING and item.default_factory is MISSING]


def read_part(
    cls: type[Any],
    data: Any,
    loc: Loc,
    faults: list[Problem],
    further: Mapping[str, Any] | None = None,
    kinds: Mapping[str, Kind] | None = None,
) -> Any:
    """An instance of ``cls`` from a mapping that holds its declared fields and nothing else.

    ``further`` are the values of undeclared fields; ``kinds`` stand in for the declared ones. Where something is
    wrong, the faults are added to the list and the result is None.
    """
    before, kinds = len(faults), kinds or declared(cls)
    where = f" in {'.'.join(map(str, loc))}" if loc else ""
    if not isinstance(data, dict):
        faults.append(_fault(loc, _refuse(data, "a mapping of keys to values")))
        return None
    for key in [key for key in data if key not in kinds]:
        message = f"unknown key {key!r}{where}: allowed are {', '.join(kinds)}"
        near = nearest(str(key), kinds)
        faults.append(Problem((*loc, key), message, "unknown-key", of="key", suggestions=near))
    for key in _required(cls):
        if data.get(key) is None:
            faults.append(Problem((*loc, key), f"missing key {key!r}{where}", "missing-key"))
    given = {key: data[key] for key in kinds if data.get(key) is not None}
    values = {key: kinds[key].read(value, (*loc, key), faults) for key, value in given.items()}
    return cls(**values, **(further or {})) if len(faults) == before else None


# ---------------------------------------------------------------- JSON schema


def schema_of(cls: type[Any]) -> Schema:
    """The JSON schema of a mapping with the declared fields of ``cls``."""
    docs = {item.name: item.metadata["doc"] for item in fields(cls) if "doc" in item.metadata}
    properties = {name: {"description": docs[name], **kind.schema} for name, kind in declared(cls).items()}
    return {"type": "object", "properties": properties, "required": _required(cls), "additionalProperties": False}

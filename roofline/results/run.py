"""The record of a run, ``roofline/run/1``: what was measured where, and the verdict on every op.

The dataclasses are the schema: writing, reading and the JSON schema all follow from their fields. Seconds, bytes and
operations per second; no host names and no paths.
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, Self, Union, cast, get_args, get_origin, get_type_hints

from roofline.errors import RooflineError, nearest
from roofline.ops.base import Op, op_fields
from roofline.results.files import read_record

SCHEMA: Final = "roofline/run/1"

Verdict = Literal[
    "confirmed",
    "contradicted",
    "near-ridge",
    "overhead-bound",
    "cache-resident",
    "inefficient",
    "above-roof",
    "surrogate",
    "errored",
    "skipped",
]
VERDICTS: Final[tuple[str, ...]] = get_args(Verdict)

FAILED: Final = ("contradicted", "above-roof", "errored")
"""Verdicts that make a validation fail."""

UNDECIDED: Final = ("near-ridge", "overhead-bound", "cache-resident", "surrogate", "skipped")
"""Verdicts that judge nothing."""

Bound = Literal["compute", "memory", "communication", "overhead"]


@dataclass(frozen=True, slots=True)
class Environment:
    """Where it ran. ``cache_bytes`` is the last-level cache as reported, ``believed_cache_bytes`` as measured."""

    device: str
    torch: str
    driver: str | None
    python: str
    roofline: str
    kind: str = "cpu"
    threads: int | None = None
    memory_bytes: int | None = None
    cache_bytes: int | None = None
    believed_cache_bytes: int | None = None
    started: str | None = None
    seed: int = 0
    budget_s: float | None = None
    throttled: bool | None = None


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A measured ceiling: typical value, slowest and fastest seen, and which kernel reached it when (UTC date)."""

    value: float
    low: float
    high: float
    unit: str = ""
    kernel: str = ""
    measured: str = ""


@dataclass(frozen=True, slots=True)
class Process:
    """What one process saw: the median with its 95 % interval over all samples; ``disturbed`` counts marked ones."""

    median_s: float
    low_s: float
    high_s: float
    samples_s: tuple[float, ...]
    disturbed: int = 0
    calls_per_sample: int = 1


@dataclass(frozen=True, slots=True)
class Predicted:
    """The prediction under the ceilings measured around the op; ``times_s`` is its time against each of them."""

    floor_s: float | None
    bound: Bound | None
    limiter: str | None
    times_s: Mapping[str, float] = field(default_factory=dict)
    ceilings: Mapping[str, float] = field(default_factory=dict)
    near_ridge: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Elasticity:
    """How time answered to size over ``points`` shapes: per FLOP and per byte where they part, else one slope."""

    points: int
    correlation: float | None = None
    flops: Estimate | None = None
    bytes: Estimate | None = None
    slope: Estimate | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What the times say. ``time_s`` stands for the op: the median of its undisturbed samples."""

    processes: tuple[Process, ...] = ()
    bound: Bound | None = None
    time_s: float | None = None
    cold: bool | None = None
    copies: int | None = None
    elasticity: Elasticity | None = None


@dataclass(frozen=True, slots=True)
class OpRun:
    """One distinct op of a workload: prediction, times, verdict. ``count`` is how often the workload runs it.

    ``roof_fraction`` is floor over time; ``mfu`` and ``mbu`` are the op's FLOPs per second over the peak of its
    engine and its bytes per second over the bandwidth for its mix of reads and writes.
    """

    id: str
    workload: str
    path: str
    kernel: str | None
    predicted: Predicted
    measured: Measured
    roof_fraction: float | None
    verdict: Verdict
    reason: str
    stop_reason: str | None
    kind: str = ""
    count: int = 1
    also: tuple[str, ...] = ()
    """Other paths where the same op runs."""
    flops: float | None = None
    bytes: float | None = None
    mfu: float | None = None
    mbu: float | None = None
    surrogate: str | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run: ``complete`` is false where it was interrupted before every op was measured."""

    environment: Environment
    ceilings: Mapping[str, Ceiling]
    ops: tuple[OpRun, ...]
    complete: bool
    schema: str = SCHEMA

    def to_json(self) -> dict[str, Any]:
        """The record as plain data, the schema first."""
        return {"schema": self.schema, **{key: value for key, value in _plain(self).items() if key != "schema"}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], file: str | None = None) -> Self:
        """Read a record; raises ``RooflineError`` that names the key where it is no such record."""
        schema = data.get("schema")
        if schema != SCHEMA:
            raise RooflineError(
                f"expected a record of schema {SCHEMA}, not {schema!r}", code="bad-record", file=file, key="schema"
            )
        return cast(Self, _read(cls, data, "", file))

    @classmethod
    def load(cls, path: Path) -> Self:
        """The record in a file."""
        return cls.from_json(read_record(path), str(path))

    @property
    def exit_code(self) -> int:
        """0 fine, 1 a check failed, 3 nothing was judged."""
        if any(op.verdict in FAILED for op in self.ops):
            return 1
        return 3 if all(op.verdict in UNDECIDED for op in self.ops) else 0


def op_id(op: Op, kernel: str | None) -> str:
    """A stable name for an op with these sizes and this structure, run by this kernel."""
    described = {"op": op.kind, "kernel": kernel, **{name: getattr(op, name) for name in op_fields(type(op))}}
    text = json.dumps(described, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def json_schema() -> dict[str, Any]:
    """JSON schema of the record."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of roofline validate",
        **_schema_of(RunRecord),
    }


# Dataclasses to and from plain data ----------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _read(hint: Any, data: Any, key: str, file: str | None) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        if data is None and type(None) in arguments:
            return None
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _read(inner, data, key, file)
    if is_dataclass(hint):
        return _read_object(cast(type, hint), data, key, file)
    if origin is tuple:
        items = _expect(data, Sequence, "a list", key, file)
        return tuple(_read(arguments[0], item, f"{key}.{index}", file) for index, item in enumerate(items))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        items = _expect(data, Mapping, "an object", key, file)
        return {str(name): _read(arguments[1], item, f"{key}.{name}", file) for name, item in items.items()}
    if origin is Literal:
        if data not in arguments:
            raise RooflineError(
                f"must be one of {', '.join(arguments)}, not {data!r}",
                code="bad-record",
                file=file,
                key=key,
                suggestions=nearest(str(data), arguments),
            )
        return data
    return _read_scalar(hint, data, key, file)


def _read_object(cls: type, data: Any, key: str, file: str | None) -> Any:
    given = _expect(data, Mapping, "an object", key, file)
    values = {}
    for item in fields(cls):
        place = f"{key}.{item.name}" if key else item.name
        if item.name in given:
            values[item.name] = _read(_hints(cls)[item.name], given[item.name], place, file)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise RooflineError(f"the record has no {place}", code="bad-record", file=file, key=place)
    return cls(**values)


_SCALARS: Final[dict[Any, tuple[tuple[type, ...], str]]] = {
    float: ((int, float), "a number"),
    int: ((int,), "an integer"),
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
}


def _read_scalar(hint: Any, data: Any, key: str, file: str | None) -> Any:
    kinds, words = _SCALARS[hint]
    if not isinstance(data, kinds) or (isinstance(data, bool) and hint is not bool):
        raise RooflineError(f"{key} must be {words}, not {_short(data)}", code="bad-record", file=file, key=key)
    return hint(data)


def _expect(data: Any, kind: type, words: str, key: str, file: str | None) -> Any:
    if not isinstance(data, kind) or isinstance(data, str):
        raise RooflineError(
            f"{key or 'the record'} must be {words}, not {_short(data)}", code="bad-record", file=file, key=key or None
        )
    return data


def _short(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _schema_of(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return {"anyOf": [_schema_of(inner), {"type": "null"}]}
    if is_dataclass(hint):
        cls = cast(type, hint)
        properties = {item.name: _schema_of(_hints(cls)[item.name]) for item in fields(cls)}
        needed = [item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING]
        if cls is RunRecord:
            properties["schema"] = {"const": SCHEMA}
            needed.insert(0, "schema")
        return {"type": "object", "properties": properties, "required": needed}
    if origin is tuple:
        return {"type": "array", "items": _schema_of(arguments[0])}
    if origin is Literal:
        return {"enum": list(arguments)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema_of(arguments[1])}
    names = {float: "number", int: "integer", str: "string", bool: "boolean"}
    return {"type": names[hint]}

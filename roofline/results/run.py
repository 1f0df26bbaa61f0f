"""The record of a run, ``roofline/run/1``: what was measured where, and the verdict on every op.

The dataclasses are the schema: writing, reading and the JSON schema all follow from their fields. Seconds, bytes and
operations per second; no host names and no paths.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast, get_args

from roofline.errors import RooflineError, nearest
from roofline.ops.base import Op, op_fields
from roofline.results.files import read_record

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

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
    schema: Literal["roofline/run/1"] = SCHEMA

    def to_json(self) -> dict[str, Any]:
        """The record as plain data, the schema first."""
        data = asdict(self)
        return {"schema": data.pop("schema"), **data}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], file: str | None = None) -> Self:
        """Read a record; raises ``RooflineError`` that names the key where it is no such record."""
        schema = data.get("schema")
        if schema != SCHEMA:
            raise RooflineError(
                f"expected a record of schema {SCHEMA}, not {schema!r}", code="bad-record", file=file, key="schema"
            )
        from pydantic import ValidationError

        try:
            return cast(Self, _adapter().validate_json(json.dumps(data), strict=True))
        except ValidationError as error:
            raise _fault(error.errors(include_url=False)[0], file) from None

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
    schema = _adapter().json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "A run of roofline validate"}


@cache
def _adapter() -> TypeAdapter[RunRecord]:
    """Reads and describes the dataclasses; pydantic loads only where a record is read or described."""
    from pydantic import TypeAdapter

    return TypeAdapter(RunRecord)


def _fault(fault: ErrorDetails, file: str | None) -> RooflineError:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "missing":
        message = f"the record has no {key}"
    else:
        message = f"{key or 'the record'} {fault['msg'].replace('Input should', 'must', 1)}"
    known = VERDICTS if key.endswith("verdict") else ()
    near = nearest(str(fault["input"]), known)
    return RooflineError(message, code="bad-record", file=file, key=key or None, suggestions=near)

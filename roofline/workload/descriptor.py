"""``load``: a workload descriptor, by name or path, read into a ``Workload``.

A descriptor is one operation, ``op: linear`` with the op's own fields, or a model and what is run of it:
``model: llama-3.1-8b`` with ``phase: prefill | decode``, or a diffusion transformer with ``steps``. ``part`` keeps one
node of a model's tree: a block is described by the model that it belongs to, so its sizes are written down nowhere
else.

Validation is by hand from the declarations of the fields: pydantic would need a tenth of a second only to build the
classes of all ops.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from roofline import catalog
from roofline.errors import RooflineError, nearest
from roofline.fields import build, shown, unknown_key
from roofline.ops import OPS, Node
from roofline.ops.base import FieldInfo
from roofline.ops.tree import prune
from roofline.workload.models import read_model_run
from roofline.workload.runs import DecoderRun, DiffusionRun, OpRun
from roofline.workload.source import Source

COMMON: Final = {
    "name": "name in tables and records; by default the file's",
    "description": "a line or two for people",
    "hardware": "device to predict for where none is asked for",
}
"""Keys that every descriptor may have."""


LONGEST_NAME: Final = 80


@dataclass(frozen=True, slots=True)
class Workload:
    """A descriptor that was read: what it is called, where it came from, what it runs.

    ``source`` is the file as a user would name it. ``description`` is the descriptor's own; where it has none, or where
    an override may have made it untrue, it says what runs. ``hardware`` is the device that the descriptor asks for: a
    name, or a path from the working directory.
    ``subject`` is what runs; ``notes`` are things that a reader of results should know. ``spec`` is the descriptor as
    plain data, overrides included.
    """

    name: str
    source: str
    description: str
    hardware: str | None
    subject: OpRun | DecoderRun | DiffusionRun
    spec: Mapping[str, Any] = field(default_factory=dict, compare=False)
    ops: str | None = None
    """Glob of the ops to keep; None: all."""

    @property
    def tree(self) -> Node:
        """Its ops, grouped as the model is; the root has the name of the workload.

        Raises ``RooflineError`` where ``ops`` matches none.
        """
        root = replace(self.subject.tree(), name=self.name)
        return root if self.ops is None else prune(root, self.ops)

    @property
    def whole(self) -> bool:
        """Whether all of it is kept: neither a part of a model nor ops selected by a glob."""
        return self.ops is None and getattr(self.subject, "part", None) is None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its numbers should know."""
        return self.subject.notes

    @property
    def new_tokens(self) -> int | None:
        """Tokens that one run of it generates, where it is a step of a decoder."""
        return self.subject.new_tokens if self.whole else None

    @property
    def sizes(self) -> dict[str, FieldInfo]:
        """The sizes that can be changed with ``with_`` (batch, context, ...), by key of the descriptor."""
        return self.subject.sizes

    def get(self, key: str) -> Any:
        """The value of one of its ``sizes``; None where an optional one is not set."""
        return self.subject.get(key)

    def with_(self, **sizes: Any) -> Workload:
        """The same workload with some of its ``sizes`` changed, unchecked: ints, arrays or symbols."""
        return replace(self, subject=self.subject.with_(**sizes))


def load(text: str, overrides: Sequence[str] = (), *, ops: str | None = None) -> Workload:
    """The workload of a descriptor's path or of its name in the catalogue; ``ops`` is a glob of the ops to keep.

    ``overrides`` are texts ``key=value`` (``precision.kv=fp8``), the value read as YAML reads a plain scalar. Raises
    ``RooflineError`` with file, line and key, or with the override, for whatever is wrong.
    """
    path = catalog.resolve("workloads", text)
    source = Source(catalog.read_yaml(path), overrides)
    work = from_source(source, name=path.stem, shown_as=_shown_path(path), base=path.parent)
    return replace(work, ops=ops)


def from_document(document: catalog.Document, *, name: str = "workload", base: Path | None = None) -> Workload:
    """The workload of a document that is already read; relative paths in it start at ``base``."""
    return from_source(Source(document), name=name, shown_as=document.name, base=base)


def from_source(source: Source, *, name: str, shown_as: str, base: Path | None) -> Workload:
    """The workload of a descriptor's data."""
    data = source.data
    given, described = _name(source), _description(source)
    rest = {key: value for key, value in data.items() if key not in COMMON}
    if "op" in rest and "model" in rest:
        loc = ("op",) if source.overridden("op") else ("model",)
        message = "a descriptor has either `op` or `model`, not both"
        if source.overridden(*loc):
            message += f": the override does not go with the keys of {source.document.name}"
        raise source.error(loc, message, code="bad-combination")
    subject: OpRun | DecoderRun | DiffusionRun
    if "op" in rest:
        subject = _read_op(rest, source)
    elif "model" in rest:
        subject = read_model_run(rest, source, base, tuple(COMMON))
    else:
        raise _no_subject(rest, source)
    told = described if source.changed <= set(COMMON) else None
    return Workload(
        name=given or name,
        source=shown_as,
        description=told or subject.summary,
        hardware=_hardware(source, base),
        subject=subject,
        spec=data,
    )


def _no_subject(rest: Mapping[str, Any], source: Source) -> RooflineError:
    for key in rest:
        near = nearest(key, ("op", "model"))
        if near:
            return unknown_key(source, key, ("op", "model", *COMMON))
    return source.error((), "a descriptor needs `op: KIND` or `model: NAME`", code="missing-key")


def _text(source: Source, key: str) -> str | None:
    value = source.data.get(key)
    if value is not None and not isinstance(value, str):
        raise source.error((key,), f"{key} must be text, not {shown(value)}", code="bad-value")
    return value


def _name(source: Source) -> str | None:
    """The name, which stands in tables, in records and perhaps in the names of files."""
    name = _text(source, "name")
    if name and (not name.isprintable() or "/" in name or len(name) > LONGEST_NAME):
        message = f"name must be one line of at most {LONGEST_NAME} printable characters without /, not {shown(name)}"
        raise source.error(("name",), message, code="bad-value")
    return name


def _description(source: Source) -> str | None:
    """The description on one line."""
    told = " ".join((_text(source, "description") or "").split())
    if not told.isprintable():
        raise source.error(("description",), "description must be printable text", code="bad-value")
    return told or None


def _hardware(source: Source, base: Path | None) -> str | None:
    """The device's name, or the path to its file: beside the descriptor first, then from the working directory."""
    text = _text(source, "hardware")
    if text is None:
        return None
    starts = [base] if base is not None and not source.overridden("hardware") else []
    for start in (*starts, Path()):
        try:
            path = catalog.resolve("hardware", text, base=start)
        except RooflineError as error:
            if error.code == "missing-file" and start != Path():
                continue
            named = f"{error.file}: " if error.file else ""
            message = f"hardware: {named}{error.message}"
            raise source.error(("hardware",), message, code=error.code, suggestions=error.suggestions) from None
        if path != start / text:
            return text
        return f".{os.sep}{path}" if path.name == str(path) else str(path)  # a bare word would be a name
    return text


def _read_op(rest: Mapping[str, Any], source: Source) -> OpRun:
    kind = rest["op"]
    if not isinstance(kind, str) or kind not in OPS:
        raise source.error(
            ("op",),
            f"op must be one of {', '.join(OPS)}, not {shown(kind)}",
            code="unknown-op",
            suggestions=nearest(str(kind), OPS),
        )
    values = {key: value for key, value in rest.items() if key != "op"}
    with source.chosen_by("op"):
        op = build(OPS[kind], values, source, of=f"op: {kind}", also=(*COMMON, "op"))
    return OpRun(OPS[kind], {key: getattr(op, key) for key, value in values.items() if value is not None})


def _shown_path(path: Path) -> str:
    """A file of the catalogue as ``workloads/decode.yaml``; any other as the user wrote it."""
    for root in catalog.roots():
        if path.is_relative_to(root / "workloads"):
            return str(path.relative_to(root))
    return str(path)

"""YAML files as plain data that remembers where every key and value stood.

The file is read as a stream of parser events (libyaml's where PyYAML has it, else the pure-Python parser), and the
tree is built here, so that both give the same data. What makes YAML surprising is refused or left out: duplicate
keys, merge keys, anchors and aliases, tags, several documents; and of the implicit types only null, true and
false, integers and floats remain: ``yes``, ``4:30``, ``2026-01-01``, ``0x10``, ``010`` and ``.inf`` stay text.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias

from roofline.errors import RooflineError, nearest
from roofline.scalars import MAX_DEPTH, TOO_DEEP, UNPRINTABLE, Scalar, json_object, resolve_plain

MAX_BYTES: Final = 1 << 20

Place: TypeAlias = tuple[int, int]
"""A line and a column, both from 1."""


@dataclass(slots=True)
class _Node:
    """A value with its place; ``keys`` are the places of a mapping's keys."""

    place: Place
    value: Scalar | dict[str, _Node] | list[_Node]
    keys: dict[str, Place] = field(default_factory=dict)

    def child(self, part: str | int) -> _Node | None:
        if isinstance(self.value, dict):
            return self.value.get(part) if isinstance(part, str) else None
        if isinstance(self.value, list) and str(part).isdecimal() and int(part) < len(self.value):
            return self.value[int(part)]
        return None

    def plain(self) -> Any:
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


class Document:
    """One YAML file: ``data`` as plain dicts, lists and scalars, and the place of everything in it.

    ``name`` is the path as the user wrote it. ``data`` may be changed without touching the places. Without a ``root``
    it is ``data`` whose places are not known.
    """

    def __init__(self, name: str, root: _Node | None, data: dict[str, Any] | None = None) -> None:
        self.name = name
        self.data: dict[str, Any] = root.plain() if root else data or {}
        self._root = root

    def locate(self, loc: Sequence[str | int], *, of: Literal["key", "value"] = "value") -> Place:
        """Line and column, from 1, of the value at ``loc`` or of its key.

        A ``loc`` that the file does not hold gives the key of its nearest existing parent, and the start of the
        file's mapping where there is none.
        """
        if self._root is None:
            return 1, 1
        node, key_place, whole = self._root, self._root.place, True
        for part in loc:
            child = node.child(part)
            if child is None:
                whole = False
                break
            key_place = node.keys.get(str(part), child.place)
            node = child
        return node.place if whole and of == "value" else key_place

    def error(
        self,
        loc: Sequence[str | int],
        message: str,
        *,
        code: str,
        of: Literal["key", "value"] = "value",
        suggestions: Iterable[str] = (),
    ) -> RooflineError:
        """A ``RooflineError`` that points at ``loc``; its ``key`` is dotted (``layers.0.op``), or None for the root."""
        line, column = self.locate(loc, of=of) if self._root else (None, None)
        key = ".".join(str(part) for part in loc) or None
        return RooflineError(
            message, code=code, file=self.name, line=line, column=column, key=key, suggestions=suggestions
        )


def read_yaml(path: Path) -> Document:
    """Read one YAML (or JSON) file whose top level is a mapping.

    Raises ``RooflineError`` for whatever cannot be read: ``missing-file`` (with the nearest names in that
    directory), ``is-directory``, ``not-a-file`` (devices, pipes: never opened), ``no-permission``,
    ``unreadable``, ``too-large`` (over 1 MiB), and what ``parse_yaml`` refuses.
    """
    name = str(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise RooflineError("is a directory, not a YAML file", code="is-directory", file=name)
        if not stat.S_ISREG(status.st_mode):
            raise RooflineError("is a device or a pipe, not a YAML file", code="not-a-file", file=name)
        if status.st_size > MAX_BYTES:
            raise _too_large(name, status.st_size)
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)  # a file may grow, or (in /proc) not know its size
    except (FileNotFoundError, NotADirectoryError):
        near = near_files(path)
        raise RooflineError("no such file", code="missing-file", file=name, suggestions=near) from None
    except PermissionError:
        raise RooflineError("no permission to read this file", code="no-permission", file=name) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise RooflineError(f"cannot be read: {why}", code="unreadable", file=name) from None
    if len(content) > MAX_BYTES:
        raise _too_large(name, len(content))
    read = parse_json if path.suffix.lower() == ".json" else parse_yaml
    return read(_decoded(content, name), name)


def near_files(path: Path) -> tuple[str, ...]:
    """Paths of what lies beside a missing file and has a name that resembles its name, written as the user wrote it.

    The names are compared without their suffixes: ``x.json`` is not like ``run.json``. A file stands for a file; a
    folder, too, for a path without a suffix.
    """
    try:
        entries = [entry for entry in islice(path.parent.iterdir(), 10_000) if _may_stand_for(entry, path)]
    except (OSError, ValueError):
        return ()
    stems = [entry.stem for entry in entries]
    found = (str(entry) for stem in nearest(path.stem, stems, n=2) for entry in entries if entry.stem == stem)
    return tuple(islice(found, 2))


def _may_stand_for(entry: Path, path: Path) -> bool:
    if not path.suffix:
        return entry.is_dir() or entry.suffix in (".yaml", ".yml")
    yaml = (".yaml", ".yml")
    same = entry.suffix == path.suffix or (path.suffix in yaml and entry.suffix in yaml)
    return same and not entry.is_dir()


def _too_large(name: str, size: int) -> RooflineError:
    shown = f"{size / 2**20:,.1f} MiB" if size > 1.05 * MAX_BYTES else "over 1 MiB"
    return RooflineError(
        f"too large for a YAML file of this program: {shown}, the limit is 1 MiB", code="too-large", file=name
    )


def _decoded(content: bytes, name: str) -> str:
    if b"\0" in content:
        raise RooflineError("is a binary file, not YAML text", code="not-text", file=name)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        line, column = _place_in(before, len(before))
        raise RooflineError(
            f"is not UTF-8 text: byte 0x{content[error.start]:02x}",
            code="not-text", file=name, line=line, column=column,
        ) from None  # fmt: skip


def _place_in(text: str, index: int) -> Place:
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def parse_yaml(text: str, name: str) -> Document:
    """Read YAML text whose top level is a mapping; ``name`` is what errors call it.

    Raises ``RooflineError``, with line and column: ``not-text`` (control characters), ``yaml-syntax``,
    ``empty-file``, ``not-a-mapping``, ``several-documents``, ``duplicate-key``, ``bad-key`` (no text),
    ``merge-key``, ``yaml-alias`` (anchors too), ``yaml-tag``, ``too-deep``.
    """
    bad = UNPRINTABLE.search(text)
    if bad:
        line, column = _place_in(text, bad.start())
        raise RooflineError(
            f"is not text: control character U+{ord(bad[0]):04X}",
            code="not-text", file=name, line=line, column=column,
        )  # fmt: skip
    return Document(name, _Builder(name, _events(text, name)).document())


def parse_json(text: str, name: str) -> Document:
    """Read JSON text whose top level is an object, as ``parse_yaml`` reads YAML, which nearly all JSON is.

    What only JSON has (two escapes for one character, keys of any length, tabs) leaves the places unknown. Raises
    ``RooflineError`` as ``parse_yaml``, or ``json-syntax``.
    """
    try:
        return parse_yaml(text, name)
    except RooflineError as error:
        if error.code not in ("yaml-syntax", "not-text"):
            raise
        refusal = error
    if UNPRINTABLE.search(text):
        raise refusal
    return Document(name, None, json_object(text, name))


@dataclass(frozen=True, slots=True)
class _Event:
    """What the builder needs of a parser event, the same from both parsers."""

    kind: Literal["document", "mapping", "sequence", "scalar", "alias", "end", "other"]
    place: Place
    text: str = ""
    plain: bool = False
    anchor: str | None = None
    tag: str | None = None


def _events(text: str, name: str) -> Iterator[_Event]:
    """The parser's events, its complaints turned into ours."""
    import yaml  # 20 ms that a command without a file need not pay

    kinds: dict[type, Any] = {
        yaml.DocumentStartEvent: "document",
        yaml.MappingStartEvent: "mapping",
        yaml.SequenceStartEvent: "sequence",
        yaml.ScalarEvent: "scalar",
        yaml.AliasEvent: "alias",
        yaml.MappingEndEvent: "end",
        yaml.SequenceEndEvent: "end",
    }
    try:
        parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        while not isinstance(event := parser.get_event(), yaml.StreamEndEvent):
            kind = kinds.get(type(event), "other")
            value, plain = (event.value, event.implicit[0]) if kind == "scalar" else ("", False)
            place = event.start_mark.line + 1, event.start_mark.column + 1
            anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
            yield _Event(kind, place, value, plain, anchor, tag)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, name) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # chr() of an escape beyond Unicode
        raise RooflineError(f"YAML syntax: {error}", code="yaml-syntax", file=name) from None


def _syntax_error(error: Any, text: str, name: str) -> RooflineError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    rows = text.splitlines()
    row = rows[line - 1] if line <= len(rows) else ""
    message = ", ".join(part for part in (error.context, error.problem) if part)
    if row.lstrip(" ").startswith("\t") or row[column - 1 : column] == "\t":
        message = "a tab where YAML allows only spaces"
    if "nesting depth" in message:  # libyaml's own limit, met before the builder sees the first of them
        return RooflineError(TOO_DEEP, code="too-deep", file=name, line=line, column=column)
    return RooflineError(f"YAML syntax: {message}", code="yaml-syntax", file=name, line=line, column=column)


class _Builder:
    """Builds the tree from the events; ``path`` and its length say where it is, and how deep."""

    def __init__(self, name: str, events: Iterator[_Event]) -> None:
        self.name = name
        self.events = events
        self.path: list[str | int] = []

    def fail(self, event: _Event, message: str, code: str) -> NoReturn:
        line, column = event.place
        key = ".".join(str(part) for part in self.path) or None
        raise RooflineError(message, code=code, file=self.name, line=line, column=column, key=key)

    def document(self) -> _Node:
        """The root mapping of the only document."""
        root: _Node | None = None
        for event in self.events:
            if event.kind != "document":
                continue
            if root is not None:
                self.fail(event, "a second document in one file", "several-documents")
            root = self.root(next(self.events))
        if root is None:
            raise RooflineError("is empty", code="empty-file", file=self.name)
        return root

    def root(self, event: _Event) -> _Node:
        root = self.node(event)
        if root.value is None:
            raise RooflineError("is empty", code="empty-file", file=self.name)
        if not isinstance(root.value, dict):
            what = "a list" if isinstance(root.value, list) else "a single value"
            self.fail(event, f"{what} at the top, where `key: value` lines are needed", "not-a-mapping")
        return root

    def node(self, event: _Event) -> _Node:
        """The value that starts with ``event``."""
        if event.kind == "alias" or event.anchor is not None:
            written = f"{'*' if event.kind == 'alias' else '&'}{event.anchor}"
            self.fail(event, f"YAML anchors and aliases ({written}) are not allowed: write it out", "yaml-alias")
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.fail(event, f"YAML tags ({tag}) are not allowed: only plain values", "yaml-tag")
        if event.kind == "scalar":
            return _Node(event.place, self.scalar(event))
        if len(self.path) == MAX_DEPTH:
            self.path.clear()  # a key of 50 parts helps nobody
            self.fail(event, TOO_DEEP, "too-deep")
        return self.mapping(event) if event.kind == "mapping" else self.sequence(event)

    def sequence(self, start: _Event) -> _Node:
        items: list[_Node] = []
        while (event := next(self.events)).kind != "end":
            self.path.append(len(items))
            items.append(self.node(event))
            self.path.pop()
        return _Node(start.place, items)

    def mapping(self, start: _Event) -> _Node:
        children: dict[str, _Node] = {}
        node = _Node(start.place, children)
        while (event := next(self.events)).kind != "end":
            key = self.key(event, node.keys)
            node.keys[key] = event.place
            self.path.append(key)
            children[key] = self.node(next(self.events))
            self.path.pop()
        return node

    def key(self, event: _Event, seen: Mapping[str, Place]) -> str:
        """A key of a mapping: text, and not there before."""
        if event.kind in ("mapping", "sequence"):
            self.fail(event, "a key must be text, not a list or a mapping", "bad-key")
        key = self.node(event).value
        if key == "<<" and event.plain:
            self.fail(event, "YAML merge keys (<<) are not allowed: write the keys out", "merge-key")
        if not isinstance(key, str):
            fix = f'{event.text}: write "{event.text}"' if event.text else "nothing"
            self.fail(event, f"a key must be text, not {fix}", "bad-key")
        if key in seen:
            self.path.append(key)
            self.fail(event, f"key {key!r} is already there in line {seen[key][0]}", "duplicate-key")
        return key

    def scalar(self, event: _Event) -> Scalar:
        if event.plain:
            return resolve_plain(event.text)
        if bad := UNPRINTABLE.search(event.text):
            self.fail(event, f"text with a character U+{ord(bad[0]):04X} in it", "not-text")
        return event.text

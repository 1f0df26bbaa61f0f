"""Hardware files on disk: reading one, checking it, finding the catalogue's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from roofline import catalog
from roofline.documents import Document
from roofline.errors import RooflineError
from roofline.hardware.reading import Loc, Problem, read_part
from roofline.hardware.rules import problems
from roofline.hardware.spec import Hardware


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that ``lint`` found: an error keeps the file from loading, a warning does not."""

    severity: Literal["error", "warning"]
    message: str
    code: str
    line: int | None = None
    column: int | None = None
    key: str | None = None
    suggestions: tuple[str, ...] = ()


def load(text: str) -> Hardware:
    """The device that ``text`` names: a catalogue name, an alias, or a path to a hardware file.

    Raises ``RooflineError`` for an unknown name and for whatever ``load_file`` refuses.
    """
    return load_file(catalog.resolve("hardware", text))


def load_file(path: Path) -> Hardware:
    """Read and check one hardware file.

    Raises ``RooflineError``, with line and key, for the first error that ``lint`` would report; warnings pass.
    """
    document = catalog.read_yaml(path)
    hardware, found = _examine(document)
    for error, severity in found:
        if severity == "error":
            raise error
    assert hardware is not None  # None only beside an error
    return hardware


def lint(path: Path) -> list[Finding]:
    """All that is wrong with one hardware file, errors first; empty for a clean one.

    Also a file that cannot be read at all gives a finding, not an exception.
    """
    try:
        _, found = _examine(catalog.read_yaml(path))
    except RooflineError as error:
        found = [(error, "error")]
    findings = [
        Finding(severity, error.message, error.code, error.line, error.column, error.key, error.suggestions)
        for error, severity in found
    ]
    return sorted(findings, key=lambda finding: (finding.severity, finding.line or 0))


def catalogue() -> list[str]:
    """Canonical names of all devices that come with the program, sorted."""
    return catalog.names("hardware")


def by_device_name(name: str, memory_bytes: int) -> Hardware | None:
    """The device whose driver calls it exactly ``name`` and that has about this much memory, or None.

    Drivers report a little less than the capacity; parts that share a name differ by more than that.
    """
    for canonical in catalogue():
        path = catalog.find("hardware", canonical)
        # Reading 66 files takes a while; almost none of them holds the name at all.
        if path is None or name not in path.read_text(encoding="utf-8"):
            continue
        try:
            hardware = load_file(path)
        except RooflineError:  # a file of the user's own; it is complained of when it is asked for
            continue
        capacity = hardware.main.capacity or 0
        if name in hardware.device_names and 0.85 * capacity <= memory_bytes <= 1.02 * capacity:
            return hardware
    return None


# ---------------------------------------------------------------- examination

_Found = list[tuple[RooflineError, Literal["error", "warning"]]]


def _examine(document: Document) -> tuple[Hardware | None, _Found]:
    """The spec, where it is one, and all that is wrong with it."""
    found, faults = list(_as_written(document.data)), list[Problem]()
    hardware = read_part(Hardware, document.data, (), faults)
    # What was written says more than what could not be read.
    found += [fault for fault in faults if fault.loc not in {problem.loc for problem in found}]
    if hardware:
        found += [*_named_otherwise(document), *problems(hardware)]
    return hardware, [(_located(document, problem), problem.severity) for problem in found]


def _located(document: Document, problem: Problem) -> RooflineError:
    of, near = problem.of, problem.suggestions
    return document.error(problem.loc, problem.message, code=problem.code, of=of, suggestions=near)


def _named_otherwise(document: Document) -> Iterator[Problem]:
    name, stem = document.data.get("name"), Path(document.name).stem
    if isinstance(name, str) and name != stem:
        message = f"the name is {name!r}, but the file is called {stem!r}: only by its path will it be found"
        yield Problem(("name",), message, "wrong-name", "warning")


def _as_written(data: Any, loc: Loc = ()) -> Iterator[Problem]:
    """Faults that are seen only in what was written, before it becomes numbers."""
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(data, dict):
        items = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    for key, value in items:
        if not loc and key in ("sources", "notes"):  # words, not numbers
            continue
        if isinstance(key, str) and "spars" in key.lower():
            message = f"{key!r}: peaks are dense, a sparse one has no place in this file"
            yield Problem((*loc, key), message, "sparse", of="key")
        elif key in ("capacity", "usable") and isinstance(value, str):
            yield from _decimal_capacity((*loc, key), value)
        else:
            yield from _as_written(value, (*loc, key))


def _decimal_capacity(loc: Loc, text: str) -> Iterator[Problem]:
    decimal = re.fullmatch(r"\s*([\d._]+)\s*([kKMGT])B\s*", text)
    if decimal:
        right = f"{decimal[1]} {decimal[2].upper()}iB"
        message = f"{text!r} is in powers of 1000, and memory is built in powers of 1024: write {right}"
        yield Problem(loc, message, "decimal-capacity", suggestions=(right,))

"""One registry of renderers: every one reads a record, so that what was computed once can be shown many times.

A renderer is ``render(record, options) -> str``. It is chosen by the schema of the record and a format; ``--format``
names it, else the extension of ``-o`` does, else it is the table for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Any, Final

from roofline.errors import RooflineError, nearest

TABLE: Final = "table"


@dataclass(frozen=True, slots=True)
class Options:
    """How to render: ``width`` in columns (None: that of the terminal), with or without colour, with details."""

    width: int | None = None
    color: bool = False
    verbose: bool = False


_RENDERERS: Final[dict[str, dict[str, str]]] = {
    "roofline/analysis/1": {
        "table": "roofline.render.terminal:render",
        "json": "roofline.render.jsonfile:render",
        "csv": "roofline.render.csvfile:render_analysis",
        "markdown": "roofline.render.markdown:render_analysis",
    },
    "roofline/explain/1": {
        "table": "roofline.render.explain_text:render",
        "json": "roofline.render.jsonfile:render",
        "markdown": "roofline.render.explain_text:render_markdown",
    },
    "roofline/run/1": {
        "table": "roofline.render.run_table:render",
        "json": "roofline.render.jsonfile:render",
        "csv": "roofline.render.csvfile:render_run",
        "markdown": "roofline.render.markdown:render_run",
    },
    "roofline/hardware/1": {
        "table": "roofline.render.hardware_table:render",
        "json": "roofline.render.jsonfile:render",
        "markdown": "roofline.render.hardware_table:render_markdown",
    },
    "roofline/hardware-list/1": {
        "table": "roofline.render.hardware_table:render_list",
        "json": "roofline.render.jsonfile:render",
        "csv": "roofline.render.csvfile:render_rows",
        "markdown": "roofline.render.markdown:render_rows",
    },
    "roofline/names/1": {
        "table": "roofline.render.names_table:render",
        "json": "roofline.render.jsonfile:render",
        "csv": "roofline.render.csvfile:render_rows",
        "markdown": "roofline.render.markdown:render_rows",
    },
}

_EXTENSIONS: Final = {".json": "json", ".csv": "csv", ".md": "markdown"}


def choose_format(schema: str, name: str | None, output: PurePath | None) -> str:
    """The format to render in; raises ``RooflineError`` where this record has no such renderer."""
    offered = _RENDERERS[schema]
    if name is not None:
        if name not in offered:
            raise RooflineError(
                f"no format {name!r} here: one of {', '.join(offered)}",
                code="unknown-format",
                key="--format",
                suggestions=nearest(name, offered),
            )
        return name
    if output is None:
        return TABLE
    wanted = _EXTENSIONS.get(output.suffix.lower())
    if wanted not in offered:
        known = [suffix for suffix, fmt in _EXTENSIONS.items() if fmt in offered]
        raise RooflineError(
            f"cannot tell a format from the name: it must end in one of {', '.join(known)}, or say --format",
            code="unknown-format",
            file=str(output),
            suggestions=nearest(output.suffix, known),
        )
    return wanted


def render(record: Mapping[str, Any], fmt: str, options: Options) -> str:
    """The text of ``record`` in ``fmt``."""
    module, _, function = _RENDERERS[record["schema"]][fmt].partition(":")
    text = getattr(import_module(module), function)(record, options)
    return str(text)

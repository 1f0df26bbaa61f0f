"""CSV: one line an op, numbers in SI base units, the schema in the first column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from roofline.render import Options
from roofline.render.run_words import run_rows
from roofline.results.files import number

_OP = ("path", "kind", "count", "flops", "bytes", "intensity", "ridge", "bound", "limiter", "floor_s", "share")


def render_analysis(record: Mapping[str, Any], options: Options) -> str:
    """One line an op of each result."""
    del options
    lines = (
        (record["schema"], result["workload"]["name"], result["hardware"]["name"], *(op[key] for key in _OP))
        for result in record["results"]
        for op in result["ops"]
    )
    return _text(("schema", "workload", "hardware", *_OP), lines)


def render_run(record: Mapping[str, Any], options: Options) -> str:
    """One line an op of a run."""
    return render_rows({"schema": record["schema"], "rows": run_rows(record)}, options)


def render_rows(record: Mapping[str, Any], options: Options) -> str:
    """A record whose ``rows`` are flat objects with the same keys."""
    del options
    rows = record["rows"]
    keys = list(rows[0]) if rows else []
    return _text(("schema", *keys), ((record["schema"], *(row[key] for key in keys)) for row in rows))


def _text(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """The lines with the numbers that JSON has."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([number(cell) if isinstance(cell, float) else cell for cell in line] for line in lines)
    return buffer.getvalue()

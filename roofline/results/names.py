"""A list of named things, ``roofline/names/1``: what a catalogue holds, one flat row a thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SCHEMA = "roofline/names/1"


def record(what: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The record of a list; every row has the same keys, the first of them ``name``."""
    return {"schema": SCHEMA, "what": what, "rows": [dict(row) for row in rows]}

"""JSON: the record itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline.render import Options
from roofline.results.files import dumps


def render(record: Mapping[str, Any], options: Options) -> str:
    """The record as deterministic JSON text."""
    del options
    return dumps(record)

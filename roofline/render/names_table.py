"""A list of named things as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from roofline.render import Options
from roofline.render.console import collect, pinned, rows, table


def render(record: Mapping[str, Any], options: Options) -> str:
    """One line a row; the keys are the titles."""
    lines = record["rows"]

    def draw(console: Console) -> None:
        if not lines:
            console.print("none")
            return
        *_, last = lines[0]
        made = table([(key, "left") for key in lines[0]])
        rows(made, ([str(value if value is not None else "-") for value in row.values()] for row in lines))
        console.print(pinned(made, options, wraps={last: 20}))

    return collect(draw, options)

"""The one place where rich is set up: a console that collects text at the width and colour of the caller."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roofline.render import Options

PLAIN_WIDTH = 120
"""Columns where no terminal says otherwise."""

BOUND_STYLE = {"compute": "cyan", "memory": "yellow", "communication": "magenta"}


def collect(draw: Callable[[Console], None], options: Options) -> str:
    """The text that ``draw`` prints to a console."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=options.width or PLAIN_WIDTH,
        force_terminal=options.color,
        color_system="standard" if options.color else None,
        no_color=not options.color,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )
    draw(console)
    lines = buffer.getvalue().split("\n")
    return "\n".join(line.rstrip() for line in lines)


def table(columns: Sequence[tuple[str, str]]) -> Table:
    """A quiet table; a column is (title, "left" or "right")."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for title, side in columns:
        made.add_column(title, justify="right" if side == "right" else "left", no_wrap=True, overflow="ellipsis")
    return made


def rows(made: Table, lines: Iterable[Sequence[str | Text]]) -> Table:
    """The table with rows added."""
    for line in lines:
        made.add_row(*line)
    return made


def pinned(made: Table, options: Options) -> Table:
    """The table with every column but the first as wide as its cells: on a narrow terminal only names are cut."""
    left = options.width or PLAIN_WIDTH
    for column in made.columns[1:]:
        column.min_width = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
        left -= column.min_width + 2  # and the space between columns
    made.columns[0].max_width = max(left - 2, 12)
    return made


def outline(ops: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str, Mapping[str, Any] | None, int]]:
    """Depth, name and op (None for a group) of each line; a group shows how often it runs where its ops agree."""
    open_groups: list[str] = []
    for index, op in enumerate(ops):
        *groups, name = op["path"].split("/")
        shared = 0
        while shared < min(len(groups), len(open_groups)) and groups[shared] == open_groups[shared]:
            shared += 1
        for depth in range(shared, len(groups)):
            prefix = "/".join(groups[: depth + 1]) + "/"
            counts = {other["count"] for other in ops[index:] if other["path"].startswith(prefix)}
            yield depth, groups[depth], None, counts.pop() if len(counts) == 1 and depth == 0 else 1
        open_groups = groups
        yield len(groups), name, op, op["count"]

"""The one place where rich is set up: text at the width and colour of the caller, and tables that fit it whole."""

from __future__ import annotations

import io
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from rich.cells import cell_len, chop_cells
from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text

from roofline.render import Options

PLAIN_WIDTH: Final = 120
"""Columns of prose where no terminal says otherwise."""

WIDE: Final = 200
"""Columns of a table where no terminal says otherwise: what reads a pipe does not mind long lines."""

BOUND_STYLE: Final = {"compute": "cyan", "memory": "yellow", "communication": "magenta"}

_GAP: Final = "  "
_NARROWEST: Final = 12
"""Columns that a name may be wrapped to before its row is written as lines instead."""

_NO_BREAK: Final = "\N{NO-BREAK SPACE}"

_WORDS: Final = re.compile(r"\s+|(?<=-)")
_PERCENT: Final = re.compile(r"(?<=\d) (?=%)")
"""The space in ``90 %``, where no line may end."""

_SEPARATORS: Final = ("Zl", "Zp")
_UNPRINTABLE: Final = ("Cc", "Cf", "Cs", "Co", "Cn")


def clean(text: str) -> str:
    """``text`` on one line and safe to show: no control, bidirectional or invisible character gets to a terminal.

    Every character stays one character, so that the styles of a text keep their places.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    kind = unicodedata.category(char)
    if char in "\t\n\v\f\r\x85" or kind in _SEPARATORS:
        return " "
    return "\N{REPLACEMENT CHARACTER}" if kind in _UNPRINTABLE else char


class _Paper(Console):
    """A console that cleans what it is given, fits every table, and wraps prose where nobody set a width."""

    prose_width: int = PLAIN_WIDTH

    def print(self, *objects: Any, **options: Any) -> None:
        made = [self._fitted(part) for part in objects]
        if made and all(isinstance(part, Text) for part in made):
            options.setdefault("width", self.prose_width)
        super().print(*made, **options)

    def _fitted(self, part: Any) -> Any:
        if isinstance(part, Table):
            return pinned(part, Options(width=self.width))
        return _cleaned(part) if isinstance(part, str | Text) else part


def _cleaned(part: Any) -> Text:
    text = part.copy() if isinstance(part, Text) else Text(clean(str(part)))
    text.plain = clean(text.plain)
    return text


def collect(draw: Callable[[Console], None], options: Options) -> str:
    """The text that ``draw`` prints to a console."""
    buffer = io.StringIO()
    console = _Paper(
        file=buffer,
        width=options.width or WIDE,
        force_terminal=options.color,
        color_system="standard" if options.color else None,
        no_color=not options.color,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )
    console.prose_width = options.width or PLAIN_WIDTH
    draw(console)
    lines = buffer.getvalue().split("\n")
    return "\n".join(line.rstrip() for line in lines)


def table(columns: Sequence[tuple[str, str]]) -> Table:
    """An empty table; a column is (title, "left" or "right")."""
    made = Table()
    for title, side in columns:
        made.add_column(title, justify="right" if side == "right" else "left")
    return made


def rows(made: Table, lines: Iterable[Sequence[str | Text]]) -> Table:
    """The table with rows added."""
    for line in lines:
        made.add_row(*line)
    return made


def pinned(
    made: Table,
    options: Options,
    *,
    wraps: Mapping[str, int] | None = None,
    drops: Sequence[str] = (),
    indent: int = 0,
) -> Group:
    """The table at the width of the caller with no cell cut.

    The columns titled in ``wraps`` (the first, where not said) wrap down to the width given there, the one named
    first before the next. Where that is not enough the columns in ``drops`` are left out in that order and named
    below (none where no width is set). Where nothing is left to drop, other text wraps too, and at last each row is
    written as lines, with all its cells.
    """
    width = max((options.width or WIDE) - indent, _NARROWEST)
    every = [_column(column, made.show_header) for column in made.columns]
    shown = every
    least = {shown[0].title: 20} if wraps is None else dict(wraps)
    hidden: list[str] = []
    for title in drops if options.width else ():
        if _span(_minima(shown, least)) <= width:
            break
        hidden += [column.title for column in shown if column.title == title]
        shown = [column for column in shown if column.title != title]
    if _span(_minima(shown, least)) > width:
        least = _last_resort(shown, least)
    if _span(_minima(shown, least)) > width:
        return Group(*_stacked(every, width))
    lines = _lines(shown, _widths(shown, least, width))
    if hidden:
        text = f"not shown at {options.width or WIDE} columns: {', '.join(hidden)}"
        lines += [Text(line, style="dim") for line in _hang(text, width)]
    return Group(*lines)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as it is laid out: ``heading`` is empty where the table shows no titles."""

    title: str
    heading: str
    right: bool
    cells: list[Text]

    @property
    def full(self) -> int:
        return max(cell_len(self.heading), self.numbers)

    @property
    def numbers(self) -> int:
        return max((cell_len(cell.plain) for cell in self.cells), default=0)

    @property
    def longest_word(self) -> int:
        words = [word for text in (self.heading, *(cell.plain for cell in self.cells)) for word in _WORDS.split(text)]
        return max(map(cell_len, words), default=0)


def _column(column: Column, heading: bool) -> _Column:
    title = clean(str(column.header))
    cells = [_cleaned(cell) for cell in column.cells]
    return _Column(title, title if heading else "", column.justify == "right", cells)


def _last_resort(shown: Sequence[_Column], before: Mapping[str, int]) -> dict[str, int]:
    """Every column of text down to its longest word, and names, which may be broken, to a few letters."""
    words = {column.title: column.longest_word for column in shown if not column.right}
    first = shown[0].title
    words[first] = min(_NARROWEST, words.get(first, _NARROWEST))
    return {title: words[title] for title in dict.fromkeys((*before, *words)) if title in words}


def _minima(shown: Sequence[_Column], least: Mapping[str, int]) -> list[int]:
    """The least width of each column; the title of a column of numbers may wrap, a number may not."""
    return [
        min(column.full, least[column.title])
        if column.title in least
        else max(column.numbers, *map(cell_len, column.heading.split()), 0)
        for column in shown
    ]


def _span(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _widths(shown: Sequence[_Column], least: Mapping[str, int], width: int) -> list[int]:
    """The least widths, with what is left given first to the titles of numbers and last to the first of ``least``."""
    widths = _minima(shown, least)
    spare = width - _span(widths)
    order = list(least)
    rank = [order.index(column.title) if column.title in least else len(order) for column in shown]
    for index in sorted(range(len(shown)), key=rank.__getitem__, reverse=True):
        grown = min(shown[index].full - widths[index], spare)
        widths[index] += grown
        spare -= grown
    return widths


def _lines(shown: Sequence[_Column], widths: Sequence[int]) -> list[Text]:
    sides = [column.right for column in shown]
    heads = [Text(column.heading, style="bold") for column in shown]
    lines = _row(heads, widths, sides) if any(column.heading for column in shown) else []
    for cells in zip(*(column.cells for column in shown), strict=True):
        lines += _row(cells, widths, sides)
    return lines


def _row(cells: Sequence[Text], widths: Sequence[int], sides: Sequence[bool]) -> list[Text]:
    """One row, as many lines as its tallest cell."""
    pieces = [_hang(cell.plain, width) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for texts in zip_longest(*pieces, fillvalue=""):
        line = Text(no_wrap=True, overflow="ignore")
        for index, text in enumerate(texts):
            space = " " * (widths[index] - cell_len(text))
            line.append(_GAP if index else "")
            line.append(space if sides[index] else "")
            line.append(text, style=cells[index].style)
            line.append("" if sides[index] else space)
        line.rstrip()
        lines.append(line)
    return lines


def _stacked(shown: Sequence[_Column], width: int) -> list[Text]:
    """Each row as its name and, under it, every other cell after its title."""
    lines = []
    for first, *rest in zip(*(column.cells for column in shown), strict=True):
        lines += [Text(line, style=first.style) for line in _hang(first.plain, width)]
        lead = " " * (min(len(first.plain) - len(first.plain.lstrip()), width // 3) + 2)
        titled = [
            f"{column.heading} {_whole(cell, column)}" for column, cell in zip(shown[1:], rest, strict=True) if cell
        ]
        pieces = _hang(lead + "; ".join(map(str.strip, titled)), width, "") if titled else []
        lines += [Text(piece) for piece in pieces]
    return lines


def _whole(cell: Text, column: _Column) -> str:
    """A number stays on one line with its unit."""
    return cell.plain.replace(" ", _NO_BREAK) if column.right else cell.plain


def _hang(text: str, width: int, deeper: str = "  ") -> list[str]:
    """The lines of ``text``, wrapped under its own start."""
    if cell_len(text) <= width:
        return [text]
    lead = " " * min(len(text) - len(text.lstrip()), max(width // 3, 0))
    under = lead + (deeper if lead else "")
    whole = _PERCENT.sub(_NO_BREAK, text.strip())
    wrapped = textwrap.wrap(
        whole, width, initial_indent=lead, subsequent_indent=under, break_on_hyphens=" " not in whole
    )
    lines = [line.replace(_NO_BREAK, " ") for line in wrapped]
    # letters that are two columns wide are only seen by their cells
    return [piece for line in lines for piece in (chop_cells(line, width) if cell_len(line) > width else [line])]


def outline(ops: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str, Mapping[str, Any] | None, int]]:
    """Depth, name and op (None for a group) of each line; a group shows how often it runs where its ops agree.

    The path of an op alone is its name, which may hold a slash.
    """
    if len(ops) == 1:
        yield 0, ops[0]["path"], ops[0], ops[0]["count"]
        return
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

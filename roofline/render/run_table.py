"""A run for people: the answer first, then the ceilings it rests on, every op, and why each row is not confirmed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from roofline.quantities import duration, integer, percent, si
from roofline.render import Options
from roofline.render.console import BOUND_STYLE, collect, outline, pinned, table
from roofline.render.run_words import (
    CEILINGS_NOTE,
    Op,
    Run,
    device_line,
    headline,
    legend,
    reason_lines,
    spread_of,
    time_of,
    totals,
    warnings,
)

VERDICT_STYLE: Final = {
    "confirmed": "green",
    "contradicted": "bold red",
    "above-roof": "bold red",
    "errored": "bold red",
    "inefficient": "yellow",
}


def render(record: Run, options: Options) -> str:
    """The run as text."""

    def draw(console: Console) -> None:
        console.print(headline(record), style="bold")
        if whole := totals(record):
            console.print(whole)
        for line in warnings(record):
            console.print(line, style="yellow")
        console.print(f"on {device_line(record)}", style="dim")
        console.print()
        console.print(pinned(_ceilings(record), options))
        console.print(CEILINGS_NOTE, style="dim")
        console.print()
        console.print(pinned(_ops(record), options, drops=("MBU", "MFU", "+-", "count", "predicted")))
        console.print(legend(record), style="dim")
        reasons = list(reason_lines(record))
        if reasons:
            console.print()
            for path, verdict, reason in reasons:
                text = Text.assemble((path, "bold"), " ", (verdict, VERDICT_STYLE.get(verdict, "")), f": {reason}")
                console.print(text)
        if options.verbose:
            _details(console, record)

    return collect(draw, options)


def _ceilings(record: Run) -> Any:
    made = table(
        (("measured ceiling", "left"), ("value", "right"), ("low", "right"), ("high", "right"), ("kernel", "left"))
    )
    for name, ceiling in record["ceilings"].items():
        made.add_row(
            name,
            *(_amount(ceiling[end], ceiling.get("unit", "")) for end in ("value", "low", "high")),
            ceiling.get("kernel", ""),
        )
    return made


def _amount(value: float, unit: str) -> str:
    return duration(value) if unit == "s" else si(value, unit)


_Cell = str | Text

_COLUMNS: Final[tuple[tuple[str, str, Callable[[Op], _Cell]], ...]] = (
    ("count", "right", lambda op: integer(op["count"])),
    ("floor", "right", lambda op: duration(op["predicted"]["floor_s"])),
    ("time", "right", lambda op: duration(time_of(op))),
    ("+-", "right", lambda op: percent(spread_of(op))),
    ("of roof", "right", lambda op: percent(op["roof_fraction"])),
    ("MFU", "right", lambda op: percent(op.get("mfu"))),
    ("MBU", "right", lambda op: percent(op.get("mbu"))),
    ("predicted", "left", lambda op: _bound(op["predicted"]["bound"], bool(op["predicted"].get("near_ridge")))),
    ("measured", "left", lambda op: _bound(op["measured"]["bound"])),
    ("verdict", "left", lambda op: Text(op["verdict"], style=VERDICT_STYLE.get(op["verdict"], ""))),
)
"""Title, side, and the cell of an op."""


def _ops(record: Run) -> Any:
    made = table((("op", "left"), *((title, side) for title, side, _ in _COLUMNS)))
    for depth, name, op, _ in outline(record["ops"]):
        label = "  " * depth + name
        if op is None:
            made.add_row(Text(label, style="bold"), *[""] * len(_COLUMNS))
        else:
            made.add_row(label, *(cell(op) for _, _, cell in _COLUMNS))
    return made


def _bound(bound: str | None, near_ridge: bool = False) -> Text:
    if bound is None:
        return Text("-")
    return Text(bound + (" ~" if near_ridge else ""), style=BOUND_STYLE.get(bound, ""))


def _details(console: Console, record: Run) -> None:
    console.print()
    made = table(
        (
            ("op", "left"),
            ("kernel", "left"),
            ("samples", "right"),
            ("copies", "right"),
            ("operands", "left"),
            ("stopped", "left"),
        )
    )
    for op in record["ops"]:
        measured = op["measured"]
        if measured["processes"]:
            cold = {True: "cold", False: "hot", None: "-"}[measured.get("cold")]
            samples = sum(len(process["samples_s"]) for process in measured["processes"])
            cells = (op["kernel"] or "-", integer(samples), integer(measured.get("copies")), cold)
            made.add_row(op["path"], *cells, op["stop_reason"] or "-")
    console.print(made)

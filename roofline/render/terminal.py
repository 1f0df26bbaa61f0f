"""An analysis for people: the answer first, then the ops grouped as the model is, then what would change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from roofline.quantities import duration, integer, percent, ratio, si
from roofline.render import Options, words
from roofline.render.console import BOUND_STYLE, PLAIN_WIDTH, collect, outline, pinned, rows, table

Result = Mapping[str, Any]


def render(record: Mapping[str, Any], options: Options) -> str:
    """The analysis as text: one result in full, several side by side (in full as well when verbose)."""
    results = record["results"]

    def draw(console: Console) -> None:
        if len(results) > 1:
            _compare(console, results, options)
        if len(results) == 1 or options.verbose:
            for index, result in enumerate(results):
                if index or len(results) > 1:
                    console.print()
                _one(console, result, options)

    return collect(draw, options)


def _one(console: Console, result: Result, options: Options) -> None:
    workload, summary = result["workload"], result["summary"]
    console.print(Text.assemble((workload["name"], "bold"), f": {workload['description']}"))
    console.print(f"on {words.hardware_line(result)}", style="dim")
    console.print()
    console.print(words.headline(result), style=f"bold {BOUND_STYLE[summary['bound']]}")
    console.print(words.floor_sentence(result))
    console.print()
    console.print(pinned(_op_table(result, options.verbose, options.width or PLAIN_WIDTH), options))
    if len(result["ops"]) > 1:
        console.print("FLOPs, bytes and floor of an op are for one execution; its share is of all of them", style="dim")
    if any(op["near_ridge"] for op in result["ops"]):
        console.print("~ near the ridge: its memory and compute floors are within a factor of two", style="dim")
    console.print()
    console.print(words.memory_sentence(result))
    launches = words.launch_sentence(result)
    if launches:
        console.print(launches)
    _what_if(console, result)
    for note in result["notes"]:
        console.print(Text.assemble(("Note: ", "bold"), note))


_COLUMNS: tuple[tuple[str, str, int], ...] = (
    ("count", "right", 0),
    ("FLOPs", "right", 92),
    ("bytes", "right", 0),
    ("FLOP/B", "right", 0),
    ("bound", "left", 100),
    ("limiter", "left", 0),
    ("floor", "right", 0),
    ("share", "right", 0),
)
"""Title, side, and the width of terminal from which on it is shown."""


def _op_table(result: Result, verbose: bool, width: int) -> Table:
    shown = [index for index, column in enumerate(_COLUMNS) if width >= column[2]]
    made = table((("op", "left"), *(_COLUMNS[index][:2] for index in shown)))

    def add(label: str | Text, cells: Sequence[str | Text]) -> None:
        made.add_row(label, *(cells[index] for index in shown))

    for depth, name, op, count in outline(result["ops"]):
        label = "  " * depth + name
        if op is None:
            add(Text(label, style="bold"), (integer(count) if count > 1 else "", *[""] * 7))
            continue
        add(label, _op_cells(op))
        if verbose:
            for tensor in op["tensors"]:
                add(*_tensor_row(tensor, depth + 1))
    if len(result["ops"]) > 1:
        add(Text("all", style="bold"), _total_cells(result))
    return made


def _op_cells(op: Mapping[str, Any]) -> Sequence[str | Text]:
    return (
        integer(op["count"]),
        si(op["flops"], ""),
        si(op["bytes"], "B"),
        ratio(op["intensity"], 3),
        Text(words.bound_cell(op), style=BOUND_STYLE[op["bound"]]),
        words.limiter_cell(op),
        duration(op["floor_s"]),
        percent(op["share"]),
    )


def _total_cells(result: Result) -> Sequence[str | Text]:
    summary = result["summary"]
    return (
        integer(sum(op["count"] for op in result["ops"])),
        si(summary["flops"], ""),
        si(summary["bytes"], "B"),
        ratio(summary["intensity"], 3),
        Text(summary["bound"], style=BOUND_STYLE[summary["bound"]]),
        words.limiter_cell(summary),
        duration(summary["floor_s"]),
        "100 %",
    )


def _tensor_row(tensor: Mapping[str, Any], depth: int) -> tuple[Text, Sequence[Text]]:
    label = f"{'  ' * depth}{tensor['access']} {tensor['name']} {words.shape_text(tensor['shape'])} {tensor['dtype']}"
    cells = ("", "", si(tensor["traffic_bytes"], "B"), "", "", tensor["role"], "", "")
    return Text(label, style="dim"), tuple(Text(cell, style="dim") for cell in cells)


def _what_if(console: Console, result: Result) -> None:
    lines = words.what_if_lines(result)
    if lines:
        console.print()
        console.print("What would change it", style="bold")
        made = table((("", "left"), ("", "left")))
        made.show_header = False
        console.print(rows(made, ((f"  {change}", effect) for change, effect in lines)))


def _compare(console: Console, results: Sequence[Result], options: Options) -> None:
    columns = (
        ("workload", "left"),
        ("hardware", "left"),
        ("bound", "left"),
        ("limiter", "left"),
        ("FLOP/B", "right"),
        ("ridge", "right"),
        ("floor", "right"),
        ("tokens/s", "right"),
        ("memory", "right"),
        ("fits", "left"),
    )
    made = table(columns)
    for result in results:
        summary = result["summary"]
        tokens = summary["new_tokens"]
        made.add_row(
            result["workload"]["name"],
            result["hardware"]["name"],
            Text(summary["bound"], style=BOUND_STYLE[summary["bound"]]),
            f"{summary['limiter']} {percent(summary['shares'][summary['limiter']])}",
            ratio(summary["intensity"], 3),
            ratio(summary["ridge"], 3),
            duration(summary["floor_s"]),
            si(tokens / summary["floor_s"], "") if tokens else "-",
            si(summary["resident_bytes"], "B"),
            {True: "yes", False: "NO", None: "-"}[summary["fits"]],
        )
    console.print(pinned(made, options))
    if len({result["workload"]["source"] for result in results}) == 1:
        console.print()
        console.print(pinned(_floors(results), options))


def _floors(results: Sequence[Result]) -> Any:
    """One workload on several devices: the floor of each op and what limits it."""
    devices = [result["hardware"]["name"] for result in results]
    made = table((("op", "left"), ("count", "right"), *((f"{name} floor", "right") for name in devices)))
    for same in zip(*(result["ops"] for result in results), strict=True):
        cells = (f"{duration(op['floor_s'])} {op['limiter']}" for op in same)
        made.add_row(same[0]["path"], integer(same[0]["count"]), *cells)
    return made

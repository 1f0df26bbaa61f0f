"""An analysis for people: the answer first, then the ops grouped as the model is, then what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, Group
from rich.padding import Padding
from rich.text import Text

from roofline.quantities import duration, integer, percent, ratio, si
from roofline.render import Options, words
from roofline.render.console import BOUND_STYLE, WIDE, clean, collect, outline, pinned, rows, table

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
    console.print(_op_table(result, options))
    if len(result["ops"]) > 1:
        console.print("FLOPs, bytes and floor of an op are for one execution; its share is of all of them", style="dim")
    if any(op["near_ridge"] for op in result["ops"]):
        console.print("~ near the ridge: its memory and compute floors are within a factor of two", style="dim")
    console.print()
    console.print(words.memory_sentence(result))
    launches = words.launch_sentence(result)
    if launches:
        console.print(launches)
    _what_if(console, result, options)
    for note in result["notes"]:
        console.print(Text.assemble(("Note: ", "bold"), note))


_COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    ("op", "left"),
    ("count", "right"),
    ("FLOPs", "right"),
    ("bytes", "right"),
    ("FLOP/B", "right"),
    ("bound", "left"),
    ("limiter", "left"),
    ("floor", "right"),
    ("share", "right"),
)


def _op_table(result: Result, options: Options) -> Group:
    made = table(_COLUMNS)
    for depth, name, op, count in outline(result["ops"]):
        label = "  " * depth + name
        if op is None:
            made.add_row(Text(label, style="bold"), integer(count) if count > 1 else "", *[""] * 7)
            continue
        made.add_row(label, *_op_cells(op))
        if options.verbose:
            for tensor in op["tensors"]:
                made.add_row(*_tensor_row(tensor, depth + 1))
    if len(result["ops"]) > 1:
        made.add_row(Text("all", style="bold"), *_total_cells(result))
    return pinned(made, options, wraps={"limiter": 11, "op": 26}, drops=("bound", "FLOPs", "FLOP/B", "bytes", "count"))


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


def _tensor_row(tensor: Mapping[str, Any], depth: int) -> Sequence[Text]:
    label = f"{'  ' * depth}{tensor['access']} {tensor['name']} {words.shape_text(tensor['shape'])} {tensor['dtype']}"
    cells = (label, "", "", si(tensor["traffic_bytes"], "B"), "", "", tensor["role"], "", "")
    return tuple(Text(cell, style="dim") for cell in cells)


def _what_if(console: Console, result: Result, options: Options) -> None:
    lines = words.what_if_lines(result)
    if lines:
        console.print()
        console.print("What would change it", style="bold")
        made = rows(table((("change", "left"), ("effect", "left"))), lines)
        made.show_header = False
        console.print(Padding(pinned(made, options, wraps={"change": 24, "effect": 26}, indent=2), (0, 0, 0, 2)))


def _compare(console: Console, results: Sequence[Result], options: Options) -> None:
    columns = [
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
    ]
    lines = [_compare_cells(result) for result in results]
    if not any(result["summary"]["new_tokens"] for result in results):
        place = [title for title, _ in columns].index("tokens/s")
        columns.pop(place)
        lines = [[*line[:place], *line[place + 1 :]] for line in lines]
    wraps = {"limiter": 11, "workload": 10, "hardware": 14}
    drops = ("memory", "ridge", "FLOP/B", "tokens/s")
    console.print(pinned(rows(table(columns), lines), options, wraps=wraps, drops=drops))
    if _same_workload(results):
        for block in _floors(results, options):
            console.print()
            console.print(block)


def _compare_cells(result: Result) -> list[str | Text]:
    summary = result["summary"]
    tokens = summary["new_tokens"]
    return [
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
    ]


def _same_workload(results: Sequence[Result]) -> bool:
    """Whether every result is of one workload: named, described and counted alike."""

    def identity(result: Result) -> tuple[Any, ...]:
        workload = result["workload"]
        ops = tuple((op["path"], op["count"], op["flops"], op["bytes"]) for op in result["ops"])
        return workload["name"], workload["source"], workload["description"], ops

    return len({identity(result) for result in results}) == 1


def _floors(results: Sequence[Result], options: Options) -> Iterator[Group]:
    """One workload on several devices: the floor of each op and what limits it, as many devices a block as fit."""
    labels = [
        ("  " * depth + name, integer(count) if op or count > 1 else "", op is None)
        for depth, name, op, count in outline(results[0]["ops"])
    ]
    width = options.width or WIDE
    used = min(max(cell_len(clean(label)) for label, _, _ in labels), max(width // 3, 20)) + 2 + len("count")
    block: list[Result] = []
    left = width - used
    for result in results:
        needed = 2 + max(cell_len(text) for text in (_heading(result), *map(_floor_cell, result["ops"])))
        if block and needed > left:
            yield _floor_block(labels, block, options)
            block, left = [], width - used
        block.append(result)
        left -= needed
    yield _floor_block(labels, block, options)


def _floor_block(labels: Sequence[tuple[str, str, bool]], block: Sequence[Result], options: Options) -> Group:
    made = table((("op", "left"), ("count", "right"), *((_heading(result), "right") for result in block)))
    cells = zip(*(map(_floor_cell, result["ops"]) for result in block), strict=True)
    for label, count, group in labels:
        if group:
            made.add_row(Text(label, style="bold"), count, *[""] * len(block))
        else:
            made.add_row(label, count, *next(cells))
    return pinned(made, options)


def _heading(result: Result) -> str:
    return f"{clean(result['hardware']['name'])} floor"


def _floor_cell(op: Mapping[str, Any]) -> str:
    return f"{duration(op['floor_s'])} {op['limiter']}"

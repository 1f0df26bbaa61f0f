"""An explanation for people: each formula, the same with the numbers put in, its value, and where it comes from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from roofline.quantities import integer, ratio
from roofline.render import Options
from roofline.render.console import PLAIN_WIDTH, clean

_INDENT = "    "


def render(record: Mapping[str, Any], options: Options) -> str:
    """Plain text, wrapped to the width."""
    width = options.width or PLAIN_WIDTH
    lines: list[str] = []
    for op in record["ops"]:
        lines += [*_op(op, record["symbolic"]), ""]
    if record["conventions"]:
        lines += ["Rules of accounting", ""]
        for rule in record["conventions"]:
            lines += [*_wrap(f"{rule['rule']}: {rule['text']}", width, "  "), ""]
    lines = [clean(line) for line in lines]
    wrapped = [piece for line in lines for piece in (_wrap(line, width) if len(line) > width else [line])]
    return "\n".join(wrapped).rstrip() + "\n"


def render_markdown(record: Mapping[str, Any], options: Options) -> str:
    """The same text in a section an op, formulas as code."""
    del options
    blocks = [f"<!-- {record['schema']} -->"]
    for op in record["ops"]:
        title, *lines = _op(op, record["symbolic"])
        blocks.append(f"### {title}\n\n```text\n" + textwrap.dedent("\n".join(lines)) + "\n```")
    blocks += [f"**{rule['rule']}**: {rule['text']}" for rule in record["conventions"]]
    return "\n\n".join(blocks) + "\n"


def _op(op: Mapping[str, Any], symbolic: bool) -> Iterator[str]:
    times = f", {integer(op['count'])} times" if op["count"] != 1 else ""
    yield f"{op['path']} ({op['kind']}{times}): {op['about']}"
    if symbolic:
        yield from _closed(op)
    else:
        yield from _numbers(op)
    yield f"  source: {op['source']}"


def _closed(op: Mapping[str, Any]) -> Iterator[str]:
    yield "  symbols"
    yield from _columns((item["symbol"], item["field"], item["meaning"]) for item in op["symbols"])
    yield "  arithmetic"
    yield from _columns((engine, formula["closed"]) for engine, formula in op["arithmetic"].items())
    yield "  traffic, in bytes"
    yield from _columns(
        (item["access"], item["name"], item["dtype"], f"[{item['shape']}]", item["traffic_bytes"]["closed"])
        for item in op["tensors"]
    )
    yield f"  FLOPs      {op['flops']['closed']}"
    yield f"  bytes      {op['bytes']['closed']}"
    yield f"  intensity  {op['intensity']['closed']}"


def _numbers(op: Mapping[str, Any]) -> Iterator[str]:
    yield "  " + ", ".join(f"{item['symbol']} = {item['field']} = {integer(item['value'])}" for item in op["symbols"])
    yield "  arithmetic"
    yield from _columns((engine, *_with_numbers(formula)) for engine, formula in op["arithmetic"].items())
    yield "  traffic, in bytes"
    yield from _columns(
        (item["access"], item["name"], item["dtype"], f"[{item['shape']}]", *_with_numbers(item["traffic_bytes"]))
        for item in op["tensors"]
    )
    yield (
        f"  intensity {integer(op['flops']['value'])} FLOPs / {integer(op['bytes']['value'])} bytes "
        f"= {ratio(op['intensity']['value'])} FLOP/byte"
    )


def _with_numbers(formula: Mapping[str, Any]) -> tuple[str, str, str]:
    return formula["closed"], f"= {formula['numbers']}", f"= {integer(formula['value'])}"


def _columns(rows: Any) -> Iterator[str]:
    cells = [tuple(str(cell) for cell in row) for row in rows]
    if not cells:
        yield f"{_INDENT}none"
        return
    # a formula that is long would push every other row apart, so columns align only up to a reasonable width
    widths = [min(max(len(row[i]) for row in cells), 40) for i in range(len(cells[0]))]
    for row in cells:
        yield _INDENT + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _wrap(line: str, width: int, indent: str = "") -> list[str]:
    inside = indent or " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(line, width, initial_indent="", subsequent_indent=inside, break_long_words=False) or [""]

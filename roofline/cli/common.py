"""What the commands share: their common options, and the way a record leaves the program."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from roofline.cli.streams import printable
from roofline.render import TABLE, Options, choose_format, render

FORMATS = "table, json, csv or markdown"

Format = Annotated[
    str | None, typer.Option("--format", help=f"{FORMATS} (default: by the extension of -o, else table).")
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write to this file instead of stdout (.json, .csv, .md).")
]
Force = Annotated[bool, typer.Option("--force", help="Let -o replace a file that roofline did not write.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="More detail: the bytes of every tensor.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the descriptor. Repeatable.")
]
OpGlob = Annotated[str | None, typer.Option("--op", metavar="GLOB", help="Only ops whose path, name or kind matches.")]
HardwareNames = Annotated[
    list[str] | None,
    typer.Option("-H", "--hardware", help="Device to predict for: a name, an alias or a YAML file. Repeatable."),
]


def ready(schema: str, fmt: str | None, output: Path | None, force: bool) -> str:
    """The format in which a record of ``schema`` will leave; raises, before long work, what ``emit`` would raise."""
    chosen = choose_format(schema, fmt, output)
    if output is not None:
        from roofline.results.files import check_target

        check_target(output, force)
    return chosen


def emit(
    record: Mapping[str, Any],
    *,
    fmt: str | None = None,
    output: Path | None = None,
    force: bool = False,
    verbose: bool = False,
) -> None:
    """Render ``record`` to stdout, or to the file ``output``, whole or not at all."""
    chosen = choose_format(record["schema"], fmt, output)
    if output is None:
        sys.stdout.write(render(record, chosen, screen(verbose)))
        return
    from roofline.results.files import mark, write

    text = render(record, chosen, Options(verbose=verbose))
    write(output, text + mark(record["schema"]) if chosen == TABLE else text, force=force)
    print(f"wrote {printable(str(output))}", file=sys.stderr)


def screen(verbose: bool = False) -> Options:
    """Options for stdout: colour and width of the terminal, plain and wide where there is none."""
    terminal = sys.stdout.isatty()
    color = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return Options(width=int(columns), color=color, verbose=verbose)
    width = os.get_terminal_size(sys.stdout.fileno()).columns if terminal else None
    return Options(width=width or None, color=color, verbose=verbose)

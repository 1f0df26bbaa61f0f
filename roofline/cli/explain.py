"""``roofline explain``: the formula behind every number, with the numbers put in, and its source."""

from __future__ import annotations

from typing import Annotated

import typer

from roofline.cli.common import Force, Format, OpGlob, Output, Set, emit, ready
from roofline.errors import RooflineError


def explain(
    workload: Annotated[str | None, typer.Argument(metavar="[WORKLOAD]", help="A path or a name.")] = None,
    op: OpGlob = None,
    symbolic: Annotated[bool, typer.Option("--symbolic", help="Closed forms in symbols only.")] = False,
    conventions: Annotated[bool, typer.Option("--conventions", help="Also print the rules of accounting.")] = False,
    changes: Set = None,
    fmt: Format = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Show where each number comes from: FLOPs per engine, bytes per tensor, the formulas and their sources.

    Identical ops are shown once. Exit codes: 0 fine, 2 bad input.
    """
    from roofline.render.conventions import CONVENTIONS
    from roofline.results.explain import SCHEMA, record

    ready(SCHEMA, fmt, output, force)
    rules = CONVENTIONS if conventions else ()
    if workload is None:
        if not conventions:
            raise RooflineError("name a workload, or ask for --conventions", code="usage", key="WORKLOAD")
        emit(record(None, (), symbolic=symbolic, conventions=rules), fmt=fmt, output=output, force=force)
        return
    from roofline import workload as descriptors
    from roofline.ops.tree import distinct

    work = descriptors.load(workload, tuple(changes or ()), ops=op)
    found = distinct(work.tree)
    emit(record(work.name, found, symbolic=symbolic, conventions=rules), fmt=fmt, output=output, force=force)

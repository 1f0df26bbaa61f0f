"""``roofline workload``: the catalogue of descriptors."""

from __future__ import annotations

from typing import Annotated

import typer

from roofline.cli.common import Force, Format, Output, emit
from roofline.errors import RooflineError

app = typer.Typer(help="The catalogue of workload descriptors.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_workloads(fmt: Format = None, output: Output = None, force: Force = False) -> None:
    """List the workloads that can be named without a path, and what each is."""
    from roofline import catalog
    from roofline.results.names import record
    from roofline.workload import load

    rows = [{"name": name, "description": load(name).description} for name in catalog.names("workloads")]
    emit(record("workloads", rows), fmt=fmt, output=output, force=force)


@app.command("show")
def show_workload(
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="A descriptor: a path or a name.")],
) -> None:
    """Print the descriptor itself, checked: the file to copy and change."""
    from roofline import catalog
    from roofline.workload import load

    load(workload)
    path = catalog.resolve("workloads", workload)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RooflineError(f"cannot read it: {error.strerror}", code="unreadable", file=str(path)) from error
    typer.echo(text, nl=False)

"""``roofline hardware``: the catalogue of devices, one device in full, and the check of a hardware file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from roofline.cli.common import Force, Format, Output, emit
from roofline.errors import RooflineError, nearest

app = typer.Typer(help="The catalogue of devices.", no_args_is_help=True, rich_markup_mode=None)

SORTS = ("name", "vendor", "bf16", "fp8", "bandwidth", "capacity", "ridge")


@app.command("list")
def list_hardware(
    pattern: Annotated[str, typer.Argument(metavar="[GLOB]", help="Only names, aliases or vendors that match.")] = "*",
    sort: Annotated[str, typer.Option("--sort", help=f"{', '.join(SORTS)}; numbers largest first.")] = "name",
    fmt: Format = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """List the devices that can be named: peaks (dense), memory, bandwidth and ridge."""
    from roofline import catalog
    from roofline import hardware as devices
    from roofline.results.hardware import listing

    if sort not in SORTS:
        raise RooflineError(
            f"cannot sort by {sort!r}: one of {', '.join(SORTS)}",
            code="bad-value",
            key="--sort",
            suggestions=nearest(sort, SORTS),
        )
    found = []
    for name in devices.catalogue():
        try:
            found.append(devices.load(name))
        except RooflineError as error:  # one bad file of the user's own hides no other
            print(f"roofline: left out: {error}", file=sys.stderr)
    record = listing(found, catalog.aliases("hardware"), pattern, sort)
    emit(record, fmt=fmt, output=output, force=force)


@app.command("show")
def show_hardware(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A device: a name, an alias or a YAML file.")],
    fmt: Format = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Show one device: every number, its source, and the ridge point of each dtype."""
    from roofline import hardware as devices

    emit(devices.as_json(devices.load(name)), fmt=fmt, output=output, force=force)


@app.command("lint")
def lint_hardware(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Hardware files, or names of the catalogue.")],
) -> None:
    """Check hardware files: arithmetic of the peaks, sparse or two-way figures, units, sources, unknown keys.

    Exit codes: 0 no errors (there may be warnings), 1 errors found, 2 a file that cannot be read or is no YAML.
    """
    worst = max([_lint(text) for text in files])
    if worst:
        raise typer.Exit(worst)


def _lint(text: str) -> int:
    """Print what is wrong with one file; the exit code that it deserves."""
    from roofline import catalog
    from roofline import hardware as devices

    try:
        file = Path(text) if Path(text).is_file() else catalog.resolve("hardware", text)
        if file.name == "aliases.yaml":
            typer.echo(f"{file}: the names that devices also go by, no device: skipped")
            return 0
        catalog.read_yaml(file)
    except RooflineError as error:
        where = ":".join(str(part) for part in (error.file or text, error.line, error.column) if part is not None)
        _say(where, "error", error.message, error.suggestions)
        return 2
    findings = devices.lint(file)
    for finding in findings:
        where = ":".join(str(part) for part in (file, finding.line, finding.column) if part is not None)
        _say(where, finding.severity, finding.message, finding.suggestions)
    if not findings:
        typer.echo(f"{file}: ok")
    return int(any(finding.severity == "error" for finding in findings))


def _say(where: str, severity: str, message: str, suggestions: tuple[str, ...]) -> None:
    hint = f" (did you mean {' or '.join(suggestions)}?)" if suggestions else ""
    typer.echo(f"{where}: {severity}: {message}{hint}")

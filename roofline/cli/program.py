"""The command line as typer sees it: the commands and the options of the program itself."""

from __future__ import annotations

import typer

from roofline.cli import analyze, explain, hardware, schema, validate, workload
from roofline.version import __version__

app = typer.Typer(
    name="roofline",
    help="What bounds this inference workload, how close are we to the limit, and what would change it?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"roofline {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Options of the program itself."""


app.command("analyze")(analyze.analyze)
app.command("explain")(explain.explain)
app.command("validate")(validate.validate)
app.add_typer(hardware.app, name="hardware")
app.add_typer(workload.app, name="workload")
app.command("schema")(schema.schema)


def invoke(arguments: list[str]) -> int:
    """Run a command line and return its exit code; every exception passes.

    Not ``app()``: that would turn Ctrl-C and a closed pipe into exit codes which a command may also return itself.
    """
    command = typer.main.get_command(app)
    try:
        with command.make_context("roofline", arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return 0

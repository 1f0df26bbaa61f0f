"""The program: its commands, and the one place where an error becomes a line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer

from roofline.cli import analyze, explain, hardware, schema, validate, workload
from roofline.errors import RooflineError
from roofline.version import __version__

EXIT_BAD_INPUT = 2
EXIT_CRASH = 70
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="roofline",
    help="What bounds this workload, how close are we to the limit, and did this commit make it worse?",
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


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 fine, 1 a check failed, 2 bad input, 3 nothing judged, 70 a crash, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    sys.exit(run(arguments))


def run(arguments: Sequence[str]) -> int:
    """The exit code of the command line ``arguments``."""
    as_json = wants_json(arguments)
    try:
        result = typer.main.get_command(app).main(list(arguments), prog_name="roofline", standalone_mode=False)
        sys.stdout.flush()
    except RooflineError as error:
        return report(error, as_json)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted(as_json)
    except BrokenPipeError:
        # the reader (head, less) has gone: nothing is wrong, and nothing more can be said on stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if hasattr(error, "format_message"):  # the parser's own complaint about the command line
            return report(_usage_error(error), as_json)
        return _crash(error, as_json)
    if result == EXIT_INTERRUPTED:  # the parser turns Ctrl-C into this code and says nothing
        return _interrupted(as_json)
    return result if isinstance(result, int) else 0


def _interrupted(as_json: bool) -> int:
    return report(RooflineError("interrupted", code="interrupted", exit_code=EXIT_INTERRUPTED), as_json)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON on stdout (errors are then JSON as well)."""
    for index, argument in enumerate(arguments):
        if argument == "--format" and arguments[index + 1 : index + 2] == ["json"]:
            return True
        if argument == "--format=json":
            return True
    return False


def report(error: RooflineError, as_json: bool) -> int:
    """Say what is wrong: one line on stderr, and with JSON asked for the error object on stdout."""
    if as_json:
        from roofline.results.files import dumps

        sys.stdout.write(dumps(error.as_json()))
        sys.stdout.flush()
    sys.stderr.write(f"roofline: {error}\n")
    return error.exit_code


def _usage_error(error: Any) -> RooflineError:
    message = str(error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    where = f" (see {context.command_path} --help)" if context is not None else ""
    text = message[:1].lower() + message[1:] if message[:1].isalpha() else message
    return RooflineError(text + where, code="usage", key=getattr(error, "option_name", None))


def _crash(error: Exception, as_json: bool) -> int:
    if os.environ.get("ROOFLINE_DEBUG"):
        raise error
    message = (
        f"internal error: {type(error).__name__}: {error}. This is a fault of roofline {__version__}: please report it "
        "with the command line and the output of the same command under ROOFLINE_DEBUG=1"
    )
    return report(RooflineError(message, code="crash", exit_code=EXIT_CRASH), as_json)

"""The program: the one place where an error becomes a line on stderr and an exit code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from roofline.cli.streams import Held, guarded, printable
from roofline.errors import RooflineError

EXIT_BAD_INPUT = 2
EXIT_CRASH = 70
EXIT_INTERRUPTED = 130

_MOST_DIGITS = 4
_PACKAGES = {"yaml": "pyyaml", "pynvml": "nvidia-ml-py"}
_SUGGESTED = re.compile(r"(?:\. Did you mean (?P<quoted>.+)\?|\s*\(Possible options: (?P<plain>.+)\))$")


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 fine, 1 a check failed, 2 bad input, 3 nothing judged, 70 a crash, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    sys.exit(run(arguments))


def run(arguments: Sequence[str]) -> int:
    """The exit code of the command line ``arguments``.

    What a command prints is held until it is done: on stdout stands a whole result or a whole error, and one place
    deals with a stdout that is full, closed, or a pipe whose reader has gone (head, less: nothing is wrong then).
    """
    as_json = wants_json(arguments)
    for name in ("COLUMNS", "LINES"):  # rich takes any digits for a size
        if len(os.environ.get(name, "")) > _MOST_DIGITS:
            del os.environ[name]
    with guarded() as out:
        try:
            try:
                code = _attempt(list(arguments), out, as_json)
                out.deliver()
            except RooflineError as error:  # stdout itself failed
                sys.stderr.write(f"roofline: {printable(str(error))}\n")
                return error.exit_code
        except BrokenPipeError:
            return 0
        except KeyboardInterrupt:  # while something was being said
            return EXIT_INTERRUPTED
    return code


def _attempt(arguments: list[str], out: Held, as_json: bool) -> int:
    """Run the command; every fault is reported."""
    try:
        # here and not above: Ctrl-C and a missing library are then reported like everything else
        from roofline.cli.program import invoke

        return invoke(arguments)
    except RooflineError as error:
        return report(error, out, as_json)
    except KeyboardInterrupt:
        return report(RooflineError("interrupted", code="interrupted", exit_code=EXIT_INTERRUPTED), out, as_json)
    except BrokenPipeError:  # -o named a pipe
        raise
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(str(error))
            return EXIT_BAD_INPUT
        return report(_explained(error), out, as_json)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON on stdout (errors are then JSON as well)."""
    for index, argument in enumerate(arguments):
        if argument == "--format" and arguments[index + 1 : index + 2] == ["json"]:
            return True
        if argument == "--format=json":
            return True
    return False


def report(error: RooflineError, out: Held, as_json: bool) -> int:
    """Say what is wrong: one line on stderr, and with JSON asked for the error object, and only it, on stdout."""
    sys.stderr.write(f"roofline: {printable(str(error))}\n")
    if as_json:
        from roofline.results.files import dumps

        out.seek(0)
        out.truncate()
        out.write(dumps(error.as_json()))
    return error.exit_code


def _explained(error: Exception) -> RooflineError:
    if hasattr(error, "format_message"):  # the parser's own complaint about the command line
        return _usage_error(error)
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing and missing.partition(".")[0] != "roofline":
        package = missing.partition(".")[0]
        return RooflineError(
            f"{package} is missing: pip install {_PACKAGES.get(package, package)}", code="missing-library", key=package
        )
    return _crash(error)


def _usage_error(error: Any) -> RooflineError:
    message = str(error.format_message()).rstrip(".")
    suggestions: list[str] = []
    found = _SUGGESTED.search(message)
    if found:
        message = message[: found.start()]
        suggestions = [word.strip("'\"") for word in (found["quoted"] or found["plain"]).split(", ")]
    context = getattr(error, "ctx", None)
    where = f" (see {context.command_path} --help)" if context is not None else ""
    text = message[:1].lower() + message[1:] if message[:1].isalpha() else message
    return RooflineError(text + where, code="usage", key=getattr(error, "option_name", None), suggestions=suggestions)


def _crash(error: Exception) -> RooflineError:
    if os.environ.get("ROOFLINE_DEBUG"):
        raise error
    from roofline.version import __version__

    message = (
        f"internal error: {type(error).__name__}: {error}. This is a fault of roofline {__version__}: please report it "
        "with the command line and the output of the same command under ROOFLINE_DEBUG=1"
    )
    return RooflineError(message, code="crash", exit_code=EXIT_CRASH)

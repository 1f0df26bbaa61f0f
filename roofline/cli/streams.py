"""stdout and stderr of the program: held back until a command is done, and written under one guard."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

from roofline.errors import RooflineError


class Held(io.StringIO):
    """Text on its way to a stream; asked about its terminal, it answers for that stream."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self.stream = stream

    def isatty(self) -> bool:
        """Whether the text goes to a terminal."""
        return self.stream is not None and self.stream.isatty()

    def fileno(self) -> int:
        """The descriptor of the stream; ``OSError`` where there is none."""
        return super().fileno() if self.stream is None else self.stream.fileno()

    def deliver(self) -> None:
        """Write what was held; raises ``BrokenPipeError`` for a reader that went, else ``RooflineError``."""
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        if not text:
            return
        if self.stream is None:
            raise RooflineError("cannot write the result: stdout is closed", code="unwritable")
        try:
            self.stream.write(text)
            self.stream.flush()
        except BrokenPipeError:
            _silence(self.stream)
            raise
        except OSError as error:
            _silence(self.stream)
            raise RooflineError(f"cannot write the result: {error.strerror or error}", code="unwritable") from error


class Forgiving:
    """stderr, where there is nowhere left to say that it cannot be written: what cannot be said is dropped."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream: TextIO = io.StringIO() if stream is None else stream

    def write(self, text: str) -> int:
        """Write, or drop."""
        try:
            return self._stream.write(text)
        except OSError:
            _silence(self._stream)
        return len(text)

    def flush(self) -> None:
        """Flush, or drop."""
        try:
            self._stream.flush()
        except OSError:
            _silence(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def guarded() -> Iterator[Held]:
    """stdout held back (deliver it), stderr forgiving, and both able to print every character as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    held = Held(sys.stdout)
    errors: Any = Forgiving(sys.stderr)
    with redirect_stdout(held), redirect_stderr(errors):
        yield held


def printable(text: str) -> str:
    """``text`` with control characters, line ends and what is no character as escapes: safe on a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _silence(stream: TextIO) -> None:
    """Point a stream that failed at nothing, or its last words would fail again when the interpreter ends."""
    try:
        target = stream.fileno()
    except OSError:
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, target)
    os.close(nothing)

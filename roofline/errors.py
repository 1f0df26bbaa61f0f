"""The one error type of the program: what is wrong, where, and the nearest right thing."""

from __future__ import annotations

from collections.abc import Iterable

SCHEMA = "roofline/error/1"


class RooflineError(Exception):
    """A fault of the input (or of a check) that a user can act on.

    ``code`` is a stable word for machines (``unknown-key``); ``message`` says what is wrong in one line;
    ``file``, ``line``, ``column`` (both from 1) and ``key`` say where; ``suggestions`` are the nearest
    right things, best first; ``exit_code`` is what the process ends with.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "bad-input",
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
        suggestions: Iterable[str] = (),
        exit_code: int = 2,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = " ".join(message.split())
        self.file = file
        self.line = line
        self.column = column
        self.key = key
        self.suggestions = tuple(suggestions)
        self.exit_code = exit_code

    def __str__(self) -> str:
        """``file:line:column: message (did you mean X or Y?)`` on one line."""
        places = [str(part) for part in (self.file, self.line, self.column) if part is not None]
        where = ":".join(places) + ": " if places else ""
        hint = f" (did you mean {' or '.join(self.suggestions)}?)" if self.suggestions else ""
        return " ".join(f"{where}{self.message}{hint}".split())

    def as_json(self) -> dict[str, object]:
        """The ``roofline/error/1`` object."""
        return {
            "schema": SCHEMA,
            "exit_code": self.exit_code,
            "error": {
                "code": self.code,
                "message": self.message,
                "file": self.file,
                "line": self.line,
                "column": self.column,
                "key": self.key,
                "suggestions": list(self.suggestions),
            },
        }


def nearest(word: str, choices: Iterable[str], n: int = 3) -> tuple[str, ...]:
    """Up to ``n`` of ``choices`` that look like ``word``, best first; empty where none does."""
    from difflib import get_close_matches  # 5 ms that only a failing run needs

    by_key = {choice.lower(): choice for choice in choices}
    return tuple(by_key[match] for match in get_close_matches(word.lower(), by_key, n=n, cutoff=0.6))

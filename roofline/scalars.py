"""What a scalar of a file may be, whatever the file is written in; and JSON objects read by those rules."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Final, NoReturn, TypeAlias

from roofline.errors import RooflineError

MAX_DEPTH: Final = 50

Scalar: TypeAlias = str | int | float | bool | None

_CONSTANTS: Final[dict[str, Scalar]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*(?:_[0-9]+)*)")
_FLOAT: Final = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*(?:_[0-9]+)*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_LONGEST_NUMBER: Final = 400
TOO_DEEP: Final = f"nested more than {MAX_DEPTH} levels deep"
# All that YAML does not call printable. Listed rather than negated: a negated class takes 10 ms to compile.
# With it what turns the direction of text around: what is read would not be what is seen.
UNPRINTABLE: Final = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)


def resolve_plain(text: str) -> Scalar:
    """The value of a plain (unquoted) scalar: null, true or false, an integer, a float, or the text itself.

    ``1_000`` is an integer and ``1e12`` a float; numbers with leading zeros, in other bases, or too large for a
    float stay text.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) > _LONGEST_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def json_object(text: str, name: str) -> dict[str, Any]:
    """The object that JSON text holds, its numbers as ``resolve_plain`` reads them; ``name`` is for errors.

    Raises ``RooflineError``: ``json-syntax``, ``duplicate-key``, ``not-a-mapping``, ``not-text``, ``too-deep``.
    """
    import json  # only what YAML cannot read needs it

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice = next(key for key, count in counts.items() if count > 1)
            raise RooflineError(f"key {twice[:60]!r} is there twice", code="duplicate-key", file=name)
        return found

    def constant(word: str) -> NoReturn:
        raise RooflineError(f"{word} is no number", code="json-syntax", file=name)

    try:
        data = json.loads(
            text, object_pairs_hook=mapping, parse_int=resolve_plain, parse_float=resolve_plain, parse_constant=constant
        )
    except json.JSONDecodeError as error:
        message = f"JSON syntax: {error.msg}"
        raise RooflineError(message, code="json-syntax", file=name, line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise RooflineError(TOO_DEEP, code="too-deep", file=name) from None
    if not isinstance(data, dict):
        raise RooflineError("no object at the top, where {...} is needed", code="not-a-mapping", file=name)
    _check_json(data, name)
    return data


def _check_json(value: Any, name: str, depth: int = 1) -> None:
    """Refuse what YAML text is refused for: control characters behind escapes, and deep nesting."""
    if isinstance(value, str) and (bad := UNPRINTABLE.search(value)):
        raise RooflineError(f"text with a character U+{ord(bad[0]):04X} in it", code="not-text", file=name)
    if not isinstance(value, (dict, list)):
        return
    if depth > MAX_DEPTH:
        raise RooflineError(TOO_DEEP, code="too-deep", file=name)
    for item in (*value, *value.values()) if isinstance(value, dict) else value:
        _check_json(item, name, depth + 1)

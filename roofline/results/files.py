"""Files of results: deterministic JSON, writes that never leave half a file, and care with what is there already."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roofline.errors import RooflineError

_SCHEMA = rb"roofline/[a-z][a-z-]*/[0-9]+"
_HEAD = re.compile(
    rb'\{\s*"schema"\s*:\s*"' + _SCHEMA + rb'"'  # JSON: the first key
    rb"|schema,[^\n]*\n" + _SCHEMA + rb","  # CSV: the first cell under the titles
    rb"|<!-- " + _SCHEMA + rb" -->\r?\n"  # markdown: the first line
)
_TAIL = re.compile(rb"\n# " + _SCHEMA + rb"\r?\n\Z")  # a table: the last line
_ENDS = 4096
_DESCRIPTORS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
_EXACT = 1e21


def dumps(record: Mapping[str, Any]) -> str:
    """JSON text of a record: ASCII, indented, in the order of the record, integers as integers, no NaN or infinity.

    ASCII is valid in every encoding of a terminal, and holds file names that are not text.
    """
    return json.dumps(_plain(record), indent=2, allow_nan=False) + "\n"


def number(value: float) -> int | float | None:
    """``value`` as a file of results has it: a whole number without a fraction, None where there is no number."""
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return number(value) if isinstance(value, float) else value


def read_record(path: Path) -> dict[str, Any]:
    """The record in a JSON file; raises ``RooflineError`` where there is none."""
    try:
        if not path.is_file():
            raise RooflineError("no such file" if not path.exists() else "not a file", code="no-record", file=str(path))
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RooflineError(f"cannot read it: {error.strerror}", code="unreadable", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise RooflineError("not a text file", code="no-record", file=str(path)) from error
    except json.JSONDecodeError as error:
        raise RooflineError(
            f"not JSON: {error.msg}", code="no-record", file=str(path), line=error.lineno, column=error.colno
        ) from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, str) or not schema.startswith("roofline/"):
        raise RooflineError(
            "not a roofline record: it has no schema roofline/.../N", code="no-record", file=str(path), key="schema"
        )
    return dict(data)


def check_target(path: Path, force: bool = False) -> None:
    """Raise the ``RooflineError`` that ``write`` would raise before it wrote: for use before long work."""
    try:
        _target(path, force)
    except OSError as error:
        raise _unwritable(path, error) from error


def write(path: Path, content: str | bytes, *, force: bool = False) -> None:
    """Write ``content`` to ``path`` whole or not at all; a device or a pipe is simply written to.

    Replaces a file that roofline wrote (it carries the mark of a schema) or an empty one; anything else needs
    ``force``. Raises ``RooflineError`` where it may not or cannot write, ``BrokenPipeError`` where the reader of a
    pipe has gone.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    try:
        target = _target(path, force)
        if target is None:
            with path.open("ab") as stream:
                stream.write(data)
        else:
            _replace(target, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> RooflineError:
    return RooflineError(f"cannot write it: {error.strerror or error}", code="unwritable", file=str(path))


def _target(path: Path, force: bool) -> Path | None:
    """The file to replace or create; None where ``path`` is to be written through."""
    try:
        # of the path as given: what /proc/self/fd/1 links to is no name that can be followed; a loop ends here
        found = path.stat()
    except FileNotFoundError:
        target = path.resolve()  # a link may lead to a file that does not exist yet
        if not target.parent.is_dir():
            raise RooflineError(f"no such folder: {target.parent}", code="unwritable", file=str(path)) from None
        _need(target.parent, os.W_OK | os.X_OK)
        return target
    if stat.S_ISDIR(found.st_mode):
        raise RooflineError("is a directory", code="unwritable", file=str(path))
    if not stat.S_ISREG(found.st_mode) or str(path).startswith(_DESCRIPTORS):
        _need(path, os.W_OK)
        return None
    if not force:
        if found.st_size and not _ours(path):
            raise RooflineError(
                "exists and was not written by roofline; --force replaces it", code="would-overwrite", file=str(path)
            )
        _need(path, os.W_OK)
    target = path.resolve()
    _need(target.parent, os.W_OK | os.X_OK)
    return target


def _need(path: Path, access: int) -> None:
    if not os.access(path, access):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _replace(target: Path, data: bytes) -> None:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    # a short name of its own: that of the target may be as long as names can be
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".roofline-", suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def mark(schema: str) -> str:
    """The last line of a table in a file: what tells later that roofline wrote it (a table names no schema)."""
    return f"# {schema}\n"


def _ours(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(_ENDS)
        stream.seek(max(path.stat().st_size - _ENDS, 0))
        tail = stream.read(_ENDS)
    return bool(_HEAD.match(head) or _TAIL.search(tail))

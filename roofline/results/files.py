"""Files of results: deterministic JSON, writes that never leave half a file, and care with what is there already."""

from __future__ import annotations

import json
import math
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roofline.errors import RooflineError

_MARKS = (b"roofline/", b"roofline-schema")
_HEAD = 4096


def dumps(record: Mapping[str, Any]) -> str:
    """JSON text of a record: indented, in the order of the record, integers as integers, no NaN or infinity."""
    return json.dumps(_plain(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 and abs(value) >= 1 else value
    return value


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


def write(path: Path, content: str | bytes, *, force: bool = False) -> None:
    """Write ``content`` to ``path`` whole or not at all.

    Replaces a file that roofline wrote (it carries the mark of a schema) or an empty one; anything else needs
    ``force``. Raises ``RooflineError`` where it may not or cannot write.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        _write(path, data, force)
    except OSError as error:
        raise RooflineError(f"cannot write it: {error.strerror or error}", code="unwritable", file=str(path)) from error


def _write(path: Path, data: bytes, force: bool) -> None:
    target = path.resolve()
    if target.is_dir():
        raise RooflineError("is a directory", code="unwritable", file=str(path))
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        target.write_bytes(data)  # /dev/stdout, a pipe: nothing to replace
        return
    if target.exists() and not force and not _ours(target):
        raise RooflineError(
            "exists and was not written by roofline; --force replaces it", code="would-overwrite", file=str(path)
        )
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
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


def _ours(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    return not head or any(mark in head for mark in _MARKS)

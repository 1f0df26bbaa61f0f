"""The catalogue: devices, workloads and models that come with the program, found by name or by path.

A *room* is a folder of the catalogue. It holds one YAML (or JSON) file a name, perhaps an ``aliases.yaml``, and
for models also folders with a ``config.json``. A name is matched as a whole or not at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeAlias, TypeVar

from roofline.documents import Document, near_files, parse_yaml, read_yaml
from roofline.errors import RooflineError, nearest

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = [
    "Document", "Room", "aliases", "find", "for_pydantic", "from_pydantic", "names", "parse_yaml", "read_yaml",
    "resolve", "roots",
]  # fmt: skip

Room: TypeAlias = Literal["hardware", "workloads", "workloads/models"]
_NOUNS: Final[dict[Room, str]] = {"hardware": "hardware", "workloads": "workload", "workloads/models": "model"}
_SUFFIXES: Final = (".yaml", ".json")
_PATH_SUFFIXES: Final = (".yaml", ".yml", ".json")
_PACKAGE: Final = Path(__file__).resolve().parent

_P = ParamSpec("_P")
_T = TypeVar("_T")


# ---------------------------------------------------------------- names


def roots() -> list[Path]:
    """Folders that hold the rooms, searched in order: those in ``$ROOFLINE_PATH``, then the program's own.

    The program's own is ``roofline/_data`` in an installed package and the checkout's top folder otherwise.
    """
    own = _PACKAGE / "_data"
    given = [Path(part) for part in os.environ.get("ROOFLINE_PATH", "").split(os.pathsep) if part]
    return [*given, own if own.is_dir() else _PACKAGE.parent]


def _listing(room: Room) -> dict[str, Path]:
    """The file of every name in a room; of two files of one name the first in search order."""
    found: dict[str, Path] = {}
    for root in roots():
        try:
            entries = sorted((root / room).iterdir())
        except OSError:  # a root need not have every room
            continue
        for suffix in _SUFFIXES:
            for entry in entries:
                if entry.suffix == suffix and entry.stem != "aliases" and _is_file(entry):
                    found.setdefault(entry.stem, entry)
        for entry in entries if room == "workloads/models" else ():
            if _is_file(entry / "config.json"):
                found.setdefault(entry.name, entry / "config.json")
    return {name: path for name, path in sorted(found.items()) if not name.startswith(".")}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a link into a closed folder
        return False


def names(room: Room) -> list[str]:
    """The canonical names in a room, sorted; aliases are not among them."""
    return list(_listing(room))


def find(room: Room, name: str) -> Path | None:
    """The file of exactly this canonical name, or None; never a file outside the room."""
    return _listing(room).get(name)


def aliases(room: Room) -> dict[str, str]:
    """Other names of a room's entries, from its ``aliases.yaml`` (alias: canonical name), sorted.

    A canonical name hides an alias of the same spelling. Raises ``RooflineError`` where an alias names nothing.
    """
    known = _listing(room)
    found: dict[str, str] = {}
    for root in roots():
        path = root / room / "aliases.yaml"
        if _exists(path):
            found = _read_aliases(path, room, known) | found
    return {alias: name for alias, name in sorted(found.items()) if alias not in known}


def _read_aliases(path: Path, room: Room, known: Mapping[str, Path]) -> dict[str, str]:
    document = read_yaml(path)
    for alias, name in document.data.items():
        if not isinstance(name, str) or name not in known:
            raise document.error(
                [alias],
                f"alias {alias!r} must stand for a name in {room}/, not {_shown(name)}",
                code="bad-alias",
                suggestions=nearest(str(name), known),
            )
    return document.data


def resolve(room: Room, text: str, *, base: Path | None = None) -> Path:
    """The file that a user means by ``text``: an existing path, or else a name or an alias of the catalogue.

    Only what looks like a path (has a separator, or ends in .yaml, .yml or .json) is looked for on disk, relative
    to ``base`` (default: the working directory), so that a folder called ``decode`` never hides the name; and
    ``decode.yaml`` without such a file still finds ``decode``. The result may be a folder where a path to one was
    given. Raises ``RooflineError``: ``unknown-hardware``, ``unknown-workload`` or ``unknown-model`` with the
    nearest names, ``missing-file`` where a path is meant.
    """
    path = Path(text) if base is None else base / text
    separated = "/" in text or os.sep in text
    if (separated or path.suffix.lower() in _PATH_SUFFIXES) and _exists(path):
        return path
    if separated:
        raise _missing(room, text, path)
    name = text[: -len(path.suffix)] if path.suffix.lower() in _PATH_SUFFIXES else text
    known = _listing(room)
    if name in known:
        return known[name]
    other = aliases(room)
    if name in other:
        return known[other[name]]
    if name != text:
        raise _missing(room, text, path)
    raise _unknown(room, text, path, [*known, *other])


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except PermissionError:
        return True  # there, but closed: reading it will say so
    except (OSError, ValueError):
        return False
    return True


def _near_names(text: str, choices: Iterable[str]) -> tuple[str, ...]:
    """Names that resemble the text, then names that contain it (``llama``)."""
    known = list(choices)
    containing = [name for name in known if len(text) > 2 and text.lower() in name]
    return tuple(dict.fromkeys([*nearest(text, known), *containing]))[:3]


def _missing(room: Room, text: str, path: Path) -> RooflineError:
    stem = path.name.removesuffix(path.suffix)
    near = (*near_files(path), *_near_names(stem, [*_listing(room), *aliases(room)]))
    return RooflineError(
        f"no such file, and no {_NOUNS[room]} of that name",
        code="missing-file", file=text, suggestions=dict.fromkeys(near),
    )  # fmt: skip


def _unknown(room: Room, text: str, path: Path, choices: Iterable[str]) -> RooflineError:
    noun = _NOUNS[room]
    # What lies here under that very name is only reached by a path.
    local = [f"{text}{suffix}" for suffix in _PATH_SUFFIXES if _exists(Path(f"{path}{suffix}"))]
    local += [f".{os.sep}{text}"] if text.strip(".") and _exists(path) else []
    near = [*local, *_near_names(text, choices)][:3]
    more = "" if near else f": `roofline {noun} list` shows them all"
    return RooflineError(f"unknown {noun} {_shown(text)}{more}", code=f"unknown-{noun}", suggestions=near)


# ---------------------------------------------------------------- faults that pydantic finds

_MUST_BE: Final = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "dataclass_type": "a mapping of keys to values",
}
Loc: TypeAlias = tuple[str | int, ...]
Fault: TypeAlias = Mapping[str, Any]


def for_pydantic(read: Callable[_P, _T]) -> Callable[_P, _T]:
    """A reader that raises ``RooflineError`` made fit for a pydantic validator, which wants ``ValueError``.

    ``from_pydantic`` takes the original apart again: message, code and suggestions survive.
    """
    from functools import wraps

    @wraps(read)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return read(*args, **kwargs)
        except RooflineError as error:
            raise ValueError(error) from error

    return wrapped


def from_pydantic(
    document: Document,
    error: ValidationError,
    allowed: Callable[[Loc], Iterable[str]] | None = None,
) -> RooflineError:
    """The one fault out of pydantic's list that helps most, as an error that points into the file.

    Unknown keys come before missing ones and those before wrong values, since a misspelt key is all three.
    ``allowed`` gives the keys that the mapping at a location takes, for the message and the nearest one.
    """
    faults = error.errors(include_url=False)
    fault = min(faults, key=lambda each: {"extra_forbidden": 0, "missing": 1}.get(each["type"], 2))
    loc = tuple(part for part in fault["loc"] if part != "[key]")
    if fault["type"] == "extra_forbidden":
        return _unknown_key(document, loc, sorted(allowed(loc[:-1])) if allowed else [])
    if fault["type"] == "union_tag_not_found":  # the key that says which of several kinds this is
        loc = (*loc, fault["ctx"]["discriminator"].strip("'"))
    if fault["type"] in ("missing", "union_tag_not_found"):
        parent = document.known(loc[:-1])
        where = f" in {'.'.join(map(str, parent))}" if parent else ""
        return document.error((*parent, loc[-1]), f"missing key {str(loc[-1])!r}{where}", code="missing-key")
    of: Literal["key", "value"] = "key" if fault["loc"][-1:] == ("[key]",) else "value"
    return _wrong_value(document, document.known(loc), fault, of)


def _unknown_key(document: Document, loc: Loc, choices: list[str]) -> RooflineError:
    key = str(loc[-1])
    parent = document.known(loc[:-1])
    where = f" in {'.'.join(map(str, parent))}" if parent else ""
    listed = f": allowed are {', '.join(choices)}" if choices else ""
    message = f"unknown key {key!r}{where}{listed}"
    return document.error((*parent, key), message, code="unknown-key", of="key", suggestions=nearest(key, choices))


def _wrong_value(document: Document, loc: Loc, fault: Fault, of: Literal["key", "value"]) -> RooflineError:
    context = fault.get("ctx", {})
    cause = context.get("error")
    original = cause.args[0] if isinstance(cause, ValueError) and cause.args else None
    if isinstance(original, RooflineError):
        inner = document.known((*loc, *(original.key or "").split(".")))
        return document.error(inner, original.message, code=original.code, of=of, suggestions=original.suggestions)
    if cause is not None:
        return document.error(loc, str(cause) or "is not valid", code="bad-value", of=of)
    choices = re.findall("'([^']*)'", str(context.get("expected", context.get("expected_tags", ""))))
    given = context.get("tag", fault["input"])
    message = _complaint(_subject(loc), fault, choices)
    if given is None:
        message += ", but is empty"
    elif not isinstance(given, (list, dict)) or fault["type"] in _MUST_BE:
        message += f", not {_shown(given)}"
    return document.error(loc, message, code="bad-value", of=of, suggestions=nearest(str(given), choices))


def _subject(loc: Loc) -> str:
    """What a message calls the value at a location: its key, for an item of a list with the list's."""
    if not loc:
        return "the file"
    return str(loc[-1]) if isinstance(loc[-1], str) else ".".join(map(str, loc[-2:]))


def _complaint(subject: str, fault: Fault, choices: list[str]) -> str:
    must = f"one of {', '.join(choices)}" if choices else _MUST_BE.get(fault["type"])
    if must:
        return f"{subject} must be {must}"
    for pydantic_calls_it in ("Input should", "Value should", "String should", "List should"):
        if fault["msg"].startswith(pydantic_calls_it):
            return f"{subject} must{fault['msg'].removeprefix(pydantic_calls_it)}"
    return f"{subject}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"


def _shown(value: object) -> str:
    """A value as it may stand in a message: short, and as YAML writes it."""
    if isinstance(value, (dict, list, tuple)):
        return "a mapping" if isinstance(value, dict) else "a list"
    import json  # only a failing run needs it

    text = repr(value) if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."

"""The catalogue: devices, workloads and models that come with the program, found by name or by path.

A *room* is a folder of the catalogue. It holds one YAML (or JSON) file a name, perhaps an ``aliases.yaml``, and
for models also folders with a ``config.json``. A name is matched as a whole or not at all,
in upper or lower case.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from roofline.documents import Document, near_files, parse_yaml, read_yaml
from roofline.errors import RooflineError, nearest

__all__ = [
    "Document", "Room", "aliases", "find", "names", "parse_yaml", "read_yaml",
    "resolve", "roots",
]  # fmt: skip

Room: TypeAlias = Literal["hardware", "workloads", "workloads/models"]
_NOUNS: Final[dict[Room, str]] = {"hardware": "hardware", "workloads": "workload", "workloads/models": "model"}
_SUFFIXES: Final = (".yaml", ".json")
_PATH_SUFFIXES: Final = (".yaml", ".yml", ".json")
_PACKAGE: Final = Path(__file__).resolve().parent


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
    if cased := _whatever_case(name, known, other):
        return cased
    if name != text:
        raise _missing(room, text, path)
    raise _unknown(room, text, path, [*known, *other])


def _whatever_case(name: str, known: Mapping[str, Path], other: Mapping[str, str]) -> Path | None:
    """The file whose whole name, or alias, differs from ``name`` only in upper and lower case; None for several."""
    files = {path for key, path in known.items() if key.lower() == name.lower()}
    files |= {known[key] for alias, key in other.items() if alias.lower() == name.lower()}
    return files.pop() if len(files) == 1 else None


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
    more = "" if near else f": {_all_of(room)}"
    return RooflineError(f"unknown {noun} {_shown(text)}{more}", code=f"unknown-{noun}", suggestions=near)


def _all_of(room: Room) -> str:
    """Where all names of a room are to be found: in a list that a command shows, or the few models here."""
    if room != "workloads/models":
        return f"`roofline {_NOUNS[room]} list` shows them all"
    listed = names(room)
    return f"known are {', '.join(listed[:20])}{', ...' if len(listed) > 20 else ''}"


def _shown(value: object) -> str:
    """A value as it may stand in a message: short, and as YAML writes it."""
    if isinstance(value, (dict, list, tuple)):
        return "a mapping" if isinstance(value, dict) else "a list"
    import json  # only a failing run needs it

    text = repr(value) if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."

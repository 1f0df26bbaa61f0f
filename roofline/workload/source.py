"""A descriptor's data with ``--set`` overrides in it; errors point at the file, or at the override that is to blame."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from roofline.documents import Document
from roofline.errors import RooflineError
from roofline.fields import shown
from roofline.scalars import resolve_plain


class Source:
    """The document of a descriptor after its overrides.

    ``data`` is what to read; ``error`` points into the file, or names the override that set the key.
    """

    def __init__(self, document: Document, overrides: Sequence[str] = ()) -> None:
        self.document = document
        self.data: dict[str, Any] = document.data
        self._set: dict[tuple[str, ...], str] = {}
        for text in overrides:
            self._override(text)

    def overridden(self, *loc: str) -> bool:
        """Whether an override set the value at ``loc`` or a part of it."""
        return any(path[: len(loc)] == loc for path in self._set)

    @property
    def changed(self) -> set[str]:
        """The keys at the top that overrides set, or set a part of."""
        return {path[0] for path in self._set}

    def _override(self, text: str) -> None:
        key, equals, value = text.partition("=")
        path = tuple(part.strip() for part in key.split("."))
        if not equals or not all(path):
            raise RooflineError(
                f"--set {text}: write --set KEY=VALUE, for instance --set batch=64", code="bad-override", key=key
            )
        if pair := re.match(r"\s*\{\s*([\w-]+)\s*:\s*([^,{}]*)", value):
            fix = f"--set {'.'.join(path)}.{pair[1]}={pair[2].strip() or 'VALUE'}"
            message = f"--set {text}: a mapping is set key by key"
            raise RooflineError(message, code="bad-override", key=key, suggestions=(fix,))
        target = self.data
        for part in path[:-1]:
            inner = target.get(part)
            if part == "precision" and isinstance(inner, str):
                inner = {"weights": inner}  # `precision: bf16` is short for a mapping, which an override may refine
            if inner is not None and not isinstance(inner, dict):
                raise RooflineError(
                    f"--set {text}: {part} is {shown(inner)} in the descriptor and has no keys to set",
                    code="bad-override", key=key,
                )  # fmt: skip
            target[part] = {} if inner is None else inner
            target = target[part]
        target[path[-1]] = resolve_plain(value.strip())
        self._set[path] = text

    @contextmanager
    def chosen_by(self, key: str) -> Iterator[None]:
        """Reads what goes with ``key``: where an override changed that, it is to blame for keys that do not fit it."""
        text = self._set.get((key,))
        try:
            yield
        except RooflineError as error:
            if text is None or error.file != self.document.name or error.code not in ("unknown-key", "missing-key"):
                raise
            message = f"--set {text}: does not go with the other keys of {error.file}: {error.message}"
            raise RooflineError(message, code=error.code, key=error.key, suggestions=error.suggestions) from None

    def error(
        self,
        loc: Sequence[str | int],
        message: str,
        *,
        code: str,
        of: Literal["key", "value"] = "value",
        suggestions: Iterable[str] = (),
    ) -> RooflineError:
        """An error at ``loc``; an override that set it, a part of it or what it is part of is to blame."""
        for path, text in self._set.items():
            shared = min(len(path), len(loc))
            if shared and tuple(loc[:shared]) == path[:shared]:
                key = ".".join(str(part) for part in loc)
                return RooflineError(f"--set {text}: {message}", code=code, key=key, suggestions=suggestions)
        return self.document.error(loc, message, code=code, of=of, suggestions=suggestions)

"""Hardware files of the catalogue with something changed."""

from pathlib import Path
from typing import Any

import yaml

from roofline.hardware import Finding, lint

CHECKOUT = Path(__file__).resolve().parents[1]
DELETE = object()


def written(folder: Path, name: str, edits: dict[str, Any]) -> Path:
    """A catalogue file with some values replaced (``memory/0/capacity``), added or deleted."""
    data = yaml.safe_load((CHECKOUT / "hardware" / f"{name}.yaml").read_text())
    for where, value in edits.items():
        *parents, last = where.split("/")
        at = data
        for part in parents:
            at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
        key = int(last) if isinstance(at, list) else last
        if value is DELETE:
            del at[key]
        else:
            at[key] = value
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def errors(path: Path) -> list[Finding]:
    return [finding for finding in lint(path) if finding.severity == "error"]

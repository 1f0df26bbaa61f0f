"""The reference corpus, which is not part of the repository: where it is, and how its tables are read.

``ROOFLINE_CORPUS`` names its folder; without that it is looked for in ``shared/reference`` beside the checkout.
"""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(os.environ.get("ROOFLINE_CORPUS") or Path(__file__).parents[2] / "shared" / "reference")
NO_CORPUS = "the reference corpus is not part of the repository: name its folder in ROOFLINE_CORPUS"

needs_corpus = (pytest.mark.corpus, pytest.mark.skipif(not (CORPUS / "golden.csv").is_file(), reason=NO_CORPUS))
"""Marks of tests that read the corpus: ``pytestmark = [*needs_corpus]``."""


@dataclass(frozen=True)
class Published:
    """A row of golden.csv: one published figure and the shape it belongs to."""

    id: str
    category: str
    hardware: str
    dtype: str
    workload: str
    metric: str
    value: float
    unit: str
    confidence: str
    shape: dict[str, Any]

    @property
    def op(self) -> str | None:
        """What kind of workload the row is about."""
        return self.shape.get("op")


@cache
def published() -> tuple[Published, ...]:
    """All rows of golden.csv."""
    return tuple(
        Published(
            **{key: row[key] for key in ("id", "category", "hardware", "dtype", "workload", "metric", "unit")},
            confidence=row["confidence"],
            value=float(row["value"]),
            shape=json.loads(row["shape_json"]),
        )
        for row in table("golden.csv")
    )


def table(name: str) -> list[dict[str, str]]:
    """The rows of a CSV file of the corpus, by column."""
    with (CORPUS / name).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def corpus_configs(*patterns: str) -> list[str]:
    """Names of corpus folders that hold a config.json; none where the corpus is absent."""
    found = [path.parent for pattern in patterns for path in CORPUS.glob(f"configs/{pattern}/config.json")]
    return sorted(str(path.relative_to(CORPUS / "configs")) for path in found)


@cache
def corpus_config(name: str) -> dict[str, Any]:
    """The config.json of a corpus folder."""
    config: dict[str, Any] = json.loads((CORPUS / "configs" / name / "config.json").read_text(encoding="utf-8"))
    return config

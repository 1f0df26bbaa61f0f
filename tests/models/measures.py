"""What the tests of models count, and where the reference corpus is."""

from __future__ import annotations

import csv
import json
import os
from functools import cache
from pathlib import Path

from roofline.ops import Node, Op
from roofline.ops.tree import total

CORPUS = Path(os.environ.get("ROOFLINE_CORPUS") or Path(__file__).parents[3] / "shared" / "reference")
NO_CORPUS = "the reference corpus is not part of the repository: name its folder in ROOFLINE_CORPUS"
REGENERATE = "(regenerate the corpus where the tools changed)"


def tensor_flops(tree: Node) -> int:
    """FLOPs on matrix engines: what torch's FlopCounterMode counts."""

    def of(op: Op) -> int:
        return sum(count for engine, count in op.arithmetic().items() if engine.unit == "tensor")

    return total(tree, of)


@cache
def truth() -> dict[tuple[str, str], list[tuple[dict, int]]]:
    """(model, quantity) -> (shape, value) of ground-truth.csv; empty where the corpus is absent."""
    path = CORPUS / "ground-truth.csv"
    rows: dict[tuple[str, str], list[tuple[dict, int]]] = {}
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                if row["value"].isdigit():
                    shape = json.loads(row["shape_json"])
                    rows.setdefault((row["model"], row["quantity"]), []).append((shape, int(row["value"])))
    return rows


def corpus_configs(*patterns: str) -> list[str]:
    """Names of corpus folders that hold a config.json."""
    found = [path.parent for pattern in patterns for path in CORPUS.glob(f"configs/{pattern}/config.json")]
    return sorted(str(path.relative_to(CORPUS / "configs")) for path in found)


def corpus_config(name: str) -> dict:
    return json.loads((CORPUS / "configs" / name / "config.json").read_text(encoding="utf-8"))

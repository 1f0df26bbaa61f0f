"""What the tests of models count."""

from __future__ import annotations

import csv
import json
from functools import cache

from roofline.ops import Node, Op
from roofline.ops.tree import total
from tests.reference import CORPUS

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

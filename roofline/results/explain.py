"""The record of an explanation, ``roofline/explain/1``: the formulas behind every number of some ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from roofline.ops.closed_form import ClosedForm, Formula, closed_form
from roofline.ops.tree import Leaf

SCHEMA = "roofline/explain/1"


def record(
    workload: str | None, found: Iterable[Leaf], *, symbolic: bool, conventions: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """The formulas of each distinct op of a workload, and the accounting rules when asked for."""
    ops = [_op(leaf, closed_form(leaf.op)) for leaf in found]
    rules = [{"rule": title, "text": text} for title, text in conventions]
    return {"schema": SCHEMA, "workload": workload, "symbolic": symbolic, "ops": ops, "conventions": rules}


def _op(leaf: Leaf, form: ClosedForm) -> dict[str, Any]:
    tensors = zip(leaf.op.tensors(), form.tensors.values(), strict=True)
    return {
        "path": leaf.name,
        "kind": leaf.op.kind,
        "about": leaf.op.about,
        "source": leaf.op.source,
        "count": leaf.count,
        "symbols": [
            {"symbol": symbol, "field": name, "value": value, "meaning": doc}
            for symbol, name, value, doc in form.symbols
        ],
        "arithmetic": {engine: _formula(formula) for engine, formula in form.arithmetic.items()},
        "tensors": [
            {
                "name": tensor.name,
                "role": tensor.role,
                "access": tensor.access,
                "dtype": tensor.dtype,
                "shape": shape,
                "traffic_bytes": _formula(formula),
            }
            for tensor, (formula, shape) in tensors
        ],
        "flops": _formula(form.flops),
        "bytes": _formula(form.bytes),
        "intensity": {
            "closed": form.intensity,
            "value": leaf.op.flops / leaf.op.traffic_bytes if leaf.op.traffic_bytes else None,
        },
    }


def _formula(formula: Formula) -> dict[str, Any]:
    return {"closed": formula.closed, "numbers": formula.numbers, "value": formula.value}

"""The record of an analysis, ``roofline/analysis/1``: what ``analyze`` computes and every renderer reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roofline.analysis import OpPrediction, Prediction
from roofline.engines import Engine
from roofline.ops.base import Tensor

SCHEMA = "roofline/analysis/1"


@dataclass(frozen=True, slots=True)
class Subject:
    """What was analysed and on what, in words: the head of one result."""

    workload: str
    source: str
    description: str
    hardware: str
    title: str
    chosen: str
    """Why this hardware: ``-H``, the descriptor, the environment or the default."""
    main: str
    """Name of the farthest memory, whose traffic is counted."""
    ceilings: Mapping[str, float] = field(default_factory=dict)
    unverified: Sequence[str] = ()
    """Ceilings whose figure is recalled and was not checked against a source."""
    new_tokens: int | None = None
    """Tokens that one execution produces, where the workload is a step of a language model."""


def record(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The record of several results, in the order given."""
    return {"schema": SCHEMA, "results": list(results)}


def result(
    subject: Subject,
    prediction: Prediction,
    *,
    what_if: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """One workload on one device. Numbers of an op are for one execution; ``count`` says how many there are."""
    return {
        "workload": {"name": subject.workload, "source": subject.source, "description": subject.description},
        "hardware": {
            "name": subject.hardware,
            "title": subject.title,
            "chosen": subject.chosen,
            "main": subject.main,
            "ceilings": dict(subject.ceilings),
            "unverified": list(subject.unverified),
        },
        "summary": _summary(prediction, subject.new_tokens),
        "ops": [_op(op, prediction) for op in prediction.ops],
        "what_if": dict(what_if or {}),
        "notes": list(notes),
    }


def _summary(prediction: Prediction, new_tokens: int | None) -> dict[str, Any]:
    return {
        "flops": prediction.flops,
        "flops_by_engine": _by_engine(prediction.arithmetic),
        "bytes": prediction.bytes,
        "intensity": prediction.intensity,
        "ridge": prediction.ridge,
        "bound": prediction.bound,
        "limiter": prediction.limiter,
        "co_limiters": list(prediction.co_limiters),
        "shares": dict(prediction.shares),
        "floor_s": prediction.floor_s,
        "lower_bound_s": prediction.lower_bound_s,
        "attainable_flops_per_s": prediction.flops / prediction.floor_s,
        "new_tokens": new_tokens,
        "launches": sum(op.count * op.op.launches for op in prediction.ops),
        "overhead_s": prediction.overhead_s,
        "resident": dict(prediction.resident),
        "resident_bytes": prediction.resident_bytes,
        "capacity_bytes": prediction.capacity_bytes,
        "fits": prediction.fits,
    }


def _op(op: OpPrediction, prediction: Prediction) -> dict[str, Any]:
    return {
        "path": op.name,
        "kind": op.op.kind,
        "count": op.count,
        "flops": op.flops,
        "flops_by_engine": _by_engine(op.arithmetic),
        "bytes": op.bytes,
        "intensity": op.intensity,
        "ridge": op.ridge,
        "bound": op.bound,
        "limiter": op.limiter,
        "co_limiters": list(op.co_limiters),
        "near_ridge": op.near_ridge,
        "headroom": op.headroom,
        "times_s": dict(op.times),
        "floor_s": op.floor_s,
        "share": prediction.share(op),
        "tensors": [_tensor(tensor) for tensor in op.op.tensors()],
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "role": tensor.role,
        "access": tensor.access,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "resident_bytes": tensor.resident_bytes,
        "traffic_bytes": tensor.traffic_bytes,
    }


def _by_engine(arithmetic: Mapping[Engine, float]) -> dict[str, float]:
    return {str(engine): count for engine, count in sorted(arithmetic.items(), key=lambda item: str(item[0]))}

"""A made-up machine: its true rates, its ceilings as measured, and ops whose declaration is wrong on purpose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from roofline.analysis import Rate
from roofline.measure.ceilings import MeasuredCeilings, Reading
from roofline.measure.devices import Device
from roofline.ops.attention import Attention
from roofline.ops.base import Op, Tensor
from roofline.ops.linear import Linear

BANDWIDTH = 30e9
PEAK = 400e9
LAUNCH = 2e-6


def ceilings(*, spread: float = 0.1, special: float | None = 5e9) -> MeasuredCeilings:
    """30 GB/s, 400 GFLOP/s in bf16, 200 in fp32: a ridge of 13.3 in bf16."""
    values = {
        "memory:read": BANDWIDTH,
        "memory:triad": BANDWIDTH,
        "memory:copy": BANDWIDTH,
        "memory:write": BANDWIDTH,
        "tensor:bf16": PEAK,
        "tensor:fp32": PEAK / 2,
        "vector:fp32": PEAK / 2,
    }
    if special is not None:
        values["special:fp32"] = special
    rates = {name: Rate(value, value * (1 - spread), value * (1 + spread)) for name, value in values.items()}
    return MeasuredCeilings("made up", rates, LAUNCH)


def seconds(op: Op, *, efficiency: float = 0.8) -> float:
    """What ``op`` really takes on this machine: the larger of its two times, at ``efficiency``, and one launch."""
    op = true_of(op)
    flops = sum(float(count) for engine, count in op.arithmetic().items() if engine.unit == "tensor")
    return max(op.traffic_bytes / BANDWIDTH, flops / PEAK) / efficiency + LAUNCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Overstated(Linear):
    """A linear whose declaration counts its weight four times."""

    def tensors(self) -> tuple[Tensor, ...]:
        x, weight, y = Linear.tensors(self)
        return (x, Tensor("weight", (4 * self.out_features, self.in_features), weight.dtype, "weight"), y)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongForm(Attention):
    """Attention whose bytes do not depend on the KV heads: as if all query heads shared one."""

    def tensors(self) -> tuple[Tensor, ...]:
        shared = (self.batch, 1, self.all_keys, self.head_dim)
        q, _, _, out = Attention.tensors(self)
        return (q, Tensor("k", shared, self.kv_dtype), Tensor("v", shared, self.kv_dtype), out)


def true_of(op: Op) -> Op:
    """The op that a wrong declaration stands for."""
    for wrong, right in ((Overstated, Linear), (WrongForm, Attention)):
        if isinstance(op, wrong):
            values: dict[str, Any] = {item.name: getattr(op, item.name) for item in fields(right)}
            return right(**values)
    return op


@dataclass
class FakeCalibration:
    """Stands for ``Calibration``: its readings are the machine's ceilings, and it notes what is touched."""

    device: Device
    known: MeasuredCeilings
    believed_cache: int = 1 << 20
    held_bytes: int = 0
    touched: list[tuple[str, ...]] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def ceilings(self) -> MeasuredCeilings:
        return self.known

    def touch(self, names: Iterable[str]) -> dict[str, Reading]:
        self.touched.append(tuple(names))
        rates = self.known.rates
        return {name: Reading(rates[name].value, rates[name].low, "fake") for name in names if name in rates}

    def around(self, touches: Sequence[Mapping[str, Reading]]) -> MeasuredCeilings:
        assert touches
        return self.known

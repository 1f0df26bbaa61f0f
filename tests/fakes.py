"""Devices made up for tests, so that no test depends on a number of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass, field

from roofline.analysis import MemoryCeiling, Rate
from roofline.engines import Engine
from roofline.errors import RooflineError


@dataclass
class FakeDevice:
    """Ceilings: 1000 FLOP/s on bf16, 100 on the vector engine, 20 special, 10 B/s: ridges 100 and 10."""

    name: str = "fake"
    rates: dict[str, float] = field(
        default_factory=lambda: {
            "tensor:bf16": 1000.0,
            "tensor:fp16": 1000.0,
            "vector:fp32": 100.0,
            "special:fp32": 20.0,
        }
    )
    bandwidth: float = 10.0
    capacity: int | None = 10**9
    launch_s: float | None = None

    @property
    def memory(self) -> tuple[MemoryCeiling, ...]:
        return (MemoryCeiling("hbm", ((0.0, Rate.exactly(self.bandwidth)),), self.capacity),)

    def engine(self, engine: Engine) -> Rate | None:
        if str(engine) in self.rates:
            return Rate.exactly(self.rates[str(engine)])
        if engine.unit == "tensor":
            raise RooflineError(f"no {engine}", code="no-engine")
        return None

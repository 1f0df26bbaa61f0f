"""Published times and the work that each is a time of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Self

from roofline.analysis import Datasheet, Prediction, analyse
from roofline.api import tree_of
from roofline.hardware import load
from roofline.ops import Leaf, Node, Op, leaves

ENDS = {
    "H100-SXM-80GB": "h100-sxm",
    "H100-SXM-80GB (HBM3 3.35 TB/s)": "h100-sxm",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "H100-80GB": "h100-sxm",
    "H100": "h100-sxm",
    # the fastest of the name, so that the floor stays one
    "H100 (implied)": "h100-sxm",
    "H100 (Hopper; variant not stated)": "h100-sxm",
    "H100 (service)": "h100-sxm",
    "H100-PCIe-80GB": "h100-pcie",
    "H200-SXM-141GB": "h200-sxm",
    "H20-96GB": "h20",
    "H800-SXM-80GB": "h800-sxm",
    "GH200-SXM": "gh200-144gb",  # the larger of two, with the faster memory
    "B200-SXM": "b200-sxm",
    "B200": "b200-sxm",
    "B300-SXM": "b300-sxm",
    "GB200": "gb200",
    "A100-SXM-80GB": "a100-sxm-80gb",
    "A100-SXM-80GB (power-limited 330 W)": "a100-sxm-80gb",
    "NVIDIA A100-SXM4-80GB": "a100-sxm-80gb",
    "A100-80GB": "a100-sxm-80gb",
    "A100": "a100-sxm-80gb",
    "A100-PCIe": "a100-pcie-80gb",
    "L40S": "l40s",
    "A10": "a10",
    "RTX3090": "rtx-3090",
    "RTX4090": "rtx-4090",
    "RTX6000Ada": "rtx-6000-ada",
    "M1Max-24c": "m1-max",  # fewer cores, the same memory
    "M1Max-32c": "m1-max",
    "M2Ultra-76c": "m2-ultra",
    "M3Max-40c": "m3-max",
    "MI250X-1GCD": "mi250x",
    "MI300X": "mi300x",
    "MI325X": "mi325x",
    "MI355X": "mi355x",
    "Gaudi2": "gaudi2",
    "Gaudi3": "gaudi3",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200-sxm",
    "l40s": "l40s",
}
"""Devices as the corpus calls them, without the count before them (``4x H100-SXM-80GB``)."""


def device_of(name: str) -> tuple[str, int] | None:
    """The canonical name and how many of them; None for a device that is not in the catalogue."""
    count, times, rest = name.partition("x ")
    single = ENDS.get(name)
    if single is None and times and count.isdigit() and rest in ENDS:
        return ENDS[rest], int(count)
    return None if single is None else (single, 1)


@cache
def datasheet(device: str) -> Datasheet:
    """The ceilings of a device."""
    return Datasheet(load(device))


@dataclass(frozen=True)
class Measured:
    """A published time of ``work``, done ``times`` times, spread over ``devices`` of one kind."""

    row: str
    device: str
    work: Op | Node
    seconds: float
    devices: int = 1
    times: float = 1

    @cached_property
    def tree(self) -> Node:
        """The work as a tree."""
        return tree_of(self.work)

    @property
    def leaves(self) -> list[Leaf]:
        """Its ops."""
        return list(leaves(self.tree))

    @cached_property
    def prediction(self) -> Prediction:
        """What we say of the work, once, on one device."""
        return analyse(self.tree, datasheet(self.device))

    def with_work(self, work: Op | Node) -> Self:
        """Other work on the same device."""
        return replace(self, work=work)

    @property
    def floor_s(self) -> float:
        """What no kernel beats: the floor of one op after the other, spread over the devices."""
        return self.times * self.prediction.floor_s / self.devices

    @property
    def lower_bound_s(self) -> float:
        """What no program beats, however it overlaps, spread over the devices."""
        return self.times * self.prediction.lower_bound_s / self.devices

    @property
    def fraction(self) -> float:
        """Floor over measured time: the fraction of the roof that a kernel reached."""
        return self.floor_s / self.seconds

    @property
    def memory_s(self) -> float:
        """The part of the floor that its bytes take."""
        return self.times * self.prediction.bytes / datasheet(self.device).memory[0].best / self.devices


def median(values: Iterable[float]) -> float:
    """The middle one; the upper of two."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]

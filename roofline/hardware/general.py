"""Rules for a device whose compute capability the tables do not know: what most devices have in common.

They only warn: the device may be the first of its kind. The last rule says what could not be checked at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from roofline.errors import nearest
from roofline.hardware import rates
from roofline.hardware.reading import Problem
from roofline.hardware.spec import Hardware, Link
from roofline.quantities import si

TOLERANCE: Final = 0.06
"""Around the factor of two that a sparse figure, or both directions, make."""

_WITHOUT_CAPABILITY: Final = ("Intel", "Google", "AWS", "Apple")
"""Vendors whose devices have no compute capability."""


def is_known(hardware: Hardware) -> bool:
    """Whether the tables have the rates of its compute capability."""
    return hardware.compute_capability in rates.TENSOR_RATES


def ratios_are_usual(hardware: Hardware) -> Iterator[Problem]:
    """No dtype at exactly twice what it usually runs at beside 16 bits, and no matrix engine far beyond the lanes."""
    peaks = hardware.peaks
    full = next((peaks[name] for name in ("tensor:bf16", "tensor:fp16") if name in peaks), None)
    if is_known(hardware) or full is None:
        return
    for name, peak in peaks.items():
        usual = rates.USUAL_MULTIPLES.get(peak.engine.dtype)
        if peak.engine.unit != "tensor" or peak.engine.accumulate == "fp16" or usual is None or peak is full:
            continue
        ratio = peak.value / full.value
        shown = f"{name} is {ratio:.3g} times {full.engine}, where {usual:.3g} is usual"
        if _twice(ratio / usual) and peak.engine.dtype != "tf32":  # Trainium runs tf32 as fast as bf16
            yield Problem(("peaks", name, "value"), f"{shown}: is it sparse?", "sparse", "warning")
        elif _twice(usual / ratio) and peak.engine.dtype in ("tf32", "fp16"):
            message = f"{shown}: is {full.engine} sparse?"
            yield Problem(("peaks", str(full.engine), "value"), message, "sparse", "warning")
    lanes = peaks.get("vector:fp32")
    if lanes and full.value > rates.LARGEST_OVER_LANES * lanes.value:
        message = f"{full.engine} is {full.value / lanes.value:.3g} times vector:fp32: is it sparse?"
        yield Problem(("peaks", str(full.engine), "value"), message, "sparse", "warning")


def _twice(ratio: float) -> bool:
    return abs(ratio / 2 - 1) <= TOLERANCE


def links_are_usual(hardware: Hardware) -> Iterator[Problem]:
    """NVLink by the generation in its kind, and no link faster than any one way that is known."""
    for i, link in enumerate(hardware.links):
        most, what = _most(hardware, link)
        if link.bandwidth > 1.05 * most:
            both = "both directions" if _twice(link.bandwidth / most) else "the sum of both directions or of devices"
            message = f"{si(link.bandwidth, 'B/s')}, where {what} has {si(most, 'B/s')} at most in one: is it {both}?"
            yield Problem(("links", i, "bandwidth"), message, "bidirectional", "warning")


def _most(hardware: Hardware, link: Link) -> tuple[float, str]:
    """The most that such a link has in one direction, and what it is called."""
    words = f"{link.name} {link.kind or ''}"
    if "nvlink" not in words.lower() or "C2C" in words or hardware.compute_capability in rates.NVLINK:
        return rates.FASTEST_LINK, "a link"
    generation = re.search(r"nvlink[ -]?(\d)", words, re.IGNORECASE)
    if generation and generation[1] in rates.NVLINK_GENERATION:
        return rates.NVLINK_GENERATION[generation[1]], f"NVLink {generation[1]}"
    return rates.NVLINK_GENERATION["4"], "NVLink up to 4 (`kind` may name a later one)"


def all_was_checked(hardware: Hardware) -> Iterator[Problem]:
    """What the tables do not know was not compared with them."""
    capability, vendor = hardware.compute_capability, hardware.vendor
    if is_known(hardware) or (capability is None and vendor in _WITHOUT_CAPABILITY):
        return
    if all(peak.engine.unit != "tensor" for peak in hardware.peaks.values()):
        return  # the tables are of tensor engines
    why = f"compute capability {capability!r} is not known" if capability else "the compute_capability is missing"
    message = f"{why}: which engines there are, their rates per clock and their exact ratios were not checked"
    near = nearest(capability, rates.TENSOR_RATES) if capability else ()
    yield Problem(("compute_capability",), message, "not-checked", "warning", suggestions=near)

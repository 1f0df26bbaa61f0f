"""The rules that a hardware file must keep: each looks at a valid spec and names what cannot be right.

They exist because spec tables go wrong in a few ways, over and over: the sparse figure of a datasheet taken for the
dense one, both directions of a link taken for one, a factor of 1000 or of 8, GB for GiB, one clock for all engines,
engines that a device does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from roofline.engines import Engine
from roofline.errors import RooflineError, nearest
from roofline.hardware import rates
from roofline.hardware.general import all_was_checked, links_are_usual, ratios_are_usual
from roofline.hardware.reading import Loc, Problem
from roofline.hardware.spec import SPARE_CLOCK, Hardware, Link, MemoryLevel, Peak, Sourced
from roofline.quantities import binary, si

CHECKED_TOLERANCE: Final = 0.02
LOOSE_TOLERANCE: Final = 0.1
RATIO_TOLERANCE: Final = 0.06
"""Datasheets round: ratios of two figures of one device are off by up to a few percent."""


def problems(hardware: Hardware) -> list[Problem]:
    """Everything that the rules find, in the order of the rules."""
    return [problem for rule in RULES for problem in rule(hardware)]


# ---------------------------------------------------------------- sources


def _sourced(hardware: Hardware) -> Iterator[tuple[Loc, Sourced]]:
    """Every number that has a source, with its place."""
    yield ("units",), hardware.units
    for name, clock in hardware.clocks.items():
        yield ("clocks", name), clock
    for name, peak in hardware.peaks.items():
        yield ("peaks", name), peak
    for i, level in enumerate(hardware.memory):
        yield ("memory", i), level
    for i, link in enumerate(hardware.links):
        yield ("links", i), link
    if hardware.power:
        yield ("power",), hardware.power
    if hardware.launch_overhead:
        yield ("launch_overhead",), hardware.launch_overhead


def sources_are_listed(hardware: Hardware) -> Iterator[Problem]:
    """A source of one word is a key of ``sources``, and each of those is used."""
    used: set[str] = set()
    for loc, sourced in _sourced(hardware):
        for source in sourced.source:
            used.add(source)
            if source not in hardware.sources and re.fullmatch(r"[\w.-]+", source):
                near = nearest(source, hardware.sources)
                message = f"source {source!r} is not among the file's sources"
                yield Problem((*loc, "source"), message, "unknown-source", suggestions=near)
    for key in hardware.sources:
        if key not in used:
            yield Problem(("sources", key), f"source {key!r} is not used", "unused-source", "warning", "key")


# ---------------------------------------------------------------- peaks


def peaks_follow_from_clocks(hardware: Hardware) -> Iterator[Problem]:
    """Units x rate per clock x clock gives the peak: within 2 % where that is an independent check."""
    for name, peak in hardware.peaks.items():
        loc: Loc = ("peaks", name)
        if peak.clock and peak.clock not in hardware.clocks:
            near = nearest(peak.clock, hardware.clocks)
            yield Problem((*loc, "clock"), f"no clock is called {peak.clock!r}", "unknown-clock", suggestions=near)
            continue
        computed = hardware.computed_peak(peak)
        if computed is None:
            if peak.checked:
                message = f"{name} is checked, but its per_unit_per_clock or its clock is missing"
                yield Problem((*loc, "checked"), message, "unchecked")
            continue
        problem = _compare(hardware, loc, peak, computed)
        if problem:
            yield problem
        if peak.checked == "disputed" and not hardware.notes:
            yield Problem((*loc, "checked"), f"{name} is disputed, but no note says how", "unexplained")


def _compare(hardware: Hardware, loc: Loc, peak: Peak, computed: float) -> Problem | None:
    ratio = peak.value / computed
    allowed = CHECKED_TOLERANCE if peak.checked == "independent" else LOOSE_TOLERANCE
    if abs(ratio - 1) <= allowed:
        return None
    clock = hardware.clock_of(peak)
    assert clock is not None  # computed from it
    units = f"{hardware.units.count} {hardware.units.kind} x {peak.per_unit_per_clock} x {si(clock.value, 'Hz', 4)}"
    shown = f"{si(peak.value, 'FLOP/s', 4)} is {_times(ratio)} {units} = {si(computed, 'FLOP/s', 4)}"
    if 1.8 < ratio < 2.2:
        return Problem((*loc, "value"), f"{shown}: it looks sparse, and peaks are dense", "sparse")
    return Problem((*loc, "value"), shown, "wrong-peak")


def _times(ratio: float) -> str:
    if 1.8 < ratio < 2.2:
        return "twice"
    if ratio >= 2.2 or ratio < 0.9:
        return f"{ratio:.3g} times"
    return f"{abs(ratio - 1):.1%} {'over' if ratio > 1 else 'under'}".replace("%", " %")


def engines_exist(hardware: Hardware) -> Iterator[Problem]:
    """A tensor engine is one that parts of this compute capability have."""
    known = rates.TENSOR_RATES.get(hardware.compute_capability or "")
    for name, peak in hardware.peaks.items() if known else ():
        if known and peak.engine.unit == "tensor" and peak.engine.dtype not in known.multiples:
            has = ", ".join(known.multiples)
            message = f"compute capability {hardware.compute_capability} has tensor engines for {has}; not for "
            yield Problem(("peaks", name), message + peak.engine.dtype, "no-such-engine", of="key")


def peaks_are_within_reach(hardware: Hardware) -> Iterator[Problem]:
    """A tensor peak is no more than the units can do per clock, whatever rate the file gives."""
    known = rates.TENSOR_RATES.get(hardware.compute_capability or "")
    if known is None or not hardware.clocks:
        return
    fastest = max(clock.value for clock in hardware.clocks.values())
    for name, peak in hardware.peaks.items():
        rate = known.rate(peak.engine.dtype) if peak.engine.unit == "tensor" else None
        if rate is None or peak.value <= (1 + LOOSE_TOLERANCE) * hardware.units.count * rate * fastest:
            continue
        message = (
            f"{si(peak.value, 'FLOP/s', 4)} is more than {hardware.units.count} {hardware.units.kind} of compute "
            f"capability {hardware.compute_capability} can reach at {si(fastest, 'Hz', 4)}: "
            f"{si(hardware.units.count * rate * fastest, 'FLOP/s', 4)} dense; is it sparse?"
        )
        yield Problem(("peaks", name, "value"), message, "sparse")


def peaks_keep_their_ratios(hardware: Hardware) -> Iterator[Problem]:
    """fp8 to bf16, tf32 to bf16 ... stand as the compute capability says, clocks known or not."""
    known = rates.TENSOR_RATES.get(hardware.compute_capability or "")
    full = next(
        (hardware.peaks[n] for n in ("tensor:fp16+fp16", "tensor:bf16", "tensor:fp16") if n in hardware.peaks), None
    )
    if known is None or full is None:
        return
    halved = full.engine.accumulate == "fp16"
    for name, peak in hardware.peaks.items():
        multiple = known.multiples.get(peak.engine.dtype)
        if peak.engine.unit != "tensor" or peak.engine.dtype == "fp64" or multiple is None or peak is full:
            continue
        half = halved and peak.engine.dtype in rates.GEFORCE_HALVED and peak.engine.accumulate == "fp32"
        expected = multiple / 2 if half else multiple
        ratio = peak.value / full.value
        if abs(ratio / expected - 1) <= RATIO_TOLERANCE:
            continue
        shown = f"{name} is {ratio:.3g} times {full.engine}, where {expected:.3g} is right"
        if 1.8 < ratio / expected < 2.2:
            yield Problem(("peaks", name, "value"), f"{shown}: it looks sparse", "sparse")
        elif 0.45 < ratio / expected < 0.55:
            yield Problem(("peaks", str(full.engine), "value"), f"{shown}: {full.engine} looks sparse", "sparse")
        else:
            yield Problem(("peaks", name, "value"), shown, "wrong-ratio")


def geforce_is_halved(hardware: Hardware) -> Iterator[Problem]:
    """GeForce runs fp32 accumulate at half rate, and block-scaled fp8 at the full one."""
    if hardware.compute_capability not in rates.GEFORCE_HALF_RATE:
        return
    if "GeForce" in hardware.title:
        known = rates.TENSOR_RATES[hardware.compute_capability]
        for dtype in ("bf16", "fp16"):
            peak = hardware.peaks.get(f"tensor:{dtype}")
            clock = hardware.clock_of(peak) if peak else None
            if peak and clock and peak.value > 0.75 * hardware.units.count * known.full * clock.value:
                message = (
                    f"GeForce runs fp32 accumulate at half rate: {si(peak.value, 'FLOP/s', 4)} is tensor:fp16+fp16"
                )
                yield Problem(("peaks", f"tensor:{dtype}", "value"), message, "accumulate")
    throttled = "tensor:fp8+fp16" in hardware.peaks and "tensor:fp4" in hardware.peaks
    if throttled and "tensor:mxfp8" not in hardware.peaks:
        message = "fp8 is at half rate here and block-scaled fp8 is not: list tensor:mxfp8 as well"
        yield Problem(("peaks",), message, "missing-mxfp8", "warning", "key")


def peaks_are_plausible(hardware: Hardware) -> Iterator[Problem]:
    """Between 10 GFLOP/s and 200 PFLOP/s; anything else is a slip of the unit."""
    for name, peak in hardware.peaks.items():
        if not 10e9 <= peak.value <= 200e15:
            message = f"{si(peak.value, 'FLOP/s')} cannot be one device's {name}: is the unit right?"
            yield Problem(("peaks", name, "value"), message, "unit-slip")


# ---------------------------------------------------------------- clocks, power, launches


def clocks_are_plausible(hardware: Hardware) -> Iterator[Problem]:
    """Between 100 MHz and 7 GHz."""
    for name, clock in hardware.clocks.items():
        if not 100e6 <= clock.value <= 7e9:
            message = f"{si(clock.value, 'Hz')} is no clock of a processor: is the unit right?"
            yield Problem(("clocks", name, "value"), message, "unit-slip")


def two_clocks(hardware: Hardware) -> Iterator[Problem]:
    """Hopper and datacenter Blackwell rate their tensor engines at a lower clock than their FMA lanes."""
    if hardware.compute_capability not in rates.TWO_CLOCKS:
        return
    tensor, vector = (hardware.clocks.get(unit, hardware.clocks.get(SPARE_CLOCK)) for unit in ("tensor", "vector"))
    if tensor and vector and tensor.value == vector.value:
        key = "vector" if "vector" in hardware.clocks else SPARE_CLOCK
        message = (
            f"one clock for tensor and vector engines: compute capability {hardware.compute_capability} rates them at "
            "two (an H100 SXM at 1830 and 1980 MHz)"
        )
        yield Problem(("clocks", key), message, "one-clock", of="key")


def power_and_launch_are_plausible(hardware: Hardware) -> Iterator[Problem]:
    """1 W to 5 kW, and 0.1 us to 1 ms."""
    if hardware.power and not 1 <= hardware.power.value <= 5000:
        message = f"{si(hardware.power.value, 'W')} is no power of one device: is the unit right?"
        yield Problem(("power", "value"), message, "unit-slip")
    overhead = hardware.launch_overhead_s
    if overhead is not None and not 1e-7 <= overhead <= 1e-3:
        message = f"{si(overhead, 's')} is no launch overhead: is the unit right?"
        yield Problem(("launch_overhead", "value"), message, "unit-slip")


# ---------------------------------------------------------------- memory


def memory_is_plausible(hardware: Hardware) -> Iterator[Problem]:
    """The main memory has a size and a rate that something has been built with."""
    main = hardware.main
    if main.bandwidth is None or main.scope != "device":
        message = "the first level is the main memory, and must have the bandwidth of the whole device"
        yield Problem(("memory", 0), message, "no-bandwidth")
        return
    if not 1e9 <= hardware.bandwidth <= 50e12:
        message = f"{si(hardware.bandwidth, 'B/s')} is no bandwidth of one device's memory: is the unit right?"
        yield Problem(("memory", 0, "bandwidth"), message, "unit-slip")
    if main.capacity is not None and not 1 << 30 <= main.capacity <= 8 << 40:
        message = f"{binary(main.capacity)} is no capacity of one device's memory: is the unit right?"
        yield Problem(("memory", 0, "capacity"), message, "unit-slip")
    if main.capacity is not None and main.usable is not None and main.usable > main.capacity:
        yield Problem(("memory", 0, "usable"), "more is usable than there is", "wrong-capacity")
    yield from _kind_has_such_bandwidth(main, hardware.bandwidth)
    yield from _name_says_its_size(hardware, main)


def _kind_has_such_bandwidth(main: MemoryLevel, bandwidth: float) -> Iterator[Problem]:
    words = re.findall(r"[A-Z0-9]+", (main.kind or "").upper())
    kind = next((word for word in words if word in rates.MEMORY_BANDWIDTH), None)
    if kind is None:
        return
    slowest, fastest = rates.MEMORY_BANDWIDTH[kind]
    if bandwidth > fastest:
        message = f"{main.kind} has not been built with {si(bandwidth, 'B/s')}: {si(fastest, 'B/s')} at most"
        yield Problem(("memory", 0, "bandwidth"), message, "wrong-bandwidth")
    elif bandwidth < slowest:
        message = f"{si(bandwidth, 'B/s')} is slow for {main.kind} (from {si(slowest, 'B/s')}): is the kind right?"
        yield Problem(("memory", 0, "kind"), message, "wrong-kind", "warning")


def _name_says_its_size(hardware: Hardware, main: MemoryLevel) -> Iterator[Problem]:
    for text in (hardware.name, hardware.title):
        said = re.search(r"(\d+) ?GB\b", text, re.IGNORECASE)
        if said and main.capacity is not None and main.capacity != int(said[1]) << 30:
            message = f"{binary(main.capacity)}, where {text!r} says {said[1]} GB"
            yield Problem(("memory", 0, "capacity"), message, "wrong-capacity")
            return


def nearer_is_faster(hardware: Hardware) -> Iterator[Problem]:
    """Levels stand from the farthest to the nearest, each faster than the one before, and have their own names."""
    before = 0.0
    seen: set[str] = set()
    for i, level in enumerate(hardware.memory):
        if level.name in seen:
            yield Problem(("memory", i, "name"), f"a second level called {level.name!r}", "duplicate-name")
        seen.add(level.name)
        if level.bandwidth is not None and level.bandwidth <= before:
            message = f"{level.name} is no faster than the level before it: list the farthest first"
            yield Problem(("memory", i, "bandwidth"), message, "wrong-order")
        before = max(before, level.bandwidth or 0)


# ---------------------------------------------------------------- links


def links_are_one_way(hardware: Hardware) -> Iterator[Problem]:
    """A link is one direction of one device, and no faster than its generation."""
    seen: set[str] = set()
    for i, link in enumerate(hardware.links):
        if link.name in seen:
            yield Problem(("links", i, "name"), f"a second link called {link.name!r}", "duplicate-name")
        seen.add(link.name)
        if not 1e7 <= link.bandwidth <= 10e12:
            message = f"{si(link.bandwidth, 'B/s')} is no bandwidth of one device's link: is the unit right?"
            yield Problem(("links", i, "bandwidth"), message, "unit-slip")
        most = _fastest_link(hardware, link)
        if most is None or link.bandwidth <= 1.05 * most:
            continue
        both = ": that is both directions" if 1.9 < link.bandwidth / most < 2.1 else ""
        kind = link.kind or link.name
        message = f"{si(link.bandwidth, 'B/s')}{both}; {kind} has {si(most, 'B/s')} in one"
        yield Problem(("links", i, "bandwidth"), message, "bidirectional")


def _fastest_link(hardware: Hardware, link: Link) -> float | None:
    kind = link.kind or ""
    if pcie := re.search(r"(\d)(?:\.0)? ?x(\d+)", kind):
        lane = rates.PCIE_LANE.get(pcie[1])
        return lane * int(pcie[2]) if lane else None
    if ethernet := re.search(r"(\d+) x (\d+) GbE", kind):
        return int(ethernet[1]) * int(ethernet[2]) * 1e9 / 8
    if "C2C" in kind:
        return rates.NVLINK_C2C
    return rates.NVLINK.get(hardware.compute_capability or "") if link.name == "nvlink" else None


def measured_ceilings_exist(hardware: Hardware) -> Iterator[Problem]:
    """A measured ceiling is one of an engine, a memory level or a link of this device."""
    known = {level.name for level in hardware.memory} | {link.name for link in hardware.links} | {"launch"}
    for name in hardware.measured.ceilings if hardware.measured else ():
        loc: Loc = ("measured", "ceilings", name)
        try:
            if ":" in name:
                Engine.parse(name)
                continue
        except RooflineError as error:
            yield Problem(loc, error.message, error.code, of="key", suggestions=error.suggestions)
            continue
        if name.partition(".")[0] not in known:
            message = f"{name!r} is no engine, memory level or link of this device"
            yield Problem(loc, message, "unknown-ceiling", of="key", suggestions=nearest(name, sorted(known)))


RULES: Final[tuple[Callable[[Hardware], Iterator[Problem]], ...]] = (
    sources_are_listed,
    peaks_are_plausible,
    engines_exist,
    peaks_follow_from_clocks,
    peaks_are_within_reach,
    peaks_keep_their_ratios,
    geforce_is_halved,
    clocks_are_plausible,
    two_clocks,
    power_and_launch_are_plausible,
    memory_is_plausible,
    nearer_is_faster,
    links_are_one_way,
    ratios_are_usual,
    links_are_usual,
    all_was_checked,
    measured_ceilings_exist,
)

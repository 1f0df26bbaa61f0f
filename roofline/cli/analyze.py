"""``roofline analyze``: what bounds a workload on a device, by how much, and what would change it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.common import Force, Format, HardwareNames, OpGlob, Output, Set, Verbose, emit, ready

if TYPE_CHECKING:
    from roofline.hardware import Hardware
    from roofline.workload import Workload


def analyze(
    workloads: Annotated[list[str], typer.Argument(metavar="WORKLOAD...", help="A descriptor: a path or a name.")],
    hardware: HardwareNames = None,
    changes: Set = None,
    op: OpGlob = None,
    fmt: Format = None,
    output: Output = None,
    force: Force = False,
    verbose: Verbose = False,
) -> None:
    """Predict what bounds a workload: floor, bound and limiter of each op, and what would change the verdict.

    Several WORKLOADs or -H stand side by side. Without -H: the descriptor's hardware, else $ROOFLINE_HARDWARE,
    else h100-sxm. Exit codes: 0 fine, 2 bad input.
    """
    from roofline import workload as descriptors
    from roofline.results.analysis import SCHEMA, record

    ready(SCHEMA, fmt, output, force)  # what cannot be written is said before any work
    loaded = [descriptors.load(text, tuple(changes or ()), ops=op) for text in workloads]
    results = [one(work, name, why) for work in loaded for name, why in devices(work, hardware)]
    emit(record(results), fmt=fmt, output=output, force=force, verbose=verbose)


def devices(work: Workload, named: list[str] | None) -> list[tuple[str, str]]:
    """The devices to predict for, each with the reason for it."""
    if named:
        return [(name, "as asked with -H") for name in named]
    if work.hardware:
        return [(work.hardware, "named by the descriptor")]
    if os.environ.get("ROOFLINE_HARDWARE"):
        return [(os.environ["ROOFLINE_HARDWARE"], "from $ROOFLINE_HARDWARE")]
    from roofline.api import DEFAULT_HARDWARE

    return [(DEFAULT_HARDWARE, "the default, -H picks another")]


def one(work: Workload, hardware_name: str, why: str) -> dict[str, Any]:
    """The result for one workload on one device."""
    from roofline import hardware as catalogue
    from roofline import whatif
    from roofline.analysis import Datasheet, analyse
    from roofline.results.analysis import result

    device = catalogue.load(hardware_name)
    ceilings = Datasheet(device)
    prediction = analyse(work.tree, ceilings)
    return result(
        subject(work, device, why),
        prediction,
        what_if=whatif.explore(work, ceilings, prediction),
        notes=whatif.lessons(work),
    )


def subject(work: Workload, device: Hardware, why: str) -> Any:
    """What a result is about."""
    from roofline.results.analysis import Subject

    ceilings = {level.name: level.bandwidth for level in device.memory if level.bandwidth is not None}
    ceilings |= {name: peak.value for name, peak in device.peaks.items()}
    unverified = [level.name for level in device.memory if level.confidence == "unverified"]
    unverified += [name for name, peak in device.peaks.items() if peak.confidence == "unverified"]
    if device.launch_overhead is not None and device.launch_overhead.confidence == "unverified":
        unverified.append("launch")
    return Subject(
        workload=work.name,
        source=work.source,
        description=work.description if work.ops is None else f"{work.description} (only ops matching {work.ops})",
        hardware=device.name,
        title=device.title,
        chosen=why,
        main=device.main.name,
        ceilings=ceilings,
        unverified=unverified,
        new_tokens=work.new_tokens,
    )

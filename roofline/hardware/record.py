"""A device as data: the record ``roofline/hardware/1``, and the JSON schema of hardware files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from roofline.hardware.reading import declared, schema_of
from roofline.hardware.spec import Hardware, Sourced

SCHEMA: Final = "roofline/hardware/1"


def as_json(hardware: Hardware) -> dict[str, Any]:
    """Every number of a device in SI base units with its source in full, and the ridge of each matmul dtype.

    Peaks are FLOP/s, clocks Hz, power W, the launch overhead seconds. ``confidence`` is ``unverified`` or None.
    """
    return {
        "schema": SCHEMA,
        "name": hardware.name,
        "title": hardware.title,
        "vendor": hardware.vendor,
        "architecture": hardware.architecture,
        "form_factor": hardware.form_factor,
        "compute_capability": hardware.compute_capability,
        "status": hardware.status,
        "device_names": list(hardware.device_names),
        "units": _part(hardware, hardware.units),
        "clocks": {name: _part(hardware, clock) for name, clock in hardware.clocks.items()},
        "peaks": {name: _part(hardware, peak) for name, peak in hardware.peaks.items()},
        "ridge": hardware.ridges(),
        "memory": [_part(hardware, level) for level in hardware.memory],
        "links": [_part(hardware, link) for link in hardware.links],
        "power": _part(hardware, hardware.power),
        "launch_overhead": _part(hardware, hardware.launch_overhead),
        "notes": list(hardware.notes),
        "sources": dict(hardware.sources),
        "measured": asdict(hardware.measured) if hardware.measured else None,
    }


_UNITS: Final = {
    "capacity": "capacity_bytes",
    "usable": "usable_bytes",
    "bandwidth": "bandwidth_bytes_per_s",
}


def _part(hardware: Hardware, part: Sourced | None) -> dict[str, Any] | None:
    if part is None:
        return None
    values = {_UNITS.get(key, key): getattr(part, key) for key in declared(type(part))}
    return values | {"source": list(hardware.cite(part))}


def json_schema() -> dict[str, Any]:
    """The JSON schema of a hardware file, for editors and checks."""
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Hardware file of roofline"}
    return about | schema_of(Hardware)

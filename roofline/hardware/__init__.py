"""Devices: their spec files, read and checked.

``load("h100")`` gives a ``Hardware``; ``lint(path)`` says all that is wrong with a file.
"""

from roofline.hardware.load import Finding, by_device_name, catalogue, lint, load, load_file
from roofline.hardware.record import as_json, json_schema
from roofline.hardware.spec import (
    Clock,
    Hardware,
    LaunchOverhead,
    Link,
    Measured,
    MeasuredCeiling,
    MemoryLevel,
    Peak,
    Power,
    Sourced,
    Units,
)

__all__ = [
    "Clock",
    "Finding",
    "Hardware",
    "LaunchOverhead",
    "Link",
    "Measured",
    "MeasuredCeiling",
    "MemoryLevel",
    "Peak",
    "Power",
    "Sourced",
    "Units",
    "as_json",
    "by_device_name",
    "catalogue",
    "json_schema",
    "lint",
    "load",
    "load_file",
]

"""Ceilings of earlier sessions, kept per device, torch and threads; a file that is damaged is as good as none."""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from roofline.errors import RooflineError
from roofline.measure.ceilings import Calibration, Evidence, Reading
from roofline.results.files import dumps, write

SCHEMA: Final = "roofline/ceilings/1"


def folder() -> Path:
    """Where ceilings are kept: ``$XDG_CACHE_HOME/roofline``, by default below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "roofline" / "ceilings"


def path_of(device_key: str, torch_version: str) -> Path:
    """The file of one device under one torch."""
    name = hashlib.sha256(f"{device_key}|{torch_version}".encode()).hexdigest()[:16]
    return folder() / f"{name}.json"


def load(device_key: str, torch_version: str) -> Evidence | None:
    """What an earlier session saw, or None where there is nothing that can be used."""
    try:
        data = json.loads(path_of(device_key, torch_version).read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA or (data["device"], data["torch"]) != (device_key, torch_version):
            return None
        readings = {str(name): _reading(entry) for name, entry in data["ceilings"].items()}
        kernels = {str(name): tuple(map(str, entry["kernels"])) for name, entry in data["ceilings"].items()}
        believed = int(data["believed_cache_bytes"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Evidence(readings, kernels, believed) if readings and believed > 0 else None


def _reading(entry: Any) -> Reading:
    reading = Reading(float(entry["high"]), float(entry["low"]), str(entry["kernel"]))
    if not 0 < reading.low <= reading.value < math.inf:
        raise ValueError("not a ceiling")
    return reading


def save(calibration: Calibration, torch_version: str) -> None:
    """Keep what this session saw, whole or not at all; a folder that cannot be written costs only the next session."""
    ceilings = calibration.ceilings()
    entries: dict[str, Any] = {
        name: _known(reading, calibration.earlier_kernels[name]) for name, reading in calibration.earlier.items()
    }
    for name in calibration.names:
        readings = calibration.readings[name]
        entries[name] = {
            "value": statistics.median(reading.value for reading in readings),
            "low": min(reading.low for reading in readings),
            "high": calibration.fastest(name),
            "kernel": calibration.best_kernel(name),
            "kernels": list(calibration.kernels(name)),
            "measured": calibration.measured[name],
        }
    record = {
        "schema": SCHEMA,
        "device": calibration.device.key,
        "torch": torch_version,
        "name": ceilings.name,
        "believed_cache_bytes": calibration.believed_cache,
        "ceilings": entries,
    }
    path = path_of(calibration.device.key, torch_version)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, dumps(record), force=True)
    except (OSError, RooflineError):
        return


def _known(reading: Reading, kernels: Sequence[str]) -> dict[str, Any]:
    """A ceiling of an earlier session that this one had no use for."""
    return {
        "value": reading.value,
        "low": reading.low,
        "high": reading.value,
        "kernel": reading.kernel,
        "kernels": list(kernels),
    }

"""The record of the catalogue of devices, ``roofline/hardware-list/1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from roofline.engines import tensor
from roofline.errors import RooflineError, nearest
from roofline.hardware import Hardware

SCHEMA = "roofline/hardware-list/1"

_KEYS = {"bf16": "bf16_flops_per_s", "fp8": "fp8_flops_per_s", "bandwidth": "bandwidth_bytes_per_s"}
_KEYS |= {"capacity": "capacity_bytes", "ridge": "ridge_bf16", "name": "name", "vendor": "vendor"}


def listing(
    devices: Sequence[Hardware], aliases: Mapping[str, str], pattern: str = "*", sort: str = "name"
) -> dict[str, Any]:
    """One row a device whose name, alias or vendor matches ``pattern``, in the order of the key ``sort``.

    Raises ``RooflineError`` where none matches.
    """
    named = {device.name: [alias for alias, name in aliases.items() if name == device.name] for device in devices}
    found = [device for device in devices if _matches(pattern, (device.name, device.vendor, *named[device.name]))]
    if not found:
        known = [device.name for device in devices]
        message = f"no device matches {pattern!r}"
        raise RooflineError(message, code="unknown-hardware", suggestions=nearest(pattern, [*known, *aliases]))
    rows = [_row(device, named[device.name]) for device in found]
    key = _KEYS[sort]
    if sort in ("name", "vendor"):
        rows.sort(key=lambda row: (str(row[key]).lower(), row["name"]))
    else:
        rows.sort(key=lambda row: (-(row[key] or 0), row["name"]))
    return {"schema": SCHEMA, "rows": rows}


def _matches(pattern: str, words: Sequence[str]) -> bool:
    return any(fnmatchcase(word.lower(), pattern.lower()) for word in words)


def _row(device: Hardware, aliases: Sequence[str]) -> dict[str, Any]:
    bf16, fp8 = device.ceiling(tensor("bf16")), device.ceiling(tensor("fp8"))
    half = bf16 or device.ceiling(tensor("fp16"))
    return {
        "name": device.name,
        "title": device.title,
        "vendor": device.vendor,
        "status": device.status,
        "bf16_flops_per_s": bf16.value if bf16 else None,
        "fp16_flops_per_s": half.value if half else None,
        "fp8_flops_per_s": fp8.value if fp8 else None,
        "capacity_bytes": device.main.capacity,
        "bandwidth_bytes_per_s": device.bandwidth,
        "ridge_bf16": bf16.value / device.bandwidth if bf16 else None,
        "aliases": " ".join(aliases) or None,
    }

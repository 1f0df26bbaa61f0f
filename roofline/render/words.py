"""Sentences and cells shared by the renderers for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roofline.quantities import binary, duration, integer, percent, ratio, si


def headline(result: Mapping[str, Any]) -> str:
    """The answer in one sentence: the bound, by how much, and where the workload stands against the ridge."""
    summary = result["summary"]
    shares = summary["shares"]
    bound, limiter = summary["bound"], summary["limiter"]
    parts = [f"{bound.capitalize()} bound: {limiter} holds {percent(shares[limiter])} of the floor"]
    others = [f"{name} {percent(share)}" for name, share in list(shares.items())[1:] if share >= 0.01]
    if others:
        parts[0] += f" ({', '.join(others)})"
    if summary["ridge"] is not None:
        parts.append(
            f"intensity {ratio(summary['intensity'])} against a ridge of {ratio(summary['ridge'], 3)} FLOP/byte"
        )
    if len(result["ops"]) == 1 and result["ops"][0]["near_ridge"]:
        parts.append("near the ridge: memory and compute floors are within a factor of two")
    if summary["fits"] is False:
        parts.append(f"DOES NOT FIT: {binary(summary['resident_bytes'])} of {binary(summary['capacity_bytes'])}")
    return "; ".join(parts) + "."


def floor_sentence(result: Mapping[str, Any]) -> str:
    """The floor, what it means in tokens where it is a step, and the bound that nothing beats."""
    summary = result["summary"]
    floor, lower = summary["floor_s"], summary["lower_bound_s"]
    text = f"Floor {duration(floor)}"
    tokens = summary["new_tokens"]
    if tokens:
        text += f" ({si(tokens / floor, 'tokens/s')})"
    if len(result["ops"]) > 1:
        text += f", the sum over its kernels. Lower bound {duration(lower)}: all overlapped, intermediates on chip"
    return text + f". {si(summary['attainable_flops_per_s'], 'FLOP/s')} at the floor."


def launch_sentence(result: Mapping[str, Any]) -> str | None:
    """What launching its kernels costs, where that is known and not small against the floor."""
    summary = result["summary"]
    overhead, floor = summary["overhead_s"], summary["floor_s"]
    if not overhead or overhead < 0.1 * floor:
        return None
    launches = summary["launches"]
    each = duration(overhead / launches) + (" (unverified)" if "launch" in result["hardware"]["unverified"] else "")
    cost = f"1 launch of {each}" if launches == 1 else f"{integer(launches)} launches x {each} = {duration(overhead)}"
    if overhead > floor:
        return f"Launch bound unless captured in a graph: {cost}, more than the floor, which leaves launches out."
    return f"Launches: {cost}, on top of the floor ({percent(overhead / floor)} of it)."


_ROLES = {
    "weight": "weights",
    "kv_cache": "KV cache",
    "state": "state",
    "activation": "activations (largest op)",
}


def memory_sentence(result: Mapping[str, Any]) -> str:
    """What must be resident against what there is."""
    summary = result["summary"]
    held = [f"{_ROLES[role]} {si(size, 'B')}" for role, size in summary["resident"].items() if size]
    text = f"Memory: {', '.join(held)}: {binary(summary['resident_bytes'])}"
    if summary["capacity_bytes"] is None:
        return text + "."
    verdict = "fits" if summary["fits"] else "DOES NOT FIT"
    return text + f" of {binary(summary['capacity_bytes'])}: {verdict}."


def hardware_line(result: Mapping[str, Any]) -> str:
    """Which device, why, and the ceilings that the workload meets."""
    device = result["hardware"]
    used = {device["main"], *result["summary"]["flops_by_engine"]}
    ceilings = [
        f"{name} {si(value, _unit(name))}" + (" (unverified)" if name in device["unverified"] else "")
        for name, value in device["ceilings"].items()
        if name in used
    ]
    title = f"{device['title']}; " if device["title"] != device["name"] else ""
    return f"{device['name']} ({title}{device['chosen']}): {', '.join(ceilings)}"


def _unit(name: str) -> str:
    if ":" not in name:
        return "B/s"
    return "op/s" if name.startswith("special") or ":int" in name else "FLOP/s"


def bound_cell(op: Mapping[str, Any]) -> str:
    """The bound of an op, marked where it is near the ridge."""
    return f"{op['bound']}{' ~' if op['near_ridge'] else ''}"


def limiter_cell(op: Mapping[str, Any]) -> str:
    """The limiter of an op with those that limit as well."""
    return " + ".join((op["limiter"], *op["co_limiters"]))


def shape_text(shape: Sequence[float]) -> str:
    """``4096x14336``."""
    return "x".join(integer(n).replace(",", "") for n in shape) or "scalar"


def what_if_lines(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each thing that could change, and what it would do."""
    found = result["what_if"]
    if not found:
        return []
    lines = [_flip_line(flip) for flip in found["flips"]]
    lines += [_dtype_line(change, result["summary"]) for change in found["dtypes"]]
    largest = found["largest"]
    if largest is not None and largest["value"] is not None:
        lines.append((f"largest {largest['parameter']}", f"{integer(largest['value'])} fit in memory"))
    return lines


def _flip_line(flip: Mapping[str, Any]) -> tuple[str, str]:
    name, bound = flip["parameter"], flip["bound"]
    if flip["value"] is None:
        why = f" (intensity tends to {ratio(flip['intensity'], 3)})" if bound == "memory" else ""
        return name, f"stays {bound} bound however large{why}"
    side = "and up" if flip["side"] == "up" else "and below"
    exact = f" (the times cross at {ratio(flip['crossing'])})" if flip["crossing"] is not None else ""
    return name, f"{bound} bound at {integer(flip['value'])} {side}{exact}"


def _dtype_line(change: Mapping[str, Any], summary: Mapping[str, Any]) -> tuple[str, str]:
    gain = summary["floor_s"] / change["floor_s"]
    moved = f"{ratio(gain, 3)}x faster" if gain >= 1 else f"{ratio(1 / gain, 3)}x slower"
    stays = "still" if change["bound"] == summary["bound"] else "then"
    return change["change"], f"floor {duration(change['floor_s'])}, {moved}, {stays} {change['bound']} bound"

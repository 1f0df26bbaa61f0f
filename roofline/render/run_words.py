"""Sentences and rows of a run, shared by its renderers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from roofline.quantities import binary, duration, percent

Run = Mapping[str, Any]
Op = Mapping[str, Any]

FAILED: Final = ("errored", "contradicted", "above-roof")
_BUSY: Final = 0.2
"""Part of all samples that must have been disturbed to be worth a line."""


CEILINGS_NOTE: Final = (
    "value: the median over this session; low and high: the slowest and fastest seen on this machine, earlier sessions "
    "included. An op's floor rests on its ceilings as read again beside it, since machines drift."
)


def legend(record: Run) -> str:
    """What the columns of the table of ops mean, as far as they are not empty."""
    parts = [
        "floor: the least time under the ceilings read beside the op",
        "time: the median of its undisturbed samples, +- half its 95 % interval",
        "of roof: floor over time",
        "MFU, MBU: of the matrix engine's peak, of the memory's bandwidth for its mix of reads and writes",
    ]
    if any(op["predicted"].get("near_ridge") for op in record["ops"]):
        parts.append("~ near the ridge")
    shared = [f"{op['path']} stands for {', '.join(op['also'])} too" for op in record["ops"] if op.get("also")]
    return "; ".join(parts + shared) + "."


def headline(record: Run) -> str:
    """The answer in one sentence: how many predictions held, what failed, and the row farthest from its roof."""
    ops = record["ops"]
    counts = Counter(op["verdict"] for op in ops)
    judged = len(ops) - sum(
        count for verdict, count in counts.items() if verdict not in ("confirmed", "inefficient", *FAILED)
    )
    parts = [f"{counts['confirmed']} of {len(ops)} {'op' if len(ops) == 1 else 'ops'} confirmed"]
    parts += [f"{counts[verdict]} {verdict.upper()}" for verdict in FAILED if counts[verdict]]
    parts += [f"{count} {verdict}" for verdict, count in counts.items() if verdict not in ("confirmed", *FAILED)]
    text = ", ".join(parts)
    if not judged:
        text = f"Nothing was judged: {text}"
    bounds = [(op["measured"]["bound"], op["predicted"]["bound"]) for op in ops]
    shown = [pair for pair in bounds if pair[0] in ("compute", "memory")]
    if shown:
        agree = sum(measured == predicted for measured, predicted in shown)
        text += f"; the times show the predicted bound in {agree} of the {len(shown)} rows where they show one"
    worst = _worst(ops)
    if worst is not None:
        text += f"; farthest from its roof is {worst['path']}, at {percent(worst['roof_fraction'])}"
    return text + "."


def totals(record: Run) -> str | None:
    """The workload as a sum of its ops, one after the other, as often as it runs them; None where none was timed."""
    timed = [
        (op["count"] * op["predicted"]["floor_s"], op["count"] * time_of(op)) for op in record["ops"] if time_of(op)
    ]
    if not timed:
        return None
    floor, time = sum(pair[0] for pair in timed), sum(pair[1] for pair in timed)
    which = "All ops" if len(timed) == len(record["ops"]) else f"The {len(timed)} ops that were timed"
    return (
        f"{which}, each as often as it runs: floors {duration(floor)}, times {duration(time)}, {percent(floor / time)}."
    )


def _worst(ops: Sequence[Op]) -> Op | None:
    judged = [op for op in ops if op["verdict"] in ("confirmed", "inefficient") and op["roof_fraction"] is not None]
    return min(judged, key=lambda op: float(op["roof_fraction"]), default=None)


def warnings(record: Run) -> Iterator[str]:
    """What a reader must know before believing a number."""
    if not record["complete"]:
        yield "Interrupted: not every op was measured."
    if record["environment"].get("throttled"):
        yield "The device was throttled (power, heat or a cap): times are longer and ceilings lower than it can do."
    processes = [process for op in record["ops"] for process in op["measured"]["processes"]]
    samples = sum(len(process["samples_s"]) for process in processes)
    disturbed = sum(process.get("disturbed", 0) for process in processes)
    if samples and disturbed > _BUSY * samples:
        yield f"Other work ran on this machine during {percent(disturbed / samples)} of the samples."


def device_line(record: Run) -> str:
    """What ran where, with what."""
    environment = record["environment"]
    parts = [environment["device"]]
    if environment.get("threads"):
        parts.append(f"{environment['threads']} threads")
    if environment.get("memory_bytes"):
        parts.append(f"up to {binary(environment['memory_bytes'])}")
    if environment.get("believed_cache_bytes"):
        cache = f"cache {binary(environment['believed_cache_bytes'])}"
        if environment.get("cache_bytes") not in (None, environment["believed_cache_bytes"]):
            cache += f" (reported {binary(environment['cache_bytes'])})"
        parts.append(cache)
    parts.append(f"torch {environment['torch']}")
    if environment.get("driver"):
        parts.append(f"driver {environment['driver']}")
    if environment.get("started"):
        parts.append(environment["started"])
    return ", ".join(parts)


def reason_lines(record: Run) -> Iterator[tuple[str, str, str]]:
    """Path, verdict and reason of every row that is not confirmed; rows with the same reason share a line."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for op in record["ops"]:
        if op["verdict"] != "confirmed":
            grouped.setdefault((op["verdict"], op["reason"]), []).append(op["path"])
    for (verdict, reason), paths in grouped.items():
        yield ", ".join(paths), verdict, reason


def time_of(op: Op) -> float | None:
    """The time that stands for an op: of its undisturbed samples, else the median of the first process."""
    measured = op["measured"]
    if measured.get("time_s") is not None:
        return float(measured["time_s"])
    return float(measured["processes"][0]["median_s"]) if measured["processes"] else None


def spread_of(op: Op) -> float | None:
    """Half the 95 % interval of the median over the median, over all processes."""
    processes, middle = op["measured"]["processes"], time_of(op)
    if not processes or not middle:
        return None
    return float(max(p["high_s"] for p in processes) - min(p["low_s"] for p in processes)) / (2 * middle)


def run_rows(record: Run) -> list[dict[str, Any]]:
    """One flat row an op, numbers in SI base units: what the CSV and Markdown renderers print."""
    return [_row(op) for op in record["ops"]]


def _row(op: Op) -> dict[str, Any]:
    process = (op["measured"]["processes"] or [{}])[0]
    return {
        "id": op["id"],
        "workload": op["workload"],
        "path": op["path"],
        "kind": op.get("kind", ""),
        "count": op.get("count", 1),
        "kernel": op["kernel"],
        "floor_s": op["predicted"]["floor_s"],
        "time_s": time_of(op),
        "median_s": process.get("median_s"),
        "low_s": process.get("low_s"),
        "high_s": process.get("high_s"),
        "roof_fraction": op["roof_fraction"],
        "mfu": op.get("mfu"),
        "mbu": op.get("mbu"),
        "predicted": op["predicted"]["bound"],
        "limiter": op["predicted"]["limiter"],
        "measured": op["measured"]["bound"],
        "verdict": op["verdict"],
        "reason": op["reason"],
    }

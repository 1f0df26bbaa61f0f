"""Markdown for pull requests and design documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from roofline.quantities import duration, integer, percent, ratio, si
from roofline.render import Options, run_words, words
from roofline.results.files import number


def render_analysis(record: Mapping[str, Any], options: Options) -> str:
    """Each result as a section: the answer, the table of ops, memory, what would change it."""
    del options
    sections = [f"<!-- {record['schema']} -->"]
    for result in record["results"]:
        sections += _section(result)
    return "\n\n".join(sections) + "\n"


def _section(result: Mapping[str, Any]) -> list[str]:
    workload = result["workload"]
    sentences = [words.memory_sentence(result), words.launch_sentence(result)]
    made = [
        f"### {workload['name']} on {result['hardware']['name']}",
        f"{workload['description']}; {words.hardware_line(result)}.",
        f"**{words.headline(result)}**",
        words.floor_sentence(result),
        _op_table(result),
        " ".join(sentence for sentence in sentences if sentence),
    ]
    lines = words.what_if_lines(result)
    if lines:
        made.append(md_table(("what if", "then"), lines))
    return made + [f"> {note}" for note in result["notes"]]


def _op_table(result: Mapping[str, Any]) -> str:
    header = ("op", "count:", "FLOPs:", "bytes:", "FLOP/B:", "bound", "limiter", "floor:", "share:")
    lines = (
        (
            f"`{op['path']}`",
            integer(op["count"]),
            si(op["flops"], ""),
            si(op["bytes"], "B"),
            ratio(op["intensity"], 3),
            words.bound_cell(op),
            words.limiter_cell(op),
            duration(op["floor_s"]),
            percent(op["share"]),
        )
        for op in result["ops"]
    )
    return md_table(header, lines)


def render_run(record: Mapping[str, Any], options: Options) -> str:
    """The answer, the ceilings it rests on, every op, and why a row is not confirmed."""
    del options
    ceilings = (
        (name, *(_amount(ceiling[end], ceiling["unit"]) for end in ("value", "low", "high")), ceiling["kernel"])
        for name, ceiling in record["ceilings"].items()
    )
    reasons = [f"- `{path}` **{verdict}**: {reason}" for path, verdict, reason in run_words.reason_lines(record)]
    blocks = [
        f"<!-- {record['schema']} -->",
        f"**{run_words.headline(record)}**",
        *filter(None, [run_words.totals(record)]),
        *run_words.warnings(record),
        f"On {run_words.device_line(record)}.",
        md_table(_RUN, (_run_line(op) for op in record["ops"])),
        *(["\n".join(reasons)] if reasons else []),
        run_words.legend(record),
        md_table(("measured ceiling", "value:", "low:", "high:", "kernel"), ceilings),
        run_words.CEILINGS_NOTE,
    ]
    return "\n\n".join(blocks) + "\n"


_RUN = ("op", "count:", "floor:", "time:", "+-:", "of roof:", "MFU:", "MBU:", "predicted", "measured", "verdict")


def _run_line(op: Mapping[str, Any]) -> Sequence[str]:
    predicted, measured = op["predicted"]["bound"], op["measured"]["bound"]
    return (
        f"`{op['path']}`",
        integer(op["count"]),
        duration(op["predicted"]["floor_s"]),
        duration(run_words.time_of(op)),
        percent(run_words.spread_of(op)),
        percent(op["roof_fraction"]),
        percent(op["mfu"]),
        percent(op["mbu"]),
        (predicted or "-") + (" ~" if op["predicted"]["near_ridge"] else ""),
        measured or "-",
        op["verdict"],
    )


def _amount(value: float, unit: str) -> str:
    return duration(value) if unit == "s" else si(value, unit)


def render_rows(record: Mapping[str, Any], options: Options) -> str:
    """A record whose ``rows`` are flat objects with the same keys."""
    del options
    rows = record["rows"]
    keys = list(rows[0]) if rows else []
    lines = ([_cell(row[key]) for key in keys] for row in rows)
    return f"<!-- {record['schema']} -->\n\n{md_table(keys, lines)}\n"


def md_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A pipe table; a title that ends in ``:`` is right-aligned."""
    titles = [title.removesuffix(":") for title in header]
    rules = ["---:" if title.endswith(":") else "---" for title in header]
    return "\n".join(f"| {' | '.join(_escape(cell) for cell in line)} |" for line in (titles, rules, *lines))


def _cell(value: object) -> str:
    value = number(value) if isinstance(value, float) else value
    return "-" if value is None else str(value)


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")

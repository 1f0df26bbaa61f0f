"""Devices for people: the catalogue as a table, and one device with every number and its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from roofline.quantities import binary, duration, integer, ratio, si
from roofline.render import Options
from roofline.render.console import PLAIN_WIDTH, collect, pinned, rows, table
from roofline.render.markdown import md_table

UNVERIFIED = "unverified"


def render_list(record: Mapping[str, Any], options: Options) -> str:
    """One line a device."""
    columns = (
        ("name", "left"),
        ("device", "left"),
        ("bf16", "right"),
        ("fp8", "right"),
        ("memory", "right"),
        ("bandwidth", "right"),
        ("ridge", "right"),
        ("also called", "left"),
    )

    def draw(console: Console) -> None:
        made = rows(table(columns), (_list_line(row) for row in record["rows"]))
        wraps = {"also called": 20, "device": 24}
        console.print(pinned(made, options, wraps=wraps, drops=("also called", "device", "memory", "fp8")))
        count = len(record["rows"])
        noun = "device" if count == 1 else "devices"
        console.print(f"{count} {noun}; peaks are dense FLOP/s, ridge is bf16 FLOP/byte", style="dim")

    return collect(draw, options)


def _list_line(row: Mapping[str, Any]) -> Sequence[str]:
    status = "" if row["status"] == "released" else f" ({row['status']})"
    return (
        row["name"],
        row["title"] + status,
        si(row["bf16_flops_per_s"], ""),
        si(row["fp8_flops_per_s"], ""),
        binary(row["capacity_bytes"]),
        si(row["bandwidth_bytes_per_s"], "B/s"),
        ratio(row["ridge_bf16"], 3),
        row["aliases"] or "",
    )


def render(record: Mapping[str, Any], options: Options) -> str:
    """One device: what it is, then a table of numbers with their sources."""

    def draw(console: Console) -> None:
        console.print(Text.assemble((record["name"], "bold"), f": {_headline(record)}"))
        for title, columns, lines in _sections(record):
            console.print()
            console.print(title, style="bold")
            made = pinned(rows(table(columns), lines), options, wraps=_WRAPS, drops=_DROPS, indent=2)
            console.print(Padding(made, (0, 0, 0, 2)))
            if legend := _legend(record, title):
                console.print(Padding(Text(legend, style="dim"), (0, 0, 0, 2)), width=options.width or PLAIN_WIDTH)
        if notes := _notes(record):
            _listed(console, "notes", [("-", note) for note in notes], options)
        _listed(
            console, "sources", [(f"[{index}]", source) for index, source in enumerate(_sources(record), 1)], options
        )

    return collect(draw, options)


_WRAPS: Final = {"source": 9, "kind": 14}
_DROPS: Final = ("per unit and clock", "checked")


def _legend(record: Mapping[str, Any], section: str) -> str | None:
    """What the words in the column "checked" say, where they are used."""
    if section != "peaks" or not any(peak["checked"] for peak in record["peaks"].values()):
        return None
    return (
        "checked: units x rate x clock give the peak; independent = all three were found apart from it, "
        "derived = one of them came from it"
    )


def _listed(console: Console, title: str, lines: Sequence[tuple[str, str]], options: Options) -> None:
    """Long lines that wrap under their own start."""
    made = rows(table((("mark", "left"), ("text", "left"))), lines)
    made.show_header = False
    console.print()
    console.print(title, style="bold")
    prose = Options(width=options.width or PLAIN_WIDTH)
    console.print(Padding(pinned(made, prose, wraps={"text": 20}, indent=2), (0, 0, 0, 2)))


def render_markdown(record: Mapping[str, Any], options: Options) -> str:
    """The same as sections of tables."""
    del options
    blocks = [f"<!-- {record['schema']} -->", f"### {record['name']}", f"{_headline(record)}."]
    for title, columns, lines in _sections(record):
        heads = [name + (":" if side == "right" else "") for name, side in columns]
        blocks += [f"**{title}**", md_table(heads, lines)]
        if legend := _legend(record, title):
            blocks.append(legend)
    if notes := _notes(record):
        blocks.append("\n".join(f"- {note}" for note in notes))
    blocks.append("\n".join(f"{index}. {source}" for index, source in enumerate(_sources(record), 1)))
    return "\n\n".join(blocks) + "\n"


_Columns = tuple[tuple[str, str], ...]
_Section = tuple[str, _Columns, list[Sequence[str]]]


def _headline(record: Mapping[str, Any]) -> str:
    """What the device is, with the source of every number that no table holds."""
    sources = _sources(record)

    def cited(text: str, part: Mapping[str, Any]) -> str:
        mark = f" ({UNVERIFIED})" if part["confidence"] else ""
        return " ".join((text + mark, *filter(None, [_marks(part, sources)])))

    units = record["units"]
    parts = [record["title"], record["vendor"], record["architecture"]]
    parts.append(cited(f"{integer(units['count'])} {units['kind']}", units))
    if power := record["power"]:
        parts.append(cited(si(power["value"], "W"), power))
    if launch := record["launch_overhead"]:
        parts.append(cited(f"{duration(launch['value'])} a launch", launch))
    if record["status"] != "released":
        parts.append(record["status"])
    return ", ".join(parts)


def _marks(part: Mapping[str, Any], sources: Sequence[str]) -> str:
    return "".join(f"[{sources.index(source) + 1}]" for source in part["source"])


def _sections(record: Mapping[str, Any]) -> Iterator[_Section]:
    sources = _sources(record)

    def cite(part: Mapping[str, Any]) -> str:
        marks = _marks(part, sources)
        return f"{UNVERIFIED} {marks}" if part["confidence"] else marks

    peaks: _Columns = (
        ("engine", "left"),
        ("peak (dense)", "right"),
        ("ridge", "right"),
        ("per unit and clock", "right"),
    )
    yield (
        "peaks",
        (*peaks, ("checked", "left"), ("source", "left")),
        [
            (
                name,
                si(peak["value"], "op/s" if "int" in name or name.startswith("special") else "FLOP/s", 4),
                _ridge(name, peak, record),
                integer(peak["per_unit_per_clock"]),
                peak["checked"] or "-",
                cite(peak),
            )
            for name, peak in record["peaks"].items()
        ],
    )
    clocks: list[Sequence[str]] = [
        (name, si(clock["value"], "Hz", 4), cite(clock)) for name, clock in record["clocks"].items()
    ]
    if clocks:
        yield "clocks", (("engine", "left"), ("clock", "right"), ("source", "left")), clocks
    yield (
        "memory",
        (("level", "left"), ("kind", "left"), ("capacity", "right"), ("bandwidth", "right"), ("source", "left")),
        [
            (
                level["name"],
                level["kind"] or "-",
                binary(level["capacity_bytes"]) + (" each" if level["scope"] == "unit" else ""),
                si(level["bandwidth_bytes_per_s"], "B/s"),
                cite(level),
            )
            for level in record["memory"]
        ],
    )
    links: list[Sequence[str]] = [
        (
            link["name"],
            link["kind"] or "-",
            si(link["bandwidth_bytes_per_s"], "B/s"),
            integer(link["devices"]),
            cite(link),
        )
        for link in record["links"]
    ]
    if links:
        columns: _Columns = (("link", "left"), ("kind", "left"), ("one direction", "right"), ("devices", "right"))
        yield "links", (*columns, ("source", "left")), links


def _ridge(name: str, peak: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """FLOPs per byte; special evaluations are no FLOPs and have no ridge."""
    if name.startswith("special"):
        return "-"
    return ratio(peak["value"] / record["memory"][0]["bandwidth_bytes_per_s"], 3)


def _notes(record: Mapping[str, Any]) -> list[str]:
    """The notes on single numbers, each with its name, then those on the device."""
    named = [*record["clocks"].items(), *record["peaks"].items()]
    named += [(part["name"], part) for part in (*record["memory"], *record["links"])]
    named += [(key.replace("_", " "), record[key]) for key in ("units", "power", "launch_overhead") if record[key]]
    return [f"{name}: {part['note']}" for name, part in named if part["note"]] + list(record["notes"])


def _sources(record: Mapping[str, Any]) -> list[str]:
    """Every source once, in the order in which the numbers cite them."""
    parts = [record["units"], *record["peaks"].values(), *record["clocks"].values(), *record["memory"]]
    parts += [*record["links"], *(record[key] for key in ("power", "launch_overhead") if record[key])]
    return list(dict.fromkeys(source for part in parts for source in part["source"]))

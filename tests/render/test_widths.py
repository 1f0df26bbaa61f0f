"""Every table at every width: no line too long, no number or name cut, and no column gone without a word."""

from __future__ import annotations

import copy
import json

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from roofline.cli.main import run
from roofline.render import Options, hardware_table, names_table, terminal
from roofline.render.console import clean, collect, outline, pinned, rows, table

WIDTHS = (40, 60, 80, 100, 120, 200)
DEVICES = ("h100-sxm", "a100-sxm-80gb", "mi300x", "b200-sxm", "l40s", "rtx-4090", "gh200-96gb")


@pytest.fixture(scope="module")
def record_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")

    def record(*args):
        path = folder / "-".join(args).replace("/", "_")
        if not path.exists():
            assert run((*args, "--format", "json", "-o", str(path))) == 0
        return json.loads(path.read_text())

    return record


def analysis(record_of, workloads, devices):
    return record_of("analyze", *workloads, *(word for name in devices for word in ("-H", name)))


def words(text: str) -> str:
    """The text without its line ends and spaces: what was wrapped is whole again."""
    return "".join(text.split())


def assert_whole(text: str, width: int) -> None:
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("workloads", [("decode",), ("decode", "linear"), ("prefill", "diffusion-step")])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_several_devices(record_of, width, workloads, count):
    record = analysis(record_of, workloads, DEVICES[:count])
    text = terminal.render(record, Options(width=width))
    assert_whole(text, width)
    top = words(text.partition("\n\n")[0])
    for title in ("hardware", "bound", "limiter", "floor", "fits"):
        assert title in top
    for result in record["results"]:
        name = result["hardware"]["name"]
        assert name in text or (width < 80 and all(part in text for part in name.split("-")))
    if width >= 60:
        head, *lines = text.partition("\n\n")[0].splitlines()
        assert {"workload", "hardware", "bound", "limiter", "floor", "fits"} <= set(head.split())
        assert sum(line.endswith(("  yes", "  NO", "  -")) for line in lines) == len(record["results"])


@pytest.mark.parametrize("width", WIDTHS)
def test_the_floor_of_every_op_on_every_device_is_there(record_of, width):
    record = analysis(record_of, ("decode",), DEVICES)
    text = terminal.render(record, Options(width=width)).partition("\n\n")[2]
    for result in record["results"]:
        assert words(f"{result['hardware']['name']} floor") in words(text)
        for op in result["ops"]:
            assert terminal._floor_cell(op) in text


@pytest.mark.parametrize("width", [80, 120])
def test_twenty_devices(record_of, width):
    listed = record_of("hardware", "list")["rows"]
    names = [row["name"] for row in listed if row["bf16_flops_per_s"]][:20]
    text = terminal.render(analysis(record_of, ("linear",), names), Options(width=width))
    assert_whole(text, width)
    assert all(f"{name} floor" in text for name in names)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("workload", ["decode", "prefill", "linear", "attention-naive"])
@pytest.mark.parametrize("verbose", [False, True])
def test_one_analysis(record_of, width, workload, verbose):
    record = analysis(record_of, (workload,), ("h100-sxm",))
    text = terminal.render(record, Options(width=width, verbose=verbose))
    assert_whole(text, width)
    for title in ("FLOPs", "bytes", "FLOP/B", "bound", "limiter", "floor", "share"):
        assert title in text, "shown, or named among those that are not"
    for op in record["results"][0]["ops"]:
        name = op["path"].rpartition("/")[2]
        assert name in text or width == 40


@pytest.mark.parametrize("width", [60, 80])
def test_what_would_change_it_is_whole(record_of, width):
    record = analysis(record_of, ("decode",), ("h100-sxm",))
    wide = terminal.render(record, Options(width=200)).partition("What would change it\n")[2]
    narrow = terminal.render(record, Options(width=width)).partition("What would change it\n")[2]
    assert sorted(wide.split()) == sorted(narrow.split())
    assert "1.81x" in narrow


@pytest.mark.parametrize("width", WIDTHS)
def test_hardware_list(record_of, width):
    record = record_of("hardware", "list")
    text = hardware_table.render_list(record, Options(width=width))
    assert_whole(text, width)
    for row in record["rows"]:
        *_, memory, bandwidth, ridge, _ = hardware_table._list_line(row)
        if width == 40:
            assert all(part in text for part in row["name"].split("-"))
            continue
        line = next(line for line in text.splitlines() if line.split(maxsplit=1)[:1] == [row["name"]])
        if width >= 80:
            assert f"{memory}  " in line
            assert f"{bandwidth}  " in line
            assert ridge in line.split()
    assert ("not shown at" in text) == (width < 120)
    assert ("also called" in text) and ("device" in text)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["h100", "mi300x", "b200", "rtx-4090"])
def test_one_device(record_of, width, name):
    record = record_of("hardware", "show", name)
    text = hardware_table.render(record, Options(width=width))
    assert_whole(text, width)
    for title in ("per unit and clock", "checked", "source", "bandwidth", "ridge"):
        assert set(title.split()) <= set(text.split())
    cited = words(text).partition("sources[1]")[0]
    for index, _ in enumerate(hardware_table._sources(record), 1):
        assert f"[{index}]" in cited, "every source belongs to a number"


@pytest.mark.parametrize("width", WIDTHS)
def test_names(record_of, width):
    record = record_of("workload", "list")
    text = names_table.render(record, Options(width=width))
    assert_whole(text, width)
    for row in record["rows"]:
        assert any(line.split()[:1] == [row["name"]] for line in text.splitlines())
    assert all(word in text.split() for row in record["rows"] for word in row["description"].split() if width >= 60)


def test_nothing_is_dropped_or_wrapped_for_a_pipe(record_of):
    text = hardware_table.render_list(record_of("hardware", "list"), Options())
    assert "not shown" not in text
    assert len(text.splitlines()) == len(record_of("hardware", "list")["rows"]) + 2
    prose = terminal.render(analysis(record_of, ("decode",), ("h100-sxm",)), Options())
    assert max(map(len, prose.splitlines())) <= 120


def test_two_workloads_from_one_file_have_no_table_of_ops(record_of):
    record = analysis(record_of, ("decode", "linear"), ("h100-sxm",))
    for result in record["results"]:
        result["workload"] |= {"source": "mine.yaml", "name": "mine", "description": ""}
    assert "h100-sxm floor" not in terminal.render(record, Options(width=120))
    same = copy.deepcopy(record["results"][0])
    same["ops"][0]["bytes"] *= 2
    record["results"][1] = same
    assert "h100-sxm floor" not in terminal.render(record, Options(width=120))
    same["ops"][0]["bytes"] = record["results"][0]["ops"][0]["bytes"]
    assert "h100-sxm floor" in terminal.render(record, Options(width=120))


def test_tokens_are_shown_where_any_workload_has_them(record_of):
    assert "tokens/s" in terminal.render(analysis(record_of, ("decode", "linear"), DEVICES[:2]), Options(width=200))
    assert "tokens/s" not in terminal.render(analysis(record_of, ("linear",), DEVICES[:2]), Options(width=200))


def test_a_slash_in_the_name_of_an_op_alone_makes_no_group():
    op = {"path": "a/b", "count": 1}
    assert list(outline([op])) == [(0, "a/b", op, 1)]
    assert [line[:2] for line in outline([op, {"path": "a/c", "count": 1}])] == [(0, "a"), (1, "b"), (1, "c")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold] :smile:", "plain [bold] :smile:"),
        ("two\nlines\tand a tab\u2028", "two lines and a tab "),
        ("\x1b[31mred\x07", "\ufffd[31mred\ufffd"),
        ("abc\u202edef\u200b", "abc\ufffddef\ufffd"),
        ("naïve 模型 π", "naïve 模型 π"),
    ],
)
def test_text_of_others_is_made_safe(text, shown):
    assert clean(text) == shown


@pytest.mark.parametrize("color", [False, True])
def test_no_renderer_emits_or_obeys_what_a_record_says(record_of, color):
    evil = "[red]x[/red] :bomb: \x1b[2J\u202e\nnext"
    record = analysis(record_of, ("linear",), ("h100-sxm", "l40s"))
    for result in record["results"]:
        result["workload"] |= {"name": evil, "description": evil}
        result["hardware"] |= {"name": evil, "title": evil}
        result["ops"][0]["path"] = evil
        result["notes"] = [evil]
    names = {"schema": "roofline/names/1", "rows": [{"name": evil, "description": evil}]}
    device = copy.deepcopy(record_of("hardware", "show", "h100")) | {"title": evil, "notes": [evil]}
    options = Options(width=200, color=color, verbose=True)
    for text in (
        terminal.render(record, options),
        names_table.render(names, options),
        hardware_table.render(device, options),
    ):
        assert "[red]x[/red] :bomb: \ufffd[2J\ufffd next" in text
        assert "\x1b[2J" not in text
        assert "\u202e" not in text


def test_styles_keep_their_places_in_cleaned_text():
    text = collect(lambda console: console.print(Text.assemble(("a\x1bb", "bold"), " c")), Options(80, color=True))
    assert text == "\x1b[1ma\ufffdb\x1b[0m c\n"


def made(*cells: str):
    return rows(table((("name", "left"), ("a number", "right"), ("why", "left"))), [cells])


def lines(width: int, *cells: str, **how) -> list[str]:
    def draw(console: Console) -> None:
        console.print(pinned(made(*cells), Options(width), **how))

    return collect(draw, Options(width)).splitlines()


def test_titles_of_numbers_wrap_before_anything_is_lost():
    assert lines(60, "x", "1", "because") == ["name  a number  why", "x            1  because"]
    assert lines(21, "x", "1", "because") == ["name       a  why", "      number", "x          1  because"]


def test_columns_are_dropped_in_order_and_named():
    assert lines(16, "x", "1", "because", drops=("why",)) == [
        "name  a number",
        "x            1",
        "not shown at 16",
        "columns: why",
    ]


def test_a_row_that_cannot_fit_is_written_as_lines():
    whole = ["  a/name", "    a number 12 us;", "    why", "    " + "w" * 13]
    assert lines(20, "  a/name", "12 us", "w" * 13) == whole
    assert lines(20, "  a/name", "12 us", "w" * 13, drops=("no such",)) == whole
    every = lines(17, "x", "12,345,678 us", "w", drops=("why",))
    assert every == ["x", "  a number", "  12,345,678 us;", "  why w"], "also what a narrow table would have dropped"


def test_letters_of_two_columns_are_counted_as_two():
    shown = lines(40, "模型" * 20, "1", "w")
    assert max(map(cell_len, shown)) <= 40
    assert words("".join(line.split()[0] for line in shown[1:])).replace("1w", "") == "模型" * 20

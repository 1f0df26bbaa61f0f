"""Quantities: what is read, what is refused and with which advice, and that writing and reading agree."""

import math
import re
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roofline.errors import RooflineError
from roofline.quantities import Dimension, binary, duration, exact, integer, parse, percent, ratio, si

WHOLE: list[Dimension] = ["bytes", "count"]
REAL: list[Dimension] = ["flop/s", "bytes/s", "hertz", "watts", "seconds"]


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("989.4 TFLOP/s", "flop/s", 989.4e12),
        ("989.4TFLOPS", "flop/s", 989.4e12),
        ("1979 TOP/s", "flop/s", 1979e12),
        ("1.979 POPS", "flop/s", 1979e12),
        ("1 EFLOP/s", "flop/s", 1e18),
        ("989.4e12", "flop/s", 989.4e12),
        ("3.35 TB/s", "bytes/s", 3.35e12),
        ("450 GB/s", "bytes/s", 450e9),
        ("1.5 GiB/s", "bytes/s", 1.5 * 2**30),
        ("80 GiB", "bytes", 80 * 2**30),
        ("80 GB", "bytes", 80 * 10**9),
        ("50MiB", "bytes", 50 * 2**20),
        ("227 KiB", "bytes", 227 * 2**10),
        ("1 kB", "bytes", 1000),
        ("512", "bytes", 512),
        ("1.83 GHz", "hertz", 1.83e9),
        ("1755 MHz", "hertz", 1.755e9),
        ("700 W", "watts", 700.0),
        ("1.2 kW", "watts", 1200.0),
        ("250 mW", "watts", 0.25),
        ("3.5 us", "seconds", 3.5e-6),
        ("3.5 µs", "seconds", 3.5e-6),
        ("3.5 \u03bcs", "seconds", 3.5e-6),
        ("7 ns", "seconds", 7e-9),
        ("4.48 ms", "seconds", 4.48e-3),
        ("60s", "seconds", 60.0),
        ("2 min", "seconds", 120.0),
        ("1.5 h", "seconds", 5400.0),
        ("8k", "count", 8000),
        ("8Ki", "count", 8192),
        ("1.5k", "count", 1500),
        ("1M", "count", 10**6),
        ("1_000", "count", 1000),
        ("1e6", "count", 10**6),
        ("  12  ", "count", 12),
        ("+5", "count", 5),
        ("-0", "count", 0),
        (".5 GB", "bytes", 5 * 10**8),
    ],
)
def test_what_people_write_is_read(text: str, dimension: Dimension, value: float):
    assert parse(text, dimension) == value


def test_bytes_and_counts_are_ints_and_the_rest_are_floats():
    assert all(type(parse(given, dimension)) is int for dimension in WHOLE for given in (3, 3.0, "3"))
    assert all(type(parse(given, dimension)) is float for dimension in REAL for given in (3, 3.0, "3"))


def test_a_large_count_keeps_every_digit():
    assert parse("9_007_199_254_740_993", "count") == 2**53 + 1


def test_a_prefixed_size_is_rounded_to_whole_bytes():
    assert parse("1.1 GiB", "bytes") == round(Fraction("1.1") * 2**30)


def test_reading_rounds_once():
    # Multiplying the float 0.3 by 1e12 or 1e-9 gives a neighbour of the right number.
    assert parse("4.35 GB/s", "bytes/s") == 4.35e9
    assert [parse(f"{n} ns", "seconds") for n in range(1, 2000)] == [float(f"{n}e-9") for n in range(1, 2000)]


# ---------------------------------------------------------------- refusals


def refusal(value: object, dimension: Dimension) -> RooflineError:
    with pytest.raises(RooflineError) as caught:
        parse(value, dimension)  # type: ignore[arg-type]
    error = caught.value
    assert error.code == "bad-quantity"
    assert error.exit_code == 2
    assert "write it like" in error.message
    return error


@pytest.mark.parametrize("dimension", WHOLE + REAL)
@pytest.mark.parametrize(
    "value",
    [True, False, None, [], {}, -1, -0.5, math.nan, math.inf, -math.inf, 10**400, "", " ", "fast", "-1", "nan", "inf",
     "1e999", "1,000", "0x10", "010", "1__0", "1 2", "1e", "--1", "٣", "1" * 1000, "1e99999999"],
)  # fmt: skip
def test_no_dimension_reads_this(value: object, dimension: Dimension):
    refusal(value, dimension)


@pytest.mark.parametrize("dimension", WHOLE)
@pytest.mark.parametrize("value", [0.5, "0.5", "1e-3", 1e-300])
def test_fractions_of_whole_things_are_refused(value: object, dimension: Dimension):
    assert "it has a fraction" in refusal(value, dimension).message


def test_a_count_with_a_prefix_must_be_whole_too():
    assert "it has a fraction" in refusal("1.0005k", "count").message


def test_a_number_that_would_vanish_is_refused():
    assert "too small" in refusal("1e-400", "seconds").message


@pytest.mark.parametrize(
    ("text", "dimension", "suggestions"),
    [
        ("8 KB", "bytes", ("8 kB", "8 KiB")),
        ("80 gb", "bytes", ("80 GB", "80 GiB")),
        ("8K", "count", ("8k", "8Ki")),
        ("3 GBps", "bytes/s", ("3 GB/s", "3 GiB/s")),
        ("989 tflops", "flop/s", ("989 TFLOP/s",)),
        ("989 TFLOPs", "flop/s", ("989 TFLOP/s",)),
        ("1.7 Ghz", "hertz", ("1.7 GHz",)),
        ("5 msec", "seconds", ("5 ms",)),
    ],
)
def test_a_unit_that_is_nearly_right_gets_the_right_one(text: str, dimension: Dimension, suggestions: tuple[str, ...]):
    assert refusal(text, dimension).suggestions[: len(suggestions)] == suggestions


@pytest.mark.parametrize(
    ("text", "dimension", "meanings"),
    [
        ("400 Gb/s", "bytes/s", ("50 GB/s", "400 GB/s")),
        ("400 Gbps", "bytes/s", ("50 GB/s", "400 GB/s")),
        ("400 Gbit/s", "bytes/s", ("50 GB/s", "400 GB/s")),
        ("3.2 Tb/s", "bytes/s", ("0.4 TB/s", "3.2 TB/s")),
        ("16 Gb", "bytes", ("2 GB", "16 GB")),
    ],
)
def test_bits_are_not_bytes(text: str, dimension: Dimension, meanings: tuple[str, str]):
    error = refusal(text, dimension)
    assert "bits are not bytes" in error.message
    assert error.suggestions == meanings
    assert all(parse(meaning, dimension) for meaning in meanings)


@pytest.mark.parametrize(
    ("text", "dimension", "is_a"),
    [
        ("80 GB", "bytes/s", "a size in bytes"),
        ("3.35 TB/s", "bytes", "a rate in bytes"),
        ("3.35 TB/s", "flop/s", "a rate in bytes"),
        ("5 ms", "hertz", "a time"),
        ("80 GiB", "count", "a size in bytes"),
    ],
)
def test_a_quantity_of_another_dimension_is_named(text: str, dimension: Dimension, is_a: str):
    assert f"it is {is_a}" in refusal(text, dimension).message


def test_every_example_in_a_message_is_itself_read():
    for dimension in WHOLE + REAL:
        example_text = refusal("?", dimension).message.partition("write it like ")[2]
        for text in example_text.split(" or "):
            assert parse(text, dimension) > 0


@settings(deadline=None)
@given(
    st.one_of(st.text(), st.text(alphabet="0123456789.eE+-_ kKMGTPEimunpBbFLOPSs/itµhzHzW")),
    st.sampled_from(WHOLE + REAL),
)
def test_any_text_is_read_or_refused(text: str, dimension: Dimension):
    try:
        value = parse(text, dimension)
    except RooflineError as error:
        assert error.code == "bad-quantity"
    else:
        assert math.isfinite(value)
        assert value >= 0


# ---------------------------------------------------------------- writing for files


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (989.4e12, "flop/s", "989.4 TFLOP/s"),
        (3.35e12, "bytes/s", "3.35 TB/s"),
        (80 * 2**30, "bytes", "80 GiB"),
        (80 * 10**9, "bytes", "80 GB"),
        (83_700_000_001, "bytes", "83700000001 B"),
        (1.83e9, "hertz", "1.83 GHz"),
        (700, "watts", "700 W"),
        (3.5e-6, "seconds", "3.5 us"),
        (8192, "count", "8192"),
        (0, "bytes", "0 B"),
        (0.0, "seconds", "0 s"),
    ],
)
def test_files_get_the_short_form(value: float, dimension: Dimension, text: str):
    assert exact(value, dimension) == text


@settings(deadline=None)
@given(st.floats(min_value=0, allow_infinity=False), st.sampled_from(REAL))
@example(5e-324, "seconds")
@example(1.7976931348623157e308, "flop/s")
def test_a_float_survives_writing_and_reading(value: float, dimension: Dimension):
    assert parse(exact(value, dimension), dimension) == value


@settings(deadline=None)
@given(st.one_of(st.integers(0, 2**100), st.builds(lambda n, p: n << p, st.integers(0, 999), st.integers(0, 70))),
       st.sampled_from(WHOLE))  # fmt: skip
def test_an_int_survives_writing_and_reading(value: int, dimension: Dimension):
    assert parse(exact(value, dimension), dimension) == value


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, True])
def test_what_cannot_be_read_is_not_written(value: float):
    with pytest.raises(RooflineError):
        exact(value, "bytes")


# ---------------------------------------------------------------- writing for people


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (989.4e12, "FLOP/s", "989 TFLOP/s"),
        (3.35e12, "B/s", "3.35 TB/s"),
        (83.7e9, "B", "83.7 GB"),
        (999.6e9, "B", "1.00 TB"),
        (999.4e9, "B", "999 GB"),
        (999_999, "B", "1.00 MB"),
        (10**12, "B", "1.00 TB"),
        (512, "B", "512 B"),
        (999.9, "B", "1.00 kB"),
        (0, "B", "0 B"),
        (0.25, "B", "0.250 B"),
        (0.25, "W", "250 mW"),
        (1e30, "B", "1.00e+30 B"),
        (1e-30, "s", "1.00e-30 s"),
        (-5e9, "B", "-5.00 GB"),
        (61.57e12, "FLOP", "61.6 TFLOP"),
        (1234, "", "1.23 k"),
    ],
)
def test_engineering_notation(value: float, unit: str, text: str):
    assert si(value, unit) == text


def test_the_number_of_digits_can_be_chosen():
    assert si(989.4e12, "FLOP/s", digits=4) == "989.4 TFLOP/s"
    assert si(989.4e12, "FLOP/s", digits=2) == "990 TFLOP/s"
    assert binary(1.234 * 2**30, digits=2) == "1.2 GiB"
    assert duration(1.23456e-3, digits=5) == "1.2346 ms"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (80 * 2**30, "80 GiB"),
        (1.5 * 2**20, "1.50 MiB"),
        (79.6 * 2**30, "79.6 GiB"),
        (1023 * 2**20, "1,023 MiB"),
        (1023.4 * 2**20, "1,023 MiB"),
        (1023.99 * 2**20, "1.00 GiB"),
        (2**20 - 1, "1.00 MiB"),
        (512, "512 B"),
        (0, "0 B"),
        (2**70, "1,024 EiB"),
    ],
)
def test_binary_sizes(value: float, text: str):
    assert binary(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.48e-3, "4.48 ms"),
        (12.34e-6, "12.3 us"),
        (7e-9, "7.00 ns"),
        (999.6e-6, "1.00 ms"),
        (1, "1.00 s"),
        (59.94, "59.9 s"),
        (59.96, "1.00 min"),
        (90, "1.50 min"),
        (3599.9, "1.00 h"),
        (5400, "1.50 h"),
        (86400 * 365, "8,760 h"),
        (-2e-3, "-2.00 ms"),
        (0, "0 s"),
    ],
)
def test_durations(value: float, text: str):
    assert duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (8_640_266_240, "8,640,266,240"),
        (0, "0"),
        (-1234, "-1,234"),
        (2.6, "3"),
        (2**60, f"{2**60:,}"),
        (1e30, "1.00e+30"),
    ],
)
def test_integers(value: float, text: str):
    assert integer(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.974, "97 %"), (1, "100 %"), (0.0443, "4.4 %"), (0.0996, "10 %"), (0.0004, "<0.1 %"), (0, "0 %"),
     (12.5, "1,250 %"), (-0.052, "-5.2 %"), (-0.0001, ">-0.1 %"), (1e30, "1.00e+32 %")],
)  # fmt: skip
def test_percentages(value: float, text: str):
    assert percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(62.4241, "62.42"), (0.9915, "0.99"), (1655.2, "1,655"), (345.1, "345.1"), (999.97, "1,000"), (99.996, "100.0"),
     (0.0123, "0.012"), (1e-9, "1.00e-09"), (0, "0"), (1e30, "1.00e+30")],
)  # fmt: skip
def test_ratios(value: float, text: str):
    assert ratio(value) == text


def test_a_ridge_in_three_digits():
    assert ratio(295.3, digits=3) == "295"
    assert ratio(14.72, digits=3) == "14.7"


FORMATTERS = [lambda x: si(x, "B"), lambda x: si(x, "s"), binary, duration, integer, percent, ratio]


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_what_has_no_digits(formatter):
    assert formatter(None) == "-"
    assert formatter(math.nan) == "-"
    assert formatter(math.inf).startswith("inf")
    assert formatter(-math.inf).startswith("-inf")
    assert formatter(10**400).startswith("inf")


@settings(deadline=None)
@given(st.one_of(st.none(), st.floats(), st.integers()), st.sampled_from(FORMATTERS))
def test_every_number_has_a_text(value, formatter):
    text = formatter(value)
    assert text
    assert text == text.strip()


@settings(deadline=None)
@given(st.floats(min_value=1, max_value=9e20))
def test_the_mantissa_carries_into_the_next_prefix(value: float):
    mantissa = float(si(value, "B").split()[0])
    assert 1 <= mantissa < 1000
    assert float(duration(value / 1e9).split()[0].replace(",", "")) >= 1
    assert float(binary(value).split()[0].replace(",", "")) < 1024


@settings(deadline=None)
@given(st.floats(min_value=1e-15, max_value=1e20), st.sampled_from(["s", "W"]))
def test_what_people_read_is_the_value_to_three_digits(value: float, unit: str):
    text = si(value, unit)
    prefix = re.sub(r"^[^ ]* ", "", text).removesuffix(unit)
    scale = {"p": -12, "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}[prefix]
    assert float(text.split()[0]) * 10.0**scale == pytest.approx(value, rel=0.0051)

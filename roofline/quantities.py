"""Quantities as people write them ("3.35 TB/s", "80 GiB", "8k") and the way back, for people and for files.

Reading is exact: the digits and the prefix are combined as integers and rounded to a float once, so that
``989.4 TFLOP/s`` and ``989.4e12`` are the same number. kB, MB, GB are powers of 1000; KiB, MiB, GiB of 1024.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, overload

from roofline.errors import RooflineError, nearest

Dimension: TypeAlias = Literal["flop/s", "bytes/s", "bytes", "hertz", "watts", "seconds", "count"]
_Whole: TypeAlias = Literal["bytes", "count"]
_Real: TypeAlias = Literal["flop/s", "bytes/s", "hertz", "watts", "seconds"]

_DECIMAL: Final = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SMALL: Final = {"m": -3, "u": -6, "n": -9, "p": -12}

# A unit is worth numerator / denominator of the base unit: integers, so that nothing is rounded on the way.
_Worth: TypeAlias = tuple[int, int]

_NUMBER: Final = re.compile(
    r"(?P<sign>[-+]?)(?P<whole>0|[1-9][0-9]*(?:_[0-9]+)*)?(?:\.(?P<part>[0-9]*))?(?:[eE](?P<exponent>[-+]?[0-9]{1,4}))?"
)
_BITS: Final = re.compile(r"([kKMGTPE]?i?)(?:[bB]its?(/s|ps)?|b(/s|ps)?)")
_LONGEST: Final = 400  # characters: more than the longest exact decimal that anyone writes


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a dimension is called, an example of it, and what its units are worth (the first is the base)."""

    noun: str
    example: str
    units: dict[str, _Worth]
    whole: bool = False


def _decimal(*units: str, prefixes: dict[str, int] = _DECIMAL) -> dict[str, _Worth]:
    return {
        prefix + unit: (10 ** max(power, 0), 10 ** max(-power, 0))
        for unit in units
        for prefix, power in prefixes.items()
    }


def _binary(unit: str) -> dict[str, _Worth]:
    return {prefix + unit: (1 << power, 1) for prefix, power in _BINARY.items()}


_MICRO: Final = dict.fromkeys(("µs", "μs"), (1, 10**6))  # the micro sign and the Greek letter
_CLOCK: Final = {"min": (60, 1), "h": (3600, 1)}

_KINDS: Final[dict[str, _Kind]] = {
    "flop/s": _Kind("a rate of operations", "989.4 TFLOP/s", _decimal("FLOP/s", "OP/s", "FLOPS", "OPS")),
    "bytes/s": _Kind("a rate in bytes", "3.35 TB/s", _decimal("B/s") | _binary("B/s")),
    "bytes": _Kind("a size in bytes", "80 GiB", _decimal("B") | _binary("B"), whole=True),
    "hertz": _Kind("a frequency", "1.83 GHz", _decimal("Hz")),
    "watts": _Kind("a power", "700 W", _decimal("W", prefixes=_DECIMAL | _SMALL)),
    "seconds": _Kind("a time", "3.5 us", _decimal("s", prefixes={"": 0} | _SMALL) | _MICRO | _CLOCK),
    "count": _Kind("a whole number", "4096 or 8k", _decimal("") | _binary(""), whole=True),
}


@overload
def parse(value: str | int | float, dimension: _Whole) -> int: ...
@overload
def parse(value: str | int | float, dimension: _Real) -> float: ...
@overload
def parse(value: str | int | float, dimension: Dimension) -> int | float: ...
def parse(value: str | int | float, dimension: Dimension) -> int | float:
    """Read a quantity of the given dimension into its base unit (FLOP/s, B/s, B, Hz, W, s, or a plain count).

    ``bytes`` and ``count`` give an int, every other dimension a float. A number without a unit is in the base
    unit. A prefixed size that is no whole number of bytes ("1.1 GiB") is rounded to the nearest byte.
    Raises ``RooflineError`` ("bad-quantity") for anything else: unknown or wrong units, bits, negative
    values, NaN, infinity, booleans, and fractions of what comes whole.
    """
    kind = _KINDS[dimension]
    if isinstance(value, str):
        return _from_text(value, kind)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _refusal(value, kind)
    if not _fits(value):
        raise _refusal(value, kind, "it is not a finite number")
    if value < 0:
        raise _refusal(value, kind, "it is negative")
    if not kind.whole:
        return abs(float(value))
    if value != int(value):
        raise _refusal(value, kind, "it has a fraction")
    return int(value)


def _fits(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond the range of a float
        return False


def _from_text(text: str, kind: _Kind) -> int | float:
    stripped = text.strip()
    match = _NUMBER.match(stripped) if len(stripped) <= _LONGEST else None
    if match is None or not (match["whole"] or match["part"]):
        raise _refusal(text, kind)
    unit = stripped[match.end() :].strip()
    if unit[:1] in tuple(".,_0123456789"):
        raise _refusal(text, kind, "numbers are written as 1234, 1_234, 12.5 or 1.25e3")
    digits = (match["whole"] or "").replace("_", "") + (match["part"] or "")
    if match["sign"] == "-" and digits.strip("0"):
        raise _refusal(text, kind, "it is negative")
    if unit and unit not in kind.units:
        raise _wrong_unit(text, match[0], unit, kind)
    numerator, denominator = kind.units[unit] if unit else (1, 1)
    power = int(match["exponent"] or 0) - len(match["part"] or "")
    numerator *= int(digits) * 10 ** max(power, 0)
    denominator *= 10 ** max(-power, 0)
    return _whole(text, numerator, denominator, unit, kind) if kind.whole else _real(text, numerator, denominator, kind)


def _whole(text: str, numerator: int, denominator: int, unit: str, kind: _Kind) -> int:
    quotient, remainder = divmod(numerator, denominator)
    # What a prefix leaves over is rounding (1.1 GiB); what a bare number or a count leaves over is a fault.
    if remainder and (unit in ("", "B") or not unit.endswith("B")):
        raise _refusal(text, kind, "it has a fraction")
    if not _fits(quotient):
        raise _refusal(text, kind, "it is too large")
    return quotient + (2 * remainder >= denominator)


def _real(text: str, numerator: int, denominator: int, kind: _Kind) -> float:
    try:
        value = numerator / denominator  # of two ints: rounded correctly, once
    except OverflowError:
        raise _refusal(text, kind, "it is too large") from None
    if numerator and not value:
        raise _refusal(text, kind, "it is too small")
    return value


def _refusal(value: object, kind: _Kind, why: str = "", suggestions: tuple[str, ...] = ()) -> RooflineError:
    given = {"True": "true", "False": "false", "None": "nothing"}.get(repr(value), repr(value))
    given = given if len(given) <= 60 else f"{given[:57]}..."
    reason = f", {why}" if why else ""
    message = f"{given} is not {kind.noun}{reason}: write it like {kind.example}"
    return RooflineError(message, code="bad-quantity", suggestions=suggestions)


def _wrong_unit(text: str, number: str, unit: str, kind: _Kind) -> RooflineError:
    bits = _BITS.fullmatch(unit)
    if bits and "B" in "".join(kind.units):
        return _bits(text, number, bits, kind)
    for dimension, other in _KINDS.items():
        if dimension != "count" and unit in other.units:  # every prefix is a unit of a count: that says nothing
            return _refusal(text, kind, f"it is {other.noun}")
    space = "" if "" in kind.units else " "  # 8k, but 3 GB/s
    near = tuple(f"{number}{space}{right}" for right in _near_units(unit, kind))
    return _refusal(text, kind, f"{unit!r} is no unit of it", near)


def _bits(text: str, number: str, bits: re.Match[str], kind: _Kind) -> RooflineError:
    """The refusal of ``400 Gb/s``, with both that may be meant: its bytes, or only another case."""
    prefix = bits[1].replace("K", "k") if "i" not in bits[1] else bits[1]
    unit = prefix + ("B/s" if bits[2] or bits[3] else "B")
    if unit not in kind.units:
        return _refusal(text, kind, "bits are not bytes")
    eighth = f"{float(number.replace('_', '')) / 8:.12g}"
    return _refusal(
        text,
        kind,
        f"bits are not bytes ({text.strip()} is {eighth} {unit})",
        (f"{eighth} {unit}", f"{number} {unit}"),
    )


def _near_units(unit: str, kind: _Kind) -> tuple[str, ...]:
    """Right units that the wrong one resembles: the same letters in another case first (KB: kB, KiB)."""
    word = re.sub(r"ps$", "/s", unit)
    wanted = (word.lower(), unit.lower())
    right = [each for each in kind.units if each]
    same = [each for each in right if each.lower() in wanted]
    same += [each for each in right if each.lower().replace("i", "", 1) in wanted]
    # FLOPS and FLOP/s are one unit: suggest the spelling that the program prints.
    same = [each.replace("OPS", "OP/s") for each in same]
    return tuple(dict.fromkeys(same))[:3] or nearest(word, right, 2)


# ---------------------------------------------------------------- for files


def exact(value: int | float, dimension: Dimension) -> str:
    """The shortest quantity that ``parse`` reads back as exactly this number: ``80 GiB``, ``989.4 TFLOP/s``.

    Raises ``RooflineError`` where ``parse`` refuses the number (negative, NaN, a fraction of a byte).
    """
    number = parse(value, dimension)
    if dimension == "count":
        return str(number)
    if not number:
        return f"0 {next(iter(_KINDS[dimension].units))}"
    return min(_spellings(number, dimension), key=len)


def _spellings(number: int | float, dimension: Dimension) -> Iterator[str]:
    """Exact ways to write a number, best first where two are equally short."""
    digits, exponent = _digits(number)
    units = _KINDS[dimension].units
    base = next(iter(units))
    for prefix, power in (_DECIMAL | _SMALL).items():
        if prefix + base in units and 0 <= exponent - power < 3:
            yield f"{_shift(digits, exponent - power)} {prefix}{base}"
    for prefix, power in _BINARY.items():
        if isinstance(number, int) and number % (1 << power) == 0 and number >> power < 1 << 20:
            yield f"{number >> power} {prefix}{base}"
    yield f"{number!r} {base}"


def _digits(number: int | float) -> tuple[str, int]:
    """The shortest decimal digits of a number and the power of ten of the first one."""
    if isinstance(number, int):
        text = str(number)
        return text.rstrip("0") or "0", len(text) - 1
    mantissa, _, exponent = f"{number!r}".partition("e")
    whole, _, part = mantissa.partition(".")
    stripped = (whole + part).lstrip("0")
    first = int(exponent or 0) + len(whole) - 1 - (len(whole + part) - len(stripped))
    return stripped.rstrip("0") or "0", first


def _shift(digits: str, exponent: int) -> str:
    """Decimal text of d.ddd x 10^exponent, for an exponent of at least 0."""
    padded = digits.ljust(exponent + 1, "0")
    whole, part = padded[: exponent + 1], padded[exponent + 1 :]
    return f"{whole}.{part}" if part else whole


# ---------------------------------------------------------------- for people


def si(value: float | None, unit: str, digits: int = 3) -> str:
    """Engineering notation with decimal prefixes: ``989 TFLOP/s``, ``3.35 TB/s``, ``83.7 GB``.

    ``digits`` are significant. None and NaN give ``-``. Only s, W, J and Hz take prefixes under one.
    """
    if value is None or not _has_digits(value):
        return _digitless(value, unit)
    if isinstance(value, int) and abs(value) < 1000:
        return f"{value} {unit}".strip()
    prefixes = {power: prefix for prefix, power in _DECIMAL.items()}
    if unit in ("s", "W", "J", "Hz"):
        prefixes |= {power: prefix for prefix, power in _SMALL.items()}
    exponent = _exponent(value, digits)
    power = exponent - exponent % 3
    if power not in prefixes:
        return f"{_significant(value, digits)} {unit}".strip()
    scaled = value / 10**power if power > 0 else value * 10**-power
    return f"{_significant(scaled, digits)} {prefixes[power]}{unit}".strip()


def binary(n_bytes: float | None, digits: int = 3) -> str:
    """A size with binary prefixes: ``80 GiB``, ``1.50 MiB``, ``512 B``; whole amounts without decimals."""
    if n_bytes is None or not _has_digits(n_bytes):
        return _digitless(n_bytes, "B")
    units = {0: "B"} | {power: f"{prefix}B" for prefix, power in _BINARY.items()}
    # Below the next prefix there are up to 1,023 of the last one: those take four digits.
    most = max(digits, 4)
    power = next((power for power in units if abs(_rounded(n_bytes / 2**power, most)) < 1024), 60)
    scaled = n_bytes / 2**power
    if scaled == int(scaled) and abs(scaled) < 2**53:
        return f"{int(scaled):,} {units[power]}"
    return f"{_significant(scaled, most if abs(scaled) >= 1000 else digits)} {units[power]}"


def duration(seconds: float | None, digits: int = 3) -> str:
    """A time: ``12.3 us``, ``4.48 ms``, ``1.50 min``, ``2.00 h``."""
    if seconds is None or not _has_digits(seconds):
        return _digitless(seconds, "s")
    if abs(_rounded(seconds, digits)) < 60:
        return si(float(seconds), "s", digits)
    scale, unit = (60, "min") if abs(_rounded(seconds / 60, digits)) < 60 else (3600, "h")
    # What only rounds to a whole minute or hour (59.96 s) is shown as one, not as 0.999.
    amount = math.copysign(max(abs(seconds) / scale, 1), seconds)
    return f"{_significant(amount, digits)} {unit}"


def integer(n: float | None) -> str:
    """A whole number with separators: ``8,640,266,240``.

    A float is rounded, and given in scientific notation where it is too large to hold its last digits.
    """
    if n is None or not _has_digits(n):
        return _digitless(n, "")
    if isinstance(n, float) and abs(n) >= 2**53:
        return f"{n:.2e}"
    return f"{round(n):,}"


def percent(fraction: float | None) -> str:
    """A share: ``97 %``, ``4.4 %``, ``<0.1 %``, ``0 %``; a change may be negative."""
    if fraction is None or not _has_digits(fraction):
        return _digitless(fraction, "%")
    size = abs(fraction) * 100
    sign = "-" if fraction < 0 else ""
    if size < 0.05:
        return f"{'>' if sign else '<'}{sign}0.1 %"
    if size < 9.95:
        return f"{sign}{size:.1f} %"
    return f"{sign}{size:,.0f} %" if size < 1e15 else f"{sign}{size:.2e} %"


def ratio(x: float | None, digits: int = 4) -> str:
    """An intensity, a ridge or a headroom: ``62.42``, ``0.99``, ``345.1``, ``1,655``.

    ``digits`` are significant, but no more than two decimals are shown where those hold two digits.
    """
    if x is None or not _has_digits(x):
        return _digitless(x, "")
    exponent = _exponent(x, digits)
    if not -5 < exponent < 15:
        return _significant(x, 3)
    most = 2 if exponent >= -1 else 1 - exponent
    return f"{x:,.{min(max(digits - 1 - exponent, 0), most)}f}"


def _has_digits(value: float) -> bool:
    return _fits(value) and value != 0


def _digitless(value: float | None, unit: str) -> str:
    """The text of None, NaN, 0 and the infinities (an int beyond the range of floats among them)."""
    if value is None or value != value:
        return "-"
    if value == 0:
        return f"0 {unit}".strip()
    return f"{'inf' if value > 0 else '-inf'} {unit}".strip()


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _exponent(value: float, digits: int) -> int:
    """The power of ten of the first digit after rounding, so that 999.9 GB is seen as 1.00 TB."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def _significant(value: float, digits: int) -> str:
    """Decimal text with that many significant digits, thousands separated; scientific where that is long."""
    exponent = _exponent(value, digits)
    if not -5 < exponent < 15:
        return f"{value:.{digits - 1}e}"
    return f"{_rounded(value, digits):,.{max(digits - 1 - exponent, 0)}f}"

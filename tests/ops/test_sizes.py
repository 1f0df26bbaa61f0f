from __future__ import annotations

import numpy
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from roofline.ops.sizes import bytes_of, ceil_div, half, maximum, minimum, product, triangle

LARGE = st.integers(0, 2**50)


def on_each_kind(function, *values):
    """The same function on ints, on float64 arrays and on symbols that the values are put in for."""
    symbols = sympy.symbols(f"a:{len(values)}", integer=True, nonnegative=True)
    closed = sympy.sympify(function(*symbols)).subs(dict(zip(symbols, values, strict=True)))
    arrays = function(*(numpy.array([float(value)]) for value in values))
    return function(*values), int(arrays[0]), int(closed)


@given(LARGE, st.integers(1, 10**6))
def test_division_rounds_up(a, b):
    """Dividing floats and rounding would be one too large where the quotient is just above an integer in float64."""
    exact = -(-a // b)
    assert on_each_kind(ceil_div, a, b) == (exact, exact, exact)


@given(LARGE, LARGE)
def test_smaller_and_larger(a, b):
    assert on_each_kind(minimum, a, b) == (min(a, b),) * 3
    assert on_each_kind(maximum, a, b) == (max(a, b),) * 3


@given(st.integers(0, 10**4))
def test_triangles(n):
    assert on_each_kind(triangle, n) == (sum(range(n + 1)),) * 3


def test_the_triangle_of_minus_one_is_empty():
    assert triangle(-1) == triangle(0) == 0


def test_half_of_an_int_is_an_int():
    assert half(2**70) == 2**69
    assert isinstance(half(4), int)


def test_the_product_of_nothing_is_one():
    assert product(()) == 1
    assert bytes_of((), "fp32") == 4


def test_one_array_among_ints_is_enough():
    assert minimum(3, numpy.array([1.0, 5.0])).tolist() == [1.0, 3.0]
    assert bytes_of((2, numpy.array([1.0, 33.0])), "mxfp4").tolist() == [2 * (1 + 1), 2 * (17 + 2)]


@pytest.mark.parametrize("columns", [1, 15, 16, 17, 128, 129])
def test_rows_are_padded_to_whole_bytes_and_blocks_do_not_cross_them(columns):
    assert bytes_of((3, columns), "nvfp4") == 3 * bytes_of((columns,), "nvfp4")

"""Arithmetic on sizes that reads the same for ints, numpy arrays of float64 and sympy expressions.

Every cost formula is written once with ``+ - *`` and these functions; then one call prices one workload exactly
(int), a million at once (float64 arrays), or gives the closed form (sympy).
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from roofline.dtypes import ROW, DType, dtype

Size: TypeAlias = Any
"""An int, a numpy array of float64, or a sympy expression."""


def is_symbolic(*values: Size) -> bool:
    """Whether any of the values is a sympy expression (without importing sympy)."""
    return any(hasattr(value, "free_symbols") for value in values)


def is_array(*values: Size) -> bool:
    """Whether any of the values is a numpy array (without importing numpy)."""
    return any(hasattr(value, "ndim") for value in values)


def product(values: Iterable[Size]) -> Size:
    """The product of all values, 1 for none."""
    result: Size = 1
    for value in values:
        result = result * value
    return result


def ceil_div(a: Size, b: Size) -> Size:
    """``a / b`` rounded up."""
    if is_symbolic(a, b):
        import sympy

        return sympy.ceiling(sympy.sympify(a) / b)
    # floor division of floats is computed through fmod and so exact where a / b would round up to an integer
    return -(-a // b)


def minimum(a: Size, b: Size) -> Size:
    """The smaller of two sizes, element by element for arrays."""
    if is_symbolic(a, b):
        import sympy

        return sympy.Min(a, b)
    if is_array(a, b):
        import numpy

        return numpy.minimum(a, b)
    return a if a <= b else b


def maximum(a: Size, b: Size) -> Size:
    """The larger of two sizes, element by element for arrays."""
    if is_symbolic(a, b):
        import sympy

        return sympy.Max(a, b)
    if is_array(a, b):
        import numpy

        return numpy.maximum(a, b)
    return a if a >= b else b


def triangle(n: Size) -> Size:
    """``1 + 2 + ... + n`` = n (n + 1) / 2, an int for an int (0 for n = -1)."""
    return half(n * (n + 1))


def half(even: Size) -> Size:
    """Half of an even number, an int for an int."""
    return even // 2 if isinstance(even, int) else even / 2


def bytes_of(shape: Sequence[Size], name: str) -> Size:
    """Bytes of a tensor of ``shape`` stored as dtype ``name``, its scales and zero points included.

    Scale blocks run along the last axis and do not cross it; each row is padded to whole bytes.
    """
    if not shape:
        return bytes_of((1,), name)
    return product(shape[:-1]) * _row_bytes(shape[-1], dtype(name))


def _row_bytes(n: Size, stored: DType) -> Size:
    if stored.block_bits == 0 and stored.bits % 8 == 0:
        return n * (stored.bits // 8)
    blocks = 1 if stored.block == ROW else ceil_div(n, stored.block)
    if stored.bits % 8 == 0 and stored.block_bits % 8 == 0:
        return n * (stored.bits // 8) + blocks * (stored.block_bits // 8)
    return ceil_div(n * stored.bits + blocks * stored.block_bits, 8)

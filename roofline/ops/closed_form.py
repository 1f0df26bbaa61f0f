"""The formulas of an op as text: its declaration evaluated on symbols, and the same with the numbers put in."""

from dataclasses import dataclass
from typing import Any

from roofline.ops.base import Op, op_fields, sizes_of, symbolic
from roofline.ops.sizes import Size


@dataclass(frozen=True, slots=True)
class Formula:
    """A quantity: its closed form, the closed form with numbers for symbols, and its value."""

    closed: str
    numbers: str
    value: Size


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """Everything that an op declares, in symbols. ``symbols`` is (symbol, field, value, meaning)."""

    symbols: tuple[tuple[str, str, Size, str], ...]
    arithmetic: dict[str, Formula]
    tensors: dict[str, tuple[Formula, str]]
    """By tensor: its traffic in bytes, and the shape in symbols."""
    flops: Formula
    bytes: Formula
    intensity: str


def closed_form(op: Op) -> ClosedForm:
    """The closed form of ``op``; loads sympy."""
    import sympy

    infos, values, twin = op_fields(type(op)), sizes_of(op), symbolic(op)
    numbers = {infos[name].symbol: value for name, value in values.items()}

    def formula(expression: Any, value: Size) -> Formula:
        tidy = _tidy(sympy.sympify(expression))
        return Formula(_text(tidy, {}), _text(tidy, numbers), value)

    pairs = zip(twin.tensors(), op.tensors(), strict=True)
    return ClosedForm(
        symbols=tuple((infos[name].symbol, name, value, infos[name].doc) for name, value in values.items()),
        arithmetic={
            str(engine): formula(twin.arithmetic()[engine], count) for engine, count in op.arithmetic().items()
        },
        tensors={
            known.name: (formula(named.traffic_bytes, known.traffic_bytes), _shape(named.shape))
            for named, known in pairs
        },
        flops=formula(twin.flops, op.flops),
        bytes=formula(twin.traffic_bytes, op.traffic_bytes),
        intensity=_text(sympy.factor(sympy.cancel(sympy.sympify(twin.flops) / twin.traffic_bytes)), {}),
    )


def _tidy(expression: Any) -> Any:
    """The shorter of the expression as declared and its factored form."""
    import sympy

    if expression.has(sympy.Min, sympy.Max, sympy.floor, sympy.ceiling):
        return expression
    factored = sympy.factor(expression)
    return factored if len(str(factored)) < len(str(expression)) else expression


def _shape(shape: tuple[Any, ...]) -> str:
    texts = (_text(size, {}) for size in shape)
    return " x ".join(f"({text})" if " " in text else text for text in texts)


def _text(expression: Any, numbers: dict[str, Size]) -> str:
    """The expression in plain ASCII with ``numbers`` in place of their symbols, unevaluated."""
    from sympy.printing.str import StrPrinter

    class Printer(StrPrinter):  # type: ignore[misc]
        def _print_Symbol(self, symbol: Any) -> str:
            return str(numbers.get(symbol.name, symbol.name))

    return str(Printer({"order": "none"}).doprint(expression)).replace("**", "^")

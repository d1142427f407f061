"""Sizes by name: dimensions whose names are arithmetic with other names.

Exporters write `past + sequence` or `64*batch` where a size follows from others. Arbitrary sizes in
place of these fit no model. The input is the names of dimensions; the output is what the names say. A
name promises nothing: the model itself decides whether it takes the draws.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from eqsat.facts.dims import Dim, evaluate, floordiv, symbol, symbols
from eqsat.facts.polynomials import add, mul, sub

_LONGEST = 200  # characters of a name that is read
_SMALL = 3  # the size that is tried for the names within
_ABSURD = 1 << 24


def sizes_by_name(names: Iterable[str]) -> dict[str, Dim]:
    """Returns the sizes of those names that are arithmetic, in terms of the names within them."""
    found: dict[str, Dim] = {}
    for name in names:
        if not name.isidentifier() and len(name) <= _LONGEST:
            try:
                size = _size(ast.parse(name.strip(), mode="eval").body)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            # Where small sizes make it absurd, the name says nothing that could be drawn.
            usual = evaluate(size, dict.fromkeys(symbols(size), _SMALL))
            if usual is not None and 0 <= usual < _ABSURD:
                found[name] = size
    return found


def _size(expression: ast.expr) -> Dim:
    """Returns the size that an expression stands for, None if it is anything but integers, names and
    their sums, differences, products and whole quotients.
    """
    match expression:
        case ast.Name(name):
            return symbol(name)
        case ast.Constant(int(number)) if not isinstance(number, bool):
            return number
        case ast.BinOp(left, operator, right):
            a, b = _size(left), _size(right)
            match operator:
                case ast.Add():
                    return add(a, b)
                case ast.Sub():
                    return sub(a, b)
                case ast.Mult():
                    return mul(a, b)
                case ast.FloorDiv():
                    return floordiv(a, b)
                case _:
                    return None
        case _:
            return None

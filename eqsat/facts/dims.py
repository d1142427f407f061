"""Sizes: integers, polynomials over named dimensions, or unknown (None).

The functions take integers, names and sizes and return a `Dim` in normal form, so equal polynomials
compare equal quickly. Every named dimension is an integer >= 0, or > 0 if it is `promised`. A `Dim` that is not None evaluates
to the size it stands for, at all values of its names. A size that would grow past the limits below
becomes None.

Every runtime refuses to divide by a size of 0. So a quotient only has to hold where its divisor is
not 0: `N*64 // N` is 64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Literal

from eqsat.facts.polynomials import (
    INT64_MAX,
    INT64_MIN,
    TERM_LIMIT,
    Atom,
    Dim,
    Known,
    Monomial,
    Opaque,
    Poly,
    add,
    alone,
    exact_divide,
    is_promised,
    mul,
    negate,
    normal,
    plain,
    product,
    promised,
    render,
    structure,
    sub,
    symbol,
    terms_of,
    whole,
)

# The polynomials' own functions belong to this interface, so users import from one place.
__all__ = [
    "INT64_MAX",
    "INT64_MIN",
    "TERM_LIMIT",
    "Dim",
    "Known",
    "Poly",
    "add",
    "bounds",
    "ceildiv",
    "equal",
    "evaluate",
    "exact_divide",
    "floordiv",
    "maximum",
    "minimum",
    "mul",
    "negate",
    "nonnegative",
    "plain",
    "precision",
    "product",
    "promised",
    "render",
    "structure",
    "sub",
    "substitute",
    "symbol",
    "symbols",
    "tells_zero",
    "truncdiv",
    "whole",
]

# The most names and functions inside one opaque atom, at any depth. It bounds the work on a Dim.
WEIGHT_LIMIT = 24
# The most refinements of one bound; each branches at most four ways.
_REFINEMENTS = 3


def _opaque(kind: Literal["//", "max", "min"], *arguments: Known) -> Dim:
    if sum(_weight(argument) for argument in arguments) > WEIGHT_LIMIT:
        return None
    return alone(Opaque(kind, arguments))


def _weight(value: Known) -> int:
    if isinstance(value, int):
        return 0
    return sum(1 if isinstance(atom, str) else 1 + sum(map(_weight, atom.arguments)) for monomial, _ in value for atom in monomial)


def floordiv(a: Dim, b: Dim) -> Dim:
    """Return `a / b` rounded down. Exact quotients and quotients by integers have one form."""
    if a is None or b is None or b == 0:
        return None
    if isinstance(b, int):
        if isinstance(a, int):
            return whole(a // b)
        return floordiv(negate(a), -b) if b < 0 else _floordiv(a, b)
    exact = exact_divide(a, b)
    if exact is not None:
        return exact
    common = math.gcd(*(coefficient for value in (a, b) for _, coefficient in terms_of(value)))
    if common > 1:
        return floordiv(exact_divide(a, common), exact_divide(b, common))
    return _opaque("//", a, b)


def _floordiv(a: Poly, b: int) -> Dim:
    quotient = normal({monomial: coefficient // b for monomial, coefficient in a})
    rest = normal({monomial: coefficient % b for monomial, coefficient in a})
    if isinstance(rest, int) or rest is None:
        return None if rest is None else quotient  # the remainder is less than b
    for monomial, coefficient in rest:
        inner = monomial[0] if len(monomial) == 1 else ""
        if coefficient == 1 and isinstance(inner, Opaque) and inner.kind == "//" and isinstance(inner.arguments[1], int):
            # floor((r + floor(x / c)) / b) = floor((r*c + x) / (b*c)), for integers b, c > 0
            others = sub(rest, Poly(((monomial, 1),)))
            return add(quotient, floordiv(add(mul(others, inner.arguments[1]), inner.arguments[0]), mul(b, inner.arguments[1])))
    lower, upper = bounds(rest)
    if lower is not None and upper is not None and lower // b == upper // b:
        return add(quotient, lower // b)
    common = math.gcd(b, *(coefficient for monomial, coefficient in rest if monomial))
    if common > 1:
        # floor((g*r + c) / (g*b)) = floor((r + floor(c / g)) / b)
        return add(quotient, floordiv(normal({monomial: coefficient // common for monomial, coefficient in rest}), b // common))
    return add(quotient, _opaque("//", rest, b))


def ceildiv(a: Dim, b: Dim) -> Dim:
    """Return `a / b` rounded up."""
    return negate(floordiv(negate(a), b)) if not isinstance(b, int) or b < 0 else floordiv(add(a, b - 1), b)


def truncdiv(a: Dim, b: Dim) -> Dim:
    """Return `a / b` rounded towards 0, as ONNX divides integers."""
    exact = exact_divide(a, b)
    if exact is not None:
        return exact
    if isinstance(b, int):
        return negate(truncdiv(a, -b)) if b < 0 else sub(floordiv(maximum(0, a), b), floordiv(maximum(0, negate(a)), b))
    return floordiv(a, b) if nonnegative(a) and nonnegative(b) else None


def minimum(*values: Dim) -> Dim:
    """Return the minimum."""
    return _extreme("min", values)


def maximum(*values: Dim) -> Dim:
    """Return the maximum."""
    return _extreme("max", values)


def _extreme(kind: Literal["max", "min"], values: Iterable[Dim]) -> Dim:
    arguments: list[Known] = []
    for value in values:
        if value is None:
            return None
        inner = value[0][0][0] if isinstance(value, Poly) and len(value) == 1 and value[0][1] == 1 and len(value[0][0]) == 1 else ""
        arguments.extend(inner.arguments if isinstance(inner, Opaque) and inner.kind == kind else (value,))
    numbers = [value for value in arguments if isinstance(value, int)]
    kept: list[Known] = [(max if kind == "max" else min)(numbers)] if numbers else []
    for value in dict.fromkeys(value for value in arguments if not isinstance(value, int)):
        if not any(_dominates(kind, other, value) for other in kept):
            kept = [other for other in kept if not _dominates(kind, value, other)] + [value]
    if len(kept) == 1:
        return kept[0]
    return _opaque(kind, *sorted(kept, key=structure)) if len(kept) <= TERM_LIMIT else None


def _dominates(kind: Literal["max", "min"], a: Known, b: Known) -> bool:
    lower, upper = bounds(sub(a, b))
    return (lower is not None and lower >= 0) if kind == "max" else (upper is not None and upper <= 0)


@functools.lru_cache(maxsize=1 << 14)
def bounds(value: Dim) -> tuple[int | None, int | None]:
    """Return an interval of `value` for all that its names may be; None stands for no bound."""
    if value is None or isinstance(value, int):
        return value, value
    below = _lower(negate(value), _REFINEMENTS)
    return _lower(value, _REFINEMENTS), None if below is None else -below


def _lower(value: Dim, refinements: int) -> int | None:
    if value is None or isinstance(value, int):
        return value
    lower: int | None = 0
    for monomial, coefficient in value:
        least = _monomial_bounds(monomial)[0 if coefficient > 0 else 1]
        lower = None if lower is None or least is None else lower + coefficient * least
    functions = [(atoms[0], coefficient) for atoms, coefficient in value if len(atoms) == 1 and isinstance(atoms[0], Opaque)]
    if not functions or len(value) == 1 or not refinements:
        return lower
    refined = _refined_lower(value, functions, refinements - 1)
    return refined if lower is None else lower if refined is None else max(lower, refined)


def _refined_lower(value: Poly, functions: list[tuple[Opaque, int]], refinements: int) -> int | None:
    """Return a lower bound that relates functions of the same names: H - H//2 >= 0."""
    for atom, coefficient in functions:
        if atom.kind == "//" or len(atom.arguments) > 4:
            continue
        # A minimum equals one of its arguments and is at most each of them; a maximum mirrors this.
        rest = sub(value, mul(alone(atom), coefficient))
        found = [_lower(add(rest, mul(argument, coefficient)), refinements) for argument in atom.arguments]
        known = [low for low in found if low is not None]
        if (atom.kind == "min") == (coefficient < 0):
            return max(known, default=None)
        return min(known) if len(known) == len(found) else None
    # floor(x / k) lies between (x - k + 1) / k and x / k. The sum is scaled by all k and bounded.
    floors = [(atom, coefficient, atom.arguments[1]) for atom, coefficient in functions]
    scale = math.lcm(*(divisor for atom, _, divisor in floors if atom.kind == "//" and isinstance(divisor, int)))
    total = mul(value, scale)
    for atom, coefficient, divisor in floors:
        if atom.kind != "//" or not isinstance(divisor, int):
            return None
        least = atom.arguments[0] if coefficient < 0 else sub(atom.arguments[0], divisor - 1)
        total = add(total, mul(alone(atom), -coefficient * scale), mul(least, coefficient * (scale // divisor)))
    low = _lower(total, refinements)
    return None if low is None else -(-low // scale)


def _monomial_bounds(monomial: Monomial) -> tuple[int | None, int | None]:
    low, high = 1, 1
    for atom in monomial:
        least, most = (int(is_promised(atom)), None) if isinstance(atom, str) else _opaque_bounds(atom)
        if least is None or least < 0:
            return _opaque_bounds(atom) if len(monomial) == 1 and isinstance(atom, Opaque) else (None, None)
        low *= least
        high = None if high is None or most is None else high * most
    return low, high


def _opaque_bounds(atom: Opaque) -> tuple[int | None, int | None]:
    intervals = [bounds(argument) for argument in atom.arguments]
    if atom.kind == "//":
        (low, high), (least, most) = intervals
        if least is not None and least == most:
            return None if low is None else low // least, None if high is None else high // least
        if low is not None and low >= 0 and least is not None and least >= 0:
            return 0, high
        return None, None
    lows, highs = [low for low, _ in intervals], [high for _, high in intervals]
    known_lows, known_highs = [low for low in lows if low is not None], [high for high in highs if high is not None]
    if atom.kind == "max":
        return max(known_lows, default=None), max(known_highs) if len(known_highs) == len(highs) else None
    return min(known_lows) if len(known_lows) == len(lows) else None, min(known_highs, default=None)


def nonnegative(value: Dim) -> bool:
    """Tell whether `value` is known to be >= 0."""
    lower, _ = bounds(value)
    return lower is not None and lower >= 0


def equal(a: Dim, b: Dim) -> bool | None:
    """Return True if two sizes are equal for all names, False if for none, None if unknown."""
    if a is None or b is None:
        return None
    if a == b:
        return True
    if isinstance(a, int) and isinstance(b, int):
        return False
    lower, upper = bounds(sub(a, b))
    return False if (lower is not None and lower > 0) or (upper is not None and upper < 0) else None


def substitute(value: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """Replace the names in `sizes` in `value`, all at once."""
    if value is None or isinstance(value, int):
        return value
    return add(*(functools.reduce(mul, [_substitute_atom(atom, sizes) for atom in monomial], whole(coefficient)) for monomial, coefficient in value))


def _substitute_atom(atom: Atom, sizes: Mapping[str, Dim]) -> Dim:
    if isinstance(atom, str):
        return sizes[atom] if atom in sizes else symbol(atom)
    arguments = [substitute(argument, sizes) for argument in atom.arguments]
    if atom.kind == "//":
        return floordiv(*arguments)
    return _extreme(atom.kind, arguments)


def evaluate(value: Dim, sizes: Mapping[str, int]) -> int | None:
    """Return the integer `value` at `sizes`; None if a name is missing or a divisor is 0."""
    result = substitute(value, sizes)
    return result if isinstance(result, int) else None


@functools.lru_cache(1 << 12)
def symbols(value: Dim) -> tuple[str, ...]:
    """Return the distinct names in `value`, sorted."""
    if value is None or isinstance(value, int):
        return ()
    names = {
        name
        for monomial, _ in value
        for atom in monomial
        for name in ((atom,) if isinstance(atom, str) else (inner for argument in atom.arguments for inner in symbols(argument)))
    }
    return tuple(sorted(names))


def tells_zero(value: Dim) -> bool:
    """Tell whether a size depends on whether another one is 0, as in min(N, 1)."""
    if not isinstance(value, Poly):
        return False
    return any(not isinstance(atom, str) and atom.kind == "min" and 1 in atom.arguments for monomial, _ in value for atom in monomial)


def precision(value: Dim) -> tuple[int, int, str]:
    """Return a sort key, the most precise size first.

    The order is: integers, sizes that the model names, sizes with names made up by eqsat, unknown.
    """
    if value is None:
        return (3, 0, "")
    if isinstance(value, int):
        return (0, 0, str(value))
    ours = any(plain(name).startswith("?") for name in symbols(value))
    return (2 if ours else 1, len(value), structure(value))

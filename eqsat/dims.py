"""Sizes: a known integer, a polynomial over named dimensions, or unknown.

Comes in: integers, names, and sizes made of them. Goes out: a `Dim` in one normal form, so that two sizes
that are the same polynomial compare equal, at C speed. Promised: whatever the named dimensions are (each an
integer >= 0), a `Dim` that is not None evaluates to the size it stands for; what would grow past the limits
below becomes None. Division by a size that is 0 has no value (every runtime refuses it), so a quotient is that
of the sizes at which the divisor is not 0: `N*64 // N` is 64, for N = 0 never comes out of such a division.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

TERM_LIMIT = 32
DEGREE_LIMIT = 6
WEIGHT_LIMIT = 24  # names and functions inside one opaque atom, however deep: work on a Dim is bounded by these
_REFINEMENTS = 3  # steps by which a bound is refined, at most four ways each
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Opaque(NamedTuple):
    """A function of sizes that is no polynomial: floor division, minimum or maximum. Made by the functions below only."""

    kind: Literal["//", "max", "min"]
    arguments: tuple[int | Poly, ...]


Atom: TypeAlias = "str | Opaque"
Monomial: TypeAlias = "tuple[Atom, ...]"  # sorted, with repetition; () is the constant term


class Poly(tuple[tuple["Monomial", int], ...]):
    """A polynomial that is no constant: (monomial, coefficient) pairs, none zero, highest degree first."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Poly({render(self)})"


Known: TypeAlias = "int | Poly"
Dim: TypeAlias = "int | Poly | None"


def symbol(name: str) -> Poly:
    """The size that is called `name`. Names that begin with "?" are eqsat's own, for sizes that the model does not name."""
    return _alone(name)


def _atom_key(atom: Atom) -> tuple[int, str]:
    return (0, atom) if isinstance(atom, str) else (1, structure(atom))


def _monomial_key(monomial: Monomial) -> tuple[int, list[tuple[int, str]]]:
    return (-len(monomial), [_atom_key(atom) for atom in monomial])


def structure(value: Atom | Dim) -> str:
    """A string that is the same for two values only where they are equal (rendered text is not: a name may be "N*2")."""
    if isinstance(value, Poly):
        return "[" + "+".join(f"{coefficient}*({','.join(map(structure, monomial))})" for monomial, coefficient in value) + "]"
    if isinstance(value, Opaque):
        return f"{value.kind}({','.join(map(structure, value.arguments))})"
    return repr(value)


def _normal(terms: Mapping[Monomial, int]) -> Dim:
    kept = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    if not all(INT64_MIN <= coefficient <= INT64_MAX for coefficient in kept.values()):
        return None
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    if len(kept) > TERM_LIMIT or any(len(monomial) > DEGREE_LIMIT for monomial in kept):
        return None
    return Poly(sorted(kept.items(), key=lambda term: _monomial_key(term[0])))


def _terms(value: Known) -> Iterable[tuple[Monomial, int]]:
    return (((), value),) if isinstance(value, int) else value


def whole(value: int) -> Dim:
    """`value` itself, or None beyond int64."""
    return value if INT64_MIN <= value <= INT64_MAX else None


def add(*values: Dim) -> Dim:
    """The sum."""
    if all(isinstance(value, int) for value in values):
        return whole(sum(value for value in values if isinstance(value, int)))
    terms: dict[Monomial, int] = {}
    for value in values:
        if value is None:
            return None
        for monomial, coefficient in _terms(value):
            terms[monomial] = terms.get(monomial, 0) + coefficient
    return _normal(terms)


def mul(a: Dim, b: Dim) -> Dim:
    """The product."""
    if isinstance(a, int) and isinstance(b, int):
        return whole(a * b)
    if a is None or b is None:
        return None
    if a == 1 or b == 1:
        return b if a == 1 else a
    terms: dict[Monomial, int] = {}
    for monomial, coefficient in _terms(a):
        for other, factor in _terms(b):
            atoms = monomial + other
            key = tuple(sorted(atoms, key=_atom_key)) if len(atoms) > 1 else atoms
            terms[key] = terms.get(key, 0) + coefficient * factor
    return _normal(terms)


def negate(a: Dim) -> Dim:
    """`-a`."""
    return mul(a, -1)


def sub(a: Dim, b: Dim) -> Dim:
    """`a - b`."""
    if isinstance(a, int) and isinstance(b, int):
        return whole(a - b)
    return add(a, negate(b))


def product(values: Iterable[Dim]) -> Dim:
    """The product of all, which is 0 where one is 0 even if others are unknown; 1 of none."""
    found = tuple(values)
    if any(value == 0 for value in found):
        return 0
    return functools.reduce(mul, found, 1)


def exact_divide(a: Dim, b: Dim) -> Dim:
    """The polynomial `q` with `a = q * b`, or None where none is known."""
    if a is None or b is None or b == 0:
        return None
    if isinstance(b, int):
        if isinstance(a, int):
            return None if a % b else whole(a // b)
        return None if any(coefficient % b for _, coefficient in a) else _normal({monomial: coefficient // b for monomial, coefficient in a})
    # The normal form is sorted by a monomial order, so that the first terms of a multiple of b divide.
    lead, factor = b[0]
    rest: Dim = a
    quotient: dict[Monomial, int] = {}
    for _ in range(TERM_LIMIT):
        if rest is None:
            return None
        if rest == 0:
            return _normal(quotient)
        monomial, coefficient = next(iter(_terms(rest)))
        cofactor = _without(monomial, lead)
        if cofactor is None or coefficient % factor:
            return None
        quotient[cofactor] = quotient.get(cofactor, 0) + coefficient // factor
        rest = sub(rest, mul(_normal({cofactor: coefficient // factor}), b))
    return None


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    atoms = list(monomial)
    for atom in divisor:
        if atom not in atoms:
            return None
        atoms.remove(atom)
    return tuple(atoms)


def _opaque(kind: Literal["//", "max", "min"], *arguments: Known) -> Dim:
    if sum(_weight(argument) for argument in arguments) > WEIGHT_LIMIT:
        return None
    return _alone(Opaque(kind, arguments))


def _weight(value: Known) -> int:
    if isinstance(value, int):
        return 0
    return sum(1 if isinstance(atom, str) else 1 + sum(map(_weight, atom.arguments)) for monomial, _ in value for atom in monomial)


def floordiv(a: Dim, b: Dim) -> Dim:
    """`a / b` rounded down; exact quotients are recognized, and quotients by integers have one form."""
    if a is None or b is None or b == 0:
        return None
    if isinstance(b, int):
        if isinstance(a, int):
            return whole(a // b)
        return floordiv(negate(a), -b) if b < 0 else _floordiv(a, b)
    exact = exact_divide(a, b)
    if exact is not None:
        return exact
    common = math.gcd(*(coefficient for value in (a, b) for _, coefficient in _terms(value)))
    if common > 1:
        return floordiv(exact_divide(a, common), exact_divide(b, common))
    return _opaque("//", a, b)


def _floordiv(a: Poly, b: int) -> Dim:
    quotient = _normal({monomial: coefficient // b for monomial, coefficient in a})
    rest = _normal({monomial: coefficient % b for monomial, coefficient in a})
    if isinstance(rest, int) or rest is None:
        return None if rest is None else quotient  # what is left is below b
    for monomial, coefficient in rest:
        inner = monomial[0] if len(monomial) == 1 else ""
        if coefficient == 1 and isinstance(inner, Opaque) and inner.kind == "//" and isinstance(inner.arguments[1], int):
            # floor((r + floor(x / c)) / b) = floor((r*c + x) / (b*c)), for integers b, c > 0
            others = sub(rest, Poly(((monomial, 1),)))
            return add(quotient, floordiv(add(mul(others, inner.arguments[1]), inner.arguments[0]), mul(b, inner.arguments[1])))
    common = math.gcd(b, *(coefficient for monomial, coefficient in rest if monomial))
    if common > 1:
        # floor((g*r + c) / (g*b)) = floor((r + floor(c / g)) / b)
        return add(quotient, floordiv(_normal({monomial: coefficient // common for monomial, coefficient in rest}), b // common))
    return add(quotient, _opaque("//", rest, b))


def ceildiv(a: Dim, b: Dim) -> Dim:
    """`a / b` rounded up."""
    return negate(floordiv(negate(a), b)) if not isinstance(b, int) or b < 0 else floordiv(add(a, b - 1), b)


def minimum(*values: Dim) -> Dim:
    """The least."""
    return _extreme("min", values)


def maximum(*values: Dim) -> Dim:
    """The greatest."""
    return _extreme("max", values)


def _extreme(kind: Literal["max", "min"], values: Iterable[Dim]) -> Dim:
    arguments: list[Known] = []
    for value in values:
        if value is None:
            return None
        inner = value[0][0][0] if isinstance(value, Poly) and len(value) == 1 and value[0][1] == 1 and len(value[0][0]) == 1 else ""
        arguments.extend(inner.arguments if isinstance(inner, Opaque) and inner.kind == kind else (value,))
    kept: list[Known] = []
    for value in dict.fromkeys(arguments):
        if not any(_dominates(kind, other, value) for other in kept):
            kept = [other for other in kept if not _dominates(kind, value, other)] + [value]
    if len(kept) == 1:
        return kept[0]
    return _opaque(kind, *sorted(kept, key=structure)) if len(kept) <= TERM_LIMIT else None


def _dominates(kind: Literal["max", "min"], a: Known, b: Known) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a >= b if kind == "max" else a <= b
    lower, upper = bounds(sub(a, b))
    return (lower is not None and lower >= 0) if kind == "max" else (upper is not None and upper <= 0)


@functools.lru_cache(maxsize=1 << 14)
def bounds(value: Dim) -> tuple[int | None, int | None]:
    """An interval that `value` is in whatever its names are, all of them >= 0; None is unbounded."""
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
    """A lower bound that knows how functions of the same names move together: H - H//2 >= 0."""
    for atom, coefficient in functions:
        if atom.kind == "//" or len(atom.arguments) > 4:
            continue
        # A minimum is one of its arguments, and no greater than any.
        rest = sub(value, mul(_alone(atom), coefficient))
        found = [_lower(add(rest, mul(argument, coefficient)), refinements) for argument in atom.arguments]
        known = [low for low in found if low is not None]
        if (atom.kind == "min") == (coefficient < 0):
            return max(known, default=None)
        return min(known) if len(known) == len(found) else None
    # floor(x / k) is between (x - k + 1) / k and x / k: bounds of the whole, times all k.
    floors = [(atom, coefficient, atom.arguments[1]) for atom, coefficient in functions]
    scale = math.lcm(*(divisor for atom, _, divisor in floors if atom.kind == "//" and isinstance(divisor, int)))
    total = mul(value, scale)
    for atom, coefficient, divisor in floors:
        if atom.kind != "//" or not isinstance(divisor, int):
            return None
        least = atom.arguments[0] if coefficient < 0 else sub(atom.arguments[0], divisor - 1)
        total = add(total, mul(_alone(atom), -coefficient * scale), mul(least, coefficient * (scale // divisor)))
    low = _lower(total, refinements)
    return None if low is None else -(-low // scale)


def _alone(atom: Atom) -> Poly:
    return Poly((((atom,), 1),))


def _monomial_bounds(monomial: Monomial) -> tuple[int | None, int | None]:
    low, high = 1, 1
    for atom in monomial:
        least, most = (0, None) if isinstance(atom, str) else _opaque_bounds(atom)
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
    """Whether `value` is known to be >= 0."""
    lower, _ = bounds(value)
    return lower is not None and lower >= 0


def equal(a: Dim, b: Dim) -> bool | None:
    """Whether two sizes are equal whatever their names are: True always, False never, None can not be said."""
    if a is None or b is None:
        return None
    if a == b:
        return True
    lower, upper = bounds(sub(a, b))
    return False if (lower is not None and lower > 0) or (upper is not None and upper < 0) else None


def substitute(value: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """`value` with the names in `sizes` replaced, all at once."""
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
    """The integer that `value` is at `sizes`; None where a name is missing or something is divided by 0."""
    result = substitute(value, sizes)
    return result if isinstance(result, int) else None


def symbols(value: Dim) -> tuple[str, ...]:
    """The names in `value`, each once, sorted."""
    if value is None or isinstance(value, int):
        return ()
    names = {
        name
        for monomial, _ in value
        for atom in monomial
        for name in ((atom,) if isinstance(atom, str) else (inner for argument in atom.arguments for inner in symbols(argument)))
    }
    return tuple(sorted(names))


def precision(value: Dim) -> tuple[int, int, str]:
    """A total order, the most precise first: integers, sizes the model names, sizes with our own names, unknown."""
    if value is None:
        return (3, 0, "")
    if isinstance(value, int):
        return (0, 0, str(value))
    ours = any(name.startswith("?") for name in symbols(value))
    return (2 if ours else 1, len(value), structure(value))


def render(value: Dim) -> str:
    """Text for people and for `dim_param`: "N*64 + M", "(H + 1)//2", "?" for unknown."""
    if value is None:
        return "?"
    if isinstance(value, int):
        return str(value)
    text = ""
    for monomial, coefficient in value:
        size = abs(coefficient)
        factors = [_render_atom(atom) for atom in monomial] + ([str(size)] if size != 1 or not monomial else [])
        sign = ("-" if coefficient < 0 else "") if not text else (" - " if coefficient < 0 else " + ")
        text += sign + "*".join(factors)
    return text


def _render_atom(atom: Atom) -> str:
    if isinstance(atom, str):
        return atom
    if atom.kind != "//":
        return f"{atom.kind}({', '.join(map(render, atom.arguments))})"
    a, b = (f"({render(x)})" if isinstance(x, Poly) and (len(x) > 1 or x[0][1] != 1 or len(x[0][0]) > 1) else render(x) for x in atom.arguments)
    return f"({a}//{b})"

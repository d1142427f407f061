"""Polynomials over named dimensions in normal form: the sizes that `dims` computes with."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

TERM_LIMIT = 32
DEGREE_LIMIT = 6
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_PROMISE = "+"  # no other name begins with "?" and ends so: made-up names end with a number


class Opaque(NamedTuple):
    """A floor division, minimum or maximum of sizes that is no polynomial.

    Only the functions of this package make one.
    """

    kind: Literal["//", "max", "min"]
    arguments: tuple[int | Poly, ...]


Atom: TypeAlias = "str | Opaque"
Monomial: TypeAlias = "tuple[Atom, ...]"  # sorted, with repetition; () is the constant term


class Poly(tuple[tuple["Monomial", int], ...]):
    """A polynomial that is no constant.

    Its pairs (monomial, coefficient) come in order of falling degree; no coefficient is zero.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Poly({render(self)})"


Known: TypeAlias = "int | Poly"
Dim: TypeAlias = "int | Poly | None"


def symbol(name: str) -> Poly:
    """Return the size called `name`.

    Names that begin with "?" belong to eqsat: it makes them up for unnamed sizes.
    """
    return alone(name)


def promised(name: str) -> Poly:
    """Return the size called `name`, which the user promises not to be 0."""
    return alone(f"?{name}{_PROMISE}")


def is_promised(atom: str) -> bool:
    """Tell whether the name of a size carries the promise that the size is not 0."""
    return atom.startswith("?") and atom.endswith(_PROMISE)


def plain(atom: str) -> str:
    """Return the name of a size without the promise that it may carry."""
    return atom[1 : -len(_PROMISE)] if is_promised(atom) else atom


def alone(atom: Atom) -> Poly:
    """Return the polynomial that is one atom."""
    return Poly((((atom,), 1),))


def structure(value: Atom | Dim) -> str:
    """Return a string that is equal only for equal values.

    Rendered text cannot serve: a dimension's name may be "N*2".
    """
    if isinstance(value, Poly):
        return "[" + "+".join(f"{coefficient}*({','.join(map(structure, monomial))})" for monomial, coefficient in value) + "]"
    if isinstance(value, Opaque):
        return f"{value.kind}({','.join(map(structure, value.arguments))})"
    return repr(value)


def _atom_key(atom: Atom) -> tuple[int, str]:
    return (0, atom) if isinstance(atom, str) else (1, structure(atom))


def _monomial_key(monomial: Monomial) -> tuple[int, list[tuple[int, str]]]:
    return (-len(monomial), [_atom_key(atom) for atom in monomial])


def normal(terms: Mapping[Monomial, int]) -> Dim:
    """Return the normal form of a sum of terms, or None beyond the limits."""
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


def terms_of(value: Known) -> Iterable[tuple[Monomial, int]]:
    """Return the pairs (monomial, coefficient) of a size."""
    return (((), value),) if isinstance(value, int) else value


def whole(value: int) -> Dim:
    """Return `value`, or None if it does not fit int64."""
    return value if INT64_MIN <= value <= INT64_MAX else None


def add(*values: Dim) -> Dim:
    """Return the sum."""
    if all(isinstance(value, int) for value in values):
        return whole(sum(value for value in values if isinstance(value, int)))
    terms: dict[Monomial, int] = {}
    for value in values:
        if value is None:
            return None
        for monomial, coefficient in terms_of(value):
            terms[monomial] = terms.get(monomial, 0) + coefficient
    return normal(terms)


def mul(a: Dim, b: Dim) -> Dim:
    """Return the product of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return whole(a * b)
    if a is None or b is None:
        return None
    if a == 1 or b == 1:
        return b if a == 1 else a
    terms: dict[Monomial, int] = {}
    for monomial, coefficient in terms_of(a):
        for other, factor in terms_of(b):
            atoms = monomial + other
            key = tuple(sorted(atoms, key=_atom_key)) if len(atoms) > 1 else atoms
            terms[key] = terms.get(key, 0) + coefficient * factor
    return normal(terms)


def negate(a: Dim) -> Dim:
    """Return `-a`."""
    return mul(a, -1)


def sub(a: Dim, b: Dim) -> Dim:
    """Return `a - b`."""
    if isinstance(a, int) and isinstance(b, int):
        return whole(a - b)
    return add(a, negate(b))


def product(values: Iterable[Dim]) -> Dim:
    """Return the product; without factors it is 1.

    It is 0 if one factor is 0, even if others are unknown.
    """
    found = tuple(values)
    if any(value == 0 for value in found):
        return 0
    return functools.reduce(mul, found, 1)


def exact_divide(a: Dim, b: Dim) -> Dim:
    """Return the polynomial `q` with `a = q * b`, or None if none is known."""
    if a is None or b is None or b == 0:
        return None
    if isinstance(b, int):
        if isinstance(a, int):
            return None if a % b else whole(a // b)
        return None if any(coefficient % b for _, coefficient in a) else normal({monomial: coefficient // b for monomial, coefficient in a})
    # The normal form follows a monomial order, so b's leading term divides that of any multiple of
    # b.
    lead, factor = b[0]
    rest: Dim = a
    quotient: dict[Monomial, int] = {}
    for _ in range(TERM_LIMIT):
        if rest is None:
            return None
        if rest == 0:
            return normal(quotient)
        monomial, coefficient = next(iter(terms_of(rest)))
        cofactor = _without(monomial, lead)
        if cofactor is None or coefficient % factor:
            return None
        quotient[cofactor] = quotient.get(cofactor, 0) + coefficient // factor
        rest = sub(rest, mul(normal({cofactor: coefficient // factor}), b))
    return None


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    atoms = list(monomial)
    for atom in divisor:
        if atom not in atoms:
            return None
        atoms.remove(atom)
    return tuple(atoms)


def render(value: Dim) -> str:
    """Return text for people and for `dim_param`: "N*64 + M", "(H + 1)//2", "?" for unknown."""
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
        return plain(atom)
    if atom.kind != "//":
        return f"{atom.kind}({', '.join(map(render, atom.arguments))})"
    a, b = (f"({render(x)})" if isinstance(x, Poly) and (len(x) > 1 or x[0][1] != 1 or len(x[0][0]) > 1) else render(x) for x in atom.arguments)
    return f"({a}//{b})"

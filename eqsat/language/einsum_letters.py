"""Functions of Einsum's equations, for the table in `functions.py`.

An equation is read as lists of letters, one for each axis of an operand or of the result. A letter
is its number among all letters; the axes of `...` count down to -1 at the last one, so that they
meet from the back. `equation` writes such lists again, without `...`.
"""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import cast

from eqsat.facts.dims import Known
from eqsat.language.values import List, NoValue, concrete

_LETTERS = string.ascii_letters


def letters(equation: str, place: Known, rank: Known) -> List:
    """`letters`."""
    number, axes = concrete(place, "the place"), concrete(rank, "the rank")
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not -1 <= number < len(terms):
        raise NoValue(f"operand {number} of an equation of {len(terms)}")
    term = terms[number] if number >= 0 else right if arrow else _implied(left)
    head, dots, tail = term.partition("...")
    rest = axes - len(head) - len(tail)
    if rest < 0 or (rest and not dots) or not set(head + tail) <= set(_LETTERS):
        raise NoValue(f"a tensor of {axes} axes for the letters {term}")
    return tuple([*map(_LETTERS.index, head), *range(-rest, 0), *map(_LETTERS.index, tail)])


def _implied(left: str) -> str:
    """The letters of a result that the equation does not write: those that occur once, in order."""
    return "..." * ("..." in left) + "".join(letter for letter in sorted(set(left) - set(",.")) if left.count(letter) == 1)


def equation(operands: List, result: List) -> str | None:
    """`equation`."""
    terms = [cast("tuple[int, ...]", term) for term in (*operands, result)]
    used = sorted({letter for term in terms for letter in term if letter >= 0})
    spare = (letter for letter in range(len(_LETTERS)) if letter not in used)
    named: dict[int, int] = {letter: letter for letter in used}
    for letter in sorted({letter for term in terms for letter in term if letter < 0}):
        if (free := next(spare, None)) is None:
            return None
        named[letter] = free
    return ",".join(_spelled(term, named) for term in terms[:-1]) + "->" + _spelled(terms[-1], named)


def _spelled(term: Iterable[int], named: dict[int, int]) -> str:
    return "".join(_LETTERS[named[letter]] for letter in term)

"""Functions of Einsum's equations, for the table in `functions.py`.

An equation is read as lists of letters, one for each axis of an operand or of the result. A letter
is its number among all letters; the axes of `...` count down to -1 at the last one, so that they
meet from the back. `equation` writes such lists again, without `...`.
"""

from __future__ import annotations

import string

from eqsat.facts.dims import Known
from eqsat.language.values import List, NoValue, Value, concrete, is_integer, is_list

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
    return (*map(_LETTERS.index, head), *range(-rest, 0), *map(_LETTERS.index, tail))


def _implied(left: str) -> str:
    """The letters of a result that the equation does not write: those that occur once, in order."""
    return "..." * ("..." in left) + "".join(letter for letter in sorted(set(left) - set(",.")) if left.count(letter) == 1)


def equation(operands: List, result: List) -> str:
    """`equation`."""
    terms = [_numbers(term) for term in (*operands, result)]
    used = {letter for term in terms for letter in term}
    spare = [letter for letter in range(len(_LETTERS)) if letter not in used]
    named = {letter: letter for letter in used} | dict(zip(sorted(letter for letter in used if letter < 0), spare, strict=False))
    spelled = ["".join(_LETTERS[named[letter]] for letter in term) for term in terms]
    return ",".join(spelled[:-1]) + "->" + spelled[-1]


def _numbers(term: Value | None) -> list[int]:
    """The letters of one operand. Raises `NoValue` if they are none."""
    if term is None or not is_list(term):
        raise NoValue("the letters of an operand are a list")
    found = [concrete(letter, "a letter") if is_integer(letter) else None for letter in term]
    if None in found or not all(-len(_LETTERS) // 2 <= letter < len(_LETTERS) for letter in found if letter is not None):
        raise NoValue("a letter is a number below 52")
    return [letter for letter in found if letter is not None]

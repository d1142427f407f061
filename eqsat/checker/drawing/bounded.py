"""Bounded leaves: in an instance of a rule that reads ranges, operators bound the leaves.

The input is a resolved rule. The output is lines for its left side: each makes a tensor of the rule
from a free one, so that something is known of its elements. Without them such a rule would fire on
constants alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Final

from eqsat.checker.drawing.left_side import calls, constants, elements_read, terms
from eqsat.language.resolved import Resolved
from eqsat.language.scope import names
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Attribute, Expression, Line, Name, Number, Term, Text

READERS: Final = frozenset({"high", "low", "numbers", "rounded_high", "rounded_low"})
"""The functions of the language that read ranges."""

_FREE: Final = "free_"
_BOUNDED: Final = 0.9  # share of the leaves that get bounds
_BOUNDS: Final = ((-3, -1), (-1, 1), (-1, 0), (0, 0), (0, 1), (0, 6), (1, 1), (1, 3), (3, 5))
_ENDS: Final = (-1, 0, 1, 3)


def leaves_to_bound(rule: Resolved) -> tuple[str, ...]:
    """The names of tensors from outside that may get bounds: those whose range the rule reads, and
    those of which such a tensor is made. An optional input gets none.
    """
    waiting = {name for call in calls(rule.rule) if call.function in READERS for argument in call.arguments for name in names(argument)}
    lines = {target: line.value for line in rule.rule.left for target in line.targets}
    read: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in read:
            read.add(name)
            waiting.update(names(lines.get(name)))
    inputs = {item.name for term in terms(rule) for item in term.inputs if isinstance(item, Name)}
    tensors = (name for name in sorted(inputs & read - lines.keys()) if rule.sorts.get(name) is Sort.TENSOR)
    return tuple(name for name in tensors if name not in constants(rule) and name not in elements_read(rule))


def bounding_lines(random: Random, names: Iterable[str]) -> tuple[Line, ...]:
    """Lines that bound most of the named tensors."""
    return tuple(Line((name,), _bounded(random, name)) for name in names if random.random() < _BOUNDED)


def with_other_numbers(random: Random, lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines with other bounds from the same operators."""

    def renumbered(value: Expression) -> Expression:
        match value:
            case Term("Clip", inputs=(free, _, _)):
                return replace(value, inputs=(free, *map(_number, random.choice(_BOUNDS))))
            case Term("Max" | "Min", inputs=(free, _)):
                return replace(value, inputs=(free, _number(random.choice(_ENDS))))
            case _:
                return value

    return tuple([replace(line, value=renumbered(line.value)) for line in lines])


def without_numbers(lines: tuple[Line, ...]) -> tuple[tuple[Line, ...], dict[Expression, Number]]:
    """The lines with marks in place of their numbers, and the number of each mark. Lines that differ in
    numbers alone have one form, and the left side with them has one structure.
    """
    numbers: dict[Expression, Number] = {}
    return tuple([replace(line, value=_marked(line.value, numbers)) for line in lines]), numbers


def _marked(part: Expression | None, numbers: dict[Expression, Number]) -> Expression | None:
    """The part with marks in place of its numbers, which are added to `numbers`."""
    if isinstance(part, Number):
        mark = Text(f"#{len(numbers)}")  # no input of a rule is a text
        numbers[mark] = part
        return mark
    return replace(part, inputs=tuple([_marked(item, numbers) for item in part.inputs])) if isinstance(part, Term) else part


def owner(given: str) -> str:
    """The tensor of the rule whose free tensor has this name, or the name itself."""
    return given.removeprefix(_FREE)


def _bounded(random: Random, name: str) -> Expression:
    free = Name(_FREE + name)
    # Casts of truth values and of integers are never NaN.
    whole = _cast(name, Term(random.choice(("Not", "BitwiseNot")), (), None, (free,)))
    kind = random.randrange(12)
    if kind < 4:
        low, high = random.choice(_BOUNDS)
        return Term("Clip", (), None, (whole if random.random() < 0.4 else free, _number(low), _number(high)))
    if kind < 6:
        return Term(random.choice(("Max", "Min")), (), None, (free, _number(random.choice(_ENDS))))
    if kind < 7:
        return Term("Neg", (), None, (Term("Abs", (), None, (free,)),))
    if kind < 8:
        return whole
    if kind < 9:
        return random.choice((Term("Or", (), None, (free, _number(1))), Term("And", (), None, (free, _number(0)))))
    return Term(random.choice(("Abs", "Exp", "Relu", "Sigmoid", "Softmax", "Tanh")), (), None, (free,))


def _number(value: int) -> Number:
    return Number(value, str(value))


def _cast(name: str, value: Term) -> Term:
    """A cast to the data type of the named tensor, for which the variable of the cast stands."""
    return Term("Cast", (Attribute("to", Name(f"Type_{name}")),), None, (value,))

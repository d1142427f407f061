"""Conditions of a rule's `where`, read once for all draws: the names that each needs, what it
compares, and which names it sets equal to something.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from eqsat.checker.drawing.left_side import calls
from eqsat.language.by_identity import ByIdentity
from eqsat.language.printer import expression
from eqsat.language.scope import names
from eqsat.language.syntax import (
    Binary,
    Call,
    Comparison,
    Comprehension,
    Condition,
    Const,
    Definition,
    Expression,
    Guard,
    Index,
    Items,
    Judgement,
    Logic,
    Name,
    Number,
    Spread,
    Term,
    Unary,
)
from eqsat.language.values import DTYPES

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Open(NamedTuple):
    """A condition that is not decided yet, and the names that need values before it can be.

    `rivals` has, by the text of the expression on the left, the symbols and the expressions with which
    a guard compares it. `equals` has the names that a guard sets equal to an expression. `sizes` has the
    tensors of which the condition may ask sizes.
    """

    condition: Judgement | Definition | Guard
    needs: frozenset[str]
    rivals: Mapping[str, tuple[tuple[str, Expression], ...]]
    equals: Mapping[str, Expression]
    sizes: frozenset[str]


def opened(conditions: Iterable[Condition]) -> tuple[Open, ...]:
    """The conditions that a draw may break, conjunctions split into their parts.

    So `i` and `j` alone can show that `i < j < k` is broken.
    """
    parts = [part for condition in conditions for part in _parts(condition)]
    defined = frozenset(part.targets[0] for part in parts if isinstance(part, Definition))
    return tuple([_open(part, defined) for part in parts])


def never_constant(conditions: Iterable[Open]) -> frozenset[str]:
    """The tensors of which guards demand that they are not constant."""
    guards = [each.condition.condition for each in conditions if isinstance(each.condition, Guard)]
    denied = [guard.operand for guard in guards if isinstance(guard, Unary) and guard.operator == "not"]
    found = [operand for operand in denied if isinstance(operand, Call) and operand.function == "constant"]
    return frozenset(argument.name for call in found for argument in call.arguments if isinstance(argument, Name))


def _open(condition: Judgement | Definition | Guard, defined: frozenset[str]) -> Open:
    match condition:
        case Judgement(name, type_):
            return Open(condition, frozenset({name}), {}, {}, frozenset() if type_.dims is None else frozenset({name}))
        case Definition(_, value):
            return Open(condition, free_names(value), {}, {}, frozenset())
        case Guard(value):
            rivals: dict[str, tuple[tuple[str, Expression], ...]] = {}
            for read, symbol, rival in _comparisons(value):
                text = expression(read)
                rivals[text] = (*rivals.get(text, ()), (symbol, rival))
            measured = [call.arguments[0] for call in calls(value) if call.function in ("dim", "shape")]
            return Open(condition, free_names(value), rivals, _equals(value, defined), frozenset(one.name for one in measured if isinstance(one, Name)))


def _equals(guard: Expression, defined: frozenset[str]) -> dict[str, Expression]:
    """The names that a guard sets equal to an expression without them, except those in `defined`."""
    found: dict[str, Expression] = {}
    match guard:
        case Comparison((left, right), ("==",)):
            for read, rival in ((left, right), (right, left)):
                pairs = [(read, rival)]
                if isinstance(read, Items) and not any(isinstance(item, Spread) for item in read.items):
                    pairs = [(item, Index(rival, whole_number(place))) for place, item in enumerate(read.items)]
                found |= {item.name: value for item, value in pairs if isinstance(item, Name) and item.name not in {*defined, *DTYPES, *names(rival)}}
        case _:
            pass
    return found


def _parts(condition: Condition) -> Iterator[Judgement | Definition | Guard]:
    match condition:
        case Const():
            return
        case Guard(Logic("and", operands)):
            for operand in operands:
                yield from _parts(Guard(operand, condition.place))
        case Guard(Comparison(operands, operators)):
            for place, left in enumerate(operands):
                # In `i < j < n`, i and n alone can show that no j will fit.
                for end in range(place + 1, len(operands)):
                    between = set(operators[place:end])
                    if end == place + 1 or between <= {"<", "<="} or between <= {">", ">="}:
                        symbol = min(between, key=len)
                        yield Guard(Comparison((left, operands[end]), (symbol,), condition.place), condition.place)
        case Definition(_, Term()):
            return
        case _:
            yield condition


def _comparisons(expression: Expression) -> Iterator[tuple[Expression, str, Expression]]:
    """What a condition compares: an expression on the left, the symbol, and the expression on the
    right, each comparison in both directions. A condition on all items gives a list.
    """
    match expression:
        case Comparison((left, right), (symbol,)):
            yield left, symbol, right
            if left != right:
                yield right, _MIRRORED.get(symbol, symbol), left
            if isinstance(left, Binary) and left.operator == "*":
                factors = {left.left: left.right, left.right: left.left} if left.left != left.right else {left.left: left.left}
                yield from ((factor, symbol, Binary("/", right, other, left.place)) for factor, other in factors.items() if factor != right)
        case Call("all", (Comprehension() as each,)):
            yield from ((read, symbol, replace(each, item=rival)) for read, symbol, rival in _comparisons(each.item))
        case Logic("and", operands):
            for operand in operands:
                yield from _comparisons(operand)
        case _:
            return


@functools.cache
def whole_number(value: int) -> Number:
    """An integer as an expression."""
    return Number(value, str(value))


def _free_names(expression: Expression) -> frozenset[str]:
    return frozenset(name for name in names(expression) if name not in DTYPES)


free_names = ByIdentity(_free_names, 1 << 12)
"""The names that an expression mentions, without those of data types."""

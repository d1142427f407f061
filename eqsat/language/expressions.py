"""Evaluation of the rule language's expressions.

The input is an expression whose functions exist and have the right number of arguments, and the
values of its names; None stands for an unknown value. The result is a value, None if it is unknown,
or `Unevaluable`. A known result holds for all named sizes, each an integer >= 0. A result, known or
not, is returned only if the expression has a value at all of them. The work is bounded for any
expression, and only functions of the language are ever called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Never, TypeAlias

from eqsat.facts import dims
from eqsat.language import syntax
from eqsat.language.by_identity import ByIdentity
from eqsat.language.functions import FUNCTIONS
from eqsat.language.scope import names as mentioned
from eqsat.language.steps import STEP_LIMIT, TOO_LONG, Evaluation
from eqsat.language.syntax import Expression, Place
from eqsat.language.values import (
    DTYPES,
    List,
    NoValue,
    Value,
    arithmetic,
    common,
    compare,
    concrete,
    condition,
    every,
    is_integer,
    is_list,
    negation,
    negative,
    some,
)

DEPTH_LIMIT = 100  # of nested expressions

Names = Mapping[str, Value | None]


class Unevaluable(ValueError):
    """An expression has no value. `reason` says why; `place` is the part without a value."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason


def evaluate(expression: Expression, environment: Mapping[str, Value | None]) -> Value | None:
    """The value of `expression`, or `Unevaluable` if it has none. A name that `environment` lacks
    is the name of a data type.
    """
    return _compiled(expression)(Evaluation(), environment)


_Function: TypeAlias = "Callable[[Evaluation, Names], Value | None]"


_compiled = ByIdentity[Expression, _Function](lambda expression: _function(expression, 0), 1 << 15)
"""Expressions as functions."""


class _Once:
    """A part of a comprehension that does not mention the item: it has one value in all rounds."""

    __slots__ = ("part", "place")

    def __init__(self, part: Expression) -> None:
        self.part = part
        self.place = part.place


@functools.lru_cache(maxsize=1 << 10)
def _parted(loop: syntax.Comprehension) -> tuple[Expression, tuple[Expression, ...], tuple[_Once, ...]]:
    """The item and the conditions of a comprehension, and their parts that need only one evaluation."""
    found: list[_Once] = []

    def outside(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple([outside(item) for item in part])  # pyright: ignore[reportUnknownVariableType]
        if type(part) not in _CASES and not isinstance(part, syntax.Spread):
            return part  # a symbol, a place, or nothing
        if isinstance(part, syntax.Name | syntax.Number | syntax.Text):
            return part
        if not isinstance(part, syntax.Spread) and loop.target not in mentioned(part):
            found.append(_Once(part))
            return found[-1]
        # A loop in the loop has parts of its own.
        return part if isinstance(part, syntax.Comprehension) else replace(part, **{field.name: outside(getattr(part, field.name)) for field in fields(part)})

    item, conditions = outside(loop.item), outside(loop.conditions)
    return item, conditions, tuple(found)


# --- compilation: each kind of expression as a function of its parts ---


def _function(expression: Expression, depth: int) -> _Function:
    """A part of an expression, inside `depth` others, as a function that pays for its step."""
    place = expression.place
    if depth == DEPTH_LIMIT:
        return _failing(place, "the expression is nested too deep")
    if type(expression) is syntax.Name:
        return _name(expression)
    compute = _CASES.get(type(expression), _none)(expression, depth + 1)

    def value(evaluation: Evaluation, names: Names) -> Value | None:
        evaluation.steps += 1
        try:
            if evaluation.steps > STEP_LIMIT:
                evaluation.spend(0)
            return compute(evaluation, names)
        except NoValue as error:
            raise Unevaluable(place, str(error)) from None

    return value


def _functions(expressions: Iterable[Expression], depth: int) -> tuple[_Function, ...]:
    return tuple([_function(expression, depth) for expression in expressions])


def _failing(place: Place, reason: str) -> _Function:
    def fail(evaluation: Evaluation, names: Names) -> Never:
        raise Unevaluable(place, reason)

    return fail


def _none(expression: Expression, depth: int) -> _Function:
    return _failing(expression.place, "this is no number, list, string, condition or data type")


def _name(expression: syntax.Name) -> _Function:
    name, place = expression.name, expression.place

    def value(evaluation: Evaluation, names: Names) -> Value | None:
        evaluation.steps += 1
        if evaluation.steps > STEP_LIMIT:
            raise Unevaluable(place, TOO_LONG)
        if name in names:
            return names[name]
        if name in DTYPES:
            return DTYPES[name]
        raise Unevaluable(place, f"{name} has no value")

    return value


def _number(expression: syntax.Number, depth: int) -> _Function:
    value = dims.whole(expression.value) if isinstance(expression.value, int) else expression.value
    return lambda evaluation, names: value


def _text(expression: syntax.Text, depth: int) -> _Function:
    value = expression.value
    return lambda evaluation, names: value


def _call(expression: syntax.Call, depth: int) -> _Function:
    function = FUNCTIONS[expression.function]
    parts = _functions(expression.arguments, depth)
    first = expression.arguments[0] if expression.arguments else None
    optional = first.name if expression.function == "given" and isinstance(first, syntax.Name) else None

    def value(evaluation: Evaluation, names: Names) -> Value | None:
        if optional is not None and optional not in names:
            return False
        arguments = tuple([part(evaluation, names) for part in parts])
        evaluation.spend(function.work(arguments))
        result = function.apply(arguments)
        return evaluation.list(result) if is_list(result) else result

    return value


def _index(expression: syntax.Index, depth: int) -> _Function:
    source, index = _function(expression.source, depth), _function(expression.index, depth)
    return lambda evaluation, names: _item(source(evaluation, names), index(evaluation, names))


def _binary(expression: syntax.Binary, depth: int) -> _Function:
    operator = expression.operator
    first, second = _function(expression.left, depth), _function(expression.right, depth)

    def value(evaluation: Evaluation, names: Names) -> Value | None:
        left, right = first(evaluation, names), second(evaluation, names)
        evaluation.operate(left, right)
        result = arithmetic(operator, left, right)
        return evaluation.list(result) if is_list(result) else result

    return value


def _comparison(expression: syntax.Comparison, depth: int) -> _Function:
    operators, parts = expression.operators, _functions(expression.operands, depth)

    def compared(evaluation: Evaluation, names: Names) -> Iterable[bool | None]:
        left = parts[0](evaluation, names)
        for symbol, part in zip(operators, parts[1:], strict=True):
            right = part(evaluation, names)
            evaluation.operate(left, right)
            yield compare(symbol, left, right)
            left = right

    if len(operators) != 1:
        return lambda evaluation, names: every(compared(evaluation, names))
    (operator,), (first, second) = operators, parts

    def value(evaluation: Evaluation, names: Names) -> Value | None:
        left, right = first(evaluation, names), second(evaluation, names)
        evaluation.operate(left, right)
        return compare(operator, left, right)

    return value


def _unary(expression: syntax.Unary, depth: int) -> _Function:
    operand, denies = _function(expression.operand, depth), expression.operator == "not"

    def value(evaluation: Evaluation, names: Names) -> Value | None:
        found = operand(evaluation, names)
        evaluation.operate(found)
        return negation(condition(found)) if denies else negative(found)

    return value


def _logic(expression: syntax.Logic, depth: int) -> _Function:
    parts, together = _functions(expression.operands, depth), every if expression.operator == "and" else some
    return lambda evaluation, names: together(condition(part(evaluation, names)) for part in parts)


def _items(expression: syntax.Items, depth: int) -> _Function:
    parts = [(_function(item.item, depth), True) if isinstance(item, syntax.Spread) else (_function(item, depth), False) for item in expression.items]

    def value(evaluation: Evaluation, names: Names) -> List | None:
        found: list[Value | None] = []
        whole = True
        for part, spreads in parts:
            item = part(evaluation, names)
            if not spreads:
                found.append(item)
            elif item is None:
                whole = False
            elif is_list(item):
                evaluation.operate(item)
                found.extend(item)
            else:
                raise NoValue("only a list can be spread")
        return evaluation.list(tuple(found)) if whole else None

    return value


def _comprehension(expression: syntax.Comprehension, depth: int) -> _Function:
    origin, target = _function(expression.source, depth), expression.target
    rest, tests, once = _parted(expression)

    # Made when first needed: both of each loop in loops would be as many as two to the power of these.
    @functools.cache
    def rounds(several: bool) -> tuple[_Function, tuple[_Function, ...]]:
        item, conditions = (rest, tests) if several else (expression.item, expression.conditions)
        return _function(item, depth), _functions(conditions, depth)

    def value(evaluation: Evaluation, names: Names) -> List | None:
        source = origin(evaluation, names)
        if not is_list(source):
            raise NoValue("the list that is gone through is not known" if source is None else "only a list can be gone through")
        inner = dict(names)
        found: list[Value | None] = []
        whole = True
        item_of, conditions = rounds(bool(once) and len(source) > 1)
        for part in once:
            evaluation.known.pop(part, None)
        for item in source:
            inner[target] = item
            kept = every(condition(test(evaluation, inner)) for test in conditions) if conditions else True
            if kept is not False:
                # Even if the condition is unknown, the item must have a value.
                found.append(item_of(evaluation, inner))
                whole = whole and kept is True
        return evaluation.list(tuple(found)) if whole else None

    return value


def _once(expression: _Once, depth: int) -> _Function:
    """The value of a part of a loop that is the same in each round. Each round pays for it, so the
    limit does not depend on what is remembered.
    """
    compute = _CASES.get(type(expression.part), _none)(expression.part, depth)

    def value(evaluation: Evaluation, names: Names) -> Value | None:
        known = evaluation.known.get(expression)
        if known is not None:
            evaluation.spend(known[1])
            return known[0]
        before = evaluation.steps
        found = compute(evaluation, names)
        evaluation.known[expression] = found, evaluation.steps - before
        return found

    return value


def _conditional(expression: syntax.Conditional, depth: int) -> _Function:
    test, chosen, other = (_function(part, depth) for part in (expression.condition, expression.yes, expression.no))

    def value(evaluation: Evaluation, names: Names) -> Value | None:
        truth = condition(test(evaluation, names))
        if truth is not None:
            return (chosen if truth else other)(evaluation, names)
        yes, no = chosen(evaluation, names), other(evaluation, names)
        evaluation.operate(yes, no)
        return common(yes, no)

    return value


def _slice(expression: syntax.Slice, depth: int) -> _Function:
    origin, starts, stops = _function(expression.source, depth), expression.start is not None, expression.stop is not None
    limits = _functions([end for end in (expression.start, expression.stop) if end is not None], depth)

    def value(evaluation: Evaluation, names: Names) -> Value | None:
        source = origin(evaluation, names)
        ends = [end(evaluation, names) for end in limits]
        if source is not None and not is_list(source):
            raise NoValue("only a list can be cut")
        if any(end is not None and not is_integer(end) for end in ends):
            raise NoValue("a list is cut at integers")
        numbers = [end for end in ends if isinstance(end, int)]
        if source is None or len(numbers) < len(ends):
            return None
        evaluation.operate(source)
        return source[numbers[0] if starts else None : numbers[-1] if stops else None]

    return value


_CASES: dict[type[Any], Callable[[Any, int], _Function]] = {
    _Once: _once,
    syntax.Name: lambda name, depth: _name(name),
    syntax.Number: _number,
    syntax.Text: _text,
    syntax.Call: _call,
    syntax.Index: _index,
    syntax.Slice: _slice,
    syntax.Items: _items,
    syntax.Comprehension: _comprehension,
    syntax.Unary: _unary,
    syntax.Binary: _binary,
    syntax.Comparison: _comparison,
    syntax.Logic: _logic,
    syntax.Conditional: _conditional,
}
"""The compilation of each kind of expression. The other kinds have no value."""


def _item(source: Value | None, index: Value | None) -> Value | None:
    if source is None or index is None:
        raise NoValue("the list is not known" if source is None else "the index is not known")
    if not is_list(source):
        raise NoValue("only a list has items")
    if not is_integer(index):
        raise NoValue("an index is an integer")
    position = concrete(index, "the index")
    if not -len(source) <= position < len(source):
        raise NoValue(f"index {position} of a list of {len(source)} items")
    return source[position]

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
from typing import Any

from eqsat.facts import dims
from eqsat.language import syntax
from eqsat.language.functions import FUNCTIONS
from eqsat.language.scope import names as mentioned
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
    effort,
    every,
    is_integer,
    is_list,
    leaves,
    negation,
    negative,
    some,
)

STEP_LIMIT = 20_000  # a step is roughly an operation on two numbers
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
    return _Evaluation().value(expression, environment)


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


class _Evaluation:
    """One evaluation, which counts its steps."""

    def __init__(self) -> None:
        self.steps = 0
        self.depth = 0
        self.known: dict[_Once, tuple[Value | None, int]] = {}  # with the steps that it took

    def value(self, expression: Expression, names: Names) -> Value | None:
        if self.depth == DEPTH_LIMIT:
            raise Unevaluable(expression.place, "the expression is nested too deep")
        try:
            self._spend(1)
            if type(expression) is syntax.Name and expression.name in names:  # most expressions are names
                return names[expression.name]
            self.depth += 1
            found = _CASES.get(type(expression), _Evaluation.none)(self, expression, names)
        except NoValue as error:
            # It ends the evaluation, so the depth does not matter any more.
            raise Unevaluable(expression.place, str(error)) from None
        self.depth -= 1
        return found

    def _spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > STEP_LIMIT:
            raise NoValue(f"this takes more than {STEP_LIMIT} steps")

    def _operate(self, *operands: Value | None) -> None:
        # Each expression costs a step, which pays for numbers.
        for operand in operands:
            if isinstance(operand, tuple):
                self._spend(effort(operands))
                return

    def _list(self, items: Iterable[Value | None]) -> List:
        found = tuple(items)
        self._spend(leaves(found))
        return found

    def none(self, expression: Expression, names: Names) -> Value | None:
        raise NoValue("this is no number, list, string, condition or data type")

    def name(self, expression: syntax.Name, names: Names) -> Value | None:
        name = expression.name
        if name in names:
            return names[name]
        if name in DTYPES:
            return DTYPES[name]
        raise NoValue(f"{name} has no value")

    def number(self, expression: syntax.Number, names: Names) -> Value | None:
        return dims.whole(expression.value) if isinstance(expression.value, int) else expression.value

    def text(self, expression: syntax.Text, names: Names) -> Value | None:
        return expression.value

    def call(self, expression: syntax.Call, names: Names) -> Value | None:
        if expression.function == "given" and isinstance(expression.arguments[0], syntax.Name) and expression.arguments[0].name not in names:
            return False
        arguments = tuple([self.value(argument, names) for argument in expression.arguments])
        function = FUNCTIONS[expression.function]
        self._spend(function.work(arguments))
        result = function.apply(arguments)
        return self._list(result) if is_list(result) else result

    def index(self, expression: syntax.Index, names: Names) -> Value | None:
        return _item(self.value(expression.source, names), self.value(expression.index, names))

    def binary(self, expression: syntax.Binary, names: Names) -> Value | None:
        left, right = self.value(expression.left, names), self.value(expression.right, names)
        self._operate(left, right)
        result = arithmetic(expression.operator, left, right)
        return self._list(result) if is_list(result) else result

    def comparison(self, expression: syntax.Comparison, names: Names) -> Value | None:
        if len(expression.operators) != 1:
            return every(self._comparisons(expression.operands, expression.operators, names))
        left, right = self.value(expression.operands[0], names), self.value(expression.operands[1], names)
        self._operate(left, right)
        return compare(expression.operators[0], left, right)

    def unary(self, expression: syntax.Unary, names: Names) -> Value | None:
        value = self.value(expression.operand, names)
        self._operate(value)
        return negation(condition(value)) if expression.operator == "not" else negative(value)

    def logic(self, expression: syntax.Logic, names: Names) -> Value | None:
        truths = (condition(self.value(operand, names)) for operand in expression.operands)
        return every(truths) if expression.operator == "and" else some(truths)

    def items(self, expression: syntax.Items, names: Names) -> List | None:
        found: list[Value | None] = []
        whole = True
        for item in expression.items:
            if not isinstance(item, syntax.Spread):
                found.append(self.value(item, names))
                continue
            spread = self.value(item.item, names)
            if spread is None:
                whole = False
            elif is_list(spread):
                self._operate(spread)
                found.extend(spread)
            else:
                raise NoValue("only a list can be spread")
        return self._list(found) if whole else None

    def comprehension(self, expression: syntax.Comprehension, names: Names) -> List | None:
        source = self.value(expression.source, names)
        if not is_list(source):
            raise NoValue("the list that is gone through is not known" if source is None else "only a list can be gone through")
        inner = dict(names)
        found: list[Value | None] = []
        whole = True
        repeated, conditions, once = _parted(expression) if len(source) > 1 else (expression.item, expression.conditions, ())
        for part in once:
            self.known.pop(part, None)
        for item in source:
            inner[expression.target] = item
            kept = every(condition(self.value(test, inner)) for test in conditions) if conditions else True
            if kept is not False:
                # Even if the condition is unknown, the item must have a value.
                found.append(self.value(repeated, inner))
                whole = whole and kept is True
        return self._list(found) if whole else None

    def once(self, expression: _Once, names: Names) -> Value | None:
        """The value of a part of a loop that is the same in each round. Each round pays for it, so the
        limit does not depend on what is remembered.
        """
        known = self.known.get(expression)
        if known is not None:
            self._spend(known[1])
            return known[0]
        before = self.steps
        part = expression.part
        found = _CASES.get(type(part), _Evaluation.none)(self, part, names)
        self.known[expression] = found, self.steps - before
        return found

    def _comparisons(self, operands: tuple[Expression, ...], operators: tuple[str, ...], names: Names) -> Iterable[bool | None]:
        left = self.value(operands[0], names)
        for symbol, operand in zip(operators, operands[1:], strict=True):
            right = self.value(operand, names)
            self._operate(left, right)
            yield compare(symbol, left, right)
            left = right

    def conditional(self, expression: syntax.Conditional, names: Names) -> Value | None:
        truth = condition(self.value(expression.condition, names))
        if truth is not None:
            return self.value(expression.yes if truth else expression.no, names)
        yes, no = self.value(expression.yes, names), self.value(expression.no, names)
        self._operate(yes, no)
        return common(yes, no)

    def slice(self, expression: syntax.Slice, names: Names) -> Value | None:
        source = self.value(expression.source, names)
        ends = [self.value(end, names) for end in (expression.start, expression.stop) if end is not None]
        if source is not None and not is_list(source):
            raise NoValue("only a list can be cut")
        if any(end is not None and not is_integer(end) for end in ends):
            raise NoValue("a list is cut at integers")
        numbers = [end for end in ends if isinstance(end, int)]
        if source is None or len(numbers) < len(ends):
            return None
        self._operate(source)
        return source[None if expression.start is None else numbers[0] : None if expression.stop is None else numbers[-1]]


_CASES: dict[type[Any], Callable[[_Evaluation, Any, Names], Value | None]] = {
    _Once: _Evaluation.once,
    syntax.Name: _Evaluation.name,
    syntax.Number: _Evaluation.number,
    syntax.Text: _Evaluation.text,
    syntax.Call: _Evaluation.call,
    syntax.Index: _Evaluation.index,
    syntax.Slice: _Evaluation.slice,
    syntax.Items: _Evaluation.items,
    syntax.Comprehension: _Evaluation.comprehension,
    syntax.Unary: _Evaluation.unary,
    syntax.Binary: _Evaluation.binary,
    syntax.Comparison: _Evaluation.comparison,
    syntax.Logic: _Evaluation.logic,
    syntax.Conditional: _Evaluation.conditional,
}
"""The evaluation of each kind of expression. The other kinds have no value."""


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

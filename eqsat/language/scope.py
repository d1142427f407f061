"""The names that an expression mentions."""

from __future__ import annotations

from collections.abc import Iterator

from eqsat.language import syntax


def names(expression: syntax.Expression | None) -> Iterator[str]:
    """The free names of an expression in the order of the text, including data types and `..p`."""
    match expression:
        case None | syntax.Wildcard() | syntax.Number() | syntax.Text():
            return
        case syntax.Name(name) | syntax.Maybe(name):
            yield name
        case syntax.Spread(item):
            yield from names(item)
        case syntax.Near(value):
            yield from names(value)
        case syntax.Constant(dtype, value):
            yield dtype
            yield from names(value)
        case syntax.Comprehension(item, target, source, conditions):
            yield from names(source)
            for inner in (item, *conditions):
                yield from (name for name in names(inner) if name != target)
        case syntax.Mapped(item, targets, sources):
            yield from sources
            yield from (name for name in names(item) if name not in targets)
        case syntax.Term():
            yield from (name for attribute in expression.attributes for name in names(attribute.value))
            if expression.carried is not None:
                yield expression.carried
            yield from (name for item in expression.inputs for name in names(item))
        case _:
            for part in _parts(expression):
                yield from names(part)


def _parts(expression: syntax.Expression) -> tuple[syntax.Expression | None, ...]:
    match expression:
        case syntax.Items(items):
            return items
        case syntax.Unary(_, operand):
            return (operand,)
        case syntax.Binary(_, left, right):
            return (left, right)
        case syntax.Comparison(operands) | syntax.Logic(_, operands):
            return operands
        case syntax.Conditional(condition, yes, no):
            return (condition, yes, no)
        case syntax.Index(source, index):
            return (source, index)
        case syntax.Slice(source, start, stop):
            return (source, start, stop)
        case syntax.Call(_, arguments):
            return arguments
        case _:
            raise AssertionError(expression)


def condition_names(condition: syntax.Condition) -> set[str]:
    """The names that a condition mentions, including those that it binds."""
    match condition:
        case syntax.Judgement(name, type):
            return {name, type.dtype, *(found for dim in type.dims or () for found in names(dim))}
        case syntax.Const(name):
            return {name}
        case syntax.Guard(value) | syntax.Definition(_, value):
            return set(names(value))

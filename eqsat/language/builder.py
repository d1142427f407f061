"""The syntax tree, built while lark parses.

The builder has one method for each rule and alternative of the grammar. Lark calls it with tokens
and nodes in the order of the text, and it returns a node with its place.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any, TypeAlias

from lark import Token, Transformer

from eqsat.facts.dims import INT64_MAX
from eqsat.frozen import frozen
from eqsat.language import syntax
from eqsat.language.lexer import Chunk, TokenError
from eqsat.language.syntax import Place
from eqsat.language.values import DTYPES

Children: TypeAlias = list[Any]

# `int64(0)` is a constant like `T(0)`, but `float(n)` is a function.
_CONSTANTS = DTYPES.keys() - {"float"}


_TOO_LARGE = "the integer does not fit into int64"


def _place(part: Any) -> Place:
    if isinstance(part, Token):
        assert part.line is not None and part.column is not None  # the lexer sets them
        return Place(part.line, part.column, len(part))
    return part.place


def _nodes(children: Children) -> Children:
    """The nodes among children, without commas, brackets and words."""
    return [child for child in children if not isinstance(child, Token)]


@frozen
class _Listed:
    """`..xs` where only a list can stand."""

    name: str
    place: Place


class Builder(Transformer[Any, "syntax.Rule | syntax.FileDefinition"]):
    """Builds the `Rule` or `FileDefinition` of a chunk, without its documentation and file. `begin`
    sets the chunk before each parse.
    """

    chunk: Chunk
    _needs_sign: list[Place]  # integers that only fit into int64 when a minus stands before them

    def begin(self, chunk: Chunk) -> None:
        """Sets the chunk that is parsed next."""
        self.chunk = chunk
        self._needs_sign = []

    def _span(self, first: Any, last: Any) -> Place:
        begin, end = _place(first), _place(last)
        until = end.column + end.length if begin.line == end.line else len(self.chunk.source(begin.line)) + 1
        return Place(begin.line, begin.column, until - begin.column)

    # --- rules ---

    def start(self, children: Children) -> syntax.Rule | syntax.FileDefinition:
        if self._needs_sign:
            raise TokenError(self._needs_sign[0], _TOO_LARGE)
        return children[0]

    def rule(self, children: Children) -> syntax.Rule:
        ranges: tuple[syntax.Range, ...] = children.pop(0) if isinstance(children[0], tuple) else ()
        label, _, name, _, left, arrow, right, *rest = children
        conditions: tuple[syntax.Condition, ...] = rest.pop(0) if rest and isinstance(rest[0], tuple) else ()
        exact_if = rest.pop(0) if rest and not isinstance(rest[0], syntax.Test) else None
        both, (begin, source) = arrow == "<=>", (self.chunk.line, self.chunk.text)
        tests = tuple(rest)
        return syntax.Rule(
            str(name), syntax.Label(label), (), left, right, both, conditions, tests, exact_if, ranges, place=_place(name), source=source, begin=begin
        )

    def ranges(self, children: Children) -> tuple[syntax.Range, ...]:
        return tuple(_nodes(children))

    def range(self, children: Children) -> syntax.Range:
        variables, _, first, *rest = children
        sets = [first, *(replace(other, removed=sign == "-") for sign, other in zip(rest[::2], rest[1::2], strict=True))]
        return syntax.Range(tuple(map(str, variables)), tuple(sets), self._span(variables[0], children[-1]))

    def variables(self, children: Children) -> list[Token]:
        return [child for child in children if child.type in ("DTYPE", "OPERATOR")]

    def choice(self, children: Children) -> tuple[syntax.Name, ...]:
        return tuple(self.name([operator]) for operator in self.variables(children))

    def named_set(self, children: Children) -> syntax.OperatorSet:
        return syntax.OperatorSet(str(children[-1]), mirrored=len(children) > 1, place=self._span(children[0], children[-1]))

    def listed_set(self, children: Children) -> syntax.OperatorSet:
        return syntax.OperatorSet("", tuple(_nodes(children)), mirrored=children[0] == "mirrored", place=self._span(children[0], children[-1]))

    def file_definition(self, children: Children) -> syntax.FileDefinition:
        _, name, _, *parameters = children[:-3]
        return syntax.FileDefinition(str(name), tuple(_nodes(parameters)), children[-1], place=_place(name), source=self.chunk.text, begin=self.chunk.line)

    def side(self, children: Children) -> tuple[syntax.Line, ...]:
        return tuple(_nodes(children))

    def line(self, children: Children) -> syntax.Line:
        value, targets = children[-1], tuple(str(target) for target in children[:-1] if target not in (",", "="))
        return syntax.Line(targets, value, self._span(children[0], value))

    def results(self, children: Children) -> syntax.Line:
        target, _, value = children
        if isinstance(value, _Listed):
            value = syntax.Spread(syntax.Name(value.name, value.place), value.place)
        return syntax.Line((f"..{target.name}",), value, self._span(target, value))

    def target(self, children: Children) -> Token:
        return children[0]

    arrow = defined = dtype = tensor = valued = sign_of_set = target

    def conditions(self, children: Children) -> tuple[syntax.Condition, ...]:
        found: list[syntax.Condition] = []
        # Lone names, each followed by a comma, right before the next condition.
        names: list[str] = []
        for condition, separator in zip(children[1::2], [*children[2::2], None], strict=True):
            if isinstance(condition, syntax.Definition) and names:
                place = self._span(found[-len(names)], condition)
                found[-len(names) :] = [syntax.Definition((*names, *condition.targets), condition.value, place)]
            else:
                found.append(condition)
            name = _lone_name(condition)
            names = [*names, name] if name and separator == "," else []
        return tuple(found)

    def exactness(self, children: Children) -> syntax.Expression:
        return children[1]

    def judgement(self, children: Children) -> syntax.Judgement:
        name, _, judged = children
        return syntax.Judgement(str(name), judged, self._span(name, judged))

    def const(self, children: Children) -> syntax.Const:
        return syntax.Const(str(children[1]), self._span(*children))

    def definition(self, children: Children) -> syntax.Definition:
        target, _, value = children
        return syntax.Definition((str(target),), value, self._span(target, value))

    def guard(self, children: Children) -> syntax.Guard:
        return syntax.Guard(children[0], children[0].place)

    def type(self, children: Children) -> syntax.Type:
        dims = tuple(_nodes(children)) if len(children) > 1 else None
        return syntax.Type(str(children[0]), dims, self._span(children[0], children[-1]))

    def test(self, children: Children) -> syntax.Test:
        return syntax.Test(tuple(_nodes(children)), _place(children[0]))

    def types(self, children: Children) -> syntax.Given:
        return syntax.Given(str(children[0]), types=tuple(_nodes(children)), place=self._span(children[0], children[-1]))

    def value(self, children: Children) -> syntax.Given:
        name, _, value = children
        return syntax.Given(str(name), value=value, place=self._span(name, value))

    # --- expressions ---

    def name(self, children: Children) -> syntax.Name:
        return syntax.Name(str(children[0]), _place(children[0]))

    parameter = name

    def wildcard(self, children: Children) -> syntax.Wildcard:
        return syntax.Wildcard(_place(children[0]))

    def integer(self, children: Children) -> syntax.Number:
        digits = str(children[0])
        place = _place(children[0])
        if len(digits.lstrip("0")) > 19 or int(digits) > INT64_MAX + 1:
            raise TokenError(place, _TOO_LARGE)
        if int(digits) > INT64_MAX:
            self._needs_sign.append(place)
        return syntax.Number(int(digits), digits, place)

    def float(self, children: Children) -> syntax.Number:
        digits = str(children[0])
        value = float(digits)
        if (math.isinf(value) and digits != "inf") or (value == 0 and any(digit in "123456789" for digit in digits.lower().partition("e")[0])):
            raise TokenError(_place(children[0]), "the number does not fit into double precision")
        return syntax.Number(value, digits, _place(children[0]))

    def text(self, children: Children) -> syntax.Text:
        return syntax.Text(_unescaped(children[0][1:-1]), _place(children[0]))

    def parentheses(self, children: Children) -> syntax.Expression:
        return replace(children[1], place=self._span(children[0], children[-1]))

    def items(self, children: Children) -> syntax.Items:
        return syntax.Items(tuple(_nodes(children)), self._span(children[0], children[-1]))

    def comprehension(self, children: Children) -> syntax.Comprehension:
        item, source, *conditions = _nodes(children)
        return syntax.Comprehension(item, str(children[3]), source, tuple(conditions), self._span(children[0], children[-1]))

    def call(self, children: Children) -> syntax.Call | syntax.Constant:
        function, arguments, place = str(children[0]), tuple(_nodes(children)), self._span(children[0], children[-1])
        if function in _CONSTANTS and len(arguments) == 1:
            return syntax.Constant(function, arguments[0], place)
        return syntax.Call(function, arguments, place)

    def constant(self, children: Children) -> syntax.Constant:
        return syntax.Constant(str(children[0]), children[2], self._span(children[0], children[-1]))

    def index(self, children: Children) -> syntax.Index:
        return syntax.Index(children[0], children[2], self._span(children[0], children[-1]))

    def slice(self, children: Children) -> syntax.Slice:
        colon = children.index(":")
        start, stop = (None if isinstance(part, Token) else part for part in (children[colon - 1], children[colon + 1]))
        return syntax.Slice(children[0], start, stop, self._span(children[0], children[-1]))

    def minus(self, children: Children) -> syntax.Number | syntax.Unary:
        sign, operand = children
        place = self._span(sign, operand)
        if isinstance(operand, syntax.Number) and not operand.text.startswith("-"):
            self._needs_sign = [other for other in self._needs_sign if other != operand.place]
            return syntax.Number(-operand.value, f"-{operand.text}", place)
        return syntax.Unary("-", operand, place)

    def unary(self, children: Children) -> syntax.Unary:
        return syntax.Unary(str(children[0]), children[1], self._span(*children))

    def binary(self, children: Children) -> syntax.Binary:
        left, operator, right = children
        return syntax.Binary(str(operator), left, right, self._span(left, right))

    def comparison(self, children: Children) -> syntax.Comparison:
        return syntax.Comparison(tuple(children[::2]), tuple(children[1::2]), self._span(children[0], children[-1]))

    def comparator(self, children: Children) -> str:
        return " ".join(children)

    def logic(self, children: Children) -> syntax.Logic:
        return syntax.Logic(str(children[1]), tuple(children[::2]), self._span(children[0], children[-1]))

    def conditional(self, children: Children) -> syntax.Conditional:
        yes, condition, no = children[::2]
        return syntax.Conditional(condition, yes, no, self._span(yes, no))

    def spread(self, children: Children) -> syntax.Spread:
        return syntax.Spread(children[1], self._span(*children))

    # --- terms ---

    def near(self, children: Children) -> syntax.Near:
        return syntax.Near(children[1], self._span(*children))

    def maybe(self, children: Children) -> syntax.Maybe:
        return syntax.Maybe(str(children[0]), self._span(*children))

    def listed(self, children: Children) -> _Listed:
        return _Listed(str(children[1]), self._span(*children))

    def mapped(self, children: Children) -> syntax.Mapped:
        within = children.index("in")
        targets = tuple(str(name) for name in children[3:within] if name != ",")
        sources = tuple(listed.name for listed in children[within + 1 : -1] if isinstance(listed, _Listed))
        return syntax.Mapped(children[1], targets, sources, self._span(children[0], children[-1]))

    def inputs(self, children: Children) -> tuple[syntax.Expression | None, ...]:
        found: list[syntax.Expression | None] = [None]
        for child in children:
            if isinstance(child, Token):
                found.append(None)
            else:
                found[-1] = child
        if found[-1] is None and children:
            raise TokenError(_place(children[-1]), "nothing stands behind this comma; an input that is absent at the end is left out")
        return tuple(found) if children else ()

    def attribute(self, children: Children) -> syntax.Attribute:
        name, _, value = children
        return syntax.Attribute(str(name), value, self._span(name, value))

    def carried(self, children: Children) -> str:
        return str(children[1])

    def attributes(self, children: Children) -> tuple[tuple[syntax.Attribute, ...], str | None]:
        named = _nodes(children)
        carried = named.pop() if isinstance(named[-1], str) else None
        return tuple(named), carried

    def term(self, children: Children) -> syntax.Term:
        domain, _, operator = str(children[0]).rpartition(".")
        attributes, carried = children[1] if len(children) == 5 else ((), None)
        return syntax.Term(operator, attributes, carried, children[-2], domain, self._span(children[0], children[-1]))


def _lone_name(condition: syntax.Condition) -> str:
    match condition:
        case syntax.Guard(syntax.Name(name)):
            return name
        case syntax.Guard(syntax.Wildcard()):
            return "_"
        case _:
            return ""


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)

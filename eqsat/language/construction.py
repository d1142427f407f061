"""Construction: the nodes that a right side makes, each after its inputs.

The input is the lines of a rule. Nothing is computed here: attributes and parameters stay
expressions, which are evaluated when the rule fires. Every node and literal has its place among the
columns that a firing computes, so that the e-graph's action can fetch them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from eqsat.frozen import frozen, mutable
from eqsat.language import syntax
from eqsat.language.pattern import newest, outputs_of
from eqsat.language.query import Fixed, Pattern
from eqsat.operators import Operator, attribute_default
from eqsat.terms.terms import Signature
from eqsat.traits import PARAMETERS


@frozen
class Existing:
    """A class that the left side matched, by its variable."""

    variable: str


@frozen
class Value:
    """An output of a node that is made; None stands for the node's value itself."""

    node: int
    output: int | None


@frozen
class Stored:
    """A literal, by its number."""

    number: int


@frozen
class Missing:
    """An absent input."""


@frozen
class Item:
    """The item of one of the lists, by the list's number, in a loop body."""

    number: int


@frozen
class Shared:
    """A value that all items share, by its number, in a loop body."""

    number: int


Reference: TypeAlias = Existing | Value | Stored | Missing | Item | Shared


@frozen
class Carried:
    """An attribute copied from a matched node, by its column of the match."""

    source: int


@frozen
class Computed:
    """An attribute that an expression computes."""

    name: str
    value: syntax.Expression


Attribute: TypeAlias = Fixed | Carried | Computed


@frozen
class Made:
    """One node to make."""

    operator: Operator
    signature: Signature
    attributes: tuple[Attribute, ...]
    inputs: tuple[Reference, ...]
    items: tuple[Reference, ...]  # of the list of further inputs
    tail: str | Loop | None  # the list that follows the items, either matched or made
    outputs: int
    place: syntax.Place


@frozen
class LiteralRecipe:
    """An integer parameter of rank 0 or 1, or, with a `dtype`, a scalar of that data type."""

    value: syntax.Expression
    rank: int
    dtype: str = ""
    place: syntax.Place = syntax.NOWHERE


@frozen
class Loop:
    """A list that is made from others, item by item. `body` makes one item, its root "", from
    `Item` and `Shared` references.
    """

    lists: tuple[str, ...]  # class variables
    targets: tuple[str, ...]  # by list, the name of its item in the expressions of the body
    shared: tuple[Reference, ...]
    body: Construction
    place: syntax.Place


@mutable
class Construction:
    """A right side: literals, and nodes in the order in which they are made."""

    literals: list[LiteralRecipe] = field(default_factory=list[LiteralRecipe])
    nodes: list[Made] = field(default_factory=list[Made])
    roots: dict[str, Reference] = field(default_factory=dict[str, Reference])

    @property
    def loops(self) -> list[Loop]:
        """The lists that the right side makes, in the order of the nodes that read them."""
        return [node.tail for node in self.nodes if isinstance(node.tail, Loop)]


class _Right:
    def __init__(self, pattern: Pattern, definitions: Mapping[str, syntax.Definition]) -> None:
        self.out = Construction()
        self.pattern = pattern
        self.definitions = definitions
        self.bound: dict[str, Reference] = {}
        self.known: dict[object, Reference] = {}

    def lines(self, lines: tuple[syntax.Line, ...]) -> Construction:
        own = {target: line for line in lines for target in line.targets}
        for line in lines:
            if not line.targets:
                self.out.roots[""] = self.value(line.value)
            else:
                self.line(line.targets, line.value)
        for root in self.pattern.roots:
            if root and root in own:
                self.out.roots[root] = self.bound[root]
        return self.out

    def line(self, targets: tuple[str, ...], value: syntax.Expression) -> None:
        if isinstance(value, syntax.Term):
            operator = newest(value)
            assert operator.schema is not None
            node = self.node(value, len(targets))
            single = operator.schema.max_output == 1
            for index, target in enumerate(targets):
                self.bound[target] = Value(node, None if single else index)
        else:
            self.bound[targets[0]] = self.value(value)

    def value(self, expression: syntax.Expression) -> Reference:
        """The reference for an expression in the place of a tensor."""
        if isinstance(expression, syntax.Name):
            name = expression.name
            # On the right a root's name refers to the right side's own definition.
            if name in self.bound:
                return self.bound[name]
            if name in self.pattern.classes:
                return Existing(self.pattern.classes[name])
            definition = self.definitions[name]
            self.line(definition.targets, definition.value)
            return self.bound[name]
        if isinstance(expression, syntax.Constant):
            return self.literal(LiteralRecipe(expression.value, 0, expression.dtype, expression.place))
        assert isinstance(expression, syntax.Term)
        operator = newest(expression)
        assert operator.schema is not None
        return Value(self.node(expression, 1), None if operator.schema.max_output == 1 else 0)

    def literal(self, recipe: LiteralRecipe) -> Reference:
        key = (recipe.value, recipe.rank, recipe.dtype)
        if key not in self.known:
            self.out.literals.append(recipe)
            self.known[key] = Stored(len(self.out.literals) - 1)
        return self.known[key]

    def node(self, term: syntax.Term, outputs: int) -> int:
        operator = newest(term)
        signature = Signature.of(operator)
        references: list[Reference] = []
        tail: str | Loop | None = None
        for position, item in enumerate(term.inputs):
            if isinstance(item, syntax.Spread):
                assert isinstance(item.item, syntax.Name)
                tail = self.pattern.classes[item.item.name]
            elif isinstance(item, syntax.Mapped):
                tail = self.loop(item)
            else:
                references.append(self.input(item, operator, position))
        single = references[: signature.inputs]
        single += [Missing()] * (signature.inputs - len(single))
        made = Made(
            operator,
            signature,
            tuple(self.attribute(term, operator, name, outputs) for name in signature.attributes),
            tuple(single),
            tuple(references[signature.inputs :]),
            tail,
            outputs,
            term.place,
        )
        self.out.nodes.append(made)
        return len(self.out.nodes) - 1

    def loop(self, mapped: syntax.Mapped) -> Loop:
        body = _Body(self, mapped.targets)
        body.out.roots[""] = body.value(mapped.item)
        lists = tuple(self.pattern.classes[source] for source in mapped.sources)
        return Loop(lists, mapped.targets, tuple(body.shared), body.out, mapped.place)

    def input(self, item: syntax.Expression | None, operator: Operator, position: int) -> Reference:
        rank = PARAMETERS.get(operator.name, {}).get(position)
        if item is None:
            return Missing()
        if rank is None or isinstance(item, (syntax.Term, syntax.Constant)):
            return self.value(item)
        if isinstance(item, syntax.Name) and item.name in self.pattern.classes:
            return self.value(item)
        return self.literal(LiteralRecipe(item, rank, place=item.place))

    def attribute(self, term: syntax.Term, operator: Operator, name: str, outputs: int) -> Attribute:
        if name.startswith("#"):
            return Fixed(outputs_of(operator, outputs))
        for attribute in term.attributes:
            if attribute.name == name:
                return Computed(name, attribute.value)
        if term.carried is not None:
            _, columns = self.pattern.carried[term.carried]
            # `..p` excludes attributes that the left side names; here they are at their defaults.
            if name in columns:
                return Carried(columns[name])
        return Fixed(attribute_default(operator, name))


class _Body(_Right):
    """The nodes that are made for one item of lists."""

    def __init__(self, around: _Right, targets: tuple[str, ...]) -> None:
        super().__init__(around.pattern, around.definitions)
        self.around = around
        self.bound = {target: Item(number) for number, target in enumerate(targets)}
        self.shared: dict[Reference, Shared] = {}

    def value(self, expression: syntax.Expression) -> Reference:
        """The reference for an expression in the place of a tensor. The outer right side makes a
        named value from outside, once.
        """
        if not isinstance(expression, syntax.Name) or expression.name in self.bound:
            return super().value(expression)
        return self.shared.setdefault(self.around.value(expression), Shared(len(self.shared)))


def construction_of(lines: tuple[syntax.Line, ...], pattern: Pattern, definitions: Mapping[str, syntax.Definition]) -> Construction:
    """The construction of a right side for matches of `pattern`; `definitions` are those of
    tensors.
    """
    return _Right(pattern, definitions).lines(lines)

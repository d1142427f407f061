"""Building: typed columns for the right side of one match.

The input is a match. The output is the columns of the right side's literals and nodes. Each node is
typed before it is made.

The columns stand in one order, which the emission of rules repeats. A literal has its handle and
its fact. A node has its attributes, the fact of the list that is made for it, the facts of the list
cells of its further inputs from the last to the first, its own fact, and the facts of its outputs
if it has several. Each item of a list that the right side makes has columns of its own, in the same
order; the fact of the list that follows the item comes last.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from eqsat.facts.fact import Contradiction, Fact
from eqsat.facts.legality import illegal
from eqsat.frozen import frozen
from eqsat.language import syntax
from eqsat.language.attribute_values import from_value, survives
from eqsat.language.compile import Compiled
from eqsat.language.construction import Carried, Computed, Existing, Item, LiteralRecipe, Loop, Made, Reference, Shared, Stored, Value
from eqsat.language.expressions import Unevaluable, evaluate
from eqsat.language.literals import integers, scalar
from eqsat.language.matching import Environment
from eqsat.language.query import Fixed
from eqsat.language.syntax import Label
from eqsat.language.values import DTYPES, DType, Tensor
from eqsat.operators import AttributeValue, attribute_default
from eqsat.spelling.normal import normalize
from eqsat.terms.derivation import Derivation
from eqsat.terms.forms import Form, Source
from eqsat.terms.reading import input_facts
from eqsat.terms.terms import Literal, Terms, fact_of


class Wrong(Exception):
    """The right side is legal but has another type than the left, so the rule is wrong."""


@frozen
class Columns:
    """The columns of a right side, and those of the items of each list that it makes."""

    own: tuple[int, ...]
    lists: tuple[tuple[tuple[int, ...], ...], ...] = ()


class Building:
    """Builds one right side for one match. `build` raises `Unevaluable` if the rule does not fire,
    and `Wrong` if the rule is wrong.
    """

    def __init__(self, compiled: Compiled, terms: Terms, derivation: Derivation, handles: tuple[int, ...], environment: Environment, joins: bool) -> None:
        self._compiled = compiled
        self._construction = compiled.construction
        self._items: tuple[int, ...] = ()  # in a loop body, the facts of the current items
        self._shared: tuple[int, ...] = ()
        self._lists: list[tuple[tuple[int, ...], ...]] = []
        self._terms = terms
        self._derivation = derivation
        self._handles = handles
        self._environment = environment
        self._joins = joins
        self._literals: list[Literal] = []
        self._nodes: list[int] = []  # by node, its fact
        self.dtypes: set[int] = set()  # of all tensors that the right side reads and makes

    def build(self) -> Columns:
        """The columns of the right side."""
        columns = self._columns()
        for root, variable in self._compiled.pattern.roots.items() if self._joins else ():
            self._join(self._existing(variable), self._fact(self._construction.roots[root]))
        return Columns(columns, tuple(self._lists))

    def _columns(self) -> tuple[int, ...]:
        self._literals = [self._literal(recipe) for recipe in self._construction.literals]
        made = [self._node(node) for node in self._construction.nodes]
        columns = [column for literal in self._literals for column in (self._terms.literal(literal), self._terms.fact(fact_of(literal)))]
        for node in made:
            columns += node
        return tuple(columns)

    def _loop(self, loop: Loop) -> int:
        """Builds a list item by item and returns its fact."""
        chains = [self._terms.chain(self._existing(listed)) for listed in loop.lists]
        if len(set(map(len, chains))) > 1 or not chains[0]:
            raise Unevaluable(loop.place, f"lists of {' and '.join(str(len(chain)) for chain in chains)} items; there must be one, and equally many in all")
        shared = tuple(map(self._fact, loop.shared))
        made = [self._item(loop, items, shared) for items in zip(*chains, strict=True)]
        tail, rows = self._terms.absent, list[tuple[int, ...]]()
        for columns, fact in reversed(made):
            rows.append((*columns, tail))
            tail = self._derivation.link(fact, tail)
        self._lists.append(tuple(reversed(rows)))
        return tail

    def _item(self, loop: Loop, items: tuple[int, ...], shared: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """The columns of one item of a list, and the fact of its value."""
        facts = [self._terms.facts.get(handle) for handle in items]
        named = {target: Tensor(fact) for target, fact in zip(loop.targets, facts, strict=True) if isinstance(fact, Fact)}
        one = Building(self._compiled, self._terms, self._derivation, self._handles, {**self._environment, **named}, False)
        one._construction, one._items, one._shared, one.dtypes = loop.body, items, shared, self.dtypes
        return one._columns(), one._fact(loop.body.roots[""])

    def _join(self, left: int, right: int) -> None:
        try:
            self._derivation.merge(left, right)
        except Contradiction as error:
            raise Wrong(str(error)) from error

    def _existing(self, variable: str) -> int:
        return self._handles[self._compiled.pattern.facts[variable]]

    def _literal(self, recipe: LiteralRecipe) -> Literal:
        value = evaluate(recipe.value, self._environment)
        if not recipe.dtype:
            literal = integers(value, recipe.rank)
        else:
            dtype = self._environment.get(recipe.dtype) or DTYPES.get(recipe.dtype)
            literal = scalar(value, dtype.code) if isinstance(dtype, DType) else None
        if literal is None:
            raise Unevaluable(recipe.place, "the value is not known, or its type does not have it")
        return literal

    def _fact(self, reference: Reference) -> int:
        match reference:
            case Existing(variable):
                return self._existing(variable)
            case Stored(number):
                return self._terms.fact(fact_of(self._literals[number]))
            case Value(node, output):
                return self._nodes[node] if output is None else self._derivation.project(output, self._nodes[node])
            case Item(number):
                return self._items[number]
            case Shared(number):
                return self._shared[number]
            case _:
                return self._terms.absent

    def _node(self, made: Made) -> list[int]:
        terms, derivation = self._terms, self._derivation
        chain: list[int] = []
        if made.signature.rest:
            tail = terms.absent if made.tail is None else self._loop(made.tail) if isinstance(made.tail, Loop) else self._existing(made.tail)
            chain += [tail] if isinstance(made.tail, Loop) else []
            for reference in reversed(made.items):
                tail = derivation.link(self._fact(reference), tail)
                chain.append(tail)
            rest, listed = terms.chain(tail), [tail]
        else:
            rest, listed = [], []
        facts = input_facts(terms, [*map(self._fact, made.inputs), *rest])
        attributes = self._attributes(made, facts)
        if made.operator.name == "Reshape" and isinstance(made.attributes[0], Fixed) and len(facts) > 1 and facts[1] is not None:
            # A rule computes sizes, so a 0 among them is a size and copies nothing.
            attributes["allowzero"] = int(facts[1].ints is None or 0 in facts[1].ints)
        attributes = self._normal(made, attributes, facts)
        inputs = [self._fact(reference) for reference in made.inputs]
        facts = input_facts(terms, [*inputs, *rest])
        self._check(made, attributes, facts)
        handles = [terms.attribute(attributes.get(name)) for name in made.signature.attributes]
        fact = derivation.term(terms.signature(made.signature), *handles, *inputs, *listed)
        self._nodes.append(fact)
        outputs = [] if made.signature.single else [derivation.project(index, fact) for index in range(made.outputs)]
        return [*handles, *chain, fact, *outputs]

    def _check(self, made: Made, attributes: dict[str, AttributeValue | None], facts: tuple[Fact | None, ...]) -> None:
        for fact in facts:
            if fact is not None and not fact.dtype:
                raise Unevaluable(made.place, f"the data type of an input of {made.operator.name} is not known")
        reason = illegal(made.operator, _visible(attributes), facts, made.outputs)
        if reason is not None:
            raise Unevaluable(made.place, f"ONNX rejects {made.operator.name} here: {reason}")
        self.dtypes.update(fact.dtype for fact in facts if fact is not None)

    def _attributes(self, made: Made, facts: tuple[Fact | None, ...]) -> dict[str, AttributeValue | None]:
        precise = self._compiled.rule.label == Label.EXACT or any(fact is not None and fact.dtype == TensorProto.DOUBLE for fact in facts)
        found: dict[str, AttributeValue | None] = {}
        for name, attribute in zip(made.signature.attributes, made.attributes, strict=True):
            match attribute:
                case Fixed(value):
                    found[name] = value
                case Carried(source):
                    found[name] = self._terms.attributes.get(self._handles[source])
                case Computed(_, syntax.Name(handed)) if handed not in self._environment and handed not in DTYPES:
                    # An attribute that the left side lacks is not written here either.
                    found[name] = attribute_default(made.operator, name)
                case Computed(_, expression):
                    value = evaluate(expression, self._environment)
                    stored = from_value(made.operator, name, value)
                    if stored is None:
                        raise Unevaluable(expression.place, f"the attribute {name} is not known, or none that {made.operator.name} takes")
                    if not survives(value, stored, precise):
                        raise Unevaluable(expression.place, f"the attribute {name} has single precision, in which {value} is another number")
                    found[name] = stored
        return found

    def _normal(self, made: Made, attributes: dict[str, AttributeValue | None], facts: tuple[Fact | None, ...]) -> dict[str, AttributeValue | None]:
        """The attributes in normal form, so that equal nodes become one. Literals change with
        them. If the normal form has other inputs, the attributes stay as they are.
        """
        normal = normalize(Form(made.operator, _visible(attributes), tuple(range(len(facts)))), facts, made.outputs)
        replaced = self._replaced(made, normal.inputs) if len(normal.inputs) == len(facts) else None
        if replaced is None:
            return attributes
        for number, literal in replaced.items():
            self._literals[number] = literal
        return {name: attributes[name] if name.startswith("#") else normal.attributes.get(name) for name in attributes}

    def _replaced(self, made: Made, sources: Sequence[Source]) -> dict[int, Literal] | None:
        """The literals of the normal form, by the numbers of the literals that belong to this node
        alone. None if the normal form changes any other input.
        """
        replaced: dict[int, Literal] = {}
        for position, source in enumerate(sources):
            reference = made.inputs[position] if position < len(made.inputs) else None
            if source == position:
                continue
            if not isinstance(source, Literal) or not isinstance(reference, Stored) or self._uses(reference) > 1:
                return None
            replaced[reference.number] = source
        return replaced

    def _uses(self, stored: Stored) -> int:
        construction = self._construction
        return sum((*node.inputs, *node.items).count(stored) for node in construction.nodes) + list(construction.roots.values()).count(stored)


def _visible(attributes: dict[str, AttributeValue | None]) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value is not None and not name.startswith("#")}

"""Building: a match comes in, the columns of the right side's literals and nodes go out, each node typed before it is made.

The columns stand in one order, which `layout` in the e-graph's program repeats: for each literal its handle and its
fact; for each node its attributes, the facts of the list cells of its further inputs from the last to the first, its
own fact, and those of its outputs where it has several.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from eqsat.derive import Derivation
from eqsat.facts import Contradiction, Fact
from eqsat.forms import Form, Source
from eqsat.language.attributes import from_value, survives
from eqsat.language.compile import Compiled
from eqsat.language.construction import Carried, Computed, Existing, LiteralRecipe, Made, Reference, Stored, Value
from eqsat.language.expressions import Unevaluable, evaluate
from eqsat.language.literals import integers, scalar
from eqsat.language.matching import Environment
from eqsat.language.pattern import Fixed
from eqsat.language.syntax import Label
from eqsat.language.values import DTYPES, DType
from eqsat.legality import illegal
from eqsat.normal import normalize
from eqsat.operators import AttributeValue
from eqsat.terms import Literal, Terms, fact_of


class Wrong(Exception):
    """The right side is legal, and of another type than the left: the rule is wrong."""


class Building:
    """One right side for one match. `build` raises `Unevaluable` where the rule does not fire, `Wrong` where it may not."""

    def __init__(self, compiled: Compiled, terms: Terms, derivation: Derivation, handles: tuple[int, ...], environment: Environment, joins: bool) -> None:
        self._compiled = compiled
        self._terms = terms
        self._derivation = derivation
        self._handles = handles
        self._environment = environment
        self._joins = joins
        self._literals: list[Literal] = []
        self._nodes: list[int] = []  # by node, its fact
        self.dtypes: set[int] = set()  # of all tensors that the right side reads and makes

    def build(self) -> tuple[int, ...]:
        """The columns of the right side."""
        construction = self._compiled.construction
        self._literals = [self._literal(recipe) for recipe in construction.literals]
        made = [self._node(node) for node in construction.nodes]
        columns = [column for literal in self._literals for column in (self._terms.literal(literal), self._terms.fact(fact_of(literal)))]
        for node in made:
            columns += node
        for root, variable in self._compiled.pattern.roots.items() if self._joins else ():
            self._join(self._existing(variable), self._fact(construction.roots[root]))
        return tuple(columns)

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
            case _:
                return self._terms.absent

    def _known(self, handles: Sequence[int]) -> tuple[Fact | None, ...]:
        """The facts of a node's inputs; absent ones at the end are left out."""
        facts = [knowledge if isinstance(knowledge := self._terms.facts.get(handle), Fact) else None for handle in handles]
        while facts and facts[-1] is None:
            facts.pop()
        return tuple(facts)

    def _node(self, made: Made) -> list[int]:
        terms, derivation = self._terms, self._derivation
        chain: list[int] = []
        if made.signature.rest:
            tail = terms.absent if made.tail is None else self._existing(made.tail)
            for reference in reversed(made.items):
                tail = derivation.link(self._fact(reference), tail)
                chain.append(tail)
            rest, listed = terms.chain(tail), [tail]
        else:
            rest, listed = [], []
        facts = self._known([*map(self._fact, made.inputs), *rest])
        attributes = self._attributes(made, facts)
        if made.operator.name == "Reshape" and isinstance(made.attributes[0], Fixed) and len(facts) > 1 and facts[1] is not None:
            # What a rule computes are sizes: a 0 is one, and copies nothing.
            attributes["allowzero"] = int(facts[1].ints is None or 0 in facts[1].ints)
        attributes = self._normal(made, attributes, facts)
        inputs = [self._fact(reference) for reference in made.inputs]
        facts = self._known([*inputs, *rest])
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
        """The attributes in normal form, so that equal nodes are one, and literals likewise; as they are where the normal form has other inputs."""
        normal = normalize(Form(made.operator, _visible(attributes), tuple(range(len(facts)))), facts, made.outputs)
        replaced = self._replaced(made, normal.inputs) if len(normal.inputs) == len(facts) else None
        if replaced is None:
            return attributes
        for number, literal in replaced.items():
            self._literals[number] = literal
        return {name: attributes[name] if name.startswith("#") else normal.attributes.get(name) for name in attributes}

    def _replaced(self, made: Made, sources: Sequence[Source]) -> dict[int, Literal] | None:
        """By number of a literal of this node alone, the literal that the normal form has there; None where that is not all that it changes."""
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
        construction = self._compiled.construction
        return sum((*node.inputs, *node.items).count(stored) for node in construction.nodes) + list(construction.roots.values()).count(stored)


def _visible(attributes: dict[str, AttributeValue | None]) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value is not None and not name.startswith("#")}

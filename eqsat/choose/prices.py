"""Prices: the cost of choosing a term, under a target and an objective.

A price is a pair of a cost and a tie. The tie decides only between choices of equal cost. Costs of
time are counted in launches of the target, and rounded to steps finer than any prediction. So costs
are whole numbers on a target on which everything takes one launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from eqsat.cost.blocked_layout import beside_convs, between_convs, over_images
from eqsat.cost.price import Price, as_definition, blocks
from eqsat.cost.shaped import PricedNode, Shaped, shaped
from eqsat.cost.target import Target
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.facts.fact import Fact
from eqsat.frozen import mutable
from eqsat.model.model import NodeCount
from eqsat.operators import Operator, find_operator, read_attributes
from eqsat.settings import Objective
from eqsat.terms.reading import input_facts, term_attributes
from eqsat.terms.terms import Term
from eqsat.traits import NEWEST

_STEPS = 512  # steps of a cost within one launch
_ABSURD = float(1 << 60)


@mutable
class Shared:
    """What is known of terms by all on which it depends. The e-graphs of one vocabulary share it, for
    one target, the same sizes and one opset: most of their terms are the same.
    """

    prices: dict[tuple[int, ...], Price] = field(default_factory=dict[tuple[int, ...], Price])
    nodes: dict[tuple[int, ...], PricedNode] = field(default_factory=dict[tuple[int, ...], PricedNode])
    models: dict[tuple[int, tuple[int, ...]], bytes | None] = field(default_factory=dict[tuple[int, tuple[int, ...]], bytes | None])
    """By an opset too: the single-node models that tell whether the result may have terms."""


@mutable
class Prices:
    """The prices of the terms of one e-graph."""

    encoding: Encoding
    egraph: EGraph
    target: Target
    objective: Objective
    sizes: Mapping[str, int]  # of named dimensions
    inside: Callable[[Term], int]
    """Returns the launches of a term with bodies, or of a call."""
    opset: int = NEWEST  # in which terms are written
    shared: Shared = field(default_factory=Shared)
    blocked: bool = False  # whether Convs of the model run in blocks of channels

    @property
    def predicts(self) -> bool:
        """Tells whether costs are predictions of time."""
        return self.objective == "time" and not self.target.counts

    def of(self, term: Term, stored: float) -> tuple[float, float]:
        """Returns the cost and the tie of a term that stores `stored` bytes in the file."""
        if term.head < 0:
            return (stored, 0.0) if self.objective == "size" else (0.0, 0.0)
        found = self.price(term)
        if self.objective == "size":
            return stored, float(found.launches)
        return self.cost(found), float(found.launches) if self.objective == "bytes" else found.bytes

    def cost(self, found: Price) -> float:
        """Returns the cost of a price under an objective other than the size of the file."""
        if self.objective == "launches":
            return float(found.launches)
        if self.objective == "bytes":
            return min(found.bytes, _ABSURD)
        return round(min(found.seconds / self.target.start, _ABSURD) * _STEPS) / _STEPS

    def price(self, term: Term) -> Price:
        """Returns the price of a term on the target, whatever the objective."""
        signature = self.encoding.terms.signatures[term.head]
        if signature.opaque:
            launches = self.inside(term)
            return Price(launches * self.target.start, launches, 0.0, 0.0, "launch", 0.0)
        key = self.key(term)
        found = self.shared.prices.get(key)
        if found is None:
            found = self.shared.prices[key] = self._expanded(signature.operator, self.priced(self.priced_node(term)))
        return found

    def _expanded(self, operator: Operator, found: Price) -> Price:
        """Returns the price in the opset, whose version of an operator may run as several nodes."""
        if not operator.standard or self.target.operators.get(operator.name) is None:
            return found
        more = self.target.expanded(operator.name, find_operator("", operator.name, self.opset).version)
        return found if more is None else as_definition(found, more, self.target)

    def runs(self, term: Term) -> bool:
        """Tells whether the runtime has a kernel for a term, as far as the target says."""
        node = self.priced_node(term)
        return self.target.runs(node.key, next((tensor.dtype for tensor in node.inputs if tensor is not None), 0))

    def priced(self, node: PricedNode) -> Price:
        """Returns the price of a node on the target."""
        return (between_convs if self.blocked else beside_convs)(node, self.target)

    def is_constant(self, eclass: int) -> bool:
        """Tells whether a class holds constant values, or no value at all."""
        fact = self.encoding.terms.facts.get(self.egraph.facts[eclass])
        return fact is None or (isinstance(fact, Fact) and fact.const)

    def priced_node(self, term: Term) -> PricedNode:
        """Returns a term as a node that the target can price."""
        key = self.key(term)
        found = self.shared.nodes.get(key)
        if found is None:
            found = self.shared.nodes[key] = self._priced_node(term)
        return found

    def key(self, term: Term) -> tuple[int, ...]:
        """Returns everything on which the price of a term depends."""
        facts = self.egraph.facts
        return (term.head, *term.data, facts[term.eclass], *[facts[child] for child in term.children])

    def _priced_node(self, term: Term) -> PricedNode:
        terms, facts = self.encoding.terms, self.egraph.facts
        signature = terms.signatures[term.head]
        handles = [facts[child] for child in term.children[: signature.inputs]]
        if signature.rest:
            handles += terms.chain(facts[term.children[-1]])
        inputs = [None if fact is None else self._shaped(fact) for fact in input_facts(terms, handles)]
        operator = signature.operator
        attributes, results = term_attributes(terms, term.head, term.data), [self._shaped(fact) for fact in terms.value_facts(facts[term.eclass])]
        return PricedNode(operator.domain, operator.name, attributes, inputs, results, opset=self.opset, free_numbers=True)

    def _shaped(self, fact: Fact) -> Shaped:
        return shaped(fact, self.sizes)


def prices_of(
    encoding: Encoding,
    egraph: EGraph,
    target: Target,
    objective: Objective,
    sizes: Mapping[str, int],
    count: NodeCount,
    opset: int = NEWEST,
    shared: Shared | None = None,
    blocked: bool = False,
) -> Prices:
    """Returns the prices of an e-graph whose terms are written in an opset. Nodes with bodies launch
    as often as they have nodes. What is `shared` with other e-graphs is not computed again. If it is
    `blocked`, Convs of the model run in blocks of channels.
    """
    inside: dict[tuple[int, tuple[int, ...]], int] = {}
    for entry in encoding.entries:
        if entry.head >= 0 and encoding.terms.signatures[entry.head].opaque:
            inside[entry.head, entry.data] = count.nodes([encoding.nodes[entry.eclass].proto])
    return Prices(encoding, egraph, target, objective, sizes, lambda term: inside.get((term.head, term.data), 1), opset, shared or Shared(), blocked)


def has_blocked_convs(encoding: Encoding, target: Target) -> bool:
    """Tells whether the runtime of a target runs some Conv of a graph in blocks of channels, or would as
    one over images of a single row.
    """
    if target.blocked is None:
        return False
    for node in encoding.nodes.values():
        if node.operator.full_name == "Conv":
            inputs = [over_images(shaped(encoding.fact(name), {})) if name else None for name in node.inputs]
            if blocks(PricedNode("", "Conv", read_attributes(node.operator, node.proto.attribute), inputs, []), target.blocked):
                return True
    return False

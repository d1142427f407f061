"""Fusions: pairs of chosen nodes that the target's runtime will run as one kernel, wanted or not.

The input is a choice; the output is what each such pair costs beside the sum of its two nodes. The
extractor takes these costs as terms that apply where both nodes are chosen and the second is the
only consumer of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eqsat.choose.prices import Prices
from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.cost.target import Fusion
from eqsat.extract import Term as Together
from eqsat.terms.reading import term_inputs
from eqsat.terms.terms import Term


class Fusions:
    """The fusions among the terms of one e-graph."""

    def __init__(self, prices: Prices, ways: Sequence[Term]) -> None:
        self._prices = prices
        self._ways = ways
        self._by_operator: dict[str, list[Fusion]] = {}
        for fusion in prices.target.fusions:
            for name in fusion.second:
                self._by_operator.setdefault(name, []).append(fusion)

    def among(self, picks: Mapping[int, int]) -> list[Together]:
        """The costs of the pairs in a choice, which maps classes to positions in the ways."""
        if not self._by_operator or self._prices.objective not in ("time", "launches"):
            return []
        chosen = {eclass: self._ways[index] for eclass, index in picks.items()}
        found: dict[tuple[int, int], Together] = {}
        for index in picks.values():
            second = self._ways[index]
            for fusion in self._by_operator.get(self._name(second), ()):
                for child, first in self._feeding(second, chosen):
                    pair = (picks[child], index)
                    if self._name(first) in fusion.first and pair not in found and self._fuses(fusion, first, second, chosen):
                        found[pair] = Together(pair, self._difference(fusion, first, second), sole=True)
        return list(found.values())

    def _name(self, term: Term) -> str:
        if term.head < 0:
            return ""
        operator = self._prices.encoding.terms.signatures[term.head].operator
        return f"{operator.domain}.{operator.name}" if operator.domain else operator.name

    def _feeding(self, second: Term, chosen: Mapping[int, Term]) -> Iterator[tuple[int, Term]]:
        """The chosen terms of the inputs of a term, by class."""
        for child in dict.fromkeys(second.children):
            term = chosen.get(child)
            if term is not None:
                yield child, term

    def _fuses(self, fusion: Fusion, first: Term, second: Term, chosen: Mapping[int, Term]) -> bool:
        if not fusion.constant:
            return True
        others = [child for child in term_inputs(self._prices.encoding.terms.signatures[second.head], second, chosen) if child != first.eclass]
        return all(shape.constant for child in others if (shape := self._prices.shaped_class(child)) is not None)

    def _difference(self, fusion: Fusion, first: Term, second: Term) -> float:
        """The cost of the fused kernel, less those of its two nodes."""
        fused = self._fused(fusion, self._prices.priced_node(first), self._prices.priced_node(second), self._prices.shaped_class(first.eclass))
        return self._prices.cost(self._prices.priced(fused)) - self._prices.cost(self._prices.price(first)) - self._prices.cost(self._prices.price(second))

    def _fused(self, fusion: Fusion, first: PricedNode, second: PricedNode, between: Shaped | None) -> PricedNode:
        domain, _, name = fusion.becomes.rpartition(".")
        others = list(second.inputs)
        if between in others:
            others.remove(between)
        attributes = {**second.attributes, **first.attributes}
        return PricedNode(domain, name, attributes, [*first.inputs, *others], second.outputs)

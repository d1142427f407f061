"""Fusions: pairs of neighbors that the target's runtime always runs as one kernel.

If a fused kernel is cheaper than its two nodes, the pair is one more way to choose the class of the
second node. That way does not need the class of the first node. So the extractor sees the saving
where the second node is the only consumer of the first. It pays for the first node again where
there are other consumers. If a fused kernel is dearer, the first node costs more in a choice that
contains the pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from eqsat.choose.prices import Prices
from eqsat.cost.fusion import Fusion
from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.terms.reading import term_inputs
from eqsat.terms.terms import CONS, FUSED, NIL, Term


class Fusions:
    """The fusions among the ways to choose from one e-graph."""

    def __init__(self, prices: Prices, ways: Sequence[Term]) -> None:
        self._prices = prices
        self._ways = ways
        self._second: dict[str, list[Fusion]] = {}
        first = {name for fusion in prices.target.fusions for name in fusion.first}
        for fusion in prices.target.fusions if prices.objective in ("time", "launches") else ():
            for name in fusion.second:
                self._second.setdefault(name, []).append(fusion)
        self._firsts: dict[int, list[int]] = {}
        for place, way in enumerate(ways):
            if self._name(way) in first:
                self._firsts.setdefault(way.eclass, []).append(place)
        self._cells = {way.eclass: way for way in ways if way.head in (CONS, NIL)}

    def savings(self) -> list[Term]:
        """Returns the pairs with a cheaper fused kernel, as ways to choose the class of the second
        node.
        """
        found: list[Term] = []
        for place, second in enumerate(self._ways):
            for fusion in self._second.get(self._name(second), ()):
                for child in dict.fromkeys(second.children):
                    for number in self._firsts.get(child, ()):
                        first = self._ways[number]
                        if self._fuses(fusion, first, second) and self._difference(fusion, first, second) < 0:
                            children = dict.fromkeys((*first.children, *(other for other in second.children if other != child)))
                            if second.eclass not in children and child not in children:
                                found.append(Term(FUSED, (number, place), tuple(children), second.eclass))
        return found

    def price(self, fused: Term) -> tuple[float, float]:
        """Returns the cost of the fused kernel of two ways, and the tie of the two.

        So one node is preferred to two nodes that run as one.
        """
        first, second = (self._ways[number] for number in fused.data)
        cost = min(self._cost(fusion, first, second) for fusion in self._second[self._name(second)] if self._fuses(fusion, first, second))
        return cost, sum(self._prices.of(way, 0.0)[1] for way in (first, second))

    def penalties(self, picks: Mapping[int, int]) -> dict[int, float]:
        """Returns the extra cost of dearer fused kernels in a choice, by the place of the first
        node.
        """
        consumers = Counter(child for place in picks.values() for child in set(self._ways[place].children))
        found: dict[int, float] = {}
        for place in picks.values():
            second = self._ways[place]
            for fusion in self._second.get(self._name(second), ()):
                for child in dict.fromkeys(second.children):
                    first = self._ways[picks[child]]
                    if consumers[child] == 1 and self._fuses(fusion, first, second):
                        difference = self._difference(fusion, first, second)
                        if difference > 0:
                            found[picks[child]] = max(difference, found.get(picks[child], 0.0))
        return found

    def apart(self, picks: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Yields the choice with each fused way replaced by its two ways. A class that is also
        chosen directly keeps its own way.
        """
        for eclass, place in picks.items():
            way = self._ways[place]
            if way.head != FUSED:
                yield eclass, place
                continue
            first, second = way.data
            yield eclass, second
            if self._ways[first].eclass not in picks:
                yield self._ways[first].eclass, first

    def _name(self, way: Term) -> str:
        return "" if way.head < 0 else self._prices.encoding.terms.signatures[way.head].operator.full_name

    def _fuses(self, fusion: Fusion, first: Term, second: Term) -> bool:
        if self._name(first) not in fusion.first:
            return False
        return not fusion.conditions or fusion.holds(self._prices.priced_node(first), self._others(first, second))

    def _others(self, first: Term, second: Term) -> list[Shaped | None]:
        """Returns the inputs of the second way but the result of the first."""
        inputs = term_inputs(self._prices.encoding.terms.signatures[second.head], second, self._cells)
        tensors = self._prices.priced_node(second).inputs
        return [tensor for child, tensor in zip(inputs, tensors, strict=False) if child != first.eclass]

    def _difference(self, fusion: Fusion, first: Term, second: Term) -> float:
        """Returns the cost of the fused kernel minus the costs of its two nodes."""
        prices = self._prices
        return self._cost(fusion, first, second) - prices.cost(prices.price(first)) - prices.cost(prices.price(second))

    def _cost(self, fusion: Fusion, first: Term, second: Term) -> float:
        prices = self._prices
        one, other = prices.priced_node(first), prices.priced_node(second)
        domain, _, name = fusion.becomes.rpartition(".")
        inputs = [*one.inputs, *self._others(first, second)]
        fused = PricedNode(domain, name, {**other.attributes, **one.attributes}, inputs, other.outputs)
        return prices.cost(prices.priced(fused))

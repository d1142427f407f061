"""Fusions: neighbors that the target's runtime always runs as one kernel.

If a fused kernel is cheaper than its two nodes, the pair is one more way to choose the class of the
second node. That way does not need the class of the first node. So the extractor sees the saving
where the second node is the only consumer of the first. It pays for the first node again where
there are other consumers. If a fused kernel is dearer, the first node costs more in a choice that
contains the pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from eqsat.choose.prices import Prices
from eqsat.choose.quantized import QuantizedKernels
from eqsat.cost.fusion import Fusion
from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.terms.reading import term_inputs
from eqsat.terms.terms import CONS, FUSED, NIL, Term

_ACTIVATED = frozenset({"com.microsoft.FusedConv", "com.microsoft.FusedGemm"})  # kernels whose attribute names the second node


class FusedPairs:
    """The pairs of terms that the target's runtime always runs as one kernel."""

    def __init__(self, prices: Prices, cell: Callable[[int], Term]) -> None:
        """`cell` gives the link or the end of a list by its class."""
        self._prices = prices
        self._cell = cell
        self._second: dict[str, list[Fusion]] = {}
        fusions = prices.target.fusions if prices.objective in ("time", "launches") else ()
        self._first = frozenset(name for fusion in fusions for name in fusion.first)
        for fusion in fusions:
            for name in fusion.second:
                self._second.setdefault(name, []).append(fusion)

    @property
    def any(self) -> bool:
        """Tells whether the target has any fusion that counts under the objective."""
        return bool(self._second)

    def begins(self, term: Term) -> bool:
        """Tells whether a term may be the first of a pair."""
        return self._name(term) in self._first

    def ends(self, term: Term) -> bool:
        """Tells whether a term may be the second of a pair."""
        return self._name(term) in self._second

    def costs(self, first: Term, second: Term) -> list[float]:
        """Returns the cost of each fused kernel of two terms; none if nothing fuses them."""
        return [self._cost(first, second, fusion.becomes) for fusion in self._second.get(self._name(second), ()) if self._fuses(fusion, first, second)]

    def differences(self, first: Term, second: Term) -> list[float]:
        """Returns the cost of each fused kernel of two terms minus the costs of the two."""
        prices = self._prices
        return [cost - prices.cost(prices.price(first)) - prices.cost(prices.price(second)) for cost in self.costs(first, second)]

    def _name(self, term: Term) -> str:
        return "" if term.head < 0 else self._prices.encoding.terms.signatures[term.head].operator.full_name

    def _fuses(self, fusion: Fusion, first: Term, second: Term) -> bool:
        if self._name(first) not in fusion.first:
            return False
        return not fusion.conditions or fusion.holds(self._prices.priced_node(first), self._others(first, second))

    def _others(self, first: Term, second: Term) -> list[Shaped | None]:
        """Returns the inputs of the second term but the result of the first."""
        inputs = term_inputs(self._prices.encoding.terms.signatures[second.head], second, self._cell)
        tensors = self._prices.priced_node(second).inputs
        return [tensor for child, tensor in zip(inputs, tensors, strict=False) if child != first.eclass]

    def _cost(self, first: Term, second: Term, becomes: str) -> float:
        prices = self._prices
        one, other = prices.priced_node(first), prices.priced_node(second)
        domain, _, name = becomes.rpartition(".")
        inputs = [*one.inputs, *self._others(first, second)]
        activation = {"activation": other.name.encode()} if becomes in _ACTIVATED else {}
        fused = PricedNode(domain, name, {**other.attributes, **activation, **one.attributes}, inputs, other.outputs)
        return prices.cost(prices.priced(fused))


class Fusions:
    """The fusions among the ways to choose from one e-graph."""

    def __init__(self, prices: Prices, ways: Sequence[Term]) -> None:
        self._prices = prices
        self._ways = ways
        cells = {way.eclass: way for way in ways if way.head in (CONS, NIL)}
        self._pairs = FusedPairs(prices, cells.__getitem__)
        self._kernels = QuantizedKernels(prices, ways)
        self._quantized: dict[tuple[int, ...], float] = {}  # the costs of quantized kernels, by their places
        self._firsts: dict[int, list[int]] = {}
        for place, way in enumerate(ways):
            if self._pairs.begins(way):
                self._firsts.setdefault(way.eclass, []).append(place)

    def savings(self) -> list[Term]:
        """Returns the pairs and quantized kernels that are cheaper than their nodes, as ways to choose
        the class of the last node.
        """
        found: list[Term] = []
        for kernel in self._kernels.found():
            nodes = [self._ways[place] for place in kernel.places]
            *inner, last = [node.eclass for node in nodes]
            children = {child: None for node in nodes for child in node.children if child not in inner}
            # A node that does nothing has the class of its input: the two cannot both be written.
            if kernel.places not in self._quantized and len({*inner, last}) == len(nodes) and last not in children:
                self._quantized[kernel.places] = kernel.cost
                found.append(Term(FUSED, kernel.places, tuple(children), last))
        for place, second in enumerate(self._ways):
            for child in dict.fromkeys(second.children) if self._pairs.ends(second) else ():
                if child == second.eclass:
                    continue  # a sum with zero, say: its two nodes cannot both be written
                for number in self._firsts.get(child, ()):
                    first = self._ways[number]
                    if min(self._pairs.differences(first, second), default=0.0) < 0:
                        children = dict.fromkeys((*first.children, *(other for other in second.children if other != child)))
                        if second.eclass not in children and child not in children:
                            found.append(Term(FUSED, (number, place), tuple(children), second.eclass))
        return found

    def price(self, fused: Term) -> tuple[float, float]:
        """Returns the cost of the fused kernel of several ways, and the tie of all of them.

        So one node is preferred to two nodes that run as one.
        """
        nodes = [self._ways[number] for number in fused.data]
        cost = self._quantized.get(fused.data)
        return min(self._pairs.costs(*nodes)) if cost is None else cost, sum(self._prices.of(way, 0.0)[1] for way in nodes)

    def penalties(self, picks: Mapping[int, int]) -> dict[int, float]:
        """Returns the extra cost of dearer fused kernels in a choice, by place: that of the first of a
        pair, and those that share the extra cost of a quantized kernel.
        """
        foreseen = self.foreseen(picks)
        return {place: foreseen[place] for place in picks.values() if place in foreseen}

    def foreseen(self, picks: Mapping[int, int]) -> dict[int, float]:
        """Returns the penalties of a choice, and those of other ways in the place of its firsts: the same
        sum with its operands swapped is fused as well, and would be chosen next.
        """
        consumers = Counter(child for place in picks.values() for child in set(self._ways[place].children))
        found = self._kernels.dearer(picks, consumers)
        for place in picks.values():
            second = self._ways[place]
            for child in dict.fromkeys(second.children) if self._pairs.ends(second) else ():
                for first in self._firsts.get(child, ()) if consumers[child] == 1 else ():
                    difference = max(self._pairs.differences(self._ways[first], second), default=0.0)
                    if difference > 0:
                        found[first] = max(difference, found.get(first, 0.0))
        return found

    def apart(self, picks: Mapping[int, int]) -> Iterator[dict[int, int]]:
        """Yields choices, children first, with each fused way replaced by its ways, the best first.
        Some may be cyclic.

        At first the other readers of what a quantized kernel dequantizes read that, and any other
        class that is also chosen directly keeps its own way. Then all keep it, and at last none.
        """
        own: dict[int, int] = {}
        pairs: dict[int, int] = {}
        quantized: dict[int, int] = {}
        for eclass, place in picks.items():
            way = self._ways[place]
            own[eclass] = place
            if way.head == FUSED:
                *inner, own[eclass] = way.data
                for first in inner:
                    (quantized if way.data in self._quantized else pairs).setdefault(self._ways[first].eclass, first)
        yield {**pairs, **own, **quantized}
        yield {**quantized, **pairs, **own}
        yield {**own, **pairs, **quantized}

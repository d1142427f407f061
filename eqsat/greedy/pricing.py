"""Pricing: the difference that a rewrite makes to the cost of a term graph, without making it.

The prices are those of extraction, fusions of the runtime included. Constants that will be folded
cost nothing, but the bytes that they store count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from eqsat.choose.fusions import FusedPairs
from eqsat.choose.prices import Prices
from eqsat.facts.fact import UNKNOWN, byte_size
from eqsat.frozen import frozen
from eqsat.greedy.term_graph import TermGraph
from eqsat.model.tensors import dense_bytes
from eqsat.terms.terms import CONS, CONSTANT, LITERAL, Term

_LARGEST = float(1 << 60)


@frozen
class Difference:
    """The difference that a rewrite makes: the cost, the tie between equal costs, and stored bytes."""

    cost: float
    tie: float
    stored: float
    added: Sequence[int]  # classes that come to life


class Pricing:
    """Prices the terms of one term graph."""

    def __init__(self, graph: TermGraph, prices: Prices) -> None:
        self._graph = graph
        self._prices = prices
        self._pairs = FusedPairs(prices, graph.term)

    def stored(self, eclass: int) -> float:
        """Returns the bytes that a live class stores in the file."""
        encoding, term = self._prices.encoding, self._graph.term(eclass)
        if term.head == CONSTANT:
            return 0.0 if term.data[0] in encoding.captured else float(encoding.contents[term.data[0]][1].tensor.nbytes)
        if term.head == LITERAL:
            literal = encoding.terms.literals.get(term.data[0])
            return float(dense_bytes(literal.dtype, len(literal.elements))) if not isinstance(literal.elements, bytes) else float(len(literal.elements))
        return float(byte_size(self._graph.fact(eclass) or UNKNOWN) or 0) if self._graph.is_leaf(eclass) else 0.0

    def difference(self, roots: Sequence[tuple[int, int]]) -> Difference:
        """Returns the difference if the second class of each pair takes the place of the first."""
        after = _After(self._graph, roots)
        cost = tie = stored = 0.0
        for sign, classes in ((1, after.added), (-1, after.removed)):
            for eclass in classes:
                amounts = self._amounts(eclass)
                cost, tie, stored = cost + sign * amounts[0], tie + sign * amounts[1], stored + sign * amounts[2]
        if self._pairs.any:
            cost += self._fused(after)
        return Difference(cost, tie, stored, after.added)

    def _amounts(self, eclass: int) -> tuple[float, float, float]:
        stored = min(self.stored(eclass), _LARGEST)
        term = self._graph.term(eclass)
        if term.head >= 0 and not self._graph.is_leaf(eclass):
            cost, tie = self._prices.of(term, 0.0)
            return cost, tie, stored
        return (stored if self._prices.objective == "size" else 0.0), 0.0, stored

    def _fused(self, after: _After) -> float:
        """Returns the difference that fusions make."""
        graph = self._graph
        touched = dict.fromkeys([*after.delta, *(new for _, new in after.roots)])
        seconds = {user: None for eclass in touched for user in self._seconds(graph.users_of(eclass))}
        seconds |= dict.fromkeys(self._seconds(after.removed))
        # A second node of one fusion may be the first node of another one.
        seconds |= {user: None for eclass in list(seconds) for user in self._seconds(graph.users_of(eclass))}
        gone = set(after.removed)
        now = _Fusing(self._pairs, graph.term, lambda eclass: graph.refs[eclass], graph.is_leaf)
        then = _Fusing(self._pairs, after.term, after.refs, graph.is_leaf)
        before = sum(now.saving(eclass) for eclass in seconds if graph.is_alive(eclass))
        return sum(then.saving(eclass) for eclass in dict.fromkeys([*seconds, *self._seconds(after.added)]) if eclass not in gone) - before

    def _seconds(self, classes: Iterable[int]) -> list[int]:
        return [eclass for eclass in classes if self._pairs.ends(self._graph.term(eclass))]


class _After:
    """The life of a term graph after a rewrite, as differences from now."""

    def __init__(self, graph: TermGraph, roots: Sequence[tuple[int, int]]) -> None:
        self.roots = roots
        self.delta: dict[int, int] = {}
        self._graph = graph
        self._place = dict(roots)
        needs = [(old, new, graph.refs[old]) for old, new in roots]
        touched: dict[int, None] = {}
        for _, new, count in needs:
            self._change(new, count, touched)
        for old, _, count in needs:
            self._change(old, -count, touched)
        self.added = [eclass for eclass in touched if self._now(eclass) == 0 < self.refs(eclass)]
        self.removed = [eclass for eclass in touched if self._now(eclass) > 0 == self.refs(eclass)]

    def refs(self, eclass: int) -> int:
        """Returns how often a class is needed."""
        return self._now(eclass) + self.delta.get(eclass, 0)

    def term(self, eclass: int) -> Term:
        """Returns the term of a class, with the new classes among its children."""
        term = self._graph.term(eclass)
        if not any(child in self._place for child in term.children):
            return term
        return Term(term.head, term.data, tuple(self._place.get(child, child) for child in term.children), eclass)

    def _now(self, eclass: int) -> int:
        refs = self._graph.refs
        return refs[eclass] if eclass < len(refs) else 0

    def _change(self, eclass: int, count: int, touched: dict[int, None]) -> None:
        waiting = [(eclass, count)]
        while waiting:
            current, number = waiting.pop()
            before = self.refs(current)
            self.delta[current] = self.delta.get(current, 0) + number
            touched[current] = None
            after = before + number
            if (before > 0) != (after > 0) and not self._graph.is_leaf(current):
                waiting += [(child, 1 if after > 0 else -1) for child in dict.fromkeys(self._graph.term(current).children)]


class _Fusing:
    """The savings of fusions in one state of a graph."""

    def __init__(self, pairs: FusedPairs, term: Callable[[int], Term], refs: Callable[[int], int], is_leaf: Callable[[int], bool]) -> None:
        self._pairs = pairs
        self._term = term
        self._refs = refs
        self._is_leaf = is_leaf

    def saving(self, eclass: int) -> float:
        """Returns the cost that a term adds by running as one kernel with the term before it."""
        second = self._term(eclass)
        if not self._pairs.ends(second) or self._is_leaf(eclass):
            return 0.0
        found: list[float] = []
        for child in dict.fromkeys(second.children):
            first = self._term(child)
            if first.head != CONS and self._refs(child) == 1 and not self._is_leaf(child):
                differences = self._pairs.differences(first, second)
                if differences:
                    # The node before can run with only one of its neighbors.
                    own = self.saving(child)
                    found.append(min(0.0, min(differences) - own) if own else min(differences))
        return min(found, default=0.0)

"""Laws: rewrites that hold whatever the rules are, and that never make a graph dearer.

A value of known integers becomes their literal, or another value of the same integers. A shape that
is computed becomes a list of its sizes where numbers can stand for them. Saturation has the same
laws.
"""

from __future__ import annotations

from collections.abc import Callable

from eqsat.greedy.named_sizes import concrete, is_symbolic
from eqsat.greedy.term_graph import TermGraph
from eqsat.terms.terms import CONSTANT, LITERAL, Term, fact_of, literal_of


class Laws:
    """Applies the laws to one term graph."""

    def __init__(self, graph: TermGraph, is_writable: Callable[[Term], bool]) -> None:
        self._graph = graph
        self._is_writable = is_writable
        self._values: dict[int, int] = {}  # by the handle of a literal, a value of its elements

    def known(self, literal: int) -> int | None:
        """Returns a live value that has the elements of a literal; None if there is none."""
        eclass = self._values.get(literal)
        if eclass is None:
            return None
        eclass = self._graph.find(eclass)
        return eclass if self._graph.is_alive(eclass) else None

    def apply(self) -> dict[str, int]:
        """Applies all laws until nothing changes. Returns how often each one did."""
        graph, counts = self._graph, dict[str, int]()
        while graph.due:
            eclass = next(iter(graph.due))
            del graph.due[eclass]
            if graph.is_alive(eclass):
                for name, law in (("literal", self._literal), ("parameter", self._parameter)):
                    if graph.is_alive(eclass) and law(eclass):
                        counts[name] = counts.get(name, 0) + 1
        return counts

    def _literal(self, eclass: int) -> bool:
        graph, terms = self._graph, self._graph.terms
        fact = graph.fact(eclass)
        literal = None if fact is None else literal_of(fact)
        if literal is None or is_symbolic(graph, eclass):
            return False  # a list of named sizes can not be stored, so it stands for no other value
        handle = terms.literal(literal)
        other = self.known(handle)
        if other is None and literal.concrete and graph.term(eclass).head not in (CONSTANT, LITERAL):
            other = graph.draft(LITERAL, (handle,), (), terms.fact(fact_of(literal)))
            graph.keep()
        self._values[handle] = eclass if other is None else other
        if other is None or other == eclass:
            return False
        # The lower of two classes never depends on the other one.
        low, high = sorted((other, eclass), key=lambda one: (graph.level[one], one))
        graph.unite([(high, low)])
        self._values[handle] = low
        return True

    def _parameter(self, eclass: int) -> bool:
        graph, terms, term = self._graph, self._graph.terms, self._graph.term(eclass)
        if term.head < 0:
            return False
        if concrete(graph, term.head, term.data, term.children) is None or is_symbolic(graph, term.children[1]):
            return False
        shape = graph.fact(term.children[1])
        literal = None if shape is None else literal_of(shape)
        if shape is None or literal is None:
            return False
        begin = len(graph.facts)
        sizes = graph.draft(LITERAL, (terms.literal(literal),), (), terms.fact(shape))
        children = (term.children[0], sizes)
        new = graph.draft(term.head, term.data, children, graph.derived(term.head, term.data, children))
        if not self._is_writable(graph.term(new)):
            graph.forget(begin)
            return False
        graph.keep()
        graph.unite([(eclass, new)])
        return True

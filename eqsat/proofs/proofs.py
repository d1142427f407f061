"""Proofs: which equations lead from one term of a class to another.

The nodes of a proof are the terms of one class, and its edges are equations that join two of them.
An equation may run from right to left. A node as its model spells it and its normal form are one
node of a proof: no rule lies between them.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.frozen import frozen, mutable
from eqsat.proofs.equations import Equation
from eqsat.terms.terms import CONS, Signature, Term

LAW = "law"
"""Stands for a rule where the e-graph's own laws join two terms: either order of two operands, and
sizes written as numbers.
"""

_SIZED = ("Reshape", "Expand")


@frozen
class Edge:
    """An equation, read in one direction, between two terms of a class."""

    source: Term
    target: Term | None
    """None: any other term of the class, for the equation has a matched value there."""
    equation: Equation | None
    """None: a law."""
    forward: bool = True

    @property
    def name(self) -> str:
        """The name of the rule, or `LAW`."""
        return LAW if self.equation is None else self.equation.rule

    def moves(self) -> list[tuple[Term, Term]]:
        """Returns the terms that the equation puts in the place of others, at all of its roots."""
        if self.equation is None:
            return [] if self.target is None else [(self.source, self.target)]
        pairs = [(left, right) for left, right in self.equation.roots if right is not None]
        return pairs if self.forward else [(right, left) for left, right in pairs]

    def needs(self) -> list[Term]:
        """Returns the terms that have to be there before the equation is used."""
        if self.equation is None:
            return []
        own = {term for term, _ in self.equation.roots} if self.forward else {term for _, term in self.equation.roots}
        inner = self.equation.left if self.forward else self.equation.right
        return [term for term in (*own, *inner) if term is not None and term is not self.source and term != self.source]

    def makes(self) -> tuple[Term, ...]:
        """Returns the terms that the equation makes."""
        return () if self.equation is None else self.equation.right if self.forward else self.equation.left


At = Callable[[int, Callable[[str], bool]], Iterable[Equation]]
"""Returns the equations with a root in a class, of the rules whose names are wanted."""


@mutable
class _Edges:
    """The edges of a class: all, or those of laws and of the `known` rules."""

    known: frozenset[str] | None
    ways: dict[Term, list[Edge]] = field(default_factory=dict[Term, list[Edge]])


class Proofs:
    """The equations of one e-graph, by the terms that they join. A class is looked at when a way
    through it is first asked for.
    """

    def __init__(self, encoding: Encoding, egraph: EGraph, at: At, first: Collection[str] = ()) -> None:
        """A way by the rules in `first` is preferred, which may grow: it takes no look at others."""
        self._at = at
        self._first = first
        self._signatures = encoding.terms.signatures
        self._normal = _normal_forms(encoding, egraph)
        self._cells = {term.eclass: term for term in egraph.terms if term.head == CONS}
        self._made: dict[int, list[Term]] = {}
        self._users: dict[int, dict[int, None]] = {}
        for term in egraph.terms:
            self._made.setdefault(term.eclass, []).append(term)
            for child in term.children:
                self._users.setdefault(child, {})[term.eclass] = None
        self._edges: dict[int, _Edges] = {}

    def edges(self, eclass: int) -> Mapping[Term, Sequence[Edge]]:
        """Returns the edges between the terms of a class, by the normal form where they begin."""
        found = self._begun(eclass)
        if found.known is not None:
            known, found.known = found.known, None
            self._add(found, self._looked_up(eclass, lambda name: name not in known))
        return found.ways

    def _begun(self, eclass: int) -> _Edges:
        """Returns the edges of a class, at least those of laws and of the rules that come first."""
        found = self._edges.get(eclass)
        if found is None:
            known = frozenset(self._first)
            found = self._edges[eclass] = _Edges(known)
            self._add(found, _laws(self._made.get(eclass, ()), self._signatures))
            if known:
                self._add(found, self._looked_up(eclass, known.__contains__))
        return found

    def _add(self, found: _Edges, edges: Iterable[Edge]) -> None:
        for edge in edges:
            found.ways.setdefault(self.normal(edge.source), []).append(edge)

    def users(self, eclass: int) -> Iterable[int]:
        """Returns the classes with a term that reads a class."""
        return self._users.get(eclass, ())

    def _looked_up(self, eclass: int, wanted: Callable[[str], bool]) -> Iterator[Edge]:
        for equation in dict.fromkeys(self._at(eclass, wanted)):
            for left, right in equation.roots:
                if left.eclass == eclass:
                    yield Edge(left, right, equation)
                    if right is not None:
                        yield Edge(right, left, equation, forward=False)

    def normal(self, term: Term) -> Term:
        """Returns the normal form of a term, which is the same node."""
        return self._normal.get(term, term)

    def path(self, source: Term, target: Term, dear: Callable[[Edge], float], ends: bool = False, among_all: bool = False) -> list[Edge] | None:
        """Returns the least dear way from one term of a class to another; None if there is none.
        With `ends`, a way to any matched value counts as well: it tells that a node does nothing. With
        `among_all`, no rules come first.
        """
        goal, begin = self.normal(target), self.normal(source)
        if goal == begin:
            return []
        if self._first and not among_all:
            found = self._path(self._begun(source.eclass).ways, begin, goal, dear, ends)
            if found is not None:
                return found
        return self._path(self.edges(source.eclass), begin, goal, dear, ends)

    def _path(self, edges: Mapping[Term, Sequence[Edge]], begin: Term, goal: Term, dear: Callable[[Edge], float], ends: bool) -> list[Edge] | None:
        ticket = itertools.count()
        waiting: list[tuple[float, int, Term | None, Edge | None, Term]] = [(0.0, next(ticket), begin, None, begin)]
        came: dict[Term | None, tuple[Edge | None, Term]] = {}
        while waiting:
            price, _, term, edge, before = heapq.heappop(waiting)
            if term in came:
                continue
            came[term] = edge, before
            if term == goal or (ends and term is None):
                return _traced(came, term)
            if term is None:
                continue
            for way in edges.get(term, ()):
                after = None if way.target is None else self.normal(way.target)
                if after not in came and (not ends or not self._is_idle(way)) and (after is not None or ends):
                    heapq.heappush(waiting, (price + dear(way), next(ticket), after, way, term))
        return None

    def _is_idle(self, way: Edge) -> bool:
        """Tells whether an edge only puts a class around itself, such as `x` into `x * 1`. A way
        back from there to a value of the class would tell nothing.
        """
        eclass = way.source.eclass
        if way.target is None or eclass not in self._reads(way.target) or eclass in self._reads(way.source):
            return False
        return not any(eclass in self._reads(term) for term in way.needs())

    def _reads(self, term: Term) -> set[int]:
        """Returns the classes that a term reads, items of its list included."""
        found, lists = set(term.children), list(term.children)
        while lists:
            cell = self._cells.get(lists.pop())
            if cell is not None:
                found.update(cell.children)
                lists.append(cell.children[1])
        return found


def _traced(came: Mapping[Term | None, tuple[Edge | None, Term]], end: Term | None) -> list[Edge]:
    found: list[Edge] = []
    edge, before = came[end]
    while edge is not None:
        found.append(edge)
        edge, before = came[before]
    return found[::-1]


def _normal_forms(encoding: Encoding, egraph: EGraph) -> dict[Term, Term]:
    """Returns the normal form of each term of the original that is spelled otherwise."""
    there = {(term.head, term.data, term.children): term for term in egraph.terms}

    def here(term: Term) -> Term | None:
        return there.get((term.head, term.data, tuple(egraph.class_of[child] for child in term.children)))

    forms = {form.eclass: form for form in encoding.forms}
    pairs = [(here(entry), here(forms[entry.eclass])) for entry in encoding.entries if entry.eclass in forms]
    return {entry: form for entry, form in pairs if entry is not None and form is not None and entry != form}


def _laws(made: Sequence[Term], signatures: Sequence[Signature]) -> Iterator[Edge]:
    """Yields the edges of laws among the terms of a class: those of one operator that read the same
    values in another order, or the same value and other sizes.
    """
    alike: dict[tuple[int, bool, tuple[int, ...]], dict[Term, None]] = {}
    for term in made:
        if term.head >= 0 and len(term.children) == 2:
            alike.setdefault((term.head, False, tuple(sorted(term.children))), {})[term] = None
            if signatures[term.head].operator.name in _SIZED:
                alike.setdefault((term.head, True, term.children[:1]), {})[term] = None
    for same in alike.values():
        for one, other in itertools.permutations(same, 2):
            yield Edge(one, other, None)

"""Replays: a choice becomes another one, equation by equation.

The state of a replay is a choice: one term for each class. An equation that matches the choice
changes it in a few classes. Every choice without cycles can be written as a model, so a replay
tells after each equation whether one can. Until then the next equation joins the same step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from eqsat.choose.choose import Chooser, own_terms
from eqsat.choose.groups import Group
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.proofs.proofs import LAW, Edge, Proofs
from eqsat.proofs.used import STORED
from eqsat.terms.reading import buildable
from eqsat.terms.terms import FUSED, Term

_DEPTH = 6  # of equations that make what another equation needs
_TRIES = 3  # of one class, which other classes may change again


@dataclass(slots=True)
class Moves:
    """Equations that were used since the last model was written."""

    rules: list[str] = field(default_factory=list[str])
    unknown: bool = False
    """Whether some change has no equation."""


class Replay:
    """The way from the original's terms to the chosen ones, in one group of classes."""

    def __init__(self, encoding: Encoding, egraph: EGraph, chooser: Chooser, proofs: Proofs, group: Group, goal: Mapping[int, Term]) -> None:
        self._roots = group.roots
        self._proofs = proofs
        self._goal = goal
        own = own_terms(encoding, egraph)
        mine = [term for term in own if group.has(term)]
        base = {term.eclass: term for term in reversed(mine)}
        ways = [way for way in chooser.ways if group.has(way) and way.head != FUSED and chooser.may_write(way)]
        self._others = {**buildable(ways, ()), **base, **{way.eclass: way for way in ways if way.head in STORED}, **goal}
        self._now = dict(base)
        # Constants are stored at once: the rules see their values, not what they are computed from.
        self._now |= {eclass: term for eclass, term in goal.items() if term.head in STORED}
        self.moves = Moves()
        if self.terms() is None:
            # Two values of the original are one class, and the first of them reads the second.
            self._now |= {eclass: term for eclass, term in buildable(mine, ()).items() if self._now[eclass].head not in STORED}
        self.begin = self.terms()

    def terms(self) -> dict[int, Term] | None:
        """Returns the terms of the choice that the roots need, children first; None if the choice
        has a cycle, or lacks a term.
        """
        found: dict[int, Term] = {}
        open_: set[int] = set()
        stack = [(root, False) for root in reversed(self._roots)]
        while stack:
            eclass, ready = stack.pop()
            term = self._term(eclass)
            if term is None:
                return None
            if ready:
                open_.discard(eclass)
                found[eclass] = term
            elif eclass not in found:
                if eclass in open_:
                    return None
                open_.add(eclass)
                stack.append((eclass, True))
                for child in term.children:
                    if child in open_:
                        return None
                    if child not in found:
                        stack.append((child, False))
        return found

    def _term(self, eclass: int) -> Term | None:
        return self._now.get(eclass) or self._others.get(eclass)

    def run(self) -> Iterator[None]:
        """Changes the choice into the goal. Yields after each equation; `moves` has those that were
        used since its owner emptied it.
        """
        tried: dict[int, int] = {}
        while (eclass := self._wrong(tried)) is not None:
            tried[eclass] = tried.get(eclass, 0) + 1
            yield from self._reach(eclass, self._goal[eclass], frozenset())
        if self._wrong({}) is not None or self.terms() is None:
            self.moves.unknown = True
        self._now = dict(self._goal)
        yield

    def _wrong(self, tried: Mapping[int, int]) -> int | None:
        """Returns a class whose term is not the chosen one, users first; None if there is none."""
        live = self.terms()
        for eclass in reversed(live if live is not None else self._now):
            if eclass in self._goal and tried.get(eclass, 0) < _TRIES and not self._is(self._goal[eclass]):
                return eclass
        return None

    def _is(self, term: Term) -> bool:
        """Tells whether the choice has a term, in whatever spelling. Constants have no other form."""
        now = self._term(term.eclass)
        if term.head in STORED or now is None:
            return term.head in STORED
        return self._proofs.normal(now) == self._proofs.normal(term) or now.head in STORED

    def _dear(self, edge: Edge) -> float:
        """Returns how little an equation suits the choice as it is."""
        missing = sum(not self._is(term) for term in edge.needs())
        return (0.1 if edge.equation is None else 1.0) + 2.0 * missing + (0.0 if edge.forward else 0.5)

    def _reach(self, eclass: int, target: Term, active: frozenset[int]) -> Iterator[None]:
        """Changes the term of a class by equations."""
        now = self._term(eclass)
        path = None if now is None else self._proofs.path(now, target, self._dear)
        if path is None and now is not None:
            # The node that the class has now may do nothing to a value of the class itself.
            path = self._proofs.path(now, target, self._dear, ends=True)
        for edge in path or ():
            yield from self._prepare(edge, active | {eclass})
            self._apply(edge)
            yield
        if path is None:
            self.moves.unknown = True
        self._now[eclass] = target
        if not path or path[-1].target is None:
            yield

    def _prepare(self, edge: Edge, active: frozenset[int]) -> Iterator[None]:
        """Makes the terms that an equation needs."""
        for term in edge.needs():
            if self._is(term):
                continue
            if term.eclass in active or len(active) > _DEPTH or term.eclass in term.children:
                self._imagine(term)
            else:
                yield from self._reach(term.eclass, term, active)
        for item, heads in () if edge.equation is None else edge.equation.items:
            now = self._term(item)
            self.moves.unknown |= now is None or self._proofs.normal(now).head not in heads

    def _imagine(self, term: Term) -> None:
        """Notes the rules that make a term which no model of this replay can hold, such as the
        product of a value and one.
        """
        now = self._term(term.eclass)
        path = None if now is None else self._proofs.path(now, term, self._dear)
        if path is None and now is not None:
            path = self._proofs.path(term, now, self._dear, ends=True)
        if path is None:
            self.moves.unknown = True
        self.moves.rules += [edge.name for edge in path or ()]

    def _apply(self, edge: Edge) -> None:
        live = self.terms() or self._now
        for source, target in edge.moves():
            self._now[source.eclass] = target
        moved = {source.eclass for source, _ in edge.moves()}
        for term in edge.makes():
            stored = self._goal[term.eclass].head in STORED if term.eclass in self._goal else False
            if term.eclass not in moved and term.eclass not in live and not stored and term.head not in STORED:
                self._now[term.eclass] = term
        if edge.name != LAW:
            self.moves.rules.append(edge.name)

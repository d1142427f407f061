"""Used rules: those by which a choice is made of the terms of its original.

The input is an e-graph, a choice from it, and a search for equations in it. A rule is used if it is on
the way from a node of the original to what is chosen in its place. What other rules rewrote further
counts. Where several ways lead there, one counts: rather one of rules that are used elsewhere, and a
short one. The bodies of nodes are graphs of
their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from eqsat.choose.groups import Group
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.frozen import mutable
from eqsat.proofs.equations import Equation
from eqsat.proofs.proofs import At, Edge, Proofs
from eqsat.terms.terms import ABSENT, CONS, CONSTANT, FOLDED, INPUT, LITERAL, NIL, Term

STORED = (CONSTANT, LITERAL, FOLDED)
"""The terms of constants that are stored, whatever they are computed from."""

_GIVEN = (INPUT, ABSENT, NIL, CONS, *STORED)
"""The terms that no rule has rewritten. A list is a part of its node."""

_DEEP = 6  # of equations that make what another equation needs


@mutable
class Used:
    """The rules that a choice uses."""

    rules: set[str] = field(default_factory=set[str])
    equations: set[Equation] = field(default_factory=set[Equation])
    """Their matches."""
    complete: bool = True
    """Whether all that differs from the original is traced back to it."""


def used_rules(encoding: Encoding, egraph: EGraph, at: At, groups: Sequence[Group], chosen: Sequence[Mapping[int, Term]]) -> Used:
    """Returns the rules that a choice uses: for each group, `chosen` has one term for each class,
    children first. `at` finds the equations.
    """
    found = Used()
    proofs = Proofs(encoding, egraph, at, found.rules)
    own = _own(encoding, egraph, proofs)
    for group, terms in zip(groups, chosen, strict=True):
        _Choice(proofs, {eclass: [term for term in own.get(eclass, ()) if group.has(term)] for eclass in terms}, own, terms, found).trace()
    return found


def _own(encoding: Encoding, egraph: EGraph, proofs: Proofs) -> dict[int, list[Term]]:
    """Returns the original's terms by class, each in its normal form."""
    found: dict[int, dict[Term, None]] = {}
    for entry in encoding.entries:
        if entry.head not in (ABSENT, NIL, CONS):
            eclass = egraph.class_of[entry.eclass]
            term = Term(entry.head, entry.data, tuple([egraph.class_of[child] for child in entry.children]), eclass)
            found.setdefault(eclass, {})[proofs.normal(term)] = None
    return {eclass: list(terms) for eclass, terms in found.items()}


class _Choice:
    """The choice for one group."""

    def __init__(self, proofs: Proofs, begun: Mapping[int, Sequence[Term]], own: Mapping[int, Sequence[Term]], goal: Mapping[int, Term], found: Used) -> None:
        self._proofs = proofs
        self._begun = begun
        self._goal = goal
        self._found = found
        # The terms that are there, of the classes that were looked at: those of the original, and those
        # on the ways that were found. A choice for one group looks at few classes of the graph.
        self._there: dict[int, set[Term]] = {}
        self._own = own
        self._made: list[Term] = []  # by rules, and not yet followed
        self._chosen = {proofs.normal(term) for term in goal.values()}

    def trace(self) -> None:
        """Finds the ways from the original's terms to the chosen ones, users first."""
        late: list[Term] = []
        for eclass, term in reversed(list(self._goal.items())):
            if term.head in STORED:
                continue  # it is evaluated, not rewritten
            if not self._begun[eclass] and term.head not in _GIVEN:
                late.append(term)
            for other in self._begun[eclass]:
                if other.head not in _GIVEN and not self._follow(other, term, 0):
                    self._found.complete &= self._is_made_below(term) and self._follow(other, term, 0)
        self._follow_made()
        # No node of the original is of these classes, so a way to another class has made a term.
        for term in late:
            if not self._is_there(term):
                made = [other for other in self._of(term.eclass) if other.head not in _GIVEN]
                self._found.complete &= any(self._follow(other, term, 0) for other in made) or self._is_made_below(term)
                self._follow_made()

    def _follow_made(self) -> None:
        """Finds the ways from the terms that rules have made to those that are chosen instead."""
        while self._made:
            term = self._made.pop()
            goal = self._goal.get(term.eclass)
            if goal is not None and goal.head not in STORED and term.head not in _GIVEN:
                self._follow(term, goal, 0)

    def _follow(self, source: Term, target: Term, depth: int) -> bool:
        """Notes the rules of a way between terms of a class. Tells whether there is one."""
        ends = self._is_there(target)
        for among_all in (False, True) if depth <= _DEEP else ():
            path = self._proofs.path(source, target, self._dear, ends, among_all)
            used = [self._use(edge, depth) for edge in path or ()]
            if path is not None and all(used):
                return True
        return False

    def _use(self, edge: Edge, depth: int) -> bool:
        """Notes the rule of an equation. Tells whether all that it needs is made by known rules."""
        made = [self._is_there(term) or self._make(term, depth) for term in edge.needs()]
        for term in edge.makes():
            if not self._is_there(term):
                self._made.append(term)
            self._of(term.eclass).add(self._proofs.normal(term))
        if edge.equation is not None:
            self._found.rules.add(edge.name)
            self._found.equations.add(edge.equation)
        return all(made)

    def _is_made_below(self, term: Term) -> bool:
        """Notes a rule that makes a term as the input of another one. Tells whether there is one."""
        normal = self._proofs.normal(term)
        edges = (edge for user in self._proofs.users(term.eclass) for ways in self._proofs.edges(user).values() for edge in ways)
        makers = [edge for edge in edges if edge.forward and any(self._proofs.normal(made) == normal for made in edge.makes())]
        return bool(makers) and self._use(min(makers, key=self._dear), 0)

    def _make(self, term: Term, depth: int) -> bool:
        """Notes the rules that make a term which an equation needs. Tells whether they are known."""
        there = [other for other in self._of(term.eclass) if other.head not in _GIVEN]
        self._of(term.eclass).add(self._proofs.normal(term))  # a circle ends here
        return any(self._follow(other, term, depth + 1) for other in there)

    def _is_there(self, term: Term) -> bool:
        return self._proofs.normal(term) in self._of(term.eclass)

    def _of(self, eclass: int) -> set[Term]:
        """Returns the terms of a class that are there."""
        found = self._there.get(eclass)
        if found is None:
            found = self._there[eclass] = set(self._own.get(eclass, ()))
        return found

    def _dear(self, edge: Edge) -> float:
        """Returns how little an equation suits the terms that are there or chosen."""
        missing = sum(not self._is_there(term) and self._proofs.normal(term) not in self._chosen for term in edge.needs())
        return (0.1 if edge.equation is None else 1.0) + 2.0 * missing + (0.0 if edge.forward else 0.5)

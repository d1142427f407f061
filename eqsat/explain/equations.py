"""Equations: the matches of rules in a saturated e-graph, with the terms of both sides.

egglog keeps no proofs, but its tables hold both sides of each rewrite that it made. So each rule is
matched once more. A match whose right side is there as well, in the same class, is an equation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from eqsat.egraph.plain_matching import Assignments, Index, Mismatch
from eqsat.egraph.tables import EGraph
from eqsat.facts.fact import Fact
from eqsat.greedy.drafts import DraftIndex
from eqsat.greedy.right_side import RightSide
from eqsat.language.compile import Compiled
from eqsat.language.construction import Existing
from eqsat.language.firing import Firing
from eqsat.language.query import MappedAtom, NodeAtom, OutputAtom
from eqsat.terms.terms import PROJECTION, Term, Terms

_SHARE = 4_000  # terms looked at in one place
_BUDGET = 1 << 22  # terms looked at for one rule


@dataclass(frozen=True, slots=True)
class Equation:
    """A match of one direction of a rule whose two sides are in the e-graph."""

    rule: str
    roots: tuple[tuple[Term, Term | None], ...]
    """For each root the term of the left side and that of the right one; None if the right side is
    a value that the left side matched.
    """
    left: tuple[Term, ...]
    """The other terms of the left side."""
    right: tuple[Term, ...]
    """The terms that the right side makes, roots included, children first."""
    items: tuple[tuple[int, frozenset[int]], ...]
    """The items of mapped lists: the class of each, and the heads that the rule admits there."""


class _Absent(Exception):
    """A term of a right side is not in the e-graph."""


class Tables(Index, DraftIndex):
    """The terms of an e-graph, found by their parts as well."""

    def __init__(self, terms: Terms, egraph: EGraph) -> None:
        super().__init__(terms, egraph)
        self.facts = list(egraph.facts)  # matching adds lists of its own
        self.made_now: list[Term] = []
        self._known = {(term.head, term.data, term.children): term for term in egraph.terms}

    def draft(self, head: int, data: tuple[int, ...], children: tuple[int, ...], fact: int) -> int:
        """Returns the class of a term that a right side makes."""
        term = self._known.get((head, data, children))
        if term is None:
            raise _Absent
        self.made_now.append(term)
        return term.eclass

    def fact(self, eclass: int) -> Fact | None:
        """Returns the fact of a value; None for other classes."""
        knowledge = self.terms.facts.get(self.facts[eclass])
        return knowledge if isinstance(knowledge, Fact) else None


def equations(tables: Tables, firing: Firing) -> Iterator[Equation]:
    """Yields the equations of one direction of a rule in an e-graph."""
    compiled = firing.compiled
    search = Assignments(compiled.pattern, tables, _BUDGET, _SHARE)
    for eclass in _places(tables, search):
        for assignment in search.complete(eclass):
            number = firing(*search.handles(assignment))
            if number < 0:
                continue
            tables.made_now = []
            try:
                pairs = RightSide(tables, firing, number, assignment.bindings, lambda literal: None).roots()
            except _Absent:
                continue
            if all(old == new for old, new in pairs):
                yield _equation(search, compiled, assignment.bindings)


def _places(tables: Tables, search: Assignments) -> Iterable[int]:
    """Returns the classes where a match may begin."""
    classes = [term.eclass for term in tables.heads(tables.terms.signature(search.root.signature))]
    if search.root.variable != search.anchor:
        classes = [output.eclass for eclass in classes for output in tables.direct(eclass, PROJECTION) if output.data == (search.output,)]
    return dict.fromkeys(classes)


def _equation(search: Assignments, compiled: Compiled, bindings: Mapping[str, int]) -> Equation:
    tables = search.index
    assert isinstance(tables, Tables)
    found: dict[str, Term] = {}
    items: list[tuple[int, frozenset[int]]] = []
    for atom in compiled.pattern.atoms:
        if isinstance(atom, MappedAtom):
            heads = frozenset(tables.terms.signature(node.signature) for node in atom.nodes)
            items += [(item, heads) for item in tables.items(bindings[atom.variable], len(tables.facts))[0]]
        elif isinstance(atom, (NodeAtom, OutputAtom)):
            found[atom.variable] = _matched(search, atom, bindings)
    roots: list[tuple[Term, Term | None]] = []
    made = tuple(dict.fromkeys(tables.made_now))
    for root, variable in compiled.pattern.roots.items():
        matched = isinstance(compiled.construction.roots[root], Existing)
        new = (term for term in reversed(made) if term.eclass == bindings[variable])
        roots.append((found[variable], None if matched else next(new)))
    starts = {term for term, _ in roots}
    return Equation(compiled.rule.name, tuple(roots), tuple(term for term in found.values() if term not in starts), made, tuple(items))


def _matched(search: Assignments, atom: NodeAtom | OutputAtom, bindings: Mapping[str, int]) -> Term:
    """Returns the term that an atom matched."""
    for term in search.index.made(bindings[atom.variable]):
        if any(not isinstance(one, Mismatch) and one == bindings for one in search.unified(atom, term, dict(bindings))):
            return term
    raise AssertionError(atom.variable)

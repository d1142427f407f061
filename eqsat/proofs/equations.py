"""Equations: the matches of rules in a saturated e-graph, with the terms of both sides.

egglog keeps no proofs, but its tables hold both sides of each rewrite that it made. So each rule is
matched once more. A match whose right side is there as well, in the same class, is an equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from eqsat.egraph.plain_matching import Assignments, Index, Mismatch
from eqsat.egraph.tables import EGraph
from eqsat.facts.fact import Fact
from eqsat.frozen import frozen
from eqsat.greedy.drafts import DraftIndex
from eqsat.greedy.right_side import RightSide
from eqsat.language.compile import Compiled
from eqsat.language.construction import Construction, Existing, Reference, Value
from eqsat.language.firing import Firing
from eqsat.language.query import MappedAtom, NodeAtom, OutputAtom
from eqsat.terms.terms import PROJECTION, Term, Terms

SHARE = 4_000
"""The terms that a thorough search looks at in one place."""
BUDGET = 1 << 22
"""The terms that a thorough search looks at for one rule."""


@frozen
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
        return self.terms.value_fact(self.facts[eclass])


class Matcher:
    """The equations of some rules in one e-graph, class by class. `budget` bounds the terms looked
    at for one rule, `share` those in one place.
    """

    def __init__(self, tables: Tables, firings: Iterable[Firing], budget: int = BUDGET, share: int = SHARE) -> None:
        self._tables = tables
        self._places: dict[int, list[_Place]] = {}  # by the head of the root's node
        for firing in firings:
            pattern = firing.compiled.pattern
            for number, root in enumerate(pattern.roots):
                search = Assignments(pattern, tables, budget, share, root)
                made = firing.compiled.construction.roots[root]
                place = _Place(search, firing, not number, _made(tables.terms, firing.compiled.construction, made))
                self._places.setdefault(tables.terms.signature(search.root.signature), []).append(place)

    @property
    def cut(self) -> bool:
        """Tells whether a bound ended a search."""
        return any(place.search.cut for places in self._places.values() for place in places)

    def at(self, eclass: int, wanted: Callable[[str], bool]) -> Iterator[Equation]:
        """Yields the equations with a root in a class, of the rules whose names are wanted. One with
        several roots there comes as often.
        """
        heads = {(term.head, None): None for term in self._tables.made(eclass) if term.head >= 0}
        outputs = (term for term in self._tables.made(eclass) if term.head == PROJECTION)
        heads |= {(node.head, output.data[0]): None for output in outputs for node in self._tables.made(output.children[0]) if node.head >= 0}
        for head, output in heads:
            for place in self._places.get(head, ()):
                if place.output == output and (place.makes is None or place.makes in heads) and wanted(place.firing.compiled.rule.name):
                    yield from self._matches(place, eclass)

    def all(self) -> Iterator[Equation]:
        """Yields all equations."""
        for head, places in self._places.items():
            for place in filter(lambda place: place.first, places):
                nodes = [term.eclass for term in self._tables.heads(head)]
                yield from (equation for eclass in self._starts(place, nodes) for equation in self._matches(place, eclass))

    def _starts(self, place: _Place, nodes: Sequence[int]) -> Iterable[int]:
        """Returns the classes where a match may begin, given those of the root's nodes."""
        if place.output is None:
            return dict.fromkeys(nodes)
        return dict.fromkeys(output.eclass for node in nodes for output in self._tables.direct(node, PROJECTION) if output.data == (place.output,))

    def _matches(self, place: _Place, eclass: int) -> Iterator[Equation]:
        tables, search, firing = self._tables, place.search, place.firing
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
                yield _equation(search, firing.compiled, assignment.bindings)


class _Place:
    """A root of a direction of a rule, where a search for its matches begins."""

    def __init__(self, search: Assignments, firing: Firing, first: bool, makes: tuple[int, int | None] | None) -> None:
        self.search = search
        self.firing = firing
        self.first = first
        """Whether it is the first root of its rule."""
        self.makes = makes
        """The head of the node that takes the root's place, and which output of it; None if no node
        does. Without such a term in the class there is no equation.
        """
        self.output = None if search.root.variable == search.anchor else search.output
        """Which output of its node the root is; None if it is the node's value itself."""


def _made(terms: Terms, construction: Construction, root: Reference) -> tuple[int, int | None] | None:
    """Returns the head of the node that a reference names, and which output of it it is."""
    return (terms.signature(construction.nodes[root.node].signature), root.output) if isinstance(root, Value) else None


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

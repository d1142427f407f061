"""Plain matching: the matches of a left side at one value of an e-graph, in plain Python.

The search finds the matches that egglog finds, for one value at a time, and also partial ones.
Within the budget it finds every assignment, with operands in either order. The work at one value is
bounded, and no recursion depends on the depth of a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from eqsat.egraph.tables import EGraph
from eqsat.frozen import frozen
from eqsat.language.matching import Refusal, match
from eqsat.language.query import Atom, FactAtom, Fixed, MappedAtom, NodeAtom, OutputAtom, Pattern
from eqsat.terms.terms import ABSENT, CONS, NIL, PROJECTION, Link, Term, Terms


class TermIndex(ABC):
    """The terms in which left sides are looked for, by their own class and by the classes of their
    children. `facts` has the handle of each class's fact.
    """

    terms: Terms
    facts: list[int]

    @abstractmethod
    def made(self, eclass: int) -> Sequence[Term]:
        """The terms of a class."""

    @abstractmethod
    def heads(self, head: int) -> Sequence[Term]:
        """All terms of a signature or kind."""

    @abstractmethod
    def direct(self, eclass: int, head: int) -> Sequence[Term]:
        """The terms of `head` that have a class among their children."""

    @abstractmethod
    def listed(self, items: Sequence[int]) -> int:
        """A class for a list of these values."""

    def users(self, eclass: int, head: int, cells: int) -> Iterator[Term]:
        """The terms of `head` that have a value among their inputs or the first `cells` items of
        their list.

        The list cells on the way are included.
        """
        yield from self.direct(eclass, head)
        for cell in self.direct(eclass, CONS) if cells else ():
            yield cell
            yield from self.users(cell.eclass, head, cells - 1)

    def items(self, eclass: int, count: int) -> tuple[list[int], int]:
        """The first items of a list, at most `count` of them, and the rest of the list."""
        found: list[int] = []
        while len(found) < count and (cell := self.made(eclass)[0]).head == CONS:
            found.append(cell.children[0])
            eclass = cell.children[1]
        return found, eclass

    def is_kind(self, eclass: int, head: int) -> bool:
        """Whether a class is the absent input, or the end of a list."""
        return any(term.head == head for term in self.made(eclass))


class Index(TermIndex):
    """The terms of an e-graph."""

    def __init__(self, terms: Terms, egraph: EGraph) -> None:
        self.terms = terms
        self.facts = egraph.facts
        self._made: dict[int, list[Term]] = {}
        self._users: dict[tuple[int, int], list[Term]] = {}  # by class and head
        self._heads: dict[int, list[Term]] = {}
        for term in egraph.terms:
            self._made.setdefault(term.eclass, []).append(term)
            self._heads.setdefault(term.head, []).append(term)
            for child in dict.fromkeys(term.children):
                self._users.setdefault((child, term.head), []).append(term)

    def made(self, eclass: int) -> Sequence[Term]:
        return self._made.get(eclass, ())

    def heads(self, head: int) -> Sequence[Term]:
        return self._heads.get(head, ())

    def direct(self, eclass: int, head: int) -> Sequence[Term]:
        return self._users.get((eclass, head), ())

    def listed(self, items: Sequence[int]) -> int:
        """A new class for a list of these values, which has a fact but no term."""
        tail = self.terms.absent
        for item in reversed(items):
            tail = self.terms.fact(Link(self.facts[item], tail))
        self.facts.append(tail)
        return len(self.facts) - 1


@frozen
class Mismatch:
    """A term that does not match an atom: the column that differs (attributes first, then inputs,
    then the list).
    """

    term: Term
    column: int


@frozen
class Assignment:
    """The values of the variables of a left side: classes, and handles of attributes.

    Nothing matches the atoms in `missed`.
    """

    bindings: dict[str, int]
    matched: int = 0  # nodes of the left side
    missed: tuple[Atom, ...] = ()


class Assignments:
    """The assignments of one left side. `budget` bounds the terms looked at in all, `share` those
    at one value. The search begins at the first root, or at another `root` of the left side.
    """

    def __init__(self, pattern: Pattern, index: TermIndex, budget: int, share: int, root: str | None = None) -> None:
        self.pattern = pattern
        self.index = index
        self.cut = False  # whether a bound ended a search
        self._budget = budget
        self._share = share
        self._left = 0
        self.anchor = next(iter(pattern.roots.values())) if root is None else pattern.roots[root]
        self._plan = _plan(_structure(pattern.atoms), self.anchor)
        self.root, self.output = _producer(pattern, self.anchor)
        self._heads: dict[int, int] = {}  # by the identity of an atom of the pattern

    def producer(self, variable: str) -> NodeAtom:
        """The node of the left side that makes a value."""
        return _producer(self.pattern, variable)[0]

    def via(self, atom: Atom) -> str | None:
        """The variable through which an atom is reached."""
        return next(via for other, via in self._plan if other is atom)

    def complete(self, eclass: int) -> Iterator[Assignment]:
        """Every assignment of the whole left side whose root, where the search begins, is this value."""
        return self._search(eclass, lenient=False)

    def furthest(self, eclass: int) -> Assignment:
        """The first assignment with the most nodes; atoms that nothing matches are skipped."""
        return max(self._search(eclass, lenient=True), key=lambda found: found.matched, default=Assignment({self.anchor: eclass}))

    def handles(self, assignment: Assignment) -> tuple[int, ...]:
        """The columns that the steps of the left side read."""
        return self._columns(self.pattern.sources, assignment.bindings)

    def _columns(self, sources: Sequence[str], bindings: dict[str, int]) -> tuple[int, ...]:
        classes = {f"f_{variable}": eclass for variable, eclass in bindings.items()}
        return tuple(self.index.facts[classes[source]] if source in classes else bindings[source] for source in sources)

    def _search(self, eclass: int, lenient: bool) -> Iterator[Assignment]:
        self._left = min(self._share, self._budget)
        return self._walk(self._plan, Assignment({self.anchor: eclass}), lenient)

    def _walk(self, plan: list[tuple[Atom, str | None]], begin: Assignment, lenient: bool) -> Iterator[Assignment]:
        stack = [iter([begin])]
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
            elif len(stack) > len(plan):
                yield found
            else:
                atom, via = plan[len(stack) - 1]
                stack.append(self._extended(atom, via, found, lenient))

    def _extended(self, atom: Atom, via: str | None, assignment: Assignment, lenient: bool) -> Iterator[Assignment]:
        """The assignments with one more atom."""
        matched = 0
        if isinstance(atom, MappedAtom):
            for found in self._mapped(atom, assignment):
                matched += 1
                yield found
        elif via is None or via in assignment.bindings:
            for term in self.candidates(atom, via, assignment):
                if not self._spend():
                    break
                for bindings in self.unified(atom, term, assignment.bindings):
                    if not isinstance(bindings, Mismatch):
                        matched += 1
                        yield replace(assignment, bindings=bindings, matched=assignment.matched + isinstance(atom, NodeAtom))
        if lenient and not matched:
            yield replace(assignment, missed=(*assignment.missed, atom))

    def _mapped(self, atom: MappedAtom, assignment: Assignment) -> Iterator[Assignment]:
        """The assignment extended by the lists that the items form. If several terms match an item,
        the first that fits is taken.
        """
        items, _ = self.index.items(assignment.bindings[atom.variable], len(self.index.facts)) if atom.variable in assignment.bindings else ([], 0)
        for first in self._item(atom, items[0], assignment.bindings) if items else ():
            common = {name: first[name] for name in (*atom.attributes, *atom.classes)}
            found = [first, *(next(self._item(atom, item, {**assignment.bindings, **common}), None) for item in items[1:])]
            whole = [bindings for bindings in found if bindings is not None]
            if len(whole) == len(items):
                lists = {listed: self.index.listed([bindings[part] for bindings in whole]) for part, listed in atom.parts}
                yield replace(assignment, bindings={**assignment.bindings, **common, **lists}, matched=assignment.matched + len(atom.nodes))

    def _item(self, atom: MappedAtom, item: int, bindings: dict[str, int]) -> Iterator[dict[str, int]]:
        """The bindings under which a value is an item of a list that the left side admits."""
        for found in self._walk(_plan(_structure(atom.atoms), atom.item), Assignment({**bindings, atom.item: item}), lenient=False):
            if not isinstance(match(atom.steps, self.index.terms, self._columns(atom.sources, found.bindings)), Refusal):
                yield found.bindings

    def unlike(self, atom: MappedAtom, assignment: Assignment) -> int | None:
        """The first item of a list that the left side does not admit by itself; None if there is
        none.
        """
        items, _ = self.index.items(assignment.bindings[atom.variable], len(self.index.facts))
        return next((item for item in items if next(self._item(atom, item, assignment.bindings), None) is None), None)

    def _spend(self) -> bool:
        self._left -= 1
        self._budget -= 1
        self.cut |= self._left < 0
        return self._left >= 0

    def candidates(self, atom: Atom, via: str | None, assignment: Assignment) -> Iterator[Term]:
        """A superset of the terms that can match the atom, given the variable it is reached
        through.
        """
        if via is None:
            return iter(self.index.heads(self._head(atom)))
        if via == atom.variable:
            return iter(self.index.made(assignment.bindings[via]))
        return self.index.users(assignment.bindings[via], self._head(atom), len(atom.items) if isinstance(atom, NodeAtom) else 0)

    def _head(self, atom: Atom) -> int:
        if not isinstance(atom, NodeAtom):
            return PROJECTION
        head = self._heads.get(id(atom))
        if head is None:
            head = self._heads[id(atom)] = self.index.terms.signature(atom.signature)
        return head

    def unified(self, atom: Atom, term: Term, bindings: dict[str, int]) -> Iterator[dict[str, int] | Mismatch]:
        """The bindings under which a term matches an atom, for each order of its operands, or the
        column that differs.

        There are none for a term of another form.
        """
        if term.head != self._head(atom):
            return
        if isinstance(atom, OutputAtom):
            yield self._unify(term, [(atom.variable, term.eclass), (atom.index, term.data[0]), (atom.node, term.children[0])], bindings)
            return
        assert isinstance(atom, NodeAtom)
        own: list[tuple[_Wanted, int]] = [(atom.variable, term.eclass), *zip(atom.attributes, term.data, strict=True)]
        for inputs, fits in self._inputs(atom, term):
            found = self._unify(term, [*own, *inputs], bindings)
            yield found if fits or isinstance(found, Mismatch) else Mismatch(term, len(own) + len(inputs) - 1)

    def _inputs(self, atom: NodeAtom, term: Term) -> Iterator[tuple[list[tuple[_Wanted, int]], bool]]:
        """The wanted and the actual columns of a term, for each order, and whether the list is long
        enough.
        """
        listed = atom.inputs if atom.view and atom.signature.rest else atom.items
        operands, fits = list(term.children), True
        if atom.signature.rest:
            items, tail = self.index.items(operands.pop(), len(listed))
            operands += items
            fits = len(items) == len(listed) and (atom.rest is not None or self.index.is_kind(tail, NIL))
            operands += [tail] if atom.rest is not None else []
        wanted = [*atom.inputs, *atom.items, *([] if atom.rest is None else [atom.rest])]
        orders = [operands, operands[::-1]] if atom.view and operands != operands[::-1] else [operands]
        for order in orders:
            yield list(zip(wanted, order, strict=False)), fits

    def _unify(self, term: Term, pairs: list[tuple[_Wanted, int]], bindings: dict[str, int]) -> dict[str, int] | Mismatch:
        found = dict(bindings)
        for column, (wanted, value) in enumerate(pairs):
            if not (found.setdefault(wanted, value) == value if isinstance(wanted, str) else self._holds(wanted, value)):
                return Mismatch(term, column - 1)
        return found

    def _holds(self, wanted: int | Fixed | None, value: int) -> bool:
        if isinstance(wanted, Fixed):
            return self.index.terms.attribute(wanted.value) == value
        return self.index.is_kind(value, ABSENT) if wanted is None else wanted == value


# The wanted column of a term: the value of a variable, an output's number, an attribute's value, or
# (None) the absent input.
_Wanted: TypeAlias = str | int | Fixed | None


def root_of(pattern: Pattern) -> tuple[NodeAtom, int]:
    """The node at the first root of a left side, and which of its outputs the root is."""
    return _producer(pattern, next(iter(pattern.roots.values())))


def _producer(pattern: Pattern, variable: str) -> tuple[NodeAtom, int]:
    output = next((atom for atom in pattern.atoms if isinstance(atom, OutputAtom) and atom.variable == variable), None)
    made = variable if output is None else output.node
    return next(atom for atom in pattern.atoms if isinstance(atom, NodeAtom) and atom.variable == made), 0 if output is None else output.index


def _structure(atoms: Sequence[Atom]) -> list[Atom]:
    return [atom for atom in atoms if not isinstance(atom, FactAtom)]


def _plan(atoms: list[Atom], anchor: str) -> list[tuple[Atom, str | None]]:
    """The atoms, each with the variable through which it is reached; None if there is no such
    variable.

    Makers of a value come first, then users of a value.
    """
    bound = {anchor}
    plan: list[tuple[Atom, str | None]] = []
    while atoms:
        ways = [(atom, next((variable for variable in _variables(atom) if variable in bound), None)) for atom in atoms]
        down = (way for way in ways if way[1] == _variables(way[0])[0])
        atom, via = next(down, None) or next((way for way in ways if way[1] is not None), ways[0])
        plan.append((atom, via))
        bound.update(_variables(atom))
        atoms = [other for other in atoms if other is not atom]
    return plan


def _variables(atom: Atom) -> list[str]:
    """The classes of an atom, its own first."""
    if isinstance(atom, NodeAtom):
        return [atom.variable, *(variable for variable in (*atom.inputs, *atom.items, atom.rest) if variable is not None)]
    if isinstance(atom, MappedAtom):
        return [atom.variable, *atom.lists, *atom.classes]
    return [atom.variable, atom.node] if isinstance(atom, OutputAtom) else [atom.variable]

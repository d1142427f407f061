"""The term graph: a graph in which each class has one term, so a rewrite replaces and keeps nothing.

Equal terms are one class, and the graph has no cycles. Facts follow the same laws as in saturation:
a sharper fact goes on to all users. A class is alive while an output needs it. A constant is a leaf:
it will be folded, so it keeps no other class alive. Dead classes stay, but no rule sees them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from eqsat.egraph.encode import Encoding
from eqsat.facts.fact import Fact, byte_size
from eqsat.greedy.drafts import DraftIndex
from eqsat.terms.terms import CONS, PROJECTION, Term

REACH = 16
"""The most nodes between a change and the root of a match for which the change is remembered."""

Key = tuple[int, tuple[int, ...], tuple[int, ...]]


class TermGraph(DraftIndex):
    """The terms of an encoding, and those that rules put in their place."""

    def __init__(self, encoding: Encoding, fold_limit: int) -> None:
        """A constant of more than `fold_limit` bytes is not folded."""
        self.terms = encoding.terms
        self.facts = list(encoding.facts)
        self.refs: list[int] = []  # by class, its live users, and how many outputs it is
        self.level: list[int] = []  # by class, more than the level of each child
        self.clock = 0
        self.due: dict[int, None] = {}
        """Classes to which laws may apply: they came to life, or their fact or their term changed."""
        self._derivation = encoding.derivation
        self._fold_limit = fold_limit
        self._term: list[Term | None] = []
        self._parent: list[int] = []
        self._users: list[dict[int, dict[int, None]]] = []  # by class and head
        self._known: dict[Key, int] = {}
        self._leaf: list[bool] = []
        self._live: dict[int, dict[int, None]] = {}  # by head
        self._stamps: list[list[int]] = []
        self._drafted: dict[Key, int] = {}
        self._begin(encoding)

    def _begin(self, encoding: Encoding) -> None:
        self._extend()
        first = list(range(len(self.facts)))
        for reference, other in encoding.same:
            first[reference] = first[other]
        found: dict[int, Term] = {}
        for entry in encoding.entries:
            found.setdefault(first[entry.eclass], entry)
        # Rules match a node in its normal form. The form may have inputs that are bound later.
        found |= {first[form.eclass]: form for form in encoding.forms}
        for eclass in _children_first(found, first):
            term = found[eclass]
            self._enter(Term(term.head, term.data, tuple(self.find(first[child]) for child in term.children), eclass))
        self.unite(enumerate(first))
        for name in encoding.graph.outputs:
            self._acquire(self.find(encoding.values[name]))

    def _extend(self) -> None:
        """Gives each class that has a fact its place in the other columns."""
        begin, count = len(self._parent), len(self.facts) - len(self._parent)
        self._parent += range(begin, begin + count)
        self._term += [None] * (len(self.facts) - len(self._term))
        self.level += [0] * (len(self.facts) - len(self.level))
        self.refs += [0] * count
        self._leaf += [False] * count
        self._users += [{} for _ in range(count)]
        self._stamps += [[self.clock] * (REACH + 1) for _ in range(count)]

    def _enter(self, term: Term) -> None:
        """Gives a class its term. Its children have theirs already."""
        self._term[term.eclass] = term
        self.level[term.eclass] = 1 + max((self.level[child] for child in term.children), default=0)
        other = self._known.setdefault((term.head, term.data, term.children), term.eclass)
        for child in term.children:
            self._users[child].setdefault(term.head, {})[term.eclass] = None
        if other != term.eclass:
            self.unite([(term.eclass, other)])

    # Reading

    def find(self, eclass: int) -> int:
        """Returns the class that stands for a class now."""
        while self._parent[eclass] != eclass:
            eclass = self._parent[eclass]
        return eclass

    def term(self, eclass: int) -> Term:
        """Returns the term of a class."""
        found = self._term[eclass]
        assert found is not None
        return found

    def made(self, eclass: int) -> Sequence[Term]:
        found = self._term[eclass]
        return () if found is None else (found,)

    def heads(self, head: int) -> Sequence[Term]:
        return [self.term(eclass) for eclass in self._live.get(head, ())]

    def direct(self, eclass: int, head: int) -> Sequence[Term]:
        users = self._users[eclass].get(head, ()) if eclass < len(self._users) else ()
        return [self.term(user) for user in users if self.refs[user]]

    def is_alive(self, eclass: int) -> bool:
        """Tells whether an output needs a class, which stands for itself."""
        return self._parent[eclass] == eclass and self.refs[eclass] > 0

    def operators(self) -> frozenset[str]:
        """Returns the names of the operators of all live terms."""
        return frozenset(self.terms.signatures[head].operator.name for head, live in self._live.items() if head >= 0 and live)

    def live(self) -> Iterator[int]:
        """Yields the live classes."""
        for classes in self._live.values():
            yield from classes

    def users_of(self, eclass: int) -> Iterator[int]:
        """Yields the live classes whose terms have a class among their children."""
        for users in self._users[eclass].values() if eclass < len(self._users) else ():
            yield from (user for user in users if self.refs[user])

    def changed(self, eclass: int, reach: int) -> int:
        """Returns when anything below a class last changed, at most `reach` nodes away."""
        return self._stamps[eclass][reach] if reach <= REACH else self.clock

    def fact(self, eclass: int) -> Fact | None:
        """Returns the fact of a value; None for other classes."""
        return self.terms.value_fact(self.facts[eclass])

    def is_leaf(self, eclass: int) -> bool:
        """Tells whether a class will be a stored constant, so that nothing below it is needed."""
        if eclass < len(self.refs) and self.refs[eclass]:
            return self._leaf[eclass]
        return self._folds(eclass)

    def _folds(self, eclass: int) -> bool:
        """Tells whether a constant can be evaluated and stored: not if a size of it has a name."""
        fact = self.fact(eclass)
        size = None if fact is None or not fact.const or fact.other is not None else byte_size(fact)
        return size is not None and size <= self._fold_limit

    def reaches(self, starts: Iterable[int], ends: Collection[int]) -> bool:
        """Tells whether any of some classes is another one, or depends on it."""
        floor = min(self.level[end] for end in ends)
        seen: set[int] = set()
        waiting = list(starts)
        while waiting:
            current = waiting.pop()
            if current in ends:
                return True
            if current not in seen and self.level[current] > floor:
                seen.add(current)
                waiting += self.term(current).children
        return False

    # Drafts: terms that are not in the graph yet.

    def listed(self, items: Sequence[int]) -> int:
        tail = 1
        for item in reversed(items):
            tail = self.draft(CONS, (), (item, tail), self._derivation.link(self.facts[item], self.facts[tail]))
        return tail

    def draft(self, head: int, data: tuple[int, ...], children: tuple[int, ...], fact: int) -> int:
        """Returns the class of a term. If the graph lacks the term, the class is a draft."""
        key = (head, data, children)
        known = self._known.get(key, self._drafted.get(key))
        if known is None:
            known = self._drafted[key] = len(self.facts)
            self.facts.append(fact)
            self._term.append(Term(head, data, children, known))
            self.level.append(1 + max((self.level[child] for child in children), default=0))
        return known

    def derived(self, head: int, data: tuple[int, ...], children: tuple[int, ...]) -> int:
        """Returns the handle of the fact of a node that the law derives."""
        return self._derivation.term(head, *data, *(self.facts[child] for child in children))

    def forget(self, begin: int) -> None:
        """Forgets the drafts from a class on."""
        for term in self._term[begin:]:
            assert term is not None
            del self._drafted[term.head, term.data, term.children]
        del self.facts[begin:], self._term[begin:], self.level[begin:]

    def keep(self) -> None:
        """Makes all drafts terms of the graph."""
        drafts = list(self._drafted.items())
        self._drafted.clear()
        self._extend()
        for (head, data, children), eclass in drafts:
            self._enter(Term(head, data, children, eclass))

    # Changes

    def unite(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Puts the second class of each pair in the place of the first, which must not be below the
        second. Raises `Contradiction` if two facts cannot both be true.
        """
        waiting, sharper = list(reversed(list(pairs))), dict[int, None]()
        while waiting or sharper:
            if waiting:
                old, new = map(self.find, waiting.pop())
                if old != new:
                    self._sharpen(new, self.facts[old], sharper)
                    waiting += self._replace(old, new)
                continue
            eclass = next(iter(sharper))
            del sharper[eclass]
            for users in self._users[eclass].values():
                for user in users:
                    self._sharpen(user, self._law(self.term(user)), sharper)

    def _law(self, term: Term) -> int:
        """Returns the fact of a term that its children's facts imply."""
        facts = [self.facts[child] for child in term.children]
        if term.head == CONS:
            return self._derivation.link(facts[0], facts[1])
        if term.head == PROJECTION:
            return self._derivation.project(term.data[0], facts[0])
        if self.terms.signatures[term.head].lawless:
            return self.facts[term.eclass]
        return self._derivation.term(term.head, *term.data, *facts)

    def _sharpen(self, eclass: int, fact: int, sharper: dict[int, None]) -> None:
        merged = self._derivation.merge(self.facts[eclass], fact)
        if merged == self.facts[eclass]:
            return
        self.facts[eclass] = merged
        sharper[eclass] = None
        self._touch(eclass)
        if self.refs[eclass] and not self._leaf[eclass]:
            self.due[eclass] = None
            if self._folds(eclass):
                self._leaf[eclass] = True
                self._release_children(eclass)

    def _replace(self, old: int, new: int) -> list[tuple[int, int]]:
        """Puts one class in the place of another. Returns pairs of classes that became equal."""
        self._parent[old] = new
        both = sum(self.refs[user] > 0 and not self._leaf[user] for user in self._common(old, new))
        needs = self.refs[old]
        if needs:
            self.refs[new] += needs - both
            if self.refs[new] == needs - both:
                self._enliven(new)
        self._withdraw(old)
        found: list[tuple[int, int]] = []
        for head, users in self._users[old].items():
            for user in users:
                if self._parent[user] == user:
                    found += self._rekeyed(user, head, old, new)
        if self._users[old]:
            self._users[old] = {}
            self._touch(new)
        return found

    def _common(self, old: int, new: int) -> Iterator[int]:
        for head, users in self._users[old].items():
            yield from users.keys() & self._users[new].get(head, {}).keys()

    def _withdraw(self, eclass: int) -> None:
        """Takes the term of a class out of the graph."""
        term = self._term[eclass]
        if term is None:
            return
        key = (term.head, term.data, term.children)
        if self._known.get(key) == eclass:
            del self._known[key]
            twin = self.find(eclass)
            other = self._term[twin]
            if other is not None and (other.head, other.data, other.children) == key:
                self._known[key] = twin
        if self.refs[eclass]:
            del self._live[term.head][eclass]
            self.refs[eclass] = 0
            if not self._leaf[eclass]:
                self._release_children(eclass)
        for child in dict.fromkeys(term.children):
            del self._users[child][term.head][eclass]

    def _rekeyed(self, user: int, head: int, old: int, new: int) -> list[tuple[int, int]]:
        """Gives a term another child. Returns the pair of classes that this makes equal, if any."""
        term = self.term(user)
        key = (head, term.data, term.children)
        if self._known.get(key) == user:
            del self._known[key]
        children = tuple(new if child == old else child for child in term.children)
        self._term[user] = Term(head, term.data, children, user)
        self._users[new].setdefault(head, {})[user] = None
        self._raise(user)
        other = self._known.setdefault((head, term.data, children), user)
        if self.refs[user]:
            self.due[user] = None
        if other == user:
            return []
        # The older class is one of the original's more often, and has its names.
        return [(max(user, other), min(user, other))]

    def _raise(self, eclass: int) -> None:
        """Lifts a class and its users above their children."""
        waiting = [eclass]
        while waiting:
            current = waiting.pop()
            level = 1 + max((self.level[child] for child in self.term(current).children), default=0)
            if level > self.level[current]:
                self.level[current] = level
                waiting += [user for users in self._users[current].values() for user in users]

    def _touch(self, eclass: int) -> None:
        """Notes the time of a change for all classes from which a match may reach it."""
        self.clock += 1
        front = {eclass: None}
        for distance in range(REACH + 1):
            above: dict[int, None] = {}
            waiting = list(front)
            while waiting:
                current = waiting.pop()
                stamps = self._stamps[current]
                if stamps[distance] == self.clock:
                    continue
                stamps[distance:] = [self.clock] * (REACH + 1 - distance)
                for head, users in self._users[current].items():
                    if head in (CONS, PROJECTION):
                        waiting += users
                    else:
                        above.update(users)
            front = above
            if not front:
                break

    # Life

    def _acquire(self, eclass: int) -> None:
        self.refs[eclass] += 1
        if self.refs[eclass] == 1:
            self._enliven(eclass)

    def _enliven(self, eclass: int) -> None:
        """Takes a class to the living, which now has users, and the classes that it needs."""
        self.clock += 1
        waiting = [eclass]
        while waiting:
            current = waiting.pop()
            term = self.term(current)
            self._live.setdefault(term.head, {})[current] = None
            self._stamps[current] = [self.clock] * (REACH + 1)
            self.due[current] = None
            self._leaf[current] = self._folds(current)
            for child in () if self._leaf[current] else dict.fromkeys(term.children):
                self.refs[child] += 1
                if self.refs[child] == 1:
                    waiting.append(child)

    def _release_children(self, eclass: int) -> None:
        waiting = [eclass]
        while waiting:
            for child in dict.fromkeys(self.term(waiting.pop()).children):
                self.refs[child] -= 1
                if not self.refs[child]:
                    del self._live[self.term(child).head][child]
                    if not self._leaf[child]:
                        waiting.append(child)


def _children_first(found: dict[int, Term], first: Sequence[int]) -> Iterator[int]:
    """Yields the classes of terms, each after those of its children."""
    done: set[int] = set()
    for eclass in found:
        waiting = [(eclass, False)]
        while waiting:
            current, ready = waiting.pop()
            if ready:
                yield current
            elif current not in done:
                done.add(current)
                waiting.append((current, True))
                waiting += [(first[child], False) for child in found[current].children if first[child] not in done]

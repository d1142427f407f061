"""Candidates of a rule that may grow the graph: what its searches found comes in, what is to be applied in this round goes out.

Searching, picking and applying are three steps. A search writes down each match, with its classes, in the e-graph; nothing is made of it yet. A pick
takes as many as the budget of a round allows, in turns from all regions of the model, so that the first layer does not eat the budget of the last; the
others wait for a later round. What has two roots is picked in pairs: of all that have the same shared classes each is brought together with one other,
and what came of them again in the next round, so that n of them take n firings and not n * n.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from eqsat.language.firing import Firing
from eqsat.language.halves import Half, halves, shared, shared_attributes

REGIONS = 64
"""Of a model, each with its share of a budget."""

PARTNERS = 12
"""So many others are tried with each one of a pair, at most: where sizes or types differ from one to the next, groups are not searched to the end."""


@dataclass(frozen=True, slots=True)
class Row:
    """One match of a half, as a search wrote it down: its number, and the class of each of the half's variables."""

    number: int
    classes: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class _Member:
    """A match of a half as it is now: where its root stands, and all numbers under which it was found."""

    classes: tuple[Hashable, ...]
    root: Hashable
    place: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    place: int
    members: tuple[_Member, ...]
    firing: int


class Candidates:
    """What is known of the candidates of one direction of a rule, from round to round."""

    def __init__(self, firing: Firing) -> None:
        self.halves: tuple[Half, ...] = halves(firing.compiled.pattern)
        self.made = max(1, len(firing.compiled.construction.nodes))  # e-nodes, by one firing
        self._firing = firing
        self._found: list[tuple[int, ...]] = []  # by number, the sources that the half read
        self._taken: set[int] = set()
        # By half, where its variables and its sources stand that the other half has as well. Facts are those of the variables.
        both = shared_attributes(self.halves)
        self._common = [
            ([half.variables.index(variable) for variable in shared(self.halves)], [half.sources.index(source) for source in both]) for half in self.halves
        ]
        self._waiting: list[_Candidate] = []
        self._numbers: dict[tuple[Hashable, ...], tuple[int, ...]] = {}  # by the classes of a match, all numbers under which it was found

    @property
    def waiting(self) -> int:
        """The candidates that were seen last, and not taken."""
        return len(self._waiting)

    def note(self, *handles: int) -> int:
        """The number of a match of a half that reads these sources, or -1 where it is the whole rule and that does not fire."""
        if len(self.halves) == 1 and self._firing(*handles) < 0:
            return -1
        self._found.append(handles)
        return len(self._found) - 1

    def look(self, tables: list[list[Row]], place: Mapping[Hashable, int]) -> None:
        """Finds what could be applied now. `tables` has the rows of each half; `place` says where in the model a class stands."""
        members = [self._members(half, rows, place) for half, rows in zip(self.halves, tables, strict=True)]
        self._waiting = self._alone(members[0]) if len(members) == 1 else self._pairs(*members)
        # Where both halves look alike, what is one's member is the other's too.
        self._numbers = {}
        for member in (member for table in members for member in table):
            self._numbers[member.classes] = self._numbers.get(member.classes, ()) + member.numbers

    def take(self, size: int, budget: int) -> list[tuple[int, ...]]:
        """The numbers of the halves that are to be applied, at most `budget` times, each with the number of the firing behind them.

        They come in turns from all regions of a model of `size` values.
        """
        picked = _in_turns(self._waiting, size, budget)
        self._taken.update(number for candidate in picked for member in candidate.members for number in self._numbers[member.classes])
        chosen = {id(candidate) for candidate in picked}
        self._waiting = [candidate for candidate in self._waiting if id(candidate) not in chosen]
        return [(*(member.numbers[0] for member in candidate.members), candidate.firing) for candidate in picked]

    def _members(self, half: Half, rows: list[Row], place: Mapping[Hashable, int]) -> list[_Member]:
        """The matches that were not taken, in the order of the model."""
        numbers: dict[tuple[Hashable, ...], list[int]] = {}
        for row in sorted(rows, key=lambda row: row.number):
            numbers.setdefault(row.classes, []).append(row.number)
        root = half.variables.index(half.root)
        found = [
            _Member(classes, classes[root], place.get(classes[root], max((place.get(c, 0) for c in classes), default=0)), tuple(own))
            for classes, own in numbers.items()
            if self._taken.isdisjoint(own)
        ]
        return sorted(found, key=lambda member: (member.place, member.numbers))

    def _alone(self, members: list[_Member]) -> list[_Candidate]:
        return [_Candidate(member.place, (member,), self._firing(*self._found[member.numbers[0]])) for member in members]

    def _pairs(self, firsts: list[_Member], seconds: list[_Member]) -> list[_Candidate]:
        """Disjoint pairs that fire, among those that have the same shared classes."""
        groups: dict[tuple[Hashable, ...], deque[_Member]] = {}
        for member in seconds:
            groups.setdefault(self._shared(1, member), deque()).append(member)
        used: set[Hashable] = set()
        found: list[_Candidate] = []
        for first in firsts:
            if first.root in used:
                continue
            group = groups.get(self._shared(0, first), deque())
            tried = 0
            for second in group:
                if second.root in used or second.root == first.root:
                    continue
                tried += 1
                firing = self._together(first, second)
                if firing >= 0:
                    used |= {first.root, second.root}
                    found.append(_Candidate(first.place, (first, second), firing))
                    break
                if tried == PARTNERS:
                    break
            # What is used stays so: a group that is long is not walked through from its beginning each time.
            while group and group[0].root in used:
                group.popleft()
        return found

    def _shared(self, half: int, member: _Member) -> tuple[Hashable, ...]:
        """What a match of a half must have in common with one of the other: the classes and the attributes that both name."""
        classes, attributes = self._common[half]
        found = self._found[member.numbers[0]]
        return (*(member.classes[position] for position in classes), *(found[position] for position in attributes))

    def _together(self, first: _Member, second: _Member) -> int:
        handles = [0] * len(self._firing.compiled.pattern.sources)
        for half, member in zip(self.halves, (first, second), strict=True):
            for source, handle in zip(half.sources, self._found[member.numbers[0]], strict=True):
                handles[source] = handle
        return self._firing(*handles)


def _in_turns(found: list[_Candidate], size: int, budget: int) -> list[_Candidate]:
    """So many candidates, one of each region after the other, those of a region in the order of the model."""
    regions: dict[int, list[_Candidate]] = {}
    for candidate in found:
        regions.setdefault(candidate.place * REGIONS // max(size, 1), []).append(candidate)
    turns = sorted((turn, region) for region, row in regions.items() for turn in range(len(row)))
    return [regions[region][turn] for turn, region in turns[:budget]]

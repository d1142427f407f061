"""Candidates: the matches of a growing rule that wait to be applied.

The input is the matches that searches found; the output is the matches to apply in this round. A
search records each match with its classes in the e-graph and applies nothing. A pick takes as many
matches as the budget of the round allows. It takes turns among the regions of the model, so that
the first layer does not use up the budget of the last one. The other matches wait for a later
round.

A rule with two roots is picked in pairs of half-matches. Two half-matches join on the variables
they share. Each half-match joins with one partner in a round, and the results join in the next
round, so n half-matches take n firings rather than n * n.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping

from eqsat.frozen import frozen
from eqsat.language.firing import Firing
from eqsat.language.halves import Half, halves, shared, shared_attributes

REGIONS = 64
"""The number of regions of a model; each has its share of a budget."""

PARTNERS = 12
"""The most partners to try for one half-match.

The bound matters where the sizes or types of all partners differ.
"""


@frozen
class Row:
    """A recorded match of a half: its number, and the class of each variable of the half."""

    number: int
    classes: tuple[Hashable, ...]


@frozen
class _Member:
    """A half-match in the present e-graph: its root's place, and all numbers that recorded it."""

    classes: tuple[Hashable, ...]
    root: Hashable
    place: int
    numbers: tuple[int, ...]


@frozen
class _Candidate:
    place: int
    members: tuple[_Member, ...]
    firing: int


class Candidates:
    """The candidates of one direction of a rule, kept from round to round."""

    def __init__(self, firing: Firing) -> None:
        self.halves: tuple[Half, ...] = halves(firing.compiled.pattern)
        self.made = max(1, firing.compiled.made)  # e-nodes that one firing makes
        self._firing = firing
        # By the number of a match, the sources that the half read.
        self._found: list[tuple[int, ...]] = []
        self._taken: set[int] = set()
        # For each half, the positions of the variables and of the sources that the other half has
        # too. A source that is a fact follows from its variable and is left out.
        both = shared_attributes(self.halves)
        self._common = [
            ([half.variables.index(variable) for variable in shared(self.halves)], [half.sources.index(source) for source in both]) for half in self.halves
        ]
        self._waiting: list[_Candidate] = []
        # By the classes of a match, all numbers that recorded it.
        self._numbers: dict[tuple[Hashable, ...], tuple[int, ...]] = {}

    @property
    def waiting(self) -> int:
        """The number of candidates that the last look found and no pick took."""
        return len(self._waiting)

    def note(self, *handles: int) -> int:
        """Records a match of a half that reads these sources, and returns its number.

        Returns -1 for a half that is the whole rule and does not fire.
        """
        if len(self.halves) == 1 and self._firing(*handles) < 0:
            return -1
        self._found.append(handles)
        return len(self._found) - 1

    def look(self, tables: list[list[Row]], place: Mapping[Hashable, int]) -> None:
        """Finds the candidates of this round.

        `tables` has the rows of each half; `place` is the position of a class in the model.
        """
        members = [self._members(half, rows, place) for half, rows in zip(self.halves, tables, strict=True)]
        self._waiting = self._alone(members[0]) if len(members) == 1 else self._pairs(*members)
        # If both halves look alike, a match of one is also a match of the other.
        self._numbers = {}
        for member in (member for table in members for member in table):
            self._numbers[member.classes] = self._numbers.get(member.classes, ()) + member.numbers

    def take(self, size: int, budget: int) -> list[tuple[int, ...]]:
        """Takes at most `budget` candidates, in turns from all regions of a model of `size` values.

        Each result lists the numbers of the half-matches, then the number of the firing.
        """
        picked = _in_turns(self._waiting, size, budget)
        self._taken.update(number for candidate in picked for member in candidate.members for number in self._numbers[member.classes])
        chosen = {id(candidate) for candidate in picked}
        self._waiting = [candidate for candidate in self._waiting if id(candidate) not in chosen]
        return [(*(member.numbers[0] for member in candidate.members), candidate.firing) for candidate in picked]

    def _members(self, half: Half, rows: list[Row], place: Mapping[Hashable, int]) -> list[_Member]:
        """Returns the matches that no pick took, in the order of the model."""
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
        """Returns disjoint pairs of half-matches that agree on shared variables and fire."""
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
            # A used match stays used. Dropping it here saves walking over it again.
            while group and group[0].root in used:
                group.popleft()
        return found

    def _shared(self, half: int, member: _Member) -> tuple[Hashable, ...]:
        """Returns the classes and attributes on which a half-match must agree with its partner."""
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
    """Returns at most `budget` candidates, from each region in turn.

    Within a region they come in the order of the model.
    """
    regions: dict[int, list[_Candidate]] = {}
    for candidate in found:
        regions.setdefault(candidate.place * REGIONS // max(size, 1), []).append(candidate)
    turns = sorted((turn, region) for region, row in regions.items() for turn in range(len(row)))
    return [regions[region][turn] for turn, region in turns[:budget]]

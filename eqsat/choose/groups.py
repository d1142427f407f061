"""Groups: the parts of an e-graph that are chosen apart, and the bytes that each may store."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eqsat.extract import Choice
from eqsat.frozen import frozen
from eqsat.terms.terms import INPUT, Term


@frozen
class Group:
    """Classes that are chosen together, the bytes that they store now, and the number of places
    that get the choice.
    """

    roots: list[int]
    stored: float
    copies: int = 1
    inputs: frozenset[int] | None = None
    """The references of the inputs that the choice may read, or None for all."""

    def has(self, way: Term) -> bool:
        """Tells whether the choice may contain a way."""
        return way.head != INPUT or self.inputs is None or way.data[0] in self.inputs


def readers_of_inputs(groups: Sequence[Group]) -> tuple[int, dict[int, int]]:
    """Returns the groups that may read any input, and for each input that some group names, the
    groups that may read it. Sets of groups are bits of their numbers.
    """
    anyone = sum([1 << number for number, group in enumerate(groups) if group.inputs is None])
    readers: dict[int, int] = {}
    for number, group in enumerate(groups):
        for reference in group.inputs or ():
            readers[reference] = readers.get(reference, anyone) | 1 << number
    return anyone, readers


def allotted(groups: Sequence[Group], wanted: Sequence[float], room: float) -> list[float]:
    """Returns the bytes that each group may store, so that all copies together store `room` more
    than now. No group gets more than it wants, and those that get less get even shares: the first
    bytes gain the most. If `room` is negative, each has to do with the same part of its bytes.
    """
    if room < 0:
        now = math.fsum(group.copies * group.stored for group in groups)
        return [min(want, group.stored * max(0.0, 1 + room / now)) if now else 0.0 for group, want in zip(groups, wanted, strict=True)]
    more = [want - group.stored for group, want in zip(groups, wanted, strict=True)]
    level, left, waiting = math.inf, room, sum(group.copies for group in groups)
    for number in sorted(range(len(more)), key=more.__getitem__):
        if more[number] > left / waiting:
            level = left / waiting
            break
        left -= groups[number].copies * more[number]
        waiting -= groups[number].copies
    return [group.stored + min(extra, level) for group, extra in zip(groups, more, strict=True)]


def added(groups: Sequence[Group], choices: Sequence[Choice]) -> float:
    """Returns the bytes that the copies of the groups store more than now."""
    return math.fsum(group.copies * (choice.resources[0] - group.stored) for group, choice in zip(groups, choices, strict=True))


def joined(choices: Sequence[Choice]) -> Choice:
    """Returns the choices of several groups as one."""
    if len(choices) == 1:
        return choices[0]
    return Choice(
        {eclass: place for choice in choices for eclass, place in choice.nodes.items()},
        math.fsum(choice.cost for choice in choices),
        math.fsum(choice.tie for choice in choices),
        tuple(map(math.fsum, zip(*(choice.resources for choice in choices), strict=True))),
        "optimal" if all(choice.status == "optimal" for choice in choices) else "feasible",
        math.fsum(choice.bound for choice in choices),
        "all choices" if all(choice.bound_for == "all choices" for choice in choices) else "choices within the limits",
    )

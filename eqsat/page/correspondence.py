"""The correspondence of two flat graphs: the nodes that stayed, and the regions that changed.

A node stayed if the other graph has a node with an equal operator, equal attributes and the same
inputs. Regions are the connected parts of all other nodes: values that both graphs have bound them.
Each node is in one region, or stayed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eqsat.page.flat import INSIDE, Flat, Step, bare


@dataclass(frozen=True, slots=True)
class Region:
    """A region that changed. Nodes are numbers in the list of their graph."""

    old: tuple[int, ...]
    new: tuple[int, ...]
    stands: tuple[int, ...]
    """Nodes of the new graph that stayed, and now give values of this region as well."""
    shared: tuple[tuple[str, str], ...]
    """The values of this region that both graphs have: the old key and the new one."""


@dataclass(frozen=True, slots=True)
class Correspondence:
    """How two graphs correspond."""

    kept: Mapping[int, int]
    """The nodes that stayed: the number in the old graph, and in the new one."""
    same: Mapping[str, str]
    """The values that both graphs have: the old key, and the new one."""
    regions: Sequence[Region]


def shared_values(before: Flat, after: Flat, became: Mapping[str, str]) -> dict[str, str]:
    """Returns the values that both graphs are known to have: the old key, and the new one.

    `became` has names of the old graph and their names in the new one. A name that is not in it
    stays only if it is an input's or an output's. Small constants are the same if their contents
    are.
    """
    there, returned = after.values(), {*before.returned}
    contents = _contents(after)
    same: dict[str, str] = {}
    for key in (*before.inputs, *before.constants, *(key for step in before.steps for key in step.outputs if key)):
        name = bare(key)
        path = key[: len(key) - len(name)].split(INSIDE)
        path[0] = became.get(path[0], path[0])
        # An output may equal another value, and be named after it in `became`.
        names = [*([name] if key in returned else []), *([became[name]] if name in became else [])]
        places = [place for now in names for place in (INSIDE.join([*path[:-1], now]), now)]
        found = contents.get(before.constants[key].content) if key in before.constants else None
        found = found or next((place for place in places if place in there), None)
        if found is None and key in after.inputs and key in before.inputs:
            found = key
        if found is not None:
            same[key] = found
    return same


def equal_constants(after: Flat) -> dict[str, str]:
    """Returns the first of the constants with equal contents, by the key of each small one."""
    contents = _contents(after)
    return {key: contents[stored.content] for key, stored in after.constants.items() if stored.content is not None}


def _contents(graph: Flat) -> dict[tuple[object, ...] | None, str]:
    return {stored.content: key for key, stored in reversed(graph.constants.items()) if stored.content is not None}


def correspondence(before: Sequence[Step], after: Sequence[Step], shared: Mapping[str, str], equal: Mapping[str, str]) -> Correspondence:
    """Returns how two graphs correspond, whose nodes are in topological order. `shared` has the
    values that are known to be the same, and `equal` one name for each of several equal constants
    of the new graph.
    """
    same = dict(shared)
    kept = _pair(before, after, same, equal)
    return Correspondence(kept, same, _regions(before, after, same, kept))


def _pair(before: Sequence[Step], after: Sequence[Step], same: dict[str, str], equal: Mapping[str, str]) -> dict[int, int]:
    """Returns the nodes that stayed. Adds to `same` their outputs, and those of nodes that equal one
    that another node became.
    """
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, step in enumerate(after):
        alike[(*step.meaning, tuple(equal.get(key, key) for key in step.inputs))].append(number)
    kept: dict[int, int] = {}
    taken: set[int] = set()
    for number, step in enumerate(before):
        inputs = tuple(same.get(key) if key else "" for key in step.inputs)
        found = alike.get((*step.meaning, inputs), [])
        wanted = [same.get(key) for key in step.outputs if key]
        fitting = [other for other in found if all(now in (None, its) for now, its in zip(wanted, filter(None, after[other].outputs), strict=False))]
        free = [other for other in fitting if other not in taken]
        if not fitting:
            continue
        if free:
            kept[number] = free[0]
            taken.add(free[0])
        for key, now in zip(step.outputs, after[(free or fitting)[0]].outputs, strict=False):
            if key and now:
                same.setdefault(key, now)
    return kept


def _regions(before: Sequence[Step], after: Sequence[Step], same: Mapping[str, str], kept: Mapping[int, int]) -> list[Region]:
    stayed = set(kept.values())
    makers = {key: number for number, step in enumerate(after) for key in step.outputs if key}
    parts = _Parts(len(before) + len(after))
    offset = len(before)
    parts.join_edges(before, 0, same, {number for number in range(len(before)) if number not in kept})
    parts.join_edges(after, offset, set(same.values()), {number for number in range(len(after)) if number not in stayed})
    stands: dict[int, set[int]] = defaultdict(set)
    shared: dict[int, dict[str, str]] = defaultdict(dict)
    for number, step in enumerate(before):
        if number in kept:
            continue
        for key in filter(same.__contains__, step.outputs):
            shared[number][key] = same[key]
            maker = makers.get(same[key])
            if maker in stayed:
                stands[number].add(maker)
            elif maker is not None:
                parts.join(number, offset + maker)
    members: dict[int, list[int]] = defaultdict(list)
    for member in range(offset + len(after)):
        if member not in kept if member < offset else member - offset not in stayed:
            members[parts.root(member)].append(member)
    return [
        Region(
            tuple(member for member in group if member < offset),
            tuple(member - offset for member in group if member >= offset),
            tuple(sorted({other for member in group for other in stands.get(member, ())})),
            tuple(pair for member in group for pair in shared.get(member, {}).items()),
        )
        for group in members.values()
    ]


class _Parts:
    """Sets of nodes that are joined step by step."""

    def __init__(self, size: int) -> None:
        self._above = list(range(size))

    def root(self, member: int) -> int:
        while self._above[member] != member:
            self._above[member] = member = self._above[self._above[member]]
        return member

    def join(self, one: int, other: int) -> None:
        one, other = sorted((self.root(one), self.root(other)))
        self._above[other] = one

    def join_edges(self, steps: Sequence[Step], offset: int, cut: Mapping[str, str] | set[str], among: set[int]) -> None:
        """Joins the nodes of `among` that a value connects, unless the value is in `cut`."""
        makers = {key: number for number in among for key in steps[number].outputs if key and key not in cut}
        for number in among:
            for key in (*steps[number].inputs, *steps[number].results):
                if key in makers:
                    self.join(offset + number, offset + makers[key])

"""Alternatives: what the best choice costs that has certain terms, next to the choice that was made.

The problem of a group is solved once more with a root that needs the terms. So what is found is a
choice for the group's own roots, and its price is one that the search has really found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from eqsat.choose.choose import ROUNDS, Chooser, Chosen
from eqsat.choose.group_problem import Portion
from eqsat.choose.groups import Group
from eqsat.extract import Choice, ExtractionError, Graph, Method, Node, extract
from eqsat.frozen import frozen, mutable
from eqsat.terms.terms import FUSED, Term


@frozen
class Alternative:
    """The best choice that was found with certain terms."""

    more: float
    """Its cost minus that of the choice that was made, in all copies of the group."""
    excess: float = 0.0
    """The bytes by which it exceeds what the file may grow. A choice within the limit costs more, or
    there is none."""


class Alternatives:
    """The alternatives to one choice."""

    def __init__(self, chooser: Chooser, groups: Sequence[Group], chosen: Chosen, method: Method) -> None:
        self._chooser = chooser
        self._groups = groups
        self._chosen = chosen
        self._method: Method = method
        self._places = {way: place for place, way in enumerate(chooser.ways) if way.head != FUSED}
        self._known: dict[int, set[int]] = {}  # by group, the places of its ways
        self._fused: dict[int, list[int]] = {}  # by place, the fusions of a way with another one
        for place, way in enumerate(chooser.ways):
            for part in way.data if way.head == FUSED else ():
                self._fused.setdefault(part, []).append(place)

    def best(self, number: int, options: Sequence[Sequence[Term]]) -> Alternative | None:
        """Returns the best choice for a group that has all terms of one of the options. Terms may be
        such that the result may not have. Returns None if the group has no such choice.
        """
        portion, group, choice = self._chosen.portions[number], self._groups[number], self._chosen.choices[number]
        wanted = self._wanted(number, options)
        if not wanted:
            return None
        made = self._cost(portion, list(choice.nodes.values()))
        free = self._solved(portion, choice, wanted, math.inf)
        if free is None:
            return None
        room = choice.resources[0] + max(0.0, self._chosen.room - self._chosen.added) / group.copies
        cost, stored = free
        if stored <= room:
            return Alternative(group.copies * (cost - made))
        within = self._solved(portion, choice, wanted, room)
        if within is None or (cost <= made and cost < within[0]):
            return Alternative(group.copies * (cost - made), group.copies * (stored - room))
        return Alternative(group.copies * (within[0] - made))

    def has(self, number: int, options: Sequence[Sequence[Term]]) -> bool:
        """Tells whether a group can have all terms of one of the options."""
        return bool(self._wanted(number, options))

    def _wanted(self, number: int, options: Sequence[Sequence[Term]]) -> list[list[int]]:
        """Returns the options among the ways of a group, by their places."""
        inside = self._inside(number)
        wanted = ([self._places.get(term, -1) for term in option] for option in options)
        return [places for places in wanted if places and inside.issuperset(places)]

    def _inside(self, number: int) -> set[int]:
        if number not in self._known:
            self._known[number] = set(self._chosen.portions[number].places)
        return self._known[number]

    def size(self, number: int) -> int:
        """Returns the nodes among which a group chooses."""
        return len(self._chosen.portions[number].places)

    def _solved(self, portion: Portion, made: Choice, wanted: Sequence[Sequence[int]], room: float) -> tuple[float, float] | None:
        """Returns the cost and the stored bytes of the best choice, or None if there is none."""
        work, gap = self._chooser.bounds
        dearer = self._chooser.fusions.foreseen({portion.graph.nodes[place].eclass: place for place in made.nodes.values()})
        found: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            problem = _Problem(self._chooser, portion, self._fused, dearer)
            graph = problem.graph(wanted, (room, *portion.graph.limits[1:]))
            try:
                choice = extract(graph, method=self._method, initial=problem.initial(made), work=work, gap=gap)
            except ExtractionError:
                break
            places = [problem.origins[number] for number in choice.nodes.values() if number in problem.origins]
            picks = {self._chooser.ways[place].eclass: place for place in places}
            found.append((self._cost(portion, places), choice.resources[0]))
            if self._chooser.fusions.penalties(picks).keys() <= dearer.keys():
                break
            dearer = {**dearer, **self._chooser.fusions.foreseen(picks)}
        return min(found, default=None)

    def _cost(self, portion: Portion, places: Sequence[int]) -> float:
        """Returns what ways cost together, with what dearer fusions add."""
        picks = {self._chooser.ways[place].eclass: place for place in places}
        return math.fsum([*(_allowed(self._chooser, portion, place).cost for place in places), *self._chooser.fusions.penalties(picks).values()])


def _allowed(chooser: Chooser, portion: Portion, place: int) -> Node:
    """Returns the node of a way, with its price even if the result may not have it."""
    node, way = portion.graph.nodes[place], chooser.ways[place]
    if not math.isinf(node.cost) or way.head < 0:
        return node
    cost, tie = chooser.prices.of(way, 0.0)
    return replace(node, cost=cost, tie=tie)


@mutable
class _Problem:
    """The problem of a group with one root more."""

    chooser: Chooser
    portion: Portion
    fused: Mapping[int, Sequence[int]]
    dearer: Mapping[int, float]
    """What fusions add to the price of a way, by its place."""
    origins: dict[int, int] = field(default_factory=dict[int, int])
    """By node, the way that it stands for. Other nodes lead from one class to another one."""
    _nodes: list[Node] = field(default_factory=list[Node])
    _classes: dict[int, int] = field(default_factory=dict[int, int])
    _count: int = 0
    _root: int = 0

    def graph(self, wanted: Sequence[Sequence[int]], limits: tuple[float, ...]) -> Graph:
        """Returns the problem in which a further root needs the ways at all places of one row."""
        portion = self.portion
        self._classes = {eclass: number for number, eclass in enumerate(sorted(portion.reached))}
        self._count = len(self._classes)
        forced = dict.fromkeys(place for row in wanted for place in row)
        pairs = {place for first in forced for place in self.fused.get(first, ()) if place in set(portion.places)}
        alone = {place: self._class() for place in (*forced, *sorted(pairs))}
        inside = {place: self._class() for place in forced}  # a way, alone or fused with another one
        for place in portion.places:
            if place not in alone:
                self._add(place, self._classes[portion.graph.nodes[place].eclass])
        for place, eclass in alone.items():
            self._add(place, eclass, True)
            own = self._classes[portion.graph.nodes[place].eclass]
            self._nodes.append(Node(own, 0.0, (eclass,)))
            for part in self.chooser.ways[place].data if place in pairs else (place,):
                if part in inside:
                    self._nodes.append(Node(inside[part], 0.0, (eclass,)))
        self._root = root = self._class()
        self._nodes += [Node(root, 0.0, tuple(inside[place] for place in row)) for row in wanted]
        return Graph(self._count, self._nodes, [*(self._classes[root] for root in portion.graph.roots), root], limits)

    def initial(self, made: Choice) -> dict[int, int]:
        """Returns a choice of this problem: the one that was made, and beside it what the further
        root needs. The original's ways are preferred.
        """
        own, chosen = set(self.portion.initial.values()), set(made.nodes.values())
        # A node that stands for no way leads to one: it comes as soon as that is there.
        ranks = [0 if (place := self.origins.get(number)) in chosen or place is None else 1 if place in own else 2 for number in range(len(self._nodes))]
        picks: dict[int, int] = {}
        for rank in range(3):
            nodes = [number for number, node in enumerate(self._nodes) if ranks[number] <= rank and math.isfinite(node.cost)]
            changed = self._root not in picks
            while changed:
                changed = False
                for number in nodes:
                    node = self._nodes[number]
                    if node.eclass not in picks and all(child in picks for child in node.children):
                        picks[node.eclass] = number
                        changed = True
        return picks

    def _class(self) -> int:
        self._count += 1
        return self._count - 1

    def _add(self, place: int, eclass: int, forced: bool = False) -> None:
        node = _allowed(self.chooser, self.portion, place) if forced else self.portion.graph.nodes[place]
        cost = node.cost + self.dearer.get(place, 0.0)
        self.origins[len(self._nodes)] = place
        self._nodes.append(Node(eclass, cost, tuple([self._classes[child] for child in node.children]), node.resources, node.tie))

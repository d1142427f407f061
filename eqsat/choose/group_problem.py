"""The problem of choosing for one group, and its solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eqsat.extract import Choice, Graph, Node, extract
from eqsat.frozen import frozen


@frozen
class Portion:
    """The problem of one group: the nodes of the graph that count are at `places`, their classes
    are `reached`. `before` is the cost of the `initial` choice.
    """

    graph: Graph
    places: list[int]
    reached: set[int]
    initial: dict[int, int]
    before: float

    def excerpt(self) -> tuple[Graph, dict[int, int]]:
        """Returns the graph without the classes and nodes of other groups, and the initial choice
        in it. They are numbered anew.
        """
        classes = {eclass: number for number, eclass in enumerate(sorted(self.reached))}
        local = {place: number for number, place in enumerate(self.places)}
        nodes = [_renumbered(self.graph.nodes[place], classes) for place in self.places]
        known = {classes[eclass]: local[place] for eclass, place in self.initial.items() if place in local}
        return Graph(len(classes), nodes, [classes[root] for root in self.graph.roots]), known

    def least_storage(self) -> float:
        """Returns the bytes that the least trees of the group's roots store."""
        return extract(self.excerpt()[0], method="tree").resources[0]


@frozen
class Solved:
    """The choice for a group, and the problem that it solves."""

    graph: Graph
    places: list[int]
    choice: Choice

    def serves(self, graph: Graph, places: Sequence[int]) -> bool:
        """Tells whether the choice is the best one of another problem as well: one that differs in
        lower limits alone, which the choice keeps.
        """
        limits = zip(self.choice.resources, graph.limits, self.graph.limits, strict=False)
        return (
            self.places == places
            and self.graph.roots == graph.roots
            and len(self.graph.limits) == len(graph.limits)
            and all(used <= now <= then for used, now, then in limits)
            and all(self.graph.nodes[place] == graph.nodes[place] for place in places)
        )


def _renumbered(node: Node, classes: Mapping[int, int]) -> Node:
    return Node(classes[node.eclass], node.cost, tuple([classes[child] for child in node.children]), node.resources, node.tie)

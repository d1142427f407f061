"""The plain data of an extraction: e-nodes in e-classes go in (`Graph`), one e-node for each needed class comes out (`Choice`).

`check` walks a choice again from the roots, independently of how it was found; an `ExtractionError` is the only error a caller can cause.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


class ExtractionError(ValueError):
    """The graph is malformed, a needed class has no finite acyclic choice, or no choice within the limits is known."""


@dataclass(frozen=True, slots=True)
class Node:
    """One way to compute the class `eclass` from the classes `children`.

    Costs compare as the pair (`cost`, `tie`): the sums of `tie` decide only between choices whose sums of `cost` are equal. Both are non-negative;
    infinity in either means that the node is never chosen. `resources` are non-negative and finite; the empty tuple stands for zeros.
    """

    eclass: int
    cost: float
    children: tuple[int, ...]
    resources: tuple[float, ...] = ()
    tie: float = 0.0


@dataclass(frozen=True, slots=True)
class Graph:
    """Classes are numbered 0 to `classes` - 1, nodes by their position in `nodes`.

    For each resource, the sum over the distinct chosen nodes may not exceed its entry in `limits` (infinity: not limited), not by one rounding error.
    Without `limits` resources are only added up.
    """

    classes: int
    nodes: Sequence[Node]
    roots: Sequence[int]
    limits: tuple[float, ...] = ()

    def resources(self) -> int:
        """How many resources there are."""
        return len(self.limits) or max((len(node.resources) for node in self.nodes), default=0)


@dataclass(slots=True)
class Choice:
    """The chosen node of every class that the roots reach through the choice, and of no other.

    `cost`, `tie` and `resources` are the sums over the chosen nodes, correctly rounded. `bound` is proved: no choice, within the limits or not, has a
    smaller cost. `optimal` means that no choice has a smaller pair (cost, tie).
    """

    nodes: dict[int, int]
    cost: float
    tie: float
    resources: tuple[float, ...]
    status: Literal["feasible", "optimal"]
    bound: float


def walk(graph: Graph, picks: Mapping[int, int]) -> dict[int, int]:
    """The part of `picks` that the roots reach, each class before those that need it; an ExtractionError where that is no acyclic choice of `graph`."""
    done: dict[int, int] = {}
    waiting: dict[int, int] = {}
    for root in graph.roots:
        stack = [root]
        while stack:
            eclass = stack[-1]
            if eclass in waiting:
                stack.pop()
                if eclass not in done:
                    done[eclass] = waiting[eclass]
                continue
            if eclass not in picks:
                raise ExtractionError(f"class {eclass} is needed and has no chosen node")
            index = picks[eclass]
            if not 0 <= index < len(graph.nodes) or graph.nodes[index].eclass != eclass:
                raise ExtractionError(f"node {index}, chosen for class {eclass}, is no node of that class")
            waiting[eclass] = index
            for child in graph.nodes[index].children:
                if child not in waiting:
                    stack.append(child)
                elif child not in done:
                    raise ExtractionError(f"the choice is cyclic: class {eclass} needs class {child}, which needs class {eclass}")
    return done


def check(graph: Graph, choice: Choice) -> None:
    """Raise an ExtractionError unless `choice` is what it says: complete, acyclic, without a node too many, rightly added up and within the limits."""
    reached = walk(graph, choice.nodes)
    if len(reached) != len(choice.nodes):
        raise ExtractionError(f"class {min(choice.nodes.keys() - reached.keys())} is chosen and not needed")
    chosen = [graph.nodes[index] for index in reached.values()]
    cost, tie = math.fsum(node.cost for node in chosen), math.fsum(node.tie for node in chosen)
    if not (math.isfinite(cost) and math.isfinite(tie)):
        raise ExtractionError("a node of infinite cost is chosen")
    if (cost, tie) != (choice.cost, choice.tie):
        raise ExtractionError(f"the chosen nodes cost {cost!r} ({tie!r}), the choice says {choice.cost!r} ({choice.tie!r})")
    if choice.bound > cost:
        raise ExtractionError(f"the choice costs {cost!r}, less than its bound {choice.bound!r}")
    used = [node.resources for node in chosen if node.resources]
    totals = tuple(math.fsum(amounts[position] for amounts in used) for position in range(graph.resources()))
    if totals != choice.resources:
        raise ExtractionError(f"the chosen nodes use the resources {totals}, the choice says {choice.resources}")
    for position, limit in enumerate(graph.limits):
        # fsum rounds once, at the end, so that the sign of this difference is exact.
        if math.fsum([-limit, *(amounts[position] for amounts in used)]) > 0:
            raise ExtractionError(f"the chosen nodes use more than {limit!r} of resource {position}")

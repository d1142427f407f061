"""The plain data of an extraction: e-nodes in e-classes go in (`Graph`), one e-node for each needed class comes out (`Choice`).

`check` walks a choice again from the roots, independently of how it was found; an `ExtractionError` is the only error a caller can cause.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


class ExtractionError(ValueError):
    """The graph is malformed, a needed class has no finite acyclic choice, or no choice within the limits is known."""


def impossible() -> ExtractionError:
    """The error that says what has been proved: that there is nothing to choose."""
    return ExtractionError("no choice is within the limits and free of the combinations that terms forbid")


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
class Term:
    """A cost that no single node has: `cost`, of either sign, is added once where all of `nodes` are chosen.

    With `sole` it is added only where, besides, the last of them is the one consumer of the first: no other chosen node has the first one's class as a
    child, and that class is no root. A cost of infinity forbids the combination.
    """

    nodes: tuple[int, ...]
    cost: float
    sole: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """Classes are numbered 0 to `classes` - 1, nodes by their position in `nodes`.

    For each resource, the sum over the distinct chosen nodes may not exceed its entry in `limits` (infinity: not limited), not by one rounding error.
    Without `limits` resources are only added up. `terms` add costs for combinations of nodes, or forbid them.
    """

    classes: int
    nodes: Sequence[Node]
    roots: Sequence[int]
    limits: tuple[float, ...] = ()
    terms: tuple[Term, ...] = ()

    def resources(self) -> int:
        """How many resources there are."""
        return len(self.limits) or max((len(node.resources) for node in self.nodes), default=0)


@dataclass(slots=True)
class Choice:
    """The chosen node of every class that the roots reach through the choice, and of no other.

    `cost` (terms included), `tie` and `resources` are the sums over the chosen nodes, correctly rounded. `bound` is proved: no choice has a smaller cost;
    where `bound_for` says so, of those within the limits only. `optimal` means that no choice, within the limits, has a smaller pair (cost, tie).
    """

    nodes: dict[int, int]
    cost: float
    tie: float
    resources: tuple[float, ...]
    status: Literal["feasible", "optimal"]
    bound: float
    bound_for: Literal["all choices", "choices within the limits"] = "all choices"

    @property
    def gap(self) -> float:
        """How much cheaper the best choice could be at most, as a share of the cost."""
        return (self.cost - self.bound) / abs(self.cost) if self.cost != self.bound else 0.0


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
    terms = [term.cost for term in applying(graph, reached)]
    if math.inf in terms:
        raise ExtractionError("a combination of nodes is chosen that a term forbids")
    cost, tie = math.fsum([*(node.cost for node in chosen), *terms]), math.fsum(node.tie for node in chosen)
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


def applying(graph: Graph, chosen: Mapping[int, int]) -> list[Term]:
    """The terms whose costs are added to a choice."""
    nodes, roots = graph.nodes, set(graph.roots)
    consumers = Counter(child for index in chosen.values() for child in set(nodes[index].children)) if graph.terms else Counter[int]()

    def applies(term: Term) -> bool:
        if any(chosen.get(nodes[index].eclass) != index for index in term.nodes):
            return False
        used = nodes[term.nodes[0]].eclass
        return not term.sole or (used not in roots and consumers[used] == 1 and used in nodes[term.nodes[-1]].children)

    return [term for term in graph.terms if applies(term)]

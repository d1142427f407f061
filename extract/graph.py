"""The data of an extraction: a `Graph` of e-nodes in e-classes, and a `Choice` of nodes.

`check` walks a choice from the roots, independently of the method that found it. ExtractionError is
the only error that a caller can cause.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


class ExtractionError(ValueError):
    """The graph is malformed, or it has no valid choice, or none was found."""


def impossible() -> ExtractionError:
    """Return the error for a proof that no choice exists."""
    return ExtractionError("no choice is within the limits and free of the combinations that terms forbid")


@dataclass(frozen=True, slots=True)
class Node:
    """One way to compute the class `eclass` from the classes `children`.

    Costs compare as pairs (`cost`, `tie`): the sums of `tie` decide only between choices with equal
    sums of `cost`. Both are non-negative; a node with an infinite one is never chosen. `resources`
    are non-negative and finite; the empty tuple stands for zeros.
    """

    eclass: int
    cost: float
    children: tuple[int, ...]
    resources: tuple[float, ...] = ()
    tie: float = 0.0


@dataclass(frozen=True, slots=True)
class Term:
    """A cost of a combination: `cost`, of either sign, is added once if all of `nodes` are chosen.

    With `sole`, the last node must also be the only consumer of the first: no other chosen node has
    the first node's class as a child, and that class is no root. An infinite cost forbids the
    combination.
    """

    nodes: tuple[int, ...]
    cost: float
    sole: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """An e-graph: classes are numbered 0 to `classes` - 1, nodes by their position in `nodes`.

    For each resource, the exact sum over the distinct chosen nodes may not exceed its entry in
    `limits`; an infinite entry is no limit. Without `limits`, resources are only added up. `terms`
    add costs for combinations of nodes, or forbid them.
    """

    classes: int
    nodes: Sequence[Node]
    roots: Sequence[int]
    limits: tuple[float, ...] = ()
    terms: tuple[Term, ...] = ()

    def resources(self) -> int:
        """Return the number of resources."""
        return len(self.limits) or max((len(node.resources) for node in self.nodes), default=0)


@dataclass(slots=True)
class Choice:
    """The chosen node of each class that the roots reach through the choice, and of no other class.

    `cost` (terms included), `tie` and `resources` are the correctly rounded sums over the chosen
    nodes. `bound` is a proved lower bound on the cost of every choice, or of every choice within
    the limits, as `bound_for` says. `optimal` means that no choice within the limits has a smaller
    pair (cost, tie).
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
        """The largest possible saving that the bound leaves open, as a share of the cost."""
        return (self.cost - self.bound) / abs(self.cost) if self.cost != self.bound else 0.0


def walk(graph: Graph, picks: Mapping[int, int]) -> dict[int, int]:
    """Return the part of `picks` that the roots reach; each class comes before those that need it.

    An ExtractionError says that `picks` is no complete acyclic choice of `graph`.
    """
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
    """Check that a choice is complete, acyclic, minimal, correctly summed and within the limits.

    An ExtractionError names the first violation.
    """
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
        # fsum rounds only once, at the end, so the sign of this difference is exact.
        if math.fsum([-limit, *(amounts[position] for amounts in used)]) > 0:
            raise ExtractionError(f"the chosen nodes use more than {limit!r} of resource {position}")


def applying(graph: Graph, chosen: Mapping[int, int]) -> list[Term]:
    """Return the terms that apply to a choice."""
    nodes, roots = graph.nodes, set(graph.roots)
    consumers = Counter(child for index in chosen.values() for child in set(nodes[index].children)) if graph.terms else Counter[int]()

    def applies(term: Term) -> bool:
        if any(chosen.get(nodes[index].eclass) != index for index in term.nodes):
            return False
        used = nodes[term.nodes[0]].eclass
        return not term.sole or (used not in roots and consumers[used] == 1 and used in nodes[term.nodes[-1]].children)

    return [term for term in graph.terms if applies(term)]

"""Prepare a graph for searching: check it, weigh its nodes, drop those that no choice contains.

All passes are linear except for a logarithmic factor. At 100,000 nodes Python's cost per visit
dominates. Graphs above 500,000 nodes could use numpy: `children` as one flat array with offsets,
and one array operation per level of the frontier.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from .graph import ExtractionError, Graph, Term
from .problem import Problem, WeighedTerm, arrange
from .weights import Exact, Scale


def prepare(graph: Graph, initial: Mapping[int, int] | None = None) -> tuple[Problem, Scale, list[int]]:
    """Check and prune `graph` and mark the nodes that every choice needs.

    Return the problem, the scale of its weights, and the units of its resources. An ExtractionError
    says that the graph is malformed or that a root has no finite acyclic choice.
    """
    children = _children(graph)
    _check_terms(graph)
    scale = Scale.of(graph, counts_changes=initial is not None)
    weight = scale.weights(None if initial is None else set(initial.values()))
    amounts, units, limits = _resources(graph)
    admissible, narrowed = _admissible(weight, amounts, limits)
    owner = [node.eclass for node in graph.nodes]
    usable = list(admissible)
    realized = _realize(graph.classes, owner, children, usable)
    roots = list(dict.fromkeys(graph.roots))
    for root in roots:
        if not realized[root]:
            raise ExtractionError(_explain_failure(root, owner, children, admissible, realized, " within the limits" if graph.limits else ""))
    problem = arrange(roots, _usable_nodes(graph.classes, owner, usable), owner, children, weight, amounts, limits, _weighed_terms(graph, scale, usable))
    problem.narrowed = narrowed
    return problem, scale, units


def _children(graph: Graph) -> list[tuple[int, ...]]:
    """Return each node's distinct children after checking that they are classes of the graph."""
    classes = graph.classes
    for root in graph.roots:
        if not 0 <= root < classes:
            raise ExtractionError(f"root {root} is no class of the graph; classes are 0 to {classes - 1}")
    rows: list[tuple[int, ...]] = []
    for index, node in enumerate(graph.nodes):
        row = node.children
        if len(row) > 1:
            row = tuple(dict.fromkeys(row))
        if not 0 <= node.eclass < classes or (row and not (min(row) >= 0 and max(row) < classes)):
            named = f"node {index} (class {node.eclass}, children {node.children})"
            raise ExtractionError(f"{named} names a class that is not in the graph; classes are 0 to {classes - 1}")
        rows.append(row)
    return rows


def _check_terms(graph: Graph) -> None:
    """Check that each term names nodes of the graph and has a number as its cost."""
    for index, term in enumerate(graph.terms):
        if not term.nodes or not all(0 <= n < len(graph.nodes) for n in term.nodes):
            raise ExtractionError(f"term {index} names the nodes {term.nodes}; nodes are 0 to {len(graph.nodes) - 1}")
        if math.isnan(term.cost) or term.cost == -math.inf:
            raise ExtractionError(f"the cost of term {index} is {term.cost!r}; it has to be a number or infinity")


def _resources(graph: Graph) -> tuple[list[list[int]], list[int], list[int | None]]:
    """Return the exact amounts by resource and node, their units, and the limits in these units.

    Limits are rounded down, which no sum of integers can notice.
    """
    count = graph.resources()
    for index, node in enumerate(graph.nodes):
        if node.resources and len(node.resources) != count:
            raise ExtractionError(f"node {index} has {len(node.resources)} resources where the graph has {count}")
    amounts: list[list[int]] = []
    units: list[int] = []
    limits: list[int | None] = []
    for r in range(count):
        exact = Exact.from_floats(f"resource {r} of node", [node.resources[r] if node.resources else 0 for node in graph.nodes])
        if -1 in exact.values:
            raise ExtractionError(f"resource {r} of node {exact.values.index(-1)} is infinite")
        amounts.append(exact.values)
        units.append(exact.unit)
        limit = graph.limits[r] if graph.limits else math.inf
        if not limit >= 0:
            raise ExtractionError(f"limit {r} is {limit!r}; it has to be a number that is not negative")
        numerator, denominator = limit.as_integer_ratio() if limit != math.inf else (0, 0)
        limits.append(numerator * exact.unit // denominator if denominator else None)
    return amounts, units, limits


def _admissible(weight: list[int], amounts: list[list[int]], limits: list[int | None]) -> tuple[list[bool], bool]:
    """Mark the nodes that cost less than infinity and exceed no limit alone.

    Tell also whether a limit excluded any node.
    """
    finite = [w >= 0 for w in weight]
    admissible = finite
    for amount, limit in zip(amounts, limits, strict=True):
        if limit is not None and max(amount, default=0) > limit:
            admissible = [a and used <= limit for a, used in zip(admissible, amount, strict=True)]
    return admissible, sum(admissible) < sum(finite)


def _usable_nodes(classes: int, owner: list[int], usable: list[bool]) -> list[list[int]]:
    """Return the usable nodes by class."""
    nodes_of: list[list[int]] = [[] for _ in range(classes)]
    for n, c in enumerate(owner):
        if usable[n]:
            nodes_of[c].append(n)
    return nodes_of


def _weighed_terms(graph: Graph, scale: Scale, usable: list[bool]) -> list[WeighedTerm]:
    """Return the terms that can apply to usable nodes, in weights."""
    return [
        WeighedTerm(tuple(dict.fromkeys(term.nodes)), None if term.cost == math.inf else weight, graph.nodes[term.nodes[0]].eclass if term.sole else -1)
        for term, weight in zip(graph.terms, scale.term_weights(), strict=True)
        if _can_apply(graph, term) and all(usable[n] for n in term.nodes)
    ]


def _realize(classes: int, owner: list[int], children: list[tuple[int, ...]], usable: list[bool]) -> bytearray:
    """Mark the classes with a finite acyclic choice.

    Nodes that no choice contains become unusable in `usable`.
    """
    users: list[list[int]] = [[] for _ in range(classes)]
    missing = [len(row) for row in children]
    realized = bytearray(classes)
    queue: list[int] = []
    for n, row in enumerate(children):
        if usable[n] and owner[n] in row:
            usable[n] = False
        if usable[n]:
            for child in row:
                users[child].append(n)
            if not row and not realized[owner[n]]:
                realized[owner[n]] = 1
                queue.append(owner[n])
    while queue:
        for n in users[queue.pop()]:
            missing[n] -= 1
            if not missing[n] and not realized[owner[n]]:
                realized[owner[n]] = 1
                queue.append(owner[n])
    for n, count in enumerate(missing):
        if count:
            usable[n] = False
    return realized


def _explain_failure(root: int, owner: list[int], children: list[tuple[int, ...]], admissible: list[bool], realized: bytearray, limited: str) -> str:
    """Explain why a root has no choice, down to a class without usable nodes.

    The message follows first causes. If they form a cycle, it names a class on the cycle.
    """
    cause: dict[int, int | None] = {}
    for n, c in enumerate(owner):
        if not realized[c] and cause.get(c) is None:
            cause[c] = next(child for child in children[n] if not realized[child]) if admissible[n] else None
    seen: set[int] = set()
    here = root
    while here not in seen:
        seen.add(here)
        following = cause.get(here)
        if following is None:
            reason = "every one of its nodes costs infinity or exceeds a limit alone" if here in cause else "it has no node"
            return f"class {here}, needed by root {root}, can not be chosen{limited}: {reason}"
        here = following
    return f"class {here}, needed by root {root}, can not be chosen{limited}: its nodes lead back to itself, in a cycle without a way out"


def _can_apply(graph: Graph, term: Term) -> bool:
    """Tell whether the nodes of a term can be chosen together.

    With `sole`, the last node must also be able to be the only consumer of the first.
    """
    of = {graph.nodes[n].eclass: n for n in term.nodes}
    if any(of[graph.nodes[n].eclass] != n for n in term.nodes):
        return False
    used = graph.nodes[term.nodes[0]].eclass
    return not term.sole or (used in graph.nodes[term.nodes[-1]].children and used not in graph.roots)

"""A graph made ready for searching: exact integer weights, without what can never be chosen, and with what is needed in every choice marked.

All passes are linear, but for a logarithm. At 100,000 nodes they are dominated by Python's cost for a visit; for graphs of 500,000 nodes and more the
passes over all nodes (weights, counting of missing children, reachability) have the shape of frontier steps over compressed rows: `children` as one
flat array with offsets, a frontier's missing counts lowered at once by `numpy.subtract.at`, one array operation per level instead of per node.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .graph import ExtractionError, Graph, Term


@dataclass(frozen=True, slots=True)
class Exact:
    """Floats as integers over one common denominator: sums are exact and compare exactly."""

    values: list[int]
    unit: int

    @staticmethod
    def of(what: str, floats: Sequence[float], signed: Sequence[float] = ()) -> Exact:
        """`floats` are not negative, and infinity stands as -1; `signed` ones follow them, infinity as 0. The sum of all has to be a finite float."""
        ratios: dict[float, tuple[int, int]] = {}
        for index, value in enumerate(floats):
            if value not in ratios:
                if not value >= 0:
                    raise ExtractionError(f"{what} {index} is {value!r}; it has to be a number that is not negative")
                ratios[value] = value.as_integer_ratio() if value != math.inf else (-1, 0)
        for value in signed:
            if value != math.inf:
                ratios[value] = value.as_integer_ratio()
        unit = max((denominator for _, denominator in ratios.values()), default=1) or 1
        scaled = {value: -1 if denominator == 0 else numerator * (unit // denominator) for value, (numerator, denominator) in ratios.items()}
        values = [scaled[value] for value in floats]
        changes = [scaled[value] if value != math.inf else 0 for value in signed]
        if sum(value for value in values if value > 0) + sum(abs(value) for value in changes) > int(sys.float_info.max) * unit:
            raise ExtractionError(f"the sum over {what} is too large for a float")
        return Exact(values + changes, unit)

    def back(self, value: int) -> float:
        """`value` as the nearest float."""
        return value / self.unit


@dataclass(frozen=True, slots=True)
class Scale:
    """How the integer weights of a problem stand for costs: (cost * `tie_base` + tie) * `change_base` + changes, so that one comparison is lexicographic.

    A change is a node that the initial choice does not have: of choices that are equal in all else, that which changes least is the lightest.
    """

    cost: Exact
    tie: Exact
    tie_base: int
    change_base: int

    def back(self, weight: int) -> tuple[float, float]:
        """The cost and the tie that a sum of weights stands for."""
        cost, tie = divmod(weight // self.change_base, self.tie_base)
        return self.cost.back(cost), self.tie.back(tie)


@dataclass(frozen=True, slots=True)
class Bonus:
    """A term in weights: `weight` is added, or the combination is forbidden (None), where all `nodes` are chosen, and `sole` is -1 or a class used once."""

    nodes: tuple[int, ...]
    weight: int | None
    sole: int


@dataclass(slots=True)
class Problem:
    """What a search needs; all lists are indexed by class or by node, and hold only classes that the roots reach and nodes that can be chosen.

    `nodes_of[c]`: the usable nodes of class c, empty for classes that no root reaches. `children[n]`: the distinct children of node n.
    `weight[n]`: as `Scale` says. `amounts[r][n]`: resource r. `limits[r]`: None where not limited. `terms`: those that can apply.
    `needed[c]`: class c is in every choice. `free`: the classes where there is something to decide, or that may not be needed; empty when the choice is
    forced; with terms, all. `order[c]`: the number of the strongly connected component of c, children before parents; `component[i]`: its classes.
    `users[c]`: the nodes that have c as a child. These three are filled only where `free` is not empty. `narrowed`: nodes were left out that exceed a
    limit alone.
    """

    roots: list[int]
    nodes_of: list[list[int]]
    owner: list[int]
    children: list[tuple[int, ...]]
    weight: list[int]
    amounts: list[list[int]]
    limits: list[int | None]
    terms: list[Bonus]
    needed: bytearray
    free: list[int]
    order: list[int]
    component: list[list[int]]
    users: list[list[int]]
    narrowed: bool = False

    def bound(self) -> int:
        """A weight that no choice undercuts: each needed class pays at least for its cheapest node."""
        weight = self.weight
        least = sum(min(weight[n] for n in self.nodes_of[c]) for c in range(len(self.needed)) if self.needed[c])
        return least + sum(term.weight for term in self.terms if term.weight is not None and term.weight < 0)

    def is_excluded(self, n: int) -> bool:
        """Whether node n, though in an acyclic choice, can be in none that counts: its cost is infinite, or it exceeds a limit alone."""
        over = any(limit is not None and amount[n] > limit for amount, limit in zip(self.amounts, self.limits, strict=True))
        return over or self.weight[n] < 0

    def heaviest(self) -> int:
        """More than any choice weighs that no term forbids."""
        return 1 + sum(max(self.weight[n] for n in row) for row in self.nodes_of if row) + sum(abs(term.weight or 0) for term in self.terms)

    def reached(self, pick: Sequence[int] | Mapping[int, int]) -> list[int]:
        """The nodes of `pick` (by class) that the roots reach through it."""
        seen = dict.fromkeys(self.roots)
        stack = list(seen)
        while stack:
            for child in self.children[pick[stack.pop()]]:
                if child not in seen:
                    seen[child] = None
                    stack.append(child)
        return [pick[c] for c in seen]

    def weigh(self, nodes: Sequence[int]) -> int | None:
        """The weight of the nodes of a choice, terms included; None where a term forbids it."""
        total = sum(self.weight[n] for n in nodes)
        if self.terms:
            chosen = set(nodes)
            consumers = Counter(child for n in nodes for child in self.children[n])
            for term in self.terms:
                if chosen.issuperset(term.nodes) and (term.sole < 0 or consumers[term.sole] == 1):
                    if term.weight is None:
                        return None
                    total += term.weight
        return total

    def allows(self, nodes: Sequence[int]) -> bool:
        """Whether the nodes of a choice are within the limits."""
        return self.fits([sum(amount[n] for n in nodes) for amount in self.amounts])

    def fits(self, totals: Sequence[int]) -> bool:
        """Whether amounts are within the limits."""
        return all(limit is None or total <= limit for total, limit in zip(totals, self.limits, strict=True))


def prepare(graph: Graph, initial: Mapping[int, int] | None = None) -> tuple[Problem, Scale, list[int]]:
    """Check `graph`, prune it and find what is forced; its problem, how to read weights, and the units of its resources.

    An ExtractionError where it is malformed or a root has no finite acyclic choice.
    """
    nodes, children = graph.nodes, _children(graph)
    _check_terms(graph)
    cost = Exact.of("cost of node", [node.cost for node in nodes], [term.cost for term in graph.terms])
    tie = Exact.of("tie of node", [node.tie for node in nodes])
    tie_base = sum(value for value in tie.values if value > 0) + 1
    change_base = 1 if initial is None else len(nodes) + 1
    scale = Scale(cost, tie, tie_base, change_base)
    level = tie_base * change_base
    weight = [c * level + t * change_base if c >= 0 and t >= 0 else -1 for c, t in zip(cost.values, tie.values, strict=False)]
    if initial is not None:
        kept = set(initial.values())
        weight = [w + 1 if w >= 0 and n not in kept else w for n, w in enumerate(weight)]
    amounts, amount_units, limits = _resources(graph)

    owner = [node.eclass for node in nodes]
    usable = [w >= 0 for w in weight]
    finite = sum(usable)
    for amount, limit in zip(amounts, limits, strict=True):
        if limit is not None and max(amount, default=0) > limit:
            usable = [u and a <= limit for u, a in zip(usable, amount, strict=True)]
    narrowed = sum(usable) < finite
    admissible = list(usable)
    realized = _realize(graph.classes, owner, children, usable)
    roots = list(dict.fromkeys(graph.roots))
    for root in roots:
        if not realized[root]:
            raise ExtractionError(_why(root, owner, children, admissible, realized, " within the limits" if graph.limits else ""))

    nodes_of: list[list[int]] = [[] for _ in range(graph.classes)]
    for n, c in enumerate(owner):
        if usable[n]:
            nodes_of[c].append(n)
    units = zip(graph.terms, cost.values[len(nodes) :], strict=True)
    terms = [
        Bonus(tuple(dict.fromkeys(term.nodes)), None if term.cost == math.inf else change * level, nodes[term.nodes[0]].eclass if term.sole else -1)
        for term, change in units
        if _can_apply(graph, term) and all(usable[n] for n in term.nodes)
    ]
    problem = arrange(roots, nodes_of, owner, children, weight, amounts, limits, terms)
    problem.narrowed = narrowed
    return problem, scale, amount_units


def arrange(
    roots: list[int],
    nodes_of: list[list[int]],
    owner: list[int],
    children: list[tuple[int, ...]],
    weight: list[int],
    amounts: list[list[int]],
    limits: list[int | None],
    terms: list[Bonus],
) -> Problem:
    """The problem of choosing among `nodes_of`, which is emptied where no root reaches; every class that is left has a choice."""
    classes = len(nodes_of)
    reached = _closure(roots, classes, nodes_of, children)
    for c in range(classes):
        if not reached[c]:
            nodes_of[c] = []
    terms = [term for term in terms if all(reached[owner[n]] for n in term.nodes)]
    needed = _needed(roots, classes, nodes_of, children)
    free = [c for c in range(classes) if reached[c] and (terms or not (needed[c] and len(nodes_of[c]) == 1))]
    order, component = components(roots, nodes_of, children) if free else ([], [])
    users: list[list[int]] = [[] for _ in range(classes)] if free else []
    if free:
        for row in nodes_of:
            for n in row:
                for child in children[n]:
                    users[child].append(n)
        for row in users:
            row.sort()
    return Problem(roots, nodes_of, owner, children, weight, amounts, limits, terms, needed, free, order, component, users)


def _check_terms(graph: Graph) -> None:
    """Every term names nodes of the graph and a cost that is a number."""
    for index, term in enumerate(graph.terms):
        if not term.nodes or not all(0 <= n < len(graph.nodes) for n in term.nodes):
            raise ExtractionError(f"term {index} names the nodes {term.nodes}; nodes are 0 to {len(graph.nodes) - 1}")
        if math.isnan(term.cost) or term.cost == -math.inf:
            raise ExtractionError(f"the cost of term {index} is {term.cost!r}; it has to be a number or infinity")


def _can_apply(graph: Graph, term: Term) -> bool:
    """Whether the nodes of a term can be chosen together and, where it asks for that, the last be the sole consumer of the first."""
    of = {graph.nodes[n].eclass: n for n in term.nodes}
    if any(of[graph.nodes[n].eclass] != n for n in term.nodes):
        return False
    used = graph.nodes[term.nodes[0]].eclass
    return not term.sole or (used in graph.nodes[term.nodes[-1]].children and used not in graph.roots)


def _children(graph: Graph) -> list[tuple[int, ...]]:
    """Each node's distinct children, checked to be classes."""
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


def _resources(graph: Graph) -> tuple[list[list[int]], list[int], list[int | None]]:
    """Exact amounts by resource and node, their units, and the limits in the same units, rounded down, which no exact sum can tell."""
    count = graph.resources()
    for index, node in enumerate(graph.nodes):
        if node.resources and len(node.resources) != count:
            raise ExtractionError(f"node {index} has {len(node.resources)} resources where the graph has {count}")
    amounts: list[list[int]] = []
    units: list[int] = []
    limits: list[int | None] = []
    for r in range(count):
        exact = Exact.of(f"resource {r} of node", [node.resources[r] if node.resources else 0 for node in graph.nodes])
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


def _realize(classes: int, owner: list[int], children: list[tuple[int, ...]], usable: list[bool]) -> bytearray:
    """Which classes have a finite acyclic choice; nodes that can be in none become unusable."""
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


def _why(root: int, owner: list[int], children: list[tuple[int, ...]], admissible: list[bool], realized: bytearray, limited: str) -> str:
    """Follow the first cause from a root without a choice down to a class that has no node to use, or back to a class on the way."""
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


def _closure(start: Iterable[int], classes: int, nodes_of: list[list[int]], children: list[tuple[int, ...]]) -> bytearray:
    """The classes that `start` reaches through any usable node."""
    reached = bytearray(classes)
    stack = list(start)
    for c in stack:
        reached[c] = 1
    while stack:
        for n in nodes_of[stack.pop()]:
            for child in children[n]:
                if not reached[child]:
                    reached[child] = 1
                    stack.append(child)
    return reached


def _needed(roots: list[int], classes: int, nodes_of: list[list[int]], children: list[tuple[int, ...]]) -> bytearray:
    """The classes that are in every choice: roots, and what all nodes of a needed class need."""
    needed = bytearray(classes)
    stack = list(roots)
    for c in stack:
        needed[c] = 1
    while stack:
        first, *rest = nodes_of[stack.pop()]
        for child in children[first]:
            if not needed[child] and all(child in children[n] for n in rest):
                needed[child] = 1
                stack.append(child)
    return needed


def components(roots: list[int], nodes_of: list[list[int]], children: list[tuple[int, ...]]) -> tuple[list[int], list[list[int]]]:
    """Tarjan's strongly connected components of the classes, numbered so that a class's children are in no later component than itself.

    The members of a component stand after those that they lead to, but where they close a cycle.
    """
    unseen = -1
    index = [unseen] * len(nodes_of)
    low = [0] * len(nodes_of)
    order = [unseen] * len(nodes_of)
    component: list[list[int]] = []
    left: list[int] = []  # classes that are done with, but not in a component yet
    count = 0
    for root in roots:
        if index[root] != unseen:
            continue
        index[root] = low[root] = count
        count += 1
        stack = [(root, iter([child for n in nodes_of[root] for child in children[n]]))]
        while stack:
            c, rest = stack[-1]
            for child in rest:
                if index[child] == unseen:
                    index[child] = low[child] = count
                    count += 1
                    stack.append((child, iter([grandchild for n in nodes_of[child] for grandchild in children[n]])))
                    break
                if order[child] == unseen and index[child] < low[c]:
                    low[c] = index[child]
            else:
                stack.pop()
                left.append(c)
                if stack and low[c] < low[stack[-1][0]]:
                    low[stack[-1][0]] = low[c]
                if low[c] == index[c]:
                    members: list[int] = []
                    while left and index[left[-1]] >= index[c]:
                        members.append(left.pop())
                        order[members[-1]] = len(component)
                    component.append(members[::-1])
    return order, component

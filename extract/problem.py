"""The input of a search: usable nodes with exact integer weights, and the marked needed classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .components import components


@dataclass(frozen=True, slots=True)
class WeighedTerm:
    """A term in weights: where all `nodes` are chosen, `weight` is added.

    None forbids the combination. Unless `sole` is -1, it names a class that must also have exactly
    one user.
    """

    nodes: tuple[int, ...]
    weight: int | None
    sole: int


@dataclass(slots=True)
class Problem:
    """The input of a search: the classes that the roots reach, and the nodes that can be chosen.

    - `nodes_of[c]`: the usable nodes of class c; empty for classes that no root reaches.
    - `children[n]`: the distinct children of node n.
    - `weight[n]`: the weight of node n, as `Scale` encodes it.
    - `amounts[r][n]`: the use of resource r by node n.
    - `limits[r]`: the limit of resource r, or None.
    - `terms`: the terms that can apply.
    - `needed[c]`: class c is in every choice.
    - `free`: the classes with a decision to make, or that may stay unused; empty if the choice is
      forced. With terms, all classes are free.
    - `order[c]`: the strongly connected component of c, children before parents.
    - `component[i]`: the classes of component i.
    - `users[c]`: the nodes that have c as a child.
    - `narrowed`: nodes were left out because each alone exceeds a limit.

    `order`, `component` and `users` are filled only where `free` is not empty.
    """

    roots: list[int]
    nodes_of: list[list[int]]
    owner: list[int]
    children: list[tuple[int, ...]]
    weight: list[int]
    amounts: list[list[int]]
    limits: list[int | None]
    terms: list[WeighedTerm]
    needed: bytearray
    free: list[int]
    order: list[int]
    component: list[list[int]]
    users: list[list[int]]
    narrowed: bool = False

    def bound(self) -> int:
        """Return a lower bound: each needed class pays at least for its cheapest node."""
        weight = self.weight
        least = sum(min(weight[n] for n in self.nodes_of[c]) for c in range(len(self.needed)) if self.needed[c])
        return least + sum(term.weight for term in self.terms if term.weight is not None and term.weight < 0)

    def is_excluded(self, n: int) -> bool:
        """Tell whether node n costs infinity or exceeds a limit alone."""
        over = any(limit is not None and amount[n] > limit for amount, limit in zip(self.amounts, self.limits, strict=True))
        return over or self.weight[n] < 0

    def heaviest(self) -> int:
        """Return more than the weight of any choice that no term forbids."""
        return 1 + sum(max(self.weight[n] for n in row) for row in self.nodes_of if row) + sum(abs(term.weight or 0) for term in self.terms)

    def reached(self, pick: Sequence[int] | Mapping[int, int]) -> list[int]:
        """Return the nodes that the roots reach through `pick` (by class)."""
        seen = dict.fromkeys(self.roots)
        stack = list(seen)
        while stack:
            for child in self.children[pick[stack.pop()]]:
                if child not in seen:
                    seen[child] = None
                    stack.append(child)
        return [pick[c] for c in seen]

    def weigh(self, nodes: Sequence[int]) -> int | None:
        """Return the weight of a choice, terms included, or None if a term forbids it."""
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
        """Tell whether the nodes of a choice are within the limits."""
        return self.fits([sum(amount[n] for n in nodes) for amount in self.amounts])

    def fits(self, totals: Sequence[int]) -> bool:
        """Tell whether resource totals are within the limits."""
        return all(limit is None or total <= limit for total, limit in zip(totals, self.limits, strict=True))


def arrange(
    roots: list[int],
    nodes_of: list[list[int]],
    owner: list[int],
    children: list[tuple[int, ...]],
    weight: list[int],
    amounts: list[list[int]],
    limits: list[int | None],
    terms: list[WeighedTerm],
) -> Problem:
    """Build the problem of choosing among `nodes_of`, in which every reached class has a choice.

    The rows of `nodes_of` for classes that no root reaches are emptied.
    """
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


def _closure(start: Iterable[int], classes: int, nodes_of: list[list[int]], children: list[tuple[int, ...]]) -> bytearray:
    """Mark the classes that `start` reaches through usable nodes."""
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
    """Mark the classes of every choice.

    They are the roots, and the common children of a needed class's nodes.
    """
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

"""Cut a problem into independent parts, each with its own classes and nodes.

Edges and terms connect classes. An edge to a child that is in every choice connects nothing, with
two exceptions: the child lies on a cycle with its user, or a term counts the child's users.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .kernel import Closures, Kernel
from .problem import Problem, arrange

LARGEST = 20_000
"""The largest part, in classes: closures take a number of bits that is the square of this."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some classes of a problem, with the children that matter for each of their nodes."""

    problem: Problem
    classes: list[int]
    children: dict[int, tuple[int, ...]]
    has_terms: bool

    def kernel(self) -> Kernel:
        """Return the part renumbered, with weights only."""
        number = {c: local for local, c in enumerate(self.classes)}
        rows = [self.problem.nodes_of[c] for c in self.classes]
        nodes = [n for row in rows for n in row]
        positions = iter(range(len(nodes)))
        ways = [[next(positions) for _ in row] for row in rows]
        children = [tuple(number[child] for child in self.children[n]) for n in nodes]
        roots = [number[c] for c in self.classes if self.problem.needed[c]]
        return Kernel(roots, ways, [self.problem.weight[n] for n in nodes], children, [(n,) for n in nodes])

    def with_terms(self) -> tuple[Problem, list[int]]:
        """Return the part renumbered, with terms but no limits, and its original nodes."""
        kernel = self.kernel()
        nodes = [n for (n,) in kernel.picks]
        local = {n: way for way, n in enumerate(nodes)}
        number = {c: index for index, c in enumerate(self.classes)}
        terms = [
            replace(term, nodes=tuple(local[n] for n in term.nodes), sole=number[term.sole] if term.sole >= 0 else -1)
            for term in self.problem.terms
            if term.nodes[0] in local
        ]
        return without_cyclic_nodes(arrange(kernel.roots, kernel.ways, kernel.owner, kernel.children, kernel.weight, [], [], terms)), nodes


def without_cyclic_nodes(problem: Problem) -> Problem:
    """Drop the nodes that are cyclic in every choice.

    They are the most expensive ones for the solver.
    """
    if len(problem.nodes_of) > LARGEST:
        return problem
    kernel = Kernel(problem.roots, [list(row) for row in problem.nodes_of], problem.weight, problem.children, [])
    before = kernel.size()
    while kernel.drop_cyclic(Closures(kernel)):
        kernel.prune()
    if kernel.size() == before:
        return problem
    left = {n for row in kernel.ways for n in row}
    terms = [term for term in problem.terms if left.issuperset(term.nodes)]
    return arrange(problem.roots, kernel.ways, problem.owner, problem.children, problem.weight, problem.amounts, problem.limits, terms)


def parts(problem: Problem) -> Iterator[Part]:
    """Yield the independent parts of a problem's free classes.

    Each class outside all parts has one node, which is in every choice.
    """
    if not problem.free:
        return
    order, needed, owner, nodes_of = problem.order, problem.needed, problem.owner, problem.nodes_of
    counted = {term.sole for term in problem.terms if term.sole >= 0}
    named = {owner[n] for term in problem.terms for n in term.nodes} | {owner[n] for c in counted for n in problem.users[c]}
    members = [c for c, row in enumerate(nodes_of) if row and (c in named or len(row) > 1 or not needed[c] or len(problem.component[order[c]]) > 1)]
    kept: dict[int, tuple[int, ...]] = {}
    parent = {c: c for c in members}

    def find(c: int) -> int:
        while parent[c] != c:
            parent[c] = parent[parent[c]]
            c = parent[c]
        return c

    for c in members:
        for n in nodes_of[c]:
            kept[n] = tuple(child for child in problem.children[n] if not needed[child] or order[child] == order[c] or child in counted)
            for child in kept[n]:
                parent[find(child)] = find(c)
    for term in problem.terms:
        for n in term.nodes:
            parent[find(owner[n])] = find(owner[term.nodes[0]])
    groups: dict[int, list[int]] = {}
    for c in members:
        groups.setdefault(find(c), []).append(c)
    with_terms = {find(c) for c in named}
    for group, classes in groups.items():
        yield Part(problem, classes, kept, group in with_terms)

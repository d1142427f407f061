"""A problem cut into parts that have nothing to do with each other, each with classes and nodes of its own.

A child that is in every choice decides nothing, unless it could need its user (then it lies on a cycle with it) or its users are counted by a term. All
other edges hold classes together, and so do terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .kernel import Closures, Kernel
from .problem import Problem, arrange

LARGEST = 20_000
"""Classes in a part, above which closures (their number squared in bits) would take too much memory."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some classes of a problem, for each of their nodes the children that matter, and whether terms count any of the nodes."""

    problem: Problem
    classes: list[int]
    children: dict[int, tuple[int, ...]]
    has_terms: bool

    def kernel(self) -> Kernel:
        """The part, numbered anew, by weights alone."""
        number = {c: local for local, c in enumerate(self.classes)}
        rows = [self.problem.nodes_of[c] for c in self.classes]
        nodes = [n for row in rows for n in row]
        positions = iter(range(len(nodes)))
        ways = [[next(positions) for _ in row] for row in rows]
        children = [tuple(number[child] for child in self.children[n]) for n in nodes]
        roots = [number[c] for c in self.classes if self.problem.needed[c]]
        return Kernel(roots, ways, [self.problem.weight[n] for n in nodes], children, [(n,) for n in nodes])

    def with_terms(self) -> tuple[Problem, list[int]]:
        """The part, numbered anew, with its terms and without limits; and its nodes, by their new numbers."""
        kernel = self.kernel()
        nodes = [n for (n,) in kernel.picks]
        local = {n: way for way, n in enumerate(nodes)}
        number = {c: index for index, c in enumerate(self.classes)}
        terms = [
            replace(term, nodes=tuple(local[n] for n in term.nodes), sole=number[term.sole] if term.sole >= 0 else -1)
            for term in self.problem.terms
            if term.nodes[0] in local
        ]
        return unwound(arrange(kernel.roots, kernel.ways, kernel.owner, kernel.children, kernel.weight, [], [], terms)), nodes


def unwound(problem: Problem) -> Problem:
    """The problem without the nodes that lead back to their own class whatever is chosen below: no choice has them, and they cost the solver most."""
    if len(problem.nodes_of) > LARGEST:
        return problem
    kernel = Kernel(problem.roots, [list(row) for row in problem.nodes_of], problem.weight, problem.children, [])
    before = kernel.size()
    while kernel.unwind(Closures(kernel)):
        kernel.prune()
    if kernel.size() == before:
        return problem
    left = {n for row in kernel.ways for n in row}
    terms = [term for term in problem.terms if left.issuperset(term.nodes)]
    return arrange(problem.roots, kernel.ways, problem.owner, problem.children, problem.weight, problem.amounts, problem.limits, terms)


def parts(problem: Problem) -> Iterator[Part]:
    """The parts of what is free in a problem; classes that are in none have one node, which is in every choice."""
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

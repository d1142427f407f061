"""The best choice by a sum of weights alone: reduced, cut into independent problems, each searched, and proved or handed to the exact solver.

A part of which a bound shows that the search found the best costs no solver, whose import alone takes longer than most graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .blocks import Block, blocks
from .kernel import Closures, Kernel, bits, reduce
from .parts import LARGEST
from .problem import Problem, arrange
from .proving import improve
from .search import Budget, Search
from .work import Work


@dataclass(slots=True)
class Solution:
    """Nodes whose weights sum to `weight`, and a weight that no choice undercuts."""

    weight: int
    bound: int
    picks: tuple[int, ...]


def solve(kernel: Kernel, work: Work) -> Solution:
    """The best choice of a kernel that is found, which no bound of its own can exceed."""
    if len(kernel.ways) > LARGEST:
        problem, ways = _searched(kernel, work)
        return _solution(kernel, ways, problem.bound())
    closures = reduce(kernel)
    cuts = list(blocks(kernel, closures))
    # Every class but a single root is in one block as other than its top.
    if sum(1 for block in cuts if block.classes) == 1:
        return _hard(kernel, closures, work)
    return _assembled(kernel, closures, cuts, work)


def joined(parts: Sequence[Solution]) -> Solution:
    """The solutions of independent parts as one."""
    picks = tuple(n for part in parts for n in part.picks)
    return Solution(sum(part.weight for part in parts), sum(part.bound for part in parts), picks)


def _assembled(kernel: Kernel, closures: Closures, cuts: list[Block], work: Work) -> Solution:
    """Solve the blocks from the bottom up, each with what is known of those below it."""
    weight, picks = list(kernel.weight), list(kernel.picks)
    below: dict[int, Solution] = {}  # the best of what hangs below a class
    gaps = 0  # by how much less than what stands for them the blocks below could weigh, all together
    tops: list[Solution] = []
    for block in cuts:
        if block.top_class >= 0:
            roots = [block.top_class]
        elif block.top_way >= 0:
            members = set(block.classes)
            roots = [c for c in kernel.children[block.top_way] if c in members]
        else:
            roots = [c for c in block.classes if closures.needed >> c & 1]
        inside = {c: index for index, c in enumerate(dict.fromkeys([*roots, *block.classes]))}
        ways: list[list[int]] = [[] for _ in inside]
        weights: list[int] = []
        rows: list[tuple[int, ...]] = []
        chosen: list[tuple[int, ...]] = []
        for n in block.ways:
            ways[inside[kernel.owner[n]]].append(len(weights))
            weights.append(weight[n])
            rows.append(tuple(inside[child] for child in kernel.children[n] if child in inside))
            chosen.append(picks[n])
        for c in block.classes:
            if c in below:
                ways[inside[c]].append(len(weights))
                weights.append(below[c].weight)
                rows.append(())
                chosen.append(below[c].picks)
        found = _block(Kernel([inside[c] for c in roots], ways, weights, rows, chosen), work)
        gaps += found.weight - found.bound
        if block.top_class >= 0:
            below[block.top_class] = min(below.get(block.top_class, found), found, key=lambda solution: solution.weight)
        elif block.top_way >= 0:
            weight[block.top_way] += found.weight
            picks[block.top_way] += found.picks
        else:
            tops.append(found)
    # Where one class is needed alone, it is the top of all.
    total = joined(tops or [below[c] for c in bits(closures.needed)])
    return Solution(total.weight, total.weight - gaps, total.picks)


def _block(kernel: Kernel, work: Work) -> Solution:
    """Most blocks are one edge: then the choice is among ways without children."""
    if not any(kernel.children):
        best = [min(kernel.ways[c], key=lambda n: kernel.weight[n]) for c in kernel.roots]
        total = sum(kernel.weight[n] for n in best)
        return Solution(total, total, tuple(pick for n in best for pick in kernel.picks[n]))
    return solve(kernel, work)


def _hard(kernel: Kernel, closures: Closures, work: Work) -> Solution:
    """Search; drop what the result shows to be too heavy, and begin anew where that was something; else improve or prove it by the solver."""
    problem, ways = _searched(kernel, work)
    found, bound = _solution(kernel, ways), kernel.bound(closures)
    if found.weight == bound:
        return Solution(found.weight, bound, found.picks)
    if kernel.bounded(closures, found.weight, set(ways)):
        again = solve(kernel, work)
        return again if again.weight < found.weight else Solution(found.weight, min(again.bound, found.weight), found.picks)
    ways, proved = improve(problem, ways, found.weight, work)
    found = _solution(kernel, ways)
    return Solution(found.weight, bound if proved is None else max(bound, proved), found.picks)


def _searched(kernel: Kernel, work: Work) -> tuple[Problem, list[int]]:
    """A kernel as a problem, and the ways that the heuristic chooses."""
    problem = arrange(kernel.roots, [list(row) for row in kernel.ways], kernel.owner, kernel.children, kernel.weight, [], [], [])
    search = Search(problem, Budget.of(problem, work.deadline, fraction=work.fraction))
    search.start()
    search.improve()
    return problem, problem.reached(search.pick)


def _solution(kernel: Kernel, ways: Sequence[int], bound: int = 0) -> Solution:
    return Solution(sum(kernel.weight[n] for n in ways), bound, tuple(node for n in ways for node in kernel.picks[n]))

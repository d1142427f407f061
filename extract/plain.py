"""Solve a kernel, whose objective is a sum of weights alone.

The kernel is reduced and cut into blocks, and each block is searched. Where the bound does not
prove the result, `proving` improves it. Blocks that the bound proves never load the solver, whose
import alone takes longer than most graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .blocks import Block, blocks
from .budget import Budget
from .kernel import Closures, Kernel, bits, reduce
from .parts import LARGEST
from .problem import Problem, arrange
from .proving import improve
from .search import Search
from .work import Work


@dataclass(slots=True)
class Solution:
    """Chosen nodes, their weight, and a lower bound on the weight of every choice."""

    weight: int
    bound: int
    picks: tuple[int, ...]


def solve(kernel: Kernel, work: Work) -> Solution:
    """Return the best choice of a kernel that was found, with a valid bound."""
    if len(kernel.ways) > LARGEST:
        problem, ways = _searched(kernel, work)
        return _solution(kernel, ways, problem.bound())
    closures = reduce(kernel)
    cuts = list(blocks(kernel, closures))
    # Every class except a single root is below the top of exactly one block.
    if sum(1 for block in cuts if block.classes) == 1:
        return _hard(kernel, closures, work)
    return _assembled(kernel, closures, cuts, work)


def joined(parts: Sequence[Solution]) -> Solution:
    """Join the solutions of independent parts."""
    picks = tuple(n for part in parts for n in part.picks)
    return Solution(sum(part.weight for part in parts), sum(part.bound for part in parts), picks)


def _assembled(kernel: Kernel, closures: Closures, cuts: list[Block], work: Work) -> Solution:
    """Solve the blocks bottom up, with the solutions of lower blocks in their place."""
    weight, picks = list(kernel.weight), list(kernel.picks)
    # The best solution for each class that is the top of a block.
    below: dict[int, Solution] = {}
    # The sum of (weight - bound) over the solved blocks.
    gaps = 0
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
    # A single needed class is the top of the last block.
    total = joined(tops or [below[c] for c in bits(closures.needed)])
    return Solution(total.weight, total.weight - gaps, total.picks)


def _block(kernel: Kernel, work: Work) -> Solution:
    """Solve a block. Most blocks are one edge, which leaves only ways without children."""
    if not any(kernel.children):
        best = [min(kernel.ways[c], key=lambda n: kernel.weight[n]) for c in kernel.roots]
        total = sum(kernel.weight[n] for n in best)
        return Solution(total, total, tuple(pick for n in best for pick in kernel.picks[n]))
    return solve(kernel, work)


def _hard(kernel: Kernel, closures: Closures, work: Work) -> Solution:
    """Search, drop the ways that the result rules out, and start again.

    If nothing was dropped, improve or prove the result.
    """
    bound = kernel.bound(closures)
    problem, ways = _searched(kernel, work, bound)
    found = _solution(kernel, ways)
    if work.accept(found.weight, bound):
        return Solution(found.weight, bound, found.picks)
    if kernel.drop_heavy(closures, found.weight, set(ways)):
        again = solve(kernel, work)
        return again if again.weight < found.weight else Solution(found.weight, min(again.bound, found.weight), found.picks)
    ways, proved = improve(problem, ways, found.weight, work)
    found = _solution(kernel, ways)
    return Solution(found.weight, bound if proved is None else max(bound, proved), found.picks)


def _searched(kernel: Kernel, work: Work, bound: int = 0) -> tuple[Problem, list[int]]:
    """Return a kernel as a problem, and the ways that the heuristic search chooses.

    The search ends when they are good enough for the bound.
    """
    problem = arrange(kernel.roots, [list(row) for row in kernel.ways], kernel.owner, kernel.children, kernel.weight, [], [], [])
    search = Search(problem, Budget.of(problem, work.deadline, fraction=work.fraction))
    search.start()
    search.improve(lambda: work.enough(search.total, bound))
    return problem, problem.reached(search.pick)


def _solution(kernel: Kernel, ways: Sequence[int], bound: int = 0) -> Solution:
    return Solution(sum(kernel.weight[n] for n in ways), bound, tuple(node for n in ways for node in kernel.picks[n]))

"""The state of a search: its test for cycles knows the picks of this moment."""

from __future__ import annotations

import contextlib
from random import Random

import pytest

from eqsat.extract import ExtractionError, Graph, Node
from eqsat.extract.budget import Budget
from eqsat.extract.preparation import prepare
from eqsat.extract.problem import Problem
from eqsat.extract.search import Search
from tests.support.drawn_graphs import FAMILIES, drawn


def reaches(search: Search, n: int, c: int) -> bool:
    """Tells by a plain walk whether the children of node n reach class c through picks."""
    stack, seen = list(search.problem.children[n]), set[int]()
    while stack:
        here = stack.pop()
        if here == c:
            return True
        if here not in seen:
            seen.add(here)
            stack += search.problem.children[search.pick[here]]
    return False


@pytest.mark.parametrize("shape", sorted(FAMILIES))
def test_a_node_closes_a_cycle_if_its_children_reach_its_class(shape: str) -> None:
    draw = Random(f"cycles {shape}")
    asked = moved = closed = 0
    problems: list[Problem] = []
    for _ in range(60):
        with contextlib.suppress(ExtractionError):  # not every graph has a choice
            problems.append(prepare(drawn(draw, shape, "integers"), None)[0])
    for problem in problems:
        search = Search(problem, Budget.of(problem, None))
        search.start()
        for _ in range(40):
            if not search.contended:
                break
            c = draw.choice(search.contended)
            n = draw.choice(problem.nodes_of[c])
            closes = search.closes_cycle(c, n)
            assert closes == reaches(search, n, c)
            part = problem.component[problem.order[c]]
            if len(part) > 1:
                assert search.users(c) == {other for other in part if other == c or reaches(search, search.pick[other], c)}
            asked, closed = asked + 1, closed + closes
            if not closes and n != search.pick[c]:
                moved += 1
                if search.refs[c]:
                    search.move(c, n)
                else:
                    search.repick(c, n)
            if not draw.randrange(12):
                search.resettle()
    assert moved or not asked
    assert closed or shape not in ("rings", "inverses", "wild")


@pytest.mark.parametrize("weight", [1.0, 0.5])  # 0.5: each of these nodes would be better, but closes a cycle
def test_a_class_with_a_node_for_each_value_takes_steps_in_proportion(weight: float) -> None:
    """All values of a chain need their common shape, and each is one more way to compute it."""
    steps: list[int] = []
    for length in (200, 400):
        shape, source = 0, 1
        nodes = [Node(source, 0.0, ()), Node(shape, 1.0, (source,))]
        for value in range(2, length + 2):
            nodes += [Node(value, 1.0, (value - 1, shape)), Node(value, 2.0, (value - 1,)), Node(shape, weight, (value,))]
        problem = prepare(Graph(length + 2, nodes, [length + 1, source, shape]), None)[0]
        search = Search(problem, Budget.of(problem, None))
        search.start()
        before = search.budget.steps
        search.sweep()
        steps.append(before - search.budget.steps)
    assert steps[1] < 3 * steps[0]

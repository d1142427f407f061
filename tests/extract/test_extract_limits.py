"""Limits on resources, against exhaustive search: choices keep them exactly.

The tests cover the choices within limits, their proofs and the messages about them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from eqsat.extract import ExtractionError, Graph, Node, Unlimited, extract
from eqsat.extract.preparation import prepare
from eqsat.extract.solver import solve
from eqsat.extract.work import Work
from tests.support.brute import assert_right, few_choices, fits, floats, lawful, price, used
from tests.support.drawn_graphs import FAMILIES, drawn, with_resources
from tests.support.parameters import spread


def drawn_limits(draw: Random, shape: str, count: int, kind: str | None = None) -> tuple[Graph, list[dict[int, int]]]:
    """Returns a graph with limits that some choices just meet or miss, and all its choices."""
    while True:
        graph = drawn(draw, shape, kind, ties=draw.random() < 0.4)
        choices = few_choices(graph, 250)
        if choices:
            graph = with_resources(draw, graph, count)
            met = [draw.choice([float(used(graph, picks, r)) for picks in choices]) for r in range(count)]
            limits = [draw.choice([limit, limit, math.nextafter(limit, 0.0)]) for limit in met]
            if count > 1 and draw.random() < 0.3:
                limits[draw.randrange(count)] = math.inf
            return replace(graph, limits=tuple(limits)), choices


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_exact_equals_exhaustive_search(shape: str, count: int) -> None:
    draw = Random(f"limits {shape} {count}")
    for _ in range(50):
        graph, choices = drawn_limits(draw, shape, count)
        if lawful(graph, choices):
            initial = draw.choice([None, draw.choice(choices)])
            found = extract(graph, initial=initial)
            # Other tests below cover `bound_for`.
            assert_right(graph, choices, replace(found, bound_for="choices within the limits"))
        else:
            with pytest.raises(ExtractionError, match="within the limits") as raised:
                extract(graph)
            assert "no proof" not in str(raised.value)


@pytest.mark.parametrize("work", [20.0, 0.0])
@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_what_was_found_without_limits_changes_no_choice(shape: str, work: float) -> None:
    draw = Random(f"unlimited {shape}")
    for _ in range(30):
        graph, choices = drawn_limits(draw, shape, draw.choice([1, 2]))
        if lawful(graph, choices):
            initial, known, free = draw.choice([None, draw.choice(choices)]), Unlimited(), replace(graph, limits=(math.inf,) * len(graph.limits))
            for limits in draw.sample([free, graph], 2):
                assert extract(limits, initial=initial, work=work, unlimited=known) == extract(limits, initial=initial, work=work)


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_greedy_keeps_the_limits_and_what_is_known(shape: str) -> None:
    draw = Random(f"greedy limits {shape}")
    for _ in range(60):
        graph, choices = drawn_limits(draw, shape, draw.choice([1, 2]))
        found = lawful(graph, choices)
        if not found:
            continue
        begun, initial = draw.choice(found)
        choice = extract(graph, method="greedy", initial=initial)
        assert_right(graph, choices, replace(choice, bound_for="choices within the limits"), optimal=False)
        reached = price(graph, choice.nodes)
        assert reached is not None and reached <= begun


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_a_bound_for_all_choices_holds_for_those_beyond_the_limits(shape: str) -> None:
    draw = Random(f"bounds {shape}")
    for _ in range(60):
        graph, choices = drawn_limits(draw, shape, 1)
        if lawful(graph, choices):
            assert_right(graph, choices, extract(graph))


def test_a_bound_says_that_a_node_too_large_alone_was_left_out() -> None:
    choice = extract(Graph(1, [Node(0, 1.0, (), (3.0,)), Node(0, 5.0, (), (1.0,))], [0], (2.0,)))
    assert (choice.cost, choice.status) == (5.0, "optimal")
    assert choice.bound <= 1.0 or choice.bound_for == "choices within the limits"


def solved_alone(graph: Graph, choices: list[dict[int, int]]) -> bool | None:
    """Compares the solver's result and proof, from any choice, with the exhaustive search.

    Returns None if there is nothing to decide.
    """
    try:
        problem, scale, _ = prepare(graph)
    except ExtractionError:
        assert not lawful(graph, choices)
        return None
    starts = [list(picks.values()) for picks in choices if all(n in problem.nodes_of[c] for c, n in picks.items())]
    if not problem.free or not starts:
        return None
    found = lawful(graph, choices)
    if not found:
        with pytest.raises(ExtractionError, match="no choice is within the limits"):
            solve(problem, starts[0], None, Work(None, 5.0))
        return False
    nodes, bound = solve(problem, starts[0], problem.weigh(starts[0]) if problem.allows(starts[0]) else None, Work(None, 5.0))
    picks = {problem.owner[n]: n for n in nodes}
    assert fits(graph, picks), graph
    best = min(exact for exact, _ in found)
    assert price(graph, picks) == best, graph
    assert bound is not None and bound == problem.weigh(nodes) and scale.costs(bound) == floats(best), graph
    return True


@pytest.mark.parametrize("kind", spread(["integers", "mantissas"]))
def test_the_solver_alone_finds_and_proves_the_best(kind: str) -> None:
    draw = Random(f"solver limits {kind}")
    results = [solved_alone(*drawn_limits(draw, draw.choice(sorted(FAMILIES)), draw.choice([1, 2]), kind)) for _ in range(250)]
    assert results.count(True) > 150
    assert results.count(False) > 3


@pytest.mark.slow
def test_the_solver_adds_up_amounts_of_many_bits() -> None:
    """Amounts have 53-bit mantissas, so the solver receives integers of as many bits."""
    draw = Random(5)
    solved = 0
    for _ in range(500):
        graph = FAMILIES[draw.choice(sorted(FAMILIES))](draw, lambda: float(draw.randint(0, 9)))
        choices = few_choices(graph, 150)
        if choices:
            large = draw.uniform(2.0, 3.0)
            amounts = [large, large, 1.0 + 2.0**-52, 1.0, 2.0, 0.0]
            nodes = [replace(node, resources=(draw.choice(amounts),)) for node in graph.nodes]
            graph = replace(graph, nodes=nodes)
            graph = replace(graph, limits=(float(used(graph, draw.choice(choices), 0)),))
            solved += solved_alone(graph, choices) is True
    assert solved > 300


def test_the_solver_does_not_lose_the_choice_that_just_fits() -> None:
    """The best choice uses 4.9 of 5.9. The solver once proved that none costs less than 35.

    Random graphs showed it.
    """
    large = 2.9090350266556815
    rows: list[tuple[int, float, tuple[int, ...], float]] = [
        (3, 14.0, (), 1.0 + 2.0**-52),
        (4, 16.0, (), large),
        (0, 5.0, (3, 4), 1.0),
        (0, 1.0, (4,), 1.0),
        (0, 4.0, (), 1.0),
        (1, 0.0, (3,), large),
        (1, 0.0, (3,), 2.0),
        (1, 10.0, (), 1.0),
        (2, 8.0, (4,), 1.0),
        (2, 5.0, (3,), 2.0),
        (2, 8.0, (), 1.0 + 2.0**-52),
    ]
    graph = Graph(5, [Node(c, cost, children, (amount,)) for c, cost, children, amount in rows], [0, 1, 2], (large + 3.0,))
    assert solved_alone(graph, few_choices(graph) or [])


def folding(sizes: list[float], *, other_use: bool, room: float) -> tuple[Graph, dict[int, int]]:
    """Returns a chain of products by transposed weights.

    Storing the transposed weight saves a node. With another use of the weight, the weight stays
    stored too.
    """
    nodes, roots, initial = [Node(0, 0.0, ())], list[int](), {0: 0}
    for i, size in enumerate(sizes):
        weight, transposed, product, other = (4 * i + k for k in (1, 2, 3, 4))
        initial |= {weight: len(nodes), transposed: len(nodes) + 1, product: len(nodes) + 2}
        nodes += [Node(weight, 0.0, (), (size,)), Node(transposed, 1.0, (weight,)), Node(product, 1.0, (max(0, 4 * i - 1), transposed))]
        nodes += [Node(transposed, 0.0, (), (size,)), Node(other, 1.0, (weight,))]
        if other_use:
            initial[other] = len(nodes) - 1
            roots.append(other)
    return Graph(4 * len(sizes) + 1, nodes, [4 * len(sizes) - 1, *roots], (sum(sizes) + room,)), initial


def test_folding_what_frees_the_original_always_fits() -> None:
    graph, _ = folding([5.0, 7.0, 11.0], other_use=False, room=0.0)
    choice = extract(graph)
    assert (choice.cost, choice.resources, choice.status) == (3.0, (23.0,), "optimal")


@pytest.mark.parametrize("room", [0.0, 3.0, 40.0, 400.0, 4000.0])
def test_limited_folding_folds_the_smallest_first(room: float) -> None:
    draw = Random(3)
    sizes = [float(draw.randint(1, 60)) for _ in range(60)]
    graph, initial = folding(sizes, other_use=True, room=room)
    folded, left = 0, room
    for size in sorted(sizes):
        left -= size
        folded += left >= 0
    for choice in (extract(graph), extract(graph, initial=initial)):
        assert choice.cost == 3 * len(sizes) - folded
        assert choice.resources[0] <= graph.limits[0]


def test_equal_folds_fill_the_room() -> None:
    graph, _ = folding([8.0] * 12, other_use=True, room=47.0)
    assert extract(graph).cost == 36 - 5


def test_a_limit_is_not_exceeded_by_a_rounding_error() -> None:
    # Three times the decimal 0.1 is 0.3. As floats, the exact sum is more than 0.3, and so is the
    # rounded one.
    leaves = [Node(c, 0.0, (), (0.1,)) for c in range(3)] + [Node(c, 1.0, (), (0.0,)) for c in range(3)]
    assert extract(Graph(3, leaves, [0, 1, 2], (0.3,))).cost == 1.0
    assert extract(Graph(3, leaves, [0, 1, 2], (0.1 + 0.1 + 0.1,))).cost == 0.0
    # 1e16 + 1 is 1e16 as a float, so a sum of floats would accept this.
    huge = [Node(0, 0.0, (), (1e16,)), Node(1, 0.0, (), (1.0,))]
    with pytest.raises(ExtractionError, match="every one uses at least"):
        extract(Graph(2, huge, [0, 1], (1e16,)))


def test_no_time_gives_a_valid_choice_no_worse_than_the_initial_one() -> None:
    draw = Random(11)
    graph, initial = folding([float(draw.randint(1, 60)) for _ in range(60)], other_use=True, room=100.0)
    assert extract(graph, initial=initial, time_limit=0).cost <= 180
    assert extract(graph, time_limit=0).cost <= 180


def test_an_initial_choice_of_infinite_cost_or_beyond_the_limits_is_only_a_start() -> None:
    nodes = [Node(0, math.inf, ()), Node(0, 5.0, (), (1.0,)), Node(0, 1.0, (), (9.0,))]
    assert extract(Graph(1, nodes, [0], (4.0,)), initial={0: 0}).nodes == {0: 1}
    assert extract(Graph(1, nodes, [0], (4.0,)), initial={0: 2}).nodes == {0: 1}

"""The extractor against exhaustive search on thousands of small random e-graphs.

A result that it calls optimal is the best, and no bound is above the best.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from random import Random

import pytest

from eqsat.extract import Choice, ExtractionError, Graph, Node, extract
from eqsat.extract.budget import Budget
from eqsat.extract.graph import walk
from eqsat.extract.preparation import prepare
from eqsat.extract.search import Search
from eqsat.extract.solver import solve
from eqsat.extract.work import Work
from tests.support.brute import Price, all_choices, assert_right, few_choices, floats, lawful, price, tree_price
from tests.support.drawn_graphs import COSTS, FAMILIES, drawn
from tests.support.parameters import spread


def seed(*names: object) -> Random:
    """Returns a source of randomness that depends on the names alone."""
    return Random(" ".join(map(str, names)))


def choices_of(draw: Random, shape: str, kind: str | None = None, *, ties: bool = False, most: int = 150) -> tuple[Graph, list[dict[int, int]]]:
    """Returns a graph that has few choices, and at least one."""
    while True:
        graph = drawn(draw, shape, kind, ties=ties)
        choices = few_choices(graph, most)
        if choices:
            return graph, choices


@pytest.mark.parametrize("kind", sorted(COSTS))
@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_exact_equals_exhaustive_search(shape: str, kind: str) -> None:
    draw = seed("exact", shape, kind)
    for _ in range(40):
        graph = drawn(draw, shape, kind, ties=draw.random() < 0.5)
        choices = few_choices(graph, 200)
        if choices:
            assert_right(graph, choices, extract(graph))
        elif choices is not None:
            with pytest.raises(ExtractionError, match=r"class \d+, needed by root \d+, can not be chosen"):
                extract(graph)


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_greedy_is_a_choice_never_below_the_best(shape: str) -> None:
    draw = seed("greedy", shape)
    best = 0
    for _ in range(50):
        graph, choices = choices_of(draw, shape, ties=True)
        initial = draw.choice([None, draw.choice(choices)])
        found = extract(graph, method="greedy", initial=initial)
        assert_right(graph, choices, found, optimal=False)
        if initial is not None:
            begun, reached = price(graph, initial), price(graph, found.nodes)
            assert begun is not None and reached is not None and reached <= begun
        best += (found.cost, found.tie) == floats(min(exact for exact, _ in lawful(graph, choices)))
    assert best >= 45, f"{best} of 50"


def searched(graph: Graph, start: dict[int, int] | None) -> Price:
    """Returns the price that the search reaches from `start` alone, or from nothing."""
    problem, _, _ = prepare(graph)
    search = Search(problem, Budget.of(problem, None))
    if start is None:
        search.start()
    else:
        search.adopt(start)
    search.improve()
    assert search.total + sum(problem.weight[row[0]] for c, row in enumerate(problem.nodes_of) if row and c not in problem.free) == problem.weigh(
        problem.reached(search.pick)
    )
    found = price(graph, walk(graph, dict(enumerate(search.pick))))
    assert found is not None
    return found


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_local_search_is_never_below_the_best_nor_worse_than_its_start(shape: str) -> None:
    draw = seed("search", shape)
    for _ in range(50):
        graph, choices = choices_of(draw, shape, ties=True)
        best = min(exact for exact, _ in lawful(graph, choices))
        start = draw.choice(choices)
        begun = price(graph, start)
        assert begun is not None
        assert best <= searched(graph, start) <= begun, graph
        assert best <= searched(graph, None), graph


def distinct_children(graph: Graph) -> Graph:
    return Graph(graph.classes, [Node(n.eclass, n.cost, tuple(dict.fromkeys(n.children)), (), n.tie) for n in graph.nodes], graph.roots)


@pytest.mark.parametrize("shape", ["layered", "merged", "threaded", "tree", "wild", "inverses", "rings"])
def test_tree_takes_the_least_tree_of_every_root(shape: str) -> None:
    draw = seed("tree", shape)
    for _ in range(60):
        graph, choices = choices_of(draw, shape, ties=True)
        graph = distinct_children(graph)
        found = extract(graph, method="tree")
        assert_right(graph, choices, found, optimal=False)
        for root in graph.roots:
            least = min(tree_price(graph, picks, root) for picks in choices)
            assert tree_price(graph, found.nodes, root) == least, graph


def test_tree_cost_above_the_weight_of_everything_is_told_apart() -> None:
    """A ladder of doublings costs 2 ** 6 as a tree and 7 as a graph.

    The cost of the leaf is between.
    """
    ladder = [Node(0, 1.0, ()), *(Node(2 * k + 2, 1.0, (2 * k, 2 * k + 1)) for k in range(6)), *(Node(2 * k + 1, 0.0, (2 * k,)) for k in range(6))]
    graph = Graph(14, [*ladder, Node(13, 0.0, (12,)), Node(13, 60.0, ())], [13])
    assert extract(graph, method="tree").cost == 60
    assert extract(graph).cost == 7


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_the_initial_choice_is_kept_where_nothing_is_better(shape: str) -> None:
    draw = seed("initial", shape)
    for _ in range(50):
        graph, choices = choices_of(draw, shape, draw.choice(["ones", "few", "integers", "decimals"]), ties=draw.random() < 0.3)
        prices = lawful(graph, choices)
        best = min(exact for exact, _ in prices)
        # Extraction ignores entries that the roots do not reach.
        initial = draw.choice(choices)
        found = extract(graph, initial={c: n for n, c in enumerate(node.eclass for node in graph.nodes)} | initial)
        assert_right(graph, choices, found)
        kept = set(initial.values())
        fewest = min(len(set(picks.values()) - kept) for exact, picks in prices if exact == best)
        assert len(set(found.nodes.values()) - kept) == fewest, (graph, initial)


@pytest.mark.parametrize("exponents", [(-1000, 990), (-60, 60), (-30, 0)])
def test_costs_of_very_unequal_magnitude(exponents: tuple[int, int]) -> None:
    draw = seed(exponents)
    for _ in range(120):
        graph = FAMILIES[draw.choice(sorted(FAMILIES))](draw, lambda: draw.random() * 2.0 ** draw.randint(*exponents))
        choices = few_choices(graph, 300)
        if choices:
            assert_right(graph, choices, extract(graph))


def heaviest(graph: Graph, choices: list[dict[int, int]]) -> dict[int, int]:
    return max(choices, key=lambda picks: price(graph, picks) or (Fraction(0), Fraction(0)))


@pytest.mark.parametrize("kind", spread(["integers", "near", "mantissas"]))
def test_the_solver_alone_finds_and_proves_the_best_from_the_worst(kind: str) -> None:
    """Sums of 53-bit mantissas with ties below them exceed the first model. The second decides."""
    draw = seed("solver", kind)
    solved = 0
    for _ in range(150):
        graph, choices = choices_of(draw, draw.choice(sorted(FAMILIES)), kind, ties=True)
        problem, scale, _ = prepare(graph)
        if not problem.free:
            continue
        start = list(heaviest(graph, choices).values())
        nodes, bound = solve(problem, start, problem.weigh(start), Work(None, 5.0))
        best = min(exact for exact, _ in lawful(graph, choices))
        weight = problem.weigh(nodes)
        assert weight is not None and weight == bound, graph
        assert price(graph, {problem.owner[n]: n for n in nodes}) == best, graph
        assert scale.costs(weight) == floats(best), graph
        solved += 1
    assert solved > 120


def test_costs_and_ties_are_proved_where_the_solver_does_not_see_all_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = seed("changes")
    solved = 0
    for _ in range(150):
        graph, choices = choices_of(draw, draw.choice(sorted(FAMILIES)), "integers", ties=True)
        problem, scale, _ = prepare(graph, draw.choice(choices))
        if not problem.free:
            continue
        changes = scale.change_base.bit_length() - 1
        total = sum(max(problem.weight[n] for n in row) for row in problem.nodes_of if row)
        monkeypatch.setattr("eqsat.extract.solver.BITS", total.bit_length() - draw.randint(1, changes))
        start = list(heaviest(graph, choices).values())
        nodes, bound = solve(problem, start, problem.weigh(start), Work(None, 5.0, changes=changes))
        weight, best = problem.weigh(nodes), min(exact for exact, _ in lawful(graph, choices))
        assert weight is not None and bound is not None and bound <= weight, graph
        assert scale.costs(weight) == scale.costs(bound) == floats(best), graph
        solved += 1
    assert solved > 120


def test_the_solver_is_honest_about_weights_it_can_not_hold() -> None:
    draw = seed("wide")
    for _ in range(60):
        graph = FAMILIES[draw.choice(sorted(FAMILIES))](draw, lambda: draw.random() * 2.0 ** draw.randint(-300, 300))
        choices = few_choices(graph, 300)
        problem, _, _ = prepare(graph) if choices else (None, None, None)
        if not choices or problem is None or not problem.free:
            continue
        start = list(heaviest(graph, choices).values())
        nodes, bound = solve(problem, start, problem.weigh(start), Work(None, 5.0))
        least = min(weight for picks in choices if (weight := problem.weigh(list(picks.values()))) is not None)
        weight, begun = problem.weigh(nodes), problem.weigh(start)
        assert weight is not None and begun is not None and bound is not None
        assert bound <= least <= weight <= begun, graph


def cover(draw: Random, roots: int, shared: int, cost: float = 1.0) -> Graph:
    """Returns roots that are each a view of one of three shared things.

    The least cover is hard to find, and the sum of the cheapest views is no help.
    """
    nodes = [Node(roots + s, cost, (), (1.0,)) for s in range(shared)]
    nodes += [Node(root, draw.randint(0, 3) / 16, (roots + s,)) for root in range(roots) for s in draw.sample(range(shared), k=3)]
    return Graph(roots + shared, nodes, list(range(roots)))


def least_cover(graph: Graph) -> float:
    """Returns the least cost over every set of shared things."""
    roots = set(graph.roots)
    costs = {node.eclass: node.cost for node in graph.nodes if node.eclass not in roots}
    views = {root: [(node.children[0], node.cost) for node in graph.nodes if node.eclass == root] for root in graph.roots}
    best = math.inf
    for count in range(len(costs) + 1):
        for taken in combinations(costs, count):
            price = sum(costs[s] for s in taken) + sum(min((c for s, c in row if s in taken), default=math.inf) for row in views.values())
            best = min(best, price)
    return best


def test_covers_that_the_search_misses_are_found_and_proved() -> None:
    draw = seed("cover")
    missed = 0
    for _ in range(10):
        graph = cover(draw, 16, 10)
        least = least_cover(graph)
        found = extract(graph)
        assert (found.cost, found.bound, found.status) == (least, least, "optimal")
        greedy = extract(graph, method="greedy").cost
        assert greedy >= least
        missed += greedy > least
    assert missed, "not one of these needs the solver"


def test_without_work_the_bound_is_still_a_bound() -> None:
    draw = seed("idle")
    for _ in range(10):
        graph = cover(draw, 16, 10)
        least = least_cover(graph)
        found = extract(graph, work=0)
        assert found.bound <= least <= found.cost
        assert found.status == "feasible" or found.cost == least
        assert found.gap == (found.cost - found.bound) / found.cost


def test_parts_are_solved_apart() -> None:
    """Forty copies of a small graph have too many choices to try, but each has its own best."""
    draw = seed("copies")
    one, choices = choices_of(draw, "merged", "integers")
    best = floats(min(exact for exact, _ in lawful(one, choices)))[0]
    nodes = [Node(n.eclass + k * one.classes, n.cost, tuple(c + k * one.classes for c in n.children)) for k in range(40) for n in one.nodes]
    many = Graph(40 * one.classes, nodes, [root + k * one.classes for k in range(40) for root in one.roots])
    found = extract(many)
    assert (found.cost, found.bound, found.status) == (40 * best, 40 * best, "optimal")


def test_every_class_a_root() -> None:
    draw = seed("roots")
    for _ in range(150):
        graph = drawn(draw, draw.choice(sorted(FAMILIES)), "few")
        graph = Graph(graph.classes, graph.nodes, [*range(graph.classes), *graph.roots])
        choices = list(all_choices(graph)) if graph.classes < 7 else None
        if choices:
            assert_right(graph, choices, extract(graph))


def test_gap_is_a_share_of_the_cost() -> None:
    assert Choice({}, 8.0, 0.0, (), "feasible", 6.0).gap == 0.25
    assert Choice({}, -8.0, 0.0, (), "feasible", -10.0).gap == 0.25
    assert Choice({}, 0.0, 0.0, (), "optimal", 0.0).gap == 0.0

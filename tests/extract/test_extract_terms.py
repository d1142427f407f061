"""Terms against exhaustive search: forced fusions, forbidden pairs, and terms of a callback."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from eqsat.extract import Choice, ExtractionError, Graph, Node, Term, check, extract
from eqsat.extract.graph import applying
from eqsat.extract.preparation import prepare
from eqsat.extract.solver import solve
from eqsat.extract.work import Work
from tests.support.brute import added, assert_right, few_choices, floats, lawful, price, used
from tests.support.drawn_graphs import FAMILIES, drawn, with_resources, with_terms
from tests.support.parameters import spread


def drawn_terms(draw: Random, shape: str, kind: str | None = None, forbidding: float = 0.2) -> tuple[Graph, list[dict[int, int]]]:
    """Returns a graph with terms, and all its choices, forbidden ones included."""
    while True:
        graph = drawn(draw, shape, kind, ties=draw.random() < 0.4)
        choices = few_choices(graph, 250)
        if choices:
            return with_terms(draw, graph, choices, forbidding), choices


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_exact_equals_exhaustive_search(shape: str) -> None:
    draw = Random(f"terms {shape}")
    forbidden = 0
    for _ in range(150):
        graph, choices = drawn_terms(draw, shape)
        if lawful(graph, choices):
            initial = draw.choice([None, draw.choice(choices)])
            assert_right(graph, choices, extract(graph, initial=initial))
            continue
        forbidden += 1
        with pytest.raises(ExtractionError, match="no choice is within the limits and free of the combinations that terms forbid"):
            extract(graph)
    assert forbidden < 50


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_greedy_is_a_choice_never_below_the_best(shape: str) -> None:
    draw = Random(f"greedy terms {shape}")
    for _ in range(60):
        graph, choices = drawn_terms(draw, shape, forbidding=0.0)
        initial = draw.choice(choices)
        begun = price(graph, initial)
        # Without work, "exact" does everything except the solver.
        for found in (extract(graph, method="greedy", initial=initial), extract(graph, initial=initial, work=0)):
            assert_right(graph, choices, found, optimal=False)
            reached = price(graph, found.nodes)
            assert begun is not None and reached is not None and reached <= begun


@pytest.mark.parametrize("shape", spread(sorted(FAMILIES), every=4))
def test_with_limits_too(shape: str) -> None:
    draw = Random(f"limited terms {shape}")
    for _ in range(60):
        graph, choices = drawn_terms(draw, shape)
        terms = graph.terms
        graph = with_resources(draw, graph, 1)
        graph = replace(graph, terms=terms, limits=(float(used(graph, draw.choice(choices), 0)),))
        if lawful(graph, choices):
            assert_right(graph, choices, replace(extract(graph), bound_for="choices within the limits"))
        else:
            with pytest.raises(ExtractionError, match="within the limits"):
                extract(graph)


@pytest.mark.parametrize("kind", spread(["integers", "mantissas"]))
def test_the_solver_alone_finds_and_proves_the_best_from_the_worst(kind: str) -> None:
    draw = Random(f"solver terms {kind}")
    solved = impossible = 0
    for _ in range(200):
        graph, choices = drawn_terms(draw, draw.choice(sorted(FAMILIES)), kind, forbidding=0.3)
        problem, scale, _ = prepare(graph)
        if not problem.free:
            continue
        found = lawful(graph, choices)
        worst = max(found, key=lambda each: each[0])[1] if found else choices[0]
        start = list(worst.values())
        if not found:
            impossible += 1
            with pytest.raises(ExtractionError, match="free of the combinations"):
                solve(problem, start, None, Work(None, 5.0))
            continue
        given = problem.weigh(start) if draw.random() < 0.5 else None
        forbidden = [picks for picks in choices if price(graph, picks) is None]
        if given is None and forbidden:
            start = list(forbidden[0].values())
        nodes, bound = solve(problem, start, given, Work(None, 5.0))
        best = min(exact for exact, _ in found)
        assert problem.weigh(nodes) == bound, graph
        assert price(graph, {problem.owner[n]: n for n in nodes}) == best, graph
        assert bound is not None and scale.costs(bound) == floats(best), graph
        solved += 1
    assert solved > 120 and impossible > 0


# -- forced fusions
# --------------------------------------------------------------------------------------------------


def fusions(draw: Random, length: int) -> tuple[Graph, list[float]]:
    """Returns a chain of steps, each a cheap or a dear node.

    The machine fuses two cheap nodes in a row, which is slow.
    """
    nodes, terms = [Node(0, 0.0, ())], list[Term]()
    penalties = [0.0]
    for c in range(1, length):
        cheap = len(nodes)
        nodes += [Node(c, 1.0, (c - 1,)), Node(c, 1.0 + draw.randint(1, 4), (c - 1,))]
        penalties.append(float(draw.randint(1, 9)))
        if c > 1:
            terms.append(Term((cheap - 2, cheap), penalties[c], sole=True))
    return Graph(length, nodes, [length - 1], (), tuple(terms)), penalties


def least_of_fusions(graph: Graph, penalties: list[float]) -> float:
    """Returns the least cost.

    Step by step, it tracks the least cost of chains that end in a cheap node and in a dear one.
    """
    cheap, dear = 0.0, 0.0
    for c in range(1, graph.classes):
        low, high = graph.nodes[2 * c - 1].cost, graph.nodes[2 * c].cost
        penalty = penalties[c] if c > 1 else 0.0
        cheap, dear = min(cheap + penalty, dear) + low, min(cheap, dear) + high
    return min(cheap, dear)


def test_forced_fusions_are_avoided_where_the_sum_of_nodes_walks_into_them() -> None:
    draw = Random(5)
    for length in (4, 7, 9, 20):
        graph, penalties = fusions(draw, length)
        found = extract(graph)
        least = least_of_fusions(graph, penalties)
        assert (found.cost, found.bound, found.status) == (least, least, "optimal")
        if length < 10:
            assert_right(graph, few_choices(graph) or [], found)
        plain = extract(replace(graph, terms=()))
        walked_into = price(graph, plain.nodes)
        assert walked_into is not None and walked_into[0] > least
    graph, penalties = fusions(draw, 300)
    found = extract(graph, work=0.2)
    assert found.bound <= least_of_fusions(graph, penalties) <= found.cost


def test_a_second_consumer_prevents_a_fusion() -> None:
    """The product fuses into its only user, at a loss.

    A second user prevents this, so a copy that costs less than the loss pays.
    """
    product, view, copy = 0, 1, 2
    nodes = [Node(product, 1.0, ()), Node(view, 1.0, (product,)), Node(view, 2.5, (product, copy)), Node(copy, 0.5, (product,))]
    loss = Term((0, 1), 5.0, sole=True)
    assert extract(Graph(3, nodes, [view], (), (loss,))).nodes == {product: 0, view: 2, copy: 3}
    # If the roots need the copy or the product itself, nothing fuses.
    for roots in ([view, copy], [view, product]):
        graph = Graph(3, nodes, roots, (), (loss,))
        assert extract(graph).cost == 2.0 + 0.5 * (copy in roots)
    assert extract(Graph(3, nodes, [view], (), (replace(loss, sole=False),))).cost == 4.0
    assert extract(Graph(3, nodes, [view, copy], (), (replace(loss, sole=False),))).cost == 4.0


def test_a_gain_for_what_is_chosen_together_is_taken() -> None:
    nodes = [Node(0, 3.0, ()), Node(0, 2.0, ()), Node(1, 3.0, ()), Node(1, 2.0, ())]
    graph = Graph(2, nodes, [0, 1], (), (Term((0, 2), -4.0),))
    assert extract(graph) == Choice({0: 0, 1: 2}, 2.0, 0.0, (), "optimal", 2.0)
    assert extract(replace(graph, terms=(Term((0, 2), -1.5),))).cost == 4.0
    below_zero = extract(replace(graph, terms=(Term((0, 2), -9.0),)))
    assert (below_zero.cost, below_zero.bound, below_zero.gap) == (-3.0, -3.0, 0.0)


def test_a_single_node_can_be_forbidden_or_priced_and_repeated_nodes_count_once() -> None:
    nodes = [Node(0, 1.0, ()), Node(0, 2.0, ())]
    assert extract(Graph(1, nodes, [0], (), (Term((0,), math.inf),))).nodes == {0: 1}
    assert extract(Graph(1, nodes, [0], (), (Term((0, 0), 3.0),))).nodes == {0: 1}
    assert extract(Graph(1, nodes, [0], (), (Term((0, 1), -9.0), Term((0,), 0.5)))).cost == 1.5
    with pytest.raises(ExtractionError, match="free of the combinations that terms forbid"):
        extract(Graph(1, nodes, [0], (), (Term((0,), math.inf), Term((1,), math.inf))))


def test_terms_that_can_never_apply_change_nothing() -> None:
    nodes = [Node(0, 1.0, ()), Node(1, 1.0, (0,)), Node(1, 2.0, ()), Node(2, 1.0, ())]
    never = (Term((1, 2), -5.0), Term((3,), -5.0), Term((0, 2), -5.0, sole=True), Term((1,), -5.0, sole=True))
    assert extract(Graph(3, nodes, [1], (), never)) == extract(Graph(3, nodes, [1]))
    assert extract(Graph(3, nodes, [1, 0], (), (Term((0, 1), -5.0, sole=True),))).cost == 2.0


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (Term((), 1.0), r"term 0 names the nodes \(\); nodes are 0 to 0"),
        (Term((1,), 1.0), r"term 0 names the nodes \(1,\)"),
        (Term((-1,), 1.0), r"term 0 names the nodes \(-1,\)"),
        (Term((0,), math.nan), "the cost of term 0 is nan"),
        (Term((0,), -math.inf), "the cost of term 0 is -inf"),
    ],
)
def test_bad_terms(term: Term, message: str) -> None:
    with pytest.raises(ExtractionError, match=message):
        extract(Graph(1, [Node(0, 1.0, ())], [0], (), (term,)))


def test_the_terms_that_apply_are_those_of_the_exhaustive_search() -> None:
    draw = Random(8)
    counts = [0, 0]
    for _ in range(200):
        graph, choices = drawn_terms(draw, draw.choice(sorted(FAMILIES)))
        for picks in choices[:20]:
            costs = [term.cost for term in applying(graph, picks)]
            assert costs == added(graph, picks)
            counts[bool(costs)] += 1
    assert min(counts) > 200


def test_check_adds_terms_up_and_sees_what_is_forbidden() -> None:
    nodes = [Node(0, 1.0, ()), Node(1, 1.0, (0,))]
    graph = Graph(2, nodes, [1], (), (Term((0, 1), 2.0, sole=True),))
    true = extract(graph)
    assert true == Choice({0: 0, 1: 1}, 4.0, 0.0, (), "optimal", 4.0)
    check(graph, true)
    with pytest.raises(ExtractionError, match=r"cost 4\.0 .* the choice says 2\.0"):
        check(graph, replace(true, cost=2.0, bound=2.0))
    with pytest.raises(ExtractionError, match="a combination of nodes is chosen that a term forbids"):
        check(replace(graph, terms=(*graph.terms, Term((1,), math.inf))), true)
    with pytest.raises(ExtractionError, match=r"cost 2\.0 .* the choice says 4\.0"):
        check(replace(graph, roots=[0, 1]), true)


# -- terms added between solves
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["layered", "merged", "inverses", "wild"])
def test_terms_added_where_they_apply_lead_to_the_same_best(shape: str) -> None:
    """Some costs show only in a whole choice; `reprice` returns them once a choice has them.

    None of them is a gain, so most never need to be known.
    """
    draw = Random(f"reprice {shape}")
    told_all = offered = 0
    for _ in range(60):
        graph, choices = drawn_terms(draw, shape)
        hidden = tuple(term for term in dict.fromkeys(graph.terms) if term.cost > 0)
        full = replace(graph, terms=hidden)
        if not lawful(full, choices):
            continue
        seen: list[Choice] = []

        def reprice(choice: Choice, full: Graph = full, seen: list[Choice] = seen) -> Iterable[Term]:
            seen.append(choice)
            return applying(full, choice.nodes)

        found = extract(replace(graph, terms=()), reprice=reprice)
        assert_right(full, choices, found)
        assert seen[-1] == found and len(seen) <= len(hidden) + 1
        told_all += len(seen) - 1
        offered += len(hidden)
    assert 0 < told_all < offered


def test_reprice_is_asked_once_where_it_has_nothing_to_add() -> None:
    calls: list[Choice] = []
    term = Term((0,), 2.0)
    graph = Graph(1, [Node(0, 1.0, ())], [0], (), (term,))

    def known(choice: Choice) -> Iterable[Term]:
        calls.append(choice)
        return [term]

    assert extract(graph, reprice=known).cost == 3.0
    assert len(calls) == 1


def test_what_is_found_again_after_repricing_is_never_worse_than_what_was_there() -> None:
    draw = Random(12)
    for _ in range(150):
        graph, choices = drawn_terms(draw, draw.choice(sorted(FAMILIES)), forbidding=0.0)
        seen: list[Choice] = []

        def reprice(choice: Choice, terms: tuple[Term, ...] = graph.terms, seen: list[Choice] = seen) -> Iterable[Term]:
            seen.append(choice)
            return terms[: len(seen)]

        found = extract(replace(graph, terms=()), method="greedy", reprice=reprice)
        told = replace(graph, terms=tuple(dict.fromkeys(graph.terms[: len(seen)])))
        reached = price(told, found.nodes)
        for before in seen:
            begun = price(told, before.nodes)
            assert reached is not None and begun is not None and reached <= begun, told
        assert found.nodes in choices

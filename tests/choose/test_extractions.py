"""Equal problems of a turn are solved once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

import eqsat
from eqsat.choose import writable
from eqsat.choose.choose import Chooser, Chosen
from eqsat.choose.extractions import Extractions
from eqsat.choose.prices import Prices
from eqsat.extract import Choice, Graph, Node, choosing, extract
from eqsat.extract.plain import Solution
from eqsat.extract.problem import Problem
from eqsat.runtime.worker import Worker
from eqsat.terms.terms import Term
from tests.support.models import parse


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """The problems that were solved."""
    seen: list[Graph] = []

    def watched(graph: Graph, **settings: Any) -> Choice:
        seen.append(graph)
        return extract(graph, **settings)

    monkeypatch.setattr("eqsat.choose.extractions.extract", watched)
    return seen


def problem(cost: float = 1.0, limit: float = 9.0) -> Graph:
    return Graph(2, [Node(0, 2.0, (), (3.0,)), Node(1, cost, (0,), (1.0,)), Node(1, 5.0, (), (0.0,))], [1], (limit,))


def chosen(extractions: Extractions, graph: Graph, seconds: float | None = None, initial: int = 1) -> dict[int, int]:
    known = {0: 0, 1: 1} if initial == 1 else {1: 2}
    return dict(extractions.extract(graph, known, "exact", seconds, 1.0, 0.0).nodes)


def test_an_equal_problem_is_solved_once(solved: list[Graph]) -> None:
    extractions = Extractions()
    assert chosen(extractions, problem()) == chosen(extractions, problem()) == {0: 0, 1: 1}
    assert len(solved) == 1


def test_a_problem_with_other_prices_or_limits_is_another(solved: list[Graph]) -> None:
    extractions = Extractions()
    assert chosen(extractions, problem(), initial=2) == {0: 0, 1: 1}
    assert chosen(extractions, problem(cost=4.0), initial=2) == {1: 2}
    assert chosen(extractions, problem(limit=2.0), initial=2) == {1: 2}
    assert len(solved) == 3


def test_a_choice_within_a_time_limit_is_not_remembered(solved: list[Graph]) -> None:
    extractions = Extractions()
    assert chosen(extractions, problem(), 60.0) == chosen(extractions, problem()) == {0: 0, 1: 1}
    assert len(solved) == 2


@pytest.mark.parametrize(("first", "proofs"), [(math.inf, 1), (5.0, 1), (2.0, 2)])
def test_a_problem_within_another_limit_is_proved_once(first: float, proofs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless a limit excludes a node: then the other problem has another best choice."""
    seen: list[Problem] = []
    proved = choosing._proved  # pyright: ignore[reportPrivateUsage]

    def watched(problem: Problem, *others: Any) -> Solution:
        seen.append(problem)
        return proved(problem, *others)

    monkeypatch.setattr(choosing, "_proved", watched)
    extractions = Extractions()
    both = [chosen(extractions, problem(limit=limit), initial=2) for limit in (first, 3.5)]
    assert both == [{1: 2} if first < 4.0 else {0: 0, 1: 1}, {1: 2}]
    assert len(seen) == proofs


def test_e_graphs_of_a_turn_share_what_is_known_of_their_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn chooses from the e-graph after its first phase and from the final one."""
    choosers: list[Prices] = []
    looked: Counter[tuple[int, ...]] = Counter()
    alone, unwritable = writable._alone, writable.unwritable  # pyright: ignore[reportPrivateUsage]

    def watched(prices: Prices, made: Iterable[Term], opset: int, worker: Worker) -> set[Term]:
        choosers.append(prices)
        return unwritable(prices, made, opset, worker)

    def counted(prices: Prices, term: Term, opset: int) -> bytes | None:
        looked[id(prices.encoding.terms), *prices.key(term)] += 1
        return alone(prices, term, opset)

    monkeypatch.setattr("eqsat.choose.choose.unwritable", watched)
    monkeypatch.setattr(writable, "_alone", counted)
    graph = (
        "g (float[2, 3] x, float[3, 4] w, float[4, 5] v) => (float[N, M] y) { s = Neg (x)  t = Neg (s)  a = Add (t, t)  m = MatMul (a, w)  y = MatMul (m, v) }"
    )
    eqsat.optimize(parse(graph, '<ir_version: 8, opset_import: ["": 18]>'), verify=False)
    assert len(choosers) == 2
    assert choosers[0].shared is choosers[1].shared
    assert looked and set(looked.values()) == {1}


@pytest.mark.parametrize(("node", "choices"), [("Abs (x)", 1), ("MatMul (m, v)", 2)])
def test_an_e_graph_that_did_not_grow_is_chosen_from_once(node: str, choices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph after the first phase is the result where later phases find nothing."""
    seen: list[Chosen] = []
    choose = Chooser.choose

    def watched(chooser: Chooser, *others: Any) -> Chosen:
        seen.append(choose(chooser, *others))
        return seen[-1]

    monkeypatch.setattr(Chooser, "choose", watched)
    graph = f"g (float[2, 3] x, float[3, 4] w, float[4, 5] v) => (float[N, M] y) {{ m = MatMul (x, w)  y = {node} }}"
    eqsat.optimize(parse(graph, '<ir_version: 8, opset_import: ["": 18]>'), verify=False)
    assert len(seen) == choices

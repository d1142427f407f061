"""The term graph after runs: one term for each class, no cycles, and the life that outputs need.

The difference that was predicted for a rewrite is the one that it makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eqsat
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.greedy import greedy_engine as engine
from eqsat.greedy.pricing import Difference, Pricing, _Fusing
from eqsat.greedy.term_graph import TermGraph
from tests.rules.examples import filled
from tests.rules.test_rules import EXAMPLES
from tests.support.models import parse
from tests.support.parameters import spread
from tests.support.random_models import models

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def check(encoding: Encoding, graph: TermGraph) -> None:
    """Fails if a term graph contradicts itself."""
    count = len(graph.facts)
    own = [eclass for eclass in range(count) if graph.find(eclass) == eclass and graph.made(eclass)]
    keys = [(term.head, term.data, term.children) for term in map(graph.term, own)]
    assert len(set(keys)) == len(keys), "two classes have equal terms"
    for eclass in own:
        for child in graph.term(eclass).children:
            assert graph.find(child) == child, "a term has a child that another class has replaced"
            assert graph.level[child] < graph.level[eclass], "a class is not above its children"
    needed = dict.fromkeys(range(count), 0)
    waiting = list[int]()
    for name in encoding.graph.outputs:
        output = graph.find(encoding.values[name])
        needed[output] += 1
        waiting.append(output)
    seen: set[int] = set()
    while waiting:
        eclass = waiting.pop()
        if eclass in seen:
            continue
        seen.add(eclass)
        for child in () if graph.is_leaf(eclass) else dict.fromkeys(graph.term(eclass).children):
            needed[child] += 1
            waiting.append(child)
    assert sorted(graph.live()) == sorted(seen), "another set of classes is alive than the outputs need"
    assert [graph.refs[eclass] for eclass in own] == [needed[eclass] for eclass in own], "a class is needed more or less often than counted"
    for eclass in seen:
        assert sorted(graph.users_of(eclass)) == sorted(other for other in seen if eclass in graph.term(other).children), "a user is missing"


def total(pricing: Any) -> float:
    """Returns the cost of a whole graph."""
    graph, live = pricing._graph, list(pricing._graph.live())
    fusing = _Fusing(pricing._pairs, graph.term, lambda eclass: graph.refs[eclass], graph.is_leaf)
    return sum(pricing._amounts(eclass)[0] for eclass in live) + sum(map(fusing.saving, live))


@contextmanager
def checked() -> Iterator[list[int]]:
    """Checks the graph of each run inside. Yields the number of runs."""
    runs = [0]
    before = engine.result

    def result(encoding: Encoding, graph: TermGraph) -> EGraph:
        check(encoding, graph)
        runs[0] += 1
        return before(encoding, graph)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "result", result)
        yield runs


def rewritten(model: onnx.ModelProto, seed: int, **options: Any) -> None:
    with checked() as runs:
        eqsat.optimize(model, verify=False, engine="greedy", order=f"random:{seed}", **options)
    assert runs[0]


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=SLOW)
@given(models(), st.integers(0, 9))
def test_the_graph_of_a_random_model_is_sound(model: onnx.ModelProto, seed: int) -> None:
    rewritten(model, seed)


@pytest.mark.parametrize("name", spread(list(EXAMPLES)[::2], every=8))
def test_the_graph_of_an_example_is_sound(name: str) -> None:
    example = EXAMPLES[name]
    rewritten(filled(example.model(example.distinct_opsets[0])), 1, target=example.target, max_growth=1 << 16)


def test_a_term_may_read_a_class_and_the_one_that_replaces_it() -> None:
    model = parse("g (float[8] x) => (float[8] y) { a = Abs (x)  r = Relu (a)  y = Mul (a, r) }")
    rewritten(model, 1, target="launches")


@pytest.mark.parametrize("name", spread(list(EXAMPLES)[::2], every=8))
@pytest.mark.parametrize("target", ["launches", "onnxruntime-cpu"])
def test_a_predicted_difference_is_the_difference(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merging equal terms may save more than a rewrite by itself, but nothing may cost more."""
    predicted: list[float] = []  # the costs after the last rewrite that was priced
    lefts: dict[int, int] = {}  # by engine, the rewrites that were left when it last settled
    exact: list[bool] = []
    difference, settle = Pricing.difference, engine._Engine._settle

    def noted(pricing: Pricing, roots: Sequence[tuple[int, int]]) -> Difference:
        found = difference(pricing, roots)
        predicted[:] = [total(pricing) + found.cost]
        return found

    def settled(one: Any) -> None:
        if one._left < lefts.get(id(one), 0):
            now = total(one._pricing)
            assert now <= predicted[0] + 1e-6
            exact.append(now >= predicted[0] - 1e-6)
        lefts[id(one)] = one._left
        settle(one)

    monkeypatch.setattr(Pricing, "difference", noted)
    monkeypatch.setattr(engine._Engine, "_settle", settled)
    example = EXAMPLES[name]
    rewritten(filled(example.model(example.distinct_opsets[0])), 1, target=target, max_growth=1 << 16)
    assert not exact or sum(exact) * 2 >= len(exact)

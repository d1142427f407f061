"""Minimal sets of rules: they reach the cost, no rule can be left out, and time bounds the search."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqsat.explain.explanation import explain
from eqsat.explain.minimal import CLOSE, minimal
from eqsat.settings import Settings
from tests.explain.test_chain import CHAIN, ROOTS
from tests.support.models import parse

NAMES = [f"rule{number}" for number in range(9)]


def never() -> bool:
    return False


@given(st.lists(st.sets(st.sampled_from(NAMES), min_size=1, max_size=3), min_size=1, max_size=3))
def test_no_rule_of_a_minimal_set_can_be_left_out(ways: list[set[str]]) -> None:
    def cost(names: Collection[str]) -> float:
        return 1.0 if any(way <= set(names) for way in ways) else 2.0

    found = minimal([NAMES], cost, 1.0, never)
    assert found is not None and found.proved and found.cost == 1.0
    assert set(found.rules) in ways
    assert set(found.without) == set(found.rules) and all(without == 2.0 for without in found.without.values())


def test_no_rule_is_needed_where_laws_do_it_all() -> None:
    found = minimal([NAMES], lambda names: 1.0, 1.0, never)
    assert found is not None and found.rules == [] and found.proved and found.runs == 2


def test_the_first_candidate_that_reaches_the_cost_is_the_begin() -> None:
    def cost(names: Collection[str]) -> float:
        return 1.0 if "rule5" in names else 2.0

    found = minimal([["rule1"], ["rule1", "rule5"]], cost, 1.0, never)
    assert found is not None and found.rules == ["rule5"]
    assert minimal([["rule1"]], cost, 1.0, never) is None


@pytest.mark.parametrize(("share", "enough"), [(0.9, True), (1.1, False)])
def test_costs_that_no_prediction_distinguishes_are_the_same(share: float, enough: bool) -> None:
    found = minimal([["rule1"]], lambda names: 8.0 if names else 8.0 * (1 + share * CLOSE), 8.0, never)
    assert found is not None and (found.rules == []) is enough


def test_the_search_ends_in_time_and_tells() -> None:
    runs: list[int] = []

    def cost(names: Collection[str]) -> float:
        runs.append(len(names))
        return 1.0 if "rule5" in names else 2.0

    found = minimal([NAMES], cost, 1.0, lambda: len(runs) > 2)
    assert found is not None and not found.proved and "rule5" in found.rules and len(runs) == 3


def test_a_rule_that_fired_for_nothing_is_not_in_the_set() -> None:
    idle = ROOTS + "\nexact rule idle:\n    Exp(Abs(x)) => Exp(Abs(Abs(x)))\n    test x: T[2]\n"
    found = explain(parse(CHAIN), Settings(rules=[idle], only=["rules"], target="launches"))
    assert "idle" in found.fired and "idle" not in found.used
    assert found.minimal is not None and found.minimal.proved
    assert sorted(found.minimal.rules) == ["root", "twice"]
    assert found.minimal.cost == found.after == 2 and found.before == 5
    assert found.minimal.without == {"root": 5, "twice": 3}

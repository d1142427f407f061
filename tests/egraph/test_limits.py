"""Limits of a run that count matches."""

from __future__ import annotations

from dataclasses import replace

import pytest

import eqsat
from eqsat.egraph.limits import Limits, Stop, Watch
from tests.support.models import parse


def test_a_rule_that_runs_away_rests_and_the_others_go_on() -> None:
    watch = Watch(Limits(matches=1000), 0)
    away, other = (watch.answering(lambda *handles: handles[0]) for _ in range(2))
    assert [away(number) for number in range(100)] == list(range(100)) and not watch.rested
    assert [away(number) for number in range(50)] == [-1] * 50 and watch.rested
    assert [other(number) for number in range(100)] == list(range(100))
    with pytest.raises(Stop):
        for number in range(1000):
            away(number)
    assert watch.hit == "matches"


def test_a_trial_puts_no_rule_to_rest() -> None:
    watch = Watch(Limits(matches=1000), 0)
    fire = watch.answering(lambda *handles: 0, rests=False)
    assert [fire(number) for number in range(1000)] == [0] * 1000 and not watch.rested


# Here x = x * (a * b), where nothing tells that the product of both constants is 1.
SCALED = """
    g (float[N, 80] x) => (float[N, 80] y)
    <float two = {2.0}, float half = {0.5}, int64[2] s = {40, 40}>
    {
        a, b = Split <axis = 1> (x, s)
        a1 = Mul (a, two)
        b1 = Mul (b, half)
        p = Concat <axis = 1> (a1, b1)
        c, d = Split <axis = 1> (p, s)
        c1 = Mul (c, half)
        d1 = Mul (d, two)
        q = Concat <axis = 1> (c1, d1)
        y = Relu (q)
    }
"""


def test_a_product_that_changes_nothing_merges_with_nothing() -> None:
    report = eqsat.optimize(parse(SCALED)).report
    assert report["limits"]["hit"] is None and report["nodes"]["after"] == 1
    assert report["verify"]["status"] == "equal"


def test_a_report_says_that_matches_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Watch.__init__
    monkeypatch.setattr(Watch, "__init__", lambda self, limits, size: begin(self, replace(limits, matches=40), 0))
    report = eqsat.optimize(parse(SCALED)).report
    assert report["limits"]["hit"] == "matches"
    assert report["verify"]["status"] == "equal"

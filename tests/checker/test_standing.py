"""The standing of a check: counts, rules under check, and verdicts, as they become known."""

from __future__ import annotations

import pytest

from eqsat.checker.check import Verdict, check, check_rule
from eqsat.checker.standing import Counts, Standing, note, share
from eqsat.language.library import load

RULES = """# Two rules.

exact rule neg-neg-twice:
    Neg(Neg(x)) => x
    test x: T[2]

exact rule abs-is-nothing:
    Abs(x) => x
    test x: T[2]
"""


def test_counts_are_of_those_that_have_begun() -> None:
    counts = Counts(3)
    share(counts.shared)
    try:
        note(1, 0)
        note(2, 7)
        note(2, 11)
    finally:
        share([])
    note(0, 5)
    assert counts.total() == 11
    assert counts.begun({0: "a", 1: "b", 2: "c"}) == ("b", "c") and counts.begun({0: "a"}) == ()


def test_a_rule_tells_how_many_instances_fired_so_far() -> None:
    heard: list[int] = []
    verdict = check_rule(load([RULES]).rules[0], 150, 0, progress=heard.append)
    assert heard[0] == 0 and heard == sorted(heard) and heard[-1] == verdict.fired >= 150
    assert len(heard) > 2, "a rule of many instances tells more than its end"


def test_both_directions_count() -> None:
    heard: list[int] = []
    rules = load(["exact rule commuted:\n    Neg(Abs(x)) <=> Neg(Neg(Neg(Abs(x))))\n    test x: T[2]\n"]).rules
    verdict = check_rule(rules[0], 20, 0, progress=heard.append)
    assert heard == sorted(heard) and heard[-1] == verdict.fired >= 40


@pytest.mark.slow
def test_a_check_tells_its_standing_and_each_verdict_once() -> None:
    seen: list[Standing] = []
    found: dict[int, Verdict] = {}
    verdicts = check(load([RULES]).rules, 40, 0, found.__setitem__, seen.append)
    assert [found[0], found[1]] == verdicts and [verdict.passed for verdict in verdicts] == [True, False]
    assert seen[-1] == Standing(2, 2, 1, sum(verdict.fired for verdict in verdicts), ())
    assert [standing.fired for standing in seen] == sorted(standing.fired for standing in seen)
    assert {name for standing in seen for name in standing.under_check} <= {"neg-neg-twice", "abs-is-nothing"}

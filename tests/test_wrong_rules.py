"""Wrong rules, as authors write them: the checker finds a counterexample to each on every seed, and lets their right twins pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from eqsat.checker.check import OK, REFUTED, check_rule
from eqsat.language.library import load, rule_files
from eqsat.language.resolve import Resolved

FOLDER = Path(__file__).parent / "wrong"
FIRED = 60  # instances: a wrong rule must not need many
SEEDS = (0, 1, 2)
TWIN = "-guarded"

LIBRARY = load(rule_files([FOLDER]))
WRONG = [rule for rule in LIBRARY.rules if not rule.rule.name.endswith(TWIN)]
RIGHT = [rule for rule in LIBRARY.rules if rule.rule.name.endswith(TWIN)]


def names(rules: list[Resolved]) -> list[str]:
    return [rule.rule.name for rule in rules]


def test_there_are_enough_of_them_and_each_says_what_is_wrong() -> None:
    assert len(WRONG) >= 60
    assert len(RIGHT) >= 40
    assert all(rule.rule.documentation[0].startswith("Wrong: ") for rule in WRONG)
    assert all(rule.rule.documentation[0].startswith("Right: ") for rule in RIGHT)
    assert {name.removesuffix(TWIN) for name in names(RIGHT)} <= set(names(WRONG))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rule", WRONG, ids=names(WRONG))
def test_a_wrong_rule_is_refuted(rule: Resolved, seed: int) -> None:
    verdict = check_rule(rule, FIRED, seed, enough=1)
    assert verdict.status == REFUTED, f"{verdict.status}: {verdict.reason}"
    assert verdict.counterexample is not None


@pytest.mark.parametrize("seed", SEEDS[:1])
@pytest.mark.parametrize("rule", RIGHT, ids=names(RIGHT))
def test_its_right_twin_passes(rule: Resolved, seed: int) -> None:
    verdict = check_rule(rule, FIRED, seed)
    assert verdict.status == OK, f"{verdict.status}: {verdict.reason}"

"""The built-in rules: each fires on its test lines and is right on twenty instances. `eqsat rules check` tries 300 of each."""

from __future__ import annotations

import pytest

from eqsat.checker.check import OK, check_rule
from eqsat.language.library import built_in
from eqsat.language.resolve import Resolved

INSTANCES = 20
THOROUGH = 3  # of each direction: the others have values of some styles
SEED = 1  # `eqsat rules check` begins at 0
RULES = {rule.rule.name: rule for rule in built_in().rules}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_is_right(rule: Resolved) -> None:
    verdict = check_rule(rule, INSTANCES, SEED, thorough=THOROUGH)
    assert verdict.status == OK, f"{verdict.status}: {verdict.reason}"

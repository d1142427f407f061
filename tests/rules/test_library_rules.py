"""The built-in rules fire on their test lines and are right on a few instances.

`eqsat rules check` tries 300 of each.
"""

from __future__ import annotations

import pytest

from eqsat.checker.check import OK, check_rule
from eqsat.language.library import whole_library
from tests.support.parameters import spread

INSTANCES = 3  # of a rule, or of all members of a family together
THOROUGH = 1  # of each direction; the others have values of some styles
SEED = 1  # `eqsat rules check` begins at 0
FAMILIES = dict.fromkeys(entry.listed.family for entry in whole_library().entries)


@pytest.mark.parametrize("family", spread(FAMILIES, every=20))
def test_a_rule_is_right(family: str) -> None:
    members = whole_library().members(family)
    for member in members:
        verdict = check_rule(member, max(2, INSTANCES // len(members)), SEED, thorough=max(1, THOROUGH // len(members)))
        assert verdict.status == OK, f"{member.rule.name}: {verdict.status}: {verdict.reason}"

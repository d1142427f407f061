"""The built-in rules fire on their test lines and are right on a few instances.

`eqsat rules check` tries 300 of each.
"""

from __future__ import annotations

import pytest

from eqsat.checker.check import OK, check_rule
from eqsat.language.library import read_text, rule_files, whole_library
from eqsat.language.parse import parse
from eqsat.language.printer import show_file
from eqsat.shipped import RULES
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


def test_rule_files_are_laid_out_as_the_formatter_does() -> None:
    files = rule_files([RULES])
    assert len(files) > 40
    texts = {path: read_text(path) for path in files}
    assert [path.name for path, text in texts.items() if show_file(parse(text, str(path))) != text] == []

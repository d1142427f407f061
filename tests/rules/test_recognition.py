"""The recall of recognition: rules find each spelling of an operator (`spellings.txt`)."""

from __future__ import annotations

from collections import Counter

import pytest

import eqsat
from tests.rules.spellings import Spelling, read
from tests.support.models import operators
from tests.support.parameters import spread

SPELLINGS = read()
OPSET = 24  # the first that has all the operators
FEWEST = 8  # spellings of an operator


@pytest.mark.parametrize("spelling", spread(SPELLINGS))
def test_a_spelling_is_found(spelling: Spelling) -> None:
    """One node of the operator stays, and eqsat verifies that it computes the same."""
    result = eqsat.optimize(spelling.model(), target="launches", opset=OPSET, max_growth=1 << 16)
    left = operators(result.model)
    assert left.pop(spelling.operator, 0) == 1
    assert left.keys() <= spelling.others
    assert result.report["verify"]["status"] == "equal"
    assert spelling.rules <= {rule["name"] for rule in result.report["rules"] if rule["matches"]}


def test_each_operator_has_many_spellings() -> None:
    counts = Counter(spelling.function.partition(" with ")[0] for spelling in SPELLINGS)
    assert {function: count for function, count in counts.items() if count < FEWEST} == {}
    assert len({spelling.line for spelling in SPELLINGS}) == len(SPELLINGS)

"""Draws that follow what conditions ask: few are begun in vain, and none that would succeed is left
out.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from eqsat.checker.drawing.draw import Drawing
from eqsat.checker.drawing.foresight import Foresight
from eqsat.checker.drawing.instances import draw
from eqsat.language.library import whole_library
from tests.support.parameters import spread

INSTANCES = 20

# The most draws that may be begun for so many instances of a rule. Without regard to what the
# conditions ask, each of these rules takes several times as many.
BEGUN = {
    "mod-less": 140,  # ranges
    "certain-comparison[Less]": 140,
    "unit-factor[Mul]": 140,
    "depthtospace-channels": 60,  # sizes of the result of a Reshape, and with them those of its input
    "attention-heads": 140,
    "concat-empty-second": 40,  # the size of an axis
    "slices-spacetodepth": 200,  # sizes that an attribute has bound
    "conv-conv-first": 80,  # axes of size 1 behind others
    "slices-split-four": 400,  # a chain of bounds, whose ends are known before the numbers between
    "slices-split-three": 130,
    "attention-rows-apart": 60,  # a list of sizes that another tensor has bound
    "attention-rows-together": 45,  # some sizes of the input of a Reshape whose result is known
    "attention-where": 60,
    "conv-sum-more": 60,
    "conv-concat-groups": 250,
    "gathernd-whole": 150,  # axes, by their own number
}

RULES = {resolved.rule.name: resolved for resolved in whole_library().rules}


@pytest.mark.parametrize("name", BEGUN)
def test_few_draws_are_begun_in_vain(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = _counted(monkeypatch, Drawing, "run")
    assert len(list(islice(draw(RULES[name], 0), INSTANCES))) == INSTANCES
    assert len(begun) <= BEGUN[name]


@pytest.mark.parametrize("name", spread(["mod-less", "div-less", "zero-term[Sub]", "needless-bound[Max]", "where-false", "cast-cast-range"], every=3))
def test_no_draw_that_succeeds_is_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only constants have narrower ranges than foreseen."""
    refused = _counted(monkeypatch, Foresight, "refuses_ranges", lambda found: False)
    types = _counted(monkeypatch, Foresight, "refuses_types", lambda found: False)
    for instance in islice(draw(RULES[name], 1), 8):
        assert not types[-1]
        assert not refused[-1] or instance.model.graph.initializer


def _counted(monkeypatch: pytest.MonkeyPatch, owner: type[Any], name: str, answer: Callable[[Any], Any] = lambda found: found) -> list[Any]:
    """The results of a method from now on; its callers get what `answer` makes of each."""
    method = getattr(owner, name)
    results: list[Any] = []

    def noted(*arguments: Any) -> Any:
        results.append(method(*arguments))
        return answer(results[-1])

    monkeypatch.setattr(owner, name, noted)
    return results

"""Alternatives: what is chosen costs no more than it costs, whatever the target fuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eqsat.choose.alternatives import Alternatives
from eqsat.pipeline import begin
from eqsat.rewriting.solved import Solved
from eqsat.rewriting.turns import attempt
from eqsat.settings import Settings
from tests.support.models import parse

ONES = ", ".join(["1"] * 64)
# The target fuses a Conv and a Relu, which saves time, and an Add and a LayerNormalization, which
# costs time.
CONV = f"""g (float[1, 4, 32, 32] x) => (float[1, 4, 32, 32] y) <float[4, 4, 1, 1] w = {{{", ".join(["1"] * 16)}}}> {{
    a = Conv (x, w)  b = Relu (a)  c = Conv (b, w)  d = Relu (c)  y = Add (d, x)
}}"""
NORMS = f"""g (float[1, 128, 64] x, float[1, 128, 64] z) => (float[1, 128, 64] y) <float[64] s = {{{ONES}}}> {{
    a = Add (x, z)  b = LayerNormalization (a, s, s)  c = Relu (b)  d = Add (c, x)  y = LayerNormalization (d, s, s)
}}"""


def solved(text: str) -> Solved:
    """Returns the solution of the last turn of a run for ONNX Runtime."""
    this = begin(parse(text), Settings(verify=False))
    found = attempt(this.original.model, replace(this.job, keep=True), this.library)
    return next(turn.solved for turn in reversed(found.trace.turns) if turn.solved is not None)


@pytest.mark.parametrize("text", [CONV, NORMS], ids=["saves", "costs"])
def test_what_is_chosen_costs_nothing_more(text: str) -> None:
    one = solved(text)
    found = Alternatives(one.chooser, one.groups, one.chosen, "exact")
    prices: list[float] = []
    for number, terms in enumerate(one.chosen.terms):
        nodes = [term for term in terms.values() if term.head >= 0 and not one.chooser.prices.is_constant(term.eclass)]
        for option in (*([term] for term in nodes), nodes):
            best = found.best(number, [option])
            assert best is not None and not best.excess
            prices.append(best.more)
    assert prices == pytest.approx([0.0] * len(prices), abs=1e-9) and len(prices) > 3


def test_a_term_that_is_not_there_has_no_price() -> None:
    one = solved(CONV)
    found = Alternatives(one.chooser, one.groups, one.chosen, "exact")
    strange = replace(next(term for term in one.chosen.terms[0].values() if term.head >= 0), head=999)
    assert found.best(0, [[strange]]) is None and not found.has(0, [[strange]]) and found.best(0, [[]]) is None

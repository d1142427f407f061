"""Columns that must differ are compared by egglog itself, so the callback sees no match that they rule out."""

from __future__ import annotations

import numpy as np
import pytest

import eqsat
from eqsat.egraph.emit import rule_text
from eqsat.language.differing import Differing, apart, differing
from eqsat.language.library import built_in
from eqsat.language.query import BindAttribute
from tests.support.models import weighted

DIRECTIONS = {direction.name: direction.compiled for direction in built_in().directions}


def found(name: str) -> set[tuple[str, str | int | None]]:
    """Returns the pairs of a built-in rule, by the names that the rule gives the attributes."""
    pattern = DIRECTIONS[name].pattern
    names = {step.source: step.name for step in pattern.steps if isinstance(step, BindAttribute)}
    return {(names[pair.first], pair.value if pair.second is None else names[pair.second]) for pair in differing(pattern)}  # pyright: ignore[reportReturnType]


def test_guards_and_names_say_what_differs() -> None:
    assert found("conv-merge-groups") == {("g", None), ("h", None), ("g", "h")}
    assert found("conv-conv-groups") == {("g", None), ("g", 1)}
    assert found("conv-enlarge") == {("g", None), ("p", None), ("q", None), ("p", "q")}


def test_axes_are_not_compared() -> None:
    """Equal numbers may be different axes, since negative ones count from the back."""
    for name, compiled in DIRECTIONS.items():
        for pair in differing(compiled.pattern):
            axis = [step for step in compiled.pattern.steps if isinstance(step, BindAttribute) and step.source == pair.first and step.attribute == "axis"]
            assert not axis or pair == Differing(pair.first), name


def test_egglog_compares_them() -> None:
    assert rule_text(DIRECTIONS["conv-merge-groups"]).count("(!= ") == 4  # three pairs, and the answer of the callback


def classes(name: str) -> list[tuple[str, str]]:
    """Returns the pairs of classes of a built-in rule, by the names of operators and tensors in it."""
    compiled = DIRECTIONS[name]
    names = {variable: tensor for tensor, variable in compiled.pattern.classes.items()}
    names |= {node.variable: node.operator.name for node in compiled.pattern.nodes}
    outer = next(iter(compiled.pattern.roots.values()))
    return [("outer" if one == outer else names[one], names[other]) for one, other in apart(compiled.pattern, compiled.construction)]


def test_nodes_that_merge_change_their_inputs() -> None:
    assert classes("gather-gather") == [("Gather", "x"), ("outer", "Gather")]
    assert classes("transpose-transpose") == [("Transpose", "x"), ("outer", "Transpose")]
    assert rule_text(DIRECTIONS["gather-gather"]).count("(!= ") == 5  # two pairs, two axes that must be there, and the answer of the callback


def test_nodes_that_become_others_may_change_nothing() -> None:
    assert classes("gather-nothing") == [] and classes("conv-pad") == [] and classes("log-softmax[Log,Softmax,LogSoftmax]") == []


@pytest.mark.parametrize(("groups", "fires"), [((4, 2), True), ((2, 2), False), ((2, 4), True)])
def test_what_they_rule_out_would_not_fire(groups: tuple[int, int], fires: bool) -> None:
    v, w = (np.ones((4, 4 // count, 1, 1), np.float32) for count in groups)
    text = f"g (float[1, 4, 5, 5] x) => (y, z) {{ y = Conv<group = {groups[0]}>(x, v, b)  z = Conv<group = {groups[1]}>(x, w, b) }}"
    found = eqsat.optimize(weighted(text, v=v, w=w, b=np.ones(4, np.float32)), verify=False, target="launches", only=["conv-merge-groups"])
    assert ("conv-merge-groups" in {rule["name"] for rule in found.report["rules"]}) is fires

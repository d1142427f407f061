"""Laws: a step without a rule says what was done."""

from __future__ import annotations

from typing import Any

import pytest

from eqsat.explain import law_names
from eqsat.explain.explanation import explain
from eqsat.explain.node_changes import changes
from eqsat.model.likeness import Keys
from eqsat.settings import Settings
from tests.support.models import parse

CALLS = """<ir_version: 10, opset_import: ["": 18, "own": 1]> g (float[8] x) => (float[8] y) { y = own.f (x) }
<opset_import: ["": 18], domain: "own"> f (x) => (y) { y = Exp (x) }"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g (float[8] x) => (float[8] y) { a = Exp (x)  b = Exp (x)  y = Mul (a, b) }", {(law_names.EQUAL_NODES,)}),
        ("g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> { a = Exp (c)  y = Mul (x, a) }", {(law_names.FOLDED,)}),
        ("g (float[2, 3] x, float[6] z) => (int64[2] y) { y = Shape (x) }", {(law_names.TYPES,)}),
        ("g (float[2, 3] x, float[6] z) => (float[2, 3] y) { s = Shape (x)  y = Reshape (z, s) }", {(law_names.TYPES,)}),
        (
            """g (float[8] x) => (float[8] y) {
                b = Constant <value = bool {1}> ()
                y = If (b) <then_branch = t () => (float[8] u) { u = Exp (x) }, else_branch = e () => (float[8] v) { v = Abs (x) }>
            }""",
            {(law_names.FLOW,)},
        ),
    ],
)
def test_a_law_is_named(text: str, expected: set[tuple[str, ...]]) -> None:
    assert named(text) == expected


def named(text: str, **settings: Any) -> set[tuple[str, ...]]:
    found = explain(parse(text), Settings(**{"target": "launches", **settings}), seconds=0)
    assert found.reached and found.status == "equal" and all(step.change.complete for step in found.steps)
    assert all(step.change.laws for step in found.steps if step.change.kind == "laws")
    assert not any(step.change.laws for step in found.steps if step.change.kind != "laws")
    return {step.change.laws for step in found.steps if step.change.kind == "laws"}


def test_preparations_are_named() -> None:
    assert (law_names.OPSET,) in named("g (float[8] x) => (float[8] y) { y = Exp (x) }", opset=21)
    assert (law_names.INLINED,) in named(CALLS, inline=True)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("{ a = Exp (x)  y = Mul (a, a) }", law_names.EQUAL_NODES),
        ("{ a = Exp (x)  b = Exp (x)  c = Mul (a, b)  y = Identity (c) }", law_names.COPIES),
        ("{ a = Exp (x)  b = Exp (x)  y = Mul <ones = 1> (a, b) }", law_names.SPELLING),
    ],
)
def test_the_law_between_two_models_is_told_by_their_nodes(after: str, expected: str) -> None:
    head, keys = "g (float[8] x) => (float[8] y) ", Keys()
    before, now = parse(head + "{ a = Exp (x)  b = Exp (x)  y = Mul (a, b) }"), parse(head + after)
    old, new = keys.of(before), keys.of(now)
    assert law_names.of_nodes(old, new, *changes(before, old, now, new)) == (expected,)

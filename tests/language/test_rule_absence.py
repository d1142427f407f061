"""Attributes that may be absent: one rule for a node that has the attribute and one that lacks it."""

from __future__ import annotations

from onnx import ModelProto, helper

import eqsat
from eqsat.checker.check import OK, REFUTED, check_rule
from eqsat.language.library import load
from tests.support.models import operators, parse

HANDED_ON = """
# A Conv is linear: a sign passes it.
exact rule signs:
    Conv<group = g, strides = s?, dilations = d?>(Neg(x), w) => Neg(Conv<group = g, strides = s, dilations = d>(x, w))
    test x: T[2, 4, 5, 5], w: T[6, 4, 3, 3], g = 1
    test x: T[2, 4, 5, 5], w: T[6, 4, 3, 3], g = 1, s = [2, 1]
"""

READ = """
# Without strides, or where each is 1, nothing is left out.
exact rule ones:
    Conv<group = g, strides = s?>(Neg(x), w) => Neg(Conv<group = g>(x, w))
    where GUARD
    test x: T[2, 4, 5, 5], w: T[6, 4, 3, 3], g = 1
"""


def optimized(text: str, rule: str) -> ModelProto:
    model = parse(f"g (float[2, 4, 5, 5] x, float[6, 4, 3, 3] w) => (float[2, 6, A, B] y) {{ n = Neg(x) {text} }}")
    names = [resolved.rule.name for resolved in load([rule]).rules]
    return eqsat.optimize(model, rules=[rule], only=names).model


def strides(model: ModelProto) -> list[int] | None:
    (conv,) = (node for node in model.graph.node if node.op_type == "Conv")
    return next((helper.get_attribute_value(attribute) for attribute in conv.attribute if attribute.name == "strides"), None)


def fires(attributes: str, rule: str) -> tuple[bool, list[int] | None]:
    model = optimized(f"y = Conv{attributes}(n, w)", rule)
    return model.graph.node[-1].op_type == "Neg", strides(model)


def test_what_is_absent_stays_absent_and_what_is_there_is_handed_on() -> None:
    rule = HANDED_ON.replace("exact", "real")
    assert fires("", rule) == (True, None)
    assert fires("<strides = [2, 1]>", rule) == (True, [2, 1])
    assert fires("<dilations = [1, 2]>", rule) == (True, None)


def test_a_condition_that_reads_what_is_absent_does_not_hold() -> None:
    for guard, absent, there in (
        ("len(s) == 2", False, True),
        ("not len(s) == 2", False, False),
        ("given(s)", False, True),
        ("not given(s)", True, False),
        ("not given(s) or s[0] == 2", True, True),
        ("(s if given(s) else [1, 1])[0] == 1", True, False),
    ):
        rule = READ.replace("GUARD", guard).replace("exact", "real")
        assert fires("", rule)[0] is absent, guard
        if not there:
            assert fires("<strides = [2, 2]>", rule)[0] is False, guard


def test_operators_stay() -> None:
    assert operators(optimized("y = Conv<pads = [1, 1, 1, 1]>(n, w)", HANDED_ON.replace("exact", "real"))) == {"Neg": 1, "Conv": 1}


def verdict(rule: str) -> str:
    (resolved,) = load([rule]).rules
    return check_rule(resolved, 40, 0).status


def test_the_checker_draws_both() -> None:
    right = HANDED_ON.replace("exact", "real")
    assert verdict(right) == OK
    assert verdict(right.replace("strides = s, dilations = d>(x", "strides = d, dilations = s>(x")) == REFUTED
    read = READ.replace("exact", "real")
    assert verdict(read.replace("GUARD", "not given(s)")) == OK
    assert verdict(read.replace("GUARD", "given(s) or len(shape(w)) > 2")) == REFUTED

"""Likeness: two models are the same if they compute the same from the same, whatever the names are."""

from __future__ import annotations

import pytest

from eqsat.model.likeness import Keys
from tests.support.models import parse

TWO = "g (float[8] x) => (float[8] y) { a = Exp (x)  b = Abs (x)  y = Mul (a, b) }"


def same(one: str, other: str) -> bool:
    """Compares with the keys of one model after the other, and with keys of their own."""
    keys = Keys()
    found = keys.of(parse(one)).same(keys.of(parse(other)))
    assert found == Keys().of(parse(one)).same(Keys().of(parse(other)))
    return found


def test_likeness_is_that_of_graphs_and_not_of_names() -> None:
    assert same(TWO, "g (float[8] x) => (float[8] y) { q = Abs (x)  p = Exp (x)  y = Mul (p, q) }")
    for old, new in (("Abs (x)", "Abs (a)"), ("Mul (a, b)", "Mul (b, a)"), ("Abs", "Neg"), ("y = Mul (a, b)", "c = Neg (a)  y = Mul (a, b)")):
        assert not same(TWO, TWO.replace(old, new))


@pytest.mark.parametrize("text", ["{ w = Constant <value = float[2] K> ()  y = Mul (x, w) }", "<float[2] w = K> { y = Mul (x, w) }"])
def test_a_constant_counts_by_its_elements(text: str) -> None:
    head = f"g (float[2] x) => (float[2] y) {text}"
    one, other = head.replace("K", "{1, 2}"), head.replace("K", "{1, 3}")
    assert same(one, one.replace("w", "weight")) and not same(one, other)


def test_a_body_counts_by_what_it_captures() -> None:
    text = """g (bool c, float[8] x) => (float[8] y) {
        a = Exp (x)  b = Sin (x)
        i = If (c) <then_branch = t () => (float[8] u) { u = Neg (a) }, else_branch = e () => (float[8] v) { v = Abs (a) }>
        y = Add (i, b)
    }"""
    other = text.replace("a = Exp (x)  b = Sin (x)", "a = Sin (x)  b = Exp (x)").replace("Add (i, b)", "Add (i, a)")
    assert same(text, text) and not same(text, other)

"""Changes: nodes that go and come, apart from those that only have other names."""

from __future__ import annotations

import pytest

from eqsat.explain.node_changes import changes
from eqsat.model.likeness import Keys
from tests.support.models import parse

HEAD = "g (float[2] x) => (float[2] y) "
MODEL = HEAD + "<float[2] w = {1, 2}> { a = Exp (x)  b = Mul (a, w)  c = Exp (x)  y = Sub (b, c) }"


@pytest.mark.parametrize(
    ("after", "gone", "came"),
    [
        ("<float[2] w = {1, 2}> { a = Exp (x)  b = Mul (a, w)  c = Exp (x)  y = Sub (b, c) }", (), ()),
        ("<float[2] k = {1, 2}> { p = Exp (x)  q = Exp (x)  r = Mul (p, k)  y = Sub (r, q) }", (), ()),
        ("<float[2] w = {1, 2}> { a = Exp (x)  b = Mul (a, w)  y = Sub (b, a) }", ("Exp c", "Sub y"), ("Sub y",)),
        ("<float[2] w = {1, 2}> { c = Exp (x)  b = Mul (c, w)  y = Sub (b, c) }", ("Exp a", "Mul b"), ("Mul b",)),
        ("<float[2] k = {1, 3}> { p = Exp (x)  q = Exp (x)  b = Mul (p, k)  y = Sub (b, q) }", ("Mul b",), ("Mul b",)),
        ("<float[2] w = {1, 2}> { a = Exp (x)  b = Mul (a, w)  c = Exp (x)  r = Sub (b, c)  y = Identity (r) }", (), ("Identity y",)),
    ],
)
def test_a_node_counts_if_it_computes_something_else(after: str, gone: tuple[str, ...], came: tuple[str, ...]) -> None:
    one, other, keys = parse(MODEL), parse(HEAD + after), Keys()
    assert changes(one, keys.of(one), other, keys.of(other)) == (gone, came)

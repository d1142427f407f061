"""Tests of bounded leaves and of draws that follow what is asked: rules about ranges and joined axes
get instances in few draws.
"""

from __future__ import annotations

from itertools import islice

import pytest

from eqsat.checker.drawing.bounded import leaves_to_bound
from eqsat.checker.drawing.instances import Drawing, draw
from eqsat.language.parse import parse
from eqsat.language.resolve import resolve
from eqsat.language.resolved import Resolved


def rule(text: str) -> Resolved:
    (found,) = resolve(parse(f"real rule bounds:\n{text}", "bounds.rules"))
    return found


@pytest.mark.parametrize(
    ("text", "bounded"),
    [
        ("    Add(Mul(x, y), z) => Add(z, Mul(x, y))\n    where low(z) >= 0", ("z",)),
        ("    Add(s, z)\n    s = Mul(x, y)\n => Add(z, Mul(x, y))\n    where low(s) >= 0", ("x", "y")),
        ("    Add(s, z)\n    s = Mul(t, y)\n    t = Neg(Abs(x))\n => Add(z, Mul(Neg(Abs(x)), y))\n    where high(t) <= 0", ("x",)),
        ("    Clip(x, a?, b?) => Clip(x, a, b)\n    where low(x) >= low(a)", ("x",)),
        ("    Add(x, c) => Add(c, x)\n    where const c, low(c) >= low(x)", ("x",)),
        ("    Add(x, y) => Add(y, x)\n    where rank(x) > 0", ()),
    ],
    ids=["read", "made", "made of what is made", "optional", "constant", "no range"],
)
def test_tensors_whose_range_is_read_get_bounds(text: str, bounded: tuple[str, ...]) -> None:
    assert leaves_to_bound(rule(text)) == bounded


MASKED = """
    Add(MatMul(q, k), m) => Add(m, MatMul(q, k))
    where q: T[b, n, d], k: T[b, d, l], m: T[b, n, l], low(m) >= -100
"""

JOINED = """
    Mul(r, c)
    r = Reshape(Concat<axis = 4>(Unsqueeze(x, [4]), Unsqueeze(x, [4])), _)
 => Mul(c, r)
    where x: T[a, b, l, n], r: T[_, _, _, d], c: T[a, b, l, d], d == 2 * n
    test x: float[2, 3, 5, 4], c: float[2, 3, 5, 8]
"""


@pytest.mark.parametrize(("text", "most"), [(MASKED, 400), (JOINED, 400)], ids=["bounds", "joined axes"])
def test_few_draws_are_in_vain(text: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draws: list[bool] = []
    run = Drawing.run

    def counted(drawing: Drawing) -> bool:
        draws.append(run(drawing))
        return draws[-1]

    monkeypatch.setattr(Drawing, "run", counted)
    assert len(list(islice(draw(rule(text), 0), 100))) == 100
    assert len(draws) < most

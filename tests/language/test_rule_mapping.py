"""Rules that go through a list of tensors: `[F(x) for x in ..xs]` on the left, on the right, and on
both sides.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import eqsat
from eqsat.checker.check import OK, REFUTED, check_rule
from eqsat.language.library import load
from eqsat.language.parse import parse as parse_rules
from eqsat.language.printer import show_file
from eqsat.pipeline import Result
from eqsat.why.why import why
from tests.support.models import operators, parse

TANH = """
# Tanh of the parts is Tanh of the whole.
real rule tanh:
    Concat<axis = a>([Tanh(x) for x in ..xs]) => Tanh(Concat<axis = a>(..xs))
    test xs: T[2, 3] T[1, 3], a = 0
"""

BEHIND = """
# Tanh of the parts behind the first is Tanh of their whole.
real rule behind:
    Concat<axis = a>(y, [Tanh(x) for x in ..xs]) => Concat<axis = a>(y, Tanh(Concat<axis = a>(..xs)))
    test xs: T[2, 3] T[1, 3], y: T[1, 3], a = 0
"""

TRANSPOSES = """
# Two permutations that undo each other are none.
exact rule undone:
    Transpose<perm = p>(Transpose<perm = q>(x)) => x
    where p == inverse(q)
    test x: T[2, 3, 4], p = [1, 2, 0], q = [2, 0, 1]

# Each part is permuted by itself.
exact rule each:
    Transpose<perm = p>(Concat<axis = a>(..xs)) => Concat<axis = index(p, normalized(a, rank(xs[0])))>([Transpose<perm = p>(x) for x in ..xs])
    test xs: T[2, 3] T[1, 3], a = 0, p = [1, 0]
"""

BIASES = """
# What is added to each part is added to the whole.
exact rule biases:
    Concat<axis = a>([Add(x, b) for x, b in ..xs, ..bs])
 => Add(Concat<axis = a>(..xs), Concat<axis = a>([Expand(b, [dim(x, i) if i == k else 1 for i in range(rank(x))]) for x, b in ..xs, ..bs]))
    where const bs
          k = normalized(a, rank(xs[0]))
          n = rank(xs[0])
          all([broadcasts_to(shape(bs[j]), [dim(xs[j], i) if i == k else 1 for i in range(n)]) for j in range(len(xs))])
    test xs: T[2, 3] T[2, 4], bs: T[3] T[4], a = 1
"""

SHARED = """
# A factor of all parts is a factor of the whole.
exact rule shared:
    Concat<axis = a>([Mul(x, c) for x in ..xs]) => Mul(Concat<axis = a>(..xs), c)
    where c: _[]
    test xs: T[2, 3] T[1, 3], c: T[], a = 0
"""

BOTH = """
# Products of the parts are products of the wholes.
exact rule both:
    Concat<axis = a>([Mul(x, y) for x, y in ..xs, ..ys]) <=> Mul(Concat<axis = a>(..xs), Concat<axis = a>(..ys))
    where [shape(x) for x in xs] == [shape(y) for y in ys]
    test xs: T[2, 3] T[1, 3], ys: T[2, 3] T[1, 3], a = 0
"""


def optimized(text: str, rules: str) -> Result:
    """A model of this graph optimized by these rules alone."""
    names = [resolved.rule.name for resolved in load([rules]).rules]
    return eqsat.optimize(parse(text), rules=[rules], only=names, target="launches")


def graph(count: int, part: str, inputs: str = "float[2, 3] x0, float[1, 3] x1, float[2, 3] x2, float[4, 3] x3, float[1, 3] x4") -> str:
    """A Concat of so many parts, each written with `{}` for its number."""
    parts = " ".join(f"p{i} = {part.format(i)}" for i in range(count))
    return f"g ({inputs}, float c) => (float[A, B] y) {{ {parts} y = Concat<axis = 0>({', '.join(f'p{i}' for i in range(count))}) }}"


@pytest.mark.parametrize("count", [2, 3, 5])
def test_as_many_parts_as_there_are(count: int) -> None:
    found = optimized(graph(count, "Tanh(x{})"), TANH)
    assert operators(found.model) == {"Tanh": 1, "Concat": 1}
    assert found.report["verify"]["status"] == "equal"


def test_one_part() -> None:
    assert operators(optimized(graph(1, "Tanh(x{})"), TANH).model) in ({"Tanh": 1}, {"Tanh": 1, "Concat": 1})


def test_a_part_that_is_another_stays() -> None:
    text = graph(3, "Tanh(x{})").replace("p1 = Tanh", "p1 = Neg")
    assert operators(optimized(text, TANH).model) == {"Tanh": 2, "Neg": 1, "Concat": 1}
    assert operators(optimized(text, BEHIND).model) == {"Tanh": 2, "Neg": 1, "Concat": 1}


def test_parts_behind_others() -> None:
    text = graph(4, "Tanh(x{})").replace("p0 = Tanh", "p0 = Neg")
    assert operators(optimized(text, BEHIND).model) == {"Neg": 1, "Tanh": 1, "Concat": 2}


def test_equal_parts() -> None:
    found = optimized("g (float[2, 3] x) => (float[6, 3] y) { t = Tanh(x) y = Concat<axis = 0>(t, t, t) z = Neg(t) }", TANH)
    assert operators(found.model)["Tanh"] == 1
    assert found.report["verify"]["status"] == "equal"


def test_attributes_are_the_same_for_all_parts() -> None:
    rule = """
# Parts that are permuted alike.
exact rule alike:
    Concat<axis = a>([Transpose<perm = p>(x) for x in ..xs]) => Transpose<perm = p>(Concat<axis = p[a]>(..xs))
    test xs: T[2, 3] T[2, 1], a = 0, p = [1, 0]
"""
    text = """g (float[2, 2, 2] x0, float[2, 2, 2] x1) => (float[A, B, C] y) {{
        a = Transpose<perm = [1, 0, 2]>(x0) b = Transpose<perm = {}>(x1) y = Concat<axis = 0>(a, b) }}"""
    assert operators(optimized(text.format("[1, 0, 2]"), rule).model) == {"Transpose": 1, "Concat": 1}
    assert operators(optimized(text.format("[2, 0, 1]"), rule).model) == {"Transpose": 2, "Concat": 1}


def test_each_part_of_a_right_side() -> None:
    parts = " ".join(f"t{i} = Transpose<perm = [1, 0]>(x{i})" for i in range(5))
    inputs = ", ".join(f"float[2, {i + 1}] x{i}" for i in range(5))
    text = f"g ({inputs}) => (float[2, A] y) {{ {parts} c = Concat<axis = 0>(t0, t1, t2, t3, t4) y = Transpose<perm = [1, 0]>(c) }}"
    found = optimized(text, TRANSPOSES)
    assert operators(found.model) == {"Concat": 1}
    assert found.report["verify"]["status"] == "equal"


def test_the_constant_operand_is_meant_whichever_it_is() -> None:
    text = """g (float[2, 3] x0, float[2, 4] x1, float[2, 1] x2) => (float[2, 8] y) <float[3] b0 = {1, 2, 3}, float[4] b1 = {4, 5, 6, 7}, float[1] b2 = {8}> {
        p0 = Add(x0, b0) p1 = Add(b1, x1) p2 = Add(b2, x2) y = Concat<axis = 1>(p0, p1, p2) }"""
    found = optimized(text, BIASES)
    assert operators(found.model) == {"Concat": 1, "Add": 1}
    assert found.report["verify"]["status"] == "equal"


def test_a_name_outside_the_lists_is_one_tensor() -> None:
    assert operators(optimized(graph(5, "Mul(c, x{})"), SHARED).model) == {"Mul": 1, "Concat": 1}
    two = graph(3, "Mul(x{}, c)").replace("float c)", "float c, float d)").replace("p1 = Mul(x1, c)", "p1 = Mul(x1, d)")
    assert operators(optimized(two, SHARED).model) == {"Mul": 3, "Concat": 1}


def test_many_ways_to_choose_end() -> None:
    """Each part is a product in two orders: of all ways to choose one is taken, or they would be
    without number.
    """
    count = 30
    inputs = ", ".join(f"float[1, 3] x{i}, float[1, 3] z{i}" for i in range(count))
    found = optimized(graph(count, "Mul(x{0}, z{0})", inputs), BOTH)
    assert operators(found.model)["Mul"] == 1


@pytest.mark.parametrize("rules", [TANH, BEHIND, TRANSPOSES, BIASES, SHARED, BOTH], ids=["tanh", "behind", "each", "biases", "shared", "both"])
def test_right_rules_pass_and_keep_their_text(rules: str) -> None:
    for resolved in load([rules]).rules:
        assert check_rule(resolved, 40, 0).status == OK
    text = show_file(parse_rules(rules.lstrip("\n"), "mapping.rules"))
    assert show_file(parse_rules(text, "mapping.rules")) == text


@pytest.mark.parametrize(
    "right, wrong, text",
    [
        ("Tanh(Concat", "Tanh(Concat", TANH.replace("[Tanh(x)", "[Neg(x)")),
        ("    where c: _[]\n", "", SHARED),
        ("    where [shape(x) for x in xs] == [shape(y) for y in ys]\n", "", BOTH.replace("<=>", "=>")),
        ("index(p, normalized(a, rank(xs[0])))", "a", TRANSPOSES.partition("# Each")[2].join(["# Each", ""])),
    ],
)
def test_wrong_rules_are_refuted(right: str, wrong: str, text: str) -> None:
    (resolved,) = load([text.replace(right, wrong)]).rules
    assert check_rule(resolved, 40, 0).status == REFUTED


def test_why(tmp_path: Path) -> None:
    (resolved,) = load([TANH]).rules
    source = tmp_path / "model.onnx"
    onnx.save(parse(graph(3, "Tanh(x{})")), source)
    assert why(resolved, source).fires == 1
    onnx.save(parse(graph(3, "Tanh(x{})").replace("p1 = Tanh", "p1 = Neg")), source)
    answer = why(resolved, source)
    assert answer.fires == 0
    (spot,) = answer.spots
    assert spot.stop is not None
    assert spot.stop.reason.startswith("an item of the list is made by Neg")

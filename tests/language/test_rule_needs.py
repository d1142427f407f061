"""What a graph must have before a rule enters a run: operators, and edges between them."""

from __future__ import annotations

import pytest

import eqsat
from eqsat.egraph.admission import Admission
from eqsat.language.library import load
from eqsat.language.query import ANY, LISTED, Edge
from tests.support.models import operators, parse

SIGNS = "exact rule signs:\n    Neg(Neg(x)) => x\n    test x: T[2, 3]\n"
SUMS = "exact rule sums:\n    Add(Sigmoid(x), Exp(y)) => Sub(Exp(y), Neg(Sigmoid(x)))\n    test x: T[2, 3], y: T[2, 3]\n"
PARTS = "exact rule parts:\n    Concat<axis = 0>(Neg(x), ..xs) => Neg(x)\n    where len(xs) == 0\n    test x: T[2, 3]\n"
# Abs makes the second Neg that `signs` needs.
MAKER = "exact rule maker:\n    Abs(Relu(x)) => Neg(Neg(Relu(x)))\n    test x: T[2, 3]\n"


OUTPUTS = "exact rule outputs:\n    x1, x2 = Split<axis = 0>(_, _)\n    y = Sub(x1, Neg(x2))\n => y = Add(x1, x2)\n"
EACH = "exact rule each:\n    Concat<axis = 0>([Mul(Abs(x), c) for x in ..xs])\n => Mul(Concat<axis = 0>([Abs(x) for x in ..xs]), c)\n"
MOST = "exact rule most:\n    Max(Neg(x), y) => Neg(Min(x, Neg(y)))\n    test x: T[2, 3], y: T[2, 3]\n"


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        (SIGNS, {("Neg", 0, "Neg")}),
        (SUMS, {("Add", ANY, "Sigmoid"), ("Add", ANY, "Exp")}),
        (PARTS, {(LISTED, ANY, "Neg")}),  # the node may be anywhere in a list
        (MOST, {(LISTED, ANY, "Neg")}),
        (OUTPUTS, {("Sub", 0, "Split"), ("Sub", 1, "Neg"), ("Neg", 0, "Split")}),
        (EACH, {(LISTED, ANY, "Mul"), ("Mul", ANY, "Abs")}),
    ],
)
def test_edges_are_those_of_the_left_side(text: str, edges: set[Edge]) -> None:
    direction = load([text]).directions[0]
    assert direction.needs.edges == edges
    assert not edges or not direction.needs.met(direction.needs.operators, set())
    assert direction.needs.met(direction.needs.operators, edges)


def test_a_rule_enters_only_once_its_edges_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[str] = []
    enter = Admission._enter  # pyright: ignore[reportPrivateUsage]

    def spy(self: Admission, number: int) -> None:
        enter(self, number)
        entered.append(self.firings[number].compiled.name)

    monkeypatch.setattr(Admission, "_enter", spy)
    apart = parse("g (float[2, 3] x) => (float[2, 3] y) { a = Neg(x) b = Relu(a) y = Neg(b) }")
    assert operators(eqsat.optimize(apart, rules=[SIGNS], only=["signs"], target="launches").model) == {"Neg": 2, "Relu": 1}
    assert not entered
    together = parse("g (float[2, 3] x) => (float[2, 3] y) { a = Neg(x) y = Neg(a) }")
    assert not operators(eqsat.optimize(together, rules=[SIGNS], only=["signs"], target="launches").model).get("Neg")
    assert entered == ["signs"]


def test_a_rule_enters_when_another_makes_its_edge() -> None:
    model = parse("g (float[2, 3] x) => (float[2, 3] y) { a = Relu(x) b = Abs(a) y = Neg(b) }")
    result = eqsat.optimize(model, rules=[SIGNS + "\n" + MAKER], only=["signs", "maker"], effort="high", target="launches")
    assert operators(result.model) == {"Relu": 1, "Neg": 1}


BEFORE = "exact rule before:\n    Sub(Neg(x), y) => Neg(Add(x, y))\n    test x: T[2, 3], y: T[2, 3]\n"
FIRST = "g (float[2, 3] x, float[2, 3] y) => (float[2, 3] z) { a = Neg(x) z = Sub(a, y) }"
SECOND = "g (float[2, 3] x, float[2, 3] y) => (float[2, 3] z) { a = Neg(x) z = Sub(y, a) }"
SPLIT = "g (float[4, 3] x, int64[2] s) => (float[N, 3] y) { a, b = Split<axis = 0>(x, s) c = Neg(b) y = Sub(a, c) }"
UNSPLIT = "g (float[4, 3] x, int64[2] s) => (float[N, 3] z) { a, b = Split<axis = 0>(x, s) y = Sub(a, b) z = Neg(y) }"
ITEMS = "g (float[2, 3] x, float c) => (float[4, 3] y) { a = Abs(x) b = Mul(a, c) y = Concat<axis = 0>(b, b) }"
OTHERS = "g (float[2, 3] x, float c) => (float[4, 3] y) { a = Abs(x) b = Concat<axis = 0>(a, a) y = Mul(b, c) }"
TWO = "exact rule two:\n    Concat<axis = 0>(Neg(x), Neg(y)) => Neg(Concat<axis = 0>(x, y))\n    test x: T[2, 3], y: T[2, 3]\n"
MORE = "exact rule more:\n    Concat<axis = 0>(Neg(x), Neg(y), ..zs) => Concat<axis = 0>(Neg(Concat<axis = 0>(x, y)), ..zs)\n"
KEEPING = "exact rule keeping:\n    ReduceSum(Neg(x), axes) => Neg(ReduceSum(x, axes))\n    test x: T[2, 3], axes = [1]\n"
PAIR = "g (float[2, 3] x) => (float[4, 3] y) { a = Neg(x) y = Concat<axis = 0>(a, a) }"
TRIPLE = "g (float[2, 3] x) => (float[6, 3] y) { a = Neg(x) y = Concat<axis = 0>(a, a, a) }"
KEPT = "g (float[2, 3] x) => (float[2, 1] y) { a = Neg(x) i = Constant<value_ints = [1]>() y = ReduceSum<keepdims = 1>(a, i) }"
GONE = "g (float[2, 3] x) => (float[2] y) { a = Neg(x) i = Constant<value_ints = [1]>() y = ReduceSum<keepdims = 0>(a, i) }"


@pytest.mark.parametrize(
    ("rule", "model", "enters"),
    [
        *[(TWO, PAIR, True), (TWO, TRIPLE, False), (MORE, PAIR, True), (MORE, TRIPLE, True), (KEEPING, KEPT, True), (KEEPING, GONE, False)],
        *[(BEFORE, FIRST, True), (BEFORE, SECOND, False), (OUTPUTS, SPLIT, True), (OUTPUTS, UNSPLIT, False), (EACH, ITEMS, True), (EACH, OTHERS, False)],
    ],
)
def test_a_rule_enters_only_with_its_edges_and_a_term_of_its_form(rule: str, model: str, enters: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[int] = []
    enter = Admission._enter  # pyright: ignore[reportPrivateUsage]

    def spy(self: Admission, number: int) -> None:
        enter(self, number)
        entered.append(number)

    monkeypatch.setattr(Admission, "_enter", spy)
    eqsat.optimize(parse(model), rules=[rule], only=[load([rule]).directions[0].name], target="launches", verify=False)
    assert bool(entered) == enters

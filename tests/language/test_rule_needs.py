"""What a graph must have before a rule enters a run: operators, and edges between them."""

from __future__ import annotations

import pytest

import eqsat
from eqsat.egraph.admission import Admission
from eqsat.language.library import load
from tests.support.models import operators, parse

SIGNS = "exact rule signs:\n    Neg(Neg(x)) => x\n    test x: T[2, 3]\n"
SUMS = "exact rule sums:\n    Add(Sigmoid(x), Exp(y)) => Sub(Exp(y), Neg(Sigmoid(x)))\n    test x: T[2, 3], y: T[2, 3]\n"
PARTS = "exact rule parts:\n    Concat<axis = 0>(Neg(x), ..xs) => Neg(x)\n    where len(xs) == 0\n    test x: T[2, 3]\n"
# Abs makes the second Neg that `signs` needs.
MAKER = "exact rule maker:\n    Abs(Relu(x)) => Neg(Neg(Relu(x)))\n    test x: T[2, 3]\n"


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        (SIGNS, {("Neg", "Neg")}),
        (SUMS, {("Add", "Sigmoid"), ("Add", "Exp")}),
        (PARTS, set[tuple[str, str]]()),  # the node may be anywhere in a list
    ],
)
def test_edges_are_those_of_the_left_side(text: str, edges: set[tuple[str, str]]) -> None:
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


TWO = "exact rule two:\n    Concat<axis = 0>(Neg(x), Neg(y)) => Neg(Concat<axis = 0>(x, y))\n    test x: T[2, 3], y: T[2, 3]\n"
MORE = "exact rule more:\n    Concat<axis = 0>(Neg(x), Neg(y), ..zs) => Concat<axis = 0>(Neg(Concat<axis = 0>(x, y)), ..zs)\n"
KEEPING = "exact rule keeping:\n    ReduceSum(Neg(x), axes) => Neg(ReduceSum(x, axes))\n    test x: T[2, 3], axes = [1]\n"
PAIR = "g (float[2, 3] x) => (float[4, 3] y) { a = Neg(x) y = Concat<axis = 0>(a, a) }"
TRIPLE = "g (float[2, 3] x) => (float[6, 3] y) { a = Neg(x) y = Concat<axis = 0>(a, a, a) }"
KEPT = "g (float[2, 3] x) => (float[2, 1] y) { a = Neg(x) i = Constant<value_ints = [1]>() y = ReduceSum<keepdims = 1>(a, i) }"
GONE = "g (float[2, 3] x) => (float[2] y) { a = Neg(x) i = Constant<value_ints = [1]>() y = ReduceSum<keepdims = 0>(a, i) }"


@pytest.mark.parametrize(
    ("rule", "model", "enters"),
    [(TWO, PAIR, True), (TWO, TRIPLE, False), (MORE, PAIR, True), (MORE, TRIPLE, True), (KEEPING, KEPT, True), (KEEPING, GONE, False)],
)
def test_a_rule_enters_only_with_a_term_of_its_form(rule: str, model: str, enters: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[int] = []
    enter = Admission._enter  # pyright: ignore[reportPrivateUsage]

    def spy(self: Admission, number: int) -> None:
        enter(self, number)
        entered.append(number)

    monkeypatch.setattr(Admission, "_enter", spy)
    eqsat.optimize(parse(model), rules=[rule], only=[load([rule]).directions[0].name], target="launches", verify=False)
    assert bool(entered) == enters

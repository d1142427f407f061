"""A rule enters a program once some term suits each node of its left side, and never too late."""

from __future__ import annotations

import onnx
import pytest

import eqsat
from eqsat.egraph.admission import Admission
from eqsat.examples.bert import bert
from eqsat.language.alone import Alone
from eqsat.language.compile import Compiled
from eqsat.language.library import load
from tests.support.models import operators, parse

ONE = """
# A factor of one changes nothing.
exact rule one:
    Mul(x, 1) => x
    test x: T[2, 3]
"""

WIDE = """
# A row minus a value.
real rule wide:
    Add(Neg(x), c) => Sub(c, x)
    where const c, c: _[_]
    test x: T[2, 3], c: T[3]
"""

LESS = """
# A constant may be taken away instead.
exact rule less:
    Add(x, c) => Sub(x, Neg(c))
    where const c
    test x: T[2, 3], c: T[3]
"""

SIGNS = """
# Two signs are none.
exact rule signs:
    Neg(Neg(x)) => x
    test x: T[2, 3]
"""

SQUARE = """
# An absolute value of a product of equals is the product.
real rule square:
    Abs(Mul(x, x)) => Mul(x, x)
    test x: T[2, 3]
"""


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the names of the rules that enter from now on."""
    found: list[str] = []
    enter = Admission._enter  # pyright: ignore[reportPrivateUsage]

    def noted(self: Admission, number: int) -> None:
        found.append(self._ruleset.rules[number].name)  # pyright: ignore[reportPrivateUsage]
        enter(self, number)

    monkeypatch.setattr(Admission, "_enter", noted)
    return found


def optimize(text: str, *rules: str) -> onnx.ModelProto:
    names = [resolved.rule.name for resolved in load(rules).rules]
    return eqsat.optimize(parse(text), rules=list(rules), only=names, target="launches").model


@pytest.mark.parametrize(
    ("factor", "node", "enters"),
    [("1", "Mul (x, k)", True), ("1", "Mul (k, x)", True), ("2", "Mul (x, k)", False), ("2", "Mul (k, x)", False)],
)
def test_a_rule_for_a_number_enters_where_the_number_is(entered: list[str], factor: str, node: str, enters: bool) -> None:
    model = optimize(f"g (float[2, 3] x) => (float[2, 3] y) <float k = {{{factor}}}> {{ a = Neg (x) b = {node.replace('x', 'a')} y = Abs (b) }}", ONE)
    assert entered == ["one"] * enters
    assert operators(model)["Mul"] == (not enters)


@pytest.mark.parametrize(("shape", "elements", "enters"), [("3", "1, 2, 3", True), ("2, 1", "1, 2", False)])
def test_types_of_constants_are_asked_for(entered: list[str], shape: str, elements: str, enters: bool) -> None:
    optimize(f"g (float[2, 3] x) => (float[2, 3] y) <float[{shape}] c = {{{elements}}}> {{ n = Neg (x) y = Add (c, n) }}", WIDE)
    assert entered == ["wide"] * enters


def test_a_variable_that_comes_twice_is_one_value(entered: list[str]) -> None:
    optimize("g (float[2, 3] x, float[2, 1] z) => (float[2, 3] y) { n = Mul (x, z) y = Abs (n) }", SQUARE)
    assert entered == []
    optimize("g (float[2, 3] x) => (float[2, 3] y) { n = Mul (x, x) y = Abs (n) }", SQUARE)
    assert entered == ["square"]


def test_a_rule_enters_when_another_makes_its_term(entered: list[str]) -> None:
    model = optimize("g (float[2, 3] x) => (float[2, 3] y) <float k = {1}> { a = Neg (x) b = Neg (a) c = Mul (b, k) y = Neg (c) }", SIGNS, ONE)
    assert sorted(entered) == ["one", "signs"]
    assert operators(model) == {"Neg": 1}


def test_a_constant_is_given_no_other_form(entered: list[str]) -> None:
    """A rule that does not shrink the graph waits for a term that is no constant."""
    header = "g (float[2, 3] x) => (float[2, 3] y) <float[3] k = {1, 2, 3}>"
    optimize(f"{header} {{ n = Exp (k) o = Add (n, k) y = Mul (x, o) }}", LESS)
    assert entered == []
    optimize(f"{header} {{ n = Exp (x) o = Add (n, k) y = Mul (x, o) }}", LESS)
    assert entered == ["less"]


def test_the_parts_of_a_rule_name_what_each_node_decides() -> None:
    (compiled,) = (direction.compiled for direction in load([WIDE]).directions)
    parts = {part.atom.operator.name: part for part in compiled.alone}
    assert parts["Add"].root and not parts["Neg"].root
    # That c is constant and its type follow from the Add alone; x is read by the Neg.
    assert len(parts["Add"].steps) > len(parts["Neg"].steps) > 0


def test_no_rule_that_fires_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The forms of nodes alone let in more rules, which find nothing more."""
    model = bert()
    results = [eqsat.optimize(model, target="onnxruntime-cpu")]
    monkeypatch.setattr(Compiled, "alone", property(lambda self: tuple(map(Alone, self.pattern.nodes))))
    results.append(eqsat.optimize(model, target="onnxruntime-cpu"))
    fired = [{rule["name"]: rule["matches"] for rule in result.report["rules"] if rule["matches"]} for result in results]
    assert fired[0] and fired[0] == fired[1]
    assert results[0].model.SerializeToString() == results[1].model.SerializeToString()

"""Lists of results: one rule for Splits into any number of parts."""

from __future__ import annotations

from pathlib import Path

import pytest

import eqsat
from eqsat.checker.check import OK, REFUTED, check_rule
from eqsat.cli.main import main
from eqsat.language.library import load
from eqsat.language.parse import parse as parse_rules
from eqsat.language.printer import show, show_file
from eqsat.language.results import LENGTHS
from tests.support.models import operators, parse

TRANSPOSES = """
# A Transpose behind the Split.
exact rule moved:
    ..ys = Split<axis = a>(Transpose<perm = p>(x), s)
 => ..zs = Split<axis = p[a]>(x, s)
    ..ys = [Transpose<perm = p>(z) for z in ..zs]
"""
CONCATS = """
# A Split at the joints of a Concat.
exact rule apart:
    ..ys = Split<axis = a>(Concat<axis = a>(..xs), s)
 => ..ys = ..xs
    where len(xs) == len(s), [dim(x, a) for x in xs][:-1] == s[:-1]
    test xs: T[2, 3] T[1, 3] T[4, 3], a = 0, s = [2, 1, 4]

# All parts of a Split, and others behind them.
exact rule together:
    ..ys = Split<axis = a>(x, _)
    z = Concat<axis = a>(..ys, ..rest)
 => z = Concat<axis = a>(x, ..rest)
"""
UNDONE = """
# A Transpose that undoes another.
exact rule undone:
    Transpose<perm = p>(Transpose<perm = q>(x)) => x
    where p == inverse(q)
"""
ACTIVATIONS = """
# An operator on each part is one on the whole, and so is its factor.
for F in [Relu, Abs]:
exact rule parts:
    ..xs = Split<axis = a>(x, s)
    ..ys = [Mul(F(p), c) for p, c in ..xs, ..cs]
 => ..ys = Split<axis = a>(Mul(F(x), cs[0]), s)
    where const cs, [uniform(c) for c in cs] == [uniform(cs[0]) for c in cs], cs: _[]
"""


def split(length: int, part: str, whole: str = "x") -> str:
    """A graph that splits its input, or what is made of it, and computes one output of each part."""
    names = ", ".join(f"p{number}" for number in range(length))
    outputs = ", ".join(f"float[A{number}, B{number}] y{number}" for number in range(length))
    parts = " ".join(f"y{number} = {part.format(f'p{number}')}" for number in range(length))
    return f"""g (float[{2 * length}, 3] x) => ({outputs}) <int64[{length}] s = {{{", ".join("2" * length)}}}> {{
        w = {whole}(x) {names} = Split<axis = 1>(w, s) {parts} }}"""


def left(text: str, rules: str, *only: str) -> eqsat.Result:
    """What these rules alone make of a graph."""
    names = only or tuple(dict.fromkeys(one.rule.family for one in load([rules]).rules))
    return eqsat.optimize(parse(text), rules=[rules], only=names, target="launches")


@pytest.mark.parametrize("rules", [TRANSPOSES, CONCATS, ACTIVATIONS])
def test_a_rule_is_shown_as_it_is_written(rules: str) -> None:
    assert show_file(parse_rules(rules.lstrip("\n"), "one.rules")) == rules.lstrip("\n")


def test_a_member_for_each_length() -> None:
    members = {one.rule.name: one for one in load([TRANSPOSES]).rules}
    assert list(members) == [f"moved[{length}]" for length in LENGTHS]
    assert show(members["moved[2]"].rule).split("\n", 1)[1] == (
        "exact rule moved[2]:\n"
        "    ys_1, ys_2 = Split<axis = a>(Transpose<perm = p>(x), s)\n"
        " => zs_1, zs_2 = Split<axis = p[a]>(x, s)\n"
        "    ys_1 = Transpose<perm = p>(zs_1)\n"
        "    ys_2 = Transpose<perm = p>(zs_2)"
    )


def test_lists_that_are_as_long_are_written_out_everywhere() -> None:
    members = {one.rule.name: show(one.rule) for one in load([ACTIVATIONS]).rules}
    assert len(members) == 2 * len(LENGTHS)
    text = members["parts[Abs,3]"]
    assert "ys_3 = Mul(Abs(xs_3), cs_3)" in text
    assert "const cs_1, const cs_2, const cs_3" in text
    assert "[uniform(cs_1), uniform(cs_2), uniform(cs_3)] == [uniform(cs_1), uniform(cs_1), uniform(cs_1)]" in text
    assert "cs_3: _[]" in text


def test_a_test_line_is_for_the_length_that_it_gives() -> None:
    tests = {one.rule.name: len(one.rule.tests) for one in load([CONCATS]).rules if one.rule.family == "apart"}
    assert tests == {f"apart[{length}]": int(length == 3) for length in LENGTHS}


@pytest.mark.parametrize("length", [2, 5, 8])
def test_as_many_results_as_there_are(length: int) -> None:
    found = left(split(length, "Transpose<perm = [1, 0]>({})", "Transpose<perm = [1, 0]>"), TRANSPOSES + UNDONE)
    assert operators(found.model) == {"Split": 1}
    assert found.report["verify"]["status"] == "equal"
    assert f"moved[{length}]" in {rule["name"] for rule in found.report["rules"]}


def test_more_results_than_a_rule_goes_through_stay() -> None:
    length = LENGTHS.stop
    found = left(split(length, "Transpose<perm = [1, 0]>({})", "Transpose<perm = [1, 0]>"), TRANSPOSES + UNDONE)
    assert operators(found.model) == {"Split": 1, "Transpose": length + 1}


def test_results_are_a_list_of_inputs() -> None:
    text = """g (float[9, 3] x, float[1, 3] y) => (float[A, 3] z) <int64[4] s = {1, 2, 3, 3}> {
        w = Abs(x) a, b, c, d = Split<axis = 0>(w, s) v = Concat<axis = 0>(a, b, c, d, y) z = Neg(v) }"""
    assert operators(left(text, CONCATS).model) == {"Abs": 1, "Concat": 1, "Neg": 1}
    assert operators(left(text.replace("(a, b, c, d, y)", "(a, b, d, c, y)"), CONCATS).model)["Split"] == 1


def test_a_list_stands_for_the_results() -> None:
    text = """g (float[2, 3] x, float[1, 3] y, float[4, 3] z) => (float[2, 3] a, float[1, 3] b, float[4, 3] c) <int64[3] s = {2, 1, 4}> {
        w = Concat<axis = 0>(x, y, z) p, q, r = Split<axis = 0>(w, s) a = Abs(p) b = Neg(q) c = Exp(r) }"""
    assert operators(left(text, CONCATS).model) == {"Abs": 1, "Neg": 1, "Exp": 1}
    other = text.replace("{2, 1, 4}", "{1, 2, 4}").replace("float[2, 3] a, float[1, 3] b", "float[1, 3] a, float[2, 3] b")
    assert operators(left(other, CONCATS).model)["Split"] == 1


def test_an_operator_on_each_result() -> None:
    parts = " ".join(f"r{n} = Relu(p{n}) m{n} = Mul(r{n}, two) y{n} = Neg(m{n})" for n in range(3))
    text = f"""g (float[2, 6] x) => (float[2, 1] y0, float[2, 2] y1, float[2, 3] y2) <int64[3] s = {{1, 2, 3}}, float two = {{2}}> {{
        p0, p1, p2 = Split<axis = 1>(x, s) {parts} }}"""
    found = left(text, ACTIVATIONS)
    assert operators(found.model) == {"Relu": 1, "Mul": 1, "Split": 1, "Neg": 3}
    assert found.report["verify"]["status"] == "equal"


def test_the_checker_tells_lengths_apart() -> None:
    wrong = CONCATS.replace("[dim(x, a) for x in xs][:-1] == s[:-1]", "(len(xs) == 4 or [dim(x, a) for x in xs][:-1] == s[:-1])")
    right, refuted = ({one.rule.name: one for one in load([text]).rules} for text in (CONCATS, wrong))
    assert check_rule(right["apart[4]"], 10, 0, thorough=1).status == OK
    assert check_rule(refuted["apart[3]"], 10, 0, thorough=1).status == OK
    assert check_rule(refuted["apart[4]"], 10, 0, thorough=1).status == REFUTED


def test_why_asks_for_the_lengths_of_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, rules = tmp_path / "model.onnx", tmp_path / "my.rules"
    model.write_bytes(parse(split(3, "Neg({})", "Transpose<perm = [1, 0]>")).SerializeToString())
    rules.write_text(TRANSPOSES)
    assert main(["rules", "why", "moved", str(model), "--rules", str(rules)]) == 0
    said = capsys.readouterr().out
    assert "moved[3]" in said
    assert "moved[2]" not in said

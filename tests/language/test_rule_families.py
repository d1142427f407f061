"""Families of rules, and what a file defines for its rules: members, their names, what they cost,
and whether the checker tells them apart.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import onnx
import pytest

import eqsat
from eqsat.checker.check import OK, REFUTED, Verdict, check
from eqsat.cli.main import main
from eqsat.errors import InputError
from eqsat.families import FAMILIES
from eqsat.language import cache
from eqsat.language.library import built_in, built_in_for, load
from eqsat.language.printer import expression, show, show_file
from eqsat.language.syntax import Definition, Guard
from tests.support.models import parse

TWICE = """# Twice is once.
for F in idempotent:
exact rule twice:
    F(F(x)) => F(x)
    test x: T[2, 3]
"""
PAIRS = """
for F in [Neg, Relu], G in [Add, Mul]:
finite rule pairs:
    F(G(x, y)) => G(F(x), F(y))
    where floating(dtype(x)), F == "Neg" or rank(x) == 2
    test x: T[2, 3], y: T[2, 3]
"""
# A maximum is kept by what never decreases: of twenty operators one does.
MAXIMUM = """
for F in monotone + [Neg] + [LeakyRelu, Asinh, Elu, HardSwish, Not] - [HardSwish, Not]:
real rule of-maximum:
    F(Max(x, y)) => Max(F(x), F(y))
    where dtype(x) == float
    test x: float[2, 3], y: float[2, 3]
"""
# Each inverse of an operand belongs to its own operator.
INVERSE = """
for (F, G, H) in [(Add, Sub, Neg), (Mul, Div, Reciprocal)], K in [Abs, Relu]:
real rule inverse:
    K(F(x, H(y))) => K(G(x, y))
    exact if H == "Neg"
"""
# Cutting an operand that has the axis is cutting the result.
MIRRORED = """
for F in binary + mirrored binary - mirrored [Pow, BitShift] - [Max] + mirrored [PRelu]:
real rule mirrored-gather:
    y = Gather<axis = a>(z, i)
    z = F<..p>(x, c)
 => y = F<..p>(Gather<axis = a>(x, i), c)
    where 0 <= a < rank(x) - rank(c), shape(z) == shape(x)
"""


def names(text: str) -> list[str]:
    return [found.rule.name for found in load([text]).rules]


# --- members ---


def test_a_family_has_a_member_for_each_operator() -> None:
    assert names(TWICE) == [f"twice[{operator}]" for operator in FAMILIES["idempotent"].members]
    assert names(PAIRS) == ["pairs[Neg,Add]", "pairs[Neg,Mul]", "pairs[Relu,Add]", "pairs[Relu,Mul]"]
    assert names(MAXIMUM)[-4:] == ["of-maximum[Neg]", "of-maximum[LeakyRelu]", "of-maximum[Asinh]", "of-maximum[Elu]"]


def test_a_member_is_the_rule_of_its_operator() -> None:
    (first, *_) = load([PAIRS]).rules
    assert show(first.rule).split("\n")[1:3] == ["    Neg(Add(x, y)) => Add(Neg(x), Neg(y))", '    where floating(dtype(x)), "Neg" == "Neg" or rank(x) == 2']


def test_variables_in_parentheses_go_together() -> None:
    assert names(INVERSE) == [f"inverse[{pair},{last}]" for pair in ("Add,Sub,Neg", "Mul,Div,Reciprocal") for last in ("Abs", "Relu")]
    rule = load([INVERSE]).rules[2].rule
    assert show(rule).split("\n")[1:] == ["    Abs(Mul(x, Reciprocal(y))) => Abs(Div(x, y))", '    exact if "Reciprocal" == "Neg"']


def test_the_operands_of_mirrored_operators_change_places_on_both_sides() -> None:
    found = names(MIRRORED)
    assert {"mirrored-gather[Sub]", "mirrored-gather[mirrored-Sub]", "mirrored-gather[Add]", "mirrored-gather[Pow]"} <= set(found)
    assert not {"mirrored-gather[mirrored-Add]", "mirrored-gather[mirrored-Pow]", "mirrored-gather[Max]"} & set(found), "Add and Max are their own images"
    rule = load([MIRRORED]).rule("mirrored-gather[mirrored-Sub]").rule
    assert rule.operators == ("Sub",) and "    z = Sub<..p>(c, x)\n => y = Sub<..p>(c, Gather<axis = a>(x, i))\n" in show(rule)


def test_mirrored_operators_fire_in_both_places() -> None:
    model = parse(
        "g (float[5,3] x) => (float[2,3] y, float[2,3] z) <float[3] c = {1, 2, 3}, int64[2] i = {0, 3}>\n"
        "{ a = Sub(c, x) b = Sub(x, c) y = Gather(a, i) z = Gather(b, i) }"
    )
    report = eqsat.optimize(model, rules=[MIRRORED], only=["mirrored-gather"]).report
    assert report["verify"]["status"] == "equal"
    assert {rule["name"] for rule in report["rules"]} == {"mirrored-gather[Sub]", "mirrored-gather[mirrored-Sub]"}


@pytest.mark.parametrize("text", [TWICE, *(text.lstrip("\n") for text in (PAIRS, MAXIMUM, INVERSE, MIRRORED))])
def test_a_family_is_shown_as_it_is_written(text: str) -> None:
    assert show_file(load([text]).groups[0].file) == text


def test_variables_of_several_letters_and_before_blanks() -> None:
    text = "\nfor F1 in [Elu, Selu],\n    G in [Neg]:\nreal rule spaced:\n    F1 <..p> (G (x)) => G(F1<..p>(x))\n    test x: T[2]\n"
    assert names(text) == ["spaced[Elu,Neg]", "spaced[Selu,Neg]"]


# --- selection ---

MODEL = "g (float[2,3] x) => (y) { a = Ceil(x) b = Ceil(a) c = Abs(b) y = Abs(c) }"


@pytest.mark.parametrize(
    ("options", "fired"),
    [
        ({"only": ["twice"]}, {"twice[Abs]", "twice[Ceil]"}),
        ({"only": ["twice[Ceil]"]}, {"twice[Ceil]"}),
        ({"only": ["twice"], "skip": ["twice[Ceil]"]}, {"twice[Abs]"}),
        ({"only": ["twice", "idempotent-idempotent[Abs]"], "skip": ["twice"]}, {"idempotent-idempotent[Abs]"}),
    ],
)
def test_families_and_members_are_chosen_by_name(options: dict[str, Any], fired: set[str]) -> None:
    report = eqsat.optimize(parse(MODEL), rules=[TWICE], **options).report
    assert {rule["name"] for rule in report["rules"]} == fired


def test_a_member_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"there is no rule and no group 'twice\[Cell\]'; did you mean twice\[Ceil\]\?"):
        eqsat.optimize(parse(MODEL), rules=[TWICE], only=["twice[Cell]"])


# --- cost ---


def _forget() -> None:
    """Forgets the library, so that it is loaded anew."""
    built_in.cache_clear()
    built_in_for.cache_clear()


@pytest.mark.slow
def test_members_whose_operators_are_not_there_are_not_even_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "_read", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    _forget()
    eqsat.optimize(parse(MODEL), verify=False)
    _forget()
    monkeypatch.setattr(cache, "_read", {})
    read: list[int] = []
    part = cache.Store.part
    monkeypatch.setattr(cache.Store, "part", lambda store, number: read.append(number) or part(store, number))
    report = eqsat.optimize(parse(MODEL), verify=False).report
    assert {rule["name"] for rule in report["rules"]} >= {"idempotent-idempotent[Abs]", "rounding-whole[Ceil,Ceil]"}
    assert 0 < len(read) < 20, "rules of absent operators were read"
    _forget()


@pytest.mark.slow
def test_what_is_stored_is_what_was_made() -> None:
    for number, entry in enumerate(built_in().entries):
        if number % 25 == 0:
            fresh = load([show_file(built_in().written(entry.listed.name)[0])])
            assert fresh.rule(entry.listed.name) == entry.resolved
            assert tuple(one.needs for one in fresh.entry(entry.listed.name).compiled) == entry.listed.needs
            assert pickle.loads(cache._pickled(entry.compiled)) == entry.compiled


def test_absent_members_do_not_enter_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    from eqsat.egraph import admission

    entered: list[str] = []
    firing = admission.Firing
    monkeypatch.setattr(admission, "Firing", lambda compiled, *rest: entered.append(compiled.rule.name) or firing(compiled, *rest))
    eqsat.optimize(parse(MODEL), rules=[TWICE, MAXIMUM], only=["twice", "of-maximum"], verify=False)
    assert set(entered) == {"twice[Abs]", "twice[Ceil]"}


# --- the checker ---


def verdicts(text: str, number: int) -> list[Verdict]:
    return check(load([text]).rules, number, 0, lambda place, verdict: None)


@pytest.mark.slow
def test_one_wrong_member_of_many_is_found() -> None:
    (verdict,) = verdicts(MAXIMUM, 100)
    assert verdict.status == REFUTED and verdict.rule == "of-maximum" and verdict.members == 16
    assert verdict.wrong == ["of-maximum[Neg]"] and verdict.reason.startswith("of-maximum[Neg]: different: ")
    assert verdict.counterexample is not None


def test_wrong_members_of_pairs_and_wrong_mirror_images_are_found() -> None:
    (verdict,) = verdicts("\nfor (F, G) in [(And, Or), (Or, Or)]:\nexact rule wrong:\n    F(Not(x), Not(y)) => Not(G(x, y))\n", 40)
    assert verdict.status == REFUTED and verdict.wrong == ["wrong[Or,Or]"]
    (verdict,) = verdicts("\nfor F in [Div] + mirrored [Div]:\nreal rule wrong:\n    F(Neg(x), y) => F(x, y)\n    where dtype(x) == float\n", 40)
    assert verdict.status == REFUTED and verdict.wrong == ["wrong[Div]", "wrong[mirrored-Div]"]
    (verdict,) = verdicts("\nfor F in [Sub] + mirrored [Sub]:\nexact rule wrong:\n    F(x, 0) => x\n    where dtype(x) == float\n", 40)
    assert verdict.status == REFUTED and verdict.wrong == ["wrong[mirrored-Sub]"]


def test_instances_are_spread_over_the_members() -> None:
    (verdict,) = verdicts(TWICE, 90)
    assert verdict.status == OK and verdict.members == 6 and 120 <= verdict.fired <= 240


def test_a_member_that_can_not_fire_is_named() -> None:
    text = "\nfor F in [Abs, Not]:\nexact rule where:\n    F(F(x)) => F(x)\n    where floating(dtype(x))\n    test x: T[2]\n"
    (verdict,) = verdicts(text, 20)
    assert not verdict.passed and verdict.wrong == ["where[Not]"]


# --- definitions ---

DEFINED = """# What a file says more than once.
def only(x, axis) =
    dim(x, axis) == 1 and known(dim(x, axis)) and all([dim(x, n) == 1 for n in [axis, axis, axis]]) and
    len([n for n in range(rank(x)) if n == axis]) <= rank(x)

def both(x) = only(x, 0) and only(x, 1)

exact rule defined:
    Abs(Abs(x)) => Abs(x)
    where both(x), n = dim(x, 0), all([only(x, i) for i in [0, n]])
    test x: T[1, 1]
"""


def test_definitions_are_put_in_place_and_keep_their_variables_apart() -> None:
    library = load([DEFINED])
    rule = library.rules[0].rule
    guards = [expression(condition.condition) for condition in rule.conditions if isinstance(condition, Guard)]
    assert "n2 for n2 in range" in guards[0] and " n " not in guards[0] and not any("only" in guard for guard in guards)
    assert any(isinstance(condition, Definition) and condition.targets == ("n",) for condition in rule.conditions)
    assert "all([dim(x, n" in guards[1] and "[n for n" not in guards[1]
    (verdict,) = check(library.rules, 40, 0, lambda place, verdict: None)
    assert verdict.status == OK, verdict.reason


def test_a_definition_of_a_tensor_and_of_an_operator() -> None:
    text = """
def twice(F, T) = F == "Add" and floating(T)

def doubled(x, T) = Mul(x, T(2))

for F in [Add, Max]:
exact rule doubling:
    F(x, x) => doubled(x, T)
    where x: T, twice(F, T)
    test x: T[3]
"""
    (add, maximum) = check_alone(text)
    assert (add.status, maximum.status) == (OK, "never fired")


def check_alone(text: str) -> list[Verdict]:
    return [check([rule], 20, 0, lambda place, verdict: None)[0] for rule in load([text]).rules]


def test_definitions_are_shown_as_they_are_written() -> None:
    file = load(["# About.\n\n" + DEFINED]).groups[0].file
    text = show_file(file)
    assert show_file(load([text]).groups[0].file) == text and "def both(x) = only(x, 0) and only(x, 1)\n" in text


# --- commands ---


def call(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["rules", *line.split()]) == 0
    return capsys.readouterr().out


def test_commands_name_families_and_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("twice.rules").write_text("# About.\n\n" + TWICE + "\n" + PAIRS.lstrip("\n"))
    onnx.save(parse(MODEL), "m.onnx")
    assert "  exact   twice (6 members)                 Twice is once.\n" in call("list --rules twice.rules", capsys)
    groups = json.loads(call("list --json --rules twice.rules", capsys))["groups"]
    assert groups[-1]["rules"][0]["members"][0] == "twice[Abs]" and groups[0]["rules"][0]["members"] == []
    assert call("show twice --rules twice.rules", capsys).startswith(TWICE + "\nmembers: twice[Abs], ")
    assert "    Ceil(Ceil(x)) => Ceil(x)\n" in call("show twice[Ceil] --rules twice.rules", capsys)
    assert call("show twice --egglog --rules twice.rules", capsys).count("; twice[") == 6
    said = call("why twice --rules twice.rules m.onnx", capsys)
    assert "rule twice[Abs]: fires at 1 place" in said and "rule twice[Ceil]: fires at 1 place" in said and "Floor" not in said
    assert [answer["rule"] for answer in json.loads(call("why twice --json --rules twice.rules m.onnx", capsys))["members"]] == ["twice[Abs]", "twice[Ceil]"]
    assert "none of its 4 members" in call("why pairs --rules twice.rules m.onnx", capsys)
    Path("pairs.rules").write_text("\nfor (F, G) in [(Abs, Neg), (Neg, Abs)]:\nreal rule first:\n    F(Ceil(x)) => G(x)\n")
    said = call("why first --rules pairs.rules m.onnx", capsys)
    assert "rule first[Abs,Neg]: fires at" in said and "first[Neg,Abs]" not in said, "only F is looked for"
    Path("twice.rules").write_text(TWICE)
    said = call("check twice.rules --n 20", capsys).split("\n")
    assert said[0].startswith("ok                twice                             exact, fired 12") and said[0].endswith(", 6 members")
    assert said[1].startswith("1 rules, 12")

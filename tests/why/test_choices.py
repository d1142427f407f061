"""`eqsat rules why` at the places where a rule fires: whether what it makes is chosen, and why not."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from eqsat.language.library import Group, Library
from eqsat.language.parse import parse as parse_rules
from eqsat.language.resolve import resolve
from eqsat.why.why import Answer, why
from tests.support.models import parse

SQUARE = "real rule square:\n    Mul(x, x) => Pow(x, T(2))\n    where x: T\n    test x: T[3]\n"
TWICE = "exact rule twice:\n    Neg(Neg(x)) => x\n    test x: T[2]\n"
MINUS = "exact rule minus:\n    Sub(z, Neg(x)) => Add(z, x)\n    test x: T[2], z: T[2]\n"
THREE = "real rule three:\n    Add(Add(x, y), z) => Sum(x, y, z)\n    test x: T[2], y: T[2], z: T[2]\n"
BACK = "exact rule back:\n    Add(x, z) => Sub(x, Neg(z))\n    test x: T[2], z: T[2]\n"
SWISH = "real rule silu:\n    Mul(x, Sigmoid(x)) => Swish(x)\n    where x: float\n    test x: float[2]\n"
QUICK = "real rule quick:\n    Mul(x, Sigmoid(x)) => com.microsoft.QuickGelu<alpha = 1.0>(x)\n    where x: float\n    test x: float[2]\n"
SIGMOID = "g (float[8] x) => (float[8] y) { a = Sigmoid (x)  y = Mul (x, a) }"


def asked(name: str, rules: str, model: str, folder: Path) -> Answer:
    """Returns the answer about a rule among these rules."""
    path = folder / "model.onnx"
    onnx.save(parse(model), path)
    file = parse_rules(rules, "some.rules")
    found = resolve(file)
    (own,) = (one for one in found if one.rule.name == name)
    return why(own, path, Library((Group.of(file, found),)))


def choices(answer: Answer) -> dict[str, tuple[bool, str]]:
    """Returns what is said about each place where the rule fires, by output."""
    return {spot.output: (spot.choice.chosen, str(spot.choice)) for spot in answer.spots if spot.choice is not None}


def test_a_dearer_form_is_not_chosen(tmp_path: Path) -> None:
    answer = asked("square", SQUARE, "g (float[512, 512] x) => (float[512, 512] y) { y = Mul (x, x) }", tmp_path)
    (place,) = answer.to_json()["places"]
    assert place["fires"] and place["chosen"] is False
    assert place["unused"]["reason"] == "cost" and place["unused"]["unit"] == "seconds" and place["unused"]["more"] > 1e-6
    assert answer.lines()[0] == "rule square: fires at 1 place, chosen at 0, nearly matches at 0; 1 node looked at (Mul)"
    assert f"Mul 'y' (output 'y'): fires here, not chosen: {place['unused']['text']}" in answer.lines()
    assert place["unused"]["text"].startswith("costs ") and place["unused"]["text"].endswith("s more")


def test_a_node_that_goes_was_chosen_to_go(tmp_path: Path) -> None:
    found = asked("twice", TWICE, "g (float[8] x) => (float[8] y) { a = Neg (x)  b = Neg (a)  y = Exp (b) }", tmp_path)
    assert choices(found) == {"b": (True, "chosen")}
    assert found.to_json()["places"][1]["chosen"] is True and found.to_json()["places"][1]["unused"] is None


def test_what_is_rewritten_further_is_chosen(tmp_path: Path) -> None:
    model = "g (float[8] x, float[8] z, float[8] w) => (float[8] y) { a = Neg (x)  b = Sub (z, a)  y = Add (b, w) }"
    assert choices(asked("minus", MINUS, model, tmp_path)) == {"b": (True, "chosen")}
    # Nothing is left of the Add that `minus` makes.
    assert choices(asked("minus", f"{MINUS}\n{THREE}", model, tmp_path)) == {"b": (True, "chosen, and rewritten further")}


def test_each_place_is_judged_by_itself(tmp_path: Path) -> None:
    model = "g (float[8] x, float[8] z, float[8] w) => (float[8] y, float[8] v, float[8] n) { n = Neg (z)  y = Add (x, z)  v = Add (w, w) }"
    found = choices(asked("back", BACK, model, tmp_path))
    assert found["y"] == (False, "not chosen: costs the same as what was chosen")
    assert not found["v"][0] and found["v"][1].startswith("not chosen: costs ") and found["v"][1].endswith(" more")


def test_a_missing_opset_is_named(tmp_path: Path) -> None:
    (found,) = choices(asked("silu", SWISH, SIGMOID, tmp_path)).values()
    assert found[0] is False and found[1].startswith("not chosen: Swish needs opset 24 (--opset 24)")


def test_a_missing_domain_is_named(tmp_path: Path) -> None:
    (found,) = choices(asked("quick", QUICK, SIGMOID, tmp_path)).values()
    assert found[0] is False
    assert found[1].startswith("not chosen: com.microsoft.QuickGelu is of a domain that is not allowed (--allow-domain com.microsoft), and would save ")


def test_a_node_of_the_model_may_have_that_domain(tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>'
    model = head + " g (float[8] x) => (float[8] y) { a = com.microsoft.QuickGelu (x)  b = Neg (a)  c = Neg (b)  y = Exp (c) }"
    assert choices(asked("twice", TWICE, model, tmp_path)) == {"c": (True, "chosen")}


@pytest.mark.parametrize("body", ["then_branch", "function"])
def test_bodies_and_functions_have_choices(body: str, tmp_path: Path) -> None:
    inside = "a = Neg (x)  b = Neg (a)  p = Exp (b)"
    model = {
        "then_branch": f"""g (float[8] x, bool c) => (float[8] y) {{
            y = If (c) <then_branch = t () => (float[8] p) {{ {inside} }}, else_branch = f () => (float[8] q) {{ q = Abs (x) }}>
        }}""",
        "function": f"""<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[8] x) => (float[8] y) {{ y = own.f (x) }}
            <domain: "own", opset_import: ["": 17]> f (x) => (p) {{ {inside} }}""",
    }[body]
    assert choices(asked("twice", TWICE, model, tmp_path)) == {"b": (True, "chosen")}


def test_each_direction_is_judged_by_itself(tmp_path: Path) -> None:
    both = "real rule both:\n    Sqrt(Mul(x, x)) <=> Abs(x)\n    test x: T[2]\n"
    found = asked("both", both, "g (float[8] x, float[8] z) => (float[8] y, float[8] v) { a = Mul (x, x)  y = Sqrt (a)  v = Abs (z) }", tmp_path)
    assert {(spot.output, spot.reverse, spot.choice.chosen) for spot in found.spots if spot.choice is not None} == {("y", False, True), ("v", True, False)}

"""Used rules and reasons: what a result is made of, and what stopped the rules that also fired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import eqsat
from eqsat.rewriting.unused import Reason
from eqsat.rewriting.uses import Uses
from eqsat.rewriting.valuation import Valuation
from eqsat.settings import METHODS
from tests.support.models import operators, parse
from tests.support.two_steps import SHORT, SUMS

TWICE = "exact rule twice:\n    Neg(Neg(x)) => x\n    test x: T[2]\n"
DEAR = "real rule dear:\n    Abs(x) => Sqrt(Mul(x, x))\n    test x: T[2]\n"
ALIKE = "exact rule alike:\n    Neg(x) => Mul(x, T(-1))\n    where x: T\n    test x: T[2]\n"
ABS = "g (float[8] x) => (float[8] y) { y = Abs (x) }"

GELU = "real rule erf-gelu:\n    Mul(x, Mul(Add(Erf(Div(x, ~sqrt(2))), 1), 0.5)) => Gelu(x)\n    where x: float\n    test x: float[2]\n"
ERF = """g (float[8] x) => (float[8] y) <float r = {1.4142135}, float o = {1}, float h = {0.5}> {
    a = Div (x, r)  b = Erf (a)  c = Add (b, o)  d = Mul (c, h)  y = Mul (x, d)
}"""

QUICK = "real rule quick:\n    Mul(x, Sigmoid(x)) => com.microsoft.QuickGelu<alpha = 1.0>(x)\n    where x: float\n    test x: float[2]\n"
SWISH = "g (float[8] x) => (float[8] y) { a = Sigmoid (x)  y = Mul (x, a) }"

PRODUCTS = """
real rule products:
    MatMul(MatMul(x, a), b) => MatMul(x, MatMul(a, b))
    where const a, const b, rank(a) == 2, rank(b) == 2
    test x: T[2, 3], a: T[3, 4], b: T[4, 2]
"""
ONES = ", ".join(["1"] * 128)
NARROW = f"""g (float[4, 64] x) => (float[4, 64] y) {{
    a = Constant <value = float[64, 2] {{{ONES}}}> ()  b = Constant <value = float[2, 64] {{{ONES}}}> ()
    c = MatMul (x, a)  y = MatMul (c, b)
}}"""


def optimized(text: str, rules: str, **settings: Any) -> tuple[onnx.ModelProto, dict[str, dict[str, Any]]]:
    """Returns the result by these rules alone, and their records by name."""
    given = {"target": "launches", "reasons": True, "verify": False, **settings}
    result = eqsat.optimize(parse(text), rules=[rules], only=["rules"], **given)
    return result.model, {rule["name"]: rule for rule in result.report["rules"]}


def reason(text: str, rules: str, name: str, **settings: Any) -> dict[str, Any]:
    """Returns the reason why a rule is not used, without what it does not tell."""
    record = optimized(text, rules, **settings)[1][name]
    assert record["used"] is False
    return {key: value for key, value in record["unused"].items() if value is not None and key != "unit"}


# --- used ---


@pytest.mark.parametrize("opset", [17, 28])
def test_a_named_size_beside_the_nodes_that_compute_it_is_followed(opset: int) -> None:
    """The class of `length` holds Squeeze, Gather and the size N itself, in any order."""
    text = """g (float[M, N] x) => (float[M, N] y) {
        size = Shape (x)
        zero = Constant <value = int64[1] {0}> ()
        one = Constant <value = int64[1] {1}> ()
        two = Constant <value = int64[1] {2}> ()
        part = Slice (size, one, two)
        length = Squeeze (part, zero)
        factor = Cast <to = 1> (length)
        y = Mul (x, factor)
    }"""
    result = eqsat.optimize(parse(text, header=f'<ir_version: 8, opset_import: ["" : {opset}]>'))
    assert operators(result.model) == {"Shape": 1, "Gather": 1, "Cast": 1, "Mul": 1}
    assert [rule["name"] for rule in result.report["rules"] if rule["used"]] == ["squeeze-slice"]
    assert result.report["verify"]["status"] == "equal"


def test_what_other_rules_rewrite_further_is_used() -> None:
    model, rules = optimized(SHORT, SUMS)
    assert operators(model) == {"Sum": 1}  # nothing is left of the Add that `minus` made
    assert {name: (rule["used"], rule["unused"]) for name, rule in rules.items()} == {"minus": (True, None), "three": (True, None)}


@pytest.mark.parametrize("method", METHODS)
def test_a_rule_that_took_no_part_is_not_used(method: str) -> None:
    _, rules = optimized(SHORT, SUMS + "\n" + DEAR.replace("Abs(x)", "Neg(x)").replace("Sqrt(Mul(x, x))", "Sub(Sub(x, x), x)"), extractor=method)
    assert {name: rule["used"] for name, rule in rules.items()} == {"minus": True, "three": True, "dear": False}


def test_a_rule_that_only_drops_a_node_is_used() -> None:
    model, rules = optimized("g (float[8] x) => (float[8] y) { a = Neg (x)  b = Neg (a)  y = Exp (b) }", TWICE)
    assert operators(model) == {"Exp": 1} and rules["twice"]["used"] is True


def test_a_rule_whose_product_is_an_input_of_another_one_is_used() -> None:
    # Both sides of `out` are inner nodes for `twice`: no node of the original is in their classes.
    rules = "exact rule out:\n    Add(Neg(x), Neg(y)) => Neg(Add(x, y))\n    test x: T[2], y: T[2]\n\n" + TWICE
    text = "g (float[8] x, float[8] z) => (float[8] y) { a = Neg (x)  b = Neg (z)  c = Add (a, b)  d = Neg (c)  y = Exp (d) }"
    assert {name: rule["used"] for name, rule in optimized(text, rules)[1].items()} == {"out": True, "twice": True}


def test_a_rule_that_rewrites_what_another_one_made_is_used() -> None:
    # `outer` makes both Abs, none of which the original has, and `inner` makes them one.
    rules = "real rule outer:\n    Exp(Floor(Neg(x))) => Exp(Abs(Abs(x)))\n    test x: T[2]\n\nexact rule inner:\n    Abs(Abs(x)) => Abs(x)\n    test x: T[2]\n"
    model, found = optimized("g (float[8] x) => (float[8] y) { a = Neg (x)  b = Floor (a)  y = Exp (b) }", rules)
    assert operators(model) == {"Abs": 1, "Exp": 1}
    assert {name: rule["used"] for name, rule in found.items()} == {"inner": True, "outer": True}
    # The same with another form of an inner node, of which the original has none.
    rules = rules.replace("Abs(Abs(x)) => Abs(x)", "Abs(Abs(x)) => Relu(x)")
    assert {name: rule["used"] for name, rule in optimized("g (float[8] x) => (float[8] y) { a = Neg (x)  b = Floor (a)  y = Exp (b) }", rules)[1].items()} == {
        "inner": True,
        "outer": True,
    }


def test_a_rule_of_an_earlier_turn_is_used(tmp_path: Path) -> None:
    phases = tmp_path / "phases.toml"
    phases.write_text("turns = {normal = 3}\n[[normal]]\nname = 'all'\nrounds = 1\nfirings = [1, 0]\n")
    rules = "real rule square:\n    Pow(x, 2) => Mul(x, x)\n    test x: T[2]\n\nreal rule root:\n    Pow(x, 0.5) => Sqrt(x)\n    test x: T[2]\n"
    text = """g (float[4096] x, float[4096] z, float[4096] w) => (float[4096] p, float[4096] q, float[4096] r) <float two = {2}, float half = {0.5}> {
        p = Pow (x, half)  q = Pow (z, two)  r = Pow (w, two)
    }"""
    model, found = optimized(text, rules, target="onnxruntime-cpu", phases=phases)
    assert operators(model) == {"Sqrt": 1, "Mul": 2} and found["square"]["matches"] == 2
    assert {name: rule["used"] for name, rule in found.items()} == {"root": True, "square": True}


def test_a_rule_of_which_one_root_is_not_the_first_is_used() -> None:
    rules = "exact rule both:\n    y = Neg(x)\n    z = Abs(x)\n => y = Neg(x)\n    z = Max(x, y)\n    test x: T[2]\n"
    model, found = optimized("g (float[8] x) => (float[8] y, float[8] w) { y = Neg (x)  z = Abs (x)  w = Exp (z) }", rules, effort="high")
    assert found["both"]["used"] is ("Max" in operators(model))


def test_rules_of_bodies_and_functions_are_used() -> None:
    body = """g (float[8] x, float[8] z, bool c) => (float[8] y) {
        y = If (c) <then_branch = t () => (float[8] p) { a = Neg (x)  p = Sub (z, a) }, else_branch = f () => (float[8] q) { q = Abs (x) }>
    }"""
    assert optimized(body, SUMS)[1]["minus"]["used"] is True
    function = """<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[8] x) => (float[8] y) { y = local.f (x) }
        <domain: "local", opset_import: ["": 17]> f (a) => (r) { b = Neg (a)  c = Neg (b)  r = Exp (c) }"""
    assert optimized(function, TWICE)[1]["twice"]["used"] is True


def test_the_greedy_engine_uses_each_rule_that_it_applied() -> None:
    _, rules = optimized(SHORT, SUMS, engine="greedy")
    assert {name: rule["used"] for name, rule in rules.items()} == {"minus": True, "three": True}


def test_nothing_is_used_of_a_result_that_was_wrong() -> None:
    wrong = "real rule wrong:\n    Abs(x) => x\n    test x: T[2]\n"
    model, rules = optimized("g (float[8] x) => (float[8] y) { a = Abs (x)  y = Exp (a) }", wrong, verify=True)
    assert operators(model) == {"Abs": 1, "Exp": 1}
    assert rules["wrong"]["dropped"] and rules["wrong"]["used"] is False and rules["wrong"]["unused"] is None


# --- reasons ---


def test_a_dearer_form_tells_by_how_much() -> None:
    assert reason(ABS, DEAR, "dear") == {"reason": "cost", "more": 1.0, "text": "costs 1 launch more"}
    assert reason(ABS, DEAR.replace("Sqrt(Mul(x, x))", "Sqrt(Sqrt(Mul(Mul(x, x), Mul(x, x))))"), "dear")["text"] == "costs 3 launches more"
    found = reason(ABS, DEAR, "dear", target="onnxruntime-cpu")
    assert found["more"] > 0 and found["text"].endswith("us more")
    assert reason(ABS, DEAR, "dear", objective="bytes") == {"reason": "cost", "more": 96.0, "text": "costs 96 B more"}


def test_the_price_is_that_of_the_best_graph_with_the_rule() -> None:
    # With `Sub(x, Neg(z))` in place of one Add, the other Neg is there already.
    rules = "exact rule back:\n    Add(x, z) => Sub(x, Neg(z))\n    test x: T[2], z: T[2]\n"
    alone = "g (float[8] x, float[8] z) => (float[8] y) { a = Add (x, z)  y = Exp (a) }"
    shared = "g (float[8] x, float[8] z) => (float[8] y, float[8] n) { n = Neg (z)  a = Add (x, z)  y = Exp (a) }"
    assert reason(alone, rules, "back")["text"] == "costs 1 launch more"
    assert reason(shared, rules, "back")["reason"] == "same cost"


def test_the_nearest_place_counts() -> None:
    rules = "exact rule back:\n    Add(x, z) => Sub(x, Neg(z))\n    test x: T[2], z: T[2]\n"
    two = "g (float[8] x, float[8] z, float[8] w) => (float[8] y, float[8] v, float[8] n) { n = Neg (z)  y = Add (x, z)  v = Add (x, w) }"
    assert reason(two, rules, "back")["reason"] == "same cost"


def test_a_form_of_the_same_cost_was_not_chosen() -> None:
    text = "g (float[8] x) => (float[8] y) { y = Neg (x) }"
    assert reason(text, ALIKE, "alike") == {"reason": "same cost", "more": 0.0, "text": "costs the same as what was chosen"}


def test_what_is_dearer_and_larger_is_dearer() -> None:
    rules = PRODUCTS.replace("MatMul(x, MatMul(a, b))", "Neg(Neg(MatMul(x, MatMul(a, b))))")
    assert reason(NARROW, rules, "products")["text"] == "costs 2 launches more"
    assert reason(NARROW, rules, "products", max_growth="1M")["text"] == "costs 1 launch more"


def test_the_price_counts_in_all_regions_that_are_alike(tmp_path: Path) -> None:
    phases = tmp_path / "phases.toml"
    phases.write_text("regions = {normal = [2, 2]}\n[[normal]]\nname = 'all'\nrounds = 1\nfirings = [100, 0]\n")
    blocks = " ".join(f"a{n} = Sinh (v{n})  v{n + 1} = Asinh (a{n})" for n in range(8))
    text = f"g (float[4096] v0) => (float[4096] y) {{ {blocks} y = Floor (v8) }}"
    rules = "finite rule dear:\n    Sinh(x) => Neg(Neg(Sinh(x)))\n    test x: T[2]\n"
    whole = reason(text, rules, "dear", target="onnxruntime-cpu")
    parts = reason(text, rules, "dear", target="onnxruntime-cpu", phases=phases)
    assert whole["reason"] == parts["reason"] == "cost"
    assert 6 <= parts["more"] / whole["more"] <= 8


def test_of_several_graphs_the_nearest_reason_counts() -> None:
    kinds = [Reason("growth", more=-1.0), Reason("same cost", more=0.0), Reason("cost", more=1.0), Reason("cost", more=2.0)]
    kinds += [Reason("opset", more=1.0), Reason("not priced"), Reason("nothing new")]
    for place, nearer in enumerate(kinds):
        for further in kinds[place + 1 :]:
            for pair in ((nearer, further), (further, nearer)):
                uses = Uses()
                for reason in pair:
                    uses.join(Uses(reasons={"some": reason}))
                assert uses.reasons == {"some": nearer}


def test_an_original_that_stays_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Valuation, "is_worse", lambda *arguments: True)
    model, rules = optimized(SHORT, SUMS)
    assert operators(model) == {"Neg": 1, "Sub": 1, "Add": 1}
    assert {name: (rule["used"], rule["unused"]["reason"]) for name, rule in rules.items()} == {
        "minus": (False, "original stays"),
        "three": (False, "original stays"),
    }


@pytest.mark.parametrize("opset", [17, 19])
def test_a_missing_operator_names_the_opset(opset: int) -> None:
    text = f'<ir_version: 8, opset_import: ["": {opset}]> {ERF}'
    assert reason(text, GELU, "erf-gelu") == {
        "reason": "opset",
        "operator": "Gelu",
        "opset": 20,
        "more": -4.0,
        "text": "Gelu needs opset 20 (--opset 20), and would save 4 launches",
    }
    model, rules = optimized(text, GELU, opset=20)
    assert operators(model) == {"Gelu": 1} and rules["erf-gelu"]["used"] is True


def test_a_missing_domain_is_named() -> None:
    found = reason(SWISH, QUICK, "quick", target="onnxruntime-cpu")
    assert (found["reason"], found["domain"], found["operator"]) == ("domain", "com.microsoft", "com.microsoft.QuickGelu")
    assert found["more"] < 0 and "(--allow-domain com.microsoft), and would save" in found["text"]
    assert optimized(SWISH, QUICK, target="onnxruntime-cpu", allow_domain="com.microsoft")[1]["quick"]["used"] is True


def test_the_limit_of_the_file_is_named() -> None:
    found = reason(NARROW, PRODUCTS, "products")
    assert (found["reason"], found["more"]) == ("growth", -1.0)
    # 64 * 64 floats take the place of 2 * 64 * 2; besides 2 kB, the file may grow by 5 %.
    assert 13_000 < found["excess"] < 64 * 64 * 4 - 2 * 64 * 2 * 4 - 2048
    assert found["text"].endswith("B more than --max-growth allows, and would save 1 launch")
    assert optimized(NARROW, PRODUCTS, max_growth="1M")[1]["products"]["used"] is True


def test_a_rule_that_makes_what_is_there_makes_nothing_new() -> None:
    rules = ALIKE + "\nexact rule back:\n    Mul(x, -1) => Neg(x)\n    test x: T[2]\n"
    found = reason("g (float[8] x) => (float[8] y) { y = Neg (x) }", rules, "back")
    assert found == {"reason": "nothing new", "text": "the result has what it makes already"}


# --- what is not asked for ---


def test_prices_are_computed_only_if_they_are_asked_for() -> None:
    record = optimized(ABS, DEAR, reasons=False)[1]["dear"]
    assert record["used"] is False and record["unused"] is None


def test_a_missing_opset_is_named_in_any_case() -> None:
    record = optimized(ERF, GELU, reasons=False)[1]["erf-gelu"]
    assert record["used"] is False and record["unused"]["text"] == "Gelu needs opset 20 (--opset 20)"


def test_the_result_is_the_same_with_reasons() -> None:
    one, other = (eqsat.optimize(parse(ERF), reasons=asked) for asked in (False, True))
    assert one.model == other.model
    assert [(rule["name"], rule["used"]) for rule in one.report["rules"]] == [(rule["name"], rule["used"]) for rule in other.report["rules"]]

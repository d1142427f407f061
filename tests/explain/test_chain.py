"""Chains: every step is a valid model that computes the same, and the last one is the result."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import onnx
import pytest

import eqsat
from eqsat.explain import explanation
from eqsat.explain.explanation import Explanation, explain
from eqsat.explain.law_names import EQUAL_NODES
from eqsat.settings import Settings
from tests.rules.examples import filled
from tests.rules.test_rules import EXAMPLES
from tests.support.models import parse
from tests.support.parameters import spread
from tests.support.two_steps import SHORT, SUMS

ROOTS = """
real rule root:
    Sqrt(Mul(x, x)) => Abs(x)
    test x: T[2]

exact rule twice:
    Abs(Abs(x)) => Abs(x)
    test x: T[2]
"""
CHAIN = "g (float[8] x) => (float[8] y) { a = Mul (x, x)  b = Sqrt (a)  c = Mul (b, b)  d = Sqrt (c)  y = Exp (d) }"

MOVES = """
exact rule out:
    Add(Neg(x), Neg(y)) => Neg(Add(x, y))
    test x: T[2], y: T[2]

exact rule twice:
    Neg(Neg(x)) => x
    test x: T[2]
"""
AROUND = "g (float[8] x, float[8] z) => (float[8] y) { a = Neg (x)  b = Neg (z)  c = Add (a, b)  d = Neg (c)  y = Exp (d) }"


def explained(text: str | onnx.ModelProto, rules: str = "", keep: Any = None, **settings: Any) -> Explanation:
    model = parse(text) if isinstance(text, str) else text
    own = {"rules": [rules], "only": ["rules"]} if rules else {}
    return explain(model, Settings(**{"target": "launches", **own, **settings}), seconds=0, keep=keep)


def models(text: str | onnx.ModelProto, rules: str = "", **settings: Any) -> tuple[Explanation, list[onnx.ModelProto]]:
    found: list[onnx.ModelProto] = []

    def keep(index: int, model: onnx.ModelProto, folder: Path | None) -> None:
        assert index == len(found)
        found.append(model)

    return explained(text, rules, keep, **settings), found


CONCAT = """g (float[2, 4] x, float[3, 4] z) => (float[2, 4] y) {
    starts = Constant <value_ints: ints = [0]> ()  ends = Constant <value_ints: ints = [2]> ()
    c = Concat <axis = 0> (x, z)  s = Slice (c, starts, ends, starts)  y = Exp (s)
}"""


def test_a_computed_shape_for_other_data_keeps_sizes_of_zero() -> None:
    """A Reshape of a matrix by the sizes that another tensor has copied a size that is not there, where one was 0."""
    example = EXAMPLES["moves: a mask read at places in a row"]
    found, kept = models(filled(example.model(17)), target=example.target, objective="launches", verify=False)
    assert found.reached and found.status == "equal"
    assert any(attribute.name == "allowzero" for model in kept for node in model.graph.node for attribute in node.attribute)


def test_a_step_is_one_rule_where_a_model_lies_between() -> None:
    found = explained(SHORT, SUMS)
    assert [(step.change.kind, step.change.rules) for step in found.steps] == [("rewrite", ("minus",)), ("rewrite", ("three",))]
    assert [(step.change.gone, step.change.came) for step in found.steps] == [(("Neg a", "Sub b"), ("Add b",)), (("Add b", "Add y"), ("Sum y",))]
    assert [(step.before, step.after, step.nodes) for step in found.steps] == [(3, 2, 2), (2, 1, 1)]
    assert found.reached and found.status == "equal" and found.used == ["minus", "three"]


def test_a_step_without_a_model_between_names_all_its_rules() -> None:
    # `d` is the same class as `x + z`, which is read below it: no choice holds both.
    found = explained(AROUND, MOVES)
    assert [(step.change.kind, step.change.rules, step.change.complete) for step in found.steps] == [("joint", ("out", "twice"), True)]
    assert found.reached and found.status == "equal"


def test_a_value_is_put_in_place_of_an_equal_one() -> None:
    found = explained(CHAIN, ROOTS)
    assert [(step.change.kind, step.change.rules) for step in found.steps] == [("joint", ("root", "twice")), ("rewrite", ("root",))]
    assert found.steps[0].change.gone == ("Mul c", "Sqrt d", "Exp y") and found.steps[0].change.came == ("Exp y",)


LAST_READER = """g (float[8] x) => (float[8] y, float[8] q) {
    s = Cos (x)  v = Abs (x)  r = Cos (v)  n = Neg (x)  w = Abs (n)  e = Exp (w)  p = Relu (e)  y = Sin (p)  q = Add (r, s)
}"""
EVEN = """
real rule also:
    Cos(Abs(x)) => Cos(x)
    test x: T[2]

exact rule even:
    Abs(Neg(x)) => Abs(x)
    test x: T[2]

exact rule positive:
    Relu(Exp(x)) => Exp(x)
    test x: T[2]
"""


def test_a_value_whose_last_reader_has_gone_is_still_put_in_place_of_another() -> None:
    found = explained(LAST_READER, EVEN)
    assert [step.change.rules for step in found.steps] == [("also",), ("even",), ("positive",)]
    assert found.status == "equal"


def test_regions_that_stay_for_a_while_are_no_step() -> None:
    body = " ".join(f"a{place} = Mul (y{place}, y{place})  b{place} = Sqrt (a{place})  y{place + 1} = Sin (b{place})" for place in range(100))
    found = explained(f"g (float[8] y0) => (float[8] y100) {{ {body} }}", ROOTS, target="onnxruntime-cpu")
    assert {step.change.rules for step in found.steps} == {("root",)}
    assert found.status == "equal"


def test_a_rule_that_reads_a_list_is_found() -> None:
    found = explained(CONCAT)
    assert found.reached and all(step.change.complete for step in found.steps)
    assert any("slice-concat" in name for name in found.used)


def test_equal_nodes_need_no_rule() -> None:
    found = explained("g (float[8] x) => (float[8] y) { a = Exp (x)  b = Exp (x)  c = Identity (a)  y = Mul (b, c) }")
    assert [(step.change.kind, step.change.rules, step.change.laws, step.change.complete) for step in found.steps] == [("laws", (), (EQUAL_NODES,), True)]


def test_a_result_that_is_the_original_has_no_steps() -> None:
    found, kept = models("g (float[8] x) => (float[8] y) { y = Exp (x) }")
    assert found.steps == [] and found.reached and found.status == "equal" and len(kept) == 1


def test_the_models_lead_from_the_original_to_the_result() -> None:
    model = parse(CHAIN)
    found, kept = models(model, ROOTS)
    assert len(kept) == len(found.steps) + 1
    assert kept[0] == model
    assert kept[-1] == eqsat.optimize(model, rules=[ROOTS], only=["rules"], target="launches").model
    assert all(eqsat.verify(one, other).status == "equal" for one, other in itertools.pairwise(kept))


def test_another_opset_is_a_step_of_its_own() -> None:
    found, kept = models(SHORT, SUMS, opset=21)
    assert found.reached and found.status == "equal"
    assert {model.opset_import[0].version for model in kept[1:]} == {21}


def test_bodies_are_no_step_that_says_it_is_complete() -> None:
    text = """g (bool c, float[8] x) => (float[8] y) {
        y = If (c) <then_branch = t () => (float[8] u) { a = Mul (x, x)  u = Sqrt (a) }, else_branch = e () => (float[8] v) { v = Exp (x) }>
    }"""
    found = explained(text, ROOTS)
    assert found.reached and [(step.change.kind, step.change.complete) for step in found.steps] == [("joint", False)]


def test_functions_that_are_inlined_are_a_law() -> None:
    text = """<ir_version: 9, opset_import: ["": 17, "own": 1]> g (float[8] x) => (float[8] y) { y = own.f (x) }
    <opset_import: ["": 17], domain: "own"> f (x) => (y) { a = Exp (x)  b = Exp (x)  y = Mul (a, b) }"""
    found = explained(text)
    assert found.reached and {(step.change.kind, step.change.complete) for step in found.steps} == {("laws", True)}
    assert found.status == "equal"


def test_a_chain_that_misses_the_result_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = explanation.links
    monkeypatch.setattr(explanation, "links", lambda *arguments: list(whole(*arguments))[:-1])
    found = explained(SHORT, SUMS)
    assert not found.reached and found.status == "different"


def test_a_step_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(*arguments: Any) -> list[Any]:
        found = list(whole(*arguments))
        found[0][1].graph.node[0].op_type = "Mul"
        return found

    whole = explanation.links
    monkeypatch.setattr(explanation, "links", spoiled)
    found = explained(SHORT, SUMS)
    assert found.status == "different"


def test_a_node_that_does_nothing_has_a_reason_of_its_own() -> None:
    # `Transpose(x)` is also `Transpose(Transpose(x), identity)`: that alone would prove nothing.
    text = """g (float[4, 8] x, float[4, 8] z) => (float[4, 8] y) {
        a = Transpose <perm = [1, 0]> (x)  b = Transpose <perm = [1, 0]> (z)
        c = Add (a, b)  d = Transpose <perm = [1, 0]> (c)  y = Exp (d)
    }"""
    found = explained(text)
    assert found.reached and "transpose-binary[Add]" in found.used


def test_a_merged_output_is_a_copy() -> None:
    found, kept = models("g (float[8] x) => (float[8] y, float[8] z) { y = Exp (x)  a = Neg (y)  z = Neg (a) }", MOVES)
    assert [(step.change.kind, step.change.rules) for step in found.steps] == [("rewrite", ("twice",))]
    assert [node.op_type for node in kept[-1].graph.node] == ["Exp", "Identity"]
    assert [node.op_type for node in kept[1].graph.node] == ["Exp", "Identity"]


@pytest.mark.parametrize("name", spread(list(EXAMPLES)[::5], every=4))
def test_the_chain_of_an_example_leads_to_its_result(name: str) -> None:
    example = EXAMPLES[name]
    model = filled(example.model(example.distinct_opsets[0]))
    settings = {"target": example.target, "objective": "launches", "verify": False}
    found, kept = models(model, **settings)
    assert found.reached and found.status == "equal"
    assert kept[-1] == eqsat.optimize(model, **settings).model

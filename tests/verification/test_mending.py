"""Mending: wrongly optimized nodes stay as they were, and the report names them.

The rest of the model is optimized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.cost.target import load_target
from eqsat.deadline import Deadline
from eqsat.egraph.phases import load as load_plan
from eqsat.facts.fact import Fact
from eqsat.language.library import built_in
from eqsat.model.read import normalize
from eqsat.rewriting.attempt import Attempt
from eqsat.rewriting.job import Job
from eqsat.rewriting.turns import attempt
from eqsat.rewriting.valuation import Valuation
from eqsat.runtime.worker import WorkerDied, shared
from eqsat.settings import Settings
from eqsat.terms import derivation
from eqsat.verification import mend, passing
from eqsat.verification.loaded_model import LoadedModel
from eqsat.verification.locate import Fault
from eqsat.verification.regions import Cut
from eqsat.verification.verify import Verdict
from tests.support.models import assert_same, operators, parse

# Each block computes its own shape, and has two equal nodes that can be merged.
BLOCKS = ("Softsign", "Softplus", "Elu")


def blocks() -> onnx.ModelProto:
    parts: list[str] = []
    for number, operator in enumerate(BLOCKS):
        x, y = f"x{number}", f"x{number + 1}"
        parts.append(
            f"a{number} = {operator} ({x}) s{number} = Shape (a{number}) p{number} = Tanh ({x}) q{number} = Tanh ({x}) "
            f"m{number} = Add (p{number}, q{number}) r{number} = Reshape (m{number}, s{number}) {y} = Mul (r{number}, a{number})"
        )
    return parse(f"g (float[N, 4] x0) => (float[A, B] x3) {{ {' '.join(parts)} }}")


def feeds(*sizes: int) -> list[dict[str, np.ndarray]]:
    generator = np.random.default_rng(0)
    return [{"x0": generator.standard_normal((size, 4)).astype(np.float32)} for size in sizes]


def lie(monkeypatch: pytest.MonkeyPatch, operator: str, change: Callable[[Fact], Fact]) -> None:
    """Makes inference derive wrong facts for one operator."""
    right = derivation.infer

    def wrong(node: Any, *arguments: Any) -> tuple[Fact, ...]:
        facts = right(node, *arguments)
        return tuple(map(change, facts)) if node.name == operator else facts

    monkeypatch.setattr(derivation, "infer", wrong)


def turned(fact: Fact) -> Fact:
    return fact._replace(shape=fact.shape[::-1]) if fact.shape is not None else fact


def test_a_wrong_shape_costs_the_block_that_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    model = blocks()
    best = operators(eqsat.optimize(model, target="launches").model)
    lie(monkeypatch, "Softplus", turned)
    result = eqsat.optimize(model, target="launches")
    report = result.report
    assert report["verify"]["status"] == "equal"
    assert report["left"] and all(name.endswith("1") for name in report["left"])
    assert any(note.startswith("left as it was: ") and "did not pass verification" in note for note in report["notes"])
    left = operators(result.model)
    # The next block no longer knows the sizes of its input. So it keeps its Shape and its Reshape,
    # and nothing else changes.
    assert best["Tanh"] == left["Tanh"] == 3 and best["Shape"] == 0 and left["Shape"] == 2
    assert [node.output[0] for node in result.model.graph.node if node.op_type == "Shape"] == ["s1", "s2"]
    assert_same(model, result.model, *feeds(1, 3, 4))


def test_integers_that_are_wrong_cost_the_nodes_that_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parse(
        "g (float[N, 4] x) => (int64[1] y, float[N, 4] z) <int64[1] one = {1}, int64[1] ten = {10}> { a = Softplus (x) s = Shape (a) k = Gather (s, one)"
        "y = Add (k, ten) b = Tanh (x) c = Tanh (x) z = Add (b, c) }"
    )
    lie(monkeypatch, "Gather", lambda fact: fact._replace(ints=(5,)) if fact.ints == (4,) else fact)
    result = eqsat.optimize(model)
    assert result.report["verify"]["status"] == "equal" and result.report["left"] and set(result.report["left"]) <= {"a", "s", "k", "y"}
    assert operators(result.model)["Tanh"] == 1
    assert_same(model, result.model, {"x": np.ones((3, 4), np.float32)})


class Fragile:
    """A worker that dies of a division by a stored zero, as some runtimes do."""

    def start(self) -> None:
        shared().start()

    def call(self, function: str, request: Any, *arguments: Any, **limits: Any) -> Any:
        tensors = onnx.load_model_from_string(request.optimized).graph.initializer if request.optimized else ()
        if any(tensor.name == "k" and not onnx.numpy_helper.to_array(tensor).any() for tensor in tensors):
            raise WorkerDied(-8)
        return shared().call(function, request, *arguments, **limits)


def test_a_result_that_brings_the_runtime_down_costs_the_nodes_that_do(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parse(
        "g (float[N, 4] x, int64[1] ten) => (int64[1] y, float[N, 4] z) <int64[1] one = {1}> { a = Softplus (x) s = Shape (a) k = Gather (s, one)"
        "y = Div (ten, k) b = Tanh (x) c = Tanh (x) z = Add (b, c) }"
    )
    lie(monkeypatch, "Gather", lambda fact: fact._replace(ints=(0,)) if fact.ints == (4,) else fact)
    worker = Fragile()
    with monkeypatch.context() as patch:
        patch.setattr(passing, "shared", lambda: worker)
        result = eqsat.optimize(model)
    assert result.report["verify"]["status"] == "equal" and any("crashed (signal 8)" in note for note in result.report["notes"])
    assert "k" in result.report["left"] and {"b", "c", "z"}.isdisjoint(result.report["left"])
    assert operators(result.model)["Tanh"] == 1


def test_the_users_inputs_show_where_a_result_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    model = blocks()
    lie(monkeypatch, "Softplus", turned)
    result = eqsat.optimize(model, inputs=feeds(3)[0])
    assert result.report["verify"]["status"] == "equal" and "s1" in result.report["left"] and "s0" not in result.report["left"]
    assert_same(model, result.model, *feeds(3))


def test_what_no_region_explains_gives_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    model = blocks()
    monkeypatch.setattr(passing, "locate", lambda *arguments: [])
    lie(monkeypatch, "Softplus", turned)
    result = eqsat.optimize(model)
    assert result.report["verify"]["status"] == "different" and result.report["left"] == []
    assert result.model.SerializeToString(deterministic=True) == model.SerializeToString(deterministic=True)


def test_what_stays_wrong_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """If each attempt shows another fault, the search ends with the original."""
    model = parse(f"g (float[N] x) => (float[N] y) {{ v0 = Relu (x) {' '.join(f'v{number + 1} = Neg (v{number})' for number in range(40))} y = Relu (v40) }}")
    seen: list[int] = []

    def locate(*arguments: object) -> list[Fault]:
        seen.append(len(seen))
        return [Fault(frozenset({f"v{len(seen)}"}), frozenset({f"v{20 + len(seen)}"}), "wrong")]

    kept: list[frozenset[str]] = []

    def attempted(model: Any, job: Any, library: Any, names: frozenset[str] = frozenset()) -> Attempt:
        kept.append(names)
        return attempt(model, job, library, names)

    monkeypatch.setattr(mend, "attempt", attempted)
    monkeypatch.setattr(passing, "locate", locate)
    monkeypatch.setattr(passing, "verify", lambda *arguments, **options: Verdict("different", "wrong"))
    result = eqsat.optimize(model, only=["nothing"], rules=[NOTHING])
    assert kept[:2] == [{"v1"}, {"v1", "v2", "v22"}]  # a region that is wrong again has wrong facts before it
    assert 1 < len(seen) < 10 and result.report["verify"]["status"] == "different"
    assert len(result.model.graph.node) == 42


NOTHING = """
# Never fires here.
exact rule nothing:
    Erf(Erf(Erf(x))) => Erf(Erf(Erf(x)))
    test x: T[2]
"""


def rewritten(model: onnx.ModelProto, *kept: str) -> onnx.ModelProto:
    job = Job(Settings(), load_plan("normal", None), Valuation(load_target("launches"), "time", {}, None, shared()), Deadline())
    return attempt(normalize(model, None, None), job, built_in(), frozenset(kept)).model


@pytest.mark.parametrize(
    ("nodes", "kept", "operator"),
    [
        ("t = Relu (x) u = Relu (x) y = Add (t, u)", ["u"], {"Relu": 2, "Add": 1}),
        ("t = Relu (x) i = Identity (t) y = Tanh (i)", ["i"], {"Relu": 1, "Identity": 1, "Tanh": 1}),
        ("k = Constant <value_float = 1.0> () o = Mul (x, k) y = Tanh (o)", ["o"], {"Mul": 1, "Tanh": 1}),
        ("a, b = Split <num_outputs = 2> (x) c, d = Split <num_outputs = 2> (x) y = Concat <axis = 0> (a, d)", ["d"], {"Split": 1, "Slice": 1, "Concat": 1}),
        ("s = Shape (x) t = ConstantOfShape (s) z = Add (x, t) y = Relu (z)", ["s"], {"Shape": 1, "ConstantOfShape": 1, "Add": 1, "Relu": 1}),
    ],
)
def test_what_is_kept_stays(nodes: str, kept: list[str], operator: dict[str, int]) -> None:
    model = parse(f"g (float[4] x) => (float[4] y) {{ {nodes} }}", header='<ir_version: 8, opset_import: ["" : 18]>')
    result = rewritten(model, *kept)
    assert operators(result) == operator and sum(operators(rewritten(model)).values()) < sum(operator.values())
    assert_same(model, result, {"x": np.array([1, -2, 3, 4], np.float32)})


def test_a_body_and_a_function_that_are_kept_stay() -> None:
    branch = "t () => (float[4] a) { p = Relu (x) q = Relu (x) a = Add (p, q) }, else_branch = e () => (float[4] b) { b = Neg (x) }"
    inside = parse(f"g (float[4] x) => (float[4] y) <bool c = {{1}}> {{ r = If (c) <then_branch = {branch}> y = Tanh (r) }}")
    assert "If" not in operators(rewritten(inside)) and operators(rewritten(inside, "r")) == operators(inside)
    call = parse("""<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[4] x) => (float[4] y) { r = local.f (x)  y = Tanh (r) }
        <domain: "local", opset_import: ["": 17]> f (a) => (b) { p = Relu (a) q = Relu (a) b = Add (p, q) }""")
    assert operators(rewritten(call))["Relu"] == 1 and operators(rewritten(call, "r")) == operators(call)


def test_what_is_kept_stays_in_a_later_turn_under_the_name_that_it_has_then() -> None:
    """A kept value may get another name in a later turn.

    A node that computes an output takes the output's name. Folding makes the condition known, which
    starts another turn.
    """
    branch = "t () => (float[4] a) { a = Relu (x) }, else_branch = e () => (float[4] b) { b = Neg (x) }"
    nodes = f"m = Mul (x, one) y = Identity (m) c = Not (f) z = If (c) <then_branch = {branch}>"
    model = parse(f"g (float[4] x) => (float[4] y, float[4] z) <bool f = {{0}}, float one = {{1}}> {{ {nodes} }}")
    assert operators(rewritten(model)) == {"Identity": 1, "Relu": 1} and operators(rewritten(model, "m")) == {"Mul": 1, "Relu": 1}


def test_a_region_knows_the_originals_values_that_it_is_about() -> None:
    head = "g (float[4] x) => (float[4] y)"
    a = parse(f"{head} {{ t = Relu (x) u = Relu (x) v = Neg (u) w = Exp (v) y = Add (w, t) }}")
    cut = Cut(LoadedModel(a), LoadedModel(parse(f"{head} {{ t = Relu (x) v = Abs (t) w = Exp (v) y = Add (w, t) }}")))
    assert len(cut) == 1 and cut.originals(0) == {"v"} and cut.border(0) == ["t"] and cut.before({"v"}) == {"t"}
    cut = Cut(LoadedModel(a), LoadedModel(parse(f"{head} {{ t = Exp (x) v = Neg (t) w = Exp (v) y = Add (w, t) }}")))
    assert len(cut) == 1 and cut.originals(0) == {"t", "u"}
    stored = [parse(f"{head} <float[4] k = {{1, 2, 3, {last}}}> {{ m = Mul (x, k) y = Relu (m) }}") for last in (4, 5)]
    cut = Cut(*map(LoadedModel, stored))
    assert [cut.originals(number) for number in range(len(cut))] == [{"m"}]

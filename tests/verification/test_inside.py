"""The inside of two models: an error that the outputs hide is found, and equal models stay equal."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import eqsat
from eqsat.examples.bert import bert
from eqsat.rewriting.raising import raised
from eqsat.runtime.session import ONNXRUNTIME
from eqsat.verification.loaded_model import LoadedModel
from eqsat.verification.region_by_region import Part
from eqsat.verification.regions import Cut
from eqsat.verification.verify import DIFFERENT, EQUAL, Verdict, verify
from tests.support.planted import BIAS, GELU, SWAP, Plant, plants

BIASES = np.array([0.5, -1, 2, 1.5, 0.25, -0.75, 1, -2], np.float32)
HIDING = "t = Mul(h, tiny) y = Add(t, one)"


def model(nodes: str, b: np.ndarray[Any, Any] = BIASES) -> LoadedModel:
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g (float[N, 8] x) => (float[N, 8] y) {{ {nodes} }}')
    weights = {"b": b, "tiny": np.float32(1e-12), "one": np.float32(1), "three": np.float32(3)}
    used = {name for node in proto.graph.node for name in node.input}
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items() if name in used)
    return LoadedModel(proto)


def check(before: str, after: str, b: np.ndarray[Any, Any] = BIASES, **options: Any) -> Verdict:
    return verify(model(before), model(after, b), **options)


def test_an_error_that_the_outputs_hide_is_found() -> None:
    other = BIASES.copy()
    other[3] *= 1.05
    text = f"s = Sin(x) h = Add(s, b) {HIDING}"
    verdict = check(text, text, other)
    assert (verdict.status, verdict.output) == (DIFFERENT, "") and verdict.max_error == 0
    assert verdict.reason.startswith("inside the models, which their outputs hide: region of h: output 'h' differs")
    assert check(text, text).status == EQUAL


def test_an_error_that_is_hidden_far_behind_is_found() -> None:
    # Hardly any element is nearly the same, and no region on the way shows that it does not matter.
    steps = " ".join(f"{after} = Sin({before})" for before, after in zip("hijkl", "ijklm", strict=True))
    before, after = (f"s = Cos(x) h = {operator}(s) {steps} t = Mul(m, tiny) y = Add(t, one)" for operator in ("Neg", "Exp"))
    assert check(before, after).status == DIFFERENT


def test_an_error_that_only_real_values_hide_is_found() -> None:
    # No real element exceeds the bound; arbitrary ones do.
    steps = "a = Sin(x) c = Neg(a) d = Neg(c) e = Neg(d) f = Neg(e) k = Neg(f)"
    verdict = check(f"{steps} h = Neg(k) y = Max(h, one)", f"{steps} h = Mul(k, k) y = Max(h, one)")
    assert verdict.status == DIFFERENT and "region of h" in verdict.reason


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s = Sin(x) n = Neg(s) h = Neg(n) t = Mul(h, h) y = Add(t, b)", "s = Sin(x) h = Neg(s) t = Mul(h, h) y = Add(t, b)"),
        ("s = Sin(x) h = Abs(s) t = Relu(h) y = Neg(t)", "s = Sin(x) h = Abs(s) y = Neg(h)"),
        (f"s = Sin(x) h = Add(s, b) {HIDING}", f"s = Sin(x) h = Add(b, s) {HIDING}"),
    ],
)
def test_equal_models_are_equal_inside(before: str, after: str) -> None:
    verdict = check(before, after)
    assert (verdict.status, verdict.reason) == (EQUAL, "")


LOW = np.array([0, -100, 0, -100, 0, 0, -100, 0], np.float32)


@pytest.mark.parametrize(("reader", "status"), [("y = MatMul(p, w)", EQUAL), ("q = Add(p, one) y = Neg(q)", EQUAL), ("q = Log(p) y = Mul(q, tiny)", DIFFERENT)])
def test_raised_scores_matter_where_their_reader_shows_them(reader: str, status: str) -> None:
    # The scores have other names, so that the mask is a part of the region of p.
    before, after = (model(f"t = Tanh(x) {scores} = Add(t, b) p = Softmax({scores}) {reader}", LOW).proto for scores in ("s", "k"))
    for proto in (before, after):
        proto.graph.initializer.append(numpy_helper.from_array(np.eye(8, dtype=np.float32) + 1, "w"))
    higher = raised(after, {"p"})
    assert len(higher.graph.node) == len(before.graph.node) + 3
    verdict = verify(LoadedModel(before), LoadedModel(higher))
    assert verdict.status == status, verdict.reason


def test_given_inputs_are_compared_at_the_outputs_alone() -> None:
    text = f"s = Sin(x) h = Add(s, b) {HIDING}"
    assert check(text, text, BIASES * 2, inputs={"x": np.ones((2, 8), np.float32)}).status == EQUAL


def test_regions_that_are_not_reached_in_time_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eqsat.verification.inside.time", SimpleNamespace(monotonic=itertools.count(0, 1000).__next__))
    twice, once = "s = Sin(x) n = Neg(s) h = Neg(n)", "s = Sin(x) h = Neg(s)"  # the outputs are equal, and h is not
    verdict = check(f"{twice} t = Mul(h, h) y = Add(t, b)", f"{once} t = Mul(h, h) y = Add(t, b)")
    assert verdict.status == EQUAL and "1 of 1 regions were not compared inside" in verdict.notes[-1]


@pytest.mark.parametrize(
    ("before", "after", "regions"),
    [
        ("h = Add(s, b)", "h = Add(b, s)", 0),
        ("k = Sub(one, s) h = Mul(k, b)", "p = Mul(s, b) h = Sub(b, p)", 0),  # they round otherwise
        ("k = Sub(one, s) h = Mul(k, b)", "k = Sub(one, s) l = Mul(k, b) h = Mul(l, three)", 1),
    ],
)
def test_values_that_agree_in_the_runs_of_the_whole_models_need_no_region(before: str, after: str, regions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []

    def one_region(_: Cut, number: int, *rest: object) -> Part:
        judged.append(number)
        return Part(Verdict(EQUAL), False, 0)

    monkeypatch.setattr("eqsat.verification.inside.one_region", one_region)
    assert check(f"s = Sin(x) {before} {HIDING}", f"s = Sin(x) {after} {HIDING}").status == EQUAL
    assert len(judged) == regions


TIES = np.random.default_rng(1).uniform(1, 2, 2048).astype(np.float32)
ROWS = np.repeat(np.where(np.random.default_rng(0).random((2048, 1)) < 0.03, 1.25, 1), 8, 1).astype(np.float32)


@pytest.mark.parametrize(("other", "status"), [(ROWS, EQUAL), (ROWS + np.float32(0.001), DIFFERENT)])
def test_a_choice_among_nearly_equal_elements_is_no_error(other: np.ndarray[Any, Any], status: str) -> None:
    """As a detector chooses its queries: rounding of the scores decides which rows are read. What is done
    with these is equal for them alone.
    """

    def chooses(scores: str, use: str, rows: np.ndarray[Any, Any], **factors: np.ndarray[Any, Any]) -> LoadedModel:
        text = f"l = ReduceMean(x) {scores} v, i = TopK(s, many) flat = Reshape(i, all) r = Gather(rows, flat) {use} {HIDING}"
        proto = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g (float[N, 8] x) => (float[512, 8] y) {{ {text} }}')
        weights = {"many": np.array([512]), "all": np.array([-1]), "tiny": np.float32(1e-12), "one": np.float32(1), "rows": rows, **factors}
        proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items())
        return LoadedModel(proto)

    one = chooses("a = Mul(l, p) s = Mul(a, q)", "h = Sin(r)", ROWS, p=TIES, q=1 / TIES)
    two = chooses("s = Mul(l, p)", "u = Abs(r) h = Sin(u)", other, p=TIES * (1 / TIES))
    verdict = verify(one, two)
    assert verdict.status == status
    assert status == DIFFERENT or any("rounding spreads inside" in note for note in verdict.notes)


@pytest.mark.slow
def test_errors_planted_in_a_transformer_are_found() -> None:
    """`python -m tests.benchmarks.sensitivity` does the same to any model."""
    original = bert()
    result = eqsat.optimize(original, verify=False).model
    assert eqsat.verify(original, result).status == EQUAL
    planted = list(plants(result, 2))
    assert {BIAS, SWAP, GELU} <= {plant.kind for plant in planted}
    # No drawn token is one of the two whose rows are swapped, and no drawn sequence is so long that it
    # has the position whose row has a zero.
    missed = [f"{plant.kind} at {plant.place}" for plant in planted if not _is_found(original, plant)]
    assert missed == ["weight to 0 at bert.embeddings.position_embeddings.weight", "channels swapped at bert.embeddings.word_embeddings.weight"]


def _is_found(original: onnx.ModelProto, plant: Plant) -> bool:
    return eqsat.verify(original, plant.model).status == DIFFERENT


def test_names_whose_values_have_other_shapes_stand_for_two_values() -> None:
    """onnxsim computes a Gelu on matrices, under the names that its values had before a Reshape."""
    chain = " ".join(f"v{n + 1} = {operator} (v{n})" for n, operator in enumerate(["Tanh", "Exp", "Neg", "Sigmoid", "Abs", "Sqrt", "Cos", "Erf"]))
    header = '<ir_version: 8, opset_import: ["": 17]> g (float[2, 3, 8] x) => (float[2, 3, 8] y)'
    one = parser.parse_model(f"{header} {{ v0 = Sin (x)  {chain}  y = Ceil (v8) }}")
    flat = "<int64[2] rows = {6, 8}, int64[3] back = {2, 3, 8}>"
    other = parser.parse_model(f"{header} {flat} {{ s = Sin (x)  v0 = Reshape (s, rows)  {chain}  r = Reshape (v8, back)  y = Ceil (r) }}")
    assert verify(LoadedModel(one), LoadedModel(other)).status == EQUAL


def test_values_inside_take_no_more_memory_than_the_limit_allows() -> None:
    # The runtime keeps every output of a graph until a run ends: all steps together take 1 GiB.
    steps = range(64)
    doubled = " ".join(f"h{step + 1} = {'Add' if step % 2 else 'Sub'}(h{step}, h{step})" for step in steps)
    scaled = " ".join(f"h{step + 1} = Mul(h{step}, {'two' if step % 2 else 'none'})" for step in steps)
    header = '<ir_version: 8, opset_import: ["": 18]> g (float[4194304] h0) => (float[4194304] h64)'
    before, after = (LoadedModel(parser.parse_model(f"{header} <float two = {{2.0}}, float none = {{0.0}}> {{ {nodes} }}")) for nodes in (doubled, scaled))
    verdict = verify(before, after, memory_limit=192 << 20)
    assert (verdict.status, verdict.engine) == (EQUAL, ONNXRUNTIME), verdict.reason
    assert 0 < len(verdict.agreed) < 64

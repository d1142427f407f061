"""The verify stage: equal models pass, wrong ones fail, and others are reported as unverified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

import eqsat
from eqsat.errors import InputError
from eqsat.verification import tolerance
from eqsat.verification.last_places import nudge
from eqsat.verification.nudges import nudge_weights
from eqsat.verification.steering import Decided
from eqsat.verification.verify import DIFFERENT, EQUAL, UNVERIFIED, LoadedModel, Verdict, verify, verify_files


def model(graph: str, header: str = 'ir_version: 8, opset_import: ["": 18]', functions: str = "", **weights: Any) -> onnx.ModelProto:
    proto = parser.parse_model(f"<{header}> {graph} {functions}")
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items())
    return proto


def check(a: onnx.ModelProto, b: onnx.ModelProto, **options: Any) -> Verdict:
    verdict = verify(LoadedModel(a), LoadedModel(b), **options)
    json.dumps(verdict.to_json(), allow_nan=False)
    return verdict


WEIGHT = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)


def test_the_same_bits() -> None:
    verdict = check(
        model("g (float[N, 4] x) => (float[N, 4] y) { t = Relu(x) y = Neg(t) }"), model("g (float[N, 4] x) => (float[N, 4] y) { u = Relu(x) y = Neg(u) }")
    )
    (y,) = verdict.outputs
    assert verdict.status == EQUAL and y.bitwise and y.exercised and y.max_error == 0 and verdict.engine == "onnxruntime"
    assert verdict.runs == 4 and verdict.edges == 1 and len(set(verdict.sizes["N"])) == 4


def test_the_same_graph_is_not_run() -> None:
    text = "g (float[N] x) => (float[N] y) { y = Neg(x) }"
    verdict = check(model(text), model(text))
    assert verdict.status == EQUAL and verdict.runs == 0 and "unchanged" in verdict.notes[0]


def test_an_original_that_loads_and_never_runs_is_no_standard() -> None:
    # Exporters write such products behind shapes that nothing can follow. Without these, the runtime sees the mistake as it loads.
    head, wrong = "g (float[2, 3] x) => (float[2, 5] y)", np.ones((4, 5), np.float32)
    hidden = model(f"{head} {{ r = Compress<axis = 1>(x, all) y = MatMul(r, w) }}", w=wrong, all=np.ones(3, bool))
    verdict = check(hidden, model(f"{head} {{ y = MatMul(x, w) }}", w=wrong))
    assert (verdict.status, verdict.reason[:32]) == (UNVERIFIED, "the original model does not run:")


def test_reassociation_is_within_the_tolerance() -> None:
    head = "g (float[N, 16] a, float[N, 16] b, float[N, 16] c) => (float[N, 16] y)"
    verdict = check(
        model(f"{head} {{ t = Add(a, b) u = Add(t, c) y = MatMul(u, w) }}", w=WEIGHT),
        model(f"{head} {{ t = Add(b, c) u = Add(a, t) y = MatMul(u, w) }}", w=WEIGHT),
    )
    (y,) = verdict.outputs
    assert verdict.status == EQUAL and not y.bitwise and y.max_error and y.tolerance and y.max_error <= y.tolerance


@pytest.mark.parametrize("factor", [1 + 1e-3, 1 - 1e-4, 1 + 2e-5, -1])
def test_a_wrong_constant_is_found(factor: float) -> None:
    text = "g (float[N, 16] x) => (float[N, 16] y) { t = MatMul(x, w) y = Relu(t) }"
    verdict = check(model(text, w=WEIGHT), model(text, w=(WEIGHT * factor).astype(np.float32)))
    assert verdict.status == DIFFERENT and "'y'" in verdict.reason


def test_whole_numbers_are_not_nudged() -> None:
    proto = model("g (float[N] x) => (float[N] y) { t = Mul(x, k) y = Add(t, m) }", k=np.float32(3), m=np.float32(0.3))
    nudged = nudge_weights(proto.SerializeToString(), 16, np.random.default_rng(0), None)
    assert nudged is not None
    k, m = (numpy_helper.to_array(tensor) for tensor in onnx.load_model_from_string(nudged).graph.initializer)
    assert k == 3 and m != np.float32(0.3)
    assert (
        nudge_weights(model("g (float[N] x) => (float[N] y) { y = Mul(x, k) }", k=np.float32(3)).SerializeToString(), 16, np.random.default_rng(0), None)
        is None
    )


def test_a_weight_that_an_operator_fills_is_nudged() -> None:
    text = """g (float[N] x) => (float[N] y) { n = Constant<value = int64[1] {1}>() k = ConstantOfShape<value = float[1] {0.3}>(n)
        z = ConstantOfShape(n) t = Mul(x, k) y = Add(t, z) }"""
    nudged = nudge_weights(model(text).SerializeToString(), 16, np.random.default_rng(0), None)
    assert nudged is not None
    node = next(node for node in onnx.load_model_from_string(nudged).graph.node if node.output[0] == "k")
    assert 0 < abs(numpy_helper.to_array(node.attribute[0].t)[0] - np.float32(0.3)) < 1e-5


def test_external_weights_are_nudged(tmp_path: Path) -> None:
    proto = model("g (int64[N] i) => (float[N, 16] y) { y = Gather(w, i) }", w=WEIGHT)
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    outside = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    nudged = nudge_weights(outside.SerializeToString(), 1, np.random.default_rng(0), None, folder=str(tmp_path))
    assert nudged is not None
    change = np.abs(numpy_helper.to_array(onnx.load_model_from_string(nudged).graph.initializer[0]) - WEIGHT)
    assert 0 < change.max() < 1e-5


def test_the_smallest_external_weights_are_nudged_where_not_all_have_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = model("g (int64[N] i) => (float[N, 16] y) { t = Gather(w, i) y = Mul(t, s) }", w=WEIGHT, s=WEIGHT[0])
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    outside = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    data = outside.SerializeToString()
    monkeypatch.setattr("eqsat.verification.nudges._LARGEST_MODEL_TO_NUDGE", len(data) + WEIGHT[0].nbytes)
    nudged = nudge_weights(data, 1, np.random.default_rng(0), None, folder=str(tmp_path))
    assert nudged is not None
    w, s = onnx.load_model_from_string(nudged).graph.initializer
    assert w == outside.graph.initializer[0] and 0 < np.abs(numpy_helper.to_array(s) - WEIGHT[0]).max() < 1e-5


def test_a_weight_that_became_constant_gives_the_same_bits() -> None:
    head = "g (float[N, 256] x) => (float[N, 48] y)"
    weight = np.random.default_rng(0).standard_normal((48, 256)).astype(np.float32)
    a, b = model(f"{head} {{ v = Transpose(w) y = MatMul(x, v) }}", w=weight), model(f"{head} {{ y = MatMul(x, v) }}", v=np.ascontiguousarray(weight.T))
    verdict = check(a, b)
    assert verdict.status == EQUAL and verdict.outputs[0].bitwise


def test_one_wrong_element_of_many_is_found() -> None:
    text = "g (float[N, 16] x) => (float[N, 16] y) { y = MatMul(x, w) }"
    other = WEIGHT.copy()
    other[3, 5] += 1e-3
    assert check(model(text, w=WEIGHT), model(text, w=other)).status == DIFFERENT


def test_weights_that_fold_are_within_the_tolerance_without_float_inputs() -> None:
    table = np.random.default_rng(1).standard_normal((10, 16)).astype(np.float32)
    a = model("g (int64[N] i) => (float[N, 16] y) { t = Gather(e, i) u = MatMul(t, w) y = MatMul(u, w) }", e=table, w=WEIGHT)
    b = model("g (int64[N] i) => (float[N, 16] y) { t = Gather(e, i) y = MatMul(t, v) }", e=table, v=WEIGHT @ WEIGHT)
    verdict = check(a, b)
    assert verdict.status == EQUAL and not verdict.outputs[0].bitwise
    worse = (WEIGHT @ WEIGHT) * np.float32(1 + 1e-4)
    assert check(a, model("g (int64[N] i) => (float[N, 16] y) { t = Gather(e, i) y = MatMul(t, v) }", e=table, v=worse)).status == DIFFERENT


def test_large_elements_lend_their_tolerance_to_nobody() -> None:
    head = "g (float[N, 4] x) => (float[N, 8] y)"
    a = model(f"{head} {{ b = Add(x, m) y = Concat<axis = 1>(x, b) }}", m=np.float32(-1e9))
    b = model(f"{head} {{ b = Add(x, m) c = Mul(x, k) y = Concat<axis = 1>(c, b) }}", m=np.float32(-1e9), k=np.float32(1.001))
    assert check(a, b).status == DIFFERENT


def test_nan_equals_nan_and_positive_inputs_are_tried() -> None:
    head = "g (float[N] x) => (float[N] y)"
    a, b = model(f"{head} {{ t = Log(x) y = Neg(t) }}"), model(f"{head} {{ t = Log(x) y = Mul(t, k) }}", k=np.float32(-1))
    assert check(a, b).status == EQUAL
    hollow = model(f"{head} {{ s = Abs(x) n = Neg(s) z = Sub(n, k) y = Log(z) }}", k=np.float32(1))
    verdict = check(hollow, model(f"{head} {{ s = Abs(x) n = Neg(s) z = Sub(n, k) t = Log(z) y = Neg(t) }}", k=np.float32(1)))
    assert verdict.status == EQUAL and any("NaN" in note for note in verdict.notes)


def test_a_nan_that_the_original_does_not_have_is_found() -> None:
    head = "g (float[N] x) => (float[N] y)"
    assert check(model(f"{head} {{ t = Abs(x) y = Sqrt(t) }}"), model(f"{head} {{ y = Sqrt(x) }}")).status == DIFFERENT


def test_indices_stay_in_the_table_and_types_are_respected() -> None:
    head = "g (int64[N, S] ids, bool[N] keep, uint8[N] q) => (float[N, S, 4] y, bool[N] k, uint8[N] p)"
    table = np.random.default_rng(1).standard_normal((10, 4)).astype(np.float32)
    a = model(f"{head} {{ i = Identity(ids) y = Gather(e, i) k = Not(keep) p = Identity(q) }}", e=table)
    b = model(f"{head} {{ y = Gather(e, ids) k = Not(keep) p = Identity(q) }}", e=table)
    verdict = check(a, b)
    assert verdict.status == EQUAL and verdict.runs == 7 and all(output.exercised for output in verdict.outputs)
    wrong = table.copy()
    wrong[9] += 1
    assert check(a, model(f"{head} {{ y = Gather(e, ids) k = Not(keep) p = Identity(q) }}", e=wrong)).status == DIFFERENT


def test_a_near_tie_explains_a_discrete_output() -> None:
    # 0.1 * x and x / 10 round differently, so their floors differ exactly at multiples of 10.
    head = "g (float[16] x) => (int64[16] y)"
    a = model(f"{head} {{ t = Div(x, k) f = Floor(t) y = Cast<to = 7>(f) }}", k=np.float32(10))
    b = model(f"{head} {{ t = Mul(x, k) f = Floor(t) y = Cast<to = 7>(f) }}", k=np.nextafter(np.float32(0.1), np.float32(0)))
    x = np.arange(16).astype(np.float32) * 10
    verdict = check(a, b, inputs={"x": x})
    assert verdict.status == EQUAL and verdict.outputs[0].near_ties > 5
    c = model(f"{head} {{ t = Mul(x, k) f = Floor(t) y = Cast<to = 7>(f) }}", k=np.float32(0.11))
    assert check(a, c, inputs={"x": x}).status == DIFFERENT
    assert check(a, c, inputs={"x": x + 9.5}).status == DIFFERENT


def test_an_argmax_that_is_no_tie_must_agree() -> None:
    head = "g (float[N, 8] x) => (int64[N, 1] y)"
    assert check(model(f"{head} {{ y = ArgMax<axis = 1>(x) }}"), model(f"{head} {{ t = Neg(x) y = ArgMin<axis = 1>(t) }}")).status == EQUAL
    assert check(model(f"{head} {{ y = ArgMax<axis = 1>(x) }}"), model(f"{head} {{ t = Abs(x) y = ArgMax<axis = 1>(t) }}")).status == DIFFERENT


def test_random_outputs_are_compared_by_type_only() -> None:
    head = "g (float[N] x) => (float[N] y, float[N] z)"
    body = "r = RandomNormalLike(x) y = Add(x, r)"
    verdict = check(model(f"{head} {{ {body} z = Neg(x) }}"), model(f"{head} {{ {body} t = Identity(x) z = Neg(t) }}"))
    assert verdict.status == EQUAL and [output.random for output in verdict.outputs] == [True, False]
    assert check(model(f"{head} {{ {body} z = Neg(x) }}"), model(f"{head} {{ {body} z = Abs(x) }}")).status == DIFFERENT
    wider = model(f"{head} {{ r = RandomNormalLike(x) t = Concat<axis = 0>(x, r) y = Identity(t) z = Neg(x) }}")
    assert check(model(f"{head} {{ {body} z = Neg(x) }}"), wider).status == DIFFERENT


def test_randomness_inside_a_function_is_seen() -> None:
    head = 'ir_version: 8, opset_import: ["": 18, "f": 1]'
    function = '<domain: "f", opset_import: ["": 18]> noise (a) => (b) { r = RandomNormalLike(a) b = Add(a, r) }'
    text = "g (float[N] x) => (float[N] y) { %s y = f.noise(x) }"
    a = model(text % "", head, function)
    b = model(text % "t = Neg(x)", head, function)
    assert check(a, b).outputs[0].random


def test_an_output_that_nothing_moves_is_reported() -> None:
    head = "g (float[N] x) => (float[N] y, float[1] c, float[1] z)"
    body = "c = Constant<value_floats = [2.0]>() s = ReduceSum<keepdims = 1>(x) f = Mul(s, k) z = Relu(f)"
    verdict = check(
        model(f"{head} {{ y = Neg(x) {body} }}", k=np.array([0], np.float32)),
        model(f"{head} {{ t = Identity(x) y = Neg(t) {body} }}", k=np.array([0], np.float32)),
    )
    assert [output.exercised for output in verdict.outputs] == [True, None, False]
    assert verdict.status == EQUAL and any("not exercised" in note and "z" in note for note in verdict.notes)


def test_interface_changes_are_differences() -> None:
    a = model("g (float[N] x, float[N] y) => (float[N] z) { z = Add(x, y) }")
    for text in (
        "g (float[N] y, float[N] x) => (float[N] z) { z = Add(x, y) }",
        "g (float[N] x) => (float[N] z) { z = Add(x, x) }",
        "g (float[N] x, double[N] y) => (float[N] z) { t = Cast<to = 1>(y) z = Add(x, t) }",
        "g (float[N] x, float[N] y) => (float[N] w) { w = Add(x, y) }",
    ):
        assert check(a, model(text)).status == DIFFERENT


def test_a_shape_or_type_of_an_output_that_changes_is_a_difference() -> None:
    head = "g (float[N, 4] x) => (y)"
    a = model(f"{head} {{ y = ReduceSum<keepdims = 1>(x) }}")
    verdict = check(a, model(f"{head} {{ y = ReduceSum<keepdims = 0>(x) }}"))
    assert verdict.status == DIFFERENT and "float32[1,1]" in verdict.reason
    assert check(a, model(f"{head} {{ t = ReduceSum<keepdims = 1>(x) y = Cast<to = 11>(t) }}")).status == DIFFERENT


def test_a_model_that_fixes_a_symbolic_size_is_different() -> None:
    a = model("g (float[N, 4] x) => (float[M] y) { y = Reshape(x, s) }", s=np.array([-1], np.int64))
    b = model("g (float[N, 4] x) => (float[M] y) { y = Reshape(x, s) }", s=np.array([12], np.int64))
    assert check(a, b).status == DIFFERENT


def test_sequences_optionals_strings_and_half_precision() -> None:
    head = "g (seq(float[N]) s, string[N] t, optional(float[N]) o, bfloat16[N] h) => (seq(float[N]) u, string[N] v, bool w, bfloat16[N] i, float[K] c)"
    body = "v = Identity(t) w = OptionalHasElement(o) i = Identity(h) c = ConcatFromSequence<axis = 0>(s)"
    a = model(f"{head} {{ u = Identity(s) {body} }}")
    assert check(a, model(f"{head} {{ r = Identity(s) u = Identity(r) {body} }}")).status == EQUAL
    other = model(f"{head} {{ z = SequenceAt(s, n) u = SequenceInsert(s, z) {body} }}", n=np.int64(0))
    assert check(a, other).status == DIFFERENT


@pytest.mark.parametrize("code", [10, 16])
def test_narrow_types_are_judged_by_their_own_last_place(code: int) -> None:
    head = f"g (float[N, 16] x) => (float[N, 16] y) {{ h = Cast<to = {code}>(x) v = Cast<to = {code}>(w)"
    a = model(f"{head} a = Add(h, h) b = Add(a, h) y = Cast<to = 1>(b) }}", w=WEIGHT)
    b = model(f"{head} a = Add(h, h) b = Add(h, a) y = Cast<to = 1>(b) }}", w=WEIGHT)
    c = model(f"{head} n = Neg(h) b = Sub(h, n) y = Cast<to = 1>(b) }}", w=WEIGHT)
    if code == 10:  # ONNX Runtime adds no bfloat16 on a CPU; the reference does
        assert check(a, b).engine == "onnxruntime"
    assert check(a, b).status == EQUAL
    assert check(a, c).status == DIFFERENT


@pytest.mark.parametrize("code", [17, 18, 19, 20])
def test_float8(code: int) -> None:
    head = f"g (float[N] x) => (y) {{ h = Cast<to = {code}>(x)"
    header = 'ir_version: 9, opset_import: ["": 19]'
    assert check(model(f"{head} y = Identity(h) }}", header), model(f"{head} i = Identity(h) y = Identity(i) }}", header)).status == EQUAL
    wrong = check(model(f"{head} y = Identity(h) }}", header), model(f"g (float[N] x) => (y) {{ n = Neg(x) y = Cast<to = {code}>(n) }}", header))
    assert wrong.status == DIFFERENT


def test_a_custom_operator_can_not_be_judged() -> None:
    header = 'ir_version: 8, opset_import: ["": 18, "no": 1]'
    a = model("g (float[N] x) => (float[N] y) { y = no.Thing(x) }", header)
    verdict = check(a, model("g (float[N] x) => (float[N] y) { t = Neg(x) y = no.Thing(t) }", header))
    assert verdict.status == UNVERIFIED and "Thing" in verdict.reason and "\n" not in verdict.reason


def test_a_runtimes_own_operator_is_no_difference_to_the_reference() -> None:
    """ONNX Runtime has no Equal of floats before opset 11, so the reference runs the original: FusedMatMul was a difference to it."""
    header = 'ir_version: 8, opset_import: ["": 10, "com.microsoft": 1]'
    graph = "g (float[2, 2] x) => (bool[2, 2] y) <float two = {2}> { %s  y = Equal (a, x) }"
    original = model(graph % "m = MatMul (x, x)  a = Mul (m, two)", header)
    verdict = check(original, model(graph % "a = com.microsoft.FusedMatMul <alpha = 2.0> (x, x)", header))
    assert verdict.status == UNVERIFIED and "Equal" in verdict.reason and "FusedMatMul" in verdict.reason
    assert check(original, model(graph % "m = MatMul (x, x)  a = Add (m, m)", header)).status == EQUAL
    assert check(original, model(graph % "m = MatMul (x, x)  a = Add (m, two)", header)).status == DIFFERENT


def test_the_reference_judges_what_the_runtime_has_no_kernel_for() -> None:
    head = "g (bfloat16[N] x) => (bfloat16[N] y)"
    verdict = check(model(f"{head} {{ y = Atan(x) }}"), model(f"{head} {{ t = Identity(x) y = Atan(t) }}"))
    assert verdict.status == EQUAL and verdict.engine == "reference"


def test_inputs_with_a_default_are_tried_with_other_values() -> None:
    text = "g (float[N] x, float[1] w) => (float[N] y) { y = %s }"
    a, b = model(text % "Mul(x, w)", w=np.array([1], np.float32)), model(text % "Identity(x)", w=np.array([1], np.float32))
    verdict = check(a, b)
    assert verdict.status == DIFFERENT and "default" in verdict.reason
    assert check(a, model(text % "Mul(w, x)", w=np.array([1], np.float32))).status == EQUAL


def test_the_users_inputs_are_used_and_checked() -> None:
    a = model("g (float[N] x, int64[2] i) => (float[2] y) { t = Relu(x) y = Gather(t, i) }")
    b = model("g (float[N] x, int64[2] i) => (float[2] y) { y = Gather(x, i) }")
    good = {"x": np.array([1, 2, 3], np.float32), "i": np.array([0, 1], np.int64)}
    verdict = check(a, b, inputs=good)
    assert verdict.status == EQUAL and verdict.runs == 1 and verdict.outputs[0].exercised is None
    assert check(a, b, inputs={**good, "x": np.array([-1, 2, 3], np.float32)}).status == DIFFERENT
    for wrong, name in (
        ({"x": good["x"]}, "i"),
        ({**good, "z": good["x"]}, "z"),
        ({**good, "x": good["i"]}, "'x'"),
        ({**good, "i": np.array([1], np.int64)}, "'i'"),
    ):
        with pytest.raises(InputError, match=name):
            check(a, b, inputs=wrong)


class Broken:
    """A worker that raises `failure` when it runs the optimized model, or the original too."""

    def __init__(self, failure: Exception, original_too: bool) -> None:
        self.failure, self.original_too = failure, original_too

    def call(self, function: str, request: Any, **limits: Any) -> Any:
        from eqsat.verification.judge import judge

        if request.optimized is not None or self.original_too:
            raise self.failure
        return judge(request)


@pytest.mark.parametrize("original_too", [False, True])
def test_a_crash_is_the_optimized_models_if_the_original_runs(original_too: bool) -> None:
    from eqsat.runtime.worker import WorkerDied

    a, b = model("g (float[N] x) => (float[N] y) { y = Neg(x) }"), model("g (float[N] x) => (float[N] y) { t = Neg(x) y = Identity(t) }")
    verdict = check(a, b, worker=Broken(WorkerDied(-6), original_too))
    assert verdict.status == (UNVERIFIED if original_too else DIFFERENT)
    assert verdict.reason == f"the runtime crashed (signal 6) on the {'original' if original_too else 'optimized'} model"


def test_files(tmp_path: Path) -> None:
    a, b = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(model("g (float[N] x) => (float[N] y) { t = Neg(x) y = Neg(t) }"), a)
    onnx.save(model("g (float[N] x) => (float[N] y) { y = Identity(x) }"), b)
    assert verify_files(a, b).status == EQUAL
    with pytest.raises(InputError, match="nothing"):
        verify_files(a, tmp_path / "nothing.onnx")
    (tmp_path / "text").write_text("no model at all")
    with pytest.raises(InputError, match="not an ONNX model"):
        verify_files(tmp_path / "text", a)


def test_the_same_seed_gives_the_same_verdict() -> None:
    a = model("g (float[N, 16] x) => (float[N, 16] y) { t = MatMul(x, w) y = MatMul(t, w) }", w=WEIGHT)
    b = model("g (float[N, 16] x) => (float[N, 16] y) { y = MatMul(x, v) }", v=WEIGHT @ WEIGHT)
    first, second = check(a, b, seed=3), check(a, b, seed=3)
    first.seconds = second.seconds = 0
    assert first == second and first.status == EQUAL


def test_ulp_and_nudge_are_one_unit_in_the_last_place() -> None:
    generator = np.random.default_rng(0)
    for dtype in (np.float16, np.float32, np.float64):
        x = generator.standard_normal(200).astype(dtype)
        moved = nudge(x, 1, generator)
        up, down = np.nextafter(x, np.array(np.inf, dtype)), np.nextafter(x, np.array(-np.inf, dtype))
        assert np.all((moved == up) | (moved == down))
    assert nudge(np.array([0, np.inf, np.nan], np.float32), 1, generator).tobytes() == np.array([0, np.inf, np.nan], np.float32).tobytes()
    assert helper.tensor_dtype_to_np_dtype(16).name == nudge(np.ones(2, helper.tensor_dtype_to_np_dtype(16)), 1, generator).dtype.name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_nudge_moves_by_units_and_crosses_neither_zero_nor_infinity(dtype: type[np.floating[Any]]) -> None:
    limits = np.finfo(dtype)
    least = limits.smallest_subnormal
    for seed in range(20):
        x = np.array([[1, -1], [least, -3 * least], [limits.max, -limits.max]], dtype).T  # not contiguous
        moved = nudge(x, 8, np.random.default_rng(seed))
        assert moved.shape == x.shape and moved.dtype == dtype
        assert np.isfinite(moved).all() and (np.signbit(moved) == np.signbit(x)).all() and (moved != 0).all()
        assert set(abs(moved[:, 0]).tolist()) <= {1 + 8 * float(limits.eps), 1 - 4 * float(limits.eps)}
    scalar = np.array(2, dtype)
    assert nudge(scalar, 1, np.random.default_rng(0)).shape == () and nudge(scalar, 1, np.random.default_rng(0)) != 2


def test_an_element_that_moves_far_needs_no_peers() -> None:
    original = np.linspace(1, 1.5, 64, dtype=np.float32)
    optimized, nudged = original.copy(), original + np.float32(1e-6)
    optimized[0] += np.float32(1e-3)  # as far as this element itself moves
    nudged[0] += np.float32(1e-3)
    optimized[1] += np.float32(1e-6)  # as far as its peers move
    nudged[1] = original[1]
    difference = tolerance.Difference(original, optimized)
    assert not difference.explained()
    difference.moved(nudged, 1)
    assert difference.explained() and difference.judge().unexplained == 0
    nudged[0] = original[0]
    alone = tolerance.Difference(original, optimized)
    alone.moved(nudged, 1)
    assert not alone.explained() and alone.judge().unexplained == 1


def test_an_element_that_jumps_lends_its_tolerance_to_nobody() -> None:
    original = np.ones(100, np.float32)
    optimized = original.copy()
    optimized[0], optimized[50] = 1.9, 1 + 1e-6
    difference = tolerance.Difference(original, optimized)
    assert difference.judge().unexplained == 2
    nudged = np.full(100, 1 + 1e-6, np.float32)
    nudged[0] = 2
    difference.moved(nudged, 1)
    finding = difference.judge()
    assert finding.unexplained == 0 and finding.near_ties == 1
    optimized[50] = 1 + 1e-4
    worse = tolerance.Difference(original, optimized)
    worse.moved(nudged, 1)
    assert worse.judge().unexplained == 1


def test_integers_are_excused_as_floats_decide_them() -> None:
    difference = tolerance.Difference(np.array([1, 1, 1]), np.array([5, 3, 1]))
    difference.moved(np.array([1, 5, 9]), 1)
    difference.moved(np.array([5, 1, 9]), 1)
    assert [difference.judge(decided).unexplained for decided in (Decided.NOT, Decided.ROUNDED, Decided.CHOSEN)] == [2, 0, 1]


def test_the_function_is_there_after_the_module_was_used(tmp_path: Path) -> None:
    """A module `eqsat.verify` would replace the function in the package once a stage imports it."""
    path = tmp_path / "model.onnx"
    onnx.save(model("g (float[2] x) => (float[2] y) { y = Relu(x) }"), path)
    eqsat.optimize(path)
    assert eqsat.verify(path, path).status == EQUAL

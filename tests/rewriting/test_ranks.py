"""Ranks: numbers get as many axes as the tensor beside them where kernels would take elements one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.explain.explanation import explain
from eqsat.explain.law_names import RANKS
from eqsat.rewriting.ranks import with_full_ranks
from eqsat.settings import Settings
from tests.support.models import assert_same, operators, parse, random_feeds

# Operands of which the last axes, up to the lowest rank, are of size 1, and an expression of them.
SLOW = [
    ("float[50, 1] x", "<float c = {2}>", "Mul (x, c)"),
    ("float[50, 1] x", "<float c = {2}>", "Mul (c, x)"),
    ("float[50, 1] x", "<float[1] c = {2}>", "Div (x, c)"),
    ("float[N, 1] x", "<float[1] c = {2}>", "Div (x, c)"),
    ("float[2, 50, 1, 1] x", "<float[1, 1] c = {2}>", "Sub (c, x)"),
    ("float[2, 50, 1, 1] x", "<float[1] c = {0.5}>", "PRelu (x, c)"),
    ("float[2, 50, 1, 1] x", "<float c = {0.5}>", "Pow (x, c)"),
    ("float[5, 1] x, float[5, 1] y", "<float c = {0.5}>", "Max (x, y, c)"),
    ("float[5, 1] x, float[5, 1] y", "<float c = {0.5}>", "Sum (x, c, y)"),
    ("bool[5, 1] b, float[5, 1] x", "<float c = {0.5}>", "Where (b, c, x)"),
]
# There is an axis of another size, all sizes are 1, or the operand with few axes is no constant number.
FAST = [
    ("float[50, 3] x", "<float c = {2}>", "Mul (x, c)"),
    ("float[50, N] x", "<float c = {2}>", "Mul (x, c)"),
    ("float[50, 3, 1] x", "<float[1, 1] c = {2}>", "Mul (x, c)"),
    ("float[50, 1] x", "<float[1, 1] c = {2}>", "Mul (x, c)"),
    ("float[1, 1] x", "<float c = {2}>", "Mul (x, c)"),
    ("float[50, 1] x", "<float[3] c = {1, 2, 3}>", "Mul (x, c)"),
    ("float[50, 1] x, float[1] c", "", "Mul (x, c)"),
    ("float[50, 1] x, float y", "<float c = {2}>", "Max (x, y, c)"),
    ("float[50, 1] x", "<float c = {2}, float d = {3}>", "Clip (x, c, d)"),
]


def model_of(inputs: str, numbers: str, expression: str, opset: int = 17) -> onnx.ModelProto:
    model = parse(f"g ({inputs}) => (float z) {numbers} {{ z = {expression} }}", f'<ir_version: 8, opset_import: ["" : {opset}]>')
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(model)


def ranks(model: onnx.ModelProto) -> list[int]:
    return [len(tensor.dims) for tensor in model.graph.initializer]


def feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {name: np.abs(array) for name, array in random_feeds(model, {"N": 7}).items()}


@pytest.mark.parametrize(("inputs", "numbers", "expression"), SLOW)
def test_a_number_gets_the_rank_of_the_other_operands(inputs: str, numbers: str, expression: str) -> None:
    model = model_of(inputs, numbers, expression)
    result = with_full_ranks(model, lambda: model)
    onnx.checker.check_model(result, full_check=True)
    wanted = max(len(info.type.tensor_type.shape.dim) for info in model.graph.input)
    assert ranks(result) == [wanted] and ranks(model) != [wanted]
    assert_same(model, result, feeds(model))


@pytest.mark.parametrize(("inputs", "numbers", "expression"), FAST)
def test_other_numbers_stay_as_they_are(inputs: str, numbers: str, expression: str) -> None:
    model = model_of(inputs, numbers, expression)
    assert with_full_ranks(model, lambda: model) is model


def test_a_number_that_the_caller_may_replace_stays() -> None:
    model = model_of("float[50, 1] x, float c", "<float c = {2}>", "Mul (x, c)")
    assert with_full_ranks(model, lambda: model) is model


def test_a_number_in_a_file_stays(tmp_path: Path) -> None:
    """One in a Constant node was taken for an error: the model's folder was not known."""
    model = parse("g (float[50, 1] x) => (float[50, 1] z) { c = Constant <value = float {2}> () z = Mul (x, c) }")
    tensor = model.graph.node[0].attribute[0].t
    (tmp_path / "w.bin").write_bytes(np.float32(2).tobytes())
    tensor.CopyFrom(onnx.TensorProto(data_type=tensor.data_type, data_location=onnx.TensorProto.EXTERNAL))
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert with_full_ranks(model, lambda: model) is model
    assert eqsat.optimize(tmp_path / "m.onnx").report["verify"]["status"] == "equal"


def test_before_opset_9_not_all_operators_broadcast() -> None:
    model = model_of("float[50, 1] x", "<float c = {2}>", "Mul (x, c)", opset=8)
    assert with_full_ranks(model, lambda: model) is model


def test_old_models_store_numbers_as_nodes() -> None:
    model = parse('<ir_version: 3, opset_import: ["" : 9]> g (float[50, 1] x) => (float[50, 1] z) { c = Constant <value = float {2}> () z = Mul (x, c) }')
    result = with_full_ranks(model, lambda: model)
    onnx.checker.check_model(result, full_check=True)
    assert not result.graph.initializer and [node.op_type for node in result.graph.node] == ["Constant", "Mul"]
    assert list(result.graph.node[0].attribute[0].t.dims) == [1, 1]
    assert_same(model, result, feeds(model))


def test_a_number_is_stored_once_for_each_rank_and_kept_where_it_is_read_as_it_was() -> None:
    model = parse("""g (float[50, 1] x, float[4, 5, 1] y) => (float[50, 1] p, float[4, 5, 1] q, float[50, 1] r) <float c = {2}> {
        p = Mul (x, c) q = Mul (y, c) t = Add (x, c) k = Range (c, c, c) n = Size (k) f = Cast <to = 1> (n) r = Add (t, f) }""")
    result = with_full_ranks(model, lambda: onnx.shape_inference.infer_shapes(model))
    onnx.checker.check_model(result, full_check=True)
    assert sorted(ranks(result)) == [0, 2, 3]
    assert_same(model, result, feeds(model))


def test_bodies_read_numbers_of_the_graph_around_them_and_may_hide_them() -> None:
    model = parse("""g (float[50, 1] x, bool b) => (float[50, 1] z) <float c = {2}, float[1] d = {3}> {
        z = If (b) <then_branch = t () => (float[50, 1] u) { u = Mul (x, c) },
            else_branch = e () => (float[50, 1] v) <float d = {5}> { v = Mul (x, d) }> }""")
    result = with_full_ranks(model, lambda: model)
    onnx.checker.check_model(result, full_check=True)
    inner = [[list(tensor.dims) for tensor in attribute.g.initializer] for attribute in result.graph.node[0].attribute]
    assert inner == [[[1, 1]], [[1, 1]]]
    assert_same(model, result, *({**feeds(model), "b": np.array(chosen)} for chosen in (True, False)))


def test_a_body_may_have_an_input_of_the_same_name() -> None:
    """ONNX forbids it, and runtimes take it: the number is not what the body reads."""
    model = parse("""g (int64 n, bool b, float[50, 1] x, float s) => (float z) <float c = {2}> {
        z, y = Loop (n, b, s, x) <body = l (int64 i, bool k, float c, float[50, 1] v) => (bool o, float c, float[50, 1] w) {
            o = Identity (k) w = Mul (v, c) }> }""")
    assert with_full_ranks(model, lambda: model) is model


@pytest.mark.parametrize(("axes", "ranks_after"), [(32, [32]), (33, [0])])
def test_arrays_of_too_many_axes_are_not_made(axes: int, ranks_after: list[int]) -> None:
    sizes = ", ".join(["5", *"1" * (axes - 1)])
    model = parse(f"g (float[{sizes}] x) => (float[{sizes}] z) <float c = {{2}}> {{ z = Mul (x, c) }}")
    model.graph.initializer.append(onnx.TensorProto(name="deep", data_type=1, dims=[1] * 100, raw_data=bytes(4)))
    result = with_full_ranks(model, lambda: model)
    assert ranks(result) == [100, *ranks_after] or ranks(result) == [*ranks_after, 100]


def test_a_model_with_training_information_keeps_its_numbers() -> None:
    model = model_of("float[50, 1] x", "<float c = {2}>", "Mul (x, c)")
    model.training_info.add().update_binding.add(key="c", value="z")
    assert with_full_ranks(model, lambda: model) is model


TEXT = "g (float[500, 1] x) => (float[500, 1] z) <float a = {2}, float b = {3}> { y = Mul (x, a) t = Tanh (y) z = Add (t, b) }"


@pytest.mark.parametrize(("target", "rank"), [("onnxruntime-cpu", 2), ("launches", 0), ("onnxruntime-cuda", 0)])
def test_results_have_such_numbers_where_the_target_is_slow_with_others(target: str, rank: int) -> None:
    result = eqsat.optimize(parse(TEXT), target=target)
    assert result.report["verify"]["status"] == "equal"
    assert operators(result.model) == {"Mul": 1, "Tanh": 1, "Add": 1}
    assert ranks(result.model) == [rank, rank]


def test_the_price_of_a_model_counts_the_steps() -> None:
    before, after = (eqsat.optimize(parse(TEXT)).report["cost"][when]["seconds"] for when in ("before", "after"))
    assert after < before / 2


def test_types_that_a_model_does_not_declare_are_found() -> None:
    model = parse("g (float[500, 4] x) => (float[500, 1] z) <float c = {2}> { y = ReduceMax <axes = [1]> (x) z = Mul (y, c) }")
    assert not model.graph.value_info
    assert ranks(eqsat.optimize(model).model) == [2]


def test_a_run_of_certain_rules_alone_keeps_the_numbers() -> None:
    assert ranks(eqsat.optimize(parse(TEXT), only=("neg-number",)).model) == [0, 0]


def test_a_chain_names_the_step() -> None:
    text = TEXT.replace("z = Add (t, b)", "n = Neg (t) m = Neg (n) z = Add (m, b)")
    explained = explain(parse(text), Settings(), seconds=0)
    assert explained.reached and explained.status == "equal"
    assert explained.steps[-1].change.laws == (RANKS,)

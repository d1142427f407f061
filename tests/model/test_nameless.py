"""Nameless keys: names do not count, and everything else does that a runtime may look at."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from eqsat.model.nameless import nameless_key
from tests.support.models import parse, weighted

TEXT = """g (float[N, 4] x, float[4] z) => (float[N, 4] y) <float[4] w = {1, 2, 3, 4}, float[4] v = {5, 6, 7, 8}> {
    a = Elu <alpha = 2.0> (x)
    b = Mul (a, w)
    c = Sub (b, v)
    d = Clip (c, , z)
    y = Add (d, a)
}"""


def same(one: onnx.ModelProto, other: onnx.ModelProto) -> bool:
    keys = nameless_key(one), nameless_key(other)
    assert all(key is not None for key in keys)
    return keys[0] == keys[1]


def renamed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a model with other names of values and nodes, and its constants in another order."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    graph = other.graph
    for one in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        one.name = f"new_{one.name}"
    for number, node in enumerate(graph.node):
        node.name = f"node{number}"
        node.input[:] = [name and f"new_{name}" for name in node.input]
        node.output[:] = [name and f"new_{name}" for name in node.output]
    weights, types = list(graph.initializer)[::-1], list(graph.value_info)[::-1]
    del graph.initializer[:], graph.value_info[:]
    graph.initializer.extend(weights)
    graph.value_info.extend(types)
    return other


def test_names_and_the_order_of_constants_do_not_count() -> None:
    model = parse(TEXT)
    model.graph.value_info.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in "ab")
    assert same(model, renamed(model))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Elu", "Selu"),
        ("alpha = 2.0", "alpha = 2.5"),
        ("float[4] z", "float[1] z"),
        ("float[N, 4] x", "float[M, 4] x"),
        ("(float[N, 4] y)", "(float[M, 4] y)"),
        ("(float[N, 4] y)", "(float[N, 4] y, float[N, 4] d)"),
        ("Sub (b, v)", "Sub (b, w)"),
        ("Sub (b, v)", "Sub (v, b)"),
        ("(c, , z)", "(c, z)"),
        ("Add (d, a)", "Add (d, c)"),
        ("{1, 2, 3, 4}", "{1, 2, 3, 5}"),
        ("float[4] w = {1, 2, 3, 4}", "float[2, 2] w = {1, 2, 3, 4}"),
        ("y = Add (d, a)", "y = Add (d, a)  e = Add (d, a)"),
    ],
)
def test_everything_else_counts(old: str, new: str) -> None:
    assert old in TEXT
    assert not same(parse(TEXT), parse(TEXT.replace(old, new, 1)))


def test_declared_types_opsets_and_the_order_of_nodes_count() -> None:
    text = "g (float[4] x) => (float[4] y) { a = Exp (x)  b = Abs (x)  y = Sub (a, b) }"
    model, declared = parse(text), parse(text)
    declared.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [4]))
    assert not same(model, declared)
    older = parse(text)
    older.opset_import[0].version -= 1
    assert not same(model, older)
    assert not same(model, parse(text.replace("a = Exp (x)  b = Abs (x)", "b = Abs (x)  a = Exp (x)")))


def test_elements_count_unless_the_weight_has_a_stand_in() -> None:
    text = "g (T[N, 200] x) => (T[N, 200] y) { y = MatMul (x, w) }"
    for kind, dtype, size, counts in (("float", np.float32, 200, False), ("int32", np.int32, 200, True), ("float", np.float32, 100, True)):
        one, other = np.ones((size, size), dtype), np.full((size, size), 2, dtype)
        model = text.replace("T", kind).replace("200", str(size))
        assert same(weighted(model, w=one), weighted(model, w=other)) is not counts
    assert not same(
        weighted(text.replace("T", "float"), w=np.ones((200, 200), np.float32)), weighted(text.replace("T", "float"), w=np.ones((200, 201), np.float32))
    )


@pytest.mark.parametrize(("width", "alike"), [(100, False), (200, True)], ids=["small", "large"])
def test_external_data_count_by_their_place_unless_only_their_type_matters(width: int, alike: bool) -> None:
    text = f"g (float[N, {width}] x) => (float[N, {width}] y) {{ y = MatMul (x, w) }}"
    models = [weighted(text, w=np.ones((width, width), np.float32)) for _ in range(2)]
    for number, model in enumerate(models):
        (tensor,) = model.graph.initializer
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"file{number}")
    assert same(*models) is alike


def test_a_model_with_names_elsewhere_has_no_key() -> None:
    body = "then_branch = t () => (float[N] a) { a = Neg (x) }, else_branch = e () => (float[N] b) { b = Abs (x) }"
    assert nameless_key(parse(f"g (float[N] x, bool c) => (float[N] y) {{ y = If (c) <{body}> }}")) is None
    called = parse(TEXT)
    called.functions.append(helper.make_function("own", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 17)]))
    sparse = parse(TEXT)
    sparse.graph.sparse_initializer.add()
    annotated = parse(TEXT)
    annotated.graph.quantization_annotation.add(tensor_name="a")
    assert [nameless_key(model) for model in (called, sparse, annotated)] == [None] * 3

"""A model of 16-bit floats in float32 shows the graph of a device that has kernels for them."""

from __future__ import annotations

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.external_data_helper import set_external_data

from eqsat.model.single_precision import half_of, has_halves, in_halves, in_single, needs_its_files
from eqsat.model.stand_ins import with_stand_ins
from eqsat.runtime.onnx_passes import inferred
from eqsat.runtime.own_graph import ZEROS, own_graph
from eqsat.runtime.worker import shared
from tests.support.models import parse

HALVES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}

LAYER = """
    layer (float16[2, 3, 8] x, float mask) => (float16[2, 3, 8] y)
    <float two = {2}, float tiny = {0.001}>
    {
        w = Cast<to = 1>(x)
        p = Pow(w, two)
        m = ReduceMean<axes = [-1]>(p)
        e = Add(m, tiny)
        r = Sqrt(e)
        n = Div(w, r)
        h = Cast<to = 10>(n)
        s = Mul(scale, h)
        g0 = Div(s, root)
        g1 = Erf(g0)
        g2 = Add(g1, one)
        g3 = Mul(s, g2)
        g = Mul(g3, half)
        c = Cast<to = 1>(g)
        d = Add(c, mask)
        f = Softmax<axis = -1>(d)
        y = Cast<to = 10>(f)
    }
"""


def model(text: str, kind: str = "float16", **constants: float | np.ndarray) -> onnx.ModelProto:
    """Returns a model whose halves are of the type `kind`, with constants of halves."""
    text = text.replace("float16", kind).replace("to = 10", f"to = {int(HALVES[kind])}")
    found = parse(text, '<ir_version: 8, opset_import: ["" : 17]>')
    found.graph.initializer.extend(numpy_helper.from_array(np.asarray(value).astype(KINDS[kind]), name) for name, value in constants.items())
    return found


def of_device(given: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the graph of a device with kernels for halves."""
    typed = inferred(given)
    half = half_of(typed)
    message, zeros = in_single(*with_stand_ins(given), typed, half)
    return onnx.ModelProto.FromString(in_halves(own_graph(message, zeros, None, None, {}, 64, shared(), layouts=False), typed, half))


@pytest.mark.parametrize("half", HALVES)
def test_nodes_are_fused_as_in_float32_and_casts_stay(half: str) -> None:
    found = of_device(model(LAYER, half, scale=np.ones(8), root=math.sqrt(2), one=1.0, half=0.5))
    assert [node.op_type for node in found.graph.node] == ["SimplifiedLayerNormalization", "Gelu", "Cast", "Add", "Softmax", "Cast"]
    assert [node.attribute[0].i for node in found.graph.node if node.op_type == "Cast"] == [TensorProto.FLOAT, HALVES[half]]
    types = {info.name: info.type.tensor_type.elem_type for info in (*found.graph.input, *found.graph.output, *found.graph.value_info)}
    assert types == {"x": HALVES[half], "s": HALVES[half], "g": HALVES[half], "y": HALVES[half], **dict.fromkeys(["mask", "c", "d", "f"], TensorProto.FLOAT)}


@pytest.mark.parametrize("half", HALVES)
def test_a_cast_of_a_constant_keeps_its_number(half: str) -> None:
    given = model("g (float[4] x) => (float[4] y) { k = Cast<to = 1>(c) y = Mul(x, k) }", half, c=0.5)
    message, _ = in_single(given.SerializeToString(), 0, inferred(given), HALVES[half])
    found = onnx.ModelProto.FromString(own_graph(message, 0, None, None, {}, 64, shared(), layouts=False))
    assert [node.op_type for node in found.graph.node] == ["Mul"]
    assert [float(numpy_helper.to_array(tensor)) for tensor in found.graph.initializer] == [0.5]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("number", [math.sqrt(2), math.sqrt(1 / 2), math.sqrt(2 / math.pi), 0.044715, 1.75])
def test_numbers_of_a_gelu_are_those_that_are_meant(half: str, number: float) -> None:
    given = model("g (float16[4] x) => (float16[4] y) { y = Mul(x, c) }", half, c=number)
    message, _ = in_single(given.SerializeToString(), 0, given, HALVES[half])
    found = onnx.ModelProto.FromString(message)
    assert numpy_helper.to_array(found.graph.initializer[0]) == np.float32(number)
    assert {info.type.tensor_type.elem_type for info in (*found.graph.input, *found.graph.output)} == {TensorProto.FLOAT}


def test_bodies_and_data_types_of_results_are_in_float32_as_well() -> None:
    text = """
        g (bool b, float[4] x) => (float16[4] y)
        {
            y = If(b) <
                then_branch = first () => (float16[4] u) { u = Cast<to = 10>(x) },
                else_branch = second () => (float16[4] v) { e = Neg(x) v = Cast<to = 10>(e) }
            >
        }
    """
    given = model(text)
    found = of_device(given)
    bodies = [attribute.g for attribute in found.graph.node[0].attribute]
    assert sorted(node.op_type for body in bodies for node in body.node) == ["Cast", "Cast", "Neg"]
    assert all(node.attribute[0].i == TensorProto.FLOAT16 for body in bodies for node in body.node if node.op_type == "Cast")


def test_weights_stay_apart_and_take_more_zeros() -> None:
    given = model("g (float16[2, 512] x) => (float16[2, 512] y) { y = MatMul(x, w) }", w=np.ones((512, 512)))
    message, zeros = with_stand_ins(given)
    assert zeros == 2 * 512 * 512
    wide, more = in_single(message, zeros, inferred(given), TensorProto.FLOAT16)
    weight = onnx.ModelProto.FromString(wide).graph.initializer[0]
    entries = {entry.key: entry.value for entry in weight.external_data}
    assert more == 4 * 512 * 512 and weight.data_type == TensorProto.FLOAT
    assert entries == {"location": ZEROS, "offset": "0", "length": str(more)}
    assert [tensor.data_type for tensor in of_device(given).graph.initializer] == [TensorProto.FLOAT16]


def test_external_data_become_zeros_but_for_integers(tmp_path: Path) -> None:
    given = model("g (float16[2, 512] x) => (float16[2, 512] y) { a = MatMul(x, w)  y = Add(a, b) }", w=np.ones((512, 512)), b=np.ones(512))
    onnx.save(given, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=100)
    apart = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    assert with_stand_ins(apart)[1] == 0 and not needs_its_files(apart)
    assert [node.op_type for node in of_device(apart).graph.node] == [node.op_type for node in of_device(given).graph.node]
    numbers = numpy_helper.from_array(np.arange(64), "n")
    set_external_data(numbers, "w.bin")
    apart.graph.initializer.append(numbers)
    assert needs_its_files(apart)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g (float[4] x) => (float[4] y) { y = Neg(x) }", False),
        ("g (float16[4] x) => (float16[4] y) { y = Neg(x) }", True),
        ("g (float[4] x) => (float[4] y) { h = Cast<to = 10>(x) y = Cast<to = 1>(h) }", True),
        ("g (float[4] x) => (float[4] y) <float16 c = {1}> { k = Cast<to = 1>(c) y = Mul(x, k) }", True),
        (
            "g (bool b, float[4] x) => (float[4] y) { y = If(b) <"
            "then_branch = f () => (float[4] u) { h = Cast<to = 10>(x) u = Cast<to = 1>(h) }, else_branch = s () => (float[4] v) { v = Neg(x) }> }",
            True,
        ),
    ],
)
def test_a_model_has_halves_wherever_they_are(text: str, expected: bool) -> None:
    given = model(text)
    assert has_halves(given) is expected
    assert half_of(inferred(given)) == (TensorProto.FLOAT16 if expected else 0)


def test_of_both_kinds_there_is_no_model_in_float32() -> None:
    given = model("g (float16[4] x) => (float[4] y) { b = Cast<to = 16>(x) y = Cast<to = 1>(b) }")
    assert has_halves(given) and half_of(inferred(given)) == 0

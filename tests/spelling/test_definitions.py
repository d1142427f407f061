"""Operators that an opset lacks are written as their definition, which ONNX Runtime runs as one kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import eqsat
from eqsat.facts.fact import Fact
from eqsat.model.single_precision import half_of, in_single
from eqsat.operators import find_operator, to_attributes
from eqsat.runtime.onnx_passes import inferred
from eqsat.runtime.own_graph import own_graph
from eqsat.runtime.worker import shared
from eqsat.spelling.definitions import DEFINED, define
from eqsat.spelling.opsets import write
from eqsat.terms.forms import Literal
from eqsat.traits import NEWEST
from tests.support.models import operators, parse, run, run_reference

SHAPE = (3, 4, 8)


@dataclass(frozen=True)
class Case:
    """An operator with a definition: its number of inputs, the kernel, and the opset that has it."""

    operator: str
    inputs: int
    kernel: str
    since: int
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    dtype: int = TensorProto.FLOAT
    first: int = 9  # the opset from which on its nodes take the data type

    @property
    def kind(self) -> np.dtype[Any]:
        return helper.tensor_dtype_to_np_dtype(self.dtype)


KNOWN = {
    "Gelu": Case("Gelu", 1, "Gelu", 20),
    "Gelu by tanh": Case("Gelu", 1, "FastGelu", 20, {"approximate": b"tanh"}),
    "LayerNormalization": Case("LayerNormalization", 3, "LayerNormalization", 17, {"axis": -1, "epsilon": 0.25}),
    "RMSNormalization": Case("RMSNormalization", 2, "SimplifiedLayerNormalization", 23, {"axis": 2, "epsilon": 0.5}),
    "RMSNormalization of halves": Case("RMSNormalization", 2, "SimplifiedLayerNormalization", 23, {"axis": 2, "epsilon": 0.5}, TensorProto.FLOAT16),
    "RMSNormalization of bfloat16": Case("RMSNormalization", 2, "SimplifiedLayerNormalization", 23, {"axis": -1}, TensorProto.BFLOAT16, 13),
}


def shapes(name: str) -> list[tuple[int, ...]]:
    return [SHAPE, *[SHAPE[-1:]] * (KNOWN[name].inputs - 1)]


def facts(name: str) -> list[Fact]:
    return [Fact(dtype=KNOWN[name].dtype, shape=shape) for shape in shapes(name)]


def defined(name: str, opset: int) -> onnx.ModelProto:
    """Returns the model of a definition, with the operator's inputs as its own."""
    found = define(find_operator("", KNOWN[name].operator, NEWEST), KNOWN[name].attributes, facts(name), 1, opset)
    assert found is not None
    names = [f"x{place}" for place in range(KNOWN[name].inputs)]
    given = [helper.make_tensor_value_info(x, KNOWN[name].dtype, shape) for x, shape in zip(names, shapes(name), strict=True)]
    stored: list[onnx.TensorProto] = []
    made: list[onnx.NodeProto] = []
    for node in found.nodes:
        inputs: list[str] = []
        for source in node.inputs:
            if isinstance(source, Literal):
                stored.append(onnx.numpy_helper.from_array(source.array, f"c{len(stored)}"))
                inputs.append(stored[-1].name)
            else:
                assert source is not None
                inputs.append(names[source])
        names.append(f"v{len(names)}")
        made.append(helper.make_node(node.operator.name, inputs, names[-1:]))
        made[-1].attribute.extend(to_attributes(node.operator, node.attributes))
    result = [helper.make_tensor_value_info(names[-1], KNOWN[name].dtype, SHAPE)]
    return helper.make_model(helper.make_graph(made, "g", given, result, stored), opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def followed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a model with Exp before its output. ONNX Runtime makes no FastGelu of a graph's output."""
    found = onnx.ModelProto.FromString(model.SerializeToString())
    name = found.graph.output[0].name
    found.graph.node[-1].output[0] = "before"
    found.graph.node.append(helper.make_node("Exp", ["before"], [name]))
    return found


def kernels(model: onnx.ModelProto) -> list[str]:
    message, half = model.SerializeToString(), half_of(model)
    if half:
        message, _ = in_single(message, 0, inferred(model), half)
    graph = onnx.ModelProto.FromString(own_graph(message, 0, None, None, {}, 64, shared()))
    return [node.op_type for node in graph.graph.node]


def by_function(node: onnx.NodeProto, model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    """Returns the result of a node by the function with which ONNX defines it. The reference of onnx
    has a kernel of its own, which rounds elsewhere.
    """
    schema: Any = onnx.defs.get_schema(node.op_type, NEWEST)
    types = [value.type.SerializeToString() for value in model.graph.input]
    function = onnx.FunctionProto.FromString(schema.get_context_dependent_function(node.SerializeToString(), types))
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    values = [feeds[value.name] for value in model.graph.input]
    evaluator: Any = ReferenceEvaluator(function)
    return evaluator.run(None, dict(zip(function.input, values, strict=True)), attributes=attributes)[0]


CASES = [(name, opset) for name, case in KNOWN.items() for opset in range(case.first, case.since)]


@pytest.mark.parametrize(("name", "opset"), CASES)
def test_a_definition_computes_its_operator(name: str, opset: int) -> None:
    model = defined(name, opset)
    onnx.checker.check_model(model, full_check=True)
    plain = helper.make_node(KNOWN[name].operator, [value.name for value in model.graph.input], ["y"], **KNOWN[name].attributes)
    whole = helper.make_model(
        helper.make_graph([plain], "g", model.graph.input, [helper.make_tensor_value_info("y", KNOWN[name].dtype, SHAPE)]),
        opset_imports=[helper.make_opsetid("", NEWEST)],
    )
    generator = np.random.default_rng(opset)
    feeds = {f"x{place}": generator.standard_normal(shape).astype(KNOWN[name].kind) for place, shape in enumerate(shapes(name))}
    actual = run_reference(model, feeds)
    if KNOWN[name].dtype == TensorProto.FLOAT:
        np.testing.assert_allclose(actual[0], run_reference(whole, feeds)[0], rtol=2e-6, atol=2e-6)
    else:
        np.testing.assert_array_equal(actual[0], by_function(plain, whole, feeds))  # both round in the same places


@pytest.mark.parametrize(("name", "opset"), CASES)
def test_onnx_runtime_runs_a_definition_as_one_kernel(name: str, opset: int) -> None:
    """The parameters are constants, as those of layers are."""
    model = defined(name, opset)
    for value in list(model.graph.input)[1:]:
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(SHAPE[-1:], KNOWN[name].kind), value.name))
    del model.graph.input[1:]
    assert kernels(followed(model)) == [KNOWN[name].kernel, "Exp"]


def test_every_operator_with_a_definition_is_new_somewhere() -> None:
    assert {case.operator for case in KNOWN.values()} == set(DEFINED)
    for name, case in KNOWN.items():
        node = (find_operator("", case.operator, NEWEST), case.attributes, facts(name), 1)
        assert write(*node, case.since) is not None and write(*node, case.since - 1) is None


def test_no_definition_is_given_where_none_is_known_to_be_recognized() -> None:
    gelu, norm = (find_operator("", name, NEWEST) for name in ("Gelu", "LayerNormalization"))
    double = Fact(dtype=TensorProto.DOUBLE, shape=SHAPE)
    x, scale, bias = facts("LayerNormalization")
    assert define(gelu, {}, [double], 1, 17) is None
    assert define(norm, {"axis": -2}, [x, scale, bias], 1, 11) is None
    assert define(norm, {"axis": -1}, [x, scale], 1, 11) is None
    assert define(norm, {"axis": -1}, [x, scale, bias], 3, 11) is None
    assert define(norm, {"axis": -1}, [x, Fact(dtype=TensorProto.FLOAT, shape=(1,)), bias], 1, 11) is None
    assert define(norm, {"axis": -1, "stash_type": TensorProto.DOUBLE}, [x, scale, bias], 1, 11) is None
    assert define(find_operator("", "Relu", NEWEST), {}, [x], 1, 5) is None


HEAD = "g (float[2, 4, 8] x) => (float[2, 4, 8] y)"
# Spellings that ONNX Runtime does not fuse.
SPELLINGS = {
    "Gelu": (
        HEAD + " <float r = {0.70710678}, float one = {1}, float half = {0.5}> { a = Mul (x, r) b = Erf (a) c = Add (one, b) d = Mul (x, c) y = Mul (half, d) }"
    ),
    "FastGelu": (
        HEAD + " <float r = {0.7978845608}, float c = {0.044715}, float one = {1}, float half = {0.5}>"
        " { a = Mul (x, x) b = Mul (a, c) d = Add (one, b) e = Mul (x, r) f = Mul (e, d) t = Tanh (f) h = Add (t, one) i = Mul (x, h) y = Mul (i, half) }"
    ),
    "SimplifiedLayerNormalization": (
        HEAD + " <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}, float e = {0.00001}>"
        " { p = Mul (x, x) m = ReduceMean <axes = [-1]> (p) a = Add (m, e) b = Sqrt (a) d = Reciprocal (b) f = Mul (x, d) y = Mul (f, w) }"
    ),
    "LayerNormalization": (
        HEAD + " <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[8] z = {8, 7, 6, 5, 4, 3, 2, 1}, float e = {0.00001}>"
        " { m = ReduceMean <axes = [-1]> (x) s = Sub (x, m) p = Mul (s, s) v = ReduceMean <axes = [-1]> (p) a = Add (v, e) b = Sqrt (a)"
        " d = Reciprocal (b) f = Mul (s, d) g = Mul (f, w) y = Add (g, z) }"
    ),
}


@pytest.mark.parametrize("opset", [11, 13, 16])
@pytest.mark.parametrize("kernel", SPELLINGS)
def test_other_spellings_become_the_one_that_is_one_kernel(kernel: str, opset: int) -> None:
    model = followed(parse(SPELLINGS[kernel], f'<ir_version: 8, opset_import: ["" : {opset}]>'))
    result = eqsat.optimize(model)
    assert result.report["verify"]["status"] == "equal"
    assert result.report["cost"]["after"]["launches"] == 2
    assert kernels(result.model) == [kernel, "Exp"]
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 4, 8)).astype(np.float32)}
    np.testing.assert_allclose(run(result.model, feeds)[0], run(model, feeds)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", SPELLINGS)
def test_a_target_that_assembles_nothing_gets_no_definition(kernel: str) -> None:
    model = parse(SPELLINGS[kernel], '<ir_version: 8, opset_import: ["" : 13]>')
    found = eqsat.optimize(model, target="launches").model
    assert operators(found).total() <= len(model.graph.node)
    assert "Pow" not in operators(found)

"""Types of the results of ONNX Runtime's own operators are those that the runtime's results have."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from eqsat.facts.fact import Fact
from eqsat.facts.inference import infer
from eqsat.facts.runtime_types import TYPES
from eqsat.operators import find_operator, read_attributes

Inputs = list[Any]

_RANDOM = np.random.default_rng(0)
_SCALE, _ZERO = np.float32(0.1), np.uint8(3)


def _floats(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def _bytes(*shape: int) -> np.ndarray:
    return _RANDOM.integers(0, 100, shape, np.uint8)


def _one(name: str, *shape: int, **attributes: Any) -> tuple[str, Inputs, dict[str, Any]]:
    return name, [_bytes(*shape), _SCALE, _ZERO, _SCALE, _ZERO], attributes


def _two(name: str, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[str, Inputs, dict[str, Any]]:
    return name, [_bytes(*left), _SCALE, _ZERO, _bytes(*right), _SCALE, _ZERO, _SCALE, _ZERO], {}


_GEMM: Inputs = [_bytes(5, 3), _SCALE, _ZERO, _bytes(4, 3), _SCALE, _ZERO, None]
_WINDOW = {"kernel_shape": [2, 2], "strides": [2, 2]}
_NORM: Inputs = [_floats(2, 3, 8), _floats(2, 3, 8), _floats(8), _floats(8)]
_INDICES = np.zeros((2, 3), np.int32)
_PACKED: Inputs = [_floats(2, 3, 48), None, None, _floats(2, 2, 5, 8), _floats(2, 2, 5, 8), np.full((2, 1), 2, np.int32), np.array(3, np.int32)]

CASES: list[tuple[str, Inputs, dict[str, Any]]] = [
    ("BiasGelu", [_floats(2, 3, 4), _floats(4)], {}),
    ("FastGelu", [_floats(2, 3, 4), _floats(4)], {}),
    ("Gelu", [_floats(2, 3)], {}),
    ("QuickGelu", [_floats(2, 3)], {"alpha": 1.0}),
    ("Inverse", [_floats(2, 3, 3)], {}),
    ("Trilu", [_floats(2, 3, 4)], {"upper": 0}),
    ("SimplifiedLayerNormalization", [_floats(2, 3, 8), _floats(8)], {}),
    ("SkipLayerNormalization", _NORM, {}),
    ("SkipSimplifiedLayerNormalization", _NORM[:3], {}),
    ("RotaryEmbedding", [_floats(2, 3, 8), np.zeros((1,), np.int64), _floats(6, 2), _floats(6, 2)], {"num_heads": 2}),
    _one("QLinearSigmoid", 2, 3),
    _one("QLinearLeakyRelu", 2, 3),
    _one("QLinearSoftmax", 2, 3, axis=1, opset=13),
    _one("QLinearAveragePool", 1, 2, 7, 5, **_WINDOW),
    _one("QLinearAveragePool", 1, 2, 7, 5, ceil_mode=1, **_WINDOW),
    _one("QLinearAveragePool", 1, 7, 5, 2, channels_last=1, **_WINDOW),
    _one("QLinearGlobalAveragePool", 1, 2, 7, 5),
    _one("QLinearGlobalAveragePool", 1, 7, 5, 2, channels_last=1),
    _two("QLinearAdd", (2, 1, 4), (3, 1)),
    _two("QLinearMul", (4,), (2, 4)),
    ("QLinearWhere", [np.ones((3, 1), np.bool_), _bytes(4), _SCALE, _ZERO, _bytes(2, 3, 4), _SCALE, _ZERO, _SCALE, _ZERO], {}),
    ("QLinearConcat", [_SCALE, _ZERO, _bytes(2, 3), _SCALE, _ZERO, _bytes(2, 5), _SCALE, _ZERO], {"axis": 1}),
    ("QLinearConv", [_bytes(1, 2, 7, 5), _SCALE, _ZERO, _bytes(4, 2, 3, 3), _SCALE, _ZERO, _SCALE, _ZERO], {"pads": [1, 0, 0, 1]}),
    ("QLinearConv", [_bytes(1, 7, 5, 2), _SCALE, _ZERO, _bytes(4, 2, 3, 3), _SCALE, _ZERO, _SCALE, _ZERO], {"channels_last": 1}),
    ("QGemm", [*_GEMM, _SCALE, _ZERO], {"transB": 1}),
    ("QGemm", _GEMM, {"transB": 1}),
    ("QuantizeLinear", [_floats(2, 3), _SCALE, np.uint16(7)], {}),
    ("DequantizeLinear", [_bytes(2, 3).astype(np.uint16), _SCALE, np.uint16(7)], {}),
    ("FusedConv", [_floats(1, 2, 7, 5), _floats(4, 2, 3, 3)], {"activation": "Relu", "strides": [2, 1]}),
    ("FusedGemm", [_floats(3, 5), _floats(3, 4), _floats(4)], {"activation": "Relu", "transA": 1}),
    ("FusedMatMul", [_floats(2, 4, 5), _floats(2, 3, 5)], {"transB": 1}),
    ("TransposeMatMul", [_floats(2, 5, 4), _floats(5, 3)], {"transA": 1}),
    ("MatMulNBits", [_floats(2, 3, 32), _bytes(8, 1, 16), _floats(8)], {"K": 32, "N": 8, "bits": 4, "block_size": 32}),
    ("MatMulBnb4", [_floats(2, 3, 16), _bytes(64), _floats(8)], {"K": 16, "N": 8, "block_size": 16, "quant_type": 1}),
    ("EmbedLayerNormalization", [_INDICES, None, _floats(9, 8), _floats(6, 8), None, _floats(8), _floats(8)], {}),
    ("Attention", [_floats(2, 3, 8), _floats(8, 24), _floats(24)], {"num_heads": 2}),
    ("Attention", [_floats(2, 3, 8), _floats(8, 20), _floats(20)], {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]}),
    ("QAttention", [_bytes(2, 3, 8), _bytes(8, 24), _floats(24), _SCALE, _SCALE, None, _ZERO, _ZERO], {"num_heads": 2}),
    ("GroupQueryAttention", [_floats(2, 3, 32), _floats(2, 3, 16), _floats(2, 3, 16), *_PACKED[3:]], {"num_heads": 4, "kv_num_heads": 2}),
    ("GroupQueryAttention", _PACKED, {"num_heads": 2, "kv_num_heads": 2}),
]
# The runtime has no kernel of these for processors.
WITHOUT_KERNEL = {"BiasAdd", "BiasSoftmax", "GemmFastGelu", "QLinearReduceMean"}


def _result(operator: str, domain: str, inputs: Inputs, attributes: dict[str, Any]) -> np.ndarray:
    names = [f"i{place}" if array is not None else "" for place, array in enumerate(inputs)]
    stored = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in zip(names, inputs, strict=True) if array is not None]
    rest = ["mask"] if operator == "EmbedLayerNormalization" else []
    node = helper.make_node(operator, names, ["y", *rest], domain=domain, **attributes)
    graph = helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name="y")], stored)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    (found,) = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {})
    return np.asarray(found)


@pytest.mark.parametrize(("name", "inputs", "attributes"), CASES, ids=[f"{name}{place}" for place, (name, *_) in enumerate(CASES)])
def test_the_type_is_that_of_the_runtimes_result(name: str, inputs: Inputs, attributes: dict[str, Any]) -> None:
    domain = "" if f"com.microsoft.{name}" not in TYPES else "com.microsoft"
    result = _result(name, domain, inputs, attributes)
    operator = find_operator(domain, name, 1)
    given = read_attributes(operator, helper.make_node(name, [], [], domain=domain, **attributes).attribute)

    def known(sized: bool) -> Fact:
        facts = [None if array is None else Fact(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape if sized else None) for array in inputs]
        return infer(operator, given, tuple(facts), 1)[0]

    found = known(sized=True)
    assert known(sized=False).dtype == found.dtype == helper.np_dtype_to_tensor_dtype(result.dtype)
    last = attributes.get("channels_last") or attributes.get("ceil_mode")
    packed = name == "GroupQueryAttention" and inputs[1] is None
    if last:
        assert found.shape is None or all(size in (None, real) for size, real in zip(found.shape, result.shape, strict=True))
    else:
        assert found.shape == ((*result.shape[:-1], None) if packed else result.shape)


def test_every_operator_of_the_table_has_a_case() -> None:
    assert {name.removeprefix("com.microsoft.") for name in TYPES} == {name for name, *_ in CASES} | WITHOUT_KERNEL


def test_an_operator_of_unknown_inputs_has_an_unknown_type() -> None:
    for name in TYPES:
        domain, _, short = name.rpartition(".")
        for given in ((), (Fact(),) * 9, (Fact(TensorProto.FLOAT),) * 9):
            (found,) = infer(find_operator(domain, short, 1), {}, given, 1)
            assert found.shape is None or None in found.shape

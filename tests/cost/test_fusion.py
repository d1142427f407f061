"""The shipped target's fusions have ONNX Runtime's own conditions: the runtime is asked for each case."""

from __future__ import annotations

from typing import Final

import onnx
import pytest

from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.cost.target import load_target
from eqsat.runtime.own_graph import own_graph
from eqsat.runtime.worker import shared
from tests.support.models import parse

CPU: Final = load_target("onnxruntime-cpu")
Shape = tuple[int, ...]


def text(shape: Shape) -> str:
    return f"float[{','.join(map(str, shape))}]"


def fused_by_the_runtime(model: onnx.ModelProto, operator: str) -> bool:
    graph = onnx.ModelProto.FromString(own_graph(model.SerializeToString(), 0, None, None, {}, 64, shared())).graph
    return operator in {node.op_type for node in graph.node}


def holds(becomes: str, first: PricedNode, other: Shaped) -> bool:
    return any(fusion.becomes == becomes and first.key in fusion.first and fusion.holds(first, [other]) for fusion in CPU.fusions)


def tensor(shape: Shape, constant: bool = False) -> Shaped:
    return Shaped(onnx.TensorProto.FLOAT, shape, constant)


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(
    ("x", "w", "bias"),
    [
        ((8, 16), (16, 4), (4,)),
        ((8, 16), (16, 4), (1, 4)),
        ((8, 16), (16, 4), (8, 4)),
        ((8, 16), (16, 4), (8, 1)),
        ((8, 16), (16, 4), (1,)),
        ((8, 16), (16, 4), ()),
        ((8, 16), (16, 4), (1, 1, 4)),
        ((2, 8, 16), (16, 4), (4,)),
        ((2, 8, 16), (16, 4), (1, 4)),
        ((2, 8, 16), (16, 4), (8, 4)),
        ((2, 8, 16), (16, 4), (2, 8, 4)),
        ((2, 2, 8, 16), (16, 4), (4,)),
        ((2, 8, 16), (2, 16, 4), (4,)),
    ],
)
def test_a_product_and_its_bias(x: Shape, w: Shape, bias: Shape, computed: bool) -> None:
    c = "Tanh" if computed else "Identity"
    model = parse(f"g ({text(x)} x, {text(w)} w, {text(bias)} b) => (y) {{ r = Relu (x)  c = {c} (b)  m = MatMul (r, w)  s = Add (m, c)  y = Tanh (s) }}")
    first = PricedNode("", "MatMul", {}, [tensor(x), tensor(w)], [tensor((*x[:-1], w[-1]))])
    gemm = fused_by_the_runtime(model, "Gemm") or fused_by_the_runtime(model, "FusedGemm")
    assert holds("Gemm", first, tensor(bias)) == gemm


@pytest.mark.parametrize(
    ("x", "skip"),
    [((8, 16), (8, 16)), ((2, 8, 16), (2, 8, 16)), ((2, 2, 8, 16), (2, 2, 8, 16)), ((2, 8, 16), (8, 16)), ((2, 8, 16), (2, 1, 16)), ((2, 8, 16), (16,))],
)
def test_a_residual_before_its_norm(x: Shape, skip: Shape) -> None:
    model = parse(
        f"g ({text(x)} x, {text(skip)} skip) => (y) <float[16] scale = {{{','.join(['1'] * 16)}}}> "
        "{ r = Relu (x)  s = Add (r, skip)  n = LayerNormalization (s, scale, scale)  y = Tanh (n) }"
    )
    first = PricedNode("", "Add", {}, [tensor(x), tensor(skip)], [tensor(x)])
    name = "com.microsoft.SkipLayerNormalization"
    assert holds(name, first, tensor((16,), True)) == fused_by_the_runtime(model, "SkipLayerNormalization")


INSIDE: Final = {
    "Conv": ("float[1,2,4,4]", "Conv (a, w)", "[3,2,1,1]"),
    "MatMul": ("float[2,4,4]", "MatMul (a, w)", "[4,3]"),
    "Gemm": ("float[4,4]", "Gemm (a, w)", "[4,3]"),
    "Add": ("float[2,4]", "Add (a, w)", "[4]"),
    "Mul": ("float[2,4]", "Mul (a, w)", "[4]"),
    "Sub": ("float[2,4]", "Sub (a, w)", "[4]"),
    "Concat": ("float[2,4]", "Concat <axis = 0> (a, w)", "[2,4]"),
    "AveragePool": ("float[1,2,4,4]", "AveragePool <kernel_shape = [2, 2]> (a)", ""),
    "GlobalAveragePool": ("float[1,2,4,4]", "GlobalAveragePool (a)", ""),
    "LeakyRelu": ("float[2,4]", "LeakyRelu (a)", ""),
    "Sigmoid": ("float[2,4]", "Sigmoid (a)", ""),
    "Softmax": ("float[2,4]", "Softmax (a)", ""),
    "Tanh": ("float[2,4]", "Tanh (a)", ""),
}


@pytest.mark.parametrize("operator", INSIDE)
@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize(("first", "second"), [("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8"), ("int8", "uint8")])
def test_operators_between_quantized_tensors(operator: str, after: bool, first: str, second: str) -> None:
    """Two nodes read what is quantized, so the runtime does not remove a sign by itself."""
    shape, node, weights = INSIDE[operator]
    if not weights and first != second:
        pytest.skip("there is one input")
    constants = f"<float s = {{0.05}}, {first} z = {{3}}, {second} v = {{3}}>"
    given = f"{shape} x" + (f", {second}{weights} c" if weights else "")
    around = "q = QuantizeLinear (x, s, z)  a = DequantizeLinear (q, s, z)  m = Neg (a)" + ("  w = DequantizeLinear (c, s, v)" if weights else "")
    result = "r = QuantizeLinear (b, s, z)  d = DequantizeLinear (r, s, z)  y = Neg (d)  t = Abs (d)" if after else "y = Neg (b)  t = Abs (b)"
    model = parse(f"g ({given}) => (y, m, t) {constants} {{ {around}  b = {node}  {result} }}")
    dtypes = [onnx.TensorProto.DataType.Value(name.upper()) for name in ((first, second) if weights else (first,))]
    kernels = [kernel.kernel(dtypes, dtypes[0] if after else None) for kernel in CPU.quantized if operator in kernel.operators]
    assert any(kernels) != fused_by_the_runtime(model, operator)

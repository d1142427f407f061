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

"""Transformers of any number of equal layers, as an exporter writes them.

Normalizations and activations are decomposed, and shapes are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Exporter:
    def __init__(self, width: int, heads: int) -> None:
        self.width, self.heads = width, heads
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, TensorProto] = {}
        self.random = np.random.default_rng(0)

    def node(self, kind: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"{kind}_{name}", **attributes))
        return name

    def weight(self, name: str, *sizes: int) -> str:
        self.constants[name] = numpy_helper.from_array((self.random.standard_normal(sizes) / np.sqrt(sizes[0])).astype(np.float32), name)
        return name

    def number(self, value: float) -> str:
        name = f"number_{value}"
        self.constants[name] = numpy_helper.from_array(np.array(value, np.float32), name)
        return name

    def integers(self, *values: int) -> str:
        name = f"integers_{'_'.join(map(str, values))}"
        self.constants[name] = numpy_helper.from_array(np.array(values, np.int64), name)
        return name

    def linear(self, x: str, name: str, rows: int, columns: int) -> str:
        product = self.node("MatMul", [x, self.weight(f"{name}.weight", rows, columns)], f"{name}.product")
        return self.node("Add", [self.weight(f"{name}.bias", columns), product], f"{name}.out")

    def norm(self, x: str, name: str) -> str:
        mean = self.node("ReduceMean", [x], f"{name}.mean", axes=[-1])
        centred = self.node("Sub", [x, mean], f"{name}.centred")
        square = self.node("Pow", [centred, self.number(2)], f"{name}.square")
        variance = self.node("ReduceMean", [square], f"{name}.variance", axes=[-1])
        deviation = self.node("Sqrt", [self.node("Add", [variance, self.number(1e-5)], f"{name}.safe")], f"{name}.deviation")
        scaled = self.node("Mul", [self.node("Div", [centred, deviation], f"{name}.unit"), self.weight(f"{name}.weight", self.width)], f"{name}.scaled")
        return self.node("Add", [scaled, self.weight(f"{name}.bias", self.width)], f"{name}.out")

    def split(self, x: str, name: str, perm: list[int]) -> str:
        """Adds the heads of a projection.

        Their sizes are read from the tensor, as in a traced `view`.
        """
        sizes = [
            self.node(
                "Unsqueeze",
                [self.node("Gather", [self.node("Shape", [x], f"{name}.shape{i}"), self.scalar(i)], f"{name}.size{i}"), self.integers(0)],
                f"{name}.{i}",
            )
            for i in range(2)
        ]
        shape = self.node("Concat", [*sizes, self.integers(self.heads), self.integers(self.width // self.heads)], f"{name}.view", axis=0)
        return self.node("Transpose", [self.node("Reshape", [x, shape], f"{name}.split")], f"{name}.heads", perm=perm)

    def scalar(self, value: int) -> str:
        name = f"index_{value}"
        self.constants[name] = numpy_helper.from_array(np.array(value, np.int64), name)
        return name

    def attention(self, x: str, name: str) -> str:
        q = self.split(self.linear(x, f"{name}.q", self.width, self.width), f"{name}.q", [0, 2, 1, 3])
        k = self.split(self.linear(x, f"{name}.k", self.width, self.width), f"{name}.k", [0, 2, 3, 1])
        v = self.split(self.linear(x, f"{name}.v", self.width, self.width), f"{name}.v", [0, 2, 1, 3])
        scores = self.node("Div", [self.node("MatMul", [q, k], f"{name}.product"), self.number(float(np.sqrt(self.width // self.heads)))], f"{name}.scores")
        mixed = self.node("MatMul", [self.node("Softmax", [scores], f"{name}.weights", axis=-1), v], f"{name}.mixed")
        rows = self.node("Transpose", [mixed], f"{name}.rows", perm=[0, 2, 1, 3])
        joined = self.node("Reshape", [rows, self.integers(0, 0, self.width)], f"{name}.joined")
        return self.linear(joined, f"{name}.o", self.width, self.width)

    def gelu(self, x: str, name: str) -> str:
        error = self.node("Erf", [self.node("Div", [x, self.number(float(np.sqrt(2)))], f"{name}.ratio")], f"{name}.erf")
        product = self.node("Mul", [x, self.node("Add", [error, self.number(1)], f"{name}.shifted")], f"{name}.product")
        return self.node("Mul", [product, self.number(0.5)], f"{name}.gelu")

    def layer(self, x: str, name: str) -> str:
        x = self.norm(self.node("Add", [x, self.attention(x, f"{name}.attention")], f"{name}.first"), f"{name}.norm1")
        hidden = self.gelu(self.linear(x, f"{name}.up", self.width, 4 * self.width), f"{name}.activation")
        return self.norm(self.node("Add", [x, self.linear(hidden, f"{name}.down", 4 * self.width, self.width)], f"{name}.second"), f"{name}.norm2")


def transformer(layers: int, width: int = 8, heads: int = 2) -> onnx.ModelProto:
    """Returns an encoder over a dynamic batch of sequences of any length.

    A layer has 70 nodes, and no two layers share a weight.
    """
    exporter = _Exporter(width, heads)
    value = "x"
    for layer in range(layers):
        value = exporter.layer(value, f"layer{layer}")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", "S", width]) for name in ("x", value)]
    graph = helper.make_graph(exporter.nodes, "transformer", ends[:1], ends[1:], list(exporter.constants.values()))
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])

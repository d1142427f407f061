"""The prices of the nodes of a graph: each is that of its own operator, attributes and types."""

from __future__ import annotations

import onnx

from eqsat.cost.graph_price import node_prices
from eqsat.cost.price import price
from eqsat.cost.shaped import Shaped, assumed_size
from eqsat.cost.target import load_target
from tests.support.models import parse

CPU = load_target("onnxruntime-cpu")
F = onnx.TensorProto.FLOAT


def test_nodes_that_are_alike_in_part_have_prices_of_their_own() -> None:
    model = parse("""g (float[64, 64] x, float[32, 64] s, float[64, 64] v) => (float[64, 64] y) <float[64, 64] w> {
        a = MatMul (x, v)
        b = MatMul (x, w)
        c = MatMul (s, v)
        d = Gelu (x)
        e = Gelu <approximate = "tanh"> (x)
        f = com.acme.Gelu (x)
        k, i = TopK (x, n)
        l, j = TopK (s, n)
        y = MatMul (x, v)
    }""")
    shapes = {"a": (64, 64), "b": (64, 64), "c": (32, 64), "d": (64, 64), "e": (64, 64), "f": (64, 64), "k": (64, 2), "l": (32, 2)}
    model.graph.value_info.extend(onnx.helper.make_tensor_value_info(name, F, shape) for name, shape in shapes.items())
    rows = {row.name: row for row in node_prices(model, CPU, {}, constants=("w",))}
    assert all(row.price == price(row.node, CPU) for row in rows.values())
    assert rows["a"].price == rows["y"].price
    assert [[one and one.constant for one in rows[name].node.inputs] for name in "abc"] == [[False, False], [False, True], [False, False]]
    assert rows["c"].node.inputs[0] == Shaped(F, (32, 64)) and rows["c"].node.outputs == (Shaped(F, (32, 64)),)
    assert [rows[name].node.key for name in "def"] == ["Gelu", "com.microsoft.FastGelu", "com.acme.Gelu"]
    assert [rows[name].node.outputs[0] for name in "kl"] == [Shaped(F, (64, 2)), Shaped(F, (32, 2))]
    assert [rows[name].outputs for name in "kl"] == [("k", "i"), ("l", "j")]


def test_a_batch_counts_as_one() -> None:
    names = ["batch", "batch_size", "input_batch", "Batch", "N", "bs", "sequence", "n_batches", "M"]
    assert [assumed_size(name, {}) for name in names] == [1] * 6 + [64] * 3
    assert assumed_size("batch", {"batch": 8}) == 8

"""Weights stand for others of their types where the runtime is asked for its graph."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from eqsat.model.stand_ins import prepared_bytes, with_stand_ins
from eqsat.runtime.own_graph import own_graph
from eqsat.runtime.worker import shared
from tests.support.models import weighted

RANDOM = np.random.default_rng(0)


def network(dtype: type = np.float32) -> onnx.ModelProto:
    """Returns a model with layers that the runtime folds, fuses and lays out anew."""
    channels = {name: (RANDOM.standard_normal(64) ** 2 + 0.5).astype(np.float32) for name in ("s", "b", "m", "v")}
    return weighted(
        """
        g (float[N, 64, 8, 8] x, int64[N] i) => (float[N, 64, 8, 8] y)
        {
            c = Conv <pads = [1, 1, 1, 1]> (x, w)
            n = BatchNormalization (c, s, b, m, v)
            r = Relu (n)
            t = Gather (table, i)
            f = Cast <to = 1> (t)
            y = Add (r, f)
        }
        """,
        w=RANDOM.standard_normal((64, 64, 3, 3)).astype(np.float32),
        table=RANDOM.integers(1, 5, (300, 64, 8, 8)).astype(dtype),
        **channels,
    )


def test_the_graph_of_the_runtime_is_the_same() -> None:
    model = network()
    message, size = with_stand_ins(model)
    assert size == 300 * 64 * 64 * 4 and len(message) < 10_000
    asked = own_graph(message, size, None, None, {}, 64, shared())
    plain = own_graph(model.SerializeToString(), 0, None, None, {}, 64, shared())
    one, other = onnx.ModelProto.FromString(asked).graph, onnx.ModelProto.FromString(plain).graph
    assert [node.SerializeToString() for node in one.node] == [node.SerializeToString() for node in other.node]
    assert [info.SerializeToString() for info in one.value_info] == [info.SerializeToString() for info in other.value_info]
    assert sorted((tensor.name, *tensor.dims) for tensor in one.initializer) == sorted((tensor.name, *tensor.dims) for tensor in other.initializer)


def test_integers_and_small_weights_keep_their_elements() -> None:
    message, size = with_stand_ins(network(np.int64))
    assert size == 64 * 64 * 9 * 4
    kept = {tensor.name for tensor in onnx.ModelProto.FromString(message).graph.initializer if tensor.data_location != TensorProto.EXTERNAL}
    assert kept == {"table", "s", "b", "m", "v"}


def outside(dtype: type) -> onnx.ModelProto:
    """Returns the network with its table in a file that is not there."""
    model = network(dtype)
    table = next(tensor for tensor in model.graph.initializer if tensor.name == "table")
    table.ClearField("raw_data")
    table.data_location = TensorProto.EXTERNAL
    table.external_data.add(key="location", value="elsewhere")
    return model


def test_external_weights_have_stand_ins_as_well() -> None:
    message, size = with_stand_ins(outside(np.float32))
    assert size == 300 * 64 * 64 * 4 and b"elsewhere" not in message
    assert own_graph(message, size, None, None, {}, 64, shared())


def test_a_model_with_other_external_data_stays_as_it_is() -> None:
    model = outside(np.int64)
    assert with_stand_ins(model) == (model.SerializeToString(), 0)


def test_filters_are_copied_and_matrices_are_not() -> None:
    """BERT-base has 440 MB of matrices, of which the runtime copies none, so prices know the graph that it makes."""
    matrix, filters = np.ones((256, 256), np.float32), np.ones((64, 64, 3, 3), np.float32)
    product = weighted("g (float[N, 256] x) => (float[N, 256] y) { y = MatMul (x, w) }", w=matrix)
    turned = weighted("g (float[N, 256] x) => (float[N, 256] y) { t = Transpose (w) y = MatMul (x, t) }", w=matrix)
    conv = weighted("g (float[N, 64, 8, 8] x) => (float[N, 64, 6, 6] y) { y = Conv (x, w) }", w=filters)
    inside = weighted(
        """g (float[N, 256] x, bool c) => (float[N, 256] y) {
            y = If (c) <then_branch = t () => (a) { a = MatMul (x, w) }, else_branch = e () => (b) { b = Add (x, w) }> }""",
        w=matrix,
    )
    assert prepared_bytes(product.graph) < 1000
    assert [round(prepared_bytes(model.graph) / weight.nbytes, 1) for model, weight in ((turned, matrix), (conv, filters), (inside, matrix))] == [4, 4, 4]

"""Facts complete the sizes of a graph in which a runtime lost them."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from eqsat.cost.sizing import complete
from eqsat.runtime.own_graph import make_own_graph
from tests.support.models import parse


def sizes(model: onnx.ModelProto, *declared: onnx.ValueInfoProto) -> dict[str, list[int | None] | None]:
    """Returns the sizes of the values that nodes compute, after completion."""
    model.graph.value_info.extend(declared)
    complete(model.graph, model.opset_import)
    found: dict[str, list[int | None] | None] = {}
    for info in model.graph.value_info:
        tensor = info.type.tensor_type
        found[info.name] = [size.dim_value if size.HasField("dim_value") else None for size in tensor.shape.dim] if tensor.HasField("shape") else None
    return found


def test_sizes_follow_the_arithmetic_of_shapes() -> None:
    model = parse("""
        g (float[4, 6, 8] x) => (float[A, B, C, D] y)
        <int64 zero = {0}, int64 one = {1}, int64[1] front = {0}, int64[2] heads = {2, -1}>
        {
            s = Shape (x)
            n = Gather (s, zero)
            m = Gather (s, one)
            a = Unsqueeze (n, front)
            b = Unsqueeze (m, front)
            t = Concat <axis = 0> (a, b, heads)
            r = Reshape (x, t)
            y = Transpose <perm = [0, 2, 1, 3]> (r)
        }
    """)
    found = sizes(model, helper.make_tensor_value_info("r", TensorProto.FLOAT, [None, None, None, None]))
    assert found["r"] == [4, 6, 2, 4] and found["y"] == [4, 2, 6, 4] and found["n"] == []


def test_a_graph_with_all_sizes_is_left_alone() -> None:
    model = parse("g (float[4] x) => (float[4] y) { y = Relu (x) }")
    assert sizes(model, helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])) == {"y": [3]}


def test_a_declared_type_stands_against_a_fact() -> None:
    model = parse("g (float[4] x) => (float[A] y) { a = Relu (x)  y = Neg (a) }")
    found = sizes(model, helper.make_tensor_value_info("a", TensorProto.FLOAT, [3]), helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    assert found == {"a": [3], "y": [3]}


def test_nodes_that_look_alike_have_sizes_of_their_own() -> None:
    """A node that repeats another is not followed again, so nothing that matters may be left out of the comparison."""
    model = parse("""
        g (float[2, 3, 4] x, float[5, 6, 7] z) => (float[A] y)
        {
            a = Transpose <perm = [1, 0, 2]> (x)
            again = Transpose <perm = [1, 0, 2]> (x)
            turned = Transpose <perm = [2, 1, 0]> (x)
            larger = Transpose <perm = [1, 0, 2]> (z)
            same = Neg (x)
            rank = Shape (x)
            widths, heights = com.microsoft.Strange (x)
            wide, high = com.microsoft.Strange (x)
            y = Relu (a)
        }
    """)
    declared = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name, size in (("widths", 3), ("heights", 4), ("wide", 5))]
    known = {"widths": [3], "heights": [4], "wide": [5], "high": None, "a": [3, 2, 4], "again": [3, 2, 4]}
    assert sizes(model, *declared) == known | {"turned": [4, 3, 2], "larger": [6, 5, 7], "same": [2, 3, 4], "rank": [3], "y": [3, 2, 4]}


def test_a_body_may_name_its_values_as_the_graph_around_it_does() -> None:
    model = parse("""
        g (float[4] x, bool c) => (float[A] y, float[B] z)
        {
            a = Neg (x)
            z = Concat <axis = 0> (a, a)
            y = If (c) <
                then_branch = t () => (float[C] r) { b = Neg (a)  a = Concat <axis = 0> (z, z)  r = Neg (a) },
                else_branch = e () => (float[D] r) { r = Neg (a) }
            >
        }
    """)
    sizes(model)
    branches = {item.name: {info.name: info.type.tensor_type.shape.dim[0].dim_value for info in item.g.value_info} for item in model.graph.node[2].attribute}
    assert branches == {"then_branch": {"b": 4, "a": 16, "r": 16}, "else_branch": {"r": 4}}


def test_the_tensors_of_a_sequence_have_sizes() -> None:
    model = parse("""
        g (float[2, 10] x) => (float[A, B] y, float[C, D] z, float[E] w)
        <int64 step = {4}, int64[2] uneven = {3, 7}, int64 last = {-1}, int64 first = {0}>
        {
            s = SplitToSequence <axis = 1> (x, step)
            y = SequenceAt (s, last)
            t = SplitToSequence <axis = -1> (x, uneven)
            z = SequenceAt (t, first)
            u = SplitToSequence <axis = 1, keepdims = 0> (x)
            w = SequenceAt (u, first)
        }
    """)
    found = sizes(model)
    assert found["y"] == [2, 2] and found["z"] == [2, 3] and found["w"] == [2]


def test_operators_of_the_runtime_have_sizes_in_any_opset() -> None:
    model = parse(
        """<ir_version: 8, opset_import: ["": 11, "com.microsoft": 1]>
        g (float[2, 3, 4] x, float[4] w) => (float[A, B, C] y, float[D, E, F] z)
        {
            n = LayerNormalization (x, w, w)
            s = com.microsoft.SkipLayerNormalization (n, x, w)
            r = SimplifiedLayerNormalization (s, w)
            y = com.microsoft.FastGelu (r)
            z = com.microsoft.FusedMatMul <transB = 1> (n, y)
        }
        """,
        "",
    )
    found = sizes(model)
    assert all(found[name] == [2, 3, 4] for name in "nsry") and found["z"] == [2, 3, 3]


def test_a_value_of_unknown_rank_stays_unknown() -> None:
    found = sizes(parse("g (float[2, 3] x, int64[A] s) => (float[B] z) { y = com.microsoft.Strange (x)  z = Relu (y) }"))
    assert found["z"] is None


def test_sizes_of_declared_outputs_are_not_found_again() -> None:
    """An output has no entry in `value_info` of its own."""
    model = parse("g (float[2, 3] x) => (float[2, 3] y) <float[2, 3] a> { a = Relu (x)  y = Tanh (a) }")
    before = model.SerializeToString()
    complete(model.graph, model.opset_import)
    assert model.SerializeToString() == before


def test_operators_that_the_runtime_makes_of_others_have_its_sizes() -> None:
    """Behind a sequence the runtime knows no sizes. What followed its fusions was priced at usual ones."""
    model = parse("""
        g (float[2, 3, 33, 33] x) => (float[2, 5] y)
        <float[4] scales = {1, 1, 2, 2}>
        {
            xa = Conv <pads = [1, 1, 1, 1]> (x, a)
            ra = Relu (xa)
            pa = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (ra)
            xb = Conv <group = 20> (pa, b)
            xc = Conv (xb, c)
            u = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (xc, , scales)
            xd = Conv (u, d)
            p = GlobalAveragePool (xd)
            l = Flatten (p)
            m = Gemm <transB = 1> (l, e, f)
            y = Relu (m)
        }
    """)
    weights = {"a": (20, 3, 3, 3), "b": (20, 1, 3, 3), "c": (24, 20, 1, 1), "d": (17, 24, 1, 1), "e": (5, 17), "f": (5,)}
    model.graph.initializer.extend(numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in weights.items())
    data = make_own_graph(model.SerializeToString(), 0, None, None, {}, 2)
    graph = onnx.ModelProto.FromString(data)
    operators = {(node.domain, node.op_type) for node in graph.graph.node}
    assert {("com.microsoft.nchwc", "Conv"), ("com.microsoft.nchwc", "ReorderOutput"), ("com.microsoft", "FusedGemm")} <= operators
    theirs: dict[str, list[int | None] | None] = {info.name: [size.dim_value for size in info.type.tensor_type.shape.dim] for info in graph.graph.value_info}
    del graph.graph.value_info[:]
    graph.graph.output[0].type.tensor_type.ClearField("shape")
    ours = sizes(graph)
    for node in graph.graph.node:
        if node.op_type == "ReorderInput":  # it fills channels up to whole blocks, whose size depends on the processor
            assert ours[node.output[0]] == ours[node.input[0]]
            ours[node.output[0]] = theirs[node.output[0]]
    assert ours == theirs

"""ONNX Runtime's own graph of a model comes back with a type for each value, without weights."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from eqsat.runtime.own_graph import NoGraph, make_own_graph, measured_graph, own_graph
from eqsat.runtime.worker import Worker, shared
from tests.support.models import parse, weighted

WEIGHTS = np.random.default_rng(0).standard_normal((32, 16, 3, 3)).astype(np.float32)
CONV = weighted("g (float[N, 16, 8, 8] x) => (float[N, 32, 6, 6] y) { c = Conv (x, w)  y = Relu (c) }", w=WEIGHTS)


def asked(model: onnx.ModelProto, layouts: bool = True, **sizes: int) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(own_graph(model.SerializeToString(), 0, None, None, sizes, 64, shared(), layouts))


def shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    return {info.name: [size.dim_value for size in info.type.tensor_type.shape.dim] for info in (*model.graph.input, *model.graph.value_info)}


def test_fusions_and_layouts_are_those_of_the_runtime() -> None:
    graph = asked(CONV, N=3)
    operators = Counter(node.op_type for node in graph.graph.node)
    assert operators["Relu"] == 0 and sum(operators[name] for name in ("Conv", "FusedConv")) == 1
    known = shapes(graph)
    assert [3, 32, 6, 6] in known.values() and all(name in known for node in graph.graph.node for name in node.output)


def test_without_layouts_fusions_stay() -> None:
    operators = Counter((node.domain, node.op_type) for node in asked(CONV, layouts=False, N=3).graph.node)
    assert operators == {("com.microsoft", "FusedConv"): 1}


def test_a_dimension_without_a_size_has_the_usual_one() -> None:
    assert shapes(asked(CONV))["x"] == [64, 16, 8, 8]


def test_weights_have_a_type_and_no_data() -> None:
    graph = asked(CONV)
    large = [tensor for tensor in graph.graph.initializer if np.prod(tensor.dims) >= WEIGHTS.size]
    assert len(large) == 1 and not large[0].raw_data and not large[0].float_data
    assert graph.ByteSize() < WEIGHTS.nbytes / 4


@pytest.mark.skipif(os.name != "posix", reason="the device that forgets what is written has another name")
def test_weights_are_not_written_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    class Kept:
        def __enter__(self) -> str:
            return str(tmp_path)

        def __exit__(self, *error: object) -> None:
            written.extend(path.stat().st_size for path in tmp_path.iterdir())

    monkeypatch.setattr("eqsat.runtime.own_graph.tempfile.TemporaryDirectory", Kept)
    make_own_graph(CONV.SerializeToString(), 0, None, None, {}, 64)
    assert written and sum(written) < WEIGHTS.nbytes


def test_small_constants_decide_shapes() -> None:
    graph = asked(parse("g (float[N, 6] x) => (float[A, B, C] y) <int64[3] s = {0, 2, 3}> { r = Reshape (x, s)  y = Relu (r) }"), N=5)
    assert [5, 2, 3] in shapes(graph).values()


def test_sizes_are_followed_through_the_arithmetic_of_an_exporter() -> None:
    """As MobileViT computes the size of its images, by floats. The inputs' sizes decide it, not the
    runtime's own propagation of shapes."""
    graph = asked(
        parse("""g (float[N, 4, H, 6] x) => (float[A, B, C] y) <float two = {2}, int64[1] none = {-1}, int64[1] second = {2}> {
            s = Shape (x)  h = Gather (s, second)  f = Cast <to = 1> (h)  d = Div (f, two)  c = Ceil (d)  i = Cast <to = 7> (c)
            n = Shape <start = 0, end = 1> (x)  t = Concat <axis = 0> (n, none, i)  r = Reshape (x, t)  y = Relu (r) }"""),
        N=5,
        H=3,
    )
    assert [5, 36, 2] in shapes(graph).values()


def test_large_constants_are_not_computed_for_their_sizes() -> None:
    graph = asked(parse("g (float[N, M, L] x) => (float[A, B, C] y) { s = Shape (x)  c = ConstantOfShape (s)  y = Exp (c) }"), N=1 << 14, M=1 << 14, L=1 << 14)
    assert [1 << 14] * 3 in shapes(graph).values()


def test_no_shape_is_claimed_where_the_rank_is_unknown() -> None:
    """ONNX Runtime shows scalars and values of unknown rank alike."""
    graph = asked(parse("g (float[2, 6] x, int64[A] s) => (float B, float C) { r = Reshape (x, s)  B = ReduceSum <keepdims = 0> (r)  C = Exp (B) }"), A=3)
    known = {info.name: info.type.tensor_type for info in graph.graph.value_info}
    assert not known["C"].HasField("shape") and known["C"].elem_type == onnx.TensorProto.FLOAT


def test_a_graph_without_nodes_has_no_values() -> None:
    graph = asked(parse("g (float[2] x) => (float[2] x) { }"))
    assert not graph.graph.node and not graph.graph.value_info


def test_a_model_that_the_runtime_refuses_has_no_graph() -> None:
    strange = parse("""<ir_version: 8, opset_import: ["": 17, "nowhere": 1]> g (float[2] x) => (float[2] y) { y = nowhere.Strange (x) }""", "")
    with pytest.raises(NoGraph, match="Strange"):
        asked(strange)


def test_each_node_of_a_measured_graph_has_a_time() -> None:
    feeds = {"x": np.ones((2, 16, 8, 8), np.float32)}
    data, seconds = measured_graph(CONV.SerializeToString(), None, None, {"N": 2}, 64, feeds, 5, shared())
    graph = onnx.ModelProto.FromString(data)
    assert len(seconds) == len(graph.graph.node) and all(0 <= taken < 1 for taken in seconds) and sum(seconds) > 0


def test_measuring_may_take_longer_than_loading() -> None:
    """Loading is asked for many times in a run, and measuring once, of large models too."""

    class Recorder(Worker):
        timeouts: list[float | None]

        def call(self, function: str, *arguments: object, timeout: float | None = None, memory: int | None = None) -> object:
            self.timeouts.append(timeout)
            return super().call(function, *arguments, timeout=timeout, memory=memory)

    recorder = Recorder()
    recorder.timeouts = []
    model = parse("g (float[4] x) => (float[4] y) { y = Relu (x) }").SerializeToString()
    own_graph(model, 0, None, None, {}, 64, recorder)
    measured_graph(model, None, None, {}, 64, {"x": np.ones(4, np.float32)}, 1, recorder)
    recorder.stop()
    assert recorder.timeouts == [30.0, 120.0]


def test_a_size_of_minus_one_is_unknown() -> None:
    """Older exports of PaddlePaddle have it, and were priced as written."""
    model = onnx.ModelProto()
    model.CopyFrom(CONV)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert [64, 32, 6, 6] in shapes(asked(model)).values()


def test_large_constants_that_the_runtime_folds_in_a_body_are_kept() -> None:
    """Exports of Keras split weights in loops. The runtime folds the parts, and did not find their elements when it was
    asked for types: such results were thought not to load.
    """
    inside = "t () => (float[N, 32] a) { v, w = Split <axis = 1> (k, parts) a = MatMul (x, v) }"
    other = "e () => (float[N, 32] b) { b = Neg (x) }"
    model = weighted(
        f"g (float[N, 32] x, bool c) => (float[N, 32] y) {{ y = If (c) <then_branch = {inside}, else_branch = {other}> }}",
        k=np.ones((32, 64), np.float32),
        parts=np.array([32, 32]),
    )
    assert shapes(asked(model, N=3))["y"] == [3, 32]

"""The graphs of TASO and Tensat have the published operators and sizes, and run."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, shape_inference

from tests.support import taso_models
from tests.support.models import assert_same, initializers, operators, random_feeds, run, signature


@dataclass(frozen=True)
class Published:
    """The published figures of a graph.

    They are its operators, the Convs with a fused Relu, weights, parameters, products, and sizes.
    """

    operators: dict[str, int]
    fused: int
    weights: int
    parameters: float  # millions
    products: float  # 10^9 multiplications with an addition, rounded as published
    inputs: list[list[int]]
    outputs: list[list[int]]


IMAGE = [1, 3, 224, 224]
PUBLISHED = {
    "nasrnn": Published({"MatMul": 80, "Add": 55, "Tanh": 40, "Sigmoid": 25, "Mul": 20, "Relu": 10}, 0, 81, 20.97, 0.021, [[1, 512]] * 5, [[1, 512]]),
    "bert": Published({"MatMul": 48, "Reshape": 32, "Transpose": 32, "Relu": 1}, 0, 32, 33.55, 2.21, [[64, 1024]], [[64, 1024]] * 9),
    "resnext50": Published({"Conv": 53, "Add": 16, "Relu": 16, "MaxPool": 1}, 37, 53, 22.91, 4.23, [IMAGE], [[1, 2048, 7, 7]]),
    "nasnet": Published({"Conv": 217, "Add": 90, "AveragePool": 51, "Concat": 18, "MaxPool": 7}, 37, 217, 39.84, 15.05, [IMAGE], [[1, 5120, 7, 7]]),
    "squeezenet": Published(
        {"Conv": 26, "Relu": 26, "Concat": 8, "MaxPool": 3, "Dropout": 1, "AveragePool": 1, "Reshape": 1}, 0, 26, 1.23, 0.35, [IMAGE], [[1, 1000]]
    ),
    "inception": Published({"Conv": 94, "Concat": 30, "AveragePool": 9, "MaxPool": 5}, 94, 94, 21.75, 5.71, [[1, 3, 299, 299]], [[1, 2048, 1, 1]]),
    "vgg19": Published(
        {"Relu": 18, "Conv": 16, "MaxPool": 5, "MatMul": 3, "Transpose": 3, "Reshape": 3, "Dropout": 2}, 0, 19, 143.65, 19.63, [IMAGE], [[1, 1000]]
    ),
}


def shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """Returns the sizes of all values, by strict inference.

    Strict inference rejects outputs with other declared sizes.
    """
    graph = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    found = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in (*graph.input, *graph.value_info, *graph.output)}
    return found | {tensor.name: list(tensor.dims) for tensor in graph.initializer}


def products(model: onnx.ModelProto) -> int:
    """Returns the number of multiplications of all Convs and MatMuls."""
    sizes = shapes(model)
    return sum(
        math.prod(sizes[node.output[0]]) * (math.prod(sizes[node.input[1]][1:]) if node.op_type == "Conv" else sizes[node.input[0]][-1])
        for node in model.graph.node
        if node.op_type in ("Conv", "MatMul")
    )


def expected(name: str) -> Counter[str]:
    """Returns the operators of a model, in which a fused Relu is a node of its own."""
    return Counter(PUBLISHED[name].operators) + Counter(Relu=PUBLISHED[name].fused)


def test_all_graphs_are_compared() -> None:
    assert taso_models.GRAPHS.keys() == PUBLISHED.keys()


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_graph_is_the_published_one(name: str) -> None:
    published = PUBLISHED[name]
    model = taso_models.build(name, weight=taso_models.absent_weight)
    weights = [tensor for tensor in model.graph.initializer if tensor.data_type == TensorProto.FLOAT]
    assert operators(model) == expected(name)
    assert len(weights) == published.weights
    assert sum(math.prod(tensor.dims) for tensor in weights) / 1e6 == pytest.approx(published.parameters, abs=0.006)
    assert products(model) / 1e9 == pytest.approx(published.products, abs=0.0006 if published.products < 0.1 else 0.006)
    assert [dims for _, _, dims in signature(model.graph.input)] == published.inputs
    assert [dims for _, _, dims in signature(model.graph.output)] == published.outputs


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_narrow_graph_has_the_same_operators_and_runs(name: str) -> None:
    model = taso_models.build(name, 1 / 32)
    onnx.checker.check_model(model, full_check=True)
    assert operators(model) == expected(name)
    results = run(model, random_feeds(model, {}))
    assert [list(result.shape) for result in results] == [dims for _, _, dims in signature(model.graph.output)]
    assert all(np.isfinite(result).all() and result.std() > 0 for result in results)


def sharing(model: onnx.ModelProto) -> Counter[int]:
    """Returns the number of values by how many Convs, or products with a weight, read each.

    Values with one such reader do not count.
    """
    weights = {tensor.name for tensor in model.graph.initializer}
    readers = Counter(node.input[0] for node in model.graph.node if node.op_type in ("Conv", "MatMul") and node.input[1] in weights)
    return Counter(count for count in readers.values() if count > 1)


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        ("nasrnn", {8: 5 + 5}),  # each input and each state
        ("bert", {4: 8}),  # queries, keys, values and the next layer's input
        ("resnext50", {2: 4}),  # the first block of a stage has a Conv beside it
        ("nasnet", {3: 3 * 7, 2: 3 * 9}),  # of a stage: its input and the older input of each cell; four results and the newer inputs of five cells
        ("squeezenet", {2: 8}),
        ("inception", {3: 3 + 4 + 2, 2: 1 + 1 + 2 * 2}),
        ("vgg19", {}),
    ],
)
def test_what_reads_one_value(name: str, shared: dict[int, int]) -> None:
    assert sharing(taso_models.build(name, 1 / 32)) == shared


@pytest.mark.parametrize("name", ["resnext50", "nasnet", "inception"])
def test_pads_are_those_of_same_upper(name: str) -> None:
    model = taso_models.build(name, 1 / 32)
    ruled = onnx.ModelProto()
    ruled.CopyFrom(model)
    for node in ruled.graph.node:
        pads = next((attribute for attribute in node.attribute if attribute.name == "pads"), None)
        if pads is not None and any(pads.ints):
            node.attribute.remove(pads)
            node.attribute.append(onnx.helper.make_attribute("auto_pad", "SAME_UPPER"))
    assert_same(model, ruled, random_feeds(model, {}))


def test_nasnet_has_equal_pools() -> None:
    """Each normal cell adds two averages of one tensor.

    Each reduction takes one maximum twice.
    """
    pools = [node for node in taso_models.build("nasnet", 1 / 32).graph.node if "Pool" in node.op_type]
    distinct = {(node.op_type, node.input[0], tuple(attribute.SerializeToString() for attribute in node.attribute)) for node in pools}
    assert Counter(operator for operator, _, _ in distinct) == {"AveragePool": 51 - 15, "MaxPool": 7 - 3}


def test_nasrnn_computes_the_cell() -> None:
    model = taso_models.build("nasrnn", 1 / 64)
    feeds = random_feeds(model, {})
    weights = [values.astype(np.float64) for values in initializers(model).values()]
    state = weights.pop(0)
    for x in feeds.values():
        t = [x @ weights.pop(0) + state @ weights.pop(0) for _ in range(8)]
        left = np.tanh(relu(t[0]) + sigmoid(t[3])) * np.tanh(sigmoid(t[6]) * relu(t[7]))
        right = np.tanh(sigmoid(sigmoid(t[1]) + np.tanh(t[2])) + np.tanh(sigmoid(t[4]) * np.tanh(t[5])))
        state = np.tanh(right * np.tanh(left))
    # No value is much above 1, and a path has fewer than a hundred roundings of 6e-8 each.
    np.testing.assert_allclose(run(model, feeds)[0], state, atol=100 * 6e-8)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def test_the_same_name_and_width_give_the_same_model() -> None:
    assert taso_models.build("squeezenet", 1 / 16) == taso_models.build("squeezenet", 1 / 16)


def test_weights_differ() -> None:
    """Equal weights would become one constant, and their readers one node."""
    model = taso_models.build("nasrnn", 1 / 32)
    contents = [tensor.raw_data for tensor in model.graph.initializer]
    assert len(set(contents)) == len(contents)


def test_the_command_line_writes_a_model(tmp_path: Path) -> None:
    file = tmp_path / "bert.onnx"
    subprocess.run(
        [sys.executable, "-m", taso_models.__name__, "bert", str(file), "--width", "0.0625"],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert onnx.load(file) == taso_models.build("bert", 1 / 16)

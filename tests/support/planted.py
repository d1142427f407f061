"""Planted errors: copies of a model, each wrong in one place as a faulty optimizer might leave it.

The input is a model whose weights are stored in it; the output is `Plant`s, with the kind of the
error, the value at which it is, and the wrong model. The same seed plants the same errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

BIAS, ZERO, SWAP, AXIS, EPSILON, GELU = "bias by 5 %", "weight to 0", "channels swapped", "Softmax axis", "epsilon", "Gelu by tanh"
_EPSILON = 1e-3
_ERF = (2 / np.sqrt(np.pi), 2 / np.sqrt(np.pi) * 2 * 0.044715)  # of the first and the third power


@dataclass(frozen=True)
class Plant:
    """A wrong model, the kind of its error, and the name of the weight or result that is wrong."""

    kind: str
    place: str
    model: onnx.ModelProto


def plants(model: onnx.ModelProto, each: int, seed: int = 0) -> Iterator[Plant]:
    """Yields up to `each` wrong models of each kind, at places drawn by the seed."""
    for number, (kind, find) in enumerate(_KINDS.items()):
        generator = np.random.default_rng([seed, number])
        places = find(model)
        for index in sorted(generator.permutation(len(places))[:each].tolist()):
            copy = onnx.ModelProto()
            copy.CopyFrom(model)
            name, plant = places[index]
            plant(copy.graph, generator)
            yield Plant(kind, name, copy)


Place = tuple[str, Callable[[onnx.GraphProto, np.random.Generator], None]]


def _biases(model: onnx.ModelProto) -> list[Place]:
    return [(name, _changed(name, _one_by_5_percent)) for name, array in _weights(model) if 1 < array.size == max(array.shape) and array.any()]


def _one_by_5_percent(array: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    changed = array.copy()
    changed.flat[generator.choice(np.flatnonzero(array))] *= 1.05
    return changed


def _matrices(model: onnx.ModelProto, change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> list[Place]:
    return [(name, _changed(name, change)) for name, array in _weights(model) if array.ndim > 1 and min(array.shape[:2]) > 1]


def _one_zero(array: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    changed = array.copy()
    changed.flat[generator.choice(np.flatnonzero(array))] = 0
    return changed


def _two_swapped(array: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    one, other = generator.choice(array.shape[0], 2, replace=False)
    changed = array.copy()
    changed[[one, other]] = array[[other, one]]
    return changed


def _axes(model: onnx.ModelProto) -> list[Place]:
    def other_axis(graph: onnx.GraphProto, name: str) -> None:
        _set(_node(graph, name), "axis", -2)

    return [(node.output[0], lambda graph, _, name=node.output[0]: other_axis(graph, name)) for node in model.graph.node if node.op_type == "Softmax"]


def _epsilons(model: onnx.ModelProto) -> list[Place]:
    def larger(graph: onnx.GraphProto, name: str) -> None:
        _set(_node(graph, name), "epsilon", _EPSILON)

    return [
        (node.output[0], lambda graph, _, name=node.output[0]: larger(graph, name))
        for node in model.graph.node
        if any(item.name == "epsilon" and item.f < _EPSILON for item in node.attribute)
    ]


def _gelus(model: onnx.ModelProto) -> list[Place]:
    """Returns the Gelus, and the Erfs, which are parts of Gelus."""

    def by_tanh(graph: onnx.GraphProto, name: str) -> None:
        node = _node(graph, name)
        if node.op_type == "Gelu":
            return _set(node, "approximate", "tanh")
        scalars = zip(("one", "three"), _ERF, strict=True)
        graph.initializer.extend(numpy_helper.from_array(np.asarray(value, np.float32), f"{name} {part}") for part, value in scalars)
        x, place = node.input[0], list(graph.node).index(node)
        node.CopyFrom(helper.make_node("Tanh", [f"{name} all"], [name]))
        steps = [("Mul", [x, x], "square"), ("Mul", [f"{name} square", f"{name} three"], "cube"), ("Add", [f"{name} cube", f"{name} one"], "sum")]
        steps.append(("Mul", [f"{name} sum", x], "all"))
        for offset, (operator, inputs, part) in enumerate(steps):
            graph.node.insert(place + offset, helper.make_node(operator, inputs, [f"{name} {part}"]))
        return None

    found = [node for node in model.graph.node if node.op_type == "Erf" or (node.op_type == "Gelu" and not node.attribute)]
    return [(node.output[0], lambda graph, _, name=node.output[0]: by_tanh(graph, name)) for node in found]


_KINDS: dict[str, Callable[[onnx.ModelProto], list[Place]]] = {
    BIAS: _biases,
    ZERO: lambda model: _matrices(model, _one_zero),
    SWAP: lambda model: _matrices(model, _two_swapped),
    AXIS: _axes,
    EPSILON: _epsilons,
    GELU: _gelus,
}


def _weights(model: onnx.ModelProto) -> list[tuple[str, np.ndarray]]:
    """Returns the stored weights of single precision that a node of the main graph reads."""
    read = {name for node in model.graph.node for name in node.input}
    tensors = (tensor for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name in read)
    return [(tensor.name, array) for tensor in tensors if (array := numpy_helper.to_array(tensor)).size]


def _changed(name: str, change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Callable[[onnx.GraphProto, np.random.Generator], None]:
    def plant(graph: onnx.GraphProto, generator: np.random.Generator) -> None:
        tensor = next(tensor for tensor in graph.initializer if tensor.name == name)
        tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor), generator), name))

    return plant


def _node(graph: onnx.GraphProto, output: str) -> onnx.NodeProto:
    return next(node for node in graph.node if output in node.output)


def _set(node: onnx.NodeProto, name: str, value: float | str) -> None:
    kept = [item for item in node.attribute if item.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])

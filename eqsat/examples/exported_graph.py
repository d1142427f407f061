"""A graph that grows node by node, with the names and the habits of PyTorch's TorchScript exporter.

Sizes that depend on an input are computed from its shape, element by element. Nothing is shared: each use of a
constant or of a size computes it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_OPSET, _IR_VERSION = 17, 8
_SEED = 0


class ExportedGraph:
    """A graph under construction. Methods that make a node return the name of its output."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._scopes: list[str] = []
        self._taken: Counter[str] = Counter()
        # NumPy promises that the numbers of a RandomState never change; those of a Generator may.
        self._random = np.random.RandomState(_SEED)

    @contextmanager
    def scope(self, name: str) -> Generator[None]:
        """Makes nodes and weights inside the module `name`."""
        self._scopes.append(name)
        yield
        self._scopes.pop()

    def input(self, name: str, kind: int, shape: Sequence[int | str]) -> str:
        """Adds an input of the graph. Returns its name."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node in the current module."""
        place = "/".join(["", *self._scopes, operator])
        number = self._taken[place]
        self._taken[place] += 1
        name = f"{place}_{number}" if number else place
        output = f"{name}_output_0"
        self._nodes.append(helper.make_node(operator, inputs, [output], name=name, **attributes))
        return output

    def constant(self, value: float | Sequence[int] | int, kind: type[np.generic] = np.float32) -> str:
        """Adds a Constant node."""
        return self.node("Constant", value=numpy_helper.from_array(np.asarray(value, kind)))

    def weight(self, name: str, *shape: int, mean: float = 0.0, deviation: float = 0.02) -> str:
        """Adds a weight of the current module, with normally distributed elements."""
        values = self._random.standard_normal(shape) * deviation + mean
        return self.stored(name, values.astype(np.float32))

    def stored(self, name: str, values: np.ndarray[Any, Any]) -> str:
        """Adds an initializer of the current module. Returns its name."""
        full = ".".join([*self._scopes, name])
        self._weights.append(numpy_helper.from_array(values, full))
        return full

    def size(self, x: str, axis: int) -> str:
        """Adds nodes for the size of an axis, as a scalar."""
        return self.node("Gather", self.node("Shape", x), self.constant(axis, np.int64), axis=0)

    def shape(self, *sizes: str | int) -> str:
        """Adds nodes for a shape. A size is a number or a scalar of the graph."""
        parts = [self.constant([size], np.int64) if isinstance(size, int) else self.node("Unsqueeze", size, self.constant([0], np.int64)) for size in sizes]
        return self.node("Concat", *parts, axis=0)

    def model(self, outputs: Sequence[tuple[str, str, Sequence[int | str]]]) -> onnx.ModelProto:
        """Returns the model, which is valid. Each output is a value of the graph, the output's name
        and its shape.
        """
        renamed = {value: name for value, name, _ in outputs}
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [renamed.get(name, name) for name in names]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for _, name, shape in outputs]
        graph = helper.make_graph(self._nodes, self._name, self._inputs, results, self._weights)
        opsets = [helper.make_operatorsetid("", _OPSET)]
        return helper.make_model(graph, producer_name="eqsat example", opset_imports=opsets, ir_version=_IR_VERSION)

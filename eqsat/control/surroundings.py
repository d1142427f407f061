"""Known values inside a graph: stored constants and producers, including those of outer graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from eqsat.frozen import frozen
from eqsat.model.names import defined_names
from eqsat.model.tensors import constant_value
from eqsat.operators import normal_domain

# The most bytes of a constant that is read, and copied in front of a body.
_COPIED = 1 << 10


@frozen(slots=False)
class Scope:
    """The values that the nodes of a graph can see."""

    opset: int
    stores: bool  # whether an initializer may exist without being an input
    constants: Mapping[str, onnx.TensorProto] = field(default_factory=dict[str, onnx.TensorProto])
    producers: Mapping[str, onnx.NodeProto] = field(default_factory=dict[str, onnx.NodeProto])
    names: frozenset[str] = frozenset()  # all names defined here or in outer graphs
    shadowed: frozenset[str] = frozenset()  # names that mean another value here than in an outer graph

    def inside(self, graph: onnx.GraphProto) -> Scope:
        """Return the scope of a graph inside this one."""
        own = frozenset(defined_names(graph))
        defaults = {info.name for info in graph.input} if self.stores else frozenset[str]()
        constants = {name: tensor for name, tensor in self.constants.items() if name not in own}
        constants |= {tensor.name: tensor for tensor in graph.initializer if tensor.name not in defaults}
        producers = {name: node for name, node in self.producers.items() if name not in own}
        producers |= {name: node for node in graph.node for name in node.output if name}
        return Scope(self.opset, self.stores, constants, producers, self.names | own, self.shadowed | (self.names & own))

    def origin(self, name: str) -> str:
        """Follow copies (Identity) back to the value they copy."""
        node = self.producers.get(name)
        while node is not None and node.op_type == "Identity" and not normal_domain(node.domain) and node.input[0] not in self.shadowed:
            name = node.input[0]
            node = self.producers.get(name)
        return name

    def producer(self, name: str, *operators: str) -> onnx.NodeProto | None:
        """Return the producer of a value if it is one of these standard operators."""
        node = self.producers.get(self.origin(name))
        if node is None or node.op_type not in operators or normal_domain(node.domain) or not self.shadowed.isdisjoint(node.input):
            return None
        return node

    def value(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return the elements of a small stored constant."""
        name = self.origin(name)
        tensor, node = self.constants.get(name), self.producer(name, "Constant")
        if tensor is not None:
            outside = tensor.data_location == onnx.TensorProto.EXTERNAL
            return None if outside or tensor.ByteSize() > _COPIED else numpy_helper.to_array(tensor)
        if node is None or len(node.attribute) != 1 or node.ByteSize() > _COPIED or node.attribute[0].ref_attr_name:
            return None
        found = constant_value(node.attribute[0], None)
        return None if found is None else found.array()

    def integer(self, name: str) -> int | None:
        """Return the number, or condition, in a constant of one element."""
        array = self.value(name) if name else None
        return int(array.item()) if array is not None and array.size == 1 and array.dtype.kind in "iub" else None

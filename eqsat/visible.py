"""What is known inside a graph as its file has it: stored constants and the nodes that give values, those of graphs around included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from eqsat.names import defined_names
from eqsat.operators import normal_domain
from eqsat.tensors import constant_value

_COPIED = 1 << 10  # bytes of the largest constant that is read, and copied in front of a body


@dataclass(frozen=True)
class Scope:
    """What the nodes of a graph see."""

    opset: int
    stores: bool  # whether graphs may have initializers that are no inputs
    constants: Mapping[str, onnx.TensorProto] = field(default_factory=dict[str, onnx.TensorProto])
    producers: Mapping[str, onnx.NodeProto] = field(default_factory=dict[str, onnx.NodeProto])
    names: frozenset[str] = frozenset()  # all that are defined here or around
    shadowed: frozenset[str] = frozenset()  # those that mean another value here than somewhere around

    def inside(self, graph: onnx.GraphProto) -> Scope:
        """What the nodes of a graph see that stands here."""
        own = frozenset(defined_names(graph))
        defaults = {info.name for info in graph.input} if self.stores else frozenset[str]()
        constants = {name: tensor for name, tensor in self.constants.items() if name not in own}
        constants |= {tensor.name: tensor for tensor in graph.initializer if tensor.name not in defaults}
        producers = {name: node for name, node in self.producers.items() if name not in own}
        producers |= {name: node for node in graph.node for name in node.output if name}
        return Scope(self.opset, self.stores, constants, producers, self.names | own, self.shadowed | (self.names & own))

    def origin(self, name: str) -> str:
        """The value that a value is a copy of."""
        node = self.producers.get(name)
        while node is not None and node.op_type == "Identity" and not normal_domain(node.domain) and node.input[0] not in self.shadowed:
            name = node.input[0]
            node = self.producers.get(name)
        return name

    def made(self, name: str, *operators: str) -> onnx.NodeProto | None:
        """The node of the standard that gives a value, if it is one of these."""
        node = self.producers.get(self.origin(name))
        if node is None or node.op_type not in operators or normal_domain(node.domain) or not self.shadowed.isdisjoint(node.input):
            return None
        return node

    def value(self, name: str) -> np.ndarray[Any, Any] | None:
        """The elements of a small stored constant."""
        name = self.origin(name)
        tensor, node = self.constants.get(name), self.made(name, "Constant")
        if tensor is not None:
            outside = tensor.data_location == onnx.TensorProto.EXTERNAL
            return None if outside or tensor.ByteSize() > _COPIED else numpy_helper.to_array(tensor)
        if node is None or len(node.attribute) != 1 or node.ByteSize() > _COPIED or node.attribute[0].ref_attr_name:
            return None
        found = constant_value(node.attribute[0], None)
        return None if found is None else found.array()

    def integer(self, name: str) -> int | None:
        """The one integer, or condition, of a constant."""
        array = self.value(name) if name else None
        return int(array.item()) if array is not None and array.size == 1 and array.dtype.kind in "iub" else None

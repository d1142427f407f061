"""A case: a model of one node, or of a chain of equal nodes, with data on which it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from eqsat.cost.shaped import Shaped

Array = np.ndarray[Any, np.dtype[Any]]

FLOAT = int(TensorProto.FLOAT)
INT64 = int(TensorProto.INT64)
_OPSET = 23
_IR_VERSION = 11


@dataclass(frozen=True)
class Given:
    """An input of a case: its type, and its elements if random ones would not do."""

    shape: tuple[int, ...]
    dtype: int = FLOAT
    constant: bool = False
    elements: Sequence[int] | None = None
    below: int = 2  # random integers are below this
    scale: float = 1.0  # of random floats
    low: float = 0.1  # random floats are from here to 1.8 above, times the scale

    def array(self, generator: np.random.Generator) -> Array:
        """Returns the given elements, or random ones if none are given."""
        kind = helper.tensor_dtype_to_np_dtype(self.dtype)
        if self.elements is not None:
            return np.array(self.elements, kind).reshape(self.shape)
        if kind.kind in "iub":
            return generator.integers(0, self.below, self.shape).astype(kind)
        # Elementwise functions get their usual range, without the denormal numbers that are slow.
        return ((generator.random(self.shape) * 1.8 + self.low) * self.scale).astype(kind)

    @property
    def shaped(self) -> Shaped:
        """Returns the type as a price sees it."""
        return Shaped(self.dtype, self.shape, self.constant)


@dataclass(frozen=True)
class Case:
    """One operator on given inputs. Constant inputs are weights of the model. `chain` is the number
    of equal nodes in a row; each works on the result of the one before. The time of a chain is the
    time that its further nodes add.
    """

    key: str
    inputs: tuple[Given | None, ...]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    chain: int = 1
    optimized: bool = False  # whether the runtime's own optimizations are on
    opset: int = _OPSET

    @property
    def domain(self) -> str:
        """Returns the operator's domain."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Returns the operator's name in its domain."""
        return self.key.rpartition(".")[2]

    def model(self, chain: int) -> onnx.ModelProto:
        """Returns the model of `chain` nodes. Only the first input goes along the chain."""
        names = self._names
        sinks = [[f"o{link}_{index}" for index in range(self.outputs)] for link in range(chain)]
        return self._model([(names if link == 0 else [sinks[link - 1][0], *names[1:]], sinks[link]) for link in range(chain)], sinks[-1], self.opset)

    def repeated(self, copies: int, opset: int) -> onnx.ModelProto:
        """Returns a model of equal nodes that all work on the same inputs. Each has an output of its own,
        so none is dropped.
        """
        sinks = [[f"o{copy}_{index}" for index in range(self.outputs)] for copy in range(copies)]
        return self._model([(self._names, each) for each in sinks], [each[0] for each in sinks], opset)

    @property
    def _names(self) -> list[str]:
        return [f"i{index}" if given is not None else "" for index, given in enumerate(self.inputs)]

    def _model(self, links: Sequence[tuple[list[str], list[str]]], outputs: Sequence[str], opset: int) -> onnx.ModelProto:
        """Returns the model of a node for each link, which has the names that the node reads and writes."""
        generator = np.random.default_rng(0)
        names = self._names
        weights = [numpy_helper.from_array(given.array(generator), name) for given, name in zip(self.inputs, names, strict=True) if given and given.constant]
        sources = [
            helper.make_tensor_value_info(name, given.dtype, given.shape)
            for given, name in zip(self.inputs, names, strict=True)
            if given is not None and not given.constant
        ]
        nodes = [helper.make_node(self.name, read, written, domain=self.domain, **self.attributes) for read, written in links]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(nodes, "case", sources, results, weights)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("com.microsoft.nchwc", 1)]
        return helper.make_model(graph, ir_version=_IR_VERSION, opset_imports=opsets)

    def feeds(self) -> dict[str, Array]:
        """Returns random elements for the inputs that are no weights."""
        generator = np.random.default_rng(1)
        return {f"i{index}": given.array(generator) for index, given in enumerate(self.inputs) if given is not None and not given.constant}

"""Folding: evaluates the constant values of a graph exactly as the original computes them.

The input is a graph and the names of constant values; the output is their elements. ONNX Runtime
computes them in the worker process, with its optimizations off, node by node in the declared types.
Values that it cannot evaluate are left out, but for simple ones of bfloat16.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from eqsat.model.model import Constant, Graph, Model, Node, attribute_graphs, function_key
from eqsat.model.tensors import from_array
from eqsat.operators import normal_domain
from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout

if TYPE_CHECKING:
    from eqsat.runtime.session import Session

_SECONDS = 20.0  # for one call
_ALL_SECONDS = 60.0  # for all values of a graph; constants are not worth a longer wait
# Operators that move elements, or round the exact result of one operation to the nearest number.
_NEAREST = frozenset("Abs Add Cast Concat Div Expand Identity Mul Neg Reciprocal Reshape Sqrt Squeeze Sub Transpose Unsqueeze".split())


class Folding:
    """Evaluates constant values of one graph and remembers them."""

    def __init__(
        self, model: Model, graph: Graph, captured: Mapping[str, Constant], opsets: Sequence[onnx.OperatorSetIdProto], worker: Worker, memory: int
    ) -> None:
        self._model = model
        self._constants = {**captured, **graph.constants}
        self._nodes = graph.nodes
        self._producer: dict[str, int] = {name: place for place, node in enumerate(graph.nodes) for name in node.outputs if name}
        self._opsets = opsets
        self._worker = worker
        self._memory = memory
        self._folder = None if model.folder is None else str(model.folder)  # weights may be apart
        self.made: dict[Hashable, np.ndarray[Any, Any]] = {}
        """The constants that rules made and that are computed already, by recipe."""
        self._known: dict[str, np.ndarray[Any, Any]] = {}
        self._failed: set[str] = set()
        self._spent = 0.0
        self.exhausted = False  # whether time ran out before all constants were evaluated

    def evaluate(self, names: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the elements of the named values. Values whose evaluation fails are missing."""
        wanted = [name for name in dict.fromkeys(names) if name not in self._known and name not in self._failed]
        batches = [wanted] if wanted else []
        while batches:
            batch = batches.pop()
            if self._spent > _ALL_SECONDS:
                self.exhausted = True
                self._failed.update(batch)
                continue
            start = time.monotonic()
            try:
                arrays = self._run(batch)
            except (RemoteError, WorkerDied, WorkerTimeout):
                # One value that fails makes its whole batch fail, so the others are tried again
                # without it.
                if len(batch) == 1:
                    self._failed.add(batch[0])
                else:
                    batches += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
                continue
            finally:
                self._spent += time.monotonic() - start
            for name, array in zip(batch, arrays, strict=True):
                if isinstance(array, np.ndarray):
                    self._known[name] = array
                else:
                    self._failed.add(name)
        return {name: self._known[name] for name in names if name in self._known}

    def compute(self, models: Mapping[int, onnx.ModelProto]) -> dict[int, np.ndarray[Any, Any]]:
        """Returns the results of models without inputs, by their keys. Results that fail are
        missing.
        """
        found: dict[int, np.ndarray[Any, Any]] = {}
        batches = [list(models)] if models else []
        while batches:
            batch = batches.pop()
            if self._spent > _ALL_SECONDS:
                self.exhausted = True
                continue
            start = time.monotonic()
            try:
                serialized = [models[key].SerializeToString() for key in batch]
                arrays = self._worker.call("eqsat.choose.folding:compute_results", serialized, self._folder, timeout=_SECONDS, memory=self._memory)
            except (RemoteError, WorkerDied, WorkerTimeout):
                if len(batch) > 1:
                    batches += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
                continue
            finally:
                self._spent += time.monotonic() - start
            found |= {key: array for key, array in zip(batch, arrays, strict=True) if isinstance(array, np.ndarray)}
        return found

    def _run(self, names: Sequence[str]) -> list[Any]:
        model = self._constant_model(names)
        if model is None:
            raise RemoteError("ValueError", "not made of constants")
        asked = (model.SerializeToString(), list(names), self._folder)
        answer: list[Any] = self._worker.call("eqsat.choose.folding:compute", *asked, timeout=_SECONDS, memory=self._memory)
        return answer

    def _constant_model(self, names: Sequence[str]) -> onnx.ModelProto | None:
        nodes: dict[int, Node] = {}
        used: dict[str, None] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in used or not name:
                continue
            used[name] = None
            if name in self._known or name in self._constants:
                continue
            place = self._producer.get(name)
            if place is None:
                return None
            node = self._nodes[place]
            if refers(node.proto):
                # An attribute parameter of the surrounding function has a value only at a call.
                return None
            nodes[place] = node
            waiting += [*node.inputs, *node.captures]
        proto = onnx.ModelProto(ir_version=max(self._model.proto.ir_version, 4))
        proto.opset_import.extend(self._opsets)
        if any(calls(node.proto, self._model) for node in nodes.values()):
            proto.functions.extend(function.proto for function in self._model.functions.values())
        proto.graph.name = "constants"
        for name in used:
            if name in self._known:
                proto.graph.initializer.append(from_array(self._known[name], name).proto)
            elif name in self._constants:
                tensor = self._constants[name].tensor
                if tensor.hollow or tensor.nbytes > self._memory:
                    return None
                proto.graph.initializer.append(tensor.named(name))
        given = {tensor.name for tensor in proto.graph.initializer}
        for place in sorted(nodes):
            copy = onnx.NodeProto()
            copy.CopyFrom(nodes[place].proto)
            for index, name in enumerate(copy.output):
                if name in given:
                    copy.output[index] = f"{name} (known)"
            proto.graph.node.append(copy)
        proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        return proto


def calls(node: onnx.NodeProto, model: Model) -> bool:
    """Tells whether a node, or one in its bodies, calls a function of the model."""
    waiting = [node]
    while waiting and model.functions:
        current = waiting.pop()
        if function_key(current.domain, current.op_type, current.overload) in model.functions:
            return True
        waiting.extend(inner for _, graph in attribute_graphs(current) for inner in graph.node)
    return False


def refers(node: onnx.NodeProto) -> bool:
    """Tells whether a node, or one in its bodies, takes an attribute from the function around it."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if any(attribute.ref_attr_name for attribute in current.attribute):
            return True
        waiting.extend(inner for _, graph in attribute_graphs(current) for inner in graph.node)
    return False


def compute(model: bytes, names: list[str], folder: str | None) -> list[Any]:
    """Returns the values of a model without inputs, whose external data are in `folder`. Runs in the
    worker.

    ONNX Runtime computes them, so their bits are the runtime's.
    """
    return _session(model, folder).run({}, names)


def compute_results(models: list[bytes], folder: str | None) -> list[Any]:
    """Returns the results of models without inputs, None for each that the runtime refuses. Their
    external data are in `folder`. Runs in the worker.
    """
    found: list[Any] = []
    for model in models:
        try:
            found += _session(model, folder).run({}, ["result"])
        except Exception:
            found.append(None)
    return found


def _session(model: bytes, folder: str | None) -> Session:
    """Returns a session of a model. Raises ONNX Runtime's exception if it refuses the model, except for
    lack of kernels for bfloat16: then the reference computes what has no other result than the nearest one.
    """
    from eqsat.runtime.session import ReferenceSession, open_runtime

    try:
        return open_runtime(model, folder)
    except Exception:
        graph = onnx.ModelProto.FromString(model).graph
        halves = any(tensor.data_type == onnx.TensorProto.BFLOAT16 for tensor in graph.initializer)
        if not halves or not all(node.op_type in _NEAREST and normal_domain(node.domain) == "" for node in graph.node):
            raise
        return ReferenceSession(model, folder)

"""Storing: writes constants, inputs and outputs of a graph beside its nodes."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
import onnx
from onnx import helper

from eqsat.frozen import mutable
from eqsat.model.model import Constant, Graph
from eqsat.model.names import stored_names
from eqsat.model.tensors import from_array
from eqsat.model.weight_file import WeightFile


@mutable
class Place:
    """The position of a graph in the model. It decides how the graph may be written."""

    outermost: bool = True  # whether the graph is no body, so its file size is counted on its own
    # New constants become Constant nodes. Functions have no initializers, and old IR versions
    # require an input for each initializer.
    constant_nodes: bool = False
    draft: bool = False  # whether only the nodes matter, and computed constants are not stored
    weights: WeightFile | None = None  # the file for large new weights, if they are apart


def begin(source: Graph) -> onnx.GraphProto:
    """Returns a graph without nodes that has the name and the notes of `source`."""
    graph = onnx.GraphProto()
    for field_name in ("name", "doc_string"):
        if source.proto.HasField(field_name):
            setattr(graph, field_name, getattr(source.proto, field_name))
    graph.metadata_props.extend(source.proto.metadata_props)
    return graph


def store_array(graph: onnx.GraphProto, nodes: list[onnx.NodeProto], place: Place, name: str, array: np.ndarray[Any, Any]) -> None:
    """Stores a new constant."""
    if place.constant_nodes:
        nodes.append(helper.make_node("Constant", [], [name], value=from_array(array, name).proto))
        return
    apart = place.weights.stored(array, name) if place.weights is not None and place.outermost else None
    graph.initializer.append(from_array(array, name).proto if apart is None else apart)


def store_constant(graph: onnx.GraphProto, nodes: list[onnx.NodeProto], place: Place, source: Graph, name: str, constant: Constant) -> None:
    """Stores a constant of `source` under `name`, in the same form as in `source`."""
    if constant.node is not None:
        node = onnx.NodeProto()
        node.CopyFrom(constant.node)
        node.output[0] = name
        nodes.append(node)
    elif place.constant_nodes and name not in source.constants:
        proto = onnx.TensorProto()
        proto.CopyFrom(constant.tensor.proto)
        nodes.append(helper.make_node("Constant", [], [name], value=proto))
    else:
        proto = graph.initializer.add()
        proto.CopyFrom(constant.tensor.proto)
        proto.name = name


def finish(graph: onnx.GraphProto, source: Graph, inputs: Set[str]) -> None:
    """Gives a graph the inputs, outputs and annotations of `source`, as far as it still has their
    values. `inputs` are the names of those that it always has.
    """
    stored = set(stored_names(graph))
    defined = {*stored, *(name for node in graph.node for name in node.output)}
    for name in sorted(source.overridable):
        if name in source.sparse:
            graph.sparse_initializer.append(source.sparse[name])
        else:
            graph.initializer.append(source.constants[name].tensor.proto)
    # Old IR versions list constants among the inputs. Such an entry is removed with its constant,
    # or else it would become a required input.
    graph.input.extend(info for info in source.proto.input if info.name in inputs or info.name in stored)
    graph.output.extend(source.proto.output)
    graph.value_info.extend(info for info in source.proto.value_info if info.name in defined)
    for note in source.proto.quantization_annotation:
        names = [note.tensor_name, *(entry.value for entry in note.quant_parameter_tensor_names)]
        if all(name in defined or name in inputs for name in names):
            graph.quantization_annotation.append(note)

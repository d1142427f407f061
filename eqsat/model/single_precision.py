"""Halves: a model of 16-bit floats with float32 in their place, to ask for the graph of another device.

ONNX Runtime's CPU provider has few kernels for float16 and bfloat16. It puts Casts around the other
nodes and fuses less. A device with such kernels does neither: its graph is that of the same model in
float32. Only a Cast between halves and float32 would then do nothing and vanish, so it becomes an
`Atan`, which the runtime neither fuses nor removes; but not beside a normalization, whose kernel
includes the Cast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from eqsat.facts.fact import FLOATS, HALVES
from eqsat.model.external_data import refer, tensors_of
from eqsat.model.model import all_graphs
from eqsat.model.tensors import tensor_bytes
from eqsat.operators import normal_domain
from eqsat.runtime.own_graph import ZEROS

_FLOAT = int(TensorProto.FLOAT)
_MARK = "eqsat: a Cast to "
# Attributes whose integer is the data type of the result.
_TYPED = frozenset({("Cast", "to"), ("EyeLike", "dtype"), ("RandomNormal", "dtype"), ("RandomUniform", "dtype"), ("SequenceEmpty", "dtype")})
_NUMBERS = (math.sqrt(2), math.sqrt(1 / 2), math.sqrt(2 / math.pi), 0.044715)
_SQUARES = frozenset({"Pow", "ReduceMean"})
_SCALES = frozenset({"Div", "Mul"})


def has_halves(model: onnx.ModelProto) -> bool:
    """Tells whether a model declares, holds, or casts to 16-bit floats."""
    graphs = list(all_graphs(model.graph))
    nodes = [*(node for graph in graphs for node in graph.node), *(node for function in model.functions for node in function.node)]
    return (
        any(tensor.data_type in HALVES for tensor in tensors_of(model))
        or any(not HALVES.isdisjoint(_types(graph).values()) for graph in graphs)
        or any(attribute.i in HALVES for node in nodes for attribute in node.attribute if (node.op_type, attribute.name) in _TYPED)
    )


def needs_its_files(model: onnx.ModelProto) -> bool:
    """Tells whether a model has external data that may decide sizes: those that are no floats."""
    external = (tensor for tensor in tensors_of(model) if tensor.data_location == TensorProto.EXTERNAL)
    return any(tensor.data_type not in FLOATS for tensor in external)


def half_of(model: onnx.ModelProto) -> int:
    """Returns the data type of a model's halves; 0 if it has none, or both kinds. `model` has the types
    of its values.
    """
    halves = {*(tensor.data_type for tensor in tensors_of(model)), *_known(model).values()} & HALVES
    return halves.pop() if len(halves) == 1 else 0


def in_single(message: bytes, zeros: int, typed: onnx.ModelProto, half: int) -> tuple[bytes, int]:
    """Returns a message of `with_stand_ins`, and its zeros, with float32 in place of the data type
    `half`. `typed` is the same model with the types of its values. All external data become zeros.
    """
    model = onnx.ModelProto.FromString(message)
    known = _known(typed)
    for graph in all_graphs(model.graph):
        _mark_casts(graph, known, half)
        _retype_results(graph.node, half)
        for info in (*graph.input, *graph.output, *graph.value_info):
            _retype(info.type, half, _FLOAT)
    for function in model.functions:
        _retype_results(function.node, half)
    for tensor in tensors_of(model):
        if tensor.data_type == half:
            _widen(tensor)
        if tensor.data_location == TensorProto.EXTERNAL:
            refer(tensor, ZEROS, 0, tensor_bytes(tensor))
            zeros = max(zeros, tensor_bytes(tensor))
    return model.SerializeToString(), zeros


def in_halves(message: bytes, typed: onnx.ModelProto, half: int) -> bytes:
    """Returns a runtime's graph of what `in_single` returned, with the data type `half` in place of
    float32, but for values that are float32 in the model itself.
    """
    model = onnx.ModelProto.FromString(message)
    single = {name for name, kind in _known(typed).items() if kind == _FLOAT}
    for graph in all_graphs(model.graph):
        for node in graph.node:
            if node.op_type == "Atan" and node.name.startswith(_MARK):
                target = int(node.name.removeprefix(_MARK).partition(" ")[0])
                node.op_type = "Cast"
                node.attribute.append(helper.make_attribute("to", target))
        for info in (*graph.input, *graph.output, *graph.value_info):
            if info.name not in single:
                _retype(info.type, _FLOAT, half)
        for tensor in graph.initializer:
            if tensor.data_type == _FLOAT and tensor.name not in single:
                _narrow(tensor, half)
    return model.SerializeToString()


def _types(graph: onnx.GraphProto) -> dict[str, int]:
    """The data types that a graph declares, by value."""
    found = {info.name: info.type.tensor_type.elem_type for info in (*graph.input, *graph.output, *graph.value_info)}
    return found | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _known(typed: onnx.ModelProto) -> dict[str, int]:
    """The data types of all values, by name."""
    return {name: kind for graph in all_graphs(typed.graph) for name, kind in _types(graph).items()}


def _mark_casts(graph: onnx.GraphProto, known: Mapping[str, int], half: int) -> None:
    """Replaces the Casts between halves and float32 that stand for a kernel of their own."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    makers: dict[str, onnx.NodeProto] = {}
    for node in graph.node:
        makers.update(dict.fromkeys(node.output, node))
        for name in node.input:
            readers.setdefault(name, []).append(node)
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            constants.update(node.output)
        if node.op_type != "Cast" or normal_domain(node.domain) or len(node.input) != 1 or node.input[0] in constants:
            continue  # of a constant, another number would come of it
        target = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
        if {known.get(node.input[0]), target} == {half, _FLOAT} and len(node.output) == 1 and not _is_within(node, target, readers, makers):
            node.op_type, node.name = "Atan", f"{_MARK}{target} for {node.output[0]}"
            del node.attribute[:]


def _is_within(cast: onnx.NodeProto, target: int, readers: Mapping[str, list[onnx.NodeProto]], makers: Mapping[str, onnx.NodeProto]) -> bool:
    """Whether a normalization includes a Cast: one to float32 whose result is squared or averaged, or
    one from float32 of a quotient that is scaled.
    """
    after = readers.get(cast.output[0], [])
    if target == _FLOAT:
        return any(node.op_type in _SQUARES or (node.op_type == "Mul" and node.input[0] == node.input[1]) for node in after)
    maker = makers.get(cast.input[0])
    return maker is not None and maker.op_type in _SCALES and bool(after) and all(node.op_type == "Mul" for node in after)


def _retype_results(nodes: Iterable[onnx.NodeProto], half: int) -> None:
    """Lets nodes that choose the data type of their result choose float32 in place of `half`."""
    for node in nodes:
        for attribute in node.attribute:
            if attribute.i == half and (node.op_type, attribute.name) in _TYPED:
                attribute.i = _FLOAT


def _retype(kind: onnx.TypeProto, old: int, new: int) -> None:
    """Changes the data type of the elements in a type."""
    match kind.WhichOneof("value"):
        case "tensor_type":
            if kind.tensor_type.elem_type == old:
                kind.tensor_type.elem_type = new
        case "sequence_type":
            _retype(kind.sequence_type.elem_type, old, new)
        case "optional_type":
            _retype(kind.optional_type.elem_type, old, new)
        case _:
            pass


def _widen(tensor: TensorProto) -> None:
    """Turns a tensor of halves into one of float32. The runtime knows a Gelu by numbers in it, which
    halves can only round.
    """
    if tensor.data_location == TensorProto.EXTERNAL:
        tensor.data_type = _FLOAT
        return
    halves = numpy_helper.to_array(tensor)
    array = halves.astype(np.float32)
    if array.size == 1:
        meant = (number for number in _NUMBERS if np.float64(number).astype(halves.dtype) == halves.reshape(()))
        array = np.full_like(array, next(meant, array.item()))
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _narrow(tensor: TensorProto, half: int) -> None:
    """Turns a tensor of float32, which may have no elements, into one of halves."""
    if tensor.raw_data or tensor.float_data:
        array = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(half))
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    tensor.data_type = half

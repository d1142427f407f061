"""Loaded models: the graph is in memory, external data stay in their files.

The input is a path or a proto. The output is a `LoadedModel`, and facts about it that need no run:
the outputs that depend on an input or on a random operator, and the size of its weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import onnx
import onnx.numpy_helper
from onnx.external_data_helper import ExternalDataInfo

from eqsat.frozen import frozen
from eqsat.model.lean_file import load_lean
from eqsat.model.names import stored_names
from eqsat.model.prepare import default_inputs, lists_weights, without_default_inputs
from eqsat.model.read import normalize
from eqsat.model.sources import Source, path_of
from eqsat.model.tensors import is_apart, read_tensor, tensor_bytes
from eqsat.model.weight_file import WeightFile
from eqsat.operators import RANDOM
from eqsat.verification.input_ranges import nodes_in_order

COPIES = 3
"""A weight is in memory as the file's bytes, as a tensor, and perhaps in a kernel's packed form."""

_SMALL = 1024
_PIECE = 1 << 22


@frozen(slots=False)
class LoadedModel:
    """A model whose external data stay in files under `folder`, perhaps in a file of `weights`."""

    proto: onnx.ModelProto
    folder: Path | None = None
    weights: WeightFile | None = None


def load_models(original: Source, optimized: Source) -> tuple[LoadedModel, LoadedModel]:
    """Returns the models of two sources; raises `InputError` if one of them holds no readable model.

    Large weights are apart in one file, where those of one name and content are one. Weights that the
    original lists as inputs are constants if they are no inputs of the optimized model.
    """
    a = load_model(original, "original")
    b = load_model(optimized, "optimized", a.weights)
    if lists_weights(a.proto) and not {value.name for value in b.proto.graph.input}.intersection(default_inputs(a.proto)):
        without_default_inputs(a.proto)
    if a.weights is not None and b.weights is not None:
        known = {tensor.name: tensor for tensor in a.proto.graph.initializer if is_apart(tensor)}
        for tensor in b.proto.graph.initializer:
            twin = known.get(tensor.name)
            if twin is not None and is_apart(tensor) and same_content(twin, a.folder, tensor, b.folder):
                tensor.CopyFrom(twin)
    return a, b


def load_model(source: Source, name: str = "source", beside: WeightFile | None = None) -> LoadedModel:
    """Returns the model of a source; raises `InputError` if it holds no readable model.

    `name` is the argument that the source was given for. Large weights are apart, in the file `beside`
    those of another model if it is given.
    """
    proto, folder, weights = load_lean(source, name, beside)
    folder = folder if weights is None else weights.folder
    return LoadedModel(normalize(proto, folder, path_of(source)).proto, folder, weights)


def weight_bytes(proto: onnx.ModelProto) -> int:
    """Returns the number of bytes of all tensors that a model holds or refers to."""
    total = sum(tensor_bytes(tensor) for tensor in proto.graph.initializer)
    for node in nodes_in_order(proto.graph.node):
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                total += tensor_bytes(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                total += sum(tensor_bytes(tensor) for tensor in attribute.g.initializer)
    return total


def held_bytes(weights: Iterable[onnx.TensorProto]) -> int:
    """Returns the bytes that weights take in a process which runs models that have them. Those that are
    apart in the file of a run take none: they are mapped, and the system drops them where memory is
    short.
    """
    return COPIES * sum(tensor_bytes(tensor) for tensor in weights if not is_apart(tensor))


def running_bytes(*models: onnx.ModelProto) -> int:
    """Returns the bytes that all weights of some models take in a process which runs them."""
    inside = sum(weight_bytes(model) - sum(map(tensor_bytes, model.graph.initializer)) for model in models)
    return COPIES * inside + held_bytes(tensor for model in models for tensor in model.graph.initializer)


def same_content(a: onnx.TensorProto, a_folder: Path | None, b: onnx.TensorProto, b_folder: Path | None) -> bool:
    """Tells whether two tensors hold the same bits. It reads external data piece by piece."""
    if a.data_type != b.data_type or a.dims != b.dims:
        return False
    if not _is_external(a) and not _is_external(b):
        return a.raw_data == b.raw_data if a.HasField("raw_data") and b.HasField("raw_data") else _bytes(a) == _bytes(b)
    if _is_external(a) and _is_external(b) and a_folder == b_folder and list(a.external_data) == list(b.external_data):
        return True
    return all(x == y for x, y in zip_longest(_pieces(a, a_folder), _pieces(b, b_folder)))


def _is_external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def _bytes(tensor: onnx.TensorProto) -> bytes:
    if read_tensor(tensor, None).hollow:
        return b""
    array = onnx.numpy_helper.to_array(tensor)
    return repr(array.tolist()).encode() if array.dtype == object else array.tobytes()


def _pieces(tensor: onnx.TensorProto, folder: Path | None) -> Iterator[bytes]:
    """Yields the bytes of a tensor in pieces of equal length.

    It yields nothing if the data cannot be read, or are outside the model's folder.
    """
    if not _is_external(tensor):
        data = _bytes(tensor)
        yield from (data[start : start + _PIECE] for start in range(0, len(data), _PIECE))
        return
    where = ExternalDataInfo(tensor)
    home = (folder or Path()).resolve()
    path = (home / where.location).resolve()
    left = tensor_bytes(tensor)
    if not path.is_relative_to(home) or not path.is_file():
        yield f"no data at {path}".encode()
        return
    with path.open("rb") as file:
        file.seek(where.offset or 0)
        while left > 0 and (piece := file.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece


def without_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with large initializers turned into typed inputs.

    This is enough for shape inference.
    """
    light = onnx.ModelProto(ir_version=max(proto.ir_version, 4), opset_import=proto.opset_import, functions=proto.functions)
    graph = light.graph
    graph.name = proto.graph.name
    graph.node.extend(proto.graph.node)
    graph.input.extend(proto.graph.input)
    graph.output.extend(proto.graph.output)
    graph.value_info.extend(proto.graph.value_info)
    inputs = {value.name for value in proto.graph.input}
    for tensor in proto.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL and tensor_bytes(tensor) <= _SMALL:
            graph.initializer.append(tensor)
        elif tensor.name not in inputs:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return light


def depends_on_inputs(proto: onnx.ModelProto) -> frozenset[str]:
    """Returns the outputs that some input without a default value reaches."""
    given = set(stored_names(proto.graph))
    return _reached(proto.graph, [value.name for value in proto.graph.input if value.name not in given])


def random_outputs(proto: onnx.ModelProto) -> frozenset[str]:
    """Returns the outputs that a random operator reaches, in bodies and functions too."""
    functions, false = _random_functions(proto), _false_constants(proto.graph)
    start: list[str] = []
    for node in proto.graph.node:
        if any((inner.domain, inner.op_type) in functions or _is_random(inner, false) for inner in nodes_in_order([node])):
            start.extend(node.output)
    return _reached(proto.graph, start) if start else frozenset()


def _random_functions(proto: onnx.ModelProto) -> set[tuple[str, str]]:
    calls = {(function.domain, function.name): list(nodes_in_order(function.node)) for function in proto.functions}
    found = {key for key, nodes in calls.items() if any(_is_random(node, frozenset()) for node in nodes)}
    callers: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for key, nodes in calls.items():
        for node in nodes:
            callers.setdefault((node.domain, node.op_type), []).append(key)
    waiting = sorted(found)
    while waiting:
        for caller in callers.get(waiting.pop(), ()):
            if caller not in found:
                found.add(caller)
                waiting.append(caller)
    return found


def _is_random(node: onnx.NodeProto, false: frozenset[str]) -> bool:
    if node.op_type == "Dropout":
        return len(node.input) > 2 and node.input[2] != "" and node.input[2] not in false
    return node.op_type in RANDOM


def _reached(graph: onnx.GraphProto, values: Iterable[str]) -> frozenset[str]:
    """Returns the outputs of the graph that `values` reach, through captures of bodies too."""
    consumers: dict[str, list[int]] = {}
    for number, node in enumerate(graph.node):
        for inner in nodes_in_order([node]):
            for name in inner.input:
                consumers.setdefault(name, []).append(number)
            for attribute in inner.attribute:
                for name in _body_outputs(attribute):
                    consumers.setdefault(name, []).append(number)
    waiting = list(values)
    reached = set(waiting)
    while waiting:
        for number in consumers.get(waiting.pop(), ()):
            for name in graph.node[number].output:
                if name not in reached:
                    reached.add(name)
                    waiting.append(name)
    return frozenset(value.name for value in graph.output if value.name in reached)


def _body_outputs(attribute: onnx.AttributeProto) -> Iterable[str]:
    """Yields the values that a body returns and none of its nodes touches."""
    for body in (attribute.g, *attribute.graphs):
        yield from (value.name for value in body.output)


def _false_constants(graph: onnx.GraphProto) -> frozenset[str]:
    """Returns the names of boolean constants that are false."""
    tensors = [(tensor.name, tensor) for tensor in graph.initializer]
    for node in nodes_in_order(graph.node):
        if node.op_type == "Constant":
            tensors.extend((node.output[0], attribute.t) for attribute in node.attribute if attribute.name == "value")
    return frozenset(
        name
        for name, tensor in tensors
        if tensor.data_type == onnx.TensorProto.BOOL
        and tensor.data_location != onnx.TensorProto.EXTERNAL
        and not any(tensor.raw_data)
        and not any(tensor.int32_data)
    )

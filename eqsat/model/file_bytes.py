"""The bytes that graphs and models take in a file, external data included. Weights that are apart
count as in the file that will be written.

protobuf counts the bytes of a message by writing it, so here the elements of weights are never part
of a counted message.
"""

from __future__ import annotations

import math

import onnx
from onnx import TensorProto

from eqsat.model.model import all_graphs, copy_fields
from eqsat.model.tensors import header, is_apart, tensor_bytes

_SMALL = 1 << 12  # bytes of a tensor up to which it is counted as it is
_LARGE = 1 << 23  # bytes of weights from which counting takes longer than going through the tensors


def written_bytes(graph: onnx.GraphProto) -> int:
    """Returns the bytes that a graph takes on disk. Tensors that share external bytes count once."""
    return _own_bytes(graph) + _external_bytes(graph)


def model_bytes(model: onnx.ModelProto) -> int:
    """Returns the bytes that a model takes on disk. Tensors that share external bytes count once."""
    rest = onnx.ModelProto()
    copy_fields(model, rest, {"graph"})
    return rest.ByteSize() + _framed(_own_bytes(model.graph)) + _external_bytes(model.graph)


def _external_bytes(graph: onnx.GraphProto) -> int:
    """Returns the bytes of the external data of a graph and its bodies."""
    external: dict[tuple[tuple[str, str], ...], int] = {}
    for current in all_graphs(graph):
        for tensor in current.initializer:
            if tensor.data_location == TensorProto.EXTERNAL and not is_apart(tensor):
                place = tuple(sorted((entry.key, entry.value) for entry in tensor.external_data))
                external[place] = tensor_bytes(tensor)
    return sum(external.values())


def _own_bytes(graph: onnx.GraphProto) -> int:
    """Returns the bytes of the message of a graph."""
    large = [tensor for tensor in graph.initializer if tensor.HasField("raw_data") or is_apart(tensor)]
    if sum(map(tensor_bytes, large)) < _LARGE:
        return graph.ByteSize()
    rest = onnx.GraphProto()
    copy_fields(graph, rest, {"initializer"})
    return rest.ByteSize() + sum(_framed(_message_bytes(tensor)) for tensor in graph.initializer)


def _message_bytes(tensor: TensorProto) -> int:
    """Returns the bytes of the message of a tensor."""
    size = tensor_bytes(tensor)
    if is_apart(tensor) or (size > _SMALL and tensor.HasField("raw_data")):
        return header(tensor).ByteSize() + _framed(size)
    return tensor.ByteSize()


def _framed(size: int) -> int:
    """Returns the bytes of a field of `size` bytes: its number, its length and its content."""
    return 1 + max(1, math.ceil(size.bit_length() / 7)) + size

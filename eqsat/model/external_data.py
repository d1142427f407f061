"""External data: which tensors of a model are in files, and how their bytes get from file to file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

import onnx
from onnx import TensorProto

from eqsat.model.model import attribute_graphs
from eqsat.model.tensors import External, is_apart


def tensors_of(model: onnx.ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of a model: initializers and attributes, in bodies and functions too."""
    graphs = [model.graph, *(graph for info in model.training_info for graph in (info.initialization, info.algorithm))]
    nodes = [node for function in model.functions for node in function.node]
    for function in model.functions:
        for attribute in function.attribute_proto:
            if attribute.HasField("t"):
                yield attribute.t
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield sparse.values
                yield sparse.indices
            nodes.extend(graph.node)
            continue
        node = nodes.pop()
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        graphs.extend(graph for _, graph in attribute_graphs(node))


def has_external_data(model: onnx.ModelProto) -> bool:
    """Tell whether any tensor of a model is external."""
    return any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors_of(model))


def has_foreign_data(model: onnx.ModelProto) -> bool:
    """Tell whether any tensor of a model is in a file that is not a run's own."""
    return any(tensor.data_location == TensorProto.EXTERNAL and not is_apart(tensor) for tensor in tensors_of(model))


def refer(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    """Let a tensor without elements refer to a range of a file, in place of any other."""
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def copy_range(source: External, file: BinaryIO) -> None:
    """Append a range of one file to another, inside the kernel where the system supports it."""
    with source.path.open("rb") as data:
        file.flush()
        left, position = source.length, source.offset
        while left:
            done = _copy_some(data.fileno(), file.fileno(), position, left)
            if not done:
                raise OSError(f"{source.path} ended early")
            left -= done
            position += done


def _copy_some(source: int, target: int, position: int, count: int) -> int:
    if hasattr(os, "copy_file_range"):
        with contextlib.suppress(OSError):
            at = os.lseek(target, 0, os.SEEK_CUR)
            done = os.copy_file_range(source, target, min(count, 1 << 30), position, at)
            os.lseek(target, at + done, os.SEEK_SET)
            return done
    os.lseek(source, position, os.SEEK_SET)
    return os.write(target, os.read(source, min(count, 1 << 20)))

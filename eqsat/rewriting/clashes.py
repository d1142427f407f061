"""Clashes of names: constants whose names ONNX Runtime gives to constants of its own.

Its optimizations name what they store: `gemm_input_shape`, and with a number where the name is taken.
A model that went through them once has such names, and where the reader of such a constant goes away,
ONNX Runtime (1.32) takes the name for free and refuses the model. What its optimizations store there
are sizes, so integers.
"""

from __future__ import annotations

import re

import onnx
from onnx import TensorProto

from eqsat.model.names import FreshNames, all_names, rename_uses

_SIZES = TensorProto.INT64
_TAKEN = re.compile(r"gemm_(input|output)_shape(_token_\d+)?")


def may_clash(graph: onnx.GraphProto) -> bool:
    """Tells whether a graph stores something under a name that ONNX Runtime is known to give."""
    return any(_TAKEN.fullmatch(tensor.name) for tensor in graph.initializer)


def with_other_names(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with other names of the sizes that its main graph stores, apart from those
    that can be fed or are outputs.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    fresh, fixed = FreshNames(all_names(graph)), {info.name for info in (*graph.input, *graph.output)}
    other = {tensor.name: fresh.make("sizes") for tensor in graph.initializer if tensor.data_type == _SIZES and tensor.name not in fixed}
    for tensor in graph.initializer:
        tensor.name = other.get(tensor.name, tensor.name)
    rename_uses(graph, other)
    return result

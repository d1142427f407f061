"""Stand-ins: a model whose large weights are one file of zeros, where only their types matter.

The runtime's graph does not depend on the elements of large tensors of floats, so nobody has to
copy them to ask for it.
"""

from __future__ import annotations

import onnx
from onnx import TensorProto

from eqsat.model.model import without_weights
from eqsat.model.tensors import tensor_bytes
from eqsat.runtime.own_graph import ZEROS

_LARGE = 1 << 16  # bytes
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def with_stand_ins(model: onnx.ModelProto) -> tuple[bytes, int]:
    """Returns a model as a message whose large weights are at the front of the external file
    `ZEROS`, and the bytes that this file needs. A model with external data of its own stays as it
    is, and needs none.
    """
    weights = model.graph.initializer
    largest = max(map(_size, weights), default=0)
    if largest < _LARGE or any(tensor.data_location == TensorProto.EXTERNAL for tensor in weights):
        return model.SerializeToString(), 0
    found = without_weights(model)
    for tensor in weights:
        if not stands_in(tensor):
            found.graph.initializer.append(tensor)
            continue
        other = found.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, data_location=TensorProto.EXTERNAL)
        other.dims.extend(tensor.dims)
        for key, value in (("location", ZEROS), ("offset", "0"), ("length", str(_size(tensor)))):
            other.external_data.add(key=key, value=value)
    return found.SerializeToString(), largest


def stands_in(tensor: TensorProto) -> bool:
    """Tells whether a tensor is so large, and of such a type, that only its type matters."""
    return _size(tensor) >= _LARGE


def _size(tensor: TensorProto) -> int:
    """Returns the bytes of a tensor of floats, or 0 for any other tensor."""
    return tensor_bytes(tensor) if tensor.data_type in _FLOATS else 0

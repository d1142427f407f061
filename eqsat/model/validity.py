"""Validity by onnx's checker and type inference: a valid model must not become an invalid one."""

from __future__ import annotations

import onnx

from eqsat.model.model import without_weights
from eqsat.model.tensors import tensor_bytes
from eqsat.runtime.onnx_passes import infers

_SMALL = 1024  # bytes


def is_valid(proto: onnx.ModelProto) -> bool:
    """Tell whether onnx's checker accepts the model."""
    try:
        onnx.checker.check_model(light(proto))  # pyright: ignore[reportUnknownMemberType]
    except (onnx.checker.ValidationError, ValueError, RuntimeError, MemoryError):
        return False
    return True


def is_typed(proto: onnx.ModelProto) -> bool:
    """Tell whether onnx infers the types of the model without an error."""
    return infers(light(proto))


def light(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Turn large and external weights into inputs, so that they are not copied."""
    found = without_weights(proto)
    known = {info.name for info in proto.graph.input}
    for tensor in proto.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL and tensor_bytes(tensor) <= _SMALL:
            found.graph.initializer.append(tensor)
        elif tensor.name not in known:
            found.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return found

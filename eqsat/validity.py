"""Validity by onnx's checker, for comparing a result with its original: a valid model must not become an invalid one."""

from __future__ import annotations

import onnx


def is_valid(proto: onnx.ModelProto) -> bool:
    """Whether onnx's checker accepts the model; external data are not looked at."""
    light = onnx.ModelProto()
    light.CopyFrom(proto)
    external = [tensor for tensor in light.graph.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]
    if external:
        # The checker would look for the data beside the current folder: such weights stand as inputs of their type.
        known = {info.name for info in light.graph.input}
        inputs = [onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in external if t.name not in known]
        light.graph.input.extend(inputs)
        kept = [tensor for tensor in light.graph.initializer if tensor.data_location != onnx.TensorProto.EXTERNAL]
        copies = [onnx.TensorProto.FromString(tensor.SerializeToString()) for tensor in kept]
        del light.graph.initializer[:]
        light.graph.initializer.extend(copies)
    try:
        onnx.checker.check_model(light)  # pyright: ignore[reportUnknownMemberType]
    except (onnx.checker.ValidationError, ValueError, RuntimeError, MemoryError):
        return False
    return True

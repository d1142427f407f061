"""Declared sizes: tells a runtime the sizes of values that it does not find out itself.

ONNX Runtime adds a residual in the Conv before it, or makes one LayerNormalization of its parts, only
where it knows that sizes are equal, and it follows named sizes through few operators. The facts of
eqsat follow them further. No rule tells sizes, since they are no nodes: `value_info` has them.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx

from eqsat.cost.sizing import named_types
from eqsat.dimension_names import sizes_of

DECLARED = "sizes of inner values are declared, which lets the runtime fuse more"
"""The note on a model with declared sizes."""


def with_declared_sizes(model: onnx.ModelProto, inferred: Callable[[], onnx.ModelProto], most: float) -> onnx.ModelProto:
    """Returns the model with the sizes of values that a runtime may not find out, or the model itself if
    there are none or they take more than `most` bytes. `inferred` returns the model with the types that
    ONNX's inference finds. It is asked only where sizes of inputs are open.
    """
    if not any(isinstance(size, str) for info in model.graph.input for size in sizes_of(info.type.tensor_type, info.name)):
        return model
    outputs = {info.name for info in model.graph.output}
    written = {info.name: info.type for info in model.graph.value_info}
    found = {name: kind for name, kind in named_types(inferred().graph, model.opset_import).items() if name not in outputs and written.get(name) != kind}
    if not found or sum(len(name) + kind.ByteSize() for name, kind in found.items()) > most:
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    kept = [info for info in model.graph.value_info if info.name not in found]
    del result.graph.value_info[:]
    result.graph.value_info.extend(kept)
    for name, kind in found.items():
        result.graph.value_info.add(name=name, type=kind)
    return result

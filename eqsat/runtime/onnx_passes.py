"""The passes of onnx over whole models: inference, inlining, opset conversion.

A pass is native code, which an untrusted model can crash or keep busy forever. So passes run in the
worker process. A pass returns a model, or raises a `NativeFailure` that gives the reason in one
line.
"""

from __future__ import annotations

import itertools
import math

import onnx
from onnx import helper

from eqsat.runtime.worker import RemoteError, WorkerDied, WorkerTimeout, shared

_SECONDS = 60.0
_MOST_VECTORS = 1 << 22  # the elements of vectors that onnx follows through the nodes: about a second
_LONG = 1 << 16  # the elements of a vector that takes some milliseconds each time
_GROWING = frozenset({"ConstantOfShape", "Expand", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"})


class NativeFailure(Exception):
    """A pass of the onnx package refused the model, crashed on it, or took too long."""


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the value types that onnx infers."""
    return _run("infer", model)


def infers(model: onnx.ModelProto) -> bool:
    """Tell whether onnx infers the types of the whole model without an error.

    Runtimes do not load a model for which it fails.
    """
    try:
        _run("infer_strictly", model)
    except NativeFailure:
        return False
    return True


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with every call of a local function replaced by the function's body."""
    return _run("inline", model) if model.functions else model


def converted(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Return the model in another opset of the default domain."""
    return _run("convert", model, opset)


def _run(name: str, model: onnx.ModelProto, *arguments: int) -> onnx.ModelProto:
    try:
        data = model.SerializeToString()
    except ValueError:
        raise NativeFailure("the model is larger than one message can be") from None
    try:
        answer: bytes = shared().call(f"eqsat.runtime.onnx_passes:{name}", data, *arguments, timeout=_SECONDS)
    except (RemoteError, WorkerDied, WorkerTimeout) as error:
        raise NativeFailure(str(error)) from None
    return onnx.ModelProto.FromString(answer)


def infer(model: bytes) -> bytes:
    """Run `inferred` on bytes, inside the worker."""
    from onnx import shape_inference

    proto = onnx.ModelProto.FromString(model)
    _open(proto.graph)
    if not _is_small(proto.graph):
        typed = shape_inference.infer_shapes(proto)
        if _has_all_sizes(typed.graph) or _vectors(typed.graph) > _MOST_VECTORS:
            return typed.SerializeToString()
    return shape_inference.infer_shapes(proto, data_prop=True).SerializeToString()


def infer_strictly(model: bytes) -> bytes:
    """Run inference on bytes inside the worker and raise onnx's errors."""
    from onnx import shape_inference

    proto = onnx.ModelProto.FromString(model)
    if _is_small(proto.graph) or _vectors(shape_inference.infer_shapes(proto, check_type=True, strict_mode=True).graph) <= _MOST_VECTORS:
        shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    return b""


def _open(graph: onnx.GraphProto) -> None:
    """Make negative sizes unknown, which some exporters write for these: onnx would compute with them."""
    for value in itertools.chain(graph.input, graph.value_info, graph.output):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_value < 0:
                size.Clear()


def _is_small(graph: onnx.GraphProto) -> bool:
    """Tell whether a graph declares no tensor that would be a long vector, and no node makes a larger one."""
    values = itertools.chain(graph.input, graph.value_info, graph.output)
    sizes = itertools.chain((tensor.dims for tensor in graph.initializer), map(_sizes, values))
    return all(math.prod(known or ()) < _LONG for known in sizes) and _GROWING.isdisjoint([node.op_type for node in graph.node])


def _has_all_sizes(graph: onnx.GraphProto) -> bool:
    """Tell whether each result of a node is a tensor whose sizes are numbers. Elements tell no more of these."""
    known = {value.name for values in (graph.value_info, graph.output) for value in values if _sizes(value) is not None}
    return all(name in known for node in graph.node for name in node.output if name)


def _vectors(graph: onnx.GraphProto) -> int:
    """Return the sizes of all vectors that nodes read, bodies included.

    Where onnx follows elements through nodes, it makes a message for each element of a vector, known
    or not, each time that a node reads it.
    """
    lengths = {tensor.name: tensor.dims[0] for tensor in graph.initializer if len(tensor.dims) == 1}
    for values in (graph.input, graph.value_info, graph.output):
        for value in values:
            sizes = _sizes(value)
            if sizes is not None and len(sizes) == 1:
                lengths[value.name] = sizes[0]
    found = sum(lengths.get(name, 0) for node in graph.node for name in node.input)
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        found += sum(map(_vectors, attribute.graphs)) + (_vectors(attribute.g) if attribute.HasField("g") else 0)
    return found


def _sizes(value: onnx.ValueInfoProto) -> list[int] | None:
    """Return the sizes of a tensor if all are numbers."""
    tensor = value.type.tensor_type
    known = tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim)
    return [dim.dim_value for dim in tensor.shape.dim] if known else None


def inline(model: bytes) -> bytes:
    """Run `inlined` on bytes, inside the worker."""
    from onnx import inliner

    return inliner.inline_local_functions(onnx.ModelProto.FromString(model)).SerializeToString()


def convert(model: bytes, opset: int) -> bytes:
    """Run `converted` on bytes, inside the worker."""
    from onnx import version_converter

    return version_converter.convert_version(onnx.ModelProto.FromString(model), opset).SerializeToString()


def newest_opset() -> int:
    """Return the newest default opset of onnx and ONNX Runtime, inside the worker."""
    from onnx import defs

    from eqsat.runtime.session import OnnxRuntimeSession

    info = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", info[:1], info[1:])
    for opset in range(defs.onnx_opset_version(), 1, -1):
        try:
            OnnxRuntimeSession(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString())
        except Exception:
            continue
        return opset
    raise RuntimeError("ONNX Runtime takes no opset at all")

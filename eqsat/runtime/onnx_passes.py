"""The passes of onnx over whole models: inference, inlining, opset conversion.

A pass is native code, which an untrusted model can crash or keep busy forever. So passes run in the
worker process. A pass returns a model, or raises a `NativeFailure` that gives the reason in one
line.
"""

from __future__ import annotations

import onnx
from onnx import helper

from eqsat.runtime.worker import RemoteError, WorkerDied, WorkerTimeout, shared

_SECONDS = 60.0


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

    return shape_inference.infer_shapes(onnx.ModelProto.FromString(model), data_prop=True).SerializeToString()


def infer_strictly(model: bytes) -> bytes:
    """Run inference on bytes inside the worker and raise onnx's errors."""
    from onnx import shape_inference

    shape_inference.infer_shapes(onnx.ModelProto.FromString(model), check_type=True, strict_mode=True, data_prop=True)
    return b""


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

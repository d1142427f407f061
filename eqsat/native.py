"""onnx's own passes over whole models: inference, inlining, opset conversion. They are native code that an untrusted
model can bring down or keep busy for ever, so they run in the worker process.

Comes in: a model. Goes out: the model that the pass makes, or a `NativeFailure` that says in one line why there is none.
"""

from __future__ import annotations

import onnx
from onnx import helper

from eqsat.worker import RemoteError, WorkerDied, WorkerTimeout, shared

_SECONDS = 60.0


class NativeFailure(Exception):
    """A pass of the onnx package refused the model, crashed on it, or took too long."""


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types that onnx infers of its values."""
    return _run("infer", model)


def infers(model: onnx.ModelProto) -> bool:
    """Whether onnx infers the types of the whole model without an objection; runtimes do not load one of which it does not."""
    try:
        _run("infer_strictly", model)
    except NativeFailure:
        return False
    return True


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every call of a local function replaced by the function's body."""
    return _run("inline", model) if model.functions else model


def converted(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """The model in another opset of the default domain."""
    return _run("convert", model, opset)


def _run(name: str, model: onnx.ModelProto, *arguments: int) -> onnx.ModelProto:
    try:
        data = model.SerializeToString()
    except ValueError:
        raise NativeFailure("the model is larger than one message can be") from None
    try:
        answer: bytes = shared().call(f"eqsat.native:{name}", data, *arguments, timeout=_SECONDS)
    except (RemoteError, WorkerDied, WorkerTimeout) as error:
        raise NativeFailure(str(error)) from None
    return onnx.ModelProto.FromString(answer)


def infer(model: bytes) -> bytes:
    """Runs inside the worker: `inferred` on bytes."""
    from onnx import shape_inference

    return shape_inference.infer_shapes(onnx.ModelProto.FromString(model), data_prop=True).SerializeToString()


def infer_strictly(model: bytes) -> bytes:
    """Runs inside the worker: raises what onnx objects to."""
    from onnx import shape_inference

    shape_inference.infer_shapes(onnx.ModelProto.FromString(model), check_type=True, strict_mode=True, data_prop=True)
    return b""


def inline(model: bytes) -> bytes:
    """Runs inside the worker: `inlined` on bytes."""
    from onnx import inliner

    return inliner.inline_local_functions(onnx.ModelProto.FromString(model)).SerializeToString()


def convert(model: bytes, opset: int) -> bytes:
    """Runs inside the worker: `converted` on bytes."""
    from onnx import version_converter

    return version_converter.convert_version(onnx.ModelProto.FromString(model), opset).SerializeToString()


def newest_opset() -> int:
    """Runs inside the worker: the newest opset of the default domain that both onnx and ONNX Runtime know."""
    from onnx import defs

    from eqsat.runtime import OnnxRuntimeSession

    info = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", info[:1], info[1:])
    for opset in range(defs.onnx_opset_version(), 1, -1):
        try:
            OnnxRuntimeSession(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString())
        except Exception:
            continue
        return opset
    raise RuntimeError("ONNX Runtime takes no opset at all")

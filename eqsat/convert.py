"""Opsets: a model comes in, the same model in another opset goes out, by the onnx package's own converter.

The converter is native code that untrusted models can bring down, so it runs in the worker process.
"""

from __future__ import annotations

import onnx
from onnx import helper

from eqsat.errors import InputError
from eqsat.operators import normal_domain
from eqsat.worker import RemoteError, Worker, WorkerDied, WorkerTimeout

_SECONDS = 120.0


def convert(proto: onnx.ModelProto, opset: str | int, worker: Worker) -> onnx.ModelProto:
    """`proto` in the wanted opset of the default domain: "keep", "latest" (that both onnx and the runtime know), or a number."""
    if opset == "keep":
        return proto
    if opset != "latest" and not str(opset).isdigit():
        raise InputError(f"an opset is 'keep', 'latest' or a number, not '{opset}'")
    newest: int = worker.call("eqsat.convert:newest_opset")
    wanted = newest if opset == "latest" else int(opset)
    if not 7 <= wanted <= newest:
        raise InputError(f"opset {wanted} is not one of 7 to {newest}, which onnx and ONNX Runtime know here")
    if [item.version for item in proto.opset_import if normal_domain(item.domain) == ""] == [wanted]:
        return proto
    if proto.functions:
        raise InputError(f"a model with local functions can not be converted to opset {wanted}; inline them first (--inline)")
    try:
        answer: bytes = worker.call("eqsat.convert:converted", proto.SerializeToString(), wanted, timeout=_SECONDS)
    except (RemoteError, WorkerDied, WorkerTimeout) as error:
        raise InputError(f"the model can not be converted to opset {wanted}: {error}") from None
    result = onnx.ModelProto.FromString(answer)
    needed = helper.find_min_ir_version_for(list(result.opset_import), ignore_unknown=True)
    if proto.ir_version < 4 <= needed:
        # From IR version 4 on an initializer that is listed among the inputs is no constant any more.
        stored = {tensor.name for tensor in result.graph.initializer}
        inputs = [info for info in result.graph.input if info.name not in stored]
        del result.graph.input[:]
        result.graph.input.extend(inputs)
    result.ir_version = max(proto.ir_version, needed)
    return result


def converted(model: bytes, opset: int) -> bytes:
    """Runs inside the worker: the serialized model in another opset."""
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

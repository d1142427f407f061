"""The graph that ONNX Runtime makes of a model: its fusions, its layouts, and the type of each value.

ONNX Runtime fuses nodes and converts layouts when it loads a model. It can write the graph that it
will run, without the types of the values between; those it tells of a second session, which makes
every value an output. The graph comes back without the data of its weights.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eqsat.runtime.session import import_onnxruntime, restamp
from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout

if TYPE_CHECKING:
    import onnx

_SECONDS = 120.0
_SMALL = 1024  # bytes of an initializer that may decide a shape


class NoGraph(Exception):
    """ONNX Runtime does not load the model, crashes on it, or takes too long."""


def own_graph(model: bytes, folder: str | None, library: str | None, sizes: Mapping[str, int], usual: int, worker: Worker) -> bytes:
    """The graph that ONNX Runtime would run, as a serialized model.

    Its values have types in `value_info`, with `sizes` for the names of dimensions and `usual` for
    all others. Its large initializers have a type and no data. `folder` holds external data, and
    `library` custom operators. Raises `NoGraph`.
    """
    try:
        found: bytes = worker.call("eqsat.runtime.own_graph:make_own_graph", model, folder, library, dict(sizes), usual, timeout=_SECONDS)
    except (RemoteError, WorkerDied, WorkerTimeout) as error:
        raise NoGraph(str(error)) from None
    return found


# The rest of this module runs in the worker.


def make_own_graph(model: bytes, folder: str | None, library: str | None, sizes: Mapping[str, int], usual: int) -> bytes:
    """Does what `own_graph` promises; raises ONNX Runtime's exceptions."""
    import onnx

    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "graph.onnx")
        while True:
            try:
                _session(model, folder, library, path)
                break
            except Exception as refusal:
                older = restamp(model, str(refusal))
                if older is None:
                    raise
                model = older
        found = onnx.load_model(path, load_external_data=False)  # pyright: ignore[reportUnknownMemberType]
    _drop_weights(found.graph)
    _fix_sizes(found.graph, sizes, usual)
    del found.graph.value_info[:]
    found.graph.value_info.extend(_types(found, library))
    return found.SerializeToString()


def _session(model: bytes, folder: str | None, library: str | None, path: str | None) -> Any:
    """A session as users open one, on one thread; it writes its graph to `path`. Without a path,
    it runs the graph as it stands.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.disable_prepacking", "1")  # no kernel runs here
    if path is None:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    else:
        options.optimized_model_filepath = path
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.path.abspath(folder))
    if library is not None:
        options.register_custom_ops_library(library)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _drop_weights(graph: onnx.GraphProto) -> None:
    """Takes the data from large initializers."""
    for tensor in graph.initializer:
        if tensor.ByteSize() > _SMALL:
            dtype, dims, name = tensor.data_type, list(tensor.dims), tensor.name
            tensor.Clear()
            tensor.data_type, tensor.name = dtype, name
            tensor.dims.extend(dims)


def _fix_sizes(graph: onnx.GraphProto, sizes: Mapping[str, int], usual: int) -> None:
    """Gives every dimension of an input a number."""
    for info in graph.input:
        if info.type.HasField("tensor_type"):
            for dimension in info.type.tensor_type.shape.dim:
                if not dimension.HasField("dim_value"):
                    dimension.dim_value = sizes.get(dimension.dim_param, usual)


def _types(model: onnx.ModelProto, library: str | None) -> list[onnx.ValueInfoProto]:
    """The types of all values that nodes make, as ONNX Runtime infers them."""
    import onnx
    from onnx import helper

    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    graph = asked.graph
    given = {info.name for info in graph.input}
    bare = [tensor for tensor in graph.initializer if not _has_data(tensor)]
    kept = [tensor for tensor in graph.initializer if _has_data(tensor)]
    graph.input.extend(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in bare if tensor.name not in given)
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.output[:]
    graph.output.extend(onnx.ValueInfoProto(name=name) for node in graph.node for name in node.output if name)
    found: list[onnx.ValueInfoProto] = []
    for value in _session(asked.SerializeToString(), None, library, None).get_outputs():
        dtype = _DTYPES.get(value.type)
        if dtype is not None and value.shape is not None:
            shape = [size if isinstance(size, int) else None for size in value.shape]
            found.append(helper.make_tensor_value_info(value.name, onnx.TensorProto.DataType.Value(dtype), shape))
    return found


def _has_data(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor holds its elements."""
    return any(descriptor.name.endswith("_data") for descriptor, _ in tensor.ListFields()) or 0 in tensor.dims


_NAMES = "FLOAT DOUBLE FLOAT16 BFLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL STRING INT4 UINT4"
_DTYPES = {f"tensor({name.lower()})": name for name in _NAMES.split()}

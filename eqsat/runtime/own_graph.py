"""ONNX Runtime's own graph of a model: its fusions, layouts, types, and the time of each node.

ONNX Runtime fuses nodes and converts layouts when it loads a model. It can write the graph that it
will run, but without the types of inner values. A second session, in which every value is an
output, gives these types. The graph comes back without the data of its weights.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from eqsat.dimension_names import free_name
from eqsat.runtime.session import feed, import_onnxruntime, with_known_versions
from eqsat.runtime.worker import RemoteError, Worker, WorkerDied, WorkerTimeout

if TYPE_CHECKING:
    import onnx

_TO_LOAD = 30.0  # seconds; each run asks for several graphs, and goes on without an answer
_TO_MEASURE = 120.0  # seconds, for all runs of a model
ZEROS = "zeros"
"""The name of an external file of zeros, which stands for weights if only their types matter."""

_SMALL = 1024  # the most bytes of a constant that may decide a shape
_WEIGHTS = "weights"
_KERNEL = "_kernel_time"


class NoGraph(Exception):
    """ONNX Runtime does not load the model, crashes on it, or takes too long."""


def own_graph(
    model: bytes, zeros: int, folder: str | None, library: str | None, sizes: Mapping[str, int], usual: int, worker: Worker, layouts: bool = True
) -> bytes:
    """Returns the graph that ONNX Runtime would run, as a serialized model.

    Its values have types in `value_info`, with `sizes` for the names of dimensions and `usual` for
    all others. Scalars have no shape there. Its large initializers have a type and no data. `folder` holds external data, or
    else the model's external data are `zeros` bytes of zeros in the file `ZEROS`. `library` holds
    custom operators. Without `layouts`, the graph is that of other devices than CPUs: without the
    last optimizations, which change layouts for the kernels of CPUs. Raises `NoGraph`.
    """
    found: bytes = _called(worker, _TO_LOAD, "make_own_graph", model, zeros, folder, library, dict(sizes), usual, layouts)
    return found


def loads(model: bytes, zeros: int, folder: str | None, library: str | None, worker: Worker) -> bool:
    """Tells whether ONNX Runtime loads a model, of any sizes, as users' sessions do. The arguments are
    those of `own_graph`.
    """
    try:
        _called(worker, _TO_LOAD, "try_to_load", model, zeros, folder, library)
    except NoGraph:
        return False
    return True


def measured_graph(
    model: bytes, folder: str | None, library: str | None, sizes: Mapping[str, int], usual: int, feeds: Mapping[str, Any], runs: int, worker: Worker
) -> tuple[bytes, list[float]]:
    """Returns the graph of `own_graph`, and the mean seconds of each of its nodes.

    The mean is over `runs` runs on `feeds`, on one thread, without a node's slowest tenth. Raises
    `NoGraph`.
    """
    asked = (model, folder, library, dict(sizes), usual, dict(feeds), runs)
    found: tuple[bytes, list[float]] = _called(worker, _TO_MEASURE, "make_measured_graph", *asked)
    return found


def _called(worker: Worker, seconds: float, function: str, *arguments: Any) -> Any:
    try:
        return worker.call(f"eqsat.runtime.own_graph:{function}", *arguments, timeout=seconds)
    except (RemoteError, WorkerDied, WorkerTimeout) as error:
        raise NoGraph(str(error)) from None


# The rest of this module runs in the worker.


def make_own_graph(model: bytes, zeros: int, folder: str | None, library: str | None, sizes: Mapping[str, int], usual: int, layouts: bool = True) -> bytes:
    """Does what `own_graph` promises. Raises ONNX Runtime's exceptions."""
    return _typed(_loaded(model, zeros, folder, library, layouts), library, sizes, usual)


def try_to_load(model: bytes, zeros: int, folder: str | None, library: str | None) -> None:
    """Loads the model as `loads` asks. Raises ONNX Runtime's exceptions."""
    _loaded(model, zeros, folder, library, layouts=True)


def _loaded(model: bytes, zeros: int, folder: str | None, library: str | None, layouts: bool) -> onnx.ModelProto:
    """Returns the graph of `own_graph` without types. Raises ONNX Runtime's exceptions."""
    with tempfile.TemporaryDirectory() as place:
        if zeros:
            folder = place
            with open(os.path.join(place, ZEROS), "wb") as file:
                file.truncate(zeros)  # takes no room on most disks
        return _written(model, folder, library, place, apart=True, layouts=layouts)


def make_measured_graph(
    model: bytes, folder: str | None, library: str | None, sizes: Mapping[str, int], usual: int, feeds: Mapping[str, Any], runs: int
) -> tuple[bytes, list[float]]:
    """Does what `measured_graph` promises. Raises ONNX Runtime's exceptions."""
    with tempfile.TemporaryDirectory() as place:
        graph = _written(model, folder, library, place)
        for number, node in enumerate(graph.graph.node):
            node.name = str(number)
        seconds = _profiled(graph, library, feeds, runs, place)
        return _typed(graph, library, sizes, usual), seconds


def _written(model: bytes, folder: str | None, library: str | None, place: str, apart: bool = False, layouts: bool = True) -> onnx.ModelProto:
    """Returns the graph that ONNX Runtime writes for a model, by a file in the folder `place`.

    If `apart`, the large weights go into another file, which nobody reads. `layouts` as in `own_graph`.
    """
    import onnx

    path = os.path.join(place, "graph.onnx")
    if apart and os.name == "posix":
        # Writing hundreds of megabytes takes longer than all the rest.
        os.symlink(os.devnull, os.path.join(place, _WEIGHTS))
    with_known_versions(model, lambda known: _session(known, folder, library, writes=path, apart=apart, layouts=layouts))
    return onnx.load_model(path, load_external_data=not apart)  # pyright: ignore[reportUnknownMemberType]


def _bodies(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yields all bodies in a graph."""
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield body
                yield from _bodies(body)


def _typed(graph: onnx.ModelProto, library: str | None, sizes: Mapping[str, int], usual: int) -> bytes:
    """Returns the graph with the types of its values and without weights."""
    _drop_weights(graph.graph)
    fix_sizes(graph.graph, sizes, usual)
    del graph.graph.value_info[:]
    for name, kind in _types(graph, library):
        graph.graph.value_info.add(name=name, type=kind)
    return graph.SerializeToString()


def _profiled(graph: onnx.ModelProto, library: str | None, feeds: Mapping[str, Any], runs: int, place: str) -> list[float]:
    """Returns the mean seconds of each node in the runtime's profile. Node names are numbers."""
    session = _session(graph.SerializeToString(), None, library, profile=os.path.join(place, "profile"))
    for _ in range(runs):
        session.run(None, {name: feed(value) for name, value in feeds.items()})
    with open(session.end_profiling(), encoding="utf-8") as file:
        events = json.load(file)
    taken: dict[str, list[int]] = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith(_KERNEL):
            taken.setdefault(event["name"].removesuffix(_KERNEL), []).append(event["dur"])
    means: list[float] = []
    for number in range(len(graph.graph.node)):
        kept = sorted(taken.get(str(number), [0]))
        kept = kept[: max(1, len(kept) * 9 // 10)]
        means.append(sum(kept) / len(kept) * 1e-6)
    return means


def _session(
    model: bytes,
    folder: str | None,
    library: str | None,
    writes: str | None = None,
    apart: bool = False,
    layouts: bool = True,
    profile: str | None = None,
    folds: bool = False,
) -> Any:
    """Returns a session on one thread.

    If it `writes` its graph, with the large weights `apart`, it optimizes the model as users'
    sessions do, or without `layouts` as those on another device. If it `folds`, it computes small constants, and so knows the sizes that a model
    computes from others. Otherwise it runs the graph as it is.
    """
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if profile is not None:
        options.enable_profiling, options.profile_file_prefix = True, profile
    else:
        options.add_session_config_entry("session.disable_prepacking", "1")  # no kernel runs
    if folds:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.add_session_config_entry("optimization.constant_folding_max_output_size_in_bytes", str(_SMALL))
    elif writes is None:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    else:
        options.optimized_model_filepath = writes
        if not layouts:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        if apart:
            options.add_session_config_entry("session.optimized_model_external_initializers_file_name", _WEIGHTS)
            options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", str(_SMALL))
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.path.abspath(folder))
    if library is not None:
        options.register_custom_ops_library(library)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _drop_weights(graph: onnx.GraphProto) -> None:
    """Removes the data of large initializers. Those of bodies in files are zeros, since they cannot become
    inputs.
    """
    for body in _bodies(graph):
        for tensor in body.initializer:
            if tensor.data_location == tensor.EXTERNAL:
                length = next(int(entry.value) for entry in tensor.external_data if entry.key == "length")
                tensor.ClearField("data_location")
                tensor.ClearField("external_data")
                tensor.raw_data = bytes(length)
    for tensor in graph.initializer:
        if tensor.data_location == tensor.EXTERNAL or tensor.ByteSize() > _SMALL:
            dtype, dims, name = tensor.data_type, list(tensor.dims), tensor.name
            tensor.Clear()
            tensor.data_type, tensor.name = dtype, name
            tensor.dims.extend(dims)


def fix_sizes(graph: onnx.GraphProto, sizes: Mapping[str, int], usual: int) -> None:
    """Gives every dimension of an input a number: that of its name, made up if it has none, or the usual one."""
    for info in graph.input:
        if info.type.HasField("tensor_type"):
            for axis, dimension in enumerate(info.type.tensor_type.shape.dim):
                if name := free_name(dimension, info.name, axis):
                    dimension.dim_value = sizes.get(name, usual)


def _types(model: onnx.ModelProto, library: str | None) -> list[tuple[str, onnx.TypeProto]]:
    """Returns the types that ONNX Runtime infers for all values that nodes compute, by name."""
    import onnx
    from onnx import helper

    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    graph = asked.graph
    given = {info.name for info in graph.input}
    bare: list[onnx.TensorProto] = []
    kept: list[onnx.TensorProto] = []
    for tensor in graph.initializer:
        (kept if _has_data(tensor) else bare).append(tensor)
    graph.input.extend(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in bare if tensor.name not in given)
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.output[:]
    for node in graph.node:
        for name in node.output:
            if name:
                graph.output.add(name=name)
    found: list[tuple[str, onnx.TypeProto]] = []
    if not graph.output:
        return found  # a graph without nodes
    known: dict[tuple[str, tuple[int | None, ...]], onnx.TypeProto] = {}  # layers repeat their types
    for value in _session(asked.SerializeToString(), None, library, folds=True).get_outputs():
        dtype = _DTYPES.get(value.type)
        if dtype is not None:
            # ONNX Runtime shows an unknown rank as it shows a scalar.
            shape = tuple(size if isinstance(size, int) else None for size in value.shape)
            kind = known.get((dtype, shape))
            if kind is None:
                kind = known[dtype, shape] = helper.make_tensor_type_proto(onnx.TensorProto.DataType.Value(dtype), shape or None)
            found.append((value.name, kind))
    return found


def _has_data(tensor: onnx.TensorProto) -> bool:
    """Tells whether a tensor holds its elements."""
    return any(descriptor.name.endswith("_data") for descriptor, _ in tensor.ListFields()) or 0 in tensor.dims


_NAMES = "FLOAT DOUBLE FLOAT16 BFLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL STRING INT4 UINT4"
_DTYPES = {f"tensor({name.lower()})": name for name in _NAMES.split()}

"""Run models: in ONNX Runtime without its optimizations, or in the ONNX reference.

The reference runs models for which ONNX Runtime has no kernel. The functions take a serialized
model and its inputs. Outputs are numpy arrays (with ml_dtypes for types that numpy lacks), lists,
dictionaries, None, or `Sparse`. Only the worker (eqsat/runtime/worker.py) calls these functions: a
runtime that crashes on an untrusted model takes its process down.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from eqsat.frozen import frozen

if TYPE_CHECKING:
    import onnx


ONNXRUNTIME = "onnxruntime"
REFERENCE = "reference"

Loaded = TypeVar("Loaded")

# Element types that numpy lacks. Their arrays pass through an OrtValue as raw bytes.
_EXTENDED = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn",
    "int4": "int4",
    "uint4": "uint4",
    "int2": "int2",
    "uint2": "uint2",
}
_PACKED_BITS = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}


@frozen(slots=False)
class Sparse:
    """A sparse tensor in coordinate format."""

    shape: tuple[int, ...]
    values: np.ndarray
    indices: np.ndarray


class Session(Protocol):
    """A model that is ready to run."""

    engine: str

    def run(self, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> list[Any]:
        """Return the outputs `names`, or all outputs in order; raise any error of the engine."""
        ...


def evaluate(
    model: bytes,
    feeds: Mapping[str, Any] | None = None,
    output_names: Sequence[str] | None = None,
    custom_op_library: str | None = None,
    folder: str | None = None,
) -> list[Any]:
    """Run a serialized model on `feeds`; its external data are under `folder`."""
    return open_session(model, folder, custom_op_library).run(feeds or {}, output_names)


def open_session(model: bytes, folder: str | None = None, custom_op_library: str | None = None, threads: int = 1) -> Session:
    """Open the model in ONNX Runtime, or in the reference if ONNX Runtime refuses it.

    Raise ONNX Runtime's exception if neither engine takes the model.
    """
    try:
        return open_runtime(model, folder, custom_op_library, threads)
    except Exception as refusal:
        try:
            return ReferenceSession(model, folder)
        except Exception:
            raise refusal from None


def open_runtime(model: bytes, folder: str | None = None, custom_op_library: str | None = None, threads: int = 1) -> Session:
    """Open the model in ONNX Runtime; raise its exception if it refuses the model.

    The versions that it declares may be newer than ONNX Runtime knows, as in `with_known_versions`.
    """
    return with_known_versions(model, lambda known: OnnxRuntimeSession(known, folder, custom_op_library, threads))


def with_known_versions(model: bytes, load: Callable[[bytes], Loaded]) -> Loaded:
    """Return what `load` makes of the model; raise its exception if ONNX Runtime refuses the model.

    A model may declare an opset or IR version that ONNX Runtime does not know yet, without using
    anything new. Its versions are then lowered, and `load` is called again.
    """
    while True:
        try:
            return load(model)
        except Exception as refusal:
            older = _restamp(model, str(refusal))
            if older is None:
                raise
            model = older


class OnnxRuntimeSession:
    """A session of ONNX Runtime on the CPU. It runs the model as written, without optimizations."""

    engine = ONNXRUNTIME

    def __init__(self, model: bytes, folder: str | None = None, custom_op_library: str | None = None, threads: int = 1) -> None:
        onnxruntime = import_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Each run frees its memory, because weights and activations count against the limit.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # A kernel for packed weights may round differently from the kernel for computed values.
        # Only the models may make a difference.
        options.add_session_config_entry("session.disable_prepacking", "1")
        if folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.path.abspath(folder))
        if custom_op_library is not None:
            options.register_custom_ops_library(custom_op_library)
        self._session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        outputs = self._session.get_outputs()
        self._types: dict[str, str] = {output.name: output.type for output in outputs}
        self.shapes: dict[str, Sequence[int | str | None]] = {output.name: output.shape for output in outputs}
        """The sizes of each output: numbers, names or None."""

    def run(self, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> list[Any]:
        wanted = list(self._types) if names is None else list(names)
        raw = [name for name in wanted if _element(self._types[name]) in _EXTENDED]
        plain = [name for name in wanted if _element(self._types[name]) not in _EXTENDED]
        results: dict[str, Any] = {}
        if plain:
            values = self._session.run(plain, {name: feed(value) for name, value in feeds.items()})
            results |= {name: _plain(value, self._types[name]) for name, value in zip(plain, values, strict=True)}
        if raw:
            values = self._session.run_with_ort_values(raw, {name: _value(value) for name, value in feeds.items()})
            results |= zip(raw, map(_extended, values), strict=True)
        return [results[name] for name in wanted]


class ReferenceSession:
    """A session of the onnx reference evaluator: slow, and complete except for custom operators."""

    engine = REFERENCE

    def __init__(self, model: bytes, folder: str | None = None) -> None:
        import onnx
        from onnx.reference import ReferenceEvaluator

        proto = onnx.load_model_from_string(model)
        if folder is not None:
            onnx.load_external_data_for_model(proto, folder)
        self._evaluator: Any = ReferenceEvaluator(proto)

    def run(self, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> list[Any]:
        # A mean of nothing is NaN, of which numpy would tell the user.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            results = self._evaluator.run(None if names is None else list(names), dict(feeds))
        return [np.asarray(result) if isinstance(result, np.generic) else result for result in results]  # pyright: ignore[reportUnknownArgumentType]


def import_onnxruntime() -> Any:
    """Return the module of ONNX Runtime, which has no type stubs."""
    return importlib.import_module("onnxruntime")


def _element(type_name: str) -> str:
    return type_name.removeprefix("tensor(").removesuffix(")") if type_name.startswith("tensor(") else ""


def feed(value: Any) -> Any:
    """Convert a value to the form that ONNX Runtime's `run` takes."""
    special = isinstance(value, np.ndarray) and str(value.dtype) in _EXTENDED.values()  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    return _value(value) if special else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _value(value: np.ndarray) -> Any:
    """Convert an array to an OrtValue."""
    onnxruntime = import_onnxruntime()
    if value.dtype.name not in _EXTENDED.values():
        return onnxruntime.OrtValue.ortvalue_from_numpy(np.asarray(value, order="C"))
    from onnx import helper

    code = helper.np_dtype_to_tensor_dtype(value.dtype)
    result = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(value.shape), int(code))
    data = _pack(np.asarray(value, order="C")).tobytes()
    if data:
        ctypes.memmove(result.data_ptr(), data, len(data))
    return result


def _extended(value: Any) -> np.ndarray:
    """Convert an OrtValue of an extended element type to an array."""
    import ml_dtypes

    name = _EXTENDED[_element(value.data_type())]
    dtype = np.dtype(getattr(ml_dtypes, name))
    shape = tuple(value.shape())
    size = value.tensor_size_in_bytes()
    data = np.frombuffer(ctypes.string_at(value.data_ptr(), size) if size else b"", np.uint8)
    return _unpack(data, dtype, int(np.prod(shape))).reshape(shape)


def _pack(array: np.ndarray) -> np.ndarray:
    """Return the bytes of an array in ONNX's layout.

    Sub-byte elements share a byte; the first takes the low bits.
    """
    bits = _PACKED_BITS.get(array.dtype.name)
    if bits is None:
        return array
    per_byte = 8 // bits
    codes = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    codes = np.pad(codes, (0, -codes.size % per_byte)).reshape(-1, per_byte)
    return np.bitwise_or.reduce(codes << (np.arange(per_byte, dtype=np.uint8) * bits), axis=1)


def _unpack(data: np.ndarray, dtype: np.dtype[Any], count: int) -> np.ndarray:
    bits = _PACKED_BITS.get(dtype.name)
    if bits is None:
        return data.view(dtype)
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    codes = ((data[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count]
    if dtype.name.startswith("int"):
        return ((codes ^ (1 << (bits - 1))).astype(np.int8) - (1 << (bits - 1))).astype(dtype)
    return codes.astype(np.uint8).view(dtype)


def _plain(value: Any, type_name: str) -> Any:
    """Convert an output of `run` to plain Python and numpy objects."""
    if "map(" in type_name and "tensor(float)" in type_name:
        return _with_singles(value)
    if type(value).__name__ != "SparseTensor":
        return value
    if value.format.name != "ORT_SPARSE_COO":
        raise NotImplementedError(f"a sparse output in the format {value.format.name}")
    return Sparse(tuple(value.dense_shape()), np.array(value.values()), np.array(value.get_coo_data().indices()))


def _with_singles(value: Any) -> Any:
    """Convert the floats in maps to their own type: ONNX Runtime returns Python's, which are doubles, and
    rounding would be judged as that of doubles.
    """
    if isinstance(value, list):
        return [_with_singles(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: np.float32(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


def _restamp(model: bytes, refusal: str) -> bytes | None:
    """Lower the model's versions to the newest that ONNX Runtime knows.

    Return None if the versions are not the reason of the refusal, or if lowering would change the
    meaning.
    """
    import onnx

    newest_ir = re.search(r"max supported IR version: (\d+)", refusal)
    newest_opset = re.search(r"support for domain (\S+) is till opset (\d+)", refusal)
    if newest_ir is None and newest_opset is None:
        return None
    proto = onnx.load_model_from_string(model)
    if newest_ir is not None:
        proto.ir_version = int(newest_ir[1])
    if newest_opset is not None and not _limit_opset(proto, newest_opset[1], int(newest_opset[2])):
        return None
    return proto.SerializeToString()


def _limit_opset(proto: onnx.ModelProto, domain: str, newest: int) -> bool:
    """Lower the imports of `domain` to `newest`.

    Return False if no import is newer, or if an operator in use has changed since.
    """
    from onnx import defs

    names = ("", "ai.onnx") if domain == "ai.onnx" else (domain,)
    scopes = [(proto.opset_import, proto.graph.node), *((function.opset_import, function.node) for function in proto.functions)]
    lowered = False
    for imports, nodes in scopes:
        for entry in imports:
            if entry.domain in names and entry.version > newest:
                for node in _nodes(nodes):
                    if node.domain in names and defs.get_schema(node.op_type, entry.version, names[0]).since_version > newest:
                        return False
                entry.version = newest
                lowered = True
    return lowered


def _nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield all nodes, including those in bodies."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        for attribute in node.attribute:
            stack.extend(attribute.g.node)
            for graph in attribute.graphs:
                stack.extend(graph.node)

"""Shared parts of the black-box tests.

They are models from ONNX text, the runtime with its optimizations off, and comparison by bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'


def parse(text: str, header: str = HEADER) -> onnx.ModelProto:
    """Returns a model from ONNX text.

    Text that begins with a graph gets a header of IR version 8 and opset 17. Functions may follow
    the graph.
    """
    text = text.strip()
    return onnx.parser.parse_model(text if text.startswith("<") else f"{header}\n{text}")


@cache
def runtime() -> Any:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    return onnxruntime


def session(model: onnx.ModelProto | str) -> Any:
    """Returns an ONNX Runtime session that runs exactly the model's nodes, on one thread."""
    options = runtime().SessionOptions()
    options.graph_optimization_level = runtime().GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    source = model if isinstance(model, str) else model.SerializeToString()
    return runtime().InferenceSession(source, options, providers=["CPUExecutionProvider"])


def loads(model: onnx.ModelProto) -> bool:
    """Tells whether ONNX Runtime loads the model as users do, with its optimizations."""
    options = runtime().SessionOptions()
    options.log_severity_level = 4
    try:
        runtime().InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


def run(model: onnx.ModelProto | str, feeds: Mapping[str, Any] | None = None) -> list[Any]:
    """Returns the outputs of the model on ONNX Runtime."""
    return session(model).run(None, dict(feeds or {}))


def run_reference(model: onnx.ModelProto, feeds: Mapping[str, Any] | None = None) -> list[Any]:
    """Returns the outputs of the model on ONNX's reference implementation."""
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(model).run(None, dict(feeds or {})))  # type: ignore[arg-type]


def same(left: Any, right: Any) -> bool:
    """Tells whether two values have the same type and the same bits. Any NaN equals any NaN."""
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if left is None or right is None:
        return left is right
    left, right = np.asarray(left), np.asarray(right)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind in "OUS":
        return left.tolist() == right.tolist()
    if left.tobytes() == right.tobytes():
        return True
    if left.dtype.kind in "biu":
        return False
    if left.dtype.kind == "c":
        return same(left.real.copy(), right.real.copy()) and same(left.imag.copy(), right.imag.copy())
    bits = f"u{left.dtype.itemsize}"
    unordered = (left != left) & (right != right)
    return bool(np.all((np.ascontiguousarray(left).view(bits) == np.ascontiguousarray(right).view(bits)) | unordered))


def assert_same(original: onnx.ModelProto, optimized: onnx.ModelProto, *feeds: Mapping[str, Any]) -> None:
    """Checks that both models give the same bits for each of the feeds, on ONNX Runtime."""
    before, after = session(original), session(optimized)
    for feed in feeds:
        expected, actual = before.run(None, dict(feed)), after.run(None, dict(feed))
        for value, left, right in zip(original.graph.output, expected, actual, strict=True):
            assert same(left, right), f"output {value.name}: {left!r} became {right!r}"


def nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yields every node, those of bodies and of model-local functions included."""
    pending: list[Any] = [model.graph, *model.functions]
    while pending:
        for node in pending.pop().node:
            yield node
            pending.extend(attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH)
            pending.extend(graph for attribute in node.attribute for graph in attribute.graphs)


def operators(model: onnx.ModelProto) -> Counter[str]:
    """Returns how often each operator occurs in the model, constants aside."""
    return Counter(node.op_type for node in nodes(model) if node.op_type != "Constant")


def initializers(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def signature(values: Sequence[onnx.ValueInfoProto]) -> list[tuple[str, int, list[str | int | None] | None]]:
    """Returns the name, element type and dimensions of graph inputs or outputs.

    Symbolic dimensions are strings, unknown ones None.
    """
    result: list[tuple[str, int, list[str | int | None] | None]] = []
    for value in values:
        tensor = value.type.tensor_type
        dims = [dim.dim_param or (dim.dim_value if dim.HasField("dim_value") else None) for dim in tensor.shape.dim] if tensor.HasField("shape") else None
        result.append((value.name, tensor.elem_type, dims))
    return result


def random_feeds(model: onnx.ModelProto, sizes: Mapping[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """Returns random values for every input without an initializer.

    `sizes` gives the symbolic dimensions; unknown ones are 1.
    """
    generator = np.random.default_rng(seed)
    feeds: dict[str, np.ndarray] = {}
    constant = {tensor.name for tensor in model.graph.initializer}
    for name, element, dims in signature(model.graph.input):
        if name in constant:
            continue
        shape = [sizes[dim] if isinstance(dim, str) else (1 if dim is None else dim) for dim in dims or []]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
        if dtype.kind == "f":
            feeds[name] = generator.standard_normal(shape).astype(dtype)
        elif dtype.kind == "b":
            feeds[name] = generator.random(shape) < 0.5
        else:
            feeds[name] = generator.integers(0, 4, shape).astype(dtype)
    return feeds


def weighted(graph: str, opset: Any = 18, **weights: Any) -> onnx.ModelProto:
    """Returns a model in ONNX text whose initializers are arrays."""
    proto = parse(graph, f'<ir_version: 8, opset_import: ["": {opset}]>')
    proto.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items())
    return proto

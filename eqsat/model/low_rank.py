"""Low rank: weights of products as two thinner weights, with an error that the caller bounds.

This is no rewrite, because results change beyond rounding. So it is a step of its own that a caller
asks for, and never a part of an optimization: the model that it makes is the original of what comes
after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from eqsat.facts.fact import FLOATS
from eqsat.frozen import frozen
from eqsat.model.model import all_graphs
from eqsat.model.names import FreshNames, all_names
from eqsat.model.tensors import from_array, read_tensor
from eqsat.operators import normal_domain

_OLD = 4  # the first IR version whose constants are no inputs
_TRIES = 3  # ranks: with the first, rounding to the data type may take the error beyond the bound
_Matrix = np.ndarray[Any, np.dtype[np.float64]]


@frozen
class Factored:
    """A weight that became two: `shape` of a row's elements before and behind the product, and its `rank`.

    `error` bounds what changed, as a share of the weight: the ratio of the largest singular values.
    """

    weight: str
    shape: tuple[int, int]
    rank: int
    error: float


def factor(proto: onnx.ModelProto, folder: Path | None, bound: float, progress: Callable[[str], None]) -> list[Factored]:
    """Replaces weights of products by two each, in place, and returns them; `folder` has external data.

    A weight is replaced where all its uses are MatMuls and Gemms of the main graph that multiply rows
    with it, in one orientation, and where the two take fewer multiplications. No product changes by
    more than `bound` times the most that its weight can make of a row of that length.
    """
    graph = proto.graph
    uses = {} if proto.training_info else dict(_uses(proto))
    fresh = FreshNames(all_names(graph))
    found: list[Factored] = []
    thin: dict[str, tuple[str, str]] = {}
    for tensor in list(graph.initializer):
        if tensor.name not in uses or tensor.data_type not in FLOATS or len(tensor.dims) != 2 or min(tensor.dims) < 2:
            continue
        stored = read_tensor(tensor, folder)
        if stored.hollow:
            continue
        progress(f"factor {tensor.name}")
        array = stored.array()
        weight = array.T if uses[tensor.name] else array
        two = _two(weight.astype(np.float64), array.dtype, bound)
        if two is None:
            continue
        first, second, error = two
        names = fresh.make(f"{tensor.name}_in"), fresh.make(f"{tensor.name}_out")
        thin[tensor.name] = names
        found.append(Factored(tensor.name, (weight.shape[0], weight.shape[1]), first.shape[1], error))
        for name, part in zip(names, (first, second), strict=True):
            graph.initializer.append(from_array(part, name).proto)
            if proto.ir_version < _OLD:
                graph.input.append(helper.make_tensor_value_info(name, tensor.data_type, part.shape))
    if found:
        _write(graph, thin, fresh)
    return found


def _uses(proto: onnx.ModelProto) -> Iterator[tuple[str, bool]]:
    """Yields the constants that are nothing but weights of products, and whether they are transposed."""
    graph = proto.graph
    given = {info.name for info in graph.input} if proto.ir_version >= _OLD else set[str]()
    given.update(annotation.tensor_name for annotation in graph.quantization_annotation)
    reads = Counter(name for inner in all_graphs(graph) for node in inner.node for name in node.input)
    reads.update(info.name for inner in all_graphs(graph) for info in inner.output)
    weights: dict[str, list[bool]] = {}
    for node in graph.node:
        settings = {item.name: item.i for item in node.attribute}
        rows = node.op_type == "MatMul" or (node.op_type == "Gemm" and not settings.get("transA", 0))
        if rows and len(node.input) > 1 and not normal_domain(node.domain):
            weights.setdefault(node.input[1], []).append(bool(settings.get("transB", 0)))
    for name, turned in weights.items():
        if name not in given and len(turned) == reads[name] and len(set(turned)) == 1:
            yield name, turned[0]


def _two(weight: _Matrix, dtype: np.dtype[Any], bound: float) -> tuple[_Matrix, _Matrix, float] | None:
    """Returns the two weights of the lowest rank whose error is within the bound, and that error; None if
    they take as many multiplications as the weight.
    """
    rows, columns = weight.shape
    if not np.isfinite(weight).all():
        return None
    left, values, right = np.linalg.svd(weight, full_matrices=False)
    if not values[0]:
        return None
    allowed = bound * float(values[0])
    left_over = 0.0
    for _ in range(_TRIES):
        rank = max(1, int((values > allowed - left_over).sum()))
        if rank * (rows + columns) >= rows * columns:
            return None
        roots = np.sqrt(values[:rank])
        first, second = (left[:, :rank] * roots).astype(dtype), (roots[:, None] * right[:rank]).astype(dtype)
        # The largest singular value of a sum is at most the sum of both, and that of a matrix at most
        # the root of the sum of its squares.
        exact = (left[:, :rank] * values[:rank]) @ right[:rank]
        left_over = float(np.linalg.norm(first.astype(np.float64) @ second.astype(np.float64) - exact))
        if values[rank] + left_over <= allowed:
            return first, second, float((values[rank] + left_over) / values[0])
    return None


def _write(graph: onnx.GraphProto, thin: dict[str, tuple[str, str]], fresh: FreshNames) -> None:
    """Puts two products in the place of each product with a factored weight, and drops these weights."""
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if len(node.input) > 1 and node.input[1] in thin:
            first, second = thin[node.input[1]]
            between = fresh.make(f"{node.input[1]}_between")
            nodes.append(helper.make_node("MatMul", [node.input[0], first], [between], fresh.make(f"{node.name or node.output[0]}_in")))
            node.input[0], node.input[1] = between, second
            kept = [item for item in node.attribute if item.name != "transB"]
            del node.attribute[:]
            node.attribute.extend(kept)
        nodes.append(node)
    for field in (graph.initializer, graph.input):
        for place in reversed(range(len(field))):
            if field[place].name in thin:
                del field[place]
    written = onnx.GraphProto(node=nodes)
    del graph.node[:]
    graph.node.extend(written.node)

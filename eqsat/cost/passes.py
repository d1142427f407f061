"""Counters of passes over elements: elementwise operators, reductions, norms, sorts, transforms."""

from __future__ import annotations

import itertools
import math

from eqsat.cost.shaped import USUAL_SIZE, PricedNode, Shaped
from eqsat.cost.workload import (
    Counter,
    Shape,
    Work,
    at,
    axis_of,
    broadcast,
    broadcast_runs,
    element_size,
    integer,
    integers,
    largest,
    length,
    moved,
    result,
    single_steps,
    size_of,
    traffic,
)

_MANY_RUNS = 4  # runs of reduced axes and of others for which ONNX Runtime has no kernel with vectors


def elementwise(operations: float, kind: str = "elementwise") -> Counter:
    """Counts a number of operations for each element of the first output."""

    def count(node: PricedNode) -> Work:
        elements = result(node)
        return Work(kind, traffic(node), operations * elements, elements, broadcast_runs(node.outputs, node.inputs, elements))

    return count


def broadcasting(operations: float) -> Counter:
    """Counts as `elementwise`, with the steps of operands that broadcast."""

    plain = elementwise(operations)

    def count(node: PricedNode) -> Work:
        work = plain(node)
        return work._replace(rows=max(work.rows, single_steps(node, work.elements)))

    return count


def variadic(node: PricedNode) -> Work:
    """Counts Sum, Max, Min and Mean: one operation per element for each input but the first."""
    elements = result(node)
    count = max(sum(tensor is not None for tensor in node.inputs) - 1, 1) * elements
    runs = broadcast_runs(node.outputs, node.inputs, elements)
    return Work("elementwise", traffic(node), count, count, max(runs, single_steps(node, elements)))


def power(node: PricedNode) -> Work:
    """Counts Pow: one or two products if the exponent is one constant, usually a small one, or else
    a Log and an Exp.
    """
    exponent = at(node.inputs, 1)
    simple = exponent is not None and exponent.constant and exponent.elements == 1
    return broadcasting(2.0 if simple else 25.0)(node)


def update(operations: float) -> Counter:
    """Counts steps of optimizers: a number of operations for each element that they read."""

    def count(node: PricedNode) -> Work:
        elements = float(sum(tensor.elements for tensor in node.inputs if tensor is not None))
        return Work("elementwise", moved(node.inputs) * 2.0, operations * elements, elements)

    return count


def reduction(operations: float) -> Counter:
    """Counts operators that make one element of many: a number of operations for each element read.

    The class depends on the last axis. In "reduction" it is reduced, so joined elements lie
    together. In the others it stays. In front of the reduced axes lies nothing in "reduction_outer",
    axes of size 1 alone in "reduction_single", and several blocks in "reduction_middle", each of
    them a row. In "reduction_apart" reduced axes and others alternate so often that no kernel has vectors.
    """

    def count(node: PricedNode) -> Work:
        source = largest(node.inputs[:1])
        output = at(node.outputs, 0)
        elements = float(source.elements)
        results = rows = float(output.elements) if output is not None else 1.0
        axes = integers(node, "axes") or ()
        rank = len(source.shape) if source.shape is not None else 0
        kind = "reduction"
        if axes and rank and -1 not in axes and rank - 1 not in axes:
            kind = "reduction_outer"
        elif not axes and output is not None and source.shape and output.shape and output.elements > 1 and output.shape[-1] == source.shape[-1] > 1:
            kind = "reduction_outer"
        if kind == "reduction_outer" and source.shape:
            first = _first_reduced(source.shape, axes, output)
            blocks = size_of(source.shape[:first])
            if blocks > 1 and _is_one_run(axes, rank):
                kind, rows = "reduction_middle", blocks
            elif first and blocks == 1:
                kind = "reduction_single"
        if source.shape and _runs(source.shape, axes, output) >= _MANY_RUNS:
            kind = "reduction_apart"
        return Work(kind, moved(node.inputs) + results * element_size(source), operations * elements, elements, rows)

    return count


def _runs(shape: Shape, axes: tuple[int, ...], output: Shaped | None) -> int:
    """Returns the number of runs of neighboring axes that are all reduced, or all not; by the sizes of the
    output if need be, of which each is that of the first axis that may be it.
    """
    left = output.shape if output is not None and output.shape is not None else shape
    if axes:
        places = {axis % len(shape) for axis in axes}
        reduced = [place in places for place in range(len(shape))]
    elif len(left) == len(shape):
        reduced = [size != its for size, its in zip(shape, left, strict=True)]
    else:
        reduced, found = list[bool](), 0
        for size in shape:
            stays = found < len(left) and left[found] == size
            found += stays
            reduced.append(not stays)
    return sum(1 for _ in itertools.groupby(reduced))


def _is_one_run(axes: tuple[int, ...], rank: int) -> bool:
    """Tells whether the axes follow each other. Axes that are not known do."""
    places = {axis % rank for axis in axes}
    return not places or max(places) - min(places) < len(places)


def _first_reduced(shape: Shape, axes: tuple[int, ...], output: Shaped | None) -> int:
    """Returns the first axis that a reduction joins, by the sizes of its output if need be."""
    if axes:
        return min(axis % len(shape) for axis in axes)
    kept = output.shape if output is not None and output.shape is not None else ()
    return next((place for place, (size, left) in enumerate(zip(shape, kept, strict=False)) if size != left), 0)


def choice(node: PricedNode) -> Work:
    """Counts ArgMax and ArgMin: a comparison for each element read."""
    source = largest(node.inputs[:1])
    shape = source.shape
    rank = len(shape) if shape is not None else 0
    axis = axis_of(node, 0, rank)
    rows = source.elements / shape[axis] if shape and shape[axis] else float(source.elements)
    kind = "reduction" if axis == rank - 1 else "reduction_outer"
    return Work(kind, moved(node.inputs) + rows * 8.0, float(source.elements), float(source.elements), rows)


def _rows(elements: float, shape: Shape | None, first: int) -> float:
    """Returns the number of rows, which consist of the axes from `first` on."""
    return elements / max(size_of(shape[first:]), 1.0) if shape else elements / USUAL_SIZE


def _over_last(kind: str, operations: float, default: int) -> Counter:
    def count(node: PricedNode) -> Work:
        source = largest(node.inputs[:1])
        elements = float(source.elements)
        shape = source.shape
        rows = _rows(elements, shape, axis_of(node, default, len(shape))) if shape else elements / USUAL_SIZE
        return Work(kind, traffic(node), operations * elements, elements, rows)

    return count


def norm(operations: float, default: int = -1) -> Counter:
    """Counts norms over all axes from `axis` on; `default` replaces an absent `axis`."""
    return _over_last("norm", operations, default)


def channel_norm(operations: float) -> Counter:
    """Counts norms of each image and channel, or of each group of channels."""

    def count(node: PricedNode) -> Work:
        source = largest(node.inputs[:1])
        shape = source.shape
        elements = float(source.elements)
        rows = size_of(shape[:2]) if shape is not None and len(shape) > 1 else 1.0
        groups = integer(node, "num_groups", integer(node, "groups", 0))
        if groups > 0 and shape is not None and len(shape) > 1:
            rows = float(shape[0]) * groups
        return Work("norm", traffic(node), operations * elements, elements, rows)

    return count


def softmax(operations: float, default: int = -1) -> Counter:
    """Counts Softmax and the like: "softmax" along the last axis, "softmax_outer" along the one before
    the last, "softmax_swapped" along any other. Axes of size 1 do not count.
    """

    def count(node: PricedNode) -> Work:
        source = largest(node.inputs[:1])
        shape = source.shape
        elements = float(source.elements)
        if not shape:
            return Work("softmax", traffic(node), operations * elements, elements, elements / USUAL_SIZE)
        axis = axis_of(node, default, len(shape))
        rows = elements / max(shape[axis], 1)
        after = len([size for size in shape[axis + 1 :] if size != 1])
        kind = "softmax" if axis == len(shape) - 1 else "softmax_swapped" if after > 1 else "softmax_outer"
        return Work(kind, traffic(node), operations * elements, elements, rows)

    return count


def local_norm(node: PricedNode) -> Work:
    """Counts LRN: a sum of squares over neighboring channels, a power and a quotient."""
    elements = result(node)
    return Work("norm", traffic(node), elements * (2.0 * max(integer(node, "size", 5), 1) + 30.0), elements, elements)


def loss(node: PricedNode) -> Work:
    """Counts SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss."""
    source = largest(node.inputs[:1])
    elements = float(source.elements)
    return Work("softmax", moved(node.inputs) + moved(node.outputs), 12.0 * elements, elements, _rows(elements, source.shape, 1))


def sort(node: PricedNode) -> Work:
    """Counts TopK, Unique and NonMaxSuppression: as many comparisons as a sort of the first input's
    rows.
    """
    source = largest(node.inputs[:1])
    elements = float(source.elements)
    shape = source.shape
    row = float(shape[axis_of(node, -1, len(shape))]) if shape else elements
    return Work("sort", traffic(node), elements * max(math.log2(max(row, 1.0)), 1.0), elements, elements / max(row, 1.0))


def scan(operations: float = 1.0) -> Counter:
    """Counts running sums and products, and other passes that go element by element."""

    def count(node: PricedNode) -> Work:
        elements = float(largest(node.inputs[:1]).elements)
        return Work("scan", traffic(node), operations * elements, elements)

    return count


def generate(kind: str, operations: float) -> Counter:
    """Counts operators that generate their elements: a number of operations for each element
    written.
    """

    def count(node: PricedNode) -> Work:
        output = at(node.outputs, 0)
        elements = float(output.elements if output is not None else largest(node.inputs).elements)
        written = moved(node.outputs) if output is not None else elements * 4.0
        return Work(kind, written, operations * elements, elements)

    return count


def fourier(node: PricedNode) -> Work:
    """Counts DFT and STFT like a fast Fourier transform: five operations for each element and
    halving.
    """
    source, output = largest(node.inputs[:1]), at(node.outputs, 0)
    elements = float(max(source.elements, output.elements if output is not None else 0))
    shape = output.shape if output is not None and output.shape else source.shape
    row = float(max(shape)) if shape else float(USUAL_SIZE)
    return Work("fourier", traffic(node), 5.0 * elements * max(math.log2(max(row, 2.0)), 1.0), elements, elements / max(row, 1.0))


def determinant(node: PricedNode) -> Work:
    """Counts Det: two thirds of the cube of the size for each matrix."""
    source = largest(node.inputs[:1])
    size = float(source.shape[-1]) if source.shape else float(USUAL_SIZE)
    return Work("scan", traffic(node), source.elements * size * 2.0 / 3.0, float(source.elements) * size)


def rotary(node: PricedNode) -> Work:
    """Counts RotaryEmbedding: two products and a sum for each element."""
    source = largest(node.inputs[:1])
    elements = float(source.elements)
    return Work("elementwise", 2.0 * moved(node.inputs[:1]) + moved(node.inputs[1:]), 3.0 * elements, elements, _rows(elements, source.shape, -1))


def trees(node: PricedNode) -> Work:
    """Counts ensembles of trees: each row of the input walks down each tree."""
    ids = node.attributes.get("nodes_treeids")
    nodes = max(length(node, "nodes_treeids"), length(node, "nodes_featureids"), 1)
    count = len(set(ids)) if isinstance(ids, tuple) and ids else max(length(node, "tree_roots"), 1)
    source = largest(node.inputs[:1])
    rows = float(source.shape[0]) if source.shape else 1.0
    steps = rows * count * max(math.log2(max(nodes / max(count, 1), 2.0)), 1.0)
    return Work("ml", traffic(node), 2.0 * steps, steps)


def linear_model(node: PricedNode) -> Work:
    """Counts linear and support vector models: a product of each row with all coefficients or
    vectors.
    """
    coefficients = max(length(node, "coefficients"), length(node, "support_vectors"), 1)
    source = largest(node.inputs[:1])
    rows = float(source.shape[0]) if source.shape and len(source.shape) > 1 else 1.0
    return Work("ml", traffic(node) + 4.0 * coefficients, 2.0 * rows * coefficients, rows * coefficients)


def plain_model(node: PricedNode) -> Work:
    """Counts the other operators of ai.onnx.ml: a pass over the input."""
    elements = max(broadcast(node.inputs), result(node))
    return Work("ml", traffic(node), 2.0 * elements, elements)

"""Counters of operators that compute nothing: views, copies, transposes, gathers, scatters, and
operators on values other than tensors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from onnx import TensorProto

from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.cost.workload import Counter, Shape, Work, at, axis_of, element_size, integers, largest, moved, result, shape_at, size_of, traffic
from eqsat.facts.fact import INTEGERS

_WHOLE = INTEGERS - {TensorProto.BOOL}


def nothing(node: PricedNode) -> Work:
    """Counts a constant as no work: it exists before the model runs."""
    return Work("constant", 0.0)


def view(node: PricedNode) -> Work:
    """Counts operators whose result shares the input's memory or holds its sizes: no element moves."""
    return Work("view", 0.0)


def _written(node: PricedNode, source: Shaped | None) -> float:
    written = moved(node.outputs)
    return written if at(node.outputs, 0) is not None else element_size(largest([source])) * largest(node.inputs).elements


def copy(node: PricedNode) -> Work:
    """Counts Slice, Split, Pad and the like: they read at most what they write, and at most their
    input.
    """
    written = _written(node, at(node.inputs, 0))
    read = min(moved(node.inputs), written)
    runs = written / max(_inner_run(node), 1.0)
    return Work("copy", read + written, 0.0, result(node), runs)


def part(node: PricedNode) -> Work:
    """Counts Slice: it copies a part of its input, so that as many Slices as parts take no less than a Split."""
    return copy(node)._replace(whole=2.0 * moved(node.inputs[:1]))


def expand(node: PricedNode) -> Work:
    """Counts Expand: a copy that repeats each run of its input, the last axes that stay."""
    source, made = at(node.inputs, 0), shape_at(node.outputs, 0)
    runs = 0.0
    if source is not None and source.shape is not None and made is not None and source.shape != made:
        run = itertools.takewhile(lambda sizes: sizes[0] == sizes[1], zip(reversed(source.shape), reversed(made), strict=False))
        runs = source.elements / max(math.prod(size for size, _ in run), 1)
    return Work("copy", moved(node.inputs) + _written(node, source), 0.0, result(node), 0.0 if runs <= 1.0 else runs)


def tile(node: PricedNode) -> Work:
    """Counts Tile: it copies the last axis that it repeats, and those behind, as one run."""
    source, made = shape_at(node.inputs, 0), shape_at(node.outputs, 0)
    elements, runs = result(node), 0.0
    if source is not None and made is not None and len(source) == len(made):
        repeated = [axis for axis, (size, after) in enumerate(zip(source, made, strict=True)) if size != after]
        runs = elements / max(math.prod(source[repeated[-1] :]), 1) if repeated else 0.0
    return Work("copy", moved(node.inputs) + _written(node, at(node.inputs, 0)), 0.0, elements, runs)


def _inner_run(node: PricedNode) -> float:
    """Returns the bytes of a contiguous run in the first input and output: the trailing axes on
    which the two agree, and one more.
    """
    shapes = [tensor.shape for tensor in (*node.inputs[:1], *node.outputs[:1]) if tensor is not None and tensor.shape is not None]
    first = at(node.inputs, 0) or at(node.outputs, 0)
    if first is None or not shapes:
        return 4.0
    run = element_size(first)
    for sizes in zip(*(reversed(shape) for shape in shapes), strict=False):
        run *= min(sizes)
        if len(set(sizes)) > 1:
            break
    return run


def concat(node: PricedNode) -> Work:
    """Counts Concat of any number of tensors, and operators like it: every byte is read and
    written, in runs of `axis` and the axes behind it. Single elements are copied without runs.
    """
    read = moved(node.inputs)
    present = [tensor for tensor in node.inputs if tensor is not None]
    shapes = [tensor.shape for tensor in present if tensor.shape]
    axis = axis_of(node, 0, len(shapes[0])) if shapes else 0
    runs = sum(size_of(shape[:axis]) for shape in shapes)
    singly = all(math.prod(shape[axis:]) == 1 for shape in shapes)
    return Work("copy", 2.0 * read, 0.0, float(sum(tensor.elements for tensor in present)), 0.0 if singly else runs)


def convert(node: PricedNode) -> Work:
    """Counts Cast and CastLike. "cast_integer" converts between integers (not bool) and other
    types.
    """
    source, output = at(node.inputs, 0), at(node.outputs, 0)
    size = moved([source]) + (moved([output]) if output is not None else moved([source]))
    elements = float((source or output or largest(())).elements)
    mixed = source is not None and output is not None and (source.dtype in _WHOLE) != (output.dtype in _WHOLE)
    return Work("cast_integer" if mixed else "cast", size, elements, elements)


def transpose(node: PricedNode) -> Work:
    """Counts Transpose by the runs of elements that the permutation keeps together.

    "view": only axes of size 1 move.
    "transpose_runs": the last axes stay, so runs of elements are copied.
    "transpose_inward": so are they, and one axis moves behind several others, which kernels may walk in
    the order of the result.
    "transpose_plane": two blocks of axes are exchanged, as in a matrix, or one axis moves with runs that
    a register holds.
    "transpose": any other permutation, element by element.
    """
    source = largest(node.inputs[:1])
    size = 2.0 * moved([source])
    elements = float(source.elements)
    shape = source.shape
    order = integers(node, "perm") or tuple(reversed(range(len(shape or ()))))
    if shape is None or sorted(order) != list(range(len(shape))):
        return Work("transpose", size, 0.0, elements, elements)
    blocks = permuted_blocks(shape, order)
    if len(blocks) < 2:
        return Work("view", 0.0)
    numbers, narrow = [number for number, _ in blocks], min(blocks[-1][1], blocks[-2][1])
    if numbers[-1] < len(numbers) - 1:
        # A matrix, or many of them: the leading blocks stay, and the last two change places.
        plane = numbers[:-2] == list(range(len(numbers) - 2)) and len(numbers) <= 3
        return Work("transpose_plane" if plane else "transpose", size, 0.0, elements, elements / max(narrow, 1))
    move = _moved_axis(order)
    if move is None:
        return Work("transpose_runs", size, 0.0, elements, elements / max(blocks[-1][1], 1))
    run = math.prod(shape[max(move) + 1 :])
    kind = "transpose_plane" if run * element_size(source) in _REGISTERS else "transpose_inward" if move[0] < move[1] else "transpose_runs"
    return Work(kind, size, 0.0, elements, elements / max(run, 1))


_REGISTERS = (1.0, 2.0, 4.0, 8.0)
"""The bytes of a run that a kernel moves as one element."""


def _moved_axis(order: Sequence[int]) -> tuple[int, int] | None:
    """Returns the place from which a permutation moves a single axis, and the place to which. Where two neighbors change
    places, the last one moves outwards.
    """
    first = next((place for place, axis in enumerate(order) if axis != place), None)
    if first is None:
        return None
    for source, target in ((order[first], first), (first, order.index(first))):
        others = [axis for axis in range(len(order)) if axis != source]
        if list(order) == [*others[:target], source, *others[target:]]:
            return source, target
    return None


def rearrange(node: PricedNode) -> Work:
    """Counts DepthToSpace and SpaceToDepth as transposes of six axes."""
    elements = float(largest(node.inputs[:1]).elements)
    return Work("transpose", 2.0 * moved(node.inputs[:1]), 0.0, elements, elements)


def permuted_blocks(shape: Shape, order: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the output's blocks of axes that stay together, as (place in the input, size). Axes
    of size 1 are left out.
    """
    kept = [axis for axis in order if shape[axis] != 1]
    place = {axis: index for index, axis in enumerate(sorted(kept))}
    blocks: list[list[int]] = []
    for axis in kept:
        if blocks and place[axis] == blocks[-1][-1] + 1:
            blocks[-1].append(place[axis])
        else:
            blocks.append([place[axis]])
    axes = sorted(kept)
    starts = sorted(block[0] for block in blocks)
    return [(starts.index(block[0]), int(size_of([shape[axes[index]] for index in block]))) for block in blocks]


def gather(node: PricedNode) -> Work:
    """Counts Gather and the like: they read the indices, and as many bytes as they write."""
    written = _written(node, at(node.inputs, 0))
    source = at(node.inputs, 0)
    elements = result(node)
    indices = at(node.inputs, 1)
    picked = float(indices.elements) if indices is not None else elements
    size = element_size(source) if source is not None else 4.0
    rows = min(elements, _gathered_rows(node, elements, picked))
    return Work("gather", 2.0 * (written or elements * size) + moved(node.inputs[1:]), 0.0, elements, rows)


def _gathered_rows(node: PricedNode, elements: float, picked: float) -> float:
    """Returns the number of runs that Gather copies. Each index copies one run, the axes behind
    `axis`, for each place before it.
    """
    shape = shape_at(node.inputs, 0)
    axis = node.attributes.get("axis", 0)
    if node.name != "Gather" or not shape or not isinstance(axis, int):
        return max(picked, 1.0)
    axis = axis + len(shape) if axis < 0 else axis
    return picked * size_of(shape[: max(axis, 0)])


def scatter(updates: int) -> Counter:
    """Counts operators that write some elements of a copy: all data moves, and so do the updates,
    which are input `updates`.
    """

    def count(node: PricedNode) -> Work:
        data = at(node.inputs, 0)
        changed = at(node.inputs, updates) or data
        elements = float(changed.elements) if changed is not None else 0.0
        return Work("scatter", 2.0 * moved([data]) + 2.0 * moved([changed]) + moved(node.inputs[1:updates]), 0.0, elements, elements)

    return count


def compress(node: PricedNode) -> Work:
    """Counts operators whose output size depends on the data: the whole input is read, and the
    output written.
    """
    elements = float(largest(node.inputs).elements)
    return Work("gather", traffic(node), elements, elements, elements)


def holder(kind: str) -> Counter:
    """Counts operators on sequences or strings, or with bodies: their inputs and outputs move once."""

    def count(node: PricedNode) -> Work:
        elements = float(sum(tensor.elements for tensor in (*node.inputs, *node.outputs) if tensor is not None))
        return Work(kind, moved(node.inputs) + moved(node.outputs), 0.0, elements)

    return count


def body(node: PricedNode) -> Work:
    """Counts If, Loop, Scan and SequenceMap: one launch, and a row for each run of a body. The
    bodies are priced as graphs.
    """
    return Work("control", 0.0, rows=float(node.trips))


def unknown(node: PricedNode) -> Work:
    """Counts an operator without a description: all its tensors move, at the slow rate of its
    class.
    """
    elements = float(sum(tensor.elements for tensor in (*node.inputs, *node.outputs) if tensor is not None))
    return Work("unknown", moved(node.inputs) + moved(node.outputs), elements, elements)


def blocked_reorder(node: PricedNode) -> Work:
    """Counts the runtime's own conversions between the plain layout and the layout in blocks of
    channels.
    """
    source = largest(node.inputs[:1])
    return Work("transpose_runs", 2.0 * moved([source]), 0.0, float(source.elements), 0.0)

"""Input ranges: the values that a model's inputs must have for the model to run.

The input is a model. Most values would make some node inputs fail: indices, counts, axes, shapes,
divisors. Few values take the ways that a comparison with a constant opens. The output is a `Want`
for each graph input that reaches such a node input through operators that only move or convert
data. Wants are advice for drawing samples and promise nothing: if the model refuses a draw, the
next draw is made in another way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from eqsat.frozen import frozen

Size: TypeAlias = int | str | None
Shapes: TypeAlias = Mapping[str, "tuple[Size, ...]"]

_MOVES: Mapping[str, tuple[int, ...] | None] = {
    **dict.fromkeys("Concat Max Min SequenceConstruct".split()),
    **dict.fromkeys("Where".split(), (1, 2)),
    **dict.fromkeys("ScatterElements ScatterND Scatter".split(), (0, 2)),
    **dict.fromkeys("SequenceInsert".split(), (0, 1)),
    **dict.fromkeys(
        "Identity Cast Reshape Squeeze Unsqueeze Flatten Transpose Slice Gather GatherElements GatherND Expand Tile Split Pad Clip ReduceMax ReduceMin "
        "DepthToSpace SpaceToDepth ConcatFromSequence SequenceAt SplitToSequence Optional OptionalGetElement Compress ReverseSequence Trilu".split(),
        (0,),
    ),
}


@frozen(slots=False)
class Want:
    """A range of values, or a pattern.

    A range begins at `low` and ends below the least of `highs`. A name in `highs` stands for the
    size of that dimension. A `signed` index may also count from the end. `pattern` is "" for a
    plain range, "reshape" for a shape that fits any number of elements, "axes" for 0, 1, 2, ...,
    and "positive" for floating-point numbers above 0. `telling` are values at which a comparison
    with a constant changes; a want may have nothing else, so that any value is right.
    """

    low: int = 0
    highs: tuple[int | str, ...] = ()
    signed: bool = False
    pattern: str = ""
    telling: tuple[float, ...] = ()

    @property
    def bounds(self) -> bool:
        """Whether other values make the model fail."""
        return bool(self.highs or self.pattern)


_COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
_FEW = 8  # the most elements of a constant, and values of an input, that are tried
_EXACT = 1 << 53  # floats hold the integers up to here


def _between(low: int, high: int) -> Want:
    return Want(low, (high,))


_AXES = Want(pattern="axes")
_SMALL = _between(1, 4)
_FLAG = _between(0, 2)
_POSITIVE = Want(pattern="positive")

_FIXED: Mapping[tuple[str, str], Mapping[int, Want]] = {
    ("", "Reshape"): {1: Want(pattern="reshape")},
    ("", "Expand"): {1: _between(1, 2)},
    ("", "Tile"): {1: _between(1, 3)},
    ("", "ConstantOfShape"): {0: _between(1, 5)},
    ("", "Slice"): {1: _between(0, 2), 2: _between(2, 6), 3: _AXES, 4: _between(1, 3)},
    ("", "TopK"): {1: _between(1, 2)},
    ("", "Loop"): {0: _SMALL},
    ("", "Range"): {0: _between(0, 2), 1: _between(3, 7), 2: _between(1, 3)},
    ("", "Pad"): {1: _between(0, 3)},
    ("", "Split"): {1: _between(1, 2)},
    ("", "Resize"): {2: _POSITIVE, 3: _between(2, 9)},
    ("", "Upsample"): {1: _POSITIVE},
    ("", "CumSum"): {1: _between(0, 1)},
    ("", "Trilu"): {1: _between(-1, 2)},
    ("", "BitShift"): {1: _between(0, 4)},
    ("", "Div"): {1: _between(1, 6)},
    ("", "Mod"): {1: _between(1, 6)},
    ("", "OneHot"): {1: _between(3, 8)},
    ("", "NonMaxSuppression"): {2: _SMALL},
    ("", "SequenceAt"): {1: _between(0, 1)},
    ("", "SequenceInsert"): {2: _between(0, 1)},
    ("", "SequenceErase"): {1: _between(0, 1)},
    ("", "BatchNormalization"): {4: _POSITIVE},
    ("", "MaxUnpool"): {1: _between(0, 4)},
    ("", "HannWindow"): {0: _between(3, 8)},
    ("", "HammingWindow"): {0: _between(3, 8)},
    ("", "BlackmanWindow"): {0: _between(3, 8)},
    ("com.microsoft", "EmbedLayerNormalization"): {7: _FLAG},
    ("com.microsoft", "Attention"): {3: _FLAG},
    ("com.microsoft", "MultiHeadAttention"): {4: _FLAG},
    **{("", name): {1: _AXES} for name in ("Squeeze", "Unsqueeze")},
    **{("", f"Reduce{name}"): {1: _AXES} for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")},
}


def input_ranges(graph: onnx.GraphProto, shapes: Callable[[str], tuple[Size, ...] | None]) -> dict[str, Want]:
    """Returns the wanted values of each value of `graph`, if known.

    `shapes` gives the shape of a value by name.
    """
    wants: dict[str, Want] = {}
    nodes = list(nodes_in_order(graph.node))
    constants = _small_constants(graph, nodes) if any(node.op_type in _COMPARISONS for node in nodes) else {}
    for node in reversed(nodes):
        domain = "" if node.domain == "ai.onnx" else node.domain
        found = dict(_FIXED.get((domain, node.op_type), {}))
        found.update(_indices(domain, node, shapes))
        if domain == "" and node.op_type in _COMPARISONS:
            found.update(_compared(node, constants))
        if domain == "" and node.op_type in _MOVES:
            passed = _joined([wants[name] for name in node.output if name in wants])
            if passed is not None:
                positions = _MOVES[node.op_type]
                for position in range(len(node.input)) if positions is None else positions:
                    if position < len(node.input):
                        found.setdefault(position, passed)
        for position, want in found.items():
            if position < len(node.input) and node.input[position]:
                name = node.input[position]
                wants[name] = _join(wants[name], want) if name in wants else want
    return wants


def nodes_in_order(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yields all nodes in order, each followed by the nodes of its bodies."""
    stack = [iter(nodes)]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                stack.append(iter(attribute.g.node))
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                stack.extend(iter(body.node) for body in attribute.graphs)


def _joined(wants: Sequence[Want]) -> Want | None:
    joined = None
    for want in wants:
        joined = want if joined is None else _join(joined, want)
    return joined


def _join(a: Want, b: Want) -> Want:
    telling = tuple(sorted({*a.telling, *b.telling}))[:_FEW]
    if a.pattern or not b.bounds:
        return replace(a, telling=telling)
    if b.pattern or not a.bounds:
        return replace(b, telling=telling)
    return Want(max(a.low, b.low), tuple(sorted({*a.highs, *b.highs}, key=str)), a.signed and b.signed, telling=telling)


def _small_constants(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> dict[str, np.ndarray]:
    """Returns the constants of few elements that the file holds itself, by name."""
    tensors = [(tensor.name, tensor) for tensor in graph.initializer]
    tensors += [(node.output[0], item.t) for node in nodes if node.op_type == "Constant" for item in node.attribute if item.name == "value"]
    plain = ((name, tensor) for name, tensor in tensors if tensor.data_location != onnx.TensorProto.EXTERNAL and tensor.data_type != onnx.TensorProto.STRING)
    return {name: numpy_helper.to_array(tensor) for name, tensor in plain if math.prod(tensor.dims) <= _FEW}


def _compared(node: onnx.NodeProto, constants: Mapping[str, np.ndarray]) -> dict[int, Want]:
    """Returns the telling values of the operand that a comparison compares with a constant.

    Floats of any size lie on both sides of an order, and hardly one equals a constant.
    """
    found: dict[int, Want] = {}
    for position, name in enumerate(node.input[:2]):
        array = constants.get(node.input[1 - position]) if len(node.input) == 2 and name not in constants else None
        if array is None or array.dtype.kind not in "iuf" or (node.op_type != "Equal" and array.dtype.kind == "f"):
            continue
        values = {float(value) for value in array.ravel() if abs(value) <= _EXACT}
        if node.op_type != "Equal":
            values |= {value + step for value in values for step in (-1, 1)}
        if values:
            found[position] = Want(telling=tuple(sorted(values))[:_FEW])
    return found


def _indices(domain: str, node: onnx.NodeProto, shapes: Callable[[str], tuple[Size, ...] | None]) -> dict[int, Want]:
    """Returns the ranges of a node's indices, from the sizes of the axes that they index."""
    key = (domain, node.op_type)
    integers = {attribute.name: attribute.i for attribute in node.attribute if attribute.type == onnx.AttributeProto.INT}

    def axis(position: int, number: int, low: int = 0, signed: bool = False) -> Want:
        shape = shapes(node.input[position]) if position < len(node.input) else None
        size = shape[number] if shape is not None and -len(shape) <= number < len(shape) else None
        if isinstance(size, int):
            return Want(low, (max(size, 1),), signed)
        return Want(low, (size or 1,), signed)

    if key == ("", "Gather"):
        return {1: axis(0, integers.get("axis", 0), signed=True)}
    if key in {("", "GatherElements"), ("", "ScatterElements"), ("", "Scatter")}:
        return {1: axis(0, integers.get("axis", 0), signed=True)}
    if key in {("", "GatherND"), ("", "ScatterND")}:
        table, index = shapes(node.input[0]), shapes(node.input[1])
        batch = integers.get("batch_dims", 0)
        depth = index[-1] if index else None
        if table is None or not isinstance(depth, int):
            return {1: _between(0, 1)}
        return {1: Want(0, tuple(size if size is not None else 1 for size in table[batch : batch + depth]) or (1,), True)}
    if key == ("", "OneHot"):
        return {0: _between(0, 3)}
    if key in {("", "NegativeLogLikelihoodLoss"), ("", "SoftmaxCrossEntropyLoss")}:
        return {1: axis(0, 1)}
    if key == ("", "ReverseSequence"):
        return {1: axis(0, integers.get("time_axis", 0), low=1)}
    if key in {("", "LSTM"), ("", "GRU"), ("", "RNN")}:
        return {4: axis(0, 0, low=1)}
    if key == ("com.microsoft", "EmbedLayerNormalization"):
        return {0: axis(2, 0), 1: axis(4, 0), 8: axis(3, 0)}
    if key == ("com.microsoft", "GatherBlockQuantized"):
        return {1: axis(0, integers.get("gather_axis", 0))}
    return {}

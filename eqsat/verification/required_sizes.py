"""Required sizes: dimensions of inputs that constants decide, whatever their names say.

An exporter may give a name to each axis of an input, that of the channels too. A Conv wants as many channels
as its filters have, and a product as many columns as its second factor has rows. The input is the nodes of a
model with the facts of what they read; the output is symbols with the one size that each may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import onnx

from eqsat.facts.dims import Dim, sub, symbol, symbols
from eqsat.facts.fact import Fact

# For each operator, an input and an axis, and another input and an axis of the same size.
_EQUAL = {
    "BatchNormalization": (0, 1, 1, 0),
    "ConvTranspose": (0, 1, 1, 0),
    "GRU": (0, 2, 1, 2),
    "InstanceNormalization": (0, 1, 1, 0),
    "LSTM": (0, 2, 1, 2),
    "LayerNormalization": (0, -1, 1, -1),
    "MatMul": (0, -1, 1, -2),
    "MatMulInteger": (0, -1, 1, -2),
    "QLinearMatMul": (0, -1, 3, -2),
    "RMSNormalization": (0, -1, 1, -1),
    "RNN": (0, 2, 1, 2),
}
# The place of the filters, whose second axis is the channels of one group.
_FILTERS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
_BROADCAST = frozenset({"Add", "Div", "Max", "Min", "Mul", "Pow", "PRelu", "Sub", "Where"})


def required_sizes(nodes: Iterable[tuple[onnx.NodeProto, Sequence[Fact | None]]]) -> dict[str, int]:
    """Returns the size of each symbol that has to have one. A size that is wanted without exception comes before
    one that only needs to broadcast.
    """
    strict: dict[str, int] = {}
    loose: dict[str, int] = {}
    for node, inputs in nodes:
        shapes = [fact.shape if fact is not None else None for fact in inputs]
        for first, second in _pairs(node, shapes):
            _note(strict, first, second)
            _note(strict, second, first)
        if node.op_type in _BROADCAST:
            for first, second in _aligned([shape for shape in shapes if shape is not None]):
                if first != 1 and second != 1:
                    _note(loose, first, second)
                    _note(loose, second, first)
    return loose | strict


def _note(found: dict[str, int], size: Dim, wanted: Dim) -> None:
    """Notes the size of a symbol with which `size` is the wanted one, if that is the symbol plus a number."""
    names = symbols(size)
    more = sub(size, symbol(names[0])) if len(names) == 1 else None
    if isinstance(more, int) and isinstance(wanted, int) and wanted > more:
        found.setdefault(names[0], wanted - more)


def _pairs(node: onnx.NodeProto, shapes: Sequence[tuple[Dim, ...] | None]) -> Iterator[tuple[Dim, Dim]]:
    """Yields sizes that are equal wherever a node runs."""
    if node.op_type in _FILTERS:
        filters = _at(shapes, _FILTERS[node.op_type], 1)
        if isinstance(filters, int):
            yield from _both(_at(shapes, 0, 1), filters * _number(node, "group", 1))
    elif node.op_type == "Gemm":
        yield from _both(_at(shapes, 0, 0 if _number(node, "transA", 0) else 1), _at(shapes, 1, 1 if _number(node, "transB", 0) else 0))
    elif node.op_type in _EQUAL:
        place, axis, other, its = _EQUAL[node.op_type]
        found = shapes[other] if other < len(shapes) else None
        yield from _both(_at(shapes, place, axis), _at(shapes, other, -1 if found is not None and len(found) == 1 else its))


def _both(first: Dim | None, second: Dim | None) -> Iterator[tuple[Dim, Dim]]:
    if first is not None and second is not None:
        yield first, second


def _at(shapes: Sequence[tuple[Dim, ...] | None], place: int, axis: int) -> Dim | None:
    shape = shapes[place] if place < len(shapes) else None
    return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None


def _number(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), default)


def _aligned(shapes: Sequence[tuple[Dim, ...]]) -> Iterator[tuple[Dim, Dim]]:
    """Yields the sizes of two inputs on the axes that they share."""
    for number, first in enumerate(shapes):
        for second in shapes[number + 1 :]:
            yield from zip(reversed(first), reversed(second), strict=False)

"""The type of a node that moves elements, casts them or multiplies matrices, where all sizes are known:
the one that ONNX's inference finds.

As for elementwise nodes (`elementwise_types`), ONNX's inference takes several times as long. It
gives the type, or the reason to reject the node, where anything is unusual.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Final, NamedTuple

from onnx import TensorProto

from eqsat.facts.elementwise_types import allowed_dtypes, broadcast_sizes
from eqsat.facts.fact import Fact
from eqsat.facts.integers import concrete_shape
from eqsat.facts.node import Node, from_front
from eqsat.operators import Operator

Sizes = tuple[int, ...]


class _Kind(NamedTuple):
    """How an operator makes its result, from the first opset whose versions all do so."""

    first: int
    inputs: int  # 0: any number
    shape: Callable[[Node, list[Sizes]], Sizes | None]
    alike: bool = False  # whether all inputs have one data type
    parameter: frozenset[int] = frozenset()  # the data types that the second input may have


def moved_type(node: Node) -> Fact | None:
    """Return the type of the only result; None where ONNX's inference has to find it."""
    operator, inputs = node.operator, node.inputs
    kind = _KINDS.get(operator.name)
    if kind is None or not operator.standard or operator.version < kind.first or node.outputs != 1:
        return None
    taken, made, attributes = _of_schema(operator)
    if not inputs or len(inputs) != (kind.inputs or len(inputs)) or not attributes.issuperset(node.attributes):
        return None
    sizes: list[Sizes] = []
    for fact in inputs:
        known = None if fact is None or fact.other is not None else concrete_shape(fact)
        if known is None:
            return None
        sizes.append(known)
    dtype = node.dtype(0)
    if dtype not in taken or (kind.alike and any(node.dtype(position) != dtype for position in range(1, len(inputs)))):
        return None
    if kind.parameter and node.dtype(1) not in kind.parameter:
        return None
    if operator.name == "Cast":
        dtype = node.integer("to", 0)
        if dtype not in made:
            return None
    shape = kind.shape(node, sizes)
    return None if shape is None else Fact(dtype, shape)


@functools.cache
def _of_schema(operator: Operator) -> tuple[frozenset[int], frozenset[int], frozenset[str]]:
    """Return the data types that the first input and the first result may have, and the attributes."""
    assert operator.schema is not None
    allowed = allowed_dtypes(operator.schema)
    (_, first), (_, result) = operator.formals[0][0], operator.formals[1][0]
    return allowed.get(first, frozenset()), allowed.get(result, frozenset()), frozenset(operator.schema.attributes)


def _parameter(node: Node) -> Sizes | None:
    """Return the elements of the second input, a vector, if they are known."""
    found, shape = node.ints(1), node.shape(1)
    known = tuple([element for element in found or () if isinstance(element, int)])
    return known if found is not None and shape == (len(found),) and len(known) == len(found) else None


def _axis(node: Node, rank: int, default: int | None) -> int | None:
    value = node.attributes.get("axis", default)
    return from_front(value, rank) if type(value) is int else None


def _places(node: Node, rank: int) -> list[int] | None:
    """Return the axes that the second input names, in order, if they are different ones."""
    found = [from_front(value, rank) for value in _parameter(node) or ()]
    places = sorted(place for place in found if place is not None)
    return places if found and len(set(places)) == len(found) else None


def _reshape(node: Node, sizes: list[Sizes]) -> Sizes | None:
    wanted = _parameter(node)
    return wanted if wanted is not None and min(wanted, default=1) > 0 and prod(wanted) == prod(sizes[0]) else None


def _expand(node: Node, sizes: list[Sizes]) -> Sizes | None:
    wanted = _parameter(node)
    return broadcast_sizes(sizes[0], wanted) if wanted is not None and min(wanted, default=1) > 0 else None


def _unsqueeze(node: Node, sizes: list[Sizes]) -> Sizes | None:
    rest = list(sizes[0])
    places = _places(node, len(rest) + len(_parameter(node) or ()))
    for place in places or ():
        rest.insert(place, 1)
    return None if places is None else tuple(rest)


def _squeeze(node: Node, sizes: list[Sizes]) -> Sizes | None:
    places = _places(node, len(sizes[0]))
    if places is None or any(sizes[0][place] != 1 for place in places):
        return None
    return tuple([size for place, size in enumerate(sizes[0]) if place not in places])


def _transpose(node: Node, sizes: list[Sizes]) -> Sizes | None:
    order = node.attributes.get("perm", tuple(reversed(range(len(sizes[0])))))
    if not sizes[0] or not isinstance(order, tuple) or any(type(place) is not int for place in order) or sorted(order) != list(range(len(sizes[0]))):
        return None
    return tuple([sizes[0][int(place)] for place in order])


def _concat(node: Node, sizes: list[Sizes]) -> Sizes | None:
    axis = _axis(node, len(sizes[0]), None)
    if axis is None:
        return None
    others = {(*each[:axis], *each[axis + 1 :]) for each in sizes}
    if len(others) > 1 or len(set(map(len, sizes))) > 1:
        return None
    return (*sizes[0][:axis], sum(each[axis] for each in sizes), *sizes[0][axis + 1 :])


def _gather(node: Node, sizes: list[Sizes]) -> Sizes | None:
    axis = _axis(node, len(sizes[0]), 0)
    return None if axis is None else (*sizes[0][:axis], *sizes[1], *sizes[0][axis + 1 :])


def _matmul(node: Node, sizes: list[Sizes]) -> Sizes | None:
    (*batch, rows, inner), (*other, depth, columns) = (each if len(each) > 1 else (-1, -1) for each in sizes)
    if rows < 0 or columns < 0 or inner != depth:
        return None
    outer = broadcast_sizes(tuple(batch), tuple(other))
    return None if outer is None else (*outer, rows, columns)


def _cast(node: Node, sizes: list[Sizes]) -> Sizes:
    return sizes[0]


_INT64: Final = frozenset({int(TensorProto.INT64)})
_INDICES: Final = frozenset({int(TensorProto.INT32), int(TensorProto.INT64)})
_KINDS: Final = {
    "Cast": _Kind(6, 1, _cast),
    "Concat": _Kind(11, 0, _concat, alike=True),
    "Expand": _Kind(8, 2, _expand, parameter=_INT64),
    "Gather": _Kind(1, 2, _gather, parameter=_INDICES),
    "MatMul": _Kind(1, 2, _matmul, alike=True),
    "Reshape": _Kind(5, 2, _reshape, parameter=_INT64),
    "Squeeze": _Kind(13, 2, _squeeze, parameter=_INT64),
    "Transpose": _Kind(1, 1, _transpose),
    "Unsqueeze": _Kind(13, 2, _unsqueeze, parameter=_INT64),
}

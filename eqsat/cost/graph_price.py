"""The price of a graph: the prices of its nodes, and their sums.

The types of the values come from `value_info`, so they must be declared or inferred before. The body
of a Loop or Scan counts as often as it runs; one of which this is unknown counts once. Of the
branches of an `If`, the dearest counts.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

import onnx

from eqsat.control.bodies import first_output, fits
from eqsat.control.unrolling import scan_axes
from eqsat.cost.price import Price, price
from eqsat.cost.shaped import PricedNode, Shaped, assumed_size
from eqsat.cost.subnormals import delay, share_of
from eqsat.cost.target import Target
from eqsat.frozen import frozen, mutable
from eqsat.model.model import BODY_TYPES, attribute_graphs
from eqsat.model.prepare import default_inputs
from eqsat.operators import find_operator, normal_domain, read_attributes


@frozen
class NodePrice:
    """The price of a node over all its runs, with the name of its first output."""

    name: str
    node: PricedNode
    price: Price
    inside: bool  # whether the node is in a body of another node
    inputs: tuple[str, ...]  # names; absent ones are empty
    outputs: tuple[str, ...]


@frozen
class Totals:
    """The sums of prices over the nodes of a graph."""

    seconds: float
    launches: int
    bytes: float
    operations: float
    multiply_adds: float

    @staticmethod
    def of(prices: Iterable[Price]) -> Totals:
        """Returns the sums of these prices."""
        rows = list(prices)
        return Totals(
            sum(row.seconds for row in rows),
            sum(row.launches for row in rows),
            sum(row.bytes for row in rows),
            sum(row.operations for row in rows),
            sum(row.multiply_adds for row in rows),
        )


_Known: TypeAlias = tuple[Shaped | None, ...]  # the types of a node's inputs or outputs


def node_prices(
    model: onnx.ModelProto,
    target: Target,
    sizes: Mapping[str, int],
    constants: Collection[str] = (),
    trips: Mapping[str, int] | None = None,
    faint: Mapping[str, float] | None = None,
) -> list[NodePrice]:
    """Returns the price of each node that runs, in the order of the graph. Functions have to be
    inlined.

    `sizes` gives numbers to the names of dimensions. `constants` are inputs that stand for weights.
    `trips` tells how often the body of a Loop runs, by the name of its first output. `faint` are the
    values with subnormal elements (eqsat/cost/subnormals.py).
    """
    opsets = {normal_domain(item.domain): item.version for item in model.opset_import}
    rows = list(_prices(model.graph, _Scope({}, target, sizes, opsets, constants, trips or {}, frozenset(default_inputs(model))), inside=False))
    return [_delayed(row, faint, target) for row in rows] if faint else rows


def _delayed(row: NodePrice, faint: Mapping[str, float], target: Target) -> NodePrice:
    """Returns the price of a node that may work with subnormal elements."""
    share = share_of(row.node, row.inputs, row.outputs, faint)
    longer = delay(row.node, share, target.subnormal) if share else 0.0
    return replace(row, price=replace(row.price, seconds=row.price.seconds + longer, bound="compute")) if longer else row


@mutable
class _Scope:
    """The types of the values that a graph sees, and the settings that all graphs of a model share."""

    types: dict[str, Shaped]
    target: Target
    sizes: Mapping[str, int]
    opsets: Mapping[str, int]
    constants: Collection[str]
    trips: Mapping[str, int]
    defaults: Collection[str]  # inputs with a default value, which is no constant
    # Nodes of one operator with the same attributes and types have one price. Layers repeat them.
    known: dict[Hashable, tuple[PricedNode, Price]] = field(default_factory=dict[Hashable, tuple[PricedNode, Price]])
    kinds: dict[bytes, Shaped] = field(default_factory=dict[bytes, Shaped])  # by the message of a type

    def shaped(self, kind: onnx.TypeProto) -> Shaped:
        """Returns a declared type with numbers for its sizes."""
        message = kind.SerializeToString()
        known = self.kinds.get(message)
        if known is None:
            known = self.kinds[message] = _shaped(kind, self.sizes)
        return known


def _prices(graph: onnx.GraphProto, outer: _Scope, *, inside: bool) -> Iterator[NodePrice]:
    scope = replace(outer, types=dict(outer.types))
    for info in (*graph.input, *graph.output, *graph.value_info):  # a declared output may lack sizes
        known = scope.shaped(info.type)
        scope.types[info.name] = replace(known, constant=True) if info.name in scope.constants else known
    for tensor in graph.initializer:
        scope.types[tensor.name] = Shaped(tensor.data_type, tuple(tensor.dims), constant=tensor.name not in scope.defaults)
    for node in graph.node:
        inputs, outputs = tuple(node.input), tuple(node.output)  # each look into a message takes time
        priced, cost = _priced(node, _known(inputs, scope), _known(outputs, scope), scope)
        yield NodePrice(next(filter(None, outputs), ""), priced, cost, inside, inputs, outputs)
        bodies = [list(_prices(body, scope, inside=True)) for _, body in attribute_graphs(node)]
        if node.op_type == "If" and len(bodies) > 1:
            bodies = [max(bodies, key=_seconds)]
        for body in bodies:
            yield from body if priced.trips == 1 else (_repeated(row, priced.trips) for row in body)


_REPEATS = frozenset({"Loop", "Scan"})


def _trips(node: onnx.NodeProto, scope: _Scope) -> int:
    """Returns how often the body of a Loop or Scan runs; 1 where that is unknown."""
    if normal_domain(node.domain) or not fits(node):
        return 1
    if node.op_type == "Loop":
        return scope.trips.get(first_output(node), 1)
    axes = scan_axes(node)
    walked = scope.types.get(node.input[len(node.input) - len(axes)], _UNKNOWN).shape if axes and scope.opsets.get("", 1) >= 9 else None
    return 1 if walked is None or not -len(walked) <= axes[0] < len(walked) else walked[axes[0]]


def _repeated(row: NodePrice, times: int) -> NodePrice:
    cost = row.price
    total = Price(cost.seconds * times, cost.launches * times, cost.bytes * times, cost.operations * times, cost.bound, cost.multiply_adds * times)
    return replace(row, price=total)


def _seconds(rows: Sequence[NodePrice]) -> float:
    return sum(row.price.seconds for row in rows)


def _priced(node: onnx.NodeProto, inputs: _Known, outputs: _Known, scope: _Scope) -> tuple[PricedNode, Price]:
    """Returns a node as a price sees it, and its price."""
    if node.op_type in _REPEATS:
        priced = replace(_node(node, inputs, outputs, scope), trips=_trips(node, scope))
        return priced, price(priced, scope.target)
    attributes = tuple([item.SerializeToString() for item in node.attribute])
    key = (node.domain, node.op_type, attributes, inputs, outputs)
    known = scope.known.get(key)
    if known is None:
        priced = _node(node, inputs, outputs, scope)
        known = scope.known[key] = priced, price(priced, scope.target)
    return known


def _node(node: onnx.NodeProto, inputs: _Known, outputs: _Known, scope: _Scope) -> PricedNode:
    domain = normal_domain(node.domain)
    operator = find_operator(domain, node.op_type, scope.opsets.get(domain, 1))
    attributes = read_attributes(operator, [item for item in node.attribute if item.type not in BODY_TYPES])
    return PricedNode(domain, node.op_type, attributes, inputs, outputs, opset=scope.opsets.get(domain, 1))


def _known(names: Sequence[str], scope: _Scope) -> _Known:
    types = scope.types
    return tuple([types.get(name, _UNKNOWN) if name else None for name in names])


_UNKNOWN = Shaped(0, None)


def _shaped(kind: onnx.TypeProto, sizes: Mapping[str, int]) -> Shaped:
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return Shaped(tensor.elem_type, None)
    shape = (size.dim_value if size.HasField("dim_value") else assumed_size(size.dim_param, sizes) for size in tensor.shape.dim)
    return Shaped(tensor.elem_type, tuple(max(size, 0) for size in shape))

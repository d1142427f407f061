"""Trips: how often the body of a Loop runs, if that is known.

The number of trips may be given, or the condition that the body returns may end the loop. A computed
condition is followed from trip to trip: the facts of the values that it depends on, the number of
the iteration among them, tell whether the next trip begins. So a loop that counts by itself, as
`while i < 3`, has a known number of trips.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import onnx
from onnx import TensorProto

from eqsat.control.surroundings import Scope
from eqsat.facts.fact import UNKNOWN, Fact, from_array, from_tensor
from eqsat.facts.inference import infer
from eqsat.facts.known_ranges import known_range
from eqsat.model.model import attribute_graphs
from eqsat.model.names import defined_names
from eqsat.operators import find_operator, normal_domain, read_attributes

# The most trips of a loop that are followed. No longer loop is unrolled.
_MOST = 32

# Returns what is known of a value outside of a body.
Known = Callable[[str], Fact]


def stored(scope: Scope, name: str) -> Fact:
    """Return what is known of a value from small stored constants alone."""
    value = scope.value(name) if name else None
    return UNKNOWN if value is None else from_array(value)


def starts(node: onnx.NodeProto, scope: Scope) -> bool:
    """Tell whether a Loop runs at least once."""
    trips, going = _given(node, functools.partial(stored, scope))
    return (not node.input[0] or (trips is not None and trips > 0)) and going == 1


def loop_trips(node: onnx.NodeProto, scope: Scope, known: Known | None = None) -> int | None:
    """Return how often the body of a Loop runs, if that is known.

    `known` tells what is known of the values around the body, which `scope` sees.
    """
    body = dict(attribute_graphs(node))["body"]
    known = known or functools.partial(stored, scope)
    trips, going = _given(node, known)
    if going == 0 or (trips is not None and trips <= 0):
        return 0
    if going is None:
        return None
    inner, returned = scope.inside(body), body.output[0].name
    stops = inner.integer(returned)
    if stops == 0 or trips == 1:
        return 1 if trips is not None or not node.input[0] else None
    if stops == 1 or inner.origin(returned) == body.input[1].name:
        return trips
    return _followed(node, body, trips, scope.opset, known) if trips is not None or not node.input[0] else None


def declared_sizes(info: onnx.ValueInfoProto) -> tuple[int, ...]:
    """Return the shape of one number as declared: a scalar, or a list of one."""
    return (1,) * min(1, len(info.type.tensor_type.shape.dim))


def _given(node: onnx.NodeProto, known: Known) -> tuple[int | None, int | None]:
    """Return the given number of trips, and whether the first one may begin; each as far as known."""
    trips, going = (_number(known(name)) if name else None for name in node.input[:2])
    return trips, going if node.input[1] else 1


def _number(fact: Fact) -> int | None:
    """Return the number, or the truth value, that the one element of a value is known to be."""
    if fact.ints is not None and len(fact.ints) == 1 and isinstance(fact.ints[0], int):
        return fact.ints[0]
    found = known_range(fact) if fact.dtype == TensorProto.BOOL else None
    return int(found.low) if found is not None and found.low == found.high else None


def _followed(node: onnx.NodeProto, body: onnx.GraphProto, trips: int | None, opset: int, known: Known) -> int | None:
    """Return the number of trips after which the condition of a body is known to end the loop, or
    `trips` if it never does.
    """
    needed = _decisive(body)
    nodes = [item for item in body.node if not needed.isdisjoint(item.output)]
    own = frozenset(defined_names(body))
    kept = {tensor.name: _varying(from_tensor(tensor)) for tensor in body.initializer if tensor.name in needed}
    carried = [_varying(known(name)) for name in node.input[2:]]
    for trip in range(_MOST if trips is None else min(trips, _MOST)):
        facts = {
            body.input[0].name: Fact(int(TensorProto.INT64), declared_sizes(body.input[0]), ints=(trip,)),
            body.input[1].name: Fact(int(TensorProto.BOOL), declared_sizes(body.input[1]), ints=(1,)),
            **dict(zip((info.name for info in body.input[2:]), carried, strict=False)),
            **kept,
        }

        def fact(name: str, facts: dict[str, Fact] = facts) -> Fact:
            return facts.get(name, UNKNOWN) if name in own else _varying(known(name))

        for item in nodes:
            facts.update(zip(item.output, _inferred(item, opset, fact), strict=True))
        going = _number(fact(body.output[0].name))
        if going is None:
            return None
        if not going:
            return trip + 1
        carried = [fact(info.name) for info in body.output[1 : len(node.input) - 1]]
    return trips if trips is not None and trips <= _MOST else None


def _varying(fact: Fact) -> Fact:
    """Return the fact of a constant as that of any value: inference derives no ranges of constants."""
    return fact._replace(const=False)


def _inferred(node: onnx.NodeProto, opset: int, fact: Known) -> Iterable[Fact]:
    """Return the facts of a node's outputs from those of its inputs."""
    if normal_domain(node.domain) or any(attribute_graphs(node)):
        return [UNKNOWN] * len(node.output)
    operator = find_operator("", node.op_type, opset)
    inputs = tuple(fact(name) if name else None for name in node.input)
    return map(_varying, infer(operator, read_attributes(operator, node.attribute), inputs, len(node.output)))


def _decisive(body: onnx.GraphProto) -> set[str]:
    """Return the values of a body on which its condition depends, in this trip or a later one."""
    carried = {info.name: result.name for info, result in zip(body.input[2:], body.output[1:], strict=False)}
    needed: set[str] = set()
    waiting = [body.output[0].name]
    producers = {name: node for node in body.node for name in node.output if name}
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        waiting += producers[name].input if name in producers else [carried[name]] if name in carried else []
    return needed

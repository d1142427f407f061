"""Unrolling: a Loop or Scan with a known number of trips becomes the nodes of all its trips.

Each trip is a copy of the body. It reads what the trip before returns, and its iteration number is
a constant. The values that a body gives to its scanned outputs are stacked at the end. What an
unrolled loop computes is what the loop computes; whether that is faster is for the caller to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import onnx
from onnx import helper

from eqsat.control.bodies import Destination, Graph, Node, count_of, everywhere, rename, replace_nodes
from eqsat.control.containers import constant_node, joined_rows
from eqsat.control.trips import declared_sizes
from eqsat.frozen import frozen
from eqsat.model.model import FunctionKey, attribute_graphs, function_key
from eqsat.operators import find_operator, may_train, normal_domain, read_attributes

_RESHAPES = 5  # the first opset in which the sizes of a Reshape are an input

# Returns the sizes that all of these values have, if they are numbers, given the nodes that compute
# the values.
Sizes = Callable[[Sequence[Node], Sequence[str]], Sequence[int] | None]


def no_sizes(nodes: Sequence[Node], names: Sequence[str]) -> None:
    """Know no sizes."""


def scan_axes(node: Node) -> list[int]:
    """Return the axis of each scanned input of a Scan along which the body walks."""
    return _integers(node, "scan_input_axes", count_of(node, "num_scan_inputs"))


def repeatable(body: Graph, opset: int, functions: Iterable[FunctionKey]) -> bool:
    """Tell whether copies of a body compute what one body computes in as many runs.

    Nodes that draw random numbers keep a state from run to run. Nodes of which nothing is known, and
    functions, might.
    """
    known = set(functions)
    for node in everywhere(body.node):
        operator = find_operator(normal_domain(node.domain), node.op_type, opset if not normal_domain(node.domain) else 1)
        trains = may_train(operator, read_attributes(operator, node.attribute), len(node.input), len(node.output))
        if function_key(node.domain, node.op_type, node.overload) in known or not operator.pure or trains:
            return False
    return True


def unrolled(node: Node, trips: int, into: Destination, sizes: Sizes = no_sizes) -> list[Node] | None:
    """Return the nodes that a Loop or Scan runs in its trips, or None if they cannot move.

    The body must be `repeatable` if there is more than one trip. Raise `NameClash`.
    """
    body = dict(attribute_graphs(node))["body"]
    if not into.takes(body):
        return None
    skip, first = (1, 2) if node.op_type == "Loop" else (0, 0)
    carried = len(node.input) - first - count_of(node, "num_scan_inputs")
    state = list(node.input[first : first + carried])
    if trips == 0:
        # The runtime decides which sizes an empty stack has.
        return None if any(node.output[carried:]) else _copies(state, node.output)
    stacks = [_Stack(name, place, []) for place, name in enumerate(node.output[carried:]) if name]
    nodes, body, shared = _with_shared_constants(body, into) if trips > 1 else ([], body, {})
    for trip in range(trips):
        results = [""] * (len(body.output) - skip)
        for place in range(carried):
            results[place] = node.output[place] if trip == trips - 1 and place < len(node.output) else into.fresh.make(body.output[skip + place].name)
        for stack in stacks:
            results[carried + stack.place] = into.fresh.make(f"{stack.result}_{trip if trips > 1 else 'one'}")
            stack.parts.append(results[carried + stack.place])
        made, given = _given(node, body, state, trip, trips, into)
        arguments = shared | dict(zip([info.name for info in body.input], given, strict=True))
        nodes += [*made, *into.moved(body, arguments, results, skip, once=trips == 1)]
        state = results[:carried]
    stacked = [made for stack in stacks for made in _stacked(node, stack, into, sizes(nodes, stack.parts))]
    return nodes + stacked


@frozen
class _Stack:
    """A scanned output: its name, its place behind the carried values, and what each trip gives."""

    result: str
    place: int
    parts: list[str]


def _copies(sources: Sequence[str], results: Sequence[str]) -> list[Node]:
    return [helper.make_node("Identity", [source], [result]) for source, result in zip(sources, results, strict=False) if result]


def _with_shared_constants(body: Graph, into: Destination) -> tuple[list[Node], Graph, dict[str, str]]:
    """Store the constants of a body once for all trips.

    Return the nodes that hold them, the body without them, and their new names.
    """
    rest, apart = Graph(), Graph()
    rest.CopyFrom(body)
    inputs = {info.name for info in body.input}
    apart.initializer.extend(tensor for tensor in body.initializer if tensor.name not in inputs)
    apart.node.extend(item for item in body.node if _is_constant(item))
    names = [*(tensor.name for tensor in apart.initializer), *(item.output[0] for item in apart.node)]
    apart.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    del rest.initializer[:]
    replace_nodes(rest.node, [item for item in body.node if not _is_constant(item)])
    shared = {name: into.fresh.make(name) for name in names}
    renamed = Graph()
    renamed.CopyFrom(apart)
    for tensor in renamed.initializer:
        tensor.name = shared[tensor.name]
    nodes = [made for tensor in renamed.initializer for made in into.stored(tensor)]
    for item in renamed.node:
        rename(item, shared)
    return [*nodes, *renamed.node], rest, shared


def _is_constant(node: Node) -> bool:
    return node.op_type == "Constant" and not normal_domain(node.domain)


def _given(node: Node, body: Graph, state: Sequence[str], trip: int, trips: int, into: Destination) -> tuple[list[Node], list[str]]:
    """Return the names of what the body is given in a trip, and the nodes that make some of it."""
    if node.op_type == "Loop":
        number = constant_node(np.full(declared_sizes(body.input[0]), trip, np.int64), into.fresh.make("iteration"))
        going = constant_node(np.ones(declared_sizes(body.input[1]), np.bool_), into.fresh.make("condition"))
        return [number, going], [number.output[0], going.output[0], *state]
    made: list[Node] = []
    names = list(state)
    directions = _integers(node, "scan_input_directions", len(node.input) - len(state))
    for source, axis, backward in zip(node.input[len(state) :], scan_axes(node), directions, strict=True):
        place = constant_node(np.array(trips - 1 - trip if backward else trip, np.int64), into.fresh.make("place"))
        names.append(into.fresh.make(f"{source}_{trip}"))
        made += [place, helper.make_node("Gather", [source, place.output[0]], [names[-1]], axis=axis)]
    return made, names


def _stacked(node: Node, stack: _Stack, into: Destination, sizes: Sequence[int] | None) -> list[Node]:
    """Return nodes that stack what the trips give to one scanned output."""
    axis = _integers(node, "scan_output_axes", stack.place + 1)[stack.place]
    parts = stack.parts[::-1] if _integers(node, "scan_output_directions", stack.place + 1)[stack.place] else stack.parts
    place = axis + (0 if sizes is None or axis >= 0 else len(sizes) + 1)
    if sizes is not None and into.scope.opset >= _RESHAPES and len(parts) > 1 and all(sizes) and 0 <= place < len(sizes):
        # One Reshape after the Concat takes the place of an Unsqueeze for each part. In a Reshape
        # a size of 0 would have another meaning, and behind the last axis parts would interleave.
        joined = into.fresh.make(f"{stack.result}_joined")
        shape = constant_node(np.array([*sizes[:place], len(parts), *sizes[place:]], np.int64), into.fresh.make("shape"))
        return [helper.make_node("Concat", parts, [joined], axis=place), shape, helper.make_node("Reshape", [joined, shape.output[0]], [stack.result])]
    return joined_rows(parts, axis, stack.result, into.scope, into.fresh)


def _integers(node: Node, name: str, count: int) -> list[int]:
    """Return a list of integers of a node, by default `count` times 0."""
    return next((list(item.ints) for item in node.attribute if item.name == name), [0] * count)

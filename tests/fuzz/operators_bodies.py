"""Drawing of control flow, sequences and optionals by name; `grow` adds nodes to a body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import GraphProto, ValueInfoProto, helper

from .scope import Emitter, Scope, Value, element_code

Grow = Callable[[Scope, int], None]


def emitters(grow: Grow) -> dict[str, Emitter]:
    """Returns the emitters of operators with bodies or with values that are no tensors.

    `grow` fills the bodies.
    """

    def body(s: Scope, values: list[Value], nodes: int) -> Scope:
        inner = s.inner()
        inner.values = list(values)
        grow(inner, nodes)
        return inner

    def choice(s: Scope, x: Value, operator: str) -> list[Value] | None:
        condition = s.tensor(np.bool_, (), 0.6)
        branches: list[GraphProto] = []
        for name in ("then_branch", "else_branch"):
            inner = body(s, [], s.chance.number(1, 3))
            result = _like(inner, x)
            if result is None:
                return None
            branches.append(inner.graph(name, [], [_loose(result)]))
        node = helper.make_node("If", [condition.name], [s.fresh()], then_branch=branches[0], else_branch=branches[1])
        return s.add(node, [condition])

    def loop(s: Scope, x: Value, operator: str) -> list[Value] | None:
        count = s.chance.pick([s.literal(np.array(s.chance.number(0, 3), np.int64)), s.given(np.array(s.chance.number(0, 3), np.int64), high=4)])
        inner = s.inner()
        number, going = Value(f"{inner.prefix}i", np.array(0, np.int64)), Value(f"{inner.prefix}go", np.array(True))
        state = Value(f"{inner.prefix}s", x.data)
        inner.values = [number, going, state]
        grow(inner, s.chance.number(1, 3))
        result = _like(inner, state)
        on = inner.node("Identity", [going])
        made = [value for value in inner.values if value.is_tensor and value is not result and value not in (number, going, state)]
        scanned = [s.chance.pick(made)] if made and s.chance.often() else []
        if on is None or result is None:
            return None
        inputs = [number.proto(), going.proto(), _loose(state)]
        graph = inner.graph("body", inputs, [_loose(on[0]), _loose(result), *map(_loose, scanned)])
        condition = s.literal(np.array(True)) if s.chance.often(0.3) else None
        names = [s.fresh() for _ in range(1 + len(scanned))]
        node = helper.make_node("Loop", [count.name, condition.name if condition else "", x.name], names, body=graph)
        return s.add(node, [value for value in (count, condition, x) if value])

    def scan(s: Scope, x: Value, operator: str) -> list[Value] | None:
        if not x.rank or not x.shape[0] or s.opset < 9:
            return None
        inner = s.inner()
        row = Value(f"{inner.prefix}x", np.asarray(x.data[0]))
        start = s.tensor(x.dtype, x.shape[1:])
        state = Value(f"{inner.prefix}s", start.data)
        inner.values = [state, row]
        grow(inner, s.chance.number(1, 3))
        result = _like(inner, state)
        made = [value for value in inner.values if value.is_tensor and value is not result and value not in (state, row)]
        if not made or result is None:
            return None
        seen = s.chance.pick(made)
        graph = inner.graph("body", [_loose(state), _loose(row)], [_loose(result), _loose(seen)])
        settings: dict[str, Any] = {"scan_input_directions": [1]} if s.chance.often(0.2) else {}
        names = [s.fresh(), s.fresh()]
        return s.add(helper.make_node("Scan", [start.name, x.name], names, body=graph, num_scan_inputs=1, **settings), [start, x])

    return {"If": choice, "Loop": loop, "Scan": scan, **_SEQUENCES}


def _like(inner: Scope, x: Value) -> Value | None:
    """Returns a value of the body with the type and sizes of `x`.

    If there is none, it makes one from `x`; None if no Identity accepts `x`.
    """
    found = [value for value in inner.values if value.maker and value.is_tensor and value.dtype == x.dtype and value.shape == x.shape]
    if found:
        return inner.chance.pick(found[-2:])
    for operator in ("Neg", "Not", "Identity"):
        made = inner.node(operator, [x])
        if made:
            return made[0]
    return None


def _loose(value: Value) -> ValueInfoProto:
    """Returns the value, with sizes that the body leaves open."""
    return ValueInfoProto(name=value.name, type=helper.make_tensor_type_proto(element_code(value.dtype), None))


# --- sequences and optionals ---


def construct(s: Scope, x: Value, operator: str) -> list[Value] | None:
    alike = [value for value in s.known if value.is_tensor and value.dtype == x.dtype]
    return s.node(operator, [x, *(s.chance.pick(alike) for _ in range(s.chance.number(0, 2)))])


def _sequence(s: Scope, x: Value) -> Value | None:
    found = [value for value in s.known if isinstance(value.data, list)]
    if found and s.chance.often(0.8):
        return s.chance.pick(found)
    made = construct(s, x, "SequenceConstruct")
    return made[0] if made else None


def at(s: Scope, x: Value, operator: str) -> list[Value] | None:
    sequence = _sequence(s, x)
    if sequence is None:
        return None
    count = len(sequence.data)
    place = s.literal(np.array(s.chance.number(-count, count - 1), np.int64))
    if operator == "SequenceInsert":
        kind = sequence.data[0].dtype
        return s.node(operator, [sequence, s.tensor(kind, s.sizes()), place if s.chance.often(0.7) else None])
    return s.node(operator, [sequence, place if operator == "SequenceAt" or s.chance.often(0.7) else None])


def length(s: Scope, x: Value, operator: str) -> list[Value] | None:
    sequence = _sequence(s, x)
    return s.node(operator, [sequence]) if sequence else None


def joined(s: Scope, x: Value, operator: str) -> list[Value] | None:
    sequence = _sequence(s, x)
    if sequence is None:
        return None
    rank = sequence.data[0].ndim
    new = s.chance.number(0, 1)
    axis = s.chance.number(-rank, rank - 1 + new) if rank else 0
    others = {part.shape if new else (part.shape[: axis % rank], part.shape[axis % rank + 1 :]) for part in sequence.data if part.ndim == rank and rank}
    # The runtime accepts empty parts of other sizes and ranks, and leaves some of the result
    # unwritten.
    alike = len(others) == 1 and all(part.ndim == rank for part in sequence.data)
    return s.node(operator, [sequence], axis=axis, new_axis=new) if alike else None


def parted(s: Scope, x: Value, operator: str) -> list[Value] | None:
    if not x.rank:
        return None
    axis = s.chance.number(-x.rank, x.rank - 1)
    kind = s.chance.number(0, 2)
    size = x.shape[axis]
    parts = None if kind == 0 else s.literal(np.array(s.chance.number(1, 2) if kind == 1 else s.chance.split(size, 2), np.int64))
    return s.node(operator, [x, parts], axis=axis, keepdims=s.chance.pick([None, 0, 1]))


def optional(s: Scope, x: Value, operator: str) -> list[Value] | None:
    """Adds a filled optional, and a node that reads its element."""
    if s.opset < 15:
        return None
    filled, result = s.fresh(), s.fresh()
    s.nodes += [helper.make_node("Optional", [x.name], [filled]), helper.make_node(operator, [filled], [result])]
    value = Value(result, np.array(True) if operator == "OptionalHasElement" else x.data, operator)
    s.values.append(value)
    return [value]


_SEQUENCES: dict[str, Emitter] = {
    "ConcatFromSequence": joined,
    "OptionalGetElement": optional,
    "OptionalHasElement": optional,
    "SequenceAt": at,
    "SequenceConstruct": construct,
    "SequenceErase": at,
    "SequenceInsert": at,
    "SequenceLength": length,
    "SplitToSequence": parted,
}

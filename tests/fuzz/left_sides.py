"""Left sides of the library's rules as parts of models, and the neighbors of operators in them.

The checker draws an instance. Its nodes are added to a graph one by one, in the spelling of the
graph's opset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache

import numpy as np
from onnx import AttributeProto, NodeProto, helper, numpy_helper

from eqsat.checker.drawing.instances import Instance, draw
from eqsat.checker.drawing.left_side import choices, flatten
from eqsat.language.library import built_in
from eqsat.language.resolved import Resolved
from eqsat.operators import find_operator
from eqsat.traits import NEWEST

from .chance import Chance
from .scope import Scope, Value


@cache
def families() -> tuple[tuple[Resolved, ...], ...]:
    """Returns the rules of the library: each alone, the members of a family together."""
    found: dict[str, list[Resolved]] = {}
    for rule in built_in().rules:
        found.setdefault(rule.rule.family, []).append(rule)
    return tuple(map(tuple, found.values()))


@cache
def neighbours() -> Mapping[str, Mapping[str, float]]:
    """Returns, by operator, how often each other one reads its result in left sides of rules."""
    found: dict[str, Counter[str]] = {}
    for rule in (rule for family in families() for rule in family):
        left = flatten(rule, frozenset(choices(rule).optional), dict.fromkeys(choices(rule).spreads, 1))
        makers = {name: step.operator.name for step in left.steps for name in step.outputs}
        for step in left.steps:
            for name in step.inputs:
                if name in makers:
                    found.setdefault(makers[name], Counter())[step.operator.name] += 1
    # The most frequent pair must not crowd out pairs of a single rule.
    return {maker: {reader: float(np.sqrt(count)) for reader, count in readers.items()} for maker, readers in found.items()}


def instance(chance: Chance) -> Instance | None:
    """Returns an instance of the left side of a rule. Rules and families are equally likely."""
    return next(draw(chance.pick(chance.pick(families())), chance.number(0, 1 << 30)), None)


def splice(s: Scope, found: Instance) -> list[Value]:
    """Adds the nodes of an instance and returns their outputs.

    Its inputs become values of the graph of their types, or new ones.
    """
    graph = found.model.graph
    sizes = _renamed(s, found)
    known: dict[str, Value] = {}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for info in graph.input:
        kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        shape = [sizes.get(dim.dim_value, dim.dim_value) for dim in info.type.tensor_type.shape.dim]
        domain = found.domains.get(info.name)
        if domain is None:
            known[info.name] = s.tensor(kind, shape, 0.6)
            continue
        low, high = (0 if domain.low is None else int(domain.low)), (5 if domain.high is None else int(domain.high))
        array = s.chance.whole(kind, shape, max(low, int(not domain.zero)), max(high, low))
        known[info.name] = s.given(array, fixed=True)
    added: list[Value] = []
    for node in graph.node:
        values = _added(s, node, known, constants)
        if values is None:
            break
        known.update(zip([name for name in node.output if name], values, strict=False))
        added += values
    return added


def _renamed(s: Scope, found: Instance) -> dict[int, int]:
    """Returns the sizes of the instance that become named sizes of the graph.

    There are none if anything but the inputs depends on the sizes.
    """
    if not found.sizes or not s.symbols:
        return {}
    chosen = s.chance.some(sorted(set(found.sizes.values())), 1)
    return dict(zip(chosen, s.symbols, strict=False))


def _added(s: Scope, node: NodeProto, known: dict[str, Value], constants: Mapping[str, np.ndarray]) -> list[Value] | None:
    """Adds the node in the graph's opset.

    Inputs become attributes where the opset has attributes, and defaults in between are omitted.
    """
    newest = find_operator(node.domain, node.op_type, NEWEST).schema
    schema = find_operator(node.domain, node.op_type, s.opset if not node.domain else 1).schema
    if newest is None or schema is None:
        return None
    formals = [formal.name for formal in newest.inputs]
    attributes = set(schema.attributes)
    operands: list[Value | None] = []
    settings = {item.name: _setting(item) for item in node.attribute}
    for place, name in enumerate(node.input):
        formal = formals[min(place, len(formals) - 1)]
        if name and name in constants and formal in attributes:
            settings[formal] = constants[name].tolist()
            continue
        if name and name not in known:
            if name not in constants:
                return None
            known[name] = s.literal(constants[name])
        operands.append(known[name] if name else None)
    if "Conv" in node.op_type and any(value is not None and set(value.shape[2:]) & set(s.symbols) for value in operands[1:]):
        return None  # the runtime never returns from a kernel without elements
    return s.node(node.op_type, operands, len(node.output), node.domain, **settings)


def _setting(item: AttributeProto) -> object:
    value = helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return value.decode()
    return [part.decode() if isinstance(part, bytes) else part for part in value] if isinstance(value, list) else value

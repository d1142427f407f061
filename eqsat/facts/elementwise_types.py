"""The type of an elementwise node of known sizes, the one that ONNX's inference finds.

Most nodes of a model are such nodes, and their types are plain: ONNX's inference takes ten times as
long, since each call of it writes and reads messages. Where anything is unusual, there is no answer
here, and ONNX gives the type, or the reason to reject the node.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from onnx import defs

from eqsat.facts.fact import DTYPES_OF_SCHEMAS, Fact
from eqsat.facts.node import Node
from eqsat.families import members
from eqsat.operators import Operator

_OPERATORS = members("unary") | members("binary") | members("variadic") | {"Where"}
_FIRST = 7  # the first opset whose elementwise operators broadcast as numpy does


class _Plain(NamedTuple):
    """What the schema of an elementwise operator without attributes says of its types."""

    inputs: tuple[tuple[str, frozenset[int]], ...]  # the type variable of each formal input, and the data types that it may be
    fewest: int
    variadic: bool
    result: str | int  # a type variable of the inputs, or a data type


def elementwise_type(node: Node) -> Fact | None:
    """Return the type of the only result; None where ONNX's inference has to find it."""
    plain = _plain(node.operator)
    if plain is None or node.attributes or node.outputs != 1:
        return None
    inputs, formals = node.inputs, plain.inputs
    if len(inputs) < plain.fewest or (len(inputs) > len(formals) and not plain.variadic):
        return None
    types: dict[str, int] = {}
    shapes: list[tuple[int, ...]] = []
    for position, fact in enumerate(inputs):
        if fact is None or fact.shape is None or fact.other is not None:
            return None
        variable, allowed = formals[min(position, len(formals) - 1)]
        if fact.dtype not in allowed or types.setdefault(variable, fact.dtype) != fact.dtype:
            return None
        sizes = tuple([size for size in fact.shape if isinstance(size, int)])
        if len(sizes) != len(fact.shape):
            return None
        shapes.append(sizes)
    shape = shapes[0] if len(set(shapes)) == 1 else broadcast_sizes(*shapes)
    if shape is None:
        return None
    return Fact(plain.result if isinstance(plain.result, int) else types[plain.result], shape)


def broadcast_sizes(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the sizes to which known sizes broadcast; None if they do not."""
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        return None


def allowed_dtypes(schema: defs.OpSchema) -> dict[str, frozenset[int]]:
    """Return the data types of tensors that each type variable of an operator may be."""
    constraints = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    return {variable: frozenset(DTYPES_OF_SCHEMAS[text] for text in texts if text in DTYPES_OF_SCHEMAS) for variable, texts in constraints.items()}


@functools.cache
def _plain(operator: Operator) -> _Plain | None:
    schema = operator.schema
    if not operator.standard or schema is None or operator.name not in _OPERATORS or operator.version < _FIRST or schema.attributes:
        return None
    allowed = allowed_dtypes(schema)
    (_, result), *others = operator.formals[1]
    formals = [kind for _, kind in operator.formals[0]]
    if others or not allowed.keys() >= set(formals):
        return None
    # A result of one type, such as that of a comparison, may have a type variable of its own.
    fixed = DTYPES_OF_SCHEMAS.get(result) or (next(iter(allowed[result])) if result not in formals and len(allowed[result]) == 1 else None)
    if fixed is None and result not in formals:
        return None
    variadic = operator.name in members("variadic")
    return _Plain(tuple([(kind, allowed[kind]) for kind in formals]), schema.min_input, variadic, fixed or result)

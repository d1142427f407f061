"""Legality of a node: the type constraints of its schema, and ONNX's inference.

The functions take an operator, its attributes and input facts. They return a reason why every such
node is illegal, or None. Unknown facts are never a reason; a caller that must be sure makes the
data types known first.
"""

from __future__ import annotations

import functools

from onnx import defs

from eqsat.facts.fact import Fact, dtype_name
from eqsat.facts.inference import rejection
from eqsat.operators import Attributes, Operator


@functools.lru_cache(maxsize=1024)
def _kinds(operator: Operator) -> dict[str, frozenset[str]]:
    assert operator.schema is not None
    return {constraint.type_param_str: frozenset(constraint.allowed_type_strs) for constraint in operator.schema.type_constraints}


def type_rejection(operator: Operator, inputs: tuple[Fact | None, ...]) -> str | None:
    """Return a reason why the schema rejects these data types together, or None."""
    return _type_rejection(operator, tuple([0 if fact is None else fact.dtype for fact in inputs]))


@functools.lru_cache(maxsize=1 << 12)
def _type_rejection(operator: Operator, dtypes: tuple[int, ...]) -> str | None:
    schema = operator.schema
    if schema is None:
        return None
    bound: dict[str, int] = {}
    for position, dtype in enumerate(dtypes):
        if not dtype:
            continue
        if position >= len(schema.inputs) and not _variadic(schema):
            return f"{operator.name} has no input {position}"
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if f"tensor({dtype_name(dtype)})" not in _kinds(operator).get(formal.type_str, {formal.type_str}):
            return f"{operator.name} takes no {dtype_name(dtype)} as {formal.name}"
        if formal.type_str in _kinds(operator) and (formal.is_homogeneous or position < len(schema.inputs) - 1):
            other = bound.setdefault(formal.type_str, dtype)
            if other != dtype:
                return f"{operator.name} takes {dtype_name(other)} and {dtype_name(dtype)} not together"
    return None


def _variadic(schema: defs.OpSchema) -> bool:
    return bool(schema.inputs) and schema.inputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic


def illegal(operator: Operator, attributes: Attributes, inputs: tuple[Fact | None, ...], outputs: int) -> str | None:
    """Return a reason why every node with these attributes and inputs is illegal, or None."""
    return type_rejection(operator, inputs) or rejection(operator, attributes, inputs, outputs)

"""Doubling: which results hold the same twice along their last axis.

The tables of rotary embeddings do: they have each cosine and each sine twice. The input is a node
and the facts of its results; the output is the facts, with `doubled` where operators keep it. The
halves are equal in real arithmetic: kernels may round an element by its position.
"""

from __future__ import annotations

from eqsat.facts.fact import INTEGERS, NUMBERS, Fact
from eqsat.facts.node import Node
from eqsat.families import members

_ELEMENTWISE = members("unary") | members("binary") | members("variadic") | {"Cast"}
# Operators whose results have rows of their first input, if the last axis has the same size.
_KEEP_ROWS = frozenset({"Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


def with_doubled(node: Node, facts: list[Fact]) -> list[Fact]:
    """Return the facts of a node's results, with the knowledge that they are doubled."""
    if not any(fact is not None and fact.doubled for fact in node.inputs):
        return facts
    name, result = node.operator.name, facts[0]
    if not result.shape or result.dtype not in NUMBERS - INTEGERS or not _keeps(name, node, result.shape[-1]):
        return facts
    return [result._replace(doubled=True), *facts[1:]]


def _keeps(name: str, node: Node, last: object) -> bool:
    if name in _ELEMENTWISE:
        return all(fact is None or fact.shape == () or bool(fact.shape and _fits(fact, last)) for fact in node.inputs)
    first = node.fact(0)
    if first is None or not first.doubled or not first.shape:
        return False
    if name == "Gather":
        return node.integer("axis", 0) not in (-1, len(first.shape) - 1) and first.shape[-1] == last
    return name in _KEEP_ROWS and first.shape[-1] == last


def _fits(fact: Fact, last: object) -> bool:
    """Tell whether an operand of an elementwise operator has equal halves where the result has them."""
    size = fact.shape[-1] if fact.shape else 1
    return size == 1 or (size == last and (fact.doubled or fact.uniform is not None))

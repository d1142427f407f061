"""Doubling: which results hold the same twice along their last axis.

The tables of rotary embeddings do: they have each cosine and each sine twice. The input is a node
and the facts of its results; the output is the facts, with `doubled` where operators keep it. The
halves are equal in real arithmetic: kernels may round an element by its position.
"""

from __future__ import annotations

from eqsat.facts.fact import Fact
from eqsat.facts.intervals import is_floating
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
    if not result.shape or not is_floating(result.dtype) or not _keeps(name, node, result.shape[-1]):
        return facts
    return [result._replace(doubled=True), *facts[1:]]


def _keeps(name: str, node: Node, last: object) -> bool:
    if name in _ELEMENTWISE:
        return all(fact is None or _fits(fact, last) for fact in node.inputs)
    first = node.fact(0)
    if first is None or not first.doubled or not first.shape or first.shape[-1] != last:
        return False
    rank = len(first.shape)
    return name in _KEEP_ROWS or (name == "Gather" and node.axis(rank, 0) != rank - 1)


def _fits(fact: Fact, last: object) -> bool:
    """Tell whether an operand of an elementwise operator has equal halves where the result has them."""
    if fact.shape is None:
        return False
    size = fact.shape[-1] if fact.shape else 1
    return size == 1 or (size == last and (fact.doubled or fact.uniform is not None))

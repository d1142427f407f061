"""Doubling: which results hold the same twice along their last axis, as two halves or as neighbours.

The tables of rotary embeddings do: they have each cosine and each sine twice. The input is a node
and the facts of its results; the output is the facts, with `doubled` where operators keep equal
halves, and `paired` where they keep or make equal neighbours. Both are equal in real arithmetic:
kernels may round an element by its position.
"""

from __future__ import annotations

from eqsat.facts.dims import Dim
from eqsat.facts.fact import Fact
from eqsat.facts.intervals import is_floating
from eqsat.facts.node import Node
from eqsat.families import members

_ELEMENTWISE = members("unary") | members("binary") | members("variadic") | {"Cast"}
# Operators whose results have rows of their first input, if the last axis has the same size.
_KEEP_ROWS = frozenset({"Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
# Operators that keep all elements in their order.
_KEEP_ORDER = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
_REPEAT = frozenset({"Expand", "Tile"})


def with_doubled(node: Node, facts: list[Fact]) -> list[Fact]:
    """Return the facts of a node's results, with the knowledge that they are doubled or paired."""
    known = any(fact is not None and (fact.doubled or fact.paired) for fact in node.inputs)
    if not known and node.operator.name not in _REPEAT:  # nearly all nodes
        return facts
    if not facts or not facts[0].shape or not is_floating(facts[0].dtype) or facts[0].uniform is not None:
        return facts
    last = facts[0].shape[-1]
    if last is None:
        return facts
    doubled = _keeps(node, last, [fact is not None and fact.doubled for fact in node.inputs])
    paired = _pairs(node, last) or _keeps(node, last, [fact is not None and fact.paired for fact in node.inputs])
    return [facts[0]._replace(doubled=doubled, paired=paired), *facts[1:]] if doubled or paired else facts


def _keeps(node: Node, last: Dim, twice: list[bool]) -> bool:
    """Tell whether a result with this last size has each element twice, as the inputs that are marked."""
    if not any(twice):
        return False
    name = node.operator.name
    if name in _ELEMENTWISE:
        return all(fact is None or _fits(fact, last, has) for fact, has in zip(node.inputs, twice, strict=True))
    first = node.fact(0)
    if first is None or not twice[0] or not first.shape or first.shape[-1] != last:
        return False
    rank = len(first.shape)
    return name in _KEEP_ROWS or (name == "Gather" and node.axis(rank, 0) != rank - 1)


def _fits(fact: Fact, last: Dim, twice: bool) -> bool:
    """Tell whether an operand of an elementwise operator has elements twice where the result has them."""
    if fact.shape is None:
        return False
    size = fact.shape[-1] if fact.shape else 1
    return size == 1 or (size == last and (twice or fact.uniform is not None))


def _pairs(node: Node, last: Dim) -> bool:
    """Tell whether a result with this last size has equal neighbours by what the operator does."""
    name, first = node.operator.name, node.fact(0)
    if first is None or not first.shape or not isinstance(last, int) or last % 2:
        return False
    if name in _REPEAT:
        return first.shape[-1] == 1
    return name in _KEEP_ORDER and first.paired

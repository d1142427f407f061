"""Facts of nodes with bodies, from the facts of what their bodies return."""

from __future__ import annotations

from collections.abc import Mapping

from eqsat.facts.fact import UNKNOWN, Fact
from eqsat.model.model import Node


def control_flow_facts(node: Node, facts: Mapping[str, tuple[Fact, ...]]) -> tuple[Fact, ...]:
    """Returns the facts of a node's outputs that hold however its bodies run."""
    if node.operator.name == "If" and set(facts) == {"then_branch", "else_branch"}:
        branches = zip(facts["then_branch"], facts["else_branch"], strict=False)
        joined = tuple(common(a, b) for a, b in branches)
        return (*joined, *(UNKNOWN for _ in node.outputs))[: len(node.outputs)]
    return (UNKNOWN,) * len(node.outputs)


def common(a: Fact, b: Fact) -> Fact:
    """Returns the common fact of two values, for a value that is one of them: their type if they
    share it, never their elements.
    """
    if a.dtype != b.dtype or a.other is not None or b.other is not None:
        return UNKNOWN
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return Fact(a.dtype)
    return Fact(a.dtype, tuple(x if x == y and isinstance(x, int) else None for x, y in zip(a.shape, b.shape, strict=True)))

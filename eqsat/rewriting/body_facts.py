"""Facts of the values of graphs, and of nodes with bodies from what their bodies return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eqsat.egraph.encode import Encoding, encode
from eqsat.egraph.outer import Outer
from eqsat.facts.fact import HALVES, UNKNOWN, Contradiction, Fact
from eqsat.model.model import Graph, Node
from eqsat.model.tensors import ContentIndex
from eqsat.terms.derivation import Derivation
from eqsat.terms.terms import Terms


class GraphFacts:
    """The facts of the values of a model's graphs, as encoding derives them, without evaluation."""

    def __init__(self) -> None:
        self._terms = Terms()
        self._derivation = Derivation(self._terms)
        self._contents = ContentIndex()

    def of(self, graph: Graph, outer: Outer) -> tuple[Encoding, dict[int, Outer]]:
        """Returns a graph with its facts, and what the bodies of its nodes see, by the identity of
        the node's message. Raises `Contradiction`.
        """
        seen: dict[int, Outer] = {}

        def descend(node: Node, inner: Outer) -> tuple[Node, tuple[Fact, ...]]:
            seen[id(node.proto)] = inner
            return node, control_flow_facts(node, {name: self._results(body, inner.only(body.captured())) for name, body in node.bodies.items()})

        return encode(graph, self._terms, self._derivation, self._contents, outer, _nothing, descend), seen

    def _results(self, body: Graph, outer: Outer) -> tuple[Fact, ...]:
        try:
            encoding, _ = self.of(body, outer)
        except Contradiction:
            return (UNKNOWN,) * len(body.outputs)
        return tuple(encoding.fact(name) for name in body.outputs)


def has_halves(encoding: Encoding) -> bool:
    """Tells whether a value has 16-bit floats. ONNX Runtime lacks kernels for them, so it computes
    a run of such nodes in 32 bits and rounds only at its ends.
    """
    known = map(encoding.terms.value_fact, encoding.facts)
    return any(fact is not None and fact.dtype in HALVES for fact in known)


def _nothing(names: Sequence[str]) -> Mapping[str, np.ndarray[Any, Any]]:
    return {}


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

"""The memory that an extraction needs, estimated before it begins."""

from __future__ import annotations

from .graph import ExtractionError, Graph

PER_NODE, PER_EDGE, PER_CLASS = 1200, 120, 500
"""Bytes, measured with room to spare: the graph's own data and everything beside it at the peak."""


def demand(graph: Graph, limit: int) -> None:
    """Raise an ExtractionError if extraction from `graph` would need more than `limit` bytes."""
    need = PER_NODE * len(graph.nodes) + PER_EDGE * sum(len(node.children) for node in graph.nodes) + PER_CLASS * graph.classes
    if need > limit:
        size = f"{len(graph.nodes):,} nodes in {graph.classes:,} classes"
        raise ExtractionError(f"a graph of {size} needs about {need / 1e9:.1f} GB of memory; the limit is {limit / 1e9:.1f} GB")

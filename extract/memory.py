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
        raise ExtractionError(f"a graph of {size} needs about {amount(need)} of memory; the limit is {amount(limit)}")


def amount(size: float) -> str:
    """Return a number of bytes in the largest fitting unit, a power of 1024: `1.5G`."""
    for unit, power in (("G", 3), ("M", 2), ("k", 1)):
        if size >= 1024**power:
            return f"{size / 1024**power:.3g}{unit}"
    return f"{size:.0f} bytes"

"""Biconnected blocks: cut a kernel at its articulation points.

A subgraph is an independent problem if only one class or one way leads to it.

The vertices are the classes and the ways. A way is adjacent to its class and to its children. Where
several classes are needed, a source vertex is adjacent to each of them. Edges to a child that is
needed anyway, and that cannot need its user, decide nothing and are left out.

Each block comes after all blocks below it. So the solution of a block can replace it above: as one
more way of the class at its top, or as a weight on the way at its top.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .kernel import Closures, Kernel, bits


@dataclass(frozen=True, slots=True)
class Block:
    """A biconnected block: its classes and ways, without the vertex at its top.

    The top is a class, a way, or the source; for the source, `top_class` and `top_way` are both -1.
    A top class may be the only needed class.
    """

    classes: list[int]
    ways: list[int]
    top_class: int
    top_way: int


def blocks(kernel: Kernel, closures: Closures) -> Iterator[Block]:
    """Yield the blocks of a kernel, those below a vertex before those above it."""
    ways, size = kernel.ways, len(kernel.ways)
    source = size + len(kernel.weight)
    around: dict[int, list[int]] = {source: list(bits(closures.needed))}
    for c in kernel.classes():
        around[c] = [size + n for n in ways[c]] + ([source] if len(around[source]) > 1 and closures.needed >> c & 1 else [])
    for c in kernel.classes():
        aside = closures.needed & ~closures.component_mask[closures.order[c]]
        for n in ways[c]:
            kept = [child for child in kernel.children[n] if not aside >> child & 1]
            around[size + n] = [c, *kept]
            for child in kept:
                around[child].append(size + n)
    first = source if len(around[source]) > 1 else around[source][0]
    found = {first: 0}
    low = {first: 0}
    open_vertices: list[int] = []
    stack = [(first, -1, iter(around[first]))]
    while stack:
        here, above, rest = stack[-1]
        for there in rest:
            if there == above:
                continue
            if there in found:
                low[here] = min(low[here], found[there])
                continue
            found[there] = low[there] = len(found)
            open_vertices.append(there)
            stack.append((there, here, iter(around[there])))
            break
        else:
            stack.pop()
            if not stack:
                return
            low[above] = min(low[above], low[here])
            if low[here] >= found[above]:
                members: list[int] = []
                while not members or members[-1] != here:
                    members.append(open_vertices.pop())
                members.sort()
                top_class = above if above < size else -1
                top_way = above - size if size <= above < source else -1
                yield Block([v for v in members if v < size], [v - size for v in members if v >= size], top_class, top_way)

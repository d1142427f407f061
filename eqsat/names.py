"""Value names in protobuf graphs: fresh ones, and renaming that respects the scopes of bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from eqsat.model import attribute_graphs


class FreshNames:
    """Hands out names that no value of the model has yet, the same ones for the same questions."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def make(self, wish: str) -> str:
        """`wish` itself when it is free, else `wish` with the first free number behind it."""
        name = wish
        while not name or name in self._taken:
            self._next[wish] = number = self._next.get(wish, 0) + 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name


def stored_names(graph: onnx.GraphProto) -> list[str]:
    """The names of the initializers of a graph, dense and sparse."""
    return [tensor.name for tensor in graph.initializer] + [tensor.values.name for tensor in graph.sparse_initializer]


def defined_names(graph: onnx.GraphProto) -> list[str]:
    """The names that a graph itself defines: inputs, initializers and node outputs; not those inside its bodies."""
    names = [info.name for info in graph.input]
    names += stored_names(graph)
    for node in graph.node:
        names += [name for name in node.output if name]
    return list(dict.fromkeys(names))


def all_names(graph: onnx.GraphProto) -> Iterable[str]:
    """Every name in a graph and in the bodies below it, used or defined, and the node names."""
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        yield from defined_names(current)
        yield from (info.name for info in current.output)
        for node in current.node:
            yield node.name
            yield from node.input
            waiting.extend(body for _, body in attribute_graphs(node))


def captures(graph: onnx.GraphProto) -> list[str]:
    """The outer values that a body uses, in order of first use."""
    defined = set(defined_names(graph))
    used: dict[str, None] = {}
    for node in graph.node:
        used.update(dict.fromkeys(node.input))
        for _, body in attribute_graphs(node):
            used.update(dict.fromkeys(captures(body)))
    used.update(dict.fromkeys(info.name for info in graph.output))
    return [name for name in used if name and name not in defined]


class NameClash(Exception):
    """A body defines, for itself, the name that an outer value it uses would take."""


def rename_captures(graph: onnx.GraphProto, mapping: Mapping[str, str]) -> None:
    """Renames, in place, the outer values that a body uses; what the body itself defines under such a name stays."""
    defined = set(defined_names(graph))
    visible = {old: new for old, new in mapping.items() if old != new and old not in defined}
    if visible:
        if not defined.isdisjoint(visible.values()):
            raise NameClash(", ".join(sorted(defined.intersection(visible.values()))))
        _rename_uses(graph, visible)


def _rename_uses(graph: onnx.GraphProto, mapping: Mapping[str, str]) -> None:
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name in mapping:
                node.input[index] = mapping[name]
        for _, body in attribute_graphs(node):
            rename_captures(body, mapping)
    for info in graph.output:
        info.name = mapping.get(info.name, info.name)

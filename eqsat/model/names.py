"""Value names in protobuf graphs: fresh names, and renaming within the scopes of bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from eqsat.model.model import all_graphs, attribute_graphs


class FreshNames:
    """A source of names that no value of the model has. It is deterministic."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken: set[str] = set(taken)
        self._next: dict[str, int] = {}

    def make(self, wish: str) -> str:
        """Return `wish` if it is free, else `wish` with the first free number appended."""
        name = wish
        while not name or name in self._taken:
            self._next[wish] = number = self._next.get(wish, 0) + 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name

    def make_for(self, owner: int, wish: str) -> str:
        """Return a free name for a value that a number identifies."""
        return self.make(wish)

    def stable(self) -> StableNames:
        """Return a source of names that neither this source has given nor a value of the model has."""
        return StableNames(self._taken)


class StableNames(FreshNames):
    """Fresh names for many graphs of the same values: each owner has one name in all of them."""

    def __init__(self, taken: Iterable[str]) -> None:
        super().__init__(taken)
        self._others: frozenset[str] = frozenset(self._taken)
        self._kept: dict[int, str] = {}

    def begin(self) -> None:
        """Begin the next graph: only names of owners stay taken."""
        self._taken = {*self._others, *self._kept.values()}
        self._next.clear()

    def make_for(self, owner: int, wish: str) -> str:
        """Return the name of an owner, the same for each graph."""
        if owner not in self._kept:
            self._kept[owner] = self.make(wish)
        return self._kept[owner]


def stored_names(graph: onnx.GraphProto) -> list[str]:
    """Return the names of the initializers of a graph, dense and sparse."""
    return [tensor.name for tensor in graph.initializer] + [tensor.values.name for tensor in graph.sparse_initializer]


def defined_names(graph: onnx.GraphProto) -> list[str]:
    """Return the names that a graph defines: inputs, initializers and node outputs.

    Names inside its bodies are not included.
    """
    names = [info.name for info in graph.input]
    names += stored_names(graph)
    for node in graph.node:
        names += [name for name in node.output if name]
    return list(dict.fromkeys(names))


def all_names(graph: onnx.GraphProto) -> Iterable[str]:
    """Yield every name in a graph and its bodies, used or defined, and the node names."""
    for current in all_graphs(graph):
        yield from defined_names(current)
        yield from (info.name for info in current.output)
        for node in current.node:
            yield node.name
            yield from node.input


def captures(graph: onnx.GraphProto) -> list[str]:
    """Return the outer values that a body uses, in order of first use."""
    defined = set(defined_names(graph))
    used: dict[str, None] = {}
    for node in graph.node:
        used.update(dict.fromkeys(node.input))
        for _, body in attribute_graphs(node):
            used.update(dict.fromkeys(captures(body)))
    used.update(dict.fromkeys(info.name for info in graph.output))
    return [name for name in used if name and name not in defined]


class NameClash(Exception):
    """A captured value would get a name that the body itself defines."""


def rename_captures(graph: onnx.GraphProto, mapping: Mapping[str, str]) -> None:
    """Rename captured values in a body, in place. Names that the body itself defines stay."""
    defined = set(defined_names(graph))
    visible = {old: new for old, new in mapping.items() if old != new and old not in defined}
    if visible:
        if not defined.isdisjoint(visible.values()):
            raise NameClash(", ".join(sorted(defined.intersection(visible.values()))))
        rename_uses(graph, visible)


def rename_uses(graph: onnx.GraphProto, mapping: Mapping[str, str]) -> None:
    """Rename values where nodes, bodies and outputs of a graph use them, in place. Definitions stay."""
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name in mapping:
                node.input[index] = mapping[name]
        for _, body in attribute_graphs(node):
            rename_captures(body, mapping)
    for info in graph.output:
        info.name = mapping.get(info.name, info.name)

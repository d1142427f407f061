"""Read and write the egraph-serialize format: JSON text to a `Graph` and its names, and back.

A graph from `read` can be extracted, memory permitting: `read` reports each error in a file, with
the names in the file. It builds nothing beyond the memory limit.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import operator
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, cast

from .graph import ExtractionError, Graph, Node
from .memory import amount

PER_BYTE = 64
"""The most bytes of memory per byte of text, measured on nested lists; graphs take about 20."""

_PIECE = 1 << 20
_SHOWN = 60  # Characters of a name in a message.


class Target(Protocol):
    """A sink for bytes."""

    def write(self, data: bytes, /) -> object:
        """Append `data`."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of classes and nodes in a file, in the order of their numbers."""

    classes: list[str]
    nodes: list[str]


def read(source: BinaryIO, memory_limit: int | None = None) -> tuple[Graph, Names]:
    """Read the graph and the names in a file, plain or compressed by gzip.

    A node without a cost costs 1; a subsumed node is never chosen. Each node has the tie 1, so of
    equally cheap choices the one with fewest nodes wins. With `memory_limit` (bytes), a file whose
    text could need more is refused before it is parsed, however strongly it is compressed. An
    ExtractionError of one line names the defect of a file.
    """
    return _graph(_parsed(_text(source, memory_limit)))


def write(graph: Graph, operators: Sequence[str], target: Target) -> None:
    """Write a graph as JSON text; `operators` names each node's operator.

    The format has one number per node. This is a node's cost plus its tie times a factor, which is
    so small that ties decide only between equal costs, within the 53 bits of a double. The format
    has no infinity: nodes that no choice can contain are left out, because of their cost or because
    they exceed a limit alone. It has no resources, limits or terms.
    """
    possible = _possible(graph)
    share = _share(graph)
    names: dict[int, str] = {}
    # By class, the node that stands for the class as a child.
    first: dict[int, str] = {}
    count = [0] * graph.classes
    for index, node in enumerate(graph.nodes):
        if _is_usable(graph, node) and all(possible[child] for child in node.children):
            names[index] = f"{node.eclass}.{count[node.eclass]}"
            count[node.eclass] += 1
            first.setdefault(node.eclass, names[index])
    target.write(b'{"nodes": {')
    for position, (index, name) in enumerate(names.items()):
        node = graph.nodes[index]
        entry = {
            "op": operators[index],
            "children": [first[child] for child in node.children],
            "eclass": str(node.eclass),
            "cost": node.cost + node.tie * share,
        }
        target.write(f"{',' if position else ''}\n{json.dumps(name)}: {json.dumps(entry)}".encode())
    roots = [str(root) for root in dict.fromkeys(graph.roots)]
    target.write(f'\n}},\n"root_eclasses": {json.dumps(roots)},\n"class_data": {{}}}}\n'.encode())


def _share(graph: Graph) -> float:
    """Return a power of two so small that no sum of ties outweighs a difference of costs."""
    nodes = [node for node in graph.nodes if _is_usable(graph, node)]
    _, exponent = math.frexp(math.fsum(node.tie for node in nodes))
    # The denominator of a float is a power of two. All sums of costs are multiples of 1 / `unit`.
    unit = max((node.cost.as_integer_ratio()[1] for node in nodes), default=1)
    return math.ldexp(1.0, 1 - unit.bit_length() - max(exponent, 0))


def _is_usable(graph: Graph, node: Node) -> bool:
    return math.isfinite(node.cost) and math.isfinite(node.tie) and all(map(operator.le, node.resources, graph.limits))


def _text(source: BinaryIO, memory_limit: int | None) -> bytearray:
    """Read the text of a file, decompressed where needed, up to the memory limit."""
    text = bytearray()
    buffered = io.BufferedReader(cast(io.RawIOBase, source))
    try:
        packed = buffered.peek(2)[:2] == b"\x1f\x8b"
        stream = gzip.GzipFile(fileobj=buffered) if packed else buffered
        while piece := stream.read(_PIECE):
            text += piece
            if memory_limit is not None and len(text) * PER_BYTE > memory_limit:
                held, need = f"more than {amount(len(text))} of text", amount(len(text) * PER_BYTE)
                raise ExtractionError(f"{held}, which could need {need} of memory and more; the limit is {amount(memory_limit)}")
    except EOFError:
        raise ExtractionError("the compressed data end too early") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ExtractionError(f"the compressed data are damaged ({error})") from None
    finally:
        buffered.detach()
    return text


def _parsed(text: bytearray) -> object:
    """Parse JSON with all numbers as floats; a duplicate key is an error."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise ExtractionError(f"the key {_quoted(twice)} is given twice in one object")
        return found

    try:
        return json.loads(text, object_pairs_hook=unique, parse_int=float)
    except ExtractionError:
        raise
    except RecursionError:
        raise ExtractionError("not a graph: the JSON is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ExtractionError(f"not JSON: byte {error.start} is no text") from None
    except ValueError as error:
        raise ExtractionError(f"not JSON: {error}") from None


def _graph(data: object) -> tuple[Graph, Names]:
    top = _mapping(data, "the file")
    entries = _mapping(_member(top, "nodes", "the file"), '"nodes"')
    names = Names([], list(entries))
    classes: dict[str, int] = {}
    eclass_of: dict[str, int] = {}
    for name, entry in entries.items():
        eclass = _member(_mapping(entry, f"node {_quoted(name)}"), "eclass", f"node {_quoted(name)}")
        eclass_of[name] = classes.setdefault(_name(eclass, f'"eclass" of node {_quoted(name)}'), len(classes))
    names.classes.extend(classes)
    nodes = [_node(name, cast("dict[str, object]", entry), eclass_of) for name, entry in entries.items()]
    roots: list[int] = []
    for root in _list(_member(top, "root_eclasses", "the file"), '"root_eclasses"'):
        name = _name(root, 'an entry of "root_eclasses"')
        if name not in classes:
            raise ExtractionError(f"the root {_quoted(name)} is a class without nodes")
        roots.append(classes[name])
    if not roots:
        raise ExtractionError('"root_eclasses" names no class, so that there is nothing to extract')
    graph = Graph(len(classes), nodes, roots)
    _demand_choice(graph, names)
    return graph, names


def _node(name: str, entry: dict[str, object], eclass_of: dict[str, int]) -> Node:
    of = f"of node {_quoted(name)}"
    _name(entry.get("op", ""), f'"op" {of}')
    children: list[int] = []
    for child in _list(entry.get("children", []), f'"children" {of}'):
        child = _name(child, f'an entry of "children" {of}')
        if child not in eclass_of:
            raise ExtractionError(f"node {_quoted(name)} has the child {_quoted(child)}, which is no node of the file")
        children.append(eclass_of[child])
    cost = entry.get("cost", 1.0)
    if not isinstance(cost, float):
        raise ExtractionError(f'"cost" {of} is {_kind(cost)}; it has to be a number')
    if not cost >= 0:
        raise ExtractionError(f'"cost" {of} is {cost}; it has to be a number that is not negative')
    subsumed = entry.get("subsumed", False)
    if not isinstance(subsumed, bool):
        raise ExtractionError(f'"subsumed" {of} is {_kind(subsumed)}; it has to be true or false')
    return Node(eclass_of[name], math.inf if subsumed else cost, tuple(children), tie=1.0)


def _demand_choice(graph: Graph, names: Names) -> None:
    """Raise an ExtractionError if a root has no finite acyclic choice.

    The message names the class at the end of a chain of first causes.
    """
    possible = _possible(graph)
    here = next((root for root in graph.roots if not possible[root]), None)
    if here is None:
        return
    finite: list[list[Node]] = [[] for _ in range(graph.classes)]
    for node in graph.nodes:
        if _is_usable(graph, node):
            finite[node.eclass].append(node)
    root, seen = here, set[int]()
    while here not in seen and finite[here]:
        seen.add(here)
        here = next(child for child in finite[here][0].children if not possible[child])
    reason = "its nodes lead back to itself, in a cycle without a way out" if finite[here] else "each of its nodes is subsumed or costs infinity"
    needed = "" if here == root else f", which the root {_quoted(names.classes[root])} needs,"
    raise ExtractionError(f"class {_quoted(names.classes[here])}{needed} can not be chosen: {reason}")


def _possible(graph: Graph) -> bytearray:
    """Mark each class that has an acyclic choice of usable nodes."""
    users: list[list[int]] = [[] for _ in range(graph.classes)]
    missing: list[int] = []
    ready: list[int] = []
    for index, node in enumerate(graph.nodes):
        # A node that needs its own class never completes.
        children = node.children if _is_usable(graph, node) else (node.eclass,)
        missing.append(len(children))
        for child in children:
            users[child].append(index)
        if not children:
            ready.append(node.eclass)
    possible = bytearray(graph.classes)
    while ready:
        eclass = ready.pop()
        if possible[eclass]:
            continue
        possible[eclass] = 1
        for index in users[eclass]:
            missing[index] -= 1
            if not missing[index]:
                ready.append(graph.nodes[index].eclass)
    return possible


def _member(mapping: dict[str, object], key: str, where: str) -> object:
    if key not in mapping:
        raise ExtractionError(f'{where} has no "{key}"')
    return mapping[key]


def _mapping(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ExtractionError(f"{what} is {_kind(value)}; it has to be an object")
    return cast("dict[str, object]", value)


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ExtractionError(f"{what} is {_kind(value)}; it has to be a list of names")
    return cast("list[Any]", value)


def _name(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ExtractionError(f"{what} is {_kind(value)}; it has to be a string")
    return value


def _kind(value: object) -> str:
    """Return the kind of a value in JSON's words."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "a number"


def _quoted(name: str) -> str:
    """Quote a name of the file in a message; cut it if it is long."""
    return repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")

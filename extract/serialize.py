"""The egraph-serialize format: JSON text comes in, a `Graph` and the file's own names of its classes and nodes go out; and the way back.

What `read` gives can be extracted from, if memory allows: whatever is wrong in a file is said here, in the file's own names. Nothing is built that
the memory limit does not cover.
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

PER_BYTE = 64
"""Bytes of memory for each byte of text at the most, as measured: for lists in lists, with the text itself as bytes and decoded. Graphs take 20 or so."""

_PIECE = 1 << 20
_SHOWN = 60  # characters of a name in a message


class Target(Protocol):
    """Something that bytes can be written to."""

    def write(self, data: bytes, /) -> object:
        """Appends `data`."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a file calls its classes and nodes, in the order of their numbers."""

    classes: list[str]
    nodes: list[str]


def read(source: BinaryIO, memory_limit: int | None = None) -> tuple[Graph, Names]:
    """The graph that a file holds, plain or compressed by gzip, and its names; an ExtractionError of one line says what is wrong in the file.

    A node without a cost costs 1, and one that is subsumed is never chosen. Each node has the tie 1, so that of equally cheap choices the one of fewest
    nodes is the best. With `memory_limit` (bytes) a file whose text could need more is refused before it is parsed, however far it is compressed.
    """
    return _graph(_parsed(_text(source, memory_limit)))


def write(graph: Graph, operators: Sequence[str], target: Target) -> None:
    """Writes a graph as JSON text; `operators` has what each node is to be called.

    The format knows one number: the cost of a node is written with its tie as a share so small that ties decide only between equal costs, as far as the
    53 bits of a double can tell. It knows no infinity: nodes that no choice can have, because of their cost or because they exceed a limit alone, are
    left out. Nor does it know resources, limits on sums of them, and terms.
    """
    possible = _possible(graph)
    share = _share(graph)
    names: dict[int, str] = {}
    first: dict[int, str] = {}  # by class, the node that stands for it as a child
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
    """A power of two so small that all ties together are less than any difference of two sums of costs."""
    nodes = [node for node in graph.nodes if _is_usable(graph, node)]
    _, exponent = math.frexp(math.fsum(node.tie for node in nodes))
    # A float's denominator is a power of two: the largest is the unit in which all sums of costs are whole.
    unit = max((node.cost.as_integer_ratio()[1] for node in nodes), default=1)
    return math.ldexp(1.0, 1 - unit.bit_length() - max(exponent, 0))


def _is_usable(graph: Graph, node: Node) -> bool:
    return math.isfinite(node.cost) and math.isfinite(node.tie) and all(map(operator.le, node.resources, graph.limits))


def _text(source: BinaryIO, memory_limit: int | None) -> bytearray:
    """The text of a file, decompressed where it is compressed, and no more of it than memory allows."""
    text = bytearray()
    buffered = io.BufferedReader(cast(io.RawIOBase, source))
    try:
        packed = buffered.peek(2)[:2] == b"\x1f\x8b"
        stream = gzip.GzipFile(fileobj=buffered) if packed else buffered
        while piece := stream.read(_PIECE):
            text += piece
            if memory_limit is not None and len(text) * PER_BYTE > memory_limit:
                held, need = f"more than {len(text) / 1e6:.3g} MB of text", f"{len(text) * PER_BYTE / 1e9:.3g} GB"
                raise ExtractionError(f"{held}, which could need {need} of memory and more; the limit is {memory_limit / 1e9:.3g} GB")
    except EOFError:
        raise ExtractionError("the compressed data end too early") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ExtractionError(f"the compressed data are damaged ({error})") from None
    finally:
        buffered.detach()
    return text


def _parsed(text: bytearray) -> object:
    """JSON as Python data, in which all numbers are floats; a key that is given twice is an error."""

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
    """An ExtractionError where a root has no finite acyclic choice: it follows a first cause from the root to a class that has none of itself."""
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
    """By class, whether it has an acyclic choice of usable nodes."""
    users: list[list[int]] = [[] for _ in range(graph.classes)]
    missing: list[int] = []
    ready: list[int] = []
    for index, node in enumerate(graph.nodes):
        children = node.children if _is_usable(graph, node) else (node.eclass,)  # a node that needs its own class is never complete
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
    """What a value is in JSON's words."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "a number"


def _quoted(name: str) -> str:
    """A name of the file in a message, cut if it is long."""
    return repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")

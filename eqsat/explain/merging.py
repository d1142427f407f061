"""Merging: values of the original that are one class become one value, before any other change.

Rules such as `Reshape(x, shape(x)) => x` put both sides into one class, so no choice holds the node
that goes. Here its users read the other value instead, rule by rule.
"""

from __future__ import annotations

import graphlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from eqsat.explain.law_names import EQUAL_NODES, StoredValues
from eqsat.model.model import attribute_graphs
from eqsat.model.names import captures, rename_captures
from eqsat.proofs.proofs import LAW, Edge, Proofs
from eqsat.proofs.used import STORED
from eqsat.regions.cut import Definitions
from eqsat.rewriting.portions import Regions
from eqsat.rewriting.solved import Solved
from eqsat.terms.terms import INPUT, Term

_DEEP = 4  # equations behind the terms that an equation needs


@dataclass(frozen=True, slots=True)
class Merge:
    """Values whose users read other values instead, for the same rules."""

    rules: tuple[str, ...]
    """In order; none if laws alone do it."""
    laws: tuple[str, ...]
    """Empty if there are rules."""
    unknown: bool
    names: Mapping[str, str]


def merges(solved: Solved, proofs: Proofs, begun: Sequence[Mapping[int, Term]]) -> Iterator[Merge]:
    """Yields the merges that lead to the first choice. `begun` has that choice, by group."""
    part = solved.part
    definitions = part.definitions if isinstance(part, Regions) else Definitions(part.encoding)
    encoding = definitions.encoding
    equal = {name: definitions.name_of[definitions.first(reference)] for name, reference in encoding.values.items()}
    plain = {name: now for name, now in equal.items() if name != now and name not in encoding.graph.constants}
    if plain:
        yield Merge((), (EQUAL_NODES,), False, plain)
    found: dict[tuple[tuple[str, ...], tuple[str, ...], bool], dict[str, str]] = defaultdict(dict)
    reasons = _Reasons(solved, proofs)
    for group, terms in enumerate(begun):
        for reference, first in reasons.twins(group, terms):
            key = reasons.of(reference, terms)
            found[key].update(_names(solved, definitions, group, reference, first))
    for (rules, laws, unknown), names in sorted(found.items(), key=lambda item: item[0]):
        if names:
            yield Merge(rules, laws, unknown, names)


class _Reasons:
    """The rules that make two values of the original one class."""

    def __init__(self, solved: Solved, proofs: Proofs) -> None:
        self._solved = solved
        self._proofs = proofs
        self._class_of = solved.egraph.class_of
        self._stored = StoredValues(solved.encoding, solved.egraph)
        there = {(term.head, term.data, term.children): term for term in solved.egraph.terms}
        self._own: dict[int, Term] = {}  # by reference
        self._all: dict[int, set[Term]] = defaultdict(set)  # by class, in normal form
        for entry in solved.encoding.entries:
            term = there[entry.head, entry.data, tuple(self._class_of[child] for child in entry.children)]
            self._own.setdefault(entry.eclass, term)
            self._all[term.eclass].add(proofs.normal(term))

    def twins(self, group: int, terms: Mapping[int, Term]) -> Iterator[tuple[int, int]]:
        """Yields the values of a group that are no class of their own: the reference of each, and
        that of the value which stays.
        """
        part = self._solved.part
        values = part.encoding.values
        names = part.excerpt.names[group] if isinstance(part, Regions) else values
        same: dict[int, list[int]] = defaultdict(list)
        for reference in dict.fromkeys(values[name] for name in names):
            if reference in self._own:
                same[self._class_of[reference]].append(reference)
        for eclass, references in same.items():
            here = terms.get(eclass)
            first = next((one for one in references if self._own[one] == here), None)
            if first is not None:
                movable = (one for one in references if one != first and self._own[one].head not in (INPUT, *STORED))
                yield from ((one, first) for one in movable)

    def of(self, reference: int, terms: Mapping[int, Term]) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        """Returns the rules that make a value equal to the one that stays, the laws if there is no
        rule, and whether some rules are not known.
        """
        dropped = self._own[reference]
        if terms[dropped.eclass].head in STORED:
            return (), (self._stored.law(dropped),), False  # a constant that was computed
        rules, unknown = self._path(dropped, terms[dropped.eclass], terms, 0)
        return rules, () if rules or unknown else (EQUAL_NODES,), unknown

    def _path(self, source: Term, target: Term, terms: Mapping[int, Term], depth: int) -> tuple[tuple[str, ...], bool]:
        path = self._proofs.path(source, target, self._dear, ends=True)
        if path is None or depth > _DEEP:
            return (), True
        rules: dict[str, None] = {}
        unknown = False
        for edge in path:
            for term in edge.needs():
                if self._proofs.normal(term) not in self._all[term.eclass] and term.eclass in terms:
                    more, lost = self._path(terms[term.eclass], term, terms, depth + 1)
                    rules |= dict.fromkeys(more)
                    unknown |= lost
            if edge.name != LAW:
                rules[edge.name] = None
        return tuple(rules), unknown

    def _dear(self, edge: Edge) -> float:
        missing = sum(self._proofs.normal(term) not in self._all[term.eclass] for term in edge.needs())
        return (0.1 if edge.equation is None else 1.0) + 2.0 * missing + (0.0 if edge.forward else 0.5)


def _names(solved: Solved, definitions: Definitions, group: int, reference: int, first: int) -> dict[str, str]:
    """Returns the name of a value and that of the one which stays, for each region of the kind."""
    part = solved.part
    if not isinstance(part, Regions):
        pairs = [(reference, first)]
    else:
        # By reference in the excerpt, the reference in the first region.
        back = {part.encoding.values[name]: own for name, own in part.excerpt.names[group].items()}
        copies = (part.excerpt.counterparts(group, copy) for copy in range(len(part.excerpt.kinds[group])))
        pairs = [(there[back[reference]], there[back[first]]) for there in copies]
    named = ((definitions.name_of[definitions.first(one)], definitions.name_of[definitions.first(other)]) for one, other in pairs)
    return {one: other for one, other in named if one != other}


def joined(first: Mapping[str, str], then: Mapping[str, str]) -> dict[str, str]:
    """Returns the names of two merges, one after the other, as those of one merge."""
    both = {**then, **{name: then.get(now, now) for name, now in first.items()}}
    return {name: now for name, now in both.items() if name != now}


def merged(model: onnx.ModelProto, names: Mapping[str, str]) -> onnx.ModelProto | None:
    """Returns the model in which the users of some values read other values instead. Outputs of the
    model become copies. Returns None if the nodes would depend on one another in a circle.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    outputs = {info.name for info in graph.output}

    def now(name: str) -> str:
        seen: set[str] = set()
        while name in names and name not in seen:
            seen.add(name)
            name = names[name]
        return name

    for node in graph.node:
        if not outputs.isdisjoint(node.output) and len(node.output) == 1 and node.output[0] in names:
            copy = onnx.helper.make_node("Identity", [now(node.output[0])], [node.output[0]])
            node.CopyFrom(copy)
            continue
        for place, name in enumerate(node.input):
            node.input[place] = now(name)
        for _, body in attribute_graphs(node):
            rename_captures(body, {name: now(name) for name in names})
    return result if _tidy(graph) else None


def _tidy(graph: onnx.GraphProto) -> bool:
    """Sorts the nodes of a graph, and drops those that nothing needs. Tells whether that is possible."""
    makers = {name: place for place, node in enumerate(graph.node) for name in node.output if name}
    reads = [[makers[name] for name in _read(node) if name in makers] for node in graph.node]
    needed: set[int] = set()
    waiting = [makers[info.name] for info in graph.output if info.name in makers]
    waiting += [place for place, node in enumerate(graph.node) if not any(node.output)]
    while waiting:
        place = waiting.pop()
        if place not in needed:
            needed.add(place)
            waiting += reads[place]
    sorter = graphlib.TopologicalSorter({place: reads[place] for place in sorted(needed)})
    try:
        order = list(sorter.static_order())
    except graphlib.CycleError:
        return False
    nodes = [onnx.NodeProto.FromString(graph.node[place].SerializeToString()) for place in order]
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in nodes for name in _read(node)} | {info.name for info in (*graph.output, *graph.input)}
    for place in reversed(range(len(graph.initializer))):
        if graph.initializer[place].name not in used:
            del graph.initializer[place]
    return True


def _read(node: onnx.NodeProto) -> list[str]:
    return [*filter(None, node.input), *(name for _, body in attribute_graphs(node) for name in captures(body))]

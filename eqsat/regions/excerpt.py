"""Excerpts: which regions are alike, and an encoding that holds one region of each kind.

Two regions are alike if their terms and the facts of all their values are the same, apart from the
elements of weights. Then any result of rules and prices for one region holds for the other. The
facts in an excerpt do not have those elements, so no rule sees them. Of ranges they have only those
of a single number, and of floats whether all are finite, as in a mask. Others drift from layer to
layer; laws infer those that follow within a region.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field, replace

import onnx

from eqsat.egraph.encode import Encoding
from eqsat.facts.fact import Fact, element_count
from eqsat.facts.intervals import Range, finite_limits, is_floating
from eqsat.frozen import mutable
from eqsat.model.model import Constant, Graph, Node
from eqsat.model.names import FreshNames
from eqsat.model.tensors import Tensor
from eqsat.regions.cut import Barrier, Definitions, Region
from eqsat.terms.terms import CONSTANT, INPUT, Link, Term

_READ = 5  # the most elements of a floating-point tensor that rules may read in an excerpt


@mutable
class Excerpt:
    """One region of each kind, side by side in an encoding of its own, without shared values."""

    kinds: list[list[Region]]
    """Regions that are alike. The first stands for all, and their references correspond in order."""
    encoding: Encoding
    names: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    """For each kind: the reference in its first region, by name in the excerpt."""
    outputs: list[list[str]] = field(default_factory=list[list[str]])
    """For each kind: the names of its outputs in the excerpt."""

    def counterparts(self, kind: int, copy: int) -> dict[int, int]:
        """Returns the reference in one region of a kind, by reference in the first region."""
        first, other = self.kinds[kind][0], self.kinds[kind][copy]
        return dict(zip((*first.inputs, *first.references), (*other.inputs, *other.references), strict=True))


class Excerpter:
    """Takes an excerpt of an encoding."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._encoding = definitions.encoding
        self._blurred: dict[int, int] = {}
        self._shared: set[int] = set()  # constants that several pieces read

    def kinds(self, pieces: Sequence[Region | Barrier]) -> list[list[Region]]:
        """Returns the regions among the pieces of a graph by kind, in the order of the graph."""
        regions = [piece for piece in pieces if isinstance(piece, Region)]
        uses = Counter(reference for piece in pieces for reference in (piece.references if isinstance(piece, Region) else self._definitions.values(piece.node)))
        self._shared = {reference for reference, count in uses.items() if count > 1}
        kinds: dict[Hashable, list[Region]] = {}
        for region in regions:
            kinds.setdefault(self._key(region), []).append(region)
        return list(kinds.values())

    def excerpt(self, kinds: Sequence[Sequence[Region]], fresh: FreshNames) -> Excerpt:
        """Returns an excerpt of some kinds of regions of the graph that was cut last."""
        encoding = self._encoding
        graph = Graph(onnx.GraphProto(name=encoding.graph.proto.name), (), (), {}, [])
        out = Encoding(encoding.terms, encoding.derivation, graph)
        out.facts += encoding.facts[:2]
        found = Excerpt([list(same) for same in kinds], out)
        inputs: list[str] = []
        for same in found.kinds:
            places, names = self._copy(same[0], out, fresh)
            found.names.append({name: reference for reference, name in names.items()})
            found.outputs.append([names[reference] for reference in same[0].outputs])
            inputs += [names[reference] for reference in same[0].inputs]
            graph.nodes += [out.nodes[places[reference]] for reference in same[0].references if reference in encoding.nodes]
        graph.inputs, graph.outputs = tuple(inputs), tuple(name for row in found.outputs for name in row)
        # Rules for finite numbers read all constants of a type, so those of every region count.
        for content, stored in encoding.contents.items():
            out.contents[-1 - len(out.contents) - content] = stored
        return found

    def _key(self, region: Region) -> Hashable:
        """Returns everything on which rules, prices and the writing of a region depend."""
        encoding, first = self._encoding, self._definitions.first
        local = {reference: place for place, reference in enumerate((0, 1, *region.inputs, *region.references))}
        contents: dict[int, int] = {}
        rows: list[Hashable] = [tuple(self._fact(reference) for reference in region.inputs)]
        for reference in region.references:
            terms = self._definitions.terms(reference)
            node = encoding.nodes.get(reference)
            rows.append(
                (
                    tuple((term.head, self._data(term, contents), tuple(local[first(child)] for child in term.children)) for term in terms),
                    self._fact(reference),
                    None if node is None else _writing(node),
                )
            )
        return (*rows, tuple(local[reference] for reference in region.outputs))

    def _data(self, term: Term, contents: dict[int, int]) -> tuple[int, ...]:
        """Returns the data of a term. A constant counts by its place among the constants of its
        region, and by whether other pieces need it.
        """
        if term.head != CONSTANT:
            return term.data
        return (contents.setdefault(term.data[0], len(contents)), int(term.eclass in self._shared))

    def _fact(self, reference: int) -> int:
        """Returns the fact that a reference has in an excerpt."""
        return self._blur(self._encoding.facts[reference])

    def _blur(self, handle: int) -> int:
        known = self._blurred.get(handle)
        if known is None:
            terms = self._encoding.terms
            knowledge = terms.facts.get(handle)
            if isinstance(knowledge, Fact):
                known = terms.fact(_blurred(knowledge))
            elif isinstance(knowledge, tuple):
                known = terms.fact(tuple(map(_blurred, knowledge)))
            elif isinstance(knowledge, Link):
                known = terms.fact(Link(self._blur(knowledge.head), self._blur(knowledge.tail)))
            else:
                known = handle
            self._blurred[handle] = known
        return known

    def _copy(self, region: Region, out: Encoding, fresh: FreshNames) -> tuple[dict[int, int], dict[int, str]]:
        """Copies a region into an excerpt. Returns its references and its names there, by reference."""
        encoding, definitions = self._encoding, self._definitions
        places = {0: 0, 1: 1}
        names: dict[int, str] = {}
        contents: dict[int, int] = {}

        def place(reference: int) -> int:
            out.facts.append(self._fact(reference))
            found = places[reference] = len(out.facts) - 1
            if reference in definitions.name_of:
                name = names[reference] = fresh.make(definitions.name_of[reference])
                out.values[name] = found
            return found

        for reference in region.inputs:
            found = place(reference)
            out.entries.append(Term(INPUT, (found,), (), found))
        for reference in region.references:
            if reference in places:
                continue
            found = place(reference)
            for entries, terms in ((out.entries, definitions.entries), (out.forms, definitions.forms)):
                for term in terms.get(reference, ()):
                    data = term.data
                    if term.head == CONSTANT:
                        stored = encoding.contents[term.data[0]][1]
                        content = contents.setdefault(term.data[0], len(out.contents))
                        out.contents.setdefault(content, (names[reference], stored))
                        if reference in self._shared:
                            out.captured.add(content)
                        out.graph.constants[names[reference]] = stored
                        data = (content,)
                    entries.append(Term(term.head, data, tuple(places[definitions.first(child)] for child in term.children), found))
        # The outputs of a node with several have their names after the node itself.
        for reference in region.references:
            if reference in encoding.nodes:
                out.nodes[places[reference]] = self._renamed(encoding.nodes[reference], names, fresh)
        return places, names

    def _renamed(self, node: Node, names: Mapping[int, str], fresh: FreshNames) -> Node:
        """Returns a node with the names that its values have in the excerpt."""
        encoding, first = self._encoding, self._definitions.first

        def name(own: str) -> str:
            if not own:
                return ""
            # The excerpt has no name for an output that nothing needs.
            return names.get(first(encoding.values[own])) or fresh.make(own)

        inputs, outputs = tuple(map(name, node.inputs)), tuple(map(name, node.outputs))
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        del proto.input[:], proto.output[:]
        proto.input.extend(inputs)
        proto.output.extend(outputs)
        return replace(node, proto=proto, inputs=inputs, outputs=outputs)


def hollowed(encoding: Encoding) -> Encoding:
    """Returns an encoding whose constants have no elements, so that decoding it costs nothing."""
    graph = replace(encoding.graph, constants={name: _hollow(constant) for name, constant in encoding.graph.constants.items()})
    return replace(encoding, graph=graph, contents={content: (name, _hollow(constant)) for content, (name, constant) in encoding.contents.items()})


def _hollow(constant: Constant) -> Constant:
    tensor = constant.tensor
    return Constant(Tensor(tensor.dtype, tensor.dims, tensor.nbytes, onnx.TensorProto(), hollow=True))


@functools.cache
def _any_number(dtype: int) -> Range:
    """Returns the range of all finite numbers of a data type of floats."""
    ends = finite_limits(dtype)
    return Range(*ends, *ends, nan=False)


def _writing(node: Node) -> Hashable:
    """Returns how a node is written, apart from its term."""
    return (node.operator.domain, node.operator.name, node.operator.version, tuple(map(bool, node.inputs)), tuple(map(bool, node.outputs)))


def _blurred(fact: Fact) -> Fact:
    bounds = fact.range
    if bounds is not None and bounds.least != bounds.most:
        fact = fact._replace(range=_any_number(fact.dtype) if bounds.finite and is_floating(fact.dtype) else None)
    if fact.floats is None or fact.uniform is not None:
        return fact
    count = element_count(fact)
    return fact if isinstance(count, int) and count <= _READ else fact._replace(floats=None)

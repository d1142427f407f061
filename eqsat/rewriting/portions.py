"""Portions: the part of a graph that is solved, and how its solution becomes the graph.

A graph is solved as a whole, or only one region of each kind is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import onnx

from eqsat.choose.choose import Chooser, Chosen
from eqsat.choose.decode import Decoded, Decoder
from eqsat.choose.folding import Folding
from eqsat.choose.groups import Group
from eqsat.choose.originals import Originals
from eqsat.choose.stored_constants import Constants
from eqsat.choose.storing import Place
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.frozen import frozen, mutable
from eqsat.model.model import Constant, Graph
from eqsat.model.names import FreshNames
from eqsat.regions.cut import Barrier, Definitions, Region
from eqsat.regions.excerpt import Excerpt, Excerpter, hollowed
from eqsat.regions.sameness import is_region
from eqsat.regions.stitch import Solution, Stitcher
from eqsat.terms.terms import PROJECTION

Array = np.ndarray[Any, Any]


@frozen
class Whole:
    """A graph that is solved as a whole."""

    encoding: Encoding
    folding: Folding
    fresh: FreshNames
    place: Place
    opset: int

    @property
    def title(self) -> str:
        """Describes the size of the portion, for people."""
        return f"{len(self.encoding.nodes)} nodes"

    def groups(self, egraph: EGraph) -> list[Group]:
        """Returns the outputs as one group."""
        graph = self.encoding.graph
        return [Group(_classes(self.encoding, egraph, graph.outputs), stored_by(graph.constants.values()))]

    def decode(self, egraph: EGraph, chooser: Chooser, chosen: Chosen, folded: Mapping[int, Array]) -> Decoded:
        """Returns the chosen graph."""
        return Decoder(self.encoding, egraph, chosen.terms[0], folded, self.fresh, self.place, self.opset).decode()


class Unchanged(Exception):
    """The chosen form of every region is the region as it stands."""


@mutable
class Regions:
    """A graph that is solved as one region of each kind."""

    definitions: Definitions
    pieces: Sequence[Region | Barrier]
    excerpter: Excerpter
    excerpt: Excerpt
    foldings: Callable[[Graph], Folding]
    fresh: FreshNames
    place: Place
    opset: int
    folding: Folding = field(init=False)
    _own_contents: list[tuple[int, str]] = field(init=False)
    """The contents of constants of the excerpt, with their names in it."""

    def __post_init__(self) -> None:
        encoding = self.excerpt.encoding
        self.folding = self.foldings(encoding.graph)
        self._own_contents = [(content, name) for content, (name, _) in encoding.contents.items() if name in encoding.graph.constants]

    @property
    def encoding(self) -> Encoding:
        return self.excerpt.encoding

    @property
    def title(self) -> str:
        """Describes the size of the portion, for people."""
        copies = sum(map(len, self.excerpt.kinds))
        return f"{len(self.excerpt.kinds)} kinds of {copies} regions"

    def only(self, kinds: Sequence[int]) -> Regions:
        """Returns some of the kinds as a graph of their own, to look at: it has no barriers, and its
        names may come again.
        """
        excerpt = self.excerpter.excerpt([self.excerpt.kinds[kind] for kind in kinds], self.fresh.stable())
        return replace(self, excerpt=excerpt, pieces=[region for same in excerpt.kinds for region in same])

    def groups(self, egraph: EGraph) -> list[Group]:
        """Returns one group for each kind: the outputs of its first region."""
        encoding, graph = self.encoding, self.encoding.graph
        own = {name for content, (name, _) in encoding.contents.items() if content not in encoding.captured}
        groups: list[Group] = []
        for outputs, names, same in zip(self.excerpt.outputs, self.excerpt.names, self.excerpt.kinds, strict=True):
            stored = stored_by(graph.constants[name] for name in names if name in own and name in graph.constants)
            groups.append(Group(_classes(encoding, egraph, outputs), stored, len(same), frozenset(encoding.values[name] for name in names)))
        return groups

    def decode(self, egraph: EGraph, chooser: Chooser, chosen: Chosen, folded: Mapping[int, Array]) -> Decoded:
        """Returns the graph in which each region is written as the first of its kind was chosen. A
        region whose constants cannot be evaluated stays as it is.

        Raises `Unchanged` where the graph would be the same.
        """
        kinds = self._kinds(egraph, chosen, folded)
        if self._stays(kinds):
            raise Unchanged
        solutions = self._solutions(egraph, chooser, kinds, folded)
        stitcher = Stitcher(self.definitions, self.fresh, self.place)
        for piece in self.pieces:
            if isinstance(piece, Barrier):
                stitcher.keep([piece.node])
            elif (solution := solutions.get(id(piece))) is None:
                stitcher.keep(piece.references)
            else:
                stitcher.write(solution)
        return stitcher.graph()

    def _kinds(self, egraph: EGraph, choice: Chosen, folded: Mapping[int, Array]) -> list[tuple[Solution, dict[str, int]]]:
        """Returns the solution of each kind, and the classes of its folded constants by name."""
        excerpt, graph = self.excerpt, self.encoding.graph
        hollow = hollowed(self.encoding)
        originals = Originals(hollow, egraph)
        chosen: list[tuple[Solution, dict[str, int]]] = []
        for outputs, names, terms in zip(excerpt.outputs, excerpt.names, choice.terms, strict=True):
            there = replace(hollow, graph=replace(hollow.graph, outputs=tuple(outputs)))
            decoded = Decoder(there, egraph, terms, folded, self.fresh, Place(draft=True), self.opset, originals).decode()
            # Equal small constants of several kinds are one class, whose name comes from one of the
            # kinds.
            constants = {name: own for name, own in decoded.constants.items() if own in names}
            common = [graph.constants[own].tensor.named(name) for name, own in decoded.constants.items() if own not in names]
            made = [tensor for tensor in decoded.graph.initializer if tensor.name not in decoded.folded and tensor.name not in decoded.constants]
            solution = Solution(list(decoded.graph.node), outputs, constants, common + made, names, {}, decoded.became)
            chosen.append((solution, decoded.folded))
        return chosen

    def _stays(self, kinds: Sequence[tuple[Solution, Mapping[str, int]]]) -> bool:
        """Tells whether the nodes of all solutions are those of their regions, up to names and order.
        Bodies and functions may have changed by themselves.
        """
        whole = self.definitions.encoding.nodes
        if any(folded for _, folded in kinds) or any(node.bodies or node.function for node in whole.values()):
            return False
        nodes, begin = self._written(), 0
        for same, (solution, _) in zip(self.excerpt.kinds, kinds, strict=True):
            end = begin + sum(reference in whole for reference in same[0].references)
            if not is_region(solution, nodes[begin:end], self.encoding.graph.constants):
                return False
            begin = end
        return True

    def _written(self) -> list[onnx.NodeProto]:
        """Returns the nodes of the excerpt in order, with the names that their outputs have in it."""
        encoding = self.encoding
        names = {reference: name for name, reference in encoding.values.items()}
        given = {(term.children[0], term.data[0]): names[term.eclass] for term in encoding.entries if term.head == PROJECTION and term.eclass in names}
        nodes: list[onnx.NodeProto] = []
        for reference, node in encoding.nodes.items():
            nodes.append(onnx.NodeProto.FromString(node.proto.SerializeToString()))
            nodes[-1].output[:] = [name and given.get((reference, place), name) for place, name in enumerate(node.outputs)]
        return nodes

    def _solutions(
        self, egraph: EGraph, chooser: Chooser, chosen: Sequence[tuple[Solution, dict[str, int]]], folded: Mapping[int, Array]
    ) -> dict[int, Solution]:
        """Returns the solution of each region, by its identity."""
        excerpt = self.excerpt
        found: dict[int, Solution] = {}
        for copy in range(max(map(len, excerpt.kinds))):
            kinds = [kind for kind, same in enumerate(excerpt.kinds) if copy < len(same)]
            there = {kind: excerpt.counterparts(kind, copy) for kind in kinds}
            values = {kind: {name: there[kind][reference] for name, reference in excerpt.names[kind].items()} for kind in kinds}
            arrays = folded
            if copy:
                classes = list(dict.fromkeys(eclass for kind in kinds for eclass in chosen[kind][1].values()))
                arrays = self._evaluated(values, classes, egraph, chooser) if classes else {}
            for kind in kinds:
                solution, wanted = chosen[kind]
                if all(eclass in arrays for eclass in wanted.values()):
                    own = {name: arrays[eclass] for name, eclass in wanted.items()}
                    nodes, same = self.definitions.encoding.nodes, excerpt.kinds[kind]
                    pairs = zip(same[0].references, same[copy].references, strict=True)
                    titles = {nodes[reference].proto.name: nodes[other].proto for reference, other in pairs if reference in nodes}
                    found[id(same[copy])] = replace(solution, originals=values[kind], folded=own, titles=titles)
        return found

    def _evaluated(self, values: Mapping[int, Mapping[str, int]], classes: Sequence[int], egraph: EGraph, chooser: Chooser) -> dict[int, Array]:
        """Evaluates classes of the excerpt over the constants of the regions in `values`, not of
        the first regions.
        """
        encoding, graph = self.encoding, self.encoding.graph
        source, name_of = self.definitions.encoding.graph, self.definitions.name_of
        own = {name: source.constants[name_of[reference]] for names in values.values() for name, reference in names.items() if name in graph.constants}
        # Most contents are of other regions, and there are as many of them as there are layers.
        contents = dict(encoding.contents)
        contents |= {content: (name, own[name]) for content, name in self._own_contents if name in own}
        there = replace(encoding, graph=replace(graph, constants={**graph.constants, **own}), contents=contents)
        return Constants(there, egraph, chooser, self.foldings(there.graph)).evaluate(classes)


def stored_by(constants: Iterable[Constant]) -> float:
    """Returns the bytes that constants take. Constants that share bytes in a file count once."""
    tensors = [constant.tensor for constant in constants]
    shared = {tensor.external: tensor.nbytes for tensor in tensors if tensor.external is not None}
    return float(sum(shared.values()) + sum(tensor.nbytes for tensor in tensors if tensor.external is None))


def _classes(encoding: Encoding, egraph: EGraph, names: Iterable[str]) -> list[int]:
    return list(dict.fromkeys(egraph.class_of[encoding.values[name]] for name in names))

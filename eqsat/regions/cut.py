"""Cutting: an encoded graph becomes a sequence of regions at its narrow places.

The nodes stay in their order, and a region is a run of them. Light nodes compute constants, sizes
and other small integers, or dequantize. They belong to every region that uses them, so they neither
widen a place nor tie regions together. Nodes that no rule sees stand between regions.

No region ends between a node and one that quantizes its result, as far as that can be avoided: what
runtimes make one kernel then lies within one region.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from eqsat.egraph.encode import Encoding
from eqsat.facts.fact import Fact
from eqsat.frozen import frozen
from eqsat.terms.reading import reached
from eqsat.terms.terms import CONS, INPUT, PROJECTION, Term

_CONTRACTIONS = frozenset({"Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"})
_CONE = 64  # the most light nodes repeated in each region that needs the last of them
_NARROW = 2  # the most values that cross a narrow place: a branch and the way around it
_REST = 3  # regions go on until at most so many times their least size is left for the last one
_LASTING = 4  # the most regions that a value may span; beyond that, every region may read it


@frozen
class Sizes:
    """The number of nodes in a region, where the graph allows it."""

    least: int
    most: int


@frozen
class Region:
    """A run of nodes. All references are those of the encoding, and the first stands for all equal
    ones.
    """

    references: tuple[int, ...]
    """Everything from which the values of the region are computed, down to its inputs and
    constants, children first.
    """
    own: tuple[int, ...]
    """The nodes of the run. Other nodes of the region may belong to further regions as well."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """The values of its own nodes that are read elsewhere."""


@frozen
class Barrier:
    """A node that stays as it is."""

    node: int  # its reference


class Definitions:
    """The terms of an encoding by reference. The first of equal references stands for all."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self._first: dict[int, int] = {}
        for one, other in encoding.same:
            low, high = sorted((self.first(one), self.first(other)))
            if low != high:
                self._first[high] = low
        self.entries = self._by_reference(encoding.entries)
        self.forms = self._by_reference(encoding.forms)
        self._children: dict[int, list[int]] = {}
        self.name_of: dict[int, str] = {}
        """The name of each value. If it has several, the name of an output of the graph comes
        first.
        """
        for name in (*encoding.graph.outputs, *encoding.values):
            self.name_of.setdefault(self.first(encoding.values[name]), name)
        for name, reference in reversed(encoding.values.items()):
            if self.is_leaf(reference):
                # The graph around this one gives the name.
                self.name_of[reference] = name

    def _by_reference(self, terms: Iterable[Term]) -> dict[int, list[Term]]:
        found: dict[int, list[Term]] = {}
        for term in terms:
            if self.first(term.eclass) == term.eclass:
                found.setdefault(term.eclass, []).append(term)
        return found

    def terms(self, reference: int) -> list[Term]:
        """Returns the terms of a reference: the written one, then the one in normal form."""
        return [*self.entries.get(reference, ()), *self.forms.get(reference, ())]

    def first(self, reference: int) -> int:
        """Returns the first reference equal to this one."""
        while reference in self._first:
            reference = self._first[reference]
        return reference

    def children(self, reference: int) -> list[int]:
        """Returns the references that the terms of a reference use."""
        known = self._children.get(reference)
        if known is None:
            known = self._children[reference] = list(dict.fromkeys(self.first(child) for term in self.terms(reference) for child in term.children))
        return known

    def values(self, node: int) -> list[int]:
        """Returns the values that a node reads, items of lists included."""
        found: list[int] = []
        stack = list(self.children(node))
        while stack:
            reference = stack.pop()
            if any(term.head == CONS for term in self.entries.get(reference, ())):
                stack += self.children(reference)
            else:
                found.append(reference)
        return found

    def is_leaf(self, reference: int) -> bool:
        """Tells whether a reference is an input of the graph."""
        return any(term.head == INPUT for term in self.entries.get(reference, ()))

    def facts(self, reference: int) -> tuple[Fact, ...]:
        """Returns the facts of the values of a reference."""
        return self.encoding.terms.value_facts(self.encoding.facts[reference])


class Cutter:
    """Cuts one encoding into regions."""

    def __init__(self, encoding: Encoding) -> None:
        self.definitions = Definitions(encoding)
        self._encoding = encoding
        first = self.definitions.first
        self._roots = list(dict.fromkeys(first(encoding.values[name]) for name in encoding.graph.outputs))
        # Maps the reference of each value to its node.
        self._node_of: dict[int, int] = {}
        for node in encoding.nodes:
            if first(node) == node:
                self._node_of[node] = node
        for reference, terms in self.definitions.entries.items():
            for term in terms:
                if term.head == PROJECTION and first(term.children[0]) in encoding.nodes:
                    self._node_of[reference] = first(term.children[0])
        alive = reached(self._roots, self.definitions.children)
        self._values: dict[int, list[int]] = {}
        for reference, node in self._node_of.items():
            if reference in alive:
                self._values.setdefault(node, []).append(reference)
        self._barriers = {node for node in encoding.nodes if node in alive and self._is_lawless(node)}
        wanted = {*self._roots, *(child for node in self._barriers for child in self.definitions.values(node))}
        owned = {self._node_of[reference] for reference in wanted if reference in self._node_of}
        self._light = self._cones(node for node in encoding.nodes if node in alive and node not in owned and node not in self._barriers)
        self.run = [node for node in encoding.nodes if node in alive and first(node) == node and node not in self._light]

    def cut(self, sizes: Sizes, shifted: bool) -> list[Region | Barrier]:
        """Returns the regions and barriers in the order of the graph. With `shifted`, the first
        region may be half as large, so that the others begin elsewhere.
        """
        ends = self._ends(sizes, shifted)
        pieces: list[list[int]] = [[]]
        for place, node in enumerate(self.run):
            if place in ends or node in self._barriers or (place and self.run[place - 1] in self._barriers):
                pieces.append([])
            pieces[-1].append(node)
        closures = [self._closure(piece) for piece in pieces if piece]
        used = {*self._roots, *(reference for _, _, inputs in closures for reference in inputs)}
        return [
            Barrier(own[0])
            if own[0] in self._barriers
            else Region(
                references, tuple(own), inputs, tuple(reference for reference in references if self._node_of.get(reference) in own and reference in used)
            )
            for own, references, inputs in closures
        ]

    def _ends(self, sizes: Sizes, shifted: bool) -> set[int]:
        """Returns the places at which regions end."""
        last = self._last_reads()
        widths = _widths(last, _LASTING * sizes.most)
        # A value that spans more than a region crosses an end in any case. That it is not read any more
        # makes no better end, and layers that are equal would end elsewhere.
        near = _widths(last, sizes.most)
        ends: set[int] = set()
        shortest = max(1, sizes.least)
        begin, least = 0, max(1, sizes.least // 2) if shifted else shortest
        while (left := len(self.run) - begin) > min(sizes.most, _REST * shortest):
            window = range(begin + least, begin + max(least, min(sizes.most, left - shortest)) + 1)
            begin = min(
                window,
                key=lambda place: (self._name(place) == "QuantizeLinear", max(widths[place], _NARROW), not self._is_contraction(place), near[place], place),
            )
            ends.add(begin)
            least = shortest
        return ends

    def _last_reads(self) -> list[int]:
        """Returns for each place in the run the last place that reads its values, or itself."""
        place_of = {node: place for place, node in enumerate(self.run)}
        last = list(range(len(self.run)))
        for place, node in enumerate(self.run):
            for used in self._uses(node):
                last[place_of[used]] = max(last[place_of[used]], place)
        return last

    def _is_contraction(self, place: int) -> bool:
        """Tells whether the node at a place is a product or a convolution. Few rules match across
        one, and the nodes behind it often belong to it.
        """
        return self._name(place) in _CONTRACTIONS

    def _name(self, place: int) -> str:
        return self._encoding.nodes[self.run[place]].operator.name

    def _uses(self, node: int) -> Iterable[int]:
        """Returns the nodes of the run whose values a node reads, directly or through light nodes."""
        seen: set[int] = set()
        stack = list(self.definitions.children(node))
        found: dict[int, None] = {}
        while stack:
            reference = stack.pop()
            if reference in seen:
                continue
            seen.add(reference)
            owner = self._node_of.get(reference)
            if owner is not None and owner not in self._light:
                found[owner] = None
            else:
                stack += self.definitions.children(reference)
        return found

    def _closure(self, own: list[int]) -> tuple[list[int], tuple[int, ...], tuple[int, ...]]:
        """Returns a run of nodes, all references from which its values are computed, and its
        inputs.
        """
        mine = set(own)
        order: dict[int, None] = {}
        inputs: dict[int, None] = {}
        stack = [(reference, False) for node in reversed(own) for reference in reversed(self._values[node])]
        while stack:
            reference, done = stack.pop()
            if done:
                order[reference] = None
                continue
            if reference in order or reference in inputs:
                continue
            owner = self._node_of.get(reference)
            if self.definitions.is_leaf(reference) or (owner is not None and owner not in mine and owner not in self._light):
                inputs[reference] = None
                continue
            stack.append((reference, True))
            stack += [(child, False) for child in reversed(self.definitions.children(reference)) if child not in order]
        return own, tuple(order), tuple(inputs)

    def _cones(self, nodes: Iterable[int]) -> set[int]:
        """Returns those of `nodes` that are light: they compute small values from few other light
        nodes.
        """
        cones: dict[int, int] = {}
        for node in nodes:
            if self._is_light(node):
                below = {self._node_of[value] for value in self.definitions.values(node) if value in self._node_of}
                size = 1 + sum(cones.get(other, 0) for other in below)
                if size <= _CONE:
                    cones[node] = size
        return set(cones)

    def _is_lawless(self, node: int) -> bool:
        """Tells whether no rule sees a node, or its results differ from call to call."""
        signatures = self._encoding.terms.signatures
        return all(
            signatures[term.head].opaque or not signatures[term.head].operator.pure or signatures[term.head].function is not None
            for term in self.definitions.entries[node]
            if term.head >= 0
        )

    def _is_light(self, node: int) -> bool:
        facts = self.definitions.facts(node)
        if self._encoding.nodes[node].operator.name == "DequantizeLinear":
            return True
        return bool(facts) and all(fact.const or fact.ints is not None for fact in facts)


def _widths(last: Sequence[int], most: int) -> list[int]:
    """Returns for each place the number of values that cross it, of those that `last` says are read
    last at most `most` places after their own.
    """
    changes = [0] * (len(last) + 1)
    for place, end in enumerate(last):
        if place < end <= place + most:
            changes[place + 1] += 1
            changes[end + 1] -= 1
    return list(accumulate(changes[:-1]))

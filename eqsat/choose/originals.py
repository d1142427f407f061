"""Originals: the names, nodes and terms of an encoded graph, by their classes in an e-graph.

Decoding reads them. They are the same for all choices from one e-graph, such as those of its
regions.
"""

from __future__ import annotations

from collections.abc import Mapping

from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.model.model import Node
from eqsat.terms.terms import Term


class Originals:
    """What the original has of each class. `own` are the names that are not made by decoding, and
    `inputs` those among them that nothing else may have.
    """

    def __init__(self, encoding: Encoding, egraph: EGraph) -> None:
        source, self._class_of = encoding.graph, egraph.class_of
        self.names_of: dict[int, list[str]] = {}
        for name, reference in encoding.values.items():
            self.names_of.setdefault(self._class_of[reference], []).append(name)
        self.nodes_of: dict[int, list[Node]] = {}
        for reference, node in encoding.nodes.items():
            self.nodes_of.setdefault(self._class_of[reference], []).append(node)
        self.rank = {reference: index for index, reference in enumerate(encoding.nodes)}
        self.producer = {name: node for node in source.nodes for name in node.outputs if name}
        self.inputs = frozenset(source.inputs)
        self.own = {*source.inputs, *source.constants, *source.sparse}
        for node in source.nodes:
            self.own.update(node.outputs)
        self._entries: dict[int, list[Term]] = {}
        for entry in encoding.entries:
            if entry.head >= 0:
                self._entries.setdefault(self._class_of[entry.eclass], []).append(entry)

    def origins(self, terms: Mapping[int, Term]) -> dict[int, int]:
        """Returns the reference of its first node for each class whose chosen term is the
        original's.
        """
        found: dict[int, int] = {}
        for eclass, term in terms.items():
            for entry in self._entries.get(eclass, ()):
                if (term.head, term.data) == (entry.head, entry.data) and term.children == tuple(self._class_of[child] for child in entry.children):
                    found[eclass] = entry.eclass
                    break
        return found

"""Solved graphs: a choice from an e-graph, with all that is needed to write other choices from it.

A run keeps them only if its job asks for it. Every choice without cycles computes the same, so any
of them can be written as a valid model, by the steps that wrote the chosen one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import onnx

from eqsat.choose.choose import Chooser, Chosen
from eqsat.choose.groups import Group
from eqsat.choose.stored_constants import Constants
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.frozen import frozen
from eqsat.model.model import Model
from eqsat.model.names import StableNames
from eqsat.rewriting.portions import Regions, Unchanged, Whole
from eqsat.terms.terms import FOLDED, Term


@frozen
class Solved:
    """A solved main graph."""

    part: Whole | Regions
    egraph: EGraph
    chooser: Chooser
    constants: Constants
    groups: Sequence[Group]
    chosen: Chosen

    @property
    def before(self) -> onnx.GraphProto:
        """The graph that was solved."""
        part = self.part
        return (part.definitions.encoding if isinstance(part, Regions) else part.encoding).graph.proto

    @property
    def encoding(self) -> Encoding:
        """The encoding that was saturated: the graph's, or that of one region of each kind."""
        return self.part.encoding

    def graph(self, terms: Sequence[Mapping[int, Term]], names: StableNames) -> onnx.GraphProto | None:
        """Returns the graph of a choice: for each group one term for each class, children first.
        Returns None if a constant of it cannot be evaluated. Raises `Undecodable` if the opset
        cannot express the choice. `names` are those of the values that the original lacks.
        """
        wanted = list(dict.fromkeys(eclass for group in terms for eclass, term in group.items() if term.head == FOLDED))
        arrays = self.constants.evaluate(wanted)
        if len(arrays) < len(wanted):
            return None
        choice = replace(self.chosen, terms=[dict(group) for group in terms])
        names.begin()
        try:
            return replace(self.part, fresh=names).decode(self.egraph, self.chooser, choice, arrays).graph
        except Unchanged:
            return self.before


@frozen
class Turn:
    """One turn of a run whose result was used: the model before and after it."""

    before: onnx.ModelProto
    after: onnx.ModelProto
    source: Model | None = None
    """The model that was encoded: the one before the turn, with its control flow simplified. None
    if the turn only put the nodes in another order.
    """
    solved: Solved | None = None
    """The solution for the main graph; None if the e-graph gave none."""
    whole: Callable[[onnx.GraphProto], onnx.ModelProto] | None = None
    """Returns the model with another main graph in place of the chosen one."""

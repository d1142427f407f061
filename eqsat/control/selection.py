"""Selection: an If becomes both of its branches, and a Where that picks between their results.

Then both branches always run, so no node of either may fail or have an effect. A Where takes its
results from one side only, so NaN in the other does no harm. The results of both sides have to have
one type and the same sizes: of a Where, the larger would win. Whether this pays is for the caller to
judge.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from onnx import TensorProto, helper

from eqsat.control.bodies import Destination, Node
from eqsat.control.total import cannot_fail
from eqsat.facts.dims import Dim, equal, symbols
from eqsat.facts.fact import UNKNOWN, Fact
from eqsat.facts.legality import illegal
from eqsat.frozen import frozen
from eqsat.model.model import Graph, attribute_graphs
from eqsat.operators import find_operator

_FIRST = 9  # the first opset with Where
_NO_AXES = 13  # the first opset in which Squeeze without axes is the same in all runtimes


@frozen
class Branch:
    """A branch in normal form, and the facts of its values."""

    graph: Graph
    facts: Mapping[str, Fact]

    def results(self) -> list[Fact]:
        """Return the facts of what the branch returns."""
        return [self.facts.get(name, UNKNOWN) for name in self.graph.outputs]

    def own_names(self) -> set[str]:
        """Return the values that the branch computes or stores itself."""
        return {*self.graph.constants, *(name for node in self.graph.nodes for name in node.outputs if name)}


def selected(node: Node, condition: Fact, branches: Mapping[str, Branch], into: Destination) -> list[Node] | None:
    """Return nodes that compute what an If does by running both branches, or None if they may not.

    `condition` is the fact of its condition. Raise `NameClash`.
    """
    bodies = dict(attribute_graphs(node))
    sides = [bodies["then_branch"], bodies["else_branch"]]
    yes, no = branches["then_branch"], branches["else_branch"]
    if into.scope.opset < _FIRST or condition.dtype != TensorProto.BOOL or condition.shape is None or any(size != 1 for size in condition.shape):
        return None
    if not all(cannot_fail(side.graph, side.facts) for side in (yes, no)) or not all(map(into.takes, sides)):
        return None
    local = yes.own_names() | no.own_names()
    if not all(_alike(one, other, local) for one, other in zip(yes.results(), no.results(), strict=True)):
        return None
    where = find_operator("", "Where", into.scope.opset)
    if any(illegal(where, {}, (condition, one, other), 1) for one, other in zip(yes.results(), no.results(), strict=True)):
        return None
    ranks = [len(fact.shape) for fact in yes.results() if fact.shape is not None]
    chooser, before = node.input[0], list[Node]()
    if len(condition.shape) > min(ranks, default=0):
        if into.scope.opset < _NO_AXES:
            return None
        chooser = into.fresh.make("condition")
        before = [helper.make_node("Squeeze", [node.input[0]], [chooser])]
    names = [[into.fresh.make(f"{name}_{side}") if name else "" for name in node.output] for side in ("then", "else")]
    moved = [made for side, results in zip(sides, names, strict=True) for made in into.moved(side, {}, results)]
    picks = [helper.make_node("Where", [chooser, one, other], [name]) for one, other, name in zip(*names, node.output, strict=True) if name]
    return [*before, *moved, *picks]


def _alike(one: Fact, other: Fact, local: Container[str]) -> bool:
    """Tell whether two results have the same type and sizes in every run.

    The made-up name of an unknown size belongs to the branch that computes the value, so it says
    nothing of a value of the same name in the other.
    """
    if not one.dtype or one.dtype != other.dtype or one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return False
    return all(equal(a, b) is True and not _made_up(a, local) for a, b in zip(one.shape, other.shape, strict=True))


def _made_up(size: Dim, local: Container[str]) -> bool:
    """Tell whether a size has a made-up name for the size of one of these values."""
    return any(name.startswith("?") and name[1:].rpartition(".")[0] in local for name in symbols(size))

"""Activations: the memory that the values of a graph take while its nodes run in a given order.

The input is a model in normal form. Its graph and each body become `Steps` of `eqsat.ordering`, one
step per node. Constants do not count. The caller holds the inputs and the result holds the outputs,
so both stay alive to the end, as in ONNX Runtime. A node with bodies needs the peak of its largest
body while it runs. The inside of a function does not count, so functions have to be inlined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from eqsat.cost.shaped import Shaped, shaped
from eqsat.cost.sharing import OVERWRITES, VIEWS
from eqsat.cost.workload import moved
from eqsat.egraph.outer import Outer
from eqsat.facts.fact import UNKNOWN, Contradiction, Fact, from_type
from eqsat.frozen import mutable
from eqsat.model.model import Graph, Model, Node
from eqsat.ordering.lifetimes import Buffer, Step, Steps, peak
from eqsat.ordering.order import least_peak
from eqsat.rewriting.body_facts import GraphFacts


@mutable
class Scheduled:
    """The nodes of a graph in an order, and the bytes at its peak."""

    nodes: list[Node]
    peak: int
    bodies: dict[tuple[int, str], Scheduled] = field(default_factory=dict[tuple[int, str], "Scheduled"])
    """Keyed by the place of a node in `nodes` and the name of its body."""


def scheduled(model: Model, sizes: Mapping[str, int], weights: frozenset[str], *, reorder: bool) -> Scheduled:
    """Returns the nodes of a model in their written order. With `reorder`, returns an order of a
    lower peak if one is found. `sizes` gives numbers to the names of dimensions; `weights` are
    inputs that stand for constants.
    """
    return _Scheduler(sizes, weights, reorder).run(model.graph, Outer(main=True), {})


class _Scheduler:
    def __init__(self, sizes: Mapping[str, int], weights: frozenset[str], reorder: bool) -> None:
        self._sizes = sizes
        self._weights = weights
        self._reorder = reorder
        self._facts = GraphFacts()

    def run(self, graph: Graph, outer: Outer, around: Mapping[str, Shaped]) -> Scheduled:
        """Schedules a graph whose bodies see the types `around` it."""
        facts: dict[str, Fact] = {}
        seen: dict[int, Outer] = {}
        try:
            encoding, seen = self._facts.of(graph, outer)
            facts = {name: encoding.fact(name) for name in encoding.values}
        except Contradiction:
            pass  # only the declared types are known
        types = {**around, **self._types(graph, facts)}
        bodies: dict[tuple[int, str], Scheduled] = {}
        for place, node in enumerate(graph.nodes):
            for name, body in node.bodies.items():
                bodies[place, name] = self.run(body, seen.get(id(node.proto), Outer()).only(body.captured()), types)
        problem = _steps(graph, types, bodies, self._weights)
        order = least_peak(problem) if self._reorder else list(range(len(graph.nodes)))
        ordered = {(order.index(place), name): body for (place, name), body in bodies.items()}
        return Scheduled([graph.nodes[place] for place in order], peak(problem, order), ordered)

    def _types(self, graph: Graph, facts: Mapping[str, Fact]) -> dict[str, Shaped]:
        """Returns the types of the values of a graph: the derived type, or else the one that the
        file declares.
        """
        declared = {info.name: from_type(info.type, info.name) for info in (*graph.proto.input, *graph.proto.value_info, *graph.proto.output)}
        found: dict[str, Shaped] = {}
        for name in dict.fromkeys((*graph.inputs, *(output for node in graph.nodes for output in node.outputs if output))):
            fact, claim = facts.get(name, UNKNOWN), declared.get(name, UNKNOWN)
            best = claim if fact.shape is None and claim.shape is not None else fact
            found[name] = shaped(best._replace(dtype=fact.dtype or claim.dtype), self._sizes)
        return found


def _steps(graph: Graph, types: Mapping[str, Shaped], bodies: Mapping[tuple[int, str], Scheduled], weights: frozenset[str]) -> Steps:
    """Returns a graph as steps. A view shares the buffer of its input."""
    results = set(graph.outputs)
    given = [name for name in graph.inputs if name not in graph.overridable and name not in weights]
    buffers = [Buffer(_bytes(types, name), kept=True) for name in given]
    holder = {name: number for number, name in enumerate(given)}
    producer = {name: place for place, node in enumerate(graph.nodes) for name in node.outputs if name}
    steps: list[Step] = []
    for place, node in enumerate(graph.nodes):
        sources = [name for name in dict.fromkeys((*node.inputs, *node.captures)) if name]
        made: list[int] = []
        first = node.inputs[0] if node.inputs else ""
        standard = node.operator.standard
        overwrites: tuple[int, ...] = ()
        for index, name in enumerate(node.outputs):
            if not name:
                continue
            if not index and name not in results and standard and node.operator.name in VIEWS:
                if first in holder:
                    holder[name] = holder[first]
                continue  # a view of a constant takes no memory
            size = _bytes(types, name)
            if not index and name not in results and standard and node.operator.name in OVERWRITES and first in holder and _bytes(types, first) == size:
                overwrites = (holder[first],)
            holder[name] = len(buffers)
            made.append(len(buffers))
            buffers.append(Buffer(size, kept=name in results))
        own = sum(buffers[number].size for number in made)
        before = tuple(dict.fromkeys(producer[name] for name in sources if name in producer))
        reads = tuple(dict.fromkeys(holder[name] for name in sources if name in holder))
        steps.append(Step(before, tuple(made), reads, overwrites, _inside(node, [bodies[place, name].peak for name in node.bodies], own)))
    return Steps(tuple(steps), tuple(buffers))


def _inside(node: Node, peaks: Sequence[int], own: int) -> int:
    """Returns the bytes that the bodies of a node need in addition to its results. The peak of a
    branch of an `If` already includes the results. A loop gathers its results from many runs.
    """
    most = max(peaks, default=0)
    return max(most - own, 0) if node.operator.name == "If" else most


def _bytes(types: Mapping[str, Shaped], name: str) -> int:
    return int(moved([types[name]]))

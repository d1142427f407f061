"""The rewriting of one graph in normal form: encode, saturate, choose, fold, decode. The bodies of
its nodes are rewritten while it is encoded.

The input is a graph and the values it may capture. The output is the optimized graph as protobuf,
and the facts of its outputs. All graphs of a model share one vocabulary, one index of constants and
one supply of names.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import onnx

from eqsat.choose.choose import Chooser, Chosen
from eqsat.choose.decode import Decoded, Undecodable
from eqsat.choose.dump import Dump, operators
from eqsat.choose.extractions import Extractions
from eqsat.choose.folding import Folding
from eqsat.choose.groups import Group
from eqsat.choose.prices import Prices, Shared, has_blocked_convs, prices_of
from eqsat.choose.stored_constants import Constants
from eqsat.choose.storing import Place
from eqsat.cost.target import Target
from eqsat.deadline import INTERRUPTED
from eqsat.egraph.admission import RuleSet
from eqsat.egraph.encode import Descent, Encoding, encode
from eqsat.egraph.limits import Limits
from eqsat.egraph.outer import Outer
from eqsat.egraph.record import Record
from eqsat.egraph.saturate import EngineFailure, saturate
from eqsat.egraph.tables import EGraph
from eqsat.extract import ExtractionError, Method
from eqsat.facts.fact import UNKNOWN, Contradiction, Fact
from eqsat.frozen import mutable
from eqsat.garbage import give_back
from eqsat.language.syntax import Label
from eqsat.model.file_bytes import written_bytes
from eqsat.model.imports import standard_opset
from eqsat.model.model import Graph, Model, Node, NodeCount
from eqsat.model.names import FreshNames, NameClash, captures
from eqsat.model.tensors import ContentIndex
from eqsat.regions.cut import Cutter, Region, Sizes
from eqsat.regions.excerpt import Excerpter
from eqsat.rewriting.body_facts import control_flow_facts, has_halves
from eqsat.rewriting.portions import Regions, Unchanged, Whole, stored_by
from eqsat.rewriting.scouting import scouted
from eqsat.rewriting.solved import Solved
from eqsat.rewriting.trace import Trace
from eqsat.rewriting.uses import Solution
from eqsat.runtime.worker import Worker
from eqsat.settings import Objective, silent
from eqsat.terms.derivation import Derivation
from eqsat.terms.terms import FOLDED, Terms

_SATURATION = 1 / 3  # share of the time left at its start; later stages grow with the graph as well
_AFTER_INTERRUPT = 1.0  # seconds for choosing from the e-graph as the interrupt left it
_ATTEMPTS = 4  # attempts to get a file no larger than the original's


@mutable
class Options:
    """The bounds on the rewriting of one model."""

    limits: Limits
    growth: float  # bytes that the result may store in addition to the original's
    memory: int  # bytes that evaluating constants may take
    sizes: Mapping[str, int]  # sizes assumed for named dimensions when prices are compared
    target: Target
    objective: Objective = "time"
    ruleset: RuleSet = field(default_factory=RuleSet)
    extractor: Method = "exact"
    proof: float = 0.0  # seconds of the exact solver where costs are predictions
    extract_time: float | None = None  # seconds that choosing may take, over all graphs of the model
    dump: bool = False  # whether the e-graph of the main graph is kept
    regions: Sizes | None = None  # regions into which the main graph is cut if it is larger
    shifted: bool = False  # whether the cuts are at other places
    greedy: bool = False  # whether rules run one after the other instead of in an e-graph
    seed: int | None = None  # of a random order of the rules; None: as in their files
    domains: frozenset[str] = frozenset()  # of a runtime's own operators that the result may have
    progress: Callable[[str], None] = silent  # receives each step of the main graph
    keep: bool = False  # whether the solved main graph is kept, to be explained


class _Task(NamedTuple):
    """A graph to solve. A body is part of the file of the graph around it, so both share one limit
    of growth.
    """

    graph: Graph
    outer: Outer
    place: Place
    encoding: Encoding
    part: Whole | Regions
    opset: int
    growth: float  # bytes that the file may grow


def _forget(egraph: EGraph) -> None:
    """Keeps nothing of an e-graph: only the main graph is solved after the first phase as well."""


class _Fused(Exception):
    """The bits of a graph's results depend on which nodes are neighbors."""


class Rewriter:
    """Rewrites the graphs of one model."""

    def __init__(self, model: Model, options: Options, fresh: FreshNames, worker: Worker, trace: Trace) -> None:
        self._model = model
        self._options = options
        self._fresh = fresh
        self._worker = worker
        self._count = NodeCount(function.proto for function in model.functions.values())
        # A function of the model may have the name of a runtime's own operator.
        self._terms = Terms(options.domains - {function.proto.domain for function in model.functions.values()})
        self._derivation = Derivation(self._terms)
        self._contents = ContentIndex()
        self._extractions = Extractions()
        self._shared: dict[tuple[int, bool], Shared] = {}  # by opset, and whether Convs run in blocks
        self._blocked = False  # whether Convs of the main graph do
        self._growth = options.growth
        self._simplified: tuple[_Task, EGraph] | None = None
        self.trace = trace

    def graph(self, graph: Graph, outer: Outer, place: Place, opsets: Sequence[onnx.OperatorSetIdProto]) -> tuple[Decoded, tuple[Fact, ...]]:
        """Returns the optimized form of `graph`, and the facts of its outputs. Raises `Unchanged` where
        nothing of the model has changed.
        """
        folding = Folding(self._model, graph, outer.constants, opsets, self._worker, self._options.memory)

        def descend(node: Node, inner: Outer) -> tuple[Node, tuple[Fact, ...]]:
            return self._bodies(node, inner, place, opsets)

        try:
            return self._optimized(graph, outer, place, folding, descend, opsets)
        except (Contradiction, EngineFailure, ExtractionError, NameClash, Undecodable, _Fused) as error:
            self.trace.notes.append(f"graph '{graph.proto.name}' stays as it is: {error}")
        kept = onnx.GraphProto()
        kept.CopyFrom(graph.proto)
        return Decoded(kept), (UNKNOWN,) * len(graph.outputs)

    def _optimized(
        self, graph: Graph, outer: Outer, place: Place, folding: Folding, descend: Descent, opsets: Sequence[onnx.OperatorSetIdProto]
    ) -> tuple[Decoded, tuple[Fact, ...]]:
        clock = time.perf_counter()
        inside = sum(self.trace.seconds.values())
        encoding = encode(graph, self._terms, self._derivation, self._contents, outer, folding.evaluate, descend)
        # Bodies are rewritten while the graph around them is encoded. Their time counts in their
        # own stages.
        clock = self.trace.clock("encode", clock + sum(self.trace.seconds.values()) - inside)
        if self._options.ruleset.least is Label.EXACT and has_halves(encoding):
            raise _Fused("floats of 16 bits: ONNX Runtime rounds between some neighbors and not between others, so no rewrite keeps every bit")
        opset = standard_opset(opsets)
        self._blocked |= outer.main and has_blocked_convs(encoding, self._options.target)
        part = self._in_regions(encoding, place, opset, opsets) if outer.main else None
        part = part or Whole(encoding, folding, self._fresh, place, opset)
        self.trace.clock("encode", clock)
        if outer.main:
            self._options.progress(f"{'rewrite greedily:' if self._options.greedy else 'saturate'} {part.title}")
        clock = time.perf_counter()
        task = _Task(graph, outer, place, encoding, part, opset, self._growth if place.outermost else 0.0)

        def keep(egraph: EGraph) -> None:
            self._simplified = (task, egraph)

        egraph, record = self._rewritten(task, keep if outer.main else _forget)
        if outer.main and self._simplified is not None and not egraph.holds_more(self._simplified[1]):
            self._simplified = None  # later phases have found nothing, so both graphs are one
        give_back(len(part.encoding.nodes))  # of the engine's own graph
        self.trace.records.append(record)
        self.trace.clock("saturate", clock)
        return self._solved(task, egraph)

    def _rewritten(self, task: _Task, simplified: Callable[[EGraph], None]) -> tuple[EGraph, Record]:
        """Returns the e-graph that the rules make of a graph, and the record of the engine."""
        encoding, ruleset = task.part.encoding, self._options.ruleset
        if not self._options.greedy:
            ruleset = self._scouted(task, task.part) if isinstance(task.part, Regions) else ruleset
            return saturate(encoding, self._limits(), ruleset, simplified)

        from eqsat.greedy.greedy_engine import Surroundings, rewrite

        around = Surroundings(
            lambda egraph: self._prices(encoding, egraph, task.opset),
            stored_by(encoding.graph.constants.values()) + max(0.0, task.growth),
            self._fold_limit,
            task.opset,
            self._worker,
        )
        return rewrite(encoding, self._limits(), ruleset, self._options.seed, around, simplified)

    def _scouted(self, task: _Task, part: Regions) -> RuleSet:
        """Returns the rules that run on the regions of a graph: all, or those that helped where some
        of the regions stand for many.
        """
        ruleset = self._options.ruleset

        def solved(some: Regions, egraph: EGraph, share: float) -> Solution:
            chooser, groups = self._chooser(some.encoding, egraph, task.opset), some.groups(egraph)
            chosen = chooser.choose(groups, max(0.0, task.growth) * share, self._time_to_choose()[1], self._options.extractor)
            return Solution(some.encoding, egraph, chooser, groups, chosen, task.opset)

        found = scouted(part, ruleset, lambda some, keep: saturate(some.encoding, self._limits(), ruleset, keep), solved)
        if found is None:
            return ruleset
        self.trace.records.append(found.record)
        self.trace.tried += found.solutions
        return found.ruleset

    def _chooser(self, encoding: Encoding, egraph: EGraph, opset: int) -> Chooser:
        return Chooser(self._prices(encoding, egraph, opset), self._fold_limit, opset, self._worker, self._extractions, self._options.proof)

    @property
    def _fold_limit(self) -> int:
        return self._options.memory // 4

    def simplified(self) -> tuple[onnx.GraphProto, Trace] | None:
        """Returns the main graph after the first phase alone, with its record. Returns None if
        there is no such phase, if it found nothing, or if it found all.
        """
        if self._simplified is None:
            return None
        trace, growth = self.trace, self._growth
        self.trace, self._growth = Trace(), self._simplified[0].growth
        # Bodies and functions are as in the other model.
        self.trace.solutions = [one for one in trace.solutions if one.encoding is not self._simplified[0].part.encoding]
        try:
            decoded, _ = self._solved(*self._simplified)
            return decoded.graph, self.trace
        except (Contradiction, ExtractionError, NameClash, Unchanged, Undecodable):
            return None
        finally:
            self.trace, self._growth = trace, growth

    def _solved(self, task: _Task, egraph: EGraph) -> tuple[Decoded, tuple[Fact, ...]]:
        """Returns the best graph in an e-graph, and the facts of its outputs."""
        graph, outer, place, encoding, part, opset, growth = task
        chooser = self._chooser(part.encoding, egraph, opset)
        constants = Constants(part.encoding, egraph, chooser, part.folding)
        if outer.main:
            self._options.progress(f"choose, {part.title}")
        # Simplified control flow may exceed the limit already. Fewer nodes can make up for it, so no
        # constant has to go before the written bytes are known.
        room, groups = max(0.0, growth), part.groups(egraph)
        for _ in range(_ATTEMPTS):
            if part.folding.exhausted and self.trace.folding is None:
                self.trace.folding = "folding time"
            chosen, folded = self._choose(chooser, constants, groups, room)
            if outer.main and self._options.dump:
                self.trace.dump = Dump(chosen.graph, operators(part.encoding, chooser.ways))
            clock = time.perf_counter()
            try:
                decoded = part.decode(egraph, chooser, chosen, folded)
            except Unchanged:
                self.trace.choice, self.trace.bound = chosen.choice, 0.0
                self.trace.became = {name: name for name in task.encoding.values}
                self.trace.solutions.append(Solution(part.encoding, egraph, chooser, groups, chosen, opset))
                raise
            self.trace.clock("decode", clock)
            grown = written_bytes(decoded.graph) - written_bytes(graph.proto)
            if grown <= growth:
                if place.outermost:
                    self._growth -= max(0.0, grown)
                if chosen.choice.cost >= chosen.before and self._count.nodes(decoded.graph.node) > self._count.nodes(graph.proto.node):
                    raise ExtractionError("nothing was found that is better")
                self.trace.add(len(folded), decoded)
                self.trace.solutions.append(Solution(part.encoding, egraph, chooser, groups, chosen, opset))
                if outer.main:
                    self.trace.choice = chosen.choice
                    if self._options.keep:
                        self.trace.solved = Solved(part, egraph, chooser, constants, groups, chosen)
                    # Calls are priced like the original functions, and regions are solved one per
                    # kind, and the greedy engine leaves nothing to choose. In all these cases the
                    # solver's bound belongs to another problem than the model's.
                    self.trace.bound = 0.0 if self._model.functions or part.encoding is not encoding or egraph.kept is not None else chosen.choice.bound
                if part.encoding is not encoding:
                    return decoded, tuple(map(encoding.fact, graph.outputs))
                return decoded, tuple(chooser.fact(egraph.class_of[encoding.values[name]]) for name in graph.outputs)
            room = chosen.added - (grown - growth)
        raise ExtractionError("nothing was found whose file is no larger")

    def _in_regions(self, encoding: Encoding, place: Place, opset: int, opsets: Sequence[onnx.OperatorSetIdProto]) -> Regions | None:
        """Returns the regions of a large graph, or None if it is small or has fewer than two
        regions.
        """
        sizes = self._options.regions
        if sizes is None or len(encoding.nodes) <= sizes.most:
            return None
        cutter = Cutter(encoding)
        pieces = cutter.cut(sizes, self._options.shifted)
        if sum(isinstance(piece, Region) for piece in pieces) < 2:
            return None
        excerpter = Excerpter(cutter.definitions)
        excerpt = excerpter.excerpt(excerpter.kinds(pieces), self._fresh)
        # A function that knew the rewriter would be a cycle: the e-graphs of a large model would stay
        # until the collector of cycles runs.
        model, worker, memory = self._model, self._worker, self._options.memory

        def folding(graph: Graph) -> Folding:
            return Folding(model, graph, {}, opsets, worker, memory)

        return Regions(cutter.definitions, pieces, excerpter, excerpt, folding, self._fresh, place, opset)

    def _limits(self) -> Limits:
        """Returns the limits of saturation. It gets only a share of the time left, because choosing
        and writing follow.
        """
        limits = self._options.limits
        return dataclasses.replace(limits, deadline=limits.deadline.share(_SATURATION))

    def _choose(self, chooser: Chooser, constants: Constants, groups: Sequence[Group], room: float) -> tuple[Chosen, dict[int, np.ndarray[Any, Any]]]:
        """Returns a choice and the elements of its folded constants. If a constant fails or is
        larger than estimated, it is priced anew and the choice is made again.
        """
        while True:
            clock = time.perf_counter()
            limit, left = self._time_to_choose()
            chosen = chooser.choose(groups, room, left, self._options.extractor)
            if left is not None and chosen.choice.status != "optimal" and time.perf_counter() - clock >= left:
                self.trace.choosing = limit
            clock = self.trace.clock("extract", clock)
            copies: Counter[int] = Counter()
            for group, terms in zip(groups, chosen.terms, strict=True):
                copies.update({eclass: group.copies for eclass, term in terms.items() if term.head == FOLDED})
            arrays = constants.evaluate(list(copies))
            self.trace.clock("fold", clock)
            excess, larger = chosen.added - chosen.room, False
            folded: dict[int, np.ndarray[Any, Any]] = {}
            for eclass, count in copies.items():
                array = arrays.get(eclass)
                size = math.inf if array is None else stored_bytes(array)
                excess += count * (size - chooser.stored_bytes(eclass))
                larger |= size > chooser.stored_bytes(eclass)
                chooser.folded_bytes[eclass] = size
                if array is not None:
                    folded[eclass] = array
            # Where every estimate holds, another choice would be the same.
            if excess <= 0 or not larger:
                return chosen, folded

    def _time_to_choose(self) -> tuple[str, float | None]:
        """Returns the limit that ends a choice first, and the seconds left until then: None if
        there is no limit.
        """
        deadline, most = self._options.limits.deadline, self._options.extract_time
        left = deadline.left if deadline.hit != INTERRUPTED else _AFTER_INTERRUPT
        share = None if most is None else max(0.0, most - self.trace.seconds["extract"])
        return ("extract time", share) if share is not None and (left is None or share < left) else (deadline.hit or "time", left)

    def _prices(self, encoding: Encoding, egraph: EGraph, opset: int) -> Prices:
        options, blocked = self._options, self._blocked
        shared = self._shared.setdefault((opset, blocked), Shared())
        return prices_of(encoding, egraph, options.target, options.objective, options.sizes, self._count, opset, shared, blocked)

    def _bodies(self, node: Node, outer: Outer, place: Place, opsets: Sequence[onnx.OperatorSetIdProto]) -> tuple[Node, tuple[Fact, ...]]:
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        bodies: dict[str, Graph] = {}
        facts: dict[str, tuple[Fact, ...]] = {}
        captured: dict[str, None] = {}
        for attribute in proto.attribute:
            graphs = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs)
            for index, graph in enumerate(graphs):
                name = attribute.name if attribute.type == onnx.AttributeProto.GRAPH else f"{attribute.name}.{index}"
                body = node.bodies[name]
                decoded, facts[name] = self.graph(body, outer.only(body.captured()), dataclasses.replace(place, outermost=False), opsets)
                graph.CopyFrom(decoded.graph)
                bodies[name] = body
                captured.update(dict.fromkeys(captures(decoded.graph)))
        results = control_flow_facts(node, facts)
        return dataclasses.replace(node, proto=proto, bodies=bodies, captures=tuple(captured)), results


def stored_bytes(array: np.ndarray[Any, Any]) -> float:
    """Returns the bytes that an evaluated constant takes in a file."""
    return float(array.nbytes if array.dtype.kind not in "OSU" else sum(len(str(item)) + 2 for item in array.flat))

"""The engine: one rule after the other is applied until it finds nothing more, round after round.

Each rewrite replaces what it matches, so the order of the rules decides the result. A rewrite is
made only if the predicted cost of the graph falls, or if it stays and the rule is one that makes
graphs smaller or settles a form. So the cost never rises, and the run ends.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from eqsat.choose.prices import Prices
from eqsat.choose.writable import unwritable
from eqsat.egraph.admission import RuleSet
from eqsat.egraph.encode import Encoding
from eqsat.egraph.finiteness import Finiteness
from eqsat.egraph.limits import Limits
from eqsat.egraph.phases import Phase
from eqsat.egraph.record import Iteration, Record
from eqsat.egraph.tables import EGraph
from eqsat.facts.fact import Contradiction
from eqsat.frozen import frozen
from eqsat.greedy.laws import Laws
from eqsat.greedy.named_sizes import is_symbolic, spelled
from eqsat.greedy.pricing import Pricing
from eqsat.greedy.result import result
from eqsat.greedy.right_side import RightSide
from eqsat.greedy.rule_pass import Pass
from eqsat.greedy.term_graph import TermGraph
from eqsat.language.firing import Firing
from eqsat.runtime.worker import Worker
from eqsat.terms.terms import LITERAL, Term

_STEPS = 1_000  # rewrites in all
_STEPS_PER_NODE = 20  # and so many more for each term of the graph
_SLIGHT = 1e-9  # costs that differ by less are equal
STEPS = "steps"
"""The limit that ends a run whose rules turn in a circle at equal cost."""


@frozen
class Surroundings:
    """The facts about the model and the target that a run needs."""

    prices: Callable[[EGraph], Prices]
    stored: float  # bytes of constants that the graph may store
    fold_limit: int  # bytes of a constant that is still folded
    opset: int
    worker: Worker


def rewrite(
    encoding: Encoding, limits: Limits, ruleset: RuleSet, seed: int | None, around: Surroundings, simplified: Callable[[EGraph], None]
) -> tuple[EGraph, Record]:
    """Rewrites an encoding by the rules in the order of their files, or in a random order of a seed.

    Returns what is left of the graph as an e-graph in which each class that the outputs need has
    one term to choose, and the record of the run. A limit ends the run early; the result is valid
    all the same. If there are several phases, `simplified` receives the e-graph after the first.
    """
    engine = _Engine(encoding, limits, ruleset, around)
    order = list(range(len(ruleset.rules)))
    if seed is not None:
        random.Random(seed).shuffle(order)
    for number, phase in enumerate(ruleset.phases):
        if number == 1:
            simplified(result(encoding, engine.graph))
        engine.run(phase, order)
    return result(encoding, engine.graph), engine.finished()


class _Engine:
    def __init__(self, encoding: Encoding, limits: Limits, ruleset: RuleSet, around: Surroundings) -> None:
        self.graph = TermGraph(encoding, around.fold_limit)
        self.record = Record()
        self._encoding = encoding
        self._limits = limits
        self._ruleset = ruleset
        self._around = around
        self._prices = around.prices(EGraph([], self.graph.facts, []))
        self._pricing = Pricing(self.graph, self._prices)
        self._finiteness = Finiteness(encoding)
        self._laws = Laws(self.graph, self._is_writable)
        self._passes: dict[int, Pass] = {}
        self._writable: dict[tuple[int, tuple[int, ...], tuple[int, ...]], bool] = {}
        self._left = _STEPS + _STEPS_PER_NODE * len(encoding.entries)
        self._stored = sum(map(self._pricing.stored, self.graph.live()))

    def run(self, phase: Phase, order: Sequence[int]) -> None:
        """Runs the rules of a phase in an order, round after round to a fixed point."""
        numbers = [number for number in order if phase.has(self._ruleset.group(number))]
        self._settle()
        before = -1
        turn = 0
        while self.record.hit is None and before != self.graph.clock:
            before, turn, clock = self.graph.clock, turn + 1, time.perf_counter()
            for number in numbers:
                self._run(number, phase)
            nodes, classes = self._size()
            self.record.iterations.append(Iteration(phase.name, f"round {turn}", nodes, classes, time.perf_counter() - clock))

    def finished(self) -> Record:
        """Returns the record of the run."""
        self.record.nodes, self.record.classes = self._size()
        self.record.add(one.firing for one in self._passes.values())
        return self.record

    def _size(self) -> tuple[int, int]:
        """Returns the number of live nodes, and that of all live classes."""
        live = list(self.graph.live())
        return sum(self.graph.term(eclass).head >= 0 for eclass in live), len(live)

    def _run(self, number: int, phase: Phase) -> None:
        """Applies a rule until it finds nothing more."""
        if self.record.hit is not None or not self._ruleset.rules[number].needs.operators <= self.graph.operators():
            return
        compiled = self._ruleset.rules[number].compiled
        free = compiled.growth < 0 or (compiled.growth == 0 and phase.settles(self._ruleset.group(number)))
        if not free and not phase.rounds:
            return
        one = self._passes.get(number)
        if one is None:
            firing = Firing(compiled, self._encoding.terms, self._encoding.derivation, self._ruleset.least, self._finiteness.special)
            one = self._passes[number] = Pass(self.graph, firing)
        while self.record.hit is None and self._sweep(one, free):
            pass

    def _sweep(self, one: Pass, free: bool) -> bool:
        """Goes once over all values, in topological order. Tells whether a rewrite was made."""
        found = False
        for root, eclass in list(one.places()):
            if not self.graph.is_alive(eclass):
                continue
            self.record.hit = self.record.hit or self._limits.deadline.hit or (STEPS if self._left <= 0 else None)
            if self.record.hit is not None:
                break
            found |= self._apply(one, free, root, eclass)
        return found

    def _apply(self, one: Pass, free: bool, root: int, eclass: int) -> bool:
        """Makes the first rewrite at a place that is worth its price. Tells whether there is one."""
        begin = len(self.graph.facts)
        matched = False
        for firing, bindings in one.matches(root, eclass):
            mark = len(self.graph.facts)
            roots = RightSide(self.graph, one.firing, firing, bindings, self._laws.known).roots()
            pairs = [(old, new) for old, new in roots if old != new and self.graph.refs[old]]
            if pairs and self._is_worth(pairs, free):
                self.graph.keep()
                self.graph.unite(pairs)
                self._left -= 1
                name = one.firing.compiled.rule.name
                self.record.fired[name] = self.record.fired.get(name, 0) + 1
                self._settle()
                return True
            matched |= bool(pairs)
            self.graph.forget(mark)
        self.graph.forget(begin)
        if matched:
            one.refuse(root, eclass)
        return False

    def _is_worth(self, pairs: Sequence[tuple[int, int]], free: bool) -> bool:
        """Tells whether a rewrite may be made: it is legal, and it pays."""
        graph = self.graph
        olds, news = zip(*pairs, strict=True)
        if len(set(olds)) < len(olds) or any(is_symbolic(graph, new) for new in news):
            return False
        if graph.reaches(news, olds) or not self._agrees(pairs):
            return False
        difference = self._pricing.difference(pairs)
        if max(self._around.stored, self._stored) < self._stored + difference.stored:
            return False
        cost, tie = difference.cost, difference.tie
        if cost > _SLIGHT or (cost > -_SLIGHT and (tie > _SLIGHT or (tie > -_SLIGHT and not free))):
            return False
        return all(map(self._may_stand, difference.added))

    def _agrees(self, pairs: Sequence[tuple[int, int]]) -> bool:
        """Tells whether the facts of both sides can be true of one value."""
        try:
            for old, new in pairs:
                self._encoding.derivation.merge(self.graph.facts[old], self.graph.facts[new])
        except Contradiction:
            return False
        return True

    def _may_stand(self, eclass: int) -> bool:
        """Tells whether a class that comes to life can be written."""
        graph, term = self.graph, self.graph.term(eclass)
        if term.head == LITERAL or graph.is_leaf(eclass):
            return True  # a constant will be folded
        if eclass < len(self._encoding.facts):
            return True  # the original has a spelling for its own terms
        return self._is_writable(term) if term.head >= 0 else not any(is_symbolic(graph, child) for child in term.children)

    def _is_writable(self, term: Term) -> bool:
        term = spelled(self.graph, term)
        if any(is_symbolic(self.graph, child) for child in term.children):
            return False
        key = term.head, term.data, tuple(self.graph.facts[child] for child in term.children)
        if key not in self._writable:
            self._writable[key] = not unwritable(self._prices, [term], self._around.opset, self._around.worker)
        return self._writable[key]

    def _settle(self) -> None:
        """Applies the laws after a change."""
        for name, count in self._laws.apply().items():
            self.record.matches[name] = self.record.matches.get(name, 0) + count
        self._stored = sum(map(self._pricing.stored, self.graph.live()))

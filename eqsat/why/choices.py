"""Choices: whether the best graph of an e-graph holds what a rule makes in one place, and else why
not.

The e-graph is that of a whole graph, saturated once. A run may take several turns, and it cuts a
large graph into regions, so it may choose otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from eqsat.choose.choose import Chooser
from eqsat.choose.groups import Group
from eqsat.choose.prices import has_blocked_convs, prices_of
from eqsat.cost.target import load_target
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.language.compile import Compiled
from eqsat.model.file_bytes import written_bytes
from eqsat.model.model import NodeCount
from eqsat.proofs.equations import Matcher, Tables
from eqsat.proofs.used import used_rules
from eqsat.rewriting.portions import stored_by
from eqsat.rewriting.unused import LOST, Reason
from eqsat.rewriting.uses import Solution, Unused
from eqsat.runtime.worker import Worker
from eqsat.settings import Settings


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether the best graph has what a rule makes in a place."""

    chosen: bool
    reason: Reason | None = None
    """Why not."""
    further: bool = False
    """Whether other rules have rewritten further what the rule made."""

    def __str__(self) -> str:
        return f"not chosen: {self.reason}" if not self.chosen else "chosen, and rewritten further" if self.further else "chosen"


def solution(encoding: Encoding, egraph: EGraph, opset: int, count: NodeCount, fold_limit: int, worker: Worker) -> Solution:
    """Returns the best graph of an e-graph with the default settings. Raises `ExtractionError` if
    there is none.
    """
    settings = Settings()
    graph = encoding.graph
    target = load_target(settings.target).holding(written_bytes(graph.proto))
    prices = prices_of(encoding, egraph, target, settings.objective, {}, count, opset, blocked=has_blocked_convs(encoding, target))
    chooser = Chooser(prices, fold_limit, opset, worker)
    roots = list(dict.fromkeys(egraph.class_of[encoding.values[name]] for name in graph.outputs))
    groups = [Group(roots, stored_by(graph.constants.values()))]
    chosen = chooser.choose(groups, settings.growth(written_bytes(graph.proto)), method=settings.extractor)
    return Solution(encoding, egraph, chooser, groups, chosen, opset)


class Choices:
    """The choices for the places of one rule in one graph."""

    def __init__(self, found: Solution, rule: str, worker: Worker) -> None:
        self._solution = found
        self._firings = [firing for firing in found.egraph.firings if firing.compiled.rule.name == rule]
        self._tables = Tables(found.encoding.terms, found.egraph)
        at = Matcher(self._tables, found.egraph.firings).at
        self._used = used_rules(found.encoding, found.egraph, at, found.groups, found.chosen.terms).equations
        self._unused = Unused(found, worker, Settings().extractor)

    def at(self, name: str, compiled: Compiled) -> Choice:
        """Returns the choice for a value that a direction of the rule matches."""
        eclass = self._solution.egraph.class_of[self._solution.encoding.values[name]]
        firings = [firing for firing in self._firings if firing.compiled.reverse == compiled.reverse]
        equations = list(dict.fromkeys(Matcher(self._tables, firings).at(eclass, lambda rule: True)))
        if not equations:
            return Choice(False, Reason(LOST))
        options = [self._unused.made(equation) for equation in equations]
        chosen = set(self._solution.chosen.terms[0].values())
        if any(made and chosen.issuperset(made) for made in options):
            return Choice(True)
        used = [made for equation, made in zip(equations, options, strict=True) if equation in self._used]
        return Choice(True, further=any(used)) if used else Choice(False, self._unused.reason(options))

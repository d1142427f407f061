"""Uses: which rules a result is made of, and what stopped the others that fired.

The input is the choices that made the result. The rules that a result uses are always traced. What
the best choice with another rule would cost is computed only if it is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field

from eqsat.choose.alternatives import Alternative, Alternatives
from eqsat.choose.choose import Chooser, Chosen
from eqsat.choose.groups import Group
from eqsat.choose.writable import Obstacle, obstacle
from eqsat.egraph.encode import Encoding
from eqsat.egraph.tables import EGraph
from eqsat.extract import Method
from eqsat.frozen import frozen, mutable
from eqsat.language.firing import Firing
from eqsat.proofs.equations import Equation, Matcher, Tables
from eqsat.proofs.used import Used, used_rules
from eqsat.rewriting.unused import BYTES, COST, GROWTH, LAUNCHES, LOST, NOTHING, SAME, SECONDS, UNPRICED, Reason, lacks
from eqsat.runtime.worker import Worker
from eqsat.terms.terms import Term

_BUDGET, _SHARE = 8_000, 500  # terms looked at for one rule, and in one place, to trace a result
_WORK = 30_000.0  # of extractions that price what one graph does not use
_LARGE = 500.0  # nodes from which an extraction takes more than in proportion
_OPTIONS = 64  # places of one rule among which the best one is priced


@mutable
class Uses:
    """The rules that a result uses, and the reasons against others, as far as they are known."""

    rules: set[str] = field(default_factory=set[str])
    complete: bool = True
    """Whether the whole result is traced back to its original."""
    reasons: dict[str, Reason] = field(default_factory=dict[str, Reason])

    def join(self, other: Uses) -> None:
        """Adds what is known of another graph."""
        self.rules |= other.rules
        self.complete &= other.complete
        for name, reason in other.reasons.items():
            known = self.reasons.get(name)
            self.reasons[name] = reason if known is None or reason.rank < known.rank else known


@frozen
class Solution:
    """A choice that made a graph of the result, and the e-graph behind it."""

    encoding: Encoding
    egraph: EGraph
    chooser: Chooser
    groups: Sequence[Group]
    chosen: Chosen
    opset: int

    def uses(self, fired: Collection[str], worker: Worker, priced: Method | None) -> Uses:
        """Returns the rules among those that `fired` which the graph uses. With an extraction
        method, other rules are `priced` by it; without one, only missing opsets, domains and kernels
        are looked for.
        """
        if self.egraph.kept is not None:
            return Uses(set(fired))  # each rewrite of a destructive engine took the place of what it matched
        tables = Tables(self.encoding.terms, self.egraph)
        firings = [firing for firing in self.egraph.firings if firing.compiled.rule.name in fired]
        used = self._traced(tables, firings)
        others = [firing for firing in firings if firing.compiled.rule.name not in used.rules]
        reasons = self._obstacles(others, worker) if priced is None else dict(Unused(self, worker, priced).reasons(Matcher(tables, others).all()))
        return Uses(used.rules, used.complete, reasons)

    def traced(self, fired: Collection[str]) -> Used:
        """Returns the rules among those that `fired` by which the choice is made."""
        firings = [firing for firing in self.egraph.firings if firing.compiled.rule.name in fired]
        return self._traced(Tables(self.encoding.terms, self.egraph), firings)

    def _traced(self, tables: Tables, firings: Sequence[Firing]) -> Used:
        return used_rules(self.encoding, self.egraph, Matcher(tables, firings, _BUDGET, _SHARE).at, self.groups, self.chosen.terms)

    def _obstacles(self, firings: Iterable[Firing], worker: Worker) -> dict[str, Reason]:
        """Returns what the result may not have of each rule that makes nothing else."""
        terms, found = self.encoding.terms, dict[str, Reason]()
        barred = self.chooser.barred_heads
        known: dict[int, Obstacle | None] = {}
        for firing in firings if barred else ():
            heads = (terms.signature(made.signature) for made in firing.compiled.construction.nodes)
            head = next((head for head in heads if head in barred), None)
            if head is None:
                continue
            if head not in known:
                known[head] = obstacle(self.chooser.prices, barred[head], self.opset, worker)
            if (lacking := known[head]) is not None:
                found[firing.compiled.rule.name] = lacks(lacking)
        return found


class Unused:
    """The reasons why a choice does not use some rules."""

    def __init__(self, solution: Solution, worker: Worker, method: Method) -> None:
        self._solution = solution
        self._worker = worker
        self._alternatives = Alternatives(solution.chooser, solution.groups, solution.chosen, method)
        self._chosen = [set(terms.values()) for terms in solution.chosen.terms]
        self._left = _WORK
        prices = solution.chooser.prices
        self._unit = SECONDS if prices.predicts else BYTES if prices.objective in ("bytes", "size") else LAUNCHES

    def reasons(self, equations: Iterable[Equation]) -> Iterator[tuple[str, Reason]]:
        """Yields a reason for each rule with an equation, as long as the work for prices lasts: the
        rules of small graphs come first.
        """
        options: dict[str, dict[tuple[Term, ...], None]] = {}
        for equation in equations:
            options.setdefault(equation.rule, {})[self.made(equation)] = None
        for name, found in sorted(options.items(), key=lambda item: (len(item[1]), item[0])):
            yield name, self.reason(list(found)[:_OPTIONS])

    def reason(self, options: Sequence[tuple[Term, ...]]) -> Reason:
        """Returns the reason why none of these rows of terms is in the choice as a whole."""
        new = [option for option in options if option and not any(chosen.issuperset(option) for chosen in self._chosen)]
        if not new:
            return Reason(NOTHING)
        allowed: list[tuple[Term, ...]] = []
        lacking: dict[Obstacle, list[tuple[Term, ...]]] = {}
        for option in new:
            found = self._obstacle(option)
            (allowed if found is None else lacking.setdefault(found, [])).append(option)
        reasons = [] if not allowed else [self._priced(allowed)]
        for found, rows in lacking.items():
            more = self._best(rows) if found.opset is not None or found.domain is not None else None
            reasons.append(lacks(found, None if more is None else self._more(more.more), self._unit))
        return min(reasons, key=lambda reason: reason.rank)

    def made(self, equation: Equation) -> tuple[Term, ...]:
        """Returns the nodes that a rule made, without those of constants, which are stored."""
        prices = self._solution.chooser.prices
        return tuple(term for term in equation.right if term.head >= 0 and not prices.is_constant(term.eclass))

    def _obstacle(self, option: Sequence[Term]) -> Obstacle | None:
        """Returns what the result lacks for these terms: the newest opset of them."""
        chooser = self._solution.chooser
        barred = [term for term in option if not chooser.may_write(term)]
        found = [lacking for term in barred if (lacking := obstacle(chooser.prices, term, self._solution.opset, self._worker)) is not None]
        return max(found, key=lambda one: (one.opset is None, one.opset or 0), default=None)

    def _priced(self, options: Sequence[Sequence[Term]]) -> Reason:
        best = self._best(options)
        if best is None:
            return Reason(UNPRICED if self._left <= 0 else LOST)
        more = self._more(best.more)
        if best.excess:
            return Reason(GROWTH, more=more, unit=self._unit, excess=best.excess)
        return Reason(SAME if best.more <= 0 else COST, more=max(0.0, more), unit=self._unit)

    def _best(self, options: Sequence[Sequence[Term]]) -> Alternative | None:
        """Returns the best choice with one of the options, over all groups that can have one."""
        found: list[Alternative] = []
        for number in range(len(self._solution.groups)):
            if self._left > 0 and self._alternatives.has(number, options):
                size = self._alternatives.size(number)
                self._left -= size * (1 + size / _LARGE)
                found += [best for best in [self._alternatives.best(number, options)] if best is not None]
        return min(found, key=lambda best: (bool(best.excess), best.more), default=None)

    def _more(self, cost: float) -> float:
        """Returns a difference of costs in the unit of the objective."""
        prices = self._solution.chooser.prices
        return cost * prices.target.start if prices.predicts else cost

"""Scouting: all rules run on a few regions of each family, and the others get the rules that helped.

The input is a graph that was cut into regions. Where many kinds of regions differ in sizes alone, the
result is the rules of which the best forms of some kinds are made. Every kind is then solved with
these rules at its own prices: scouts tell which rules to try, never what a region becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eqsat.egraph.admission import RuleSet
from eqsat.egraph.record import Record
from eqsat.egraph.saturate import EngineFailure
from eqsat.egraph.tables import EGraph
from eqsat.extract import ExtractionError
from eqsat.frozen import frozen
from eqsat.regions.resemblance import families
from eqsat.rewriting.portions import Regions
from eqsat.rewriting.uses import Solution

_WORTH = 4  # kinds for each scout; where there are fewer, two saturations gain little and may lose forms


@frozen
class Scouting:
    """What scouts have found."""

    ruleset: RuleSet
    record: Record
    solutions: Sequence[Solution]
    """The best forms of the scouts: after the last phase, and after the first if they differ."""


def scouts(part: Regions) -> list[int]:
    """Returns the numbers of the kinds that stand for all, or none where scouting does not pay: the
    last kind of each family.
    """
    kinds = part.excerpt.kinds
    found = sorted(family[-1] for family in families(part.definitions, kinds))
    return found if _WORTH * len(found) <= len(kinds) else []


def scouted(
    part: Regions,
    ruleset: RuleSet,
    saturated: Callable[[Regions, Callable[[EGraph], None]], tuple[EGraph, Record]],
    solved: Callable[[Regions, EGraph, float], Solution],
) -> Scouting | None:
    """Returns the rules for the kinds of a graph, or None where all rules have to run on all kinds.

    `saturated` runs all rules on a part and also gives the e-graph after the first phase. `solved`
    chooses from an e-graph of a part, which may store its share of the bytes.
    """
    # Rules that only shrink the graph take less time than looking for those that help.
    chosen = scouts(part) if any(phase.rounds for phase in ruleset.phases) else []
    if not chosen:
        return None
    some, egraphs = part.only(chosen), list[EGraph]()
    try:
        egraph, record = saturated(some, egraphs.append)
        early = [one for one in egraphs if egraph.holds_more(one)]
        solutions = [solved(some, one, len(chosen) / len(part.excerpt.kinds)) for one in (egraph, *early)]
    except (EngineFailure, ExtractionError):
        return None
    fired = {name for name, count in record.fired.items() if count}
    used = [solution.traced(fired) for solution in solutions]
    if not all(one.complete for one in used):
        return Scouting(ruleset, record, ())
    names = {name for one in used for name in one.rules}
    return Scouting(replace(ruleset, rules=[rule for rule in ruleset.rules if rule.name in names]), record, solutions)

"""The schedule: phases of rules run over an e-graph, each as far as it may.

In each phase laws and rules that shrink the graph run until nothing changes. Then the rules that may grow it search; of what they have found each
gets its share of what the round may make; that is applied, and so on in turns. Whatever ends the run, the e-graph it leaves is a valid one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from eqsat.candidates import Candidates, Row
from eqsat.emit import half_name, pick_name
from eqsat.engine import GROW, LAWS, SEARCH, SETTLE, SIMPLIFY, Engine
from eqsat.limits import Watch
from eqsat.phases import Phase

UNFINISHED = ("growth", "rounds")
"""What ends a run that had more to find: begun anew with its result, it may find it."""


class Schedule:
    """Phases over one engine, with what is known of each rule that may grow the graph from round to round."""

    def __init__(
        self, engine: Engine, candidates: Mapping[int, Candidates], groups: Mapping[int, str], places: Mapping[str, int], watch: Watch, size: int
    ) -> None:
        self._engine = engine
        self._candidates = candidates
        self._groups = groups  # of the rules, by number
        self._places = places  # of the groups, by which their rulesets are called
        self._watch = watch
        self._size = size  # of the graph

    def run(self, phases: Sequence[Phase]) -> str | None:
        """Runs phases one after the other; the limit that ended the run, or kept it from more, if one did."""
        found: str | None = None
        for number, phase in enumerate(phases):
            limit = self._phase(number, phase)
            if limit is not None:
                return limit
            found = self._left_over(phase)
        return found

    def _left_over(self, phase: Phase) -> str | None:
        if self._watch.full:
            return "growth"
        return "rounds" if any(one.waiting for one in self._growing(phase).values()) else None

    def _growing(self, phase: Phase) -> dict[int, Candidates]:
        return {number: one for number, one in self._candidates.items() if phase.has(self._groups[number])} if phase.rounds else {}

    def _phase(self, number: int, phase: Phase) -> str | None:
        growing = self._growing(phase)
        begin = self._engine.nodes
        most, firings = phase.most_nodes(begin), phase.most_firings(begin)
        groups = {place: group for group, place in self._places.items() if phase.has(group)}
        settling = [f"{SETTLE}_{place}" for place, group in groups.items() if phase.settles(group)]
        simplify = self._together(f"{SIMPLIFY}_phase_{number}", [*(f"{SIMPLIFY}_{place}" for place in groups), *settling])
        search = self._together(f"{SEARCH}_phase_{number}", [f"{SEARCH}_{place}" for place in groups])
        for turn in range(phase.rounds + 1):
            limit = self._simplify(simplify, phase, most)
            if limit is not None:
                return limit
            if search is None or not growing or self._watch.full:
                break
            # After the last round as well: what is found then tells that there would have been more.
            self._engine.step(search, phase.name, SEARCH)
            self._look(growing)
            share = max(0, most - self._engine.nodes) // max(1, phase.rounds - turn)
            if turn == phase.rounds or not self._grow(phase, growing, share, firings):
                break
        return None

    def _together(self, name: str, rulesets: Sequence[str]) -> str | None:
        """One ruleset of those that have rules."""
        parts = [ruleset for ruleset in rulesets if ruleset in self._engine.program.rulesets]
        if len(parts) < 2:
            return parts[0] if parts else None
        self._engine.run(f"(unstable-combined-ruleset {name} {' '.join(parts)})")
        return name

    def _simplify(self, ruleset: str | None, phase: Phase, most: int) -> str | None:
        """Laws and shrinking rules until nothing changes; the limit that ended it, if one did."""
        changed = True
        while changed:
            while (limit := self._watch.reached(self._engine.nodes)) is None and self._engine.step(LAWS, phase.name):
                pass
            if limit is not None:
                return limit
            self._watch.allowance = most - self._engine.nodes
            changed = ruleset is not None and self._engine.step(ruleset, phase.name, SIMPLIFY)
        return None

    def _grow(self, phase: Phase, growing: Mapping[int, Candidates], share: int, firings: int) -> bool:
        """Picks of what was found, and applies it. Whether anything changed."""
        picked = False
        left = share
        waiting = sorted((one.waiting * one.made, number) for number, one in growing.items() if one.waiting)
        for position, (_, number) in enumerate(waiting):
            # Those that want least get what they want; what they leave goes to the others.
            one = growing[number]
            rows = one.take(self._size, min(firings, left // (len(waiting) - position) // one.made))
            left -= len(rows) * one.made
            if rows:
                picked = True
                self._engine.run(self._engine.program.fill(pick_name(number), rows))
        if not picked:
            return False
        self._engine.run("(run-schedule (run picked))")
        return self._engine.step(GROW, phase.name, GROW)

    def _look(self, growing: Mapping[int, Candidates]) -> None:
        """Tells the candidates what their searches have found by now."""
        engine, tables = self._engine, self._engine.tables()
        place: dict[Hashable, int] = {}
        for row in tables["Ref"].rows:
            reference = engine.integer(row.inputs[0])
            place[row.output] = min(reference, place.get(row.output, reference))
        for number, one in growing.items():
            one.look(
                [[Row(engine.number(row.inputs[0]), tuple(row.inputs[1:])) for row in tables[half_name(number, half)].rows] for half in range(len(one.halves))],
                place,
            )

"""The schedule: phases of rules run over an e-graph, each as far as it may.

In each phase laws and rules that shrink the graph run until nothing changes. Then the rules that may grow it search; of what they have found each
gets its share of what the round may make; that is applied, and so on in turns. Whatever ends the run, the e-graph it leaves is a valid one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from eqsat.admission import Admission
from eqsat.candidates import Candidates, Row
from eqsat.emit import half_name, pick_name
from eqsat.engine import GROW, LAWS, SEARCH, SIMPLIFY, Engine
from eqsat.limits import Watch
from eqsat.phases import Phase

UNFINISHED = ("growth", "rounds")
"""What ends a run that had more to find: begun anew with its result, it may find it."""

_STEPS = 100
"""In which shrinking rules come to an end, and one more for each value of the graph that they can move something across."""


class Schedule:
    """Phases over one engine, with what is known of each rule that may grow the graph from round to round."""

    def __init__(self, engine: Engine, admission: Admission, watch: Watch, size: int) -> None:
        self._engine = engine
        self._admission = admission
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
        return "rounds" if any(one.waiting for one in self._admission.growing(phase).values()) else None

    def _phase(self, number: int, phase: Phase) -> str | None:
        begin = self._engine.nodes
        most, firings = phase.most_nodes(begin), phase.most_firings(begin)
        simplify = self._together(f"{SIMPLIFY}_phase_{number}", self._admission.shrinking(phase))
        search = self._together(f"{SEARCH}_phase_{number}", self._admission.searching(phase))
        for turn in range(phase.rounds + 1):
            limit = self._simplify(simplify, phase, most)
            if limit is not None:
                return limit
            growing = self._admission.growing(phase)
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
        """One ruleset of several; None of none."""
        if len(rulesets) < 2:
            return rulesets[0] if rulesets else None
        self._engine.run(f"(unstable-combined-ruleset {name} {' '.join(rulesets)})")
        return name

    def _simplify(self, ruleset: str | None, phase: Phase, most: int) -> str | None:
        """Laws and shrinking rules until nothing changes; the limit that ended it, if one did."""
        changed = True
        left = _STEPS + self._size
        while changed:
            while (limit := self._watch.reached(self._engine.nodes)) is None and self._engine.step(LAWS, phase.name):
                pass
            if limit is not None:
                return limit
            if self._admission.admit():
                continue  # some laws hold of what the new rules look for
            # A class that holds itself (a Concat of it and of nothing) can be taken apart without end.
            self._watch.allowance = most - self._engine.nodes if left > 0 else -1
            left -= 1
            changed = ruleset is not None and self._admission.shrinks and self._engine.step(ruleset, phase.name, SIMPLIFY)
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
                self._admission.apply(number)
                self._engine.extend()
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

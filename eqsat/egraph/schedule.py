"""The schedule: it runs the phases over an e-graph, each within its limits.

In each phase, laws and shrinking rules run until nothing changes. Then the growing rules search,
and each rule applies some of its candidates, within its share of the round's budget. This repeats
for the rounds of the phase. The e-graph is valid whatever ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from eqsat.egraph.admission import Admission
from eqsat.egraph.candidates import Candidates, Row
from eqsat.egraph.emit import PICKED, half_name
from eqsat.egraph.engine import GROW, LAWS, SEARCH, SIMPLIFY, Engine
from eqsat.egraph.limits import Watch
from eqsat.egraph.phases import Phase

UNFINISHED = ("growth", "rounds")
"""The limits that leave candidates unapplied. A new turn from the run's result may apply them."""

_STEPS = 100
"""The steps within which shrinking rules finish.

Each value of the graph allows one more, since a rule may move a node across it.
"""


class Schedule:
    """Runs phases over one engine and keeps the candidates of growing rules from round to round."""

    def __init__(self, engine: Engine, admission: Admission, watch: Watch, size: int) -> None:
        self._engine = engine
        self._admission = admission
        self._watch = watch
        self._size = size  # the number of values of the graph

    def run(self, phases: Sequence[Phase], simplified: Callable[[], None]) -> str | None:
        """Runs the phases in order, and calls `simplified` after the first of several.

        Returns the limit that ended the run or left candidates, or None.
        """
        found: str | None = None
        for number, phase in enumerate(phases):
            if number == 1:
                simplified()
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
        simplify, search = self._admission.shrinking(phase), self._admission.searching(phase)
        for turn in range(phase.rounds + 1):
            limit = self._simplify(simplify, phase, most)
            if limit is not None:
                return limit
            growing = self._admission.growing(phase)
            if not growing or self._watch.full:
                break
            # The search after the last round tells whether another round would find candidates.
            self._step(search, phase, SEARCH)
            self._look(growing)
            share = max(0, most - self._engine.nodes) // max(1, phase.rounds - turn)
            if turn == phase.rounds or not self._grow(phase, growing, share, firings):
                break
        return None

    def _step(self, families: Sequence[str], phase: Phase, step: str) -> bool:
        """Runs the rulesets of these families that can find more, as one step. Tells whether
        anything changed.
        """
        due = self._engine.due(families)
        return bool(due) and self._engine.step(due, phase.name, step)

    def _simplify(self, families: Sequence[str], phase: Phase, most: int) -> str | None:
        """Runs laws and shrinking rules until nothing changes.

        Returns the limit that ended them, or None.
        """
        changed = True
        left = _STEPS + self._size
        while changed:
            while (limit := self._watch.reached(self._engine.nodes)) is None and self._engine.step([LAWS], phase.name):
                pass
            if limit is not None:
                return limit
            self._engine.find_edges()
            if self._admission.admit():
                continue  # laws apply to the operators of the new rules
            # Rules can unfold a class that contains itself (a Concat of it and nothing) forever.
            self._watch.allowance = most - self._engine.nodes if left > 0 else -1
            left -= 1
            # Where nothing may fire, the search for matches alone could take all memory: of a Gather in
            # a class that contains itself, each pair is one.
            changed = not self._watch.full and self._step(families, phase, SIMPLIFY)
        return None

    def _grow(self, phase: Phase, growing: Mapping[int, Candidates], share: int, firings: int) -> bool:
        """Picks candidates and applies them. Tells whether anything changed."""
        picked: dict[int, list[tuple[int, ...]]] = {}  # by width
        left = share
        waiting = sorted((one.waiting * one.made, number) for number, one in growing.items() if one.waiting)
        for position, (_, number) in enumerate(waiting):
            # Rules with the smallest demand come first; the rest of their share goes to the others.
            one = growing[number]
            rows = one.take(self._size, min(firings, left // (len(waiting) - position) // one.made))
            left -= len(rows) * one.made
            if rows:
                self._admission.apply(number)
                picked.setdefault(len(rows[0]), []).extend((number, *row) for row in rows)
        if not picked:
            return False
        self._engine.extend()
        program = self._engine.program
        for width, rows in picked.items():
            self._engine.run(program.fill(program.table(PICKED, width), rows))
        self._engine.run("(run-schedule (run picked))")
        return self._engine.step([GROW], phase.name, GROW)

    def _look(self, growing: Mapping[int, Candidates]) -> None:
        """Gives each growing rule the matches that its searches recorded."""
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

"""Admission: the rules of a run enter its program once all operators that they look for are there.

Most rules of a library never meet their operators in one graph; and each rule that egglog is given costs it time and memory, whether it matches or
not. So a rule that looks for what another one makes is not there before that was made, and what a growing rule would make not before one is picked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eqsat.candidates import Candidates
from eqsat.emit import emit, emit_apply, emit_search
from eqsat.engine import GROW, SEARCH, SETTLE, SIMPLIFY
from eqsat.finiteness import Finiteness
from eqsat.language.compile import Compiled
from eqsat.language.firing import Firing
from eqsat.language.syntax import Label
from eqsat.limits import Watch
from eqsat.phases import Phase
from eqsat.program import Program


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of a run. `least` is what a rule must promise to fire; `trial`: each rule runs once, and nothing is joined."""

    rules: Sequence[Compiled] = ()
    least: Label = Label.FINITE
    trial: bool = False
    groups: Mapping[str, str] = field(default_factory=dict[str, str])  # by rule; what is in none is in one together
    phases: Sequence[Phase] = (Phase(),)

    def group(self, number: int) -> str:
        """The group of a rule."""
        return self.groups.get(self.rules[number].rule.name, "")


class Admission:
    """The rules of a run over one program: those that entered it, and those that wait until all their operators are there."""

    def __init__(self, program: Program, ruleset: RuleSet, watch: Watch) -> None:
        self.firings: dict[int, Firing] = {}
        self.candidates: dict[int, Candidates] = {}  # of the rules that may grow the graph
        self.shrinks = False  # whether any rule entered that runs until nothing changes
        self._program = program
        self._ruleset = ruleset
        self._watch = watch
        self._finiteness = Finiteness(program.encoding)
        self._waiting = list(range(len(ruleset.rules)))
        self._seen = 0  # signatures, when rules were last admitted
        self._applied: set[int] = set()
        # Groups that all phases treat alike share their rulesets.
        kinds: dict[tuple[tuple[bool, bool], ...], int] = {}
        self._kinds: dict[str, int] = {}
        for number in self._waiting:
            group = ruleset.group(number)
            if group not in self._kinds:
                self._kinds[group] = kinds.setdefault(tuple((phase.has(group), phase.settles(group)) for phase in ruleset.phases), len(kinds))
        if not ruleset.trial:
            for kind in range(len(kinds)):
                for name in (SIMPLIFY, SETTLE, SEARCH):
                    program.ruleset(f"{name}_{kind}")

    def admit(self) -> bool:
        """Lets those rules in whose operators are there by now. Whether there were any."""
        seen = self._program.seen
        if len(seen) == self._seen:
            return False
        self._seen = len(seen)
        signatures = {self._program.encoding.terms.signatures[index] for index in seen}
        operators = {signature.operator.name for signature in signatures}
        # Names alone tell of most rules that they are not for this graph, and cost least to compare.
        entering = [
            number for number in self._waiting if (pattern := self._ruleset.rules[number].pattern).operators <= operators and pattern.signatures <= signatures
        ]
        for number in entering:
            self._enter(number)
        gone = set(entering)
        self._waiting = [number for number in self._waiting if number not in gone]
        return bool(entering)

    def apply(self, number: int) -> None:
        """Adds what a rule that may grow the graph makes, once something of it is picked."""
        if number not in self._applied:
            self._applied.add(number)
            emit_apply(self._program, self.firings[number], number, self.candidates[number].halves)

    def shrinking(self, phase: Phase) -> list[str]:
        """The rulesets that run until nothing changes in a phase."""
        groups = [group for group in self._kinds if phase.has(group)]
        settling = [group for group in groups if phase.settles(group)]
        return list(dict.fromkeys([*(f"{SIMPLIFY}_{self._kinds[group]}" for group in groups), *(f"{SETTLE}_{self._kinds[group]}" for group in settling)]))

    def searching(self, phase: Phase) -> list[str]:
        """The rulesets that search in a phase."""
        return list(dict.fromkeys(f"{SEARCH}_{kind}" for group, kind in self._kinds.items() if phase.has(group)))

    def growing(self, phase: Phase) -> dict[int, Candidates]:
        """The candidates of the rules that may grow the graph in a phase, by number."""
        return {number: one for number, one in self.candidates.items() if phase.has(self._ruleset.group(number))} if phase.rounds else {}

    def _enter(self, number: int) -> None:
        program, ruleset, watch = self._program, self._ruleset, self._watch
        group, encoding = ruleset.group(number), program.encoding
        firing = Firing(ruleset.rules[number], encoding.terms, encoding.derivation, ruleset.least, self._finiteness.special, ruleset.trial)
        self.firings[number] = firing
        made, kind = len(firing.compiled.construction.nodes), self._kinds[group]
        if ruleset.trial:
            emit(program, firing, number, watch.answering(firing), GROW, trial=True)
        elif firing.compiled.growth < 0 or (not firing.compiled.growth and any(phase.settles(group) for phase in ruleset.phases)):
            self.shrinks = True
            emit(program, firing, number, watch.answering(firing, made), f"{SIMPLIFY if firing.compiled.growth else SETTLE}_{kind}")
        else:
            one = self.candidates[number] = Candidates(firing)
            emit_search(program, firing, number, one.halves, watch.answering(one.note), f"{SEARCH}_{kind}")

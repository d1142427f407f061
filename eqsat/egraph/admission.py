"""Admission: a rule enters the program of a run once the e-graph has all that a match needs.

A graph lacks the operators of most rules of a library, yet each rule in egglog costs time and
memory. So a rule enters only when the e-graph has all operators of its left side, and, for each
node of the left side with another as its input, some node with that operator at this input. And
for each node of the left side, some term must have the attributes, constants and types that this
node asks for. Other rules may make these. The actions of a growing rule enter when one of its
matches is picked for the first time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import field
from functools import cached_property
from itertools import chain

from eqsat.egraph.candidates import Candidates
from eqsat.egraph.emit import emit, emit_apply, emit_search
from eqsat.egraph.engine import GROW, SEARCH, SETTLE, SIMPLIFY
from eqsat.egraph.finiteness import Finiteness
from eqsat.egraph.limits import Watch
from eqsat.egraph.phases import Phase
from eqsat.egraph.program import Program
from eqsat.frozen import frozen
from eqsat.language.alone import Alone
from eqsat.language.compile import Direction
from eqsat.language.firing import Fired, Firing
from eqsat.language.query import ANY, LISTED, Edge, Needs
from eqsat.language.syntax import Label
from eqsat.terms.terms import CONS


@frozen(slots=False)
class RuleSet:
    """The rules of a run, or of many runs: graphs share what is known of all rules together.

    A rule may fire only if its label promises at least `least`. With `trial` each rule runs once,
    and no classes are joined.
    """

    rules: Sequence[Direction] = ()
    least: Label = Label.FINITE
    trial: bool = False
    # Group by rule name. All rules without a group form one group.
    groups: Mapping[str, str] = field(default_factory=dict[str, str])
    phases: Sequence[Phase] = (Phase(),)

    def group(self, number: int) -> str:
        return self.groups.get(self.rules[number].name, "")

    @cached_property
    def kinds(self) -> Mapping[str, int]:
        """The kind of each group, in the order of the rules. Groups that all phases treat alike are
        of one kind.
        """
        kinds: dict[tuple[tuple[bool, bool], ...], int] = {}
        groups = dict.fromkeys(self.groups.get(rule.name, "") for rule in self.rules)
        return {group: kinds.setdefault(tuple((phase.has(group), phase.settles(group)) for phase in self.phases), len(kinds)) for group in groups}

    @cached_property
    def _by_operator(self) -> Mapping[str | None, list[tuple[int, Needs]]]:
        """The rules by one of the operators that they need: that which the fewest rules need. Rules
        that need none are under None.
        """
        all_needs = [rule.needs for rule in self.rules]
        counts = Counter(chain.from_iterable(needs.operators for needs in all_needs))
        found: dict[str | None, list[tuple[int, Needs]]] = {}
        for number, needs in enumerate(all_needs):
            rarest = min(needs.operators, key=lambda operator: (counts[operator], operator), default=None)
            found.setdefault(rarest, []).append((number, needs))
        return found

    def may_match(self, operators: Set[str], edges: Set[Edge]) -> list[int]:
        """Returns the rules that may match a graph with these operators and edges, in their order.

        Names rule out most rules, and those of operators that a graph lacks are not even looked at.
        """
        near = (self._by_operator.get(operator, ()) for operator in (None, *operators))
        return sorted(number for rules in near for number, needs in rules if needs.met(operators, edges))


class Admission:
    """Lets the rules of a run into one program, each once its needs are met."""

    def __init__(self, program: Program, ruleset: RuleSet, watch: Watch) -> None:
        self.firings: dict[int, Firing] = {}
        self.candidates: dict[int, Candidates] = {}  # of the growing rules
        self.shrinks = False  # whether any admitted rule runs until nothing changes
        self._program = program
        self._ruleset = ruleset
        self._watch = watch
        self._finiteness = Finiteness(program.encoding)
        self._fired = Fired()
        self._seen = (0, 0, 0)  # the number of signatures, terms and edges when rules were last admitted
        # By rule, the nodes that no term suits so far, with the number of terms that were asked.
        self._missing: dict[int, list[tuple[Alone, int]]] = {}
        self._applied: set[int] = set()
        self._kinds = ruleset.kinds  # groups of one kind share their rulesets

    def admit(self) -> bool:
        """Lets in the rules whose needs are met. Tells whether any rule entered."""
        program, signature_of = self._program, self._program.encoding.terms.signatures
        seen = len(program.seen), program.present.count, len(program.edges)
        if seen == self._seen:
            return False
        self._seen = seen
        signatures = {signature_of[index] for index in program.seen}
        operators = {signature.operator.name for signature in signatures}
        edges: set[Edge] = set()
        for node, position, operand in program.edges:
            reader, maker = LISTED if node == CONS else signature_of[node].operator.name, signature_of[operand].operator.name
            edges |= {(reader, position, maker), (reader, ANY, maker)}
        # Names come before signatures, for which a rule has to be read.
        near = [number for number in self._ruleset.may_match(operators, edges) if number not in self.firings]
        entering = [number for number in near if self._ruleset.rules[number].compiled.pattern.signatures <= signatures and self._suited(number)]
        for number in entering:
            self._enter(number)
        return bool(entering)

    def _suited(self, number: int) -> bool:
        """Tells whether some term suits each node of a rule by itself. Each term is asked once."""
        present, compiled = self._program.present, self._ruleset.rules[number].compiled
        missing = self._missing.get(number)
        if missing is None:
            # A trial tells the reasons why a rule does not fire, so it asks for the forms of terms alone.
            parts = map(Alone, compiled.pattern.nodes) if self._ruleset.trial else compiled.alone
            missing = [(one, 0) for one in parts]
        self._missing[number] = [(one, present.size(one)) for one, begin in missing if not present.has(one, compiled, begin)]
        return not self._missing[number]

    def apply(self, number: int) -> None:
        """Adds the actions of a growing rule when one of its matches is first picked."""
        if number not in self._applied:
            self._applied.add(number)
            emit_apply(self._program, self.firings[number], number, self.candidates[number].halves)

    def shrinking(self, phase: Phase) -> list[str]:
        """Returns the families of rulesets that a phase runs until nothing changes."""
        groups = [group for group in self._kinds if phase.has(group)]
        settling = [group for group in groups if phase.settles(group)]
        return list(dict.fromkeys([*(f"{SIMPLIFY}_{self._kinds[group]}" for group in groups), *(f"{SETTLE}_{self._kinds[group]}" for group in settling)]))

    def searching(self, phase: Phase) -> list[str]:
        """Returns the families of rulesets that a phase uses to search."""
        return list(dict.fromkeys(f"{SEARCH}_{kind}" for group, kind in self._kinds.items() if phase.has(group)))

    def growing(self, phase: Phase) -> dict[int, Candidates]:
        """Returns the candidates of a phase's growing rules, by the number of the rule."""
        return {number: one for number, one in self.candidates.items() if phase.has(self._ruleset.group(number))} if phase.rounds else {}

    def waiting(self) -> dict[str, int]:
        """Returns by rule the matches that were found and that no pick has taken."""
        found: Counter[str] = Counter()
        for number, one in self.candidates.items():
            found[self._ruleset.rules[number].name] += one.waiting
        return dict(sorted((+found).items()))

    def _enter(self, number: int) -> None:
        program, ruleset, watch = self._program, self._ruleset, self._watch
        group, encoding = ruleset.group(number), program.encoding
        compiled, special = ruleset.rules[number].compiled, self._finiteness.special
        firing = Firing(compiled, encoding.terms, encoding.derivation, ruleset.least, special, ruleset.trial, self._fired)
        self.firings[number] = firing
        made, kind = compiled.made, self._kinds[group]
        if ruleset.trial:
            emit(program, firing, number, watch.answering(firing, rests=False), GROW, trial=True)
        elif compiled.growth < 0 or (not compiled.growth and any(phase.settles(group) for phase in ruleset.phases)):
            self.shrinks = True
            emit(program, firing, number, watch.answering(firing, made), f"{SIMPLIFY if compiled.growth else SETTLE}_{kind}")
        elif any(phase.rounds for phase in ruleset.phases if phase.has(group)):
            one = self.candidates[number] = Candidates(firing)
            emit_search(program, firing, number, one.halves, watch.answering(one.note), f"{SEARCH}_{kind}")

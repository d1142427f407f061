"""Checking: rules come in, a verdict on each goes out, with the smallest counterexample where a rule is wrong.

Instances are drawn until enough of them fired, both sides of each are computed and judged. Promised: the same rules,
number and seed give the same verdicts, whatever the number of processes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import islice

from eqsat.checker.counterexample import Counterexample, counterexample, with_evidence
from eqsat.checker.instances import Instance, draw, from_test
from eqsat.checker.judge import judge
from eqsat.checker.processes import processes
from eqsat.checker.trial import try_rule
from eqsat.checker.verdict import Case, Outcome
from eqsat.language.compile import Compiled, compile_rule
from eqsat.language.errors import Problem
from eqsat.language.firing import promised
from eqsat.language.matching import Refusal
from eqsat.language.resolve import Resolved

FIRED = 300  # instances of each direction of a rule, by default
_THOROUGH = 16  # instances that are judged on values of all styles; each of those that follow has its share of them
_BATCH = 100  # instances that are tried in one e-graph, at most
_LEAST = 20  # and at least, where few more have to fire
_TRIES = 40  # times as many instances are drawn at most as are to fire
_REFUTED = 12  # counterexamples after which the smallest of them is good enough
FEW = "Few instances: "  # how a rule's documentation begins the sentence that says why fewer fire

OK, REFUTED, IDLE, FEWER, UNJUDGED = "ok", "refuted", "never fired", "fired too rarely", "not judged"


@dataclass
class Verdict:
    """What checking one rule, both directions of it, found."""

    rule: str
    file: str
    line: int
    label: str
    status: str = OK
    reason: str = ""
    drawn: int = 0
    fired: int = 0
    counterexample: Counterexample | None = None
    refusals: list[str] = field(default_factory=list[str])  # why instances did not fire, the most frequent reasons first

    @property
    def passed(self) -> bool:
        """Whether nothing was found against the rule."""
        return self.status == OK


def check_rule(resolved: Resolved, number: int, seed: int, enough: int = _REFUTED, thorough: int = _THOROUGH) -> Verdict:
    """The verdict on a rule after `number` instances of each of its directions fired, or `enough` of them were counterexamples.

    The first `thorough` of them are judged on values of all styles, each of the others on its share.
    """
    rule = resolved.rule
    verdict = Verdict(rule.name, rule.file, rule.place.line, rule.label.value)
    for compiled in compile_rule(resolved):
        direction = _Direction(turned(resolved) if compiled.reverse else resolved, compiled, number, seed, enough, thorough)
        direction.run()
        verdict.drawn += direction.drawn
        verdict.fired += direction.fired
        verdict.refusals += direction.reasons()
        status, reason = direction.status()
        if verdict.status == OK and status != OK:
            verdict.status, verdict.reason = status, reason
            verdict.counterexample = direction.smallest and with_evidence(direction.smallest, direction.resolved.rule)
    return verdict


def turned(resolved: Resolved) -> Resolved:
    """A rule for both directions with its sides exchanged."""
    rule = resolved.rule
    return replace(resolved, rule=replace(rule, left=rule.right, right=rule.left))


class _Direction:
    """One direction of a rule while it is checked."""

    def __init__(self, resolved: Resolved, compiled: Compiled, number: int, seed: int, enough: int, thorough: int) -> None:
        self.resolved = resolved
        self.compiled = compiled
        self.number = number
        self.seed = seed
        self.enough = enough
        self.thorough = thorough
        self.drawn = 0
        self.fired = 0
        self.judged = 0
        self.refuted = 0
        self.unjudged: Counter[str] = Counter()
        self.refusals: Counter[Refusal] = Counter()
        self.smallest: Counterexample | None = None
        self.idle_tests: list[int] = []
        self.illegal_test: str | None = None

    def run(self) -> None:
        if not self.compiled.reverse:
            self._tests()
        source = self._instances()
        while self.fired < self.number and self.refuted < self.enough and self.drawn < _TRIES * self.number:
            batch = list(islice(source, max(_LEAST, min(_BATCH, self.number - self.fired))))
            if not batch:
                return
            self._try(batch)

    def _instances(self) -> Iterator[Instance]:
        return draw(self.resolved, self.seed)

    def _tests(self) -> None:
        for index in range(len(self.resolved.rule.tests)):
            try:
                instance = from_test(self.resolved, index)
            except ValueError as error:
                self.illegal_test = str(error)
                return
            if not self._try([instance]):
                self.idle_tests.append(index)

    def _try(self, batch: Sequence[Instance]) -> int:
        """Tries instances; gives how many fired."""
        trials = try_rule(self.compiled, batch)
        self.drawn += len(batch)
        self.refusals.update(trials.refusals)
        fired = {trial.instance for trial in trials.fired}
        self.fired += len(fired)
        for number, trial in enumerate(trials.fired):
            if self.refuted == self.enough:
                break
            instance = batch[trial.instance]
            case = Case(instance.model, trial.right, instance.free, instance.domains)
            self.judged += 1
            share = None if self.judged <= self.thorough else self.judged
            found = judge(case, promised(self.resolved.rule, instance.bindings), self.seed * 1_000_003 + self.drawn + number, share)
            if found.outcome is Outcome.DIFFERENT:
                self.refuted += 1
                shown = counterexample(case, found, instance)
                if self.smallest is None or shown.size < self.smallest.size:
                    self.smallest = shown
            elif found.outcome in (Outcome.UNDECIDED, Outcome.INVALID):
                self.unjudged[found.reason] += 1
        return len(fired)

    def status(self) -> tuple[str, str]:
        rule = self.resolved.rule
        if self.refuted:
            assert self.smallest is not None
            return REFUTED, self.smallest.reason
        if self.illegal_test is not None:
            return IDLE, self.illegal_test
        if self.idle_tests:
            return IDLE, f"test line {self.idle_tests[0] + 1} does not fire: {self._why()}"
        if not self.fired:
            return IDLE, self._why()
        if sum(self.unjudged.values()) > self.fired // 2:
            return UNJUDGED, self.unjudged.most_common(1)[0][0]
        if self.fired < self.number and not any(line.startswith(FEW) for line in rule.documentation):
            return FEWER, f"{self.fired} of {self.drawn} instances fired; where there are no more, a comment says why: `# {FEW}...`"
        return OK, ""

    def _why(self) -> str:
        return next(iter(self.reasons()), "no instance of the left side was drawn that matches")

    def reasons(self) -> list[str]:
        """Why matches did not fire, the most frequent first."""
        rule = self.resolved.rule
        return [str(Problem(rule.file, refusal.place, rule.name, f"{refusal.reason} ({count} times)")) for refusal, count in self.refusals.most_common(3)]


def check(rules: Sequence[Resolved], number: int, seed: int, progress: Callable[[Verdict], None]) -> list[Verdict]:
    """The verdicts on rules, of which there is one at least, in their order; `progress` hears of each as it is found."""
    found: dict[int, Verdict] = {}
    # A runtime that crashes takes its process along, never the checker: what it was busy with is checked again alone.
    with processes(min(os.cpu_count() or 1, len(rules))) as submit:
        futures = {submit(check_rule, rule, number, seed): index for index, rule in enumerate(rules)}
        for future in as_completed(futures):
            try:
                found[futures[future]] = future.result()
            except BrokenProcessPool:
                continue
            progress(found[futures[future]])
    for index, rule in enumerate(rules):
        if index not in found:
            found[index] = _alone(rule, number, seed)
            progress(found[index])
    return [found[index] for index in range(len(rules))]


def _alone(resolved: Resolved, number: int, seed: int) -> Verdict:
    with processes(1) as submit:
        try:
            return submit(check_rule, resolved, number, seed).result()
        except BrokenProcessPool:
            rule = resolved.rule
            return Verdict(rule.name, rule.file, rule.place.line, rule.label.value, UNJUDGED, "a runtime crashed on an instance of it")

"""Checking: a verdict on each rule, with the smallest counterexample if the rule is wrong.

The checker draws instances until the rule fired on enough of them. It computes and compares both
sides of each. The same rules, number and seed give the same verdicts, whatever the number of
processes.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from eqsat.checker.drawing.instances import draw, from_test
from eqsat.checker.drawing.writing import Instance
from eqsat.checker.judging.counterexample import Counterexample, counterexample, with_evidence
from eqsat.checker.judging.rule_judge import judge
from eqsat.checker.judging.trial import try_rule
from eqsat.checker.judging.verdict import Case, Outcome
from eqsat.checker.processes import processes
from eqsat.checker.standing import Counts, Standing, note, share
from eqsat.language.compile import Compiled, compile_rule
from eqsat.language.firing import promised
from eqsat.language.matching import Refusal
from eqsat.language.problems import Problem
from eqsat.language.resolved import Resolved

FIRED = 300  # instances of each direction of a rule that have to fire, by default
# Instances that are judged on values of all styles. Each later one is judged on a share of them.
_THOROUGH = 16
# Most instances that are tried in one e-graph. Those of the same constants fire once there, and what
# fired says how the next ones should be drawn, so several e-graphs are better than a large one.
_BATCH = 100
_SMALL_BATCH = 20  # where one counterexample is enough, which most wrong rules have among so many
# Fewest instances that are tried at first, but no more than four times those that have to fire. Also
# the fewest instances of each member of a family that have to fire.
_LEAST = 20
_LEAST_NAMED = 0.1  # smallest part of the usual share of instances with named sizes, however few of them fire
_SPARE = 2  # instances that a later batch has for the case that fewer of it fire than of those before
_LEAST_THOROUGH = 2  # fewest instances of each member of a family that are judged on all styles
_TRIES = 40  # draws for each instance that has to fire, at most
_TOLD = 50  # instances that are judged between two reports of how many fired
_LOOK = 0.25  # seconds between two looks at the standing
_REFUTED = 12  # counterexamples after which the smallest of them is good enough
# The first words of the sentence in a rule's documentation that says why few instances fire.
FEW = "Few instances: "

OK, REFUTED, IDLE, FEWER, UNJUDGED = "ok", "refuted", "never fired", "fired too rarely", "not judged"


@dataclass
class Verdict:
    """The result of checking one rule in both directions, or all members of a family.

    The fields of a family are those of its first member that did not pass.
    """

    rule: str
    file: str
    line: int
    label: str
    status: str = OK
    reason: str = ""
    drawn: int = 0
    fired: int = 0
    counterexample: Counterexample | None = None
    # The reasons why instances did not fire, the most frequent first.
    refusals: list[str] = field(default_factory=list[str])
    members: int = 1  # of a family
    wrong: list[str] = field(default_factory=list[str])  # the members that did not pass

    @property
    def passed(self) -> bool:
        """Whether the checker found nothing against the rule."""
        return self.status == OK


def _nobody(what: object) -> None:
    """Hears how far a check is, and does nothing."""


def check_rule(
    resolved: Resolved, number: int, seed: int, enough: int = _REFUTED, thorough: int = _THOROUGH, progress: Callable[[int], None] = _nobody
) -> Verdict:
    """The verdict on a rule after `number` instances of each direction fired, or `enough`
    counterexamples were found.

    Calls `progress` with the instances that fired so far, now and then. The first `thorough`
    instances are judged on values of all styles, each later one on a share.
    """
    rule = resolved.rule
    verdict = Verdict(rule.name, rule.file, rule.place.line, rule.label.value)
    for compiled in compile_rule(resolved):
        side = turned(resolved) if compiled.reverse else resolved
        direction = _Direction(side, compiled, number, seed, enough, thorough, lambda fired, before=verdict.fired: progress(before + fired))
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


@dataclass
class _Rate:
    """How many instances of a kind were drawn, and how many of these fired."""

    drawn: int = 0
    fired: int = 0


class _Direction:
    """One direction of a rule while it is checked."""

    def __init__(self, resolved: Resolved, compiled: Compiled, number: int, seed: int, enough: int, thorough: int, progress: Callable[[int], None]) -> None:
        self.resolved = resolved
        self.compiled = compiled
        self.number = number
        self.seed = seed
        self.enough = enough
        self.thorough = thorough
        self.progress = progress
        self.judged = 0
        self.refuted = 0
        self.unjudged: Counter[str] = Counter()
        self.rates = (_Rate(), _Rate())  # of the instances whose sizes are numbers, and of those that have names
        self.refusals: Counter[Refusal] = Counter()
        self.smallest: Counterexample | None = None
        # Instances whose named sizes refused the rule, now with numbers. They need no draw of their own.
        self.numbered: list[Instance] = []
        self.idle_tests: dict[int, str] = {}  # the test lines that do not fire, each with the reason
        self.illegal_test: str | None = None

    @property
    def drawn(self) -> int:
        """The instances that were tried."""
        return sum(rate.drawn for rate in self.rates)

    @property
    def fired(self) -> int:
        """The instances on which the rule fired."""
        return sum(rate.fired for rate in self.rates)

    def run(self) -> None:
        self.progress(self.fired)
        tests = [] if self.compiled.reverse else self._tests()
        source = chain(tests, draw(self.resolved, self.seed, self._named))
        size = max(len(tests), min(_BATCH if self.enough > 1 else _SMALL_BATCH, max(min(_LEAST, 4 * self.number), self.number)))
        while self.fired < self.number and self.refuted < self.enough and self.drawn < _TRIES * self.number:
            batch, self.numbered = self.numbered[:size], self.numbered[size:]
            batch += islice(source, size - len(batch))
            if not batch:
                return
            first = not self.drawn
            fired = self._try(batch)
            if first:
                self._try_alone({index: test for index, test in enumerate(tests) if index not in fired})
            # An e-graph costs as much as some instances, so the next one should be the last.
            missing = _SPARE + math.ceil((self.number - self.fired) / max(self._rate(), 1 / _TRIES))
            size = min(_BATCH if self.enough > 1 else _SMALL_BATCH, missing)
            self.progress(self.fired)

    def _tests(self) -> list[Instance]:
        """The instances of the test lines, up to the first that has none."""
        found: list[Instance] = []
        for index in range(len(self.resolved.rule.tests)):
            try:
                found.append(from_test(self.resolved, index))
            except ValueError as error:
                self.illegal_test = str(error)
                break
        return found

    def _try_alone(self, tests: Mapping[int, Instance]) -> None:
        """Tries test lines that did not fire in an e-graph with others. Of instances whose right sides
        are the same constants, only the first one fires there.
        """
        known = self.refusals
        for index, test in tests.items():
            self.refusals = Counter()
            if not self._try([test]):
                self.idle_tests[index] = self._why()
            known += self.refusals
        self.refusals = known

    def _try(self, batch: Sequence[Instance]) -> set[int]:
        """Tries instances; returns the places of those that fired."""
        trials = try_rule(self.compiled, batch)
        self.refusals.update(trials.refusals)
        fired = {trial.instance for trial in trials.fired}
        for place, instance in enumerate(batch):
            tried = self.rates[instance.symbolic is not None]
            tried.drawn += 1
            tried.fired += place in fired
            if instance.symbolic is not None and place not in fired:
                self.numbered.append(replace(instance, symbolic=None, sizes={}))
        for number, trial in enumerate(trials.fired):
            if self.refuted == self.enough:
                break
            if number % _TOLD == _TOLD - 1:
                self.progress(self.fired - len(fired) + len({trial.instance for trial in trials.fired[:number]}))
            instance = batch[trial.instance]
            case = Case(instance.model, trial.right, instance.free, instance.domains, instance.types)
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
        return fired

    def _named(self) -> float:
        """How many of the next instances should have named sizes, relative to the usual share: as few as
        fire, compared with the others, since names that do not fit together refuse most rules. The first
        hundred have their usual share: a wrong rule may fire on few named sizes, and on nothing else that is wrong.
        """
        others, named = self.rates
        if self.drawn < _BATCH or not named.drawn or not others.fired:
            return 1.0
        return min(1.0, max(_LEAST_NAMED, named.fired * others.drawn / (named.drawn * others.fired)))

    def _rate(self) -> float:
        """The part of the next instances that should fire."""
        others, named = self.rates
        chosen = self._named() * named.drawn / self.drawn
        return (1 - chosen) * others.fired / max(others.drawn, 1) + chosen * named.fired / max(named.drawn, 1)

    def status(self) -> tuple[str, str]:
        rule = self.resolved.rule
        if self.refuted:
            assert self.smallest is not None
            return REFUTED, self.smallest.reason
        if self.illegal_test is not None:
            return IDLE, self.illegal_test
        if self.idle_tests:
            index, reason = next(iter(self.idle_tests.items()))
            return IDLE, f"test line {index + 1} does not fire: {reason}"
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
        """The reasons why matches did not fire, the most frequent first."""
        rule = self.resolved.rule
        return [str(Problem(rule.file, refusal.place, rule.name, f"{refusal.reason} ({count} times)")) for refusal, count in self.refusals.most_common(3)]


def check(
    rules: Sequence[Resolved], number: int, seed: int, progress: Callable[[int, Verdict], None], watch: Callable[[Standing], None] = _nobody
) -> list[Verdict]:
    """The verdicts on one or more rules, in their order. A family has one verdict.

    Calls `progress` with the place and the verdict of each rule or family as it is found, and `watch`
    a few times a second.
    """
    families: dict[tuple[str, str], list[int]] = {}
    for index, rule in enumerate(rules):
        families.setdefault((rule.rule.file, rule.rule.family), []).append(index)
    places = {family: place for place, family in enumerate(families)}
    family_of = {index: family for family, members in families.items() for index in members}
    jobs = [(index, rule, *_share(len(families[family_of[index]]), number), seed) for index, rule in enumerate(rules)]
    found: dict[int, Verdict] = {}
    verdicts: dict[tuple[str, str], Verdict] = {}
    counts = Counts(len(rules))

    def conclude(index: int, verdict: Verdict) -> None:
        found[index] = verdict
        family = family_of[index]
        if all(member in found for member in families[family]):
            verdicts[family] = _together([found[member] for member in families[family]], rules[index].rule.family)
            progress(places[family], verdicts[family])

    def look() -> None:
        failed = sum(not verdict.passed for verdict in verdicts.values())
        running = counts.begun({index: rule.rule.name for index, rule in enumerate(rules) if index not in found})
        watch(Standing(len(verdicts), len(families), failed, counts.total(), running))

    # A crashing runtime ends its process but never the checker: the rules in that process are
    # checked again, one at a time.
    with processes(min(os.cpu_count() or 1, len(rules)), share, counts.shared) as submit:
        futures = {submit(_check_member, *job): index for index, job in enumerate(jobs)}
        pending = set(futures)
        while pending:
            done, pending = wait(pending, _LOOK)
            for future in done:
                try:
                    verdict = future.result()
                except BrokenProcessPool:
                    continue
                conclude(futures[future], verdict)
            look()
    for index, job in enumerate(jobs):
        if index not in found:
            conclude(index, _alone(*job))
            look()
    return [verdicts[family] for family in families]


def _share(members: int, number: int) -> tuple[int, int]:
    """The share of each member of a family: how many instances have to fire, and how many are
    judged thoroughly.
    """
    return max(min(number, _LEAST), -(-number // members)), max(_LEAST_THOROUGH, -(-_THOROUGH // members))


def _check_member(index: int, resolved: Resolved, number: int, thorough: int, seed: int) -> Verdict:
    return check_rule(resolved, number, seed, thorough=thorough, progress=lambda fired: note(index, fired))


def _together(members: Sequence[Verdict], family: str) -> Verdict:
    """The verdict on a family, or on a single rule."""
    if len(members) == 1:
        return members[0]
    wrong = [verdict for verdict in members if not verdict.passed]
    first = (wrong or members)[0]
    return replace(
        first,
        rule=family,
        reason=f"{first.rule}: {first.reason}" if wrong else "",
        drawn=sum(verdict.drawn for verdict in members),
        fired=sum(verdict.fired for verdict in members),
        members=len(members),
        wrong=[verdict.rule for verdict in wrong],
    )


def _alone(index: int, resolved: Resolved, number: int, thorough: int, seed: int) -> Verdict:
    with processes(1) as submit:
        try:
            return submit(_check_member, index, resolved, number, thorough, seed).result()
        except BrokenProcessPool:
            rule = resolved.rule
            return Verdict(rule.name, rule.file, rule.place.line, rule.label.value, UNJUDGED, "a runtime crashed on an instance of it")

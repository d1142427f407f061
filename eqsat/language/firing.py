"""Firing: the columns of a structural match come in; those of the right side go out, or why the rule does not fire.

A right side that ONNX would reject does not fire; one that is legal but can not be of the left's type is a wrong rule,
which is remembered and never joined. The same columns always fire the same, so every answer is remembered.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from eqsat.derive import Derivation
from eqsat.facts import INTEGERS, Fact
from eqsat.language.building import Building, Wrong
from eqsat.language.compile import Compiled
from eqsat.language.expressions import Unevaluable, evaluate
from eqsat.language.matching import Environment, Refusal, match
from eqsat.language.syntax import Label, Rule
from eqsat.language.values import Value
from eqsat.terms import Knowledge, Terms, literal_of


class Firing:
    """One direction of a rule in one run; all columns are handles of the run's terms."""

    def __init__(
        self,
        compiled: Compiled,
        terms: Terms,
        derivation: Derivation,
        least: Label = Label.FINITE,
        special: Callable[[Fact], bool] = lambda fact: False,
        trial: bool = False,
    ) -> None:
        """`least` is what the rule must promise to fire; `special` tells whether a value holds a NaN or an infinity, as far as it is known."""
        self.compiled = compiled
        self.refusals: Counter[Refusal] = Counter()
        self.wrong: str | None = None  # why the rule is wrong, once it was seen to be
        self.seconds = 0.0  # that deciding took
        self._terms = terms
        self._derivation = derivation
        # In trial sides of two types are of interest: nothing is joined.
        self._joins = not trial
        self._roots = [] if trial else [compiled.pattern.facts[root] for root in compiled.pattern.roots.values()]
        self._least = least
        self._special = special
        self._known: dict[tuple[int, ...], int] = {}
        self._columns: list[tuple[int, ...]] = []

    def __call__(self, *handles: int) -> int:
        """The number of the firing on these columns, or -1 where the rule does not fire."""
        number = self._known.get(handles)
        if number is None:
            clock = time.perf_counter()
            found = self._fire(handles)
            self.seconds += time.perf_counter() - clock
            number = -1 if isinstance(found, Refusal) else len(self._columns)
            if isinstance(found, Refusal):
                self.refusals[found] += 1
            else:
                self._columns.append(found)
            self._known[handles] = number
        return number

    def column(self, number: int, index: int) -> int:
        """One column of the right side of a firing."""
        return self._columns[number][index]

    def refusal(self, handles: tuple[int, ...]) -> Refusal | None:
        """Why the rule does not fire on these columns; None where it does."""
        found = self._fire(handles)
        return found if isinstance(found, Refusal) else None

    def _fire(self, handles: tuple[int, ...]) -> tuple[int, ...] | Refusal:
        compiled = self.compiled
        if self._roots and all(self._folds(self._terms.facts.get(handles[root])) for root in self._roots):
            return Refusal(compiled.rule.place, "what is constant is folded")
        environment = match(compiled.pattern.steps, self._terms, handles)
        if isinstance(environment, Refusal):
            return environment
        building = Building(compiled, self._terms, self._derivation, handles, environment, self._joins)
        try:
            columns = building.build()
        except Unevaluable as error:
            return Refusal(error.place, error.reason)
        except Wrong as error:
            self.wrong = str(error)
            return Refusal(compiled.rule.place, f"the right side is of another type than the left: {error}")
        reason = self._objection(building.dtypes, self._facts(handles), environment)
        return columns if reason is None else Refusal(compiled.rule.place, reason)

    def _objection(self, made: set[int], facts: list[Fact], environment: Environment) -> str | None:
        """Why the rule promises too little of these values; None where it may fire."""
        # Integers wrap and are finite: of them every rule keeps the bits.
        integers = made.union(fact.dtype for fact in facts) <= INTEGERS
        label = Label.EXACT if integers else promised(self.compiled.rule, environment)
        if not label.covers(self._least):
            return f"a rule that is {label} here, where {self._least} ones are asked for"
        if label is Label.FINITE and any(map(self._special, facts)):
            return "a rule of finite numbers, where a constant holds a NaN or an infinity"
        return None

    def _folds(self, fact: Knowledge) -> bool:
        """Whether other forms of a value would only make the graph larger: it is constant, which folds, or even a literal already."""
        return isinstance(fact, Fact) and ((fact.const and self.compiled.growth >= 0) or ((literal := literal_of(fact)) is not None and literal.concrete))

    def _facts(self, handles: tuple[int, ...]) -> list[Fact]:
        facts = [self._terms.facts.get(handles[source]) for source in self.compiled.pattern.tensors]
        return [fact for fact in facts if isinstance(fact, Fact)]


def promised(rule: Rule, environment: Mapping[str, Value | None]) -> Label:
    """What a rule promises of one match: its label, or more where `exact if` holds of the names there."""
    try:
        return Label.EXACT if rule.exact_if is not None and evaluate(rule.exact_if, environment) is True else rule.label
    except Unevaluable:
        return rule.label

"""Firing: the columns of a right side for the columns of a structural match, or the reason why the
rule does not fire.

A rule whose right side ONNX would reject does not fire. A right side that is legal but can not have
the left's type proves the rule wrong: the firing keeps the reason and never joins the sides. The
same columns always give the same answer, so every answer is kept.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from eqsat.facts.fact import INTEGERS, Fact
from eqsat.language.building import Building, Columns, Wrong
from eqsat.language.compile import Compiled
from eqsat.language.expressions import Unevaluable, evaluate
from eqsat.language.matching import Environment, Refusal, match
from eqsat.language.query import MappedAtom, MatchNumber
from eqsat.language.syntax import Expression, Label, Number, Rule
from eqsat.language.values import Value
from eqsat.terms.derivation import Derivation
from eqsat.terms.terms import Knowledge, Terms, literal_of


class Fired:
    """The right sides of a run's firings, each under a number of its own, whatever the rule."""

    def __init__(self) -> None:
        self._columns: list[Columns] = []

    def add(self, columns: Columns) -> int:
        """The number of a new firing."""
        self._columns.append(columns)
        return len(self._columns) - 1

    def column(self, number: int, index: int) -> int:
        """One column of the right side of a firing."""
        return self._columns[number].own[index]

    def item(self, number: int, listed: int, position: int, index: int) -> int:
        """One column of an item of a list that a firing makes. `listed` is the number of the list
        on the right side.
        """
        return self._columns[number].lists[listed][position][index]


class Firing:
    """Fires one direction of a rule in one run. All columns are handles of the run's terms."""

    def __init__(
        self,
        compiled: Compiled,
        terms: Terms,
        derivation: Derivation,
        least: Label = Label.FINITE,
        special: Callable[[Fact], bool] = lambda fact: False,
        trial: bool = False,
        fired: Fired | None = None,
    ) -> None:
        """The rule fires only if it promises at least `least`. `special` tells, by a value's fact,
        whether the value is known to hold a NaN or an infinity. Rules of one run share `fired`.
        """
        self.compiled = compiled
        self.fired = Fired() if fired is None else fired
        self.refusals: Counter[Refusal] = Counter()
        self.wrong: str | None = None  # the reason why the rule is wrong, once that is found
        self.seconds = 0.0  # spent on decisions
        self._terms = terms
        self._derivation = derivation
        # A trial looks for sides of different types, so it joins nothing.
        self._joins = not trial
        self._roots = [] if trial else [compiled.pattern.facts[root] for root in compiled.pattern.roots.values()]
        self._least = least
        self._special = special
        # A rule that writes an infinity on its left side promises its equation for that infinity.
        infinite = {step.source for step in compiled.pattern.steps if isinstance(step, MatchNumber) and _is_infinite(step.value)}
        self._unnamed = [source for source in compiled.pattern.tensors if source not in infinite]
        self._known: dict[tuple[int, ...], int] = {}

    def __call__(self, *handles: int) -> int:
        """The number of the firing on these columns, or -1 if the rule does not fire."""
        number = self._known.get(handles)
        if number is None:
            clock = time.perf_counter()
            found = self._fire(handles)
            self.seconds += time.perf_counter() - clock
            if isinstance(found, Refusal):
                self.refusals[found] += 1
                number = -1
            else:
                number = self.fired.add(found)
            self._known[handles] = number
        return number

    def check(self, atom: MappedAtom) -> Callable[..., int]:
        """A function of sources: 0 if the left side admits an item with them in a list, or -1."""
        known: dict[tuple[int, ...], int] = {}

        def admits(*handles: int) -> int:
            if handles not in known:
                known[handles] = -1 if isinstance(match(atom.steps, self._terms, handles), Refusal) else 0
            return known[handles]

        return admits

    def refusal(self, handles: tuple[int, ...]) -> Refusal | None:
        """The reason why the rule does not fire on these columns; None if it fires."""
        found = self._fire(handles)
        return found if isinstance(found, Refusal) else None

    def _fire(self, handles: tuple[int, ...]) -> Columns | Refusal:
        compiled = self.compiled
        if self._roots and all(keeps_its_form(compiled, self._terms.facts.get(handles[root])) for root in self._roots):
            return Refusal(compiled.rule.place, "constants are folded, so they need no other form")
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
        reason = self._objection(building.dtypes, handles, environment)
        return columns if reason is None else Refusal(compiled.rule.place, reason)

    def _objection(self, made: set[int], handles: tuple[int, ...], environment: Environment) -> str | None:
        """The reason why the rule promises too little for these values; None if it may fire."""
        facts = self._facts(handles, self.compiled.pattern.tensors)
        # Integers are finite and wrap, so every rule keeps their bits.
        integers = made.union(fact.dtype for fact in facts) <= INTEGERS
        label = Label.EXACT if integers else promised(self.compiled.rule, environment)
        if not label.covers(self._least):
            return f"a rule that is {label} here, where {self._least} ones are asked for"
        if label is Label.FINITE and any(map(self._special, self._facts(handles, self._unnamed))):
            return "a rule of finite numbers, where a constant holds a NaN or an infinity"
        return None

    def _facts(self, handles: tuple[int, ...], sources: Iterable[int]) -> list[Fact]:
        found = [handles[source] for source in sources]
        facts = [self._terms.facts.get(item) for handle in found for item in (handle, *self._terms.chain(handle))]
        return [fact for fact in facts if isinstance(fact, Fact)]


def keeps_its_form(compiled: Compiled, fact: Knowledge) -> bool:
    """Whether a value needs no other form: it is a literal, or it is a constant, which folds, and the
    rule does not shrink the graph. Whatever else becomes known of the value, this stays true.
    """
    return isinstance(fact, Fact) and ((fact.const and compiled.growth >= 0) or ((literal := literal_of(fact)) is not None and literal.concrete))


def _is_infinite(value: Expression) -> bool:
    return isinstance(value, Number) and math.isinf(value.value)


def promised(rule: Rule, environment: Mapping[str, Value | None]) -> Label:
    """The promise of a rule for one match: its label, or exactness if the condition of `exact if`
    holds.
    """
    try:
        return Label.EXACT if rule.exact_if is not None and evaluate(rule.exact_if, environment) is True else rule.label
    except Unevaluable:
        return rule.label

"""Wrong rules by machine: each rule of the library with one change.

The input is the library. The output is mutants, always the same in the same order, each legal as a
rule; most are wrong. `python -m tests.rules.mutants` checks some of them and prints those that
pass. Then either the library's rule is less general than it could be, or the checker misses the
change. With `--write` it prints the refuted ones instead, as a rule file that tells each change and
its effect.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from eqsat.checker.check import OK, REFUTED, Verdict, check_rule
from eqsat.families import members
from eqsat.language import syntax
from eqsat.language.library import load, whole_library
from eqsat.language.printer import expression, show
from eqsat.language.problems import RuleErrors
from eqsat.language.resolved import Resolved
from eqsat.language.syntax import Definition, Guard, Judgement, Label, Number, Rule, Term

KINDS = ("attribute", "guard", "swap", "shift", "dtype", "label")
DTYPE_WORDS = ("floating(", "integral(", "signed(", "bits(", "dtype(", "lossless(", "highest(", "lowest(")
FIRED = 60


@dataclass(frozen=True)
class Mutant:
    kind: str
    of: str
    change: str
    rule: Rule

    @property
    def text(self) -> str:
        """Returns the rule as text, with a name of its own."""
        return show(replace(self.rule, documentation=(f"Wrong: {self.change}.",), operators=()))

    @property
    def resolved(self) -> Resolved:
        """Returns the rule, read. Raises `RuleErrors` if it is illegal."""
        (found,) = load([self.text + "\n"]).rules
        return found


def mutants(resolved: Resolved) -> Iterator[Mutant]:
    """Yields all mutants of one rule, illegal ones included."""
    rule = resolved.rule
    counts: dict[str, int] = dict.fromkeys(KINDS, 0)
    for kind, change, changed in (*_conditions(rule), *_right(rule), *_labels(rule)):
        counts[kind] += 1
        yield Mutant(kind, rule.name, change, replace(changed, name=f"{'-'.join([rule.family, *rule.operators])}-{kind}{counts[kind]}"))


def originals() -> list[Resolved]:
    """Returns the rules of the library; of a family, the first member."""
    first: dict[str, Resolved] = {}
    for resolved in whole_library().rules:
        first.setdefault(resolved.rule.family, resolved)
    return list(first.values())


def _conditions(rule: Rule) -> Iterator[tuple[str, str, Rule]]:
    for place, condition in enumerate(rule.conditions):
        without = replace(rule, conditions=(*rule.conditions[:place], *rule.conditions[place + 1 :]))
        if isinstance(condition, Guard):
            text = expression(condition.condition)
            yield "dtype" if any(word in text for word in DTYPE_WORDS) else "guard", f"{rule.name} without the condition {text}", without
        elif isinstance(condition, Judgement):
            if condition.type.dims is not None:
                loose = replace(condition, type=replace(condition.type, dtype="_"))
                shapeless = replace(condition, type=replace(condition.type, dims=None))
                changes = (("dtype", "any data type", loose), ("guard", "any shape", shapeless))
                for kind, said, other in changes[condition.type.dtype == "_" :]:
                    yield (
                        kind,
                        f"{rule.name} with {said} of {condition.name}",
                        replace(rule, conditions=(*rule.conditions[:place], other, *rule.conditions[place + 1 :])),
                    )
            yield "dtype", f"{rule.name} without the type of {condition.name}", without


def _right(rule: Rule) -> Iterator[tuple[str, str, Rule]]:
    for kind, change, right in _changes(rule.right):
        yield kind, f"{rule.name} with {change}", replace(rule, right=right, both=False)
    for place, condition in enumerate(rule.conditions):
        if isinstance(condition, Definition):
            for kind, change, value in _changes(condition.value):
                other = replace(condition, value=value)
                yield kind, f"{rule.name} with {change}", replace(rule, conditions=(*rule.conditions[:place], other, *rule.conditions[place + 1 :]), both=False)


def _labels(rule: Rule) -> Iterator[tuple[str, str, Rule]]:
    stronger = [label for label in Label if label.covers(rule.label) and label is not rule.label]
    for label in stronger[-1:]:
        yield "label", f"{rule.name} called {label}", replace(rule, label=label, exact_if=None)


def _changes(part: Any) -> Iterator[tuple[str, str, Any]]:
    """Yields the possible changes of a part of the tree.

    A change is its kind, its description, and the changed part.
    """
    match part:
        case Term():
            for place, attribute in enumerate(part.attributes):
                fewer = (*part.attributes[:place], *part.attributes[place + 1 :])
                yield "attribute", f"{attribute.name} of {part.operator} left out", replace(part, attributes=fewer)
            if part.carried is not None:
                yield "attribute", f"the other attributes of {part.operator} left out", replace(part, carried=None)
            if len(part.inputs) > 1 and part.operator not in members("commutative") and not isinstance(part.inputs[1], syntax.Spread | syntax.Mapped):
                yield "swap", f"two inputs of {part.operator} exchanged", replace(part, inputs=(part.inputs[1], part.inputs[0], *part.inputs[2:]))
        case Number(value) if isinstance(value, int):
            yield "shift", f"{value + 1} for {value}", Number(value + 1, str(value + 1), part.place)
        case syntax.Binary("-", left, right):
            yield "swap", f"{expression(right)} and {expression(left)} exchanged", replace(part, left=right, right=left)
        case syntax.Items(items) if len(items) == 2 and items[0] != items[1]:
            yield "swap", f"{expression(part)} turned round", replace(part, items=(items[1], items[0]))
        case _:
            pass
    if isinstance(part, tuple):
        for place, item in enumerate(part):
            for kind, change, other in _changes(item):
                yield kind, change, (*part[:place], other, *part[place + 1 :])
    elif is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            inner = getattr(part, field.name)
            if field.name != "place" and (isinstance(inner, tuple) or is_dataclass(inner)):
                for kind, change, other in _changes(inner):
                    yield kind, change, replace(part, **{field.name: other})


def legal(every: int, offset: int, kinds: tuple[str, ...]) -> Iterator[Mutant]:
    """Yields each `every`th legal mutant of the library of these kinds."""
    number = 0
    for resolved in originals():
        for mutant in mutants(resolved):
            if mutant.kind in kinds:
                number += 1
                if number % every == offset:
                    try:
                        _ = mutant.resolved
                    except RuleErrors:
                        continue
                    yield mutant


def checked(mutant: Mutant, seed: int) -> Verdict:
    """Returns the verdict on a mutant."""
    return check_rule(mutant.resolved, FIRED, seed, enough=1)


def main() -> None:
    """Checks mutants as the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=40, help="one of so many mutants is checked")
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--write", action="store_true", help="print those that are refuted as a rule file")
    options = parser.parse_args()
    counts: dict[str, int] = {}
    for mutant in legal(options.every, options.offset, tuple(options.kind or KINDS)):
        verdict = checked(mutant, options.seed)
        counts[verdict.status] = counts.get(verdict.status, 0) + 1
        if options.write and verdict.status == REFUTED:
            print(f"{mutant.text}\n# {verdict.reason.splitlines()[0]}\n", flush=True)
        elif not options.write and verdict.status == OK:
            print(f"{mutant.text}\n", flush=True)
    print("# " + ", ".join(f"{number} {status}" for status, number in sorted(counts.items())))


if __name__ == "__main__":
    main()

"""Resolving: the meaning of each name in each rule of a parsed file, and the values that a rule
replaces.

Operators, attributes, inputs and outputs are checked against ONNX's schemas, and expressions
against the functions of the language. A resolved rule has no error that its text alone can show;
otherwise `RuleErrors` holds all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from eqsat.language import syntax
from eqsat.language.expansion import definitions_of, expand
from eqsat.language.given import check_tests
from eqsat.language.left_names import LeftReader
from eqsat.language.naming import Names, with_article
from eqsat.language.parse import read
from eqsat.language.printer import expression as shown
from eqsat.language.problems import Problem, Report, RuleErrors
from eqsat.language.resolved import Resolved
from eqsat.language.results import is_family
from eqsat.language.right_names import RightReader
from eqsat.language.scope import names as mentioned
from eqsat.language.sorting import Sorter
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Expression
from eqsat.traits import PARAMETERS

_PART_LIMIT = 100  # lines and conditions; later stages may take quadratic time in them
_TENSORS = (Sort.TENSOR, Sort.TENSORS)


def load(text: str, file: str) -> list[Resolved]:
    """The rules of a file, parsed and resolved. A syntax error in one rule hides no errors in
    others.
    """
    return resolve(*read(text, file))


def resolve(file: syntax.RuleFile, problems: Iterable[Problem] = ()) -> list[Resolved]:
    """The rules of a file in its order, with families as their members. Raises `RuleErrors` with
    all problems, the earlier `problems` included.
    """
    problems = list(problems)
    definitions = definitions_of(file, whole=not problems)
    problems += [*definitions.problems, *duplicates([file])]
    resolved: list[Resolved] = []
    for written in file.rules:
        report = Report(written)
        members = expand(written, definitions, report)
        problems += report.problems
        found: list[list[Problem]] = []
        for rule in members:
            report = Report(rule)
            sorts, roots = _Resolution(rule, report).result()
            resolved.append(Resolved(rule, sorts, roots))
            found.append(report.problems)
        problems += _of_all(written, found)
    if problems:
        raise RuleErrors(problems)
    return resolved


def _of_all(written: syntax.Rule, found: list[list[Problem]]) -> list[Problem]:
    """The problems to report about a rule as written, from those of its members. A problem that all
    members share counts once, as the family's own. Of the others, the first at each place counts.
    """
    if not is_family(written):
        return [problem for problems in found for problem in problems]
    alike: dict[tuple[syntax.Place, str], list[Problem]] = {}
    for problems in found:
        for problem in problems:
            alike.setdefault((problem.place, problem.message), []).append(problem)
    kept: dict[syntax.Place, Problem] = {}
    for (place, _), problems in alike.items():
        kept.setdefault(place, replace(problems[0], rule=written.name) if len(problems) == len(found) else problems[0])
    return list(kept.values())


def duplicates(files: Iterable[syntax.RuleFile], before: Callable[[str], syntax.Rule | None] = lambda name: None) -> list[Problem]:
    """A problem for each rule with the name of an earlier one, in any of the files or among the
    rules that `before` finds.
    """
    first: dict[str, syntax.Rule] = {}
    problems: list[Problem] = []
    for file in files:
        for rule in file.rules:
            other = before(rule.name) or first.setdefault(rule.name, rule)
            if other is not rule:
                where = f"line {other.place.line}" if other.file == rule.file else f"{other.file}:{other.place.line}"
                report = Report(rule)
                report.add(rule.place, f"another rule has this name, at {where}")
                problems += report.problems
    return problems


class _Resolution:
    """The resolution of one rule."""

    def __init__(self, rule: syntax.Rule, report: Report) -> None:
        self.rule = rule
        self.report = report
        self.names = Names(report)
        self.reader = LeftReader(self.names)
        self.left = self.reader.left
        self.sorter = Sorter(self.names)
        self.right = RightReader(self.left, self.sorter)
        self.measured: set[str] = set()  # names that typing judgements bind

    def result(self) -> tuple[dict[str, Sort], tuple[str, ...]]:
        """The sorts of the names, and the roots. They are meaningful only if the report stays
        empty.
        """
        rule = self.rule
        for part, what in ((rule.left, "lines on a side"), (rule.right, "lines on a side"), (rule.conditions, "conditions"), (rule.tests, "test lines")):
            if len(part) > _PART_LIMIT:
                self.report.add(part[_PART_LIMIT].place, f"a rule has at most {_PART_LIMIT} {what}")
                return {}, ()
        self.reader.side(rule.left)
        bound, roots = set(self.names.sorts), tuple[str, ...]()
        if not bound and self.left.complete:
            self.report.add(rule.left[0].place, "the left side binds nothing")
        for condition in rule.conditions:
            if isinstance(condition, syntax.Judgement):
                self.measured.update(self.reader.judge(condition))
        self._define()
        self.reader.compare(self.sorter)
        self._conditions()
        if not rule.both or self._both_ways():
            self.right.side(rule.right)
            roots = self._roots()
            if self.left.complete and self.right.complete:
                if rule.both:
                    self._reversed(bound - self.left.targets.keys() - self.measured)
                if roots:
                    self._unused()
        if self.left.complete:
            check_tests(rule.tests, self.left, self.names, self.measured)
        return {name: sort for name, sort in self.names.sorts.items() if sort is not None}, roots

    def _define(self) -> None:
        """Declares the definitions of `where`, each after those it uses."""
        definitions = [condition for condition in self.rule.conditions if isinstance(condition, syntax.Definition)]
        makers = {target: index for index, definition in enumerate(definitions) for target in definition.targets}
        needs = {index: {makers[name] for name in mentioned(definition.value) if name in makers} for index, definition in enumerate(definitions)}
        try:
            order = list(TopologicalSorter(needs).static_order())
        except CycleError as error:
            order = list(needs)
            loop: list[int] = error.args[1]
            place = min((definitions[index].place for index in loop), key=lambda place: (place.line, place.column))
            self.report.add(place, "this is made of itself")
            self.right.complete = False
            for index in loop:
                for target in definitions[index].targets:
                    self.names.blur(target)
        for definition in definitions:
            if not set(definition.targets) - {"_"}:
                self.report.add(definition.place, "this line names nothing")
        for index in order:
            definition = definitions[index]
            sort = self._defined(definition)
            for target in definition.targets:
                if target != "_":
                    self.names.declare(target, sort, definition.place)
                    self.names.use(target, definition, definition.place)
                    if sort is Sort.TENSOR:
                        self.names.made.add(target)

    def _defined(self, definition: syntax.Definition) -> Sort | None:
        value = definition.value
        alias = isinstance(value, syntax.Name) and self.names.sorts.get(value.name) in _TENSORS
        if alias or isinstance(value, syntax.Term | syntax.Constant):
            self.right.made(definition.targets, value, definition.place)
            return Sort.TENSOR
        if len(definition.targets) > 1:
            self.report.add(definition.place, "only an operator has several outputs")
        sort = self.sorter.sort(value)
        if sort in _TENSORS:
            self.report.add(value.place, "a tensor is made by an operator")
            return None
        return sort

    def _conditions(self) -> None:
        for condition in self.rule.conditions:
            match condition:
                case syntax.Judgement(name, type):
                    self._matched_tensor(name, condition)
                    if type.dims is None and type.dtype == "_":
                        self.report.add(condition.place, "this judgement says nothing; leave it out")
                case syntax.Const(name):
                    self._matched_tensor(name, condition)
                case syntax.Guard(value):
                    self.sorter.expect(value, Sort.BOOLEAN)
                case syntax.Definition():
                    pass
        if self.rule.exact_if is not None:
            if self.rule.label is syntax.Label.EXACT:
                self.report.add(self.rule.exact_if.place, "an exact rule is exact always")
            self.sorter.expect(self.rule.exact_if, Sort.BOOLEAN)

    def _matched_tensor(self, name: str, condition: syntax.Judgement | syntax.Const) -> None:
        self.names.use(name, condition, condition.place)
        if name not in self.names.sorts:
            self.names.unbound(name, condition.place)
        elif name in self.names.made:
            self.report.add(condition.place, f"{name} is made by the rule, and nothing is known of it before")
        elif (sort := self.names.sorts[name]) not in (*_TENSORS, None):
            self.report.add(condition.place, f"{name} is {with_article(sort)} where a tensor is expected")

    def _roots(self) -> tuple[str, ...]:
        left, right = self.rule.left, self.rule.right
        lone = [[line for line in lines if not line.targets] for lines in (left, right)]
        for lines in lone:
            for line in lines[1:]:
                self.report.add(line.place, "a side has one lone expression at most; write `name = ...`")
        if bool(lone[0]) != bool(lone[1]):
            side, other, line = ("left", "right", lone[0][0]) if lone[0] else ("right", "left", lone[1][0])
            self.report.add(line.place, f"the {side} side has a lone expression and the {other} side none, so it is not clear what equals it")
            return ()
        defined = {target for line in right for target in line.targets} - {"_"}
        roots = tuple(name for line in left for name in (line.targets or ("",)) if not name or name in defined)
        if not roots and not lone[1]:
            self.report.add(self.rule.place, "no name is defined on both sides, so nothing is replaced")
        return roots

    def _tensor_definitions(self) -> dict[tuple[str, ...], Expression]:
        definitions = [condition for condition in self.rule.conditions if isinstance(condition, syntax.Definition)]
        return {condition.targets: condition.value for condition in definitions if not self.names.made.isdisjoint(condition.targets)}

    def _both_ways(self) -> bool:
        """Whether each part of both sides of a `<=>` can be both matched and made."""
        definitions = self._tensor_definitions()
        values = [line.value for line in (*self.rule.left, *self.rule.right)]
        one_way = [part for value in (*values, *definitions.values()) for part in _one_way(value)]
        for place, text in one_way:
            self.report.add(place, f"{text} can not stand in a `<=>`, both of whose sides are matched and made")
        for targets, value in definitions.items():
            if len(targets) > 1:
                self.report.add(value.place, "in a `<=>` this is a part of the right side; write it there")
        return not one_way

    def _reversed(self, free: set[str]) -> None:
        """Checks the right side of a `<=>` as a pattern. `free` are names that only the left side
        binds.
        """
        definitions = [syntax.Line(targets, value, value.place) for targets, value in self._tensor_definitions().items()]
        meanings = {line.targets[0]: line.value for line in definitions}
        lines = [replace(line, value=_meaning(line.value, meanings)) for line in (*self.rule.right, *definitions)]
        reader = LeftReader(Names(self.report))
        reader.side(tuple(lines))
        if reader.left.complete:
            for name in sorted(free - reader.names.sorts.keys()):
                self.report.add(self.names.uses(name)[0], f"the sides of a `<=>` bind the same names; the right side does not bind {name}")

    def _unused(self) -> None:
        made = {target for part in (*self.rule.right, *self.rule.conditions) if isinstance(part, syntax.Line | syntax.Definition) for target in part.targets}
        for name, sort in self.names.sorts.items():
            if sort is None or name in self.left.optional.keys() - self.names.alone.keys():
                continue
            first, *more = self.names.uses(name)
            if more:
                continue
            if name in made:
                self.report.add(first, f"{name} is defined and never used")
            elif sort is Sort.ATTRIBUTES:
                self.report.add(first, f"`..{name}` is used once; write `.._` if any attributes will do")
            elif sort is not Sort.DTYPE:
                self.report.add(first, f"{name} is used once; write `_` if any value will do")
            elif any(isinstance(condition, syntax.Judgement) and condition.type == syntax.Type(name, None) for condition in self.rule.conditions):
                self.report.add(first, f"{name} is used once, so this judgement says nothing; leave it out")
            else:
                self.report.add(first, f"{name} is used once; write `_` if any data type will do")


def _meaning(value: Expression, meanings: Mapping[str, Expression]) -> Expression:
    """The expression behind a line that only renames a tensor."""
    while isinstance(value, syntax.Name) and value.name in meanings:
        value = meanings[value.name]
    return value


def _one_way(value: Expression | None) -> Iterator[tuple[syntax.Place, str]]:
    """The parts of a side that can be matched but not made, or made but not matched."""
    match value:
        case syntax.Term():
            if value.carried == "_":
                yield value.place, "`.._`"
            for attribute in value.attributes:
                yield from _one_way(attribute.value)
            for position, item in enumerate(value.inputs):
                if isinstance(item, syntax.Number) and position not in PARAMETERS.get(value.operator, {}):
                    yield item.place, f"`{shown(item)}`"
                else:
                    yield from _one_way(item)
        case syntax.Wildcard() | syntax.Near() | syntax.Maybe() | syntax.Constant():
            yield value.place, f"`{shown(value)}`"
        case syntax.Spread(item) | syntax.Mapped(item):
            yield from _one_way(item)
        case syntax.Items(items):
            for item in items:
                yield from _one_way(item)
        case _:
            pass

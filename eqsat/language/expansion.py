"""Expansion: the plain rules that a rule as written stands for.

The body of a `def` replaces each call of it. A family becomes its members, one for each choice of
operators; a mirrored operator has its operands exchanged. A list of results becomes one rule for
each length. All of this happens on the syntax tree, so later stages see plain rules only. An
expanded `def` has the place of its call.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from eqsat.families import FAMILIES
from eqsat.frozen import frozen
from eqsat.language import syntax
from eqsat.language.functions import FUNCTIONS
from eqsat.language.printer import shown_together
from eqsat.language.problems import Problem, Report, nearest
from eqsat.language.results import of_each_length
from eqsat.language.schemas import standard_operators
from eqsat.language.scope import names
from eqsat.language.syntax import Expression, FileDefinition, Name, Place, Range, Rule
from eqsat.language.trees import introduced, nodes, rebuilt, rebuilt_rule
from eqsat.language.values import DTYPES
from eqsat.traits import COMMUTATIVE, NEWEST, SYMMETRIC

MEMBER_LIMIT = 1_000  # of one family
_NODE_LIMIT = 2_000  # of the trees that all calls in one rule, or in one `def`, expand to
_LISTS = (syntax.Spread, syntax.Mapped)
# Operators whose two operands match in either order, so they are their own mirror images.
_EITHER_WAY = COMMUTATIVE | SYMMETRIC


def expand(rule: Rule, definitions: Definitions, report: Report) -> list[Rule]:
    """The rules that `rule` stands for: itself, or its members. The list is empty if the rule has a
    problem, which goes to the report, or calls a broken `def`.
    """
    called = _called(rule)
    if called & definitions.broken:
        return []
    if called & definitions.found.keys():
        rule = rebuilt_rule(rule, _Inliner(definitions.found, rule, report.add).change)
    choices = [_choices(part, report) for part in rule.ranges]
    bound: set[str] = set()
    for part in rule.ranges:
        for name in part.variables:
            if name in bound:
                report.add(part.place, f"{name} is bound twice")
            else:
                _check_variable(rule, name, part, report)
            bound.add(name)
    if math.prod(map(len, choices)) > MEMBER_LIMIT:
        report.add(rule.ranges[0].place, f"a family has at most {MEMBER_LIMIT} members")
    if report.problems:
        return []
    members = [_member(rule, tuple(itertools.chain(*chosen))) for chosen in itertools.product(*choices)] if rule.ranges else [rule]
    return [one for member in members for one in of_each_length(member, report)]


# --- families ---


@frozen
class _Chosen:
    """The operator that a variable stands for in a member."""

    operator: str
    mirrored: bool = False

    @property
    def name(self) -> str:
        """The part of the member's name for this operator."""
        return f"mirrored-{self.operator}" if self.mirrored else self.operator


def _member(rule: Rule, chosen: Sequence[_Chosen]) -> Rule:
    """The rule with operators substituted for the variables."""
    meanings = dict(zip((variable for part in rule.ranges for variable in part.variables), chosen, strict=True))

    def change(node: Any) -> Any:
        match node:
            case syntax.Term(operator) if operator in meanings and not node.domain:
                meaning = meanings[operator]
                return replace(node, operator=meaning.operator, inputs=node.inputs[::-1] if meaning.mirrored else node.inputs)
            case Name(name, place) if name in meanings:
                return syntax.Text(meanings[name].operator, place)
            case _:
                return node

    name = f"{rule.name}[{','.join(one.name for one in chosen)}]"
    return replace(rebuilt_rule(rule, change), name=name, ranges=(), operators=tuple(one.operator for one in chosen))


def _choices(part: Range, report: Report) -> list[tuple[_Chosen, ...]]:
    """The operators that variables range over, in the order of the text."""
    found: dict[tuple[_Chosen, ...], None] = {}
    unknown = [item for item in part.sets if item.name and item.name not in FAMILIES]
    for item in unknown:
        report.add(item.place, f"{item.name} is no family of operators (there are: {', '.join(sorted(FAMILIES))}){nearest(item.name, FAMILIES)}")
    if unknown:
        return []
    for item in part.sets:
        for operator in itertools.chain(*item.choices):
            if operator.name not in standard_operators():
                report.add(operator.place, f"ONNX has no operator {operator.name} in opset {NEWEST}{nearest(operator.name, standard_operators())}")
        for named in [(Name(name, item.place),) for name in FAMILIES[item.name].members] if item.name else item.choices:
            if len(named) != len(part.variables):
                report.add(named[0].place, f"{shown_together(part.variables)} stands for {_counted(len(part.variables))}, not for {len(named)}")
                return []
            choice = tuple(_Chosen(operator.name, item.mirrored and operator.name not in _EITHER_WAY) for operator in named)
            if not item.name and item.removed != (choice in found):
                shown = shown_together([operator.name for operator in named])
                report.add(named[0].place, f"{shown} is not in the sets before it" if item.removed else f"{shown} is named twice")
            if item.removed:
                found.pop(choice, None)
            else:
                found[choice] = None
    if not found:
        report.add(part.place, f"{shown_together(part.variables)} stands for no operator at all")
    return list(found)


def _counted(count: int) -> str:
    return "one operator" if count == 1 else f"{count} operators together"


def _check_variable(rule: Rule, name: str, part: Range, report: Report) -> None:
    """Reports a family variable that the rule never uses as an operator or as an operator's name,
    or that has a second meaning.
    """
    used = False
    for node in nodes((rule.left, rule.right, rule.conditions, rule.tests, rule.exact_if)):
        match node:
            case syntax.Term(operator, _, _, inputs, "") if operator == name:
                used = True
                if any(item.mirrored for item in part.sets) and (len(inputs) != 2 or any(isinstance(one, _LISTS) for one in inputs)):
                    report.add(node.place, f"{name} is mirrored: two operands change places, so it has exactly two")
            case Name(other) if other == name:
                used = True
            case syntax.Type(other) | syntax.Constant(other) | syntax.Given(other) if other == name:
                report.add(node.place, f"{name} stands for an operator, and for nothing else")
            case syntax.Definition(targets) if name in targets:
                report.add(node.place, f"{name} stands for an operator, and for nothing else")
            case _:
                pass
    if not used:
        report.add(part.place, f"{name} stands nowhere in the rule")


# --- definitions ---


@frozen
class Definitions:
    """The definitions of a file by name, each with its calls inlined, and their problems."""

    found: Mapping[str, FileDefinition]
    # Definitions with problems, which would show again in each rule that calls them.
    broken: frozenset[str]
    problems: tuple[Problem, ...]


def definitions_of(file: syntax.RuleFile, whole: bool = True) -> Definitions:
    """The definitions in the `def` lines of a file. With `whole` all rules of the file are present,
    so a definition that no rule uses is reported.
    """
    reader = _DefinitionReader()
    for definition in file.definitions:
        reader.check(definition)
    found = reader.found
    calls = {name: _called(one.value) & found.keys() for name, one in found.items()}
    used = set[str]().union(*calls.values(), *(_called(rule) for rule in file.rules))
    if whole:
        for name in found.keys() - used:
            reader.add(found[name], found[name].place, "it is never used")
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        loop: list[str] = error.args[1]
        first = min((found[name] for name in loop), key=lambda one: one.place.line)
        reader.add(first, first.place, "it is made of itself")
        return Definitions({}, frozenset(found), tuple(reader.problems))
    made: dict[str, FileDefinition] = {}
    for name in order:
        one = found[name]
        reader.broken |= {name} if calls[name] & reader.broken else set()
        inliner = _Inliner(made, one.value, lambda place, message, one=one: reader.add(one, place, message))
        made[name] = replace(one, value=rebuilt(one.value, inliner.change))
    return Definitions(made, frozenset(reader.broken), tuple(reader.problems))


def definitions_for(rule: Rule, file: syntax.RuleFile) -> list[FileDefinition]:
    """The definitions that a rule calls, directly or through other definitions."""
    by_name = {definition.name: definition for definition in file.definitions}
    called, waiting = set[str](), _called(rule)
    while waiting := waiting & by_name.keys() - called:
        called |= waiting
        waiting = set[str]().union(*(_called(by_name[name].value) for name in waiting))
    return [definition for definition in file.definitions if definition.name in called]


def _called(tree: Any) -> set[str]:
    return {node.function for node in nodes(tree) if isinstance(node, syntax.Call)}


class _DefinitionReader:
    """The definitions of a file while they are checked."""

    def __init__(self) -> None:
        self.found: dict[str, FileDefinition] = {}
        self.broken: set[str] = set()
        self.problems: list[Problem] = []

    def add(self, definition: FileDefinition, place: Place, message: str) -> None:
        source = definition.source.split("\n")[place.line - definition.begin]
        self.problems.append(Problem(definition.file, place, "", f"def {definition.name}: {message}", source))
        self.broken.add(definition.name)

    def check(self, definition: FileDefinition) -> None:
        """Adds a definition and reports the problems of this definition alone."""
        name, parameters = definition.name, [parameter.name for parameter in definition.parameters]
        if name in FUNCTIONS or name in DTYPES:
            self.add(definition, definition.place, f"{name} is a {'function' if name in FUNCTIONS else 'data type'} of the language")
        elif name in self.found:
            self.add(definition, definition.place, f"another one has this name, at line {self.found[name].place.line}")
        self.found.setdefault(name, definition)
        mentioned = set(names(definition.value))
        for position, parameter in enumerate(definition.parameters):
            if parameter.name in parameters[:position]:
                self.add(definition, parameter.place, f"{parameter.name} is named twice")
            elif parameter.name in DTYPES:
                self.add(definition, parameter.place, f"{parameter.name} is a data type and can name nothing else")
            elif parameter.name not in mentioned:
                self.add(definition, parameter.place, f"{parameter.name} is never used")
        targets = {node.target for node in nodes(definition.value) if isinstance(node, syntax.Comprehension)}
        for node in nodes(definition.value):
            if isinstance(node, syntax.Comprehension) and node.target in parameters:
                self.add(definition, node.place, f"{node.target} is a parameter already")
        strange = mentioned - {*parameters, *DTYPES}
        for node in nodes(definition.value):
            if isinstance(node, Name | syntax.Constant) and (other := node.name if isinstance(node, Name) else node.dtype) in strange:
                self.add(definition, node.place, f"{other} is no parameter{nearest(other, [*parameters, *targets])}")


class _Inliner:
    """Replaces calls of definitions by their bodies. Variables of comprehensions get names that are
    unique in the tree.
    """

    def __init__(self, definitions: Mapping[str, FileDefinition], tree: Any, add: Callable[[Place, str], None]) -> None:
        self._definitions = definitions
        self._add = add
        self._taken = {name for node in nodes(tree) for name in introduced(node)}
        self._room = _NODE_LIMIT

    def change(self, node: Any) -> Any:
        """The replacement of a node whose parts have been changed."""
        if not isinstance(node, syntax.Call) or node.function not in self._definitions:
            return node
        definition = self._definitions[node.function]
        if len(node.arguments) != len(definition.parameters):
            wanted = f"{len(definition.parameters)} argument" + ("" if len(definition.parameters) == 1 else "s")
            self._add(node.place, f"{node.function} takes {wanted}, not {len(node.arguments)} (`def {node.function}`, line {definition.place.line})")
            return syntax.Wildcard(node.place)
        meanings = dict(zip((parameter.name for parameter in definition.parameters), node.arguments, strict=True))
        made = self._filled(definition, meanings, node.place)
        self._room -= sum(1 for _ in nodes(made))
        if self._room < 0:
            self._add(node.place, f"with its definitions written out, this has more than {_NODE_LIMIT} parts")
            self._room = _NODE_LIMIT
            return syntax.Wildcard(node.place)
        return made

    def _filled(self, definition: FileDefinition, meanings: Mapping[str, Expression], place: Place) -> Expression:
        fresh: dict[str, str] = {}
        for node in nodes(definition.value):
            if isinstance(node, syntax.Comprehension) and node.target not in fresh:
                fresh[node.target] = next(name for name in _spellings(node.target) if name not in self._taken)
                self._taken.add(fresh[node.target])
        here = replace(place, source=definition.name)

        def lone(parameter: str) -> str:
            match meanings.get(parameter):
                case Name(name):
                    return name
                case None:
                    return parameter
                case _:
                    self._add(place, f"{definition.name} takes a name for {parameter}")
                    return parameter

        def change(node: Any) -> Any:
            match node:
                case Name(name) if name in meanings:
                    return meanings[name]
                case Name(name):
                    return Name(fresh.get(name, name), here)
                case syntax.Constant(dtype):
                    return replace(node, dtype=lone(dtype), place=here)
                case syntax.Maybe(name):
                    return replace(node, name=lone(name), place=here)
                case syntax.Term(_, _, str(carried)):
                    return replace(node, carried=lone(carried), place=here)
                case syntax.Comprehension():
                    return replace(node, target=fresh[node.target], place=here)
                case _:
                    return replace(node, place=here)

        return rebuilt(definition.value, change)


def _spellings(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}{number}" for number in itertools.count(2))

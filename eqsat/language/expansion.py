"""Expansion: the plain rules that a rule as written stands for.

A call of a file's `def` is replaced by the body of the `def`. A family becomes its members, one for
each choice of operators. Both happen on the syntax tree, so no later stage knows of either. An
expanded `def` has the place of its call.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

from eqsat.families import FAMILIES
from eqsat.language import syntax
from eqsat.language.functions import FUNCTIONS
from eqsat.language.problems import Problem, Report, nearest
from eqsat.language.schemas import standard_operators
from eqsat.language.scope import names
from eqsat.language.syntax import Expression, FileDefinition, Name, Place, Range, Rule
from eqsat.language.values import DTYPES
from eqsat.traits import NEWEST

MEMBER_LIMIT = 1_000  # of one family
_NODE_LIMIT = 2_000  # of the tree that one call of a `def` expands to

Node = TypeVar("Node")


def expand(rule: Rule, definitions: Definitions, report: Report) -> list[Rule]:
    """The rules that `rule` stands for: itself, or its members. The list is empty if the rule has a
    problem, which goes to the report, or calls a broken `def`.
    """
    called = _called(rule)
    if called & definitions.broken:
        return []
    if called & definitions.found.keys():
        rule = _in_rule(rule, _Inliner(definitions.found, rule, report.add).change)
    choices = [_operators(part, report) for part in rule.ranges]
    for part in rule.ranges:
        _check_variable(rule, part, report)
    if math.prod(map(len, choices)) > MEMBER_LIMIT:
        report.add(rule.ranges[0].place, f"a family has at most {MEMBER_LIMIT} members")
    if report.problems:
        return []
    return [_member(rule, chosen) for chosen in itertools.product(*choices)] if rule.ranges else [rule]


# --- trees ---


def _rebuilt(node: Node, change: Callable[[Any], Any]) -> Node:
    """The tree with `change` applied to each of its nodes, inner nodes first. Unchanged parts are
    shared.
    """
    if isinstance(node, tuple):
        parts: tuple[Any, ...] = tuple(_rebuilt(part, change) for part in node)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return parts if any(a is not b for a, b in zip(parts, node, strict=True)) else node  # pyright: ignore
    if not dataclasses.is_dataclass(node) or isinstance(node, (type, Place)):
        return node
    made: dict[str, Any] = {}
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if (part := _rebuilt(value, change)) is not value:
            made[field.name] = part
    return change(replace(node, **made) if made else node)


def _in_rule(rule: Rule, change: Callable[[Any], Any]) -> Rule:
    parts = {name: getattr(rule, name) for name in ("left", "right", "conditions", "tests", "exact_if")}
    return replace(rule, **{name: _rebuilt(part, change) for name, part in parts.items()})


def _nodes(node: Any) -> Iterator[Any]:
    """All nodes of a tree."""
    if isinstance(node, tuple):
        for part in node:  # pyright: ignore[reportUnknownVariableType]
            yield from _nodes(part)
    elif dataclasses.is_dataclass(node) and not isinstance(node, Place):
        yield node
        for field in dataclasses.fields(node):
            yield from _nodes(getattr(node, field.name))


# --- families ---


def _member(rule: Rule, chosen: Sequence[str]) -> Rule:
    """The rule with operators substituted for the variables."""
    meanings = dict(zip((part.variable for part in rule.ranges), chosen, strict=True))

    def change(node: Any) -> Any:
        match node:
            case syntax.Term(operator) if operator in meanings and not node.domain:
                return replace(node, operator=meanings[operator])
            case Name(name, place) if name in meanings:
                return syntax.Text(meanings[name], place)
            case _:
                return node

    return replace(_in_rule(rule, change), name=f"{rule.name}[{','.join(chosen)}]", ranges=(), operators=tuple(chosen))


def _operators(part: Range, report: Report) -> list[str]:
    """The operators that a variable ranges over, in the order of the text."""
    found: dict[str, None] = {}
    unknown = [item for item in part.sets if item.name and item.name not in FAMILIES]
    for item in unknown:
        report.add(item.place, f"{item.name} is no family of operators (there are: {', '.join(sorted(FAMILIES))}){nearest(item.name, FAMILIES)}")
    if unknown:
        return []
    for item in part.sets:
        for operator in item.operators:
            if operator.name not in standard_operators():
                report.add(operator.place, f"ONNX has no operator {operator.name} in opset {NEWEST}{nearest(operator.name, standard_operators())}")
        named = [Name(name, item.place) for name in FAMILIES[item.name].members] if item.name else item.operators
        if item.removed:
            for operator in named:
                if operator.name not in found and not item.name:
                    report.add(operator.place, f"{operator.name} is not among what stands before")
                found.pop(operator.name, None)
        else:
            for operator in named:
                if operator.name in found and not item.name:
                    report.add(operator.place, f"{operator.name} is named twice")
                found[operator.name] = None
    if not found:
        report.add(part.place, f"{part.variable} stands for no operator at all")
    return list(found)


def _check_variable(rule: Rule, part: Range, report: Report) -> None:
    """Reports a family variable that the rule never uses as an operator or as an operator's name,
    or that has a second meaning.
    """
    name = part.variable
    if next(other for other in rule.ranges if other.variable == name) is not part:
        report.add(part.place, f"{name} is bound twice")
        return
    used = False
    for node in _nodes((rule.left, rule.right, rule.conditions, rule.tests, rule.exact_if)):
        match node:
            case syntax.Term(operator, _, _, _, "") if operator == name:
                used = True
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


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions of a file by name, each with its calls inlined, and their problems."""

    found: Mapping[str, FileDefinition]
    broken: frozenset[str]  # those with problems, which the rules that call them would only repeat
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
        made[name] = replace(one, value=_rebuilt(one.value, inliner.change))
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
    return {node.function for node in _nodes(tree) if isinstance(node, syntax.Call)}


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
        targets = {node.target for node in _nodes(definition.value) if isinstance(node, syntax.Comprehension)}
        for node in _nodes(definition.value):
            if isinstance(node, syntax.Comprehension) and node.target in parameters:
                self.add(definition, node.place, f"{node.target} is a parameter already")
        strange = mentioned - {*parameters, *DTYPES}
        for node in _nodes(definition.value):
            if isinstance(node, Name | syntax.Constant) and (other := node.name if isinstance(node, Name) else node.dtype) in strange:
                self.add(definition, node.place, f"{other} is no parameter{nearest(other, [*parameters, *targets])}")


class _Inliner:
    """Replaces calls of definitions by their bodies. Variables of comprehensions get names that are
    unique in the tree.
    """

    def __init__(self, definitions: Mapping[str, FileDefinition], tree: Any, add: Callable[[Place, str], None]) -> None:
        self._definitions = definitions
        self._add = add
        self._taken = {name for node in _nodes(tree) for name in _named(node)}
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
        self._room -= sum(1 for _ in _nodes(made))
        if self._room < 0:
            self._add(node.place, f"with what its definitions say, this has more than {_NODE_LIMIT} parts")
            self._room = _NODE_LIMIT
            return syntax.Wildcard(node.place)
        return made

    def _filled(self, definition: FileDefinition, meanings: Mapping[str, Expression], place: Place) -> Expression:
        fresh: dict[str, str] = {}
        for node in _nodes(definition.value):
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

        return _rebuilt(definition.value, change)


def _spellings(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}{number}" for number in itertools.count(2))


def _named(node: Any) -> Iterator[str]:
    """The names that a node itself introduces."""
    match node:
        case Name(name) | syntax.Maybe(name) | syntax.Given(name) | syntax.Judgement(name) | syntax.Const(name) | syntax.Comprehension(_, name):
            yield name
        case syntax.Line(targets) | syntax.Definition(targets):
            yield from targets
        case syntax.Term(_, _, str(carried)):
            yield carried
        case _:
            pass

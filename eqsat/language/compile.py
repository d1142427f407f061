"""Compiled rules: a resolved rule comes in; patterns, constructions and ordered steps for each direction go out."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eqsat.language import syntax
from eqsat.language.construction import Construction, Existing, Reference, Value, construction_of
from eqsat.language.pattern import (
    AreSizes,
    BindAttribute,
    BindTensor,
    BindTensors,
    CheckAttribute,
    Holds,
    MatchNumber,
    MatchParameter,
    NodeAtom,
    Pattern,
    Step,
    pattern_of,
)
from eqsat.language.scope import condition_names, names
from eqsat.language.sorts import Sort

if TYPE_CHECKING:
    from eqsat.language.resolve import Resolved


@dataclass(frozen=True)
class Compiled:
    """One direction of a rule."""

    rule: syntax.Rule
    reverse: bool
    pattern: Pattern
    construction: Construction

    @property
    def title(self) -> str:
        """The rule's name, marked where this is its direction from right to left."""
        return f"{self.rule.name} (reverse)" if self.reverse else self.rule.name

    @functools.cached_property
    def growth(self) -> int:
        """How many nodes the right side has more than the left, those that are made of constants only left out. Below 0 a rule ends by itself."""
        return self._constant.count(False) - sum(isinstance(atom, NodeAtom) for atom in self.pattern.atoms)

    @functools.cached_property
    def _constant(self) -> list[bool]:
        """Which of the right side's nodes are made of constants only."""
        constant = {Existing(self.pattern.classes[c.name]) for c in self.rule.conditions if isinstance(c, syntax.Const) and c.name in self.pattern.classes}
        made: list[bool] = []
        for node in self.construction.nodes:
            made.append(node.tail is None and all(_is_constant(item, constant, made) for item in (*node.inputs, *node.items)))
        return made


def _is_constant(reference: Reference, constant: set[Existing], made: list[bool]) -> bool:
    match reference:
        case Existing():
            return reference in constant
        case Value(node, _):
            return made[node]
        case _:
            return True


def compile_rule(resolved: Resolved) -> tuple[Compiled, ...]:
    """Both directions of a `<=>`, the one of a `=>`."""
    rule = resolved.rule
    tensors = (Sort.TENSOR, Sort.TENSORS)
    definitions: dict[str, syntax.Definition] = {}
    conditions: list[syntax.Condition] = []
    for condition in rule.conditions:
        if isinstance(condition, syntax.Definition) and resolved.sorts.get(condition.targets[0]) in tensors:
            definitions |= dict.fromkeys(condition.targets, condition)
        else:
            conditions.append(condition)
    directions = [(rule.left, rule.right, False)]
    if rule.both:
        directions.append(((*rule.right, *_lines(rule.right, definitions)), rule.left, True))
    found: list[Compiled] = []
    for left, right, reverse in directions:
        pattern = pattern_of(left, resolved.roots, tuple(conditions))
        pattern.steps = _ordered(pattern.steps)
        found.append(Compiled(rule, reverse, pattern, construction_of(right, pattern, definitions)))
    return tuple(found)


def _lines(right: tuple[syntax.Line, ...], definitions: Mapping[str, syntax.Definition]) -> list[syntax.Line]:
    """What `where` defines and a right side uses, as lines of a pattern."""
    found: dict[str, syntax.Line] = {}
    waiting = [name for line in right for name in names(line.value)]
    while waiting:
        definition = definitions.get(waiting.pop())
        if definition is not None and definition.targets[0] not in found:
            found[definition.targets[0]] = syntax.Line(definition.targets, definition.value, definition.place)
            waiting += names(definition.value)
    return list(found.values())


def _ordered(steps: Iterable[Step]) -> list[Step]:
    """Each step after those that bind the names it reads; else cheap ones first, and in the order of the text."""
    waiting = sorted(steps, key=_price)
    bindable = {name for step in waiting for name in _gives(step)}
    known: set[str] = set()
    order: list[Step] = []
    while waiting:
        ready = next((step for step in waiting if not (_needs(step) & bindable) - known - _gives(step)), waiting[0])
        waiting.remove(ready)
        known |= _gives(ready)
        order.append(ready)
    return order


def _price(step: Step) -> int:
    return (
        (BindTensor, BindTensors, BindAttribute, MatchParameter, AreSizes, Holds, CheckAttribute, MatchNumber).index(type(step))
        if not _is_judgement(step)
        else 3
    )


def _is_judgement(step: Step) -> bool:
    return isinstance(step, Holds) and isinstance(step.condition, (syntax.Judgement, syntax.Const))


def _gives(step: Step) -> set[str]:
    match step:
        case BindAttribute() | BindTensor() | BindTensors():
            return {step.name} - {""}
        case MatchParameter():
            return _bound(step.pattern)
        case Holds(syntax.Definition(targets, _)):
            return set(targets)
        case Holds(syntax.Judgement(_, type)):
            return {type.dtype, *(name for dim in type.dims or () for name in _bound(dim))}
        case _:
            return set()


def _bound(pattern: syntax.Expression) -> set[str]:
    """The names that a parameter or a dimension of a judgement binds; those inside computed expressions are only read."""
    match pattern:
        case syntax.Name(name):
            return {name}
        case syntax.Spread(item):
            return _bound(item)
        case syntax.Items(items):
            return {name for item in items for name in _bound(item)}
        case _:
            return set()


def _needs(step: Step) -> set[str]:
    match step:
        case BindAttribute() | BindTensor() | BindTensors() | AreSizes():
            return set()
        case CheckAttribute() | MatchNumber():
            return set(names(step.value))
        case MatchParameter():
            return set(names(step.pattern))
        case Holds():
            return condition_names(step.condition)

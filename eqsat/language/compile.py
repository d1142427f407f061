"""Compiled rules: the patterns, constructions and ordered steps for each direction of a resolved
rule.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from eqsat.frozen import frozen
from eqsat.language import syntax
from eqsat.language.alone import Alone, alone
from eqsat.language.construction import Construction, Existing, Item, Loop, Reference, Shared, Value, construction_of
from eqsat.language.pattern import pattern_of
from eqsat.language.query import (
    AreSizes,
    BindAttribute,
    BindTensor,
    BindTensors,
    CheckAttribute,
    Holds,
    MatchNumber,
    MatchParameter,
    Needs,
    NodeAtom,
    Pattern,
    Step,
)
from eqsat.language.scope import names
from eqsat.language.sorts import Sort
from eqsat.language.step_names import gives, reads

if TYPE_CHECKING:
    from eqsat.language.resolved import Resolved


_ITEMS = 2  # the assumed length of a mapped list; a rule does not pay for one item


class Direction(Protocol):
    """One direction of a rule as a run lists it. A run reads `compiled` only if the graph has what
    the direction needs.
    """

    @property
    def name(self) -> str:
        """The rule's name."""
        ...

    @property
    def needs(self) -> Needs:
        """What a graph must have for a match."""
        ...

    @property
    def compiled(self) -> Compiled:
        """The compiled direction."""
        ...


@frozen(slots=False)
class Compiled:
    """One direction of a rule."""

    rule: syntax.Rule
    reverse: bool
    pattern: Pattern
    construction: Construction

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    @property
    def needs(self) -> Needs:
        """What a graph must have for a match."""
        return self.pattern.needs

    @property
    def compiled(self) -> Compiled:
        """Itself."""
        return self

    @property
    def title(self) -> str:
        """The rule's name, marked if this is the direction from right to left."""
        return f"{self.rule.name} (reverse)" if self.reverse else self.rule.name

    @functools.cached_property
    def alone(self) -> tuple[Alone, ...]:
        """The parts of the left side that its nodes decide one by one."""
        return alone(self.pattern)

    @functools.cached_property
    def growth(self) -> int:
        """How many more nodes the right side has than the left. Nodes made of constants only do not
        count. A rule with a value below 0 terminates by itself.

        A node that is mapped over a list counts once for each item of the assumed length.
        """
        constant = {self.pattern.classes[c.name] for c in self.rule.conditions if isinstance(c, syntax.Const) and c.name in self.pattern.classes}
        mapped = len(self.pattern.nodes) - sum(isinstance(atom, NodeAtom) for atom in self.pattern.atoms)
        return _Counting(self.construction, constant).varying - len(self.pattern.nodes) - (_ITEMS - 1) * mapped

    @functools.cached_property
    def made(self) -> int:
        """The approximate number of nodes that the right side makes."""
        return len(self.construction.nodes) + _ITEMS * sum(len(loop.body.nodes) for loop in self.construction.loops)


class _Counting:
    """Counts the nodes of a right side that depend on more than constants. `constant` holds the
    class variables of constants; `items` and `shared` tell whether a reference is constant.
    """

    def __init__(self, construction: Construction, constant: set[str], items: Sequence[bool] = (), shared: Sequence[bool] = ()) -> None:
        self.varying = 0
        self._constant, self._items, self._shared = constant, items, shared
        self._made: list[bool] = []
        for node in construction.nodes:
            inputs = all(map(self.is_constant, (*node.inputs, *node.items)))
            self._made.append(self._tail(node.tail) and inputs)
            self.varying += not self._made[-1]

    def is_constant(self, reference: Reference) -> bool:
        """Whether a value depends on constants only."""
        match reference:
            case Existing(variable):
                return variable in self._constant
            case Value(node, _):
                return self._made[node]
            case Item(number):
                return self._items[number]
            case Shared(number):
                return self._shared[number]
            case _:
                return True

    def _tail(self, tail: str | Loop | None) -> bool:
        if not isinstance(tail, Loop):
            return tail is None or tail in self._constant
        items, shared = [listed in self._constant for listed in tail.lists], [self.is_constant(one) for one in tail.shared]
        body = _Counting(tail.body, self._constant, items, shared)
        self.varying += _ITEMS * body.varying
        return body.is_constant(tail.body.roots[""])


def compile_rule(resolved: Resolved) -> tuple[Compiled, ...]:
    """Both directions of a `<=>`, or the one direction of a `=>`."""
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
    """The definitions of `where` that a right side uses, as lines of a pattern."""
    found: dict[str, syntax.Line] = {}
    waiting = [name for line in right for name in names(line.value)]
    while waiting:
        definition = definitions.get(waiting.pop())
        if definition is not None and definition.targets[0] not in found:
            found[definition.targets[0]] = syntax.Line(definition.targets, definition.value, definition.place)
            waiting += names(definition.value)
    return list(found.values())


def _ordered(steps: Iterable[Step]) -> list[Step]:
    """The steps, each after those that bind the names it reads. Otherwise cheap steps come first,
    and then the order of the text holds.
    """
    waiting = sorted(steps, key=_price)
    bindable = {name for step in waiting for name in gives(step)}
    known: set[str] = set()
    order: list[Step] = []
    while waiting:
        ready = next((step for step in waiting if not (reads(step) & bindable) - known - gives(step)), waiting[0])
        waiting.remove(ready)
        known |= gives(ready)
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

"""The flat left side of a rule: its leaves, its nodes in an executable order, and its roots.

The input is a resolved rule, the number of tensors of each `..xs`, and the present optional inputs.
The output is a `Left`, plain data in which every tensor has a unique name. The same arguments give
the same `Left`. A name that the rule uses twice is one tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace

from eqsat.frozen import frozen
from eqsat.language.pattern import newest
from eqsat.language.resolved import Resolved
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Call, Const, Expression, Judgement, Mapped, Maybe, Name, Place, Spread, Term, Wildcard
from eqsat.operators import Operator
from eqsat.traits import PARAMETERS

_TENSORS = frozenset({Sort.TENSOR, Sort.TENSORS})
UNIFORM, VALUES, HALVES_EQUAL, PAIRS_EQUAL = "uniform", "values", "halves_equal", "pairs_equal"  # the functions of the language that read elements


@frozen
class Leaf:
    """A tensor from outside.

    `given` is its name in the rule, "_" for wildcards; `index` numbers the leaves of one name.
    """

    name: str
    given: str
    index: int = 0
    number: Expression | None = None  # the value that the rule prescribes
    read: str = ""  # the function with which the rule reads its elements


@frozen
class Step:
    """One node. `slots` are the patterns of its attributes and parameters, by the name of the
    attribute or input.
    """

    operator: Operator
    inputs: tuple[str | None, ...]  # an absent input and a parameter are None
    outputs: tuple[str, ...]
    slots: Mapping[str, Expression]
    parameters: Mapping[int, str]  # the key in `slots` by the position of the input
    absent: frozenset[str]  # attributes that the rule mentions and this instance lacks
    carried: str | None
    place: Place

    def formal(self, position: int) -> str:
        """The type of an input in the schema: a variable, or a type in full."""
        formals = self.operator.formals[0]
        return formals[min(position, len(formals) - 1)][1]


@frozen
class Left:
    """A flat left side.

    `names` maps the names of the rule to tensors of the graph; `roots` are the tensors that the
    right side replaces.
    """

    leaves: tuple[Leaf, ...]
    steps: tuple[Step, ...]
    roots: tuple[str, ...]
    names: Mapping[str, str]
    lists: Mapping[str, tuple[str, ...]]


@frozen
class Choices:
    """The parts of a left side that differ from one instance to the next: names of optional parts,
    and keys of spreads in order.
    """

    optional: tuple[str, ...]
    spreads: tuple[str, ...]
    # The spreads that are mapped over. Those of one entry are equally long, and none is empty.
    together: tuple[tuple[str, ...], ...]


def choices(rule: Resolved) -> Choices:
    """The optional parts of a rule, and its `..xs`. Each `.._` is a spread of its own, with a key
    that begins with two dots.
    """
    optional: dict[str, None] = {}
    spreads: dict[str, None] = {}
    together: list[tuple[str, ...]] = []
    for term in terms(rule):
        optional.update((attribute.value.name, None) for attribute in term.attributes if isinstance(attribute.value, Maybe))
        for item in term.inputs:
            if isinstance(item, Maybe):
                optional[item.name] = None
            elif isinstance(item, Spread):
                spreads[_key(item)] = None
            elif isinstance(item, Mapped):
                spreads.update(dict.fromkeys(item.sources))
                together.append(item.sources)
    return Choices(tuple(optional), tuple(spreads), tuple(together))


def _key(spread: Spread) -> str:
    return spread.item.name if isinstance(spread.item, Name) else f"..{spread.place.line}:{spread.place.column}"


def terms(rule: Resolved) -> Iterator[Term]:
    """All terms of the left side, an inner one before the one that it is an input of."""
    for line in rule.rule.left:
        yield from _inner_terms(line.value)


def _inner_terms(expression: Expression | None) -> Iterator[Term]:
    if isinstance(expression, Term):
        for item in expression.inputs:
            yield from _inner_terms(item.item if isinstance(item, Mapped) else item)
        yield expression


def constants(rule: Resolved) -> frozenset[str]:
    """The tensors that the rule wants constant."""
    return frozenset(condition.name for condition in rule.rule.conditions if isinstance(condition, Const))


def judgements(rule: Resolved) -> tuple[Judgement, ...]:
    """The typing judgements of the rule."""
    return tuple(condition for condition in rule.rule.conditions if isinstance(condition, Judgement))


def elements_read(rule: Resolved) -> dict[str, str]:
    """The tensors whose elements the rule reads, each with a function that reads it. The rule fires
    only if they are constants.
    """
    found = [call for call in calls(rule.rule) if call.function in (UNIFORM, VALUES, HALVES_EQUAL, PAIRS_EQUAL)]
    return {argument.name: call.function for call in found for argument in call.arguments if isinstance(argument, Name)}


def calls(part: object) -> Iterator[Call]:
    """All calls of functions in a part of a rule."""
    if isinstance(part, Call):
        yield part
    if isinstance(part, tuple):
        for item in part:  # pyright: ignore[reportUnknownVariableType]
            yield from calls(item)  # pyright: ignore[reportUnknownArgumentType]
    elif is_dataclass(part):
        for inner in fields(part):
            yield from calls(getattr(part, inner.name))


def flatten(
    rule: Resolved, present: frozenset[str], counts: Mapping[str, int], repeated: frozenset[str] = frozenset(), read: Mapping[str, str] | None = None
) -> Left:
    """The left side with the optional parts in `present`, and `counts[key]` tensors for each
    spread.

    In a spread that is in `repeated`, the last tensor is the first one again. `read` is what
    `elements_read` finds, for a caller who flattens often.
    """
    return _Flattening(rule, present, counts, repeated, elements_read(rule) if read is None else read).result()


@dataclass
class _Flattening:
    rule: Resolved
    present: frozenset[str]
    counts: Mapping[str, int]
    repeated: frozenset[str]
    read: Mapping[str, str]
    # By name of an item: its list, and its index there.
    items: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    steps: list[Step] = field(default_factory=list[Step])
    names: dict[str, str] = field(default_factory=dict[str, str])
    wildcards: list[tuple[Place, Leaf]] = field(default_factory=list["tuple[Place, Leaf]"])

    def result(self) -> Left:
        self.lines = {target: line for line in self.rule.rule.left for target in line.targets if target != "_"}
        lone: list[str] = []
        for line in self.rule.rule.left:
            assert isinstance(line.value, Term)
            if not line.targets:
                lone.append(self.term(line.value, ("",))[0])
            elif not any(target in self.names for target in line.targets):
                self.define(line.targets, line.value)
        expressions = iter(lone)
        roots = tuple(self.names[name] if name else next(expressions) for name in self.rule.roots)
        # Test lines give the types of wildcards in the order of the text.
        in_order = sorted(self.wildcards, key=lambda pair: (pair[0].line, pair[0].column))
        numbered = [replace(leaf, index=index) for index, (_, leaf) in enumerate(in_order)]
        lists = {name: tuple(self.named(name, index) for index in range(count)) for name, count in self.counts.items() if not name.startswith("..")}
        return Left((*self.leaves, *numbered), tuple(self.steps), roots, self.names, lists)

    def define(self, targets: tuple[str, ...], value: Term) -> None:
        outputs = self.term(value, tuple("" if target == "_" else target for target in targets))
        self.names.update({target: output for target, output in zip(targets, outputs, strict=False) if target != "_"})

    def term(self, term: Term, targets: tuple[str, ...]) -> tuple[str, ...]:
        operator = newest(term)
        assert operator.schema is not None
        formals = operator.formals[0]
        named = {attribute.name: self.present_value(attribute.value) for attribute in term.attributes}
        slots: dict[str, Expression] = {name: value for name, value in named.items() if value is not None}
        parameters: dict[int, str] = {}
        inputs: list[str | None] = []
        for item in term.inputs:
            position = len(inputs)
            if isinstance(item, Maybe) and self.rule.sorts.get(item.name) not in _TENSORS:
                item = self.present_value(item)
            if position in PARAMETERS.get(term.operator, {}) and item is not None and not self.is_tensor(item):
                key = formals[position][0]
                slots[key] = item
                parameters[position] = key
                inputs.append(None)
            else:
                inputs.extend(self.inputs(item))
        while inputs and inputs[-1] is None and len(inputs) - 1 not in parameters:
            inputs.pop()
        count = max(len(targets), operator.schema.min_output)
        outputs = tuple(target or f"{term.operator}_{len(self.steps)}_{index}" for index, target in enumerate((*targets, *[""] * (count - len(targets)))))
        self.steps.append(Step(operator, tuple(inputs), outputs, slots, parameters, frozenset(named) - slots.keys(), term.carried, term.place))
        return outputs

    def present_value(self, value: Expression) -> Expression | None:
        """An attribute or a parameter as this instance has it; None if it is absent."""
        if not isinstance(value, Maybe):
            return value
        return Name(value.name) if value.name in self.present else None

    def is_tensor(self, item: Expression) -> bool:
        return isinstance(item, Term) or (isinstance(item, Name) and (item.name in self.items or self.rule.sorts.get(item.name) in _TENSORS))

    def inputs(self, item: Expression | None) -> list[str | None]:
        """The tensors that `item` stands for."""
        match item:
            case None:
                return [None]
            case Term():
                return [self.term(item, ("",))[0]]
            case Name(name):
                return [self.named(*self.items[name])] if name in self.items else [self.named(name)]
            case Mapped():
                return [*self.mapped(item)]
            case Maybe(name):
                return [self.named(name) if name in self.present else None]
            case Wildcard(place):
                return [self.wildcard(place)]
            case Spread(Name(name)):
                return [self.named(name, index) for index in range(self.counts[name])]
            case Spread(_, place):
                return [self.wildcard(place) for _ in range(self.counts[_key(item)])]
            case _:
                leaf = Leaf(f"number_{len(self.leaves)}", "", 0, item)
                self.leaves.append(leaf)
                return [leaf.name]

    def mapped(self, mapped: Mapped) -> Iterator[str]:
        """The values of the term for each item of the lists."""
        assert isinstance(mapped.item, Term)
        for index in range(self.counts[mapped.sources[0]]):
            self.items = {target: (source, index) for target, source in zip(mapped.targets, mapped.sources, strict=True)}
            yield self.term(mapped.item, ("",))[0]
        self.items = {}

    def named(self, name: str, index: int | None = None) -> str:
        if index and name in self.repeated and index == self.counts[name] - 1:
            index = 0
        if index is None and name in self.lines and name not in self.names:
            line = self.lines[name]
            assert isinstance(line.value, Term)
            self.define(line.targets, line.value)
        key = name if index is None else f"{name}_{index}"
        if key not in self.names:
            self.names[key] = key
            self.leaves.append(Leaf(key, name, index or 0, read=self.read.get(name, "")))
        return self.names[key]

    def wildcard(self, place: Place) -> str:
        leaf = Leaf(f"any_{len(self.wildcards)}", "_")
        self.wildcards.append((place, leaf))
        return leaf.name

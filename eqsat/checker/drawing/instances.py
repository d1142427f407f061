"""Instances of a rule's left side: concrete ONNX graphs that the rule should match.

The input is a resolved rule and a seed, or the number of one of its test lines. The output is
`Instance`s, each a model that strict shape inference accepts. The same rule and seed give the same
instances. Draws start from the test lines, or from random shapes if a rule has none. They vary
size, rank, data type, broadcasting, attributes and spelling as far as ONNX allows, so they include
cases that the author overlooked. Draws mostly follow the conditions, as far as these are known, and
avoid those that are known to be broken; the engine decides whether a rule fires.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Final

import numpy as np

from eqsat.checker.drawing.bindings import Bindings, setting
from eqsat.checker.drawing.bounded import bounding_lines, leaves_to_bound, owner, with_other_numbers, without_numbers
from eqsat.checker.drawing.conditions import Open, never_constant, opened
from eqsat.checker.drawing.draw import Drawing
from eqsat.checker.drawing.dtypes import RULE, Dtypes, Key
from eqsat.checker.drawing.foresight import Foresight
from eqsat.checker.drawing.left_side import Choices, Leaf, Left, choices, constants, elements_read, flatten, judgements
from eqsat.checker.drawing.writing import Instance, finished
from eqsat.checker.samplers.drawn_node import Setting
from eqsat.checker.samplers.leaf_shapes import RANK_LIMIT, Sizes, draw_shapes, first_shape, of_rank
from eqsat.language.expressions import evaluate
from eqsat.language.problems import Problem
from eqsat.language.resolved import Resolved
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Line, Spread
from eqsat.language.values import DTYPES

# After this many illegal draws in a row, a rule counts as having no more legal instances.
_MOST_FAILURES: Final = 5000
_SYMBOLIC: Final = 0.25  # share of the instances with named sizes
# Share with named sizes if sizes decide the meaning or legality of an operator. A wrong rule about
# such an operator may fire on named sizes only.
_STRICT: Final = 0.5
_STRICT_OPERATORS: Final = frozenset({"MatMul", "Slice"})
_CONSTANT: Final = 0.15  # share of the leaves that are constants although no rule wants it, where none forbids it
_FORESEEN: Final = 50  # choices of bounds and data types for one draw, at most
_RENUMBERED: Final = 8  # choices of numbers for one choice of operators and data types, at most
_NEVERTHELESS: Final = 0.1  # share of the draws with constants that are made although ranges forbid them
_REPEATED: Final = 0.1  # share of the lists of inputs that end with their first tensor
# Draws of the instance of a test line: with the first data types of its letters, then with others.
_TYPES: Final = [(0, 100), *((place, 30) for place in range(1, 16))]


def _as_usual() -> float:
    """As many instances with named sizes as usual."""
    return 1.0


def draw(rule: Resolved, seed: int, named: Callable[[], float] = _as_usual) -> Iterator[Instance]:
    """Random instances of the left side of `rule`, without end, unless thousands of draws in a row
    are illegal.

    `named` is asked before each draw how many instances should have named sizes, relative to the usual
    share.
    """
    sketch = _Sketch(rule)
    random, generator = Random(seed), np.random.default_rng(seed)
    failures = 0
    while failures < _MOST_FAILURES:
        drawing = sketch.draw(random, generator, named())
        if drawing is None or not drawing.run():
            failures += 1
            continue
        failures = 0
        yield finished(drawing, "drawn")


def from_test(rule: Resolved, index: int, attempts: int | None = None) -> Instance:
    """The instance of a test line of `rule`.

    The open parts are drawn, always in the same way. A letter stands for float if that is legal,
    and for another data type if it is not, as in Mod without fmod. With `attempts`, only so many
    draws are made, all with the first types. Raises `ValueError` if no instance is legal.
    """
    sketch = _Sketch(rule)
    random, generator = Random(index), np.random.default_rng(index)
    place, reason = rule.rule.tests[index].place, "its data types make no left side together"
    drawing: Drawing | None = None
    hopeless: list[Mapping[Key, int]] = []  # data types with which nothing was left to chance
    for types, draws in _TYPES if attempts is None else [(0, attempts)]:
        for _ in range(draws):
            drawing = sketch.test(random, generator, index, types)
            if drawing is None or drawing.dtypes in hopeless:
                break
            before = _state(random, generator)
            if drawing.run():
                return finished(drawing, f"test line {index + 1}")
            if not types and drawing.refusal is not None:
                place, reason = drawing.refusal.place, drawing.refusal.reason
            if _state(random, generator) == before:
                hopeless.append(drawing.dtypes)
        if drawing is None:
            break
    said = f"test line {index + 1} is no legal instance of the left side: {reason}"
    raise ValueError(str(Problem(rule.rule.file, place, "", said)))


def _state(random: Random, generator: np.random.Generator) -> tuple[object, object]:
    """What decides the next random numbers."""
    return random.getstate(), generator.bit_generator.state


@dataclass(frozen=True)
class _Line:
    """A test line: shapes and types by the name of the tensor, in order, and values of everything
    else.
    """

    shapes: Mapping[str, tuple[Sizes, ...]]
    dtypes: Mapping[str, tuple[int, ...]]
    values: Mapping[str, Setting]


class _Sketch:
    """A rule prepared for drawing: its left side for each choice of present inputs, and its test
    lines.
    """

    def __init__(self, rule: Resolved) -> None:
        self._rule = rule
        self._read = elements_read(rule)
        self._variants: dict[Hashable, tuple[Left, Dtypes] | None] = {}

    @cached_property
    def _choices(self) -> Choices:
        return choices(self._rule)

    @cached_property
    def _conditions(self) -> tuple[Open, ...]:
        return opened(self._rule.rule.conditions)

    @cached_property
    def _constants(self) -> frozenset[str]:
        return constants(self._rule)

    @cached_property
    def _never_constant(self) -> frozenset[str]:
        return never_constant(self._conditions)

    @cached_property
    def _foresight(self) -> Foresight:
        return Foresight(self._conditions, frozenset(name for name, sort in self._rule.sorts.items() if sort is Sort.TENSOR))

    @cached_property
    def _leaves_to_bound(self) -> tuple[str, ...]:
        return leaves_to_bound(self._rule)

    @cached_property
    def _lines(self) -> tuple[_Line, ...]:
        lines: list[_Line] = []
        for test in self._rule.rule.tests:
            shapes: dict[str, tuple[Sizes, ...]] = {}
            dtypes: dict[str, tuple[int, ...]] = {}
            values: dict[str, Setting] = {}
            for given in test.given:
                if given.types:
                    sizes = [[evaluate(dim, {}) for dim in type_.dims or ()] for type_ in given.types]
                    shapes[given.name] = tuple(tuple(size for size in shape if isinstance(size, int)) for shape in sizes)
                    dtypes[given.name] = tuple(DTYPES[type_.dtype].code if type_.dtype in DTYPES else 0 for type_ in given.types)
                elif given.value is not None:
                    value = setting(evaluate(given.value, {}))
                    assert value is not None
                    values[given.name] = value
            lines.append(_Line(shapes, dtypes, values))
        return tuple(lines)

    @cached_property
    def _ranks(self) -> Mapping[str, tuple[int, int]]:
        """The least and the greatest rank of each tensor that a judgement gives sizes."""
        found: dict[str, tuple[int, int]] = {}
        for judgement in judgements(self._rule):
            if judgement.type.dims is not None:
                rest = any(isinstance(dim, Spread) for dim in judgement.type.dims)
                found[judgement.name] = (len(judgement.type.dims) - rest, RANK_LIMIT if rest else len(judgement.type.dims))
        return found

    def draw(self, random: Random, generator: np.random.Generator, named: float) -> Drawing | None:
        """A new draw near one of the test lines, if there are any; None if the first choices make
        no left side. `named` is as in `draw` above, at the time of the draw.
        """
        line = random.choice(self._lines) if self._lines else None
        counts = {key: self._count(line, key) if line and random.random() < 0.4 else random.randint(0, 3) for key in self._choices.spreads}
        for together in self._choices.together:
            counts.update(dict.fromkeys(together, self._count(line, together[0]) if line and random.random() < 0.4 else random.randint(1, 5)))
        repeated = frozenset(key for key in self._choices.spreads if counts[key] > 1 and random.random() < _REPEATED)
        present = frozenset(name for name in self._choices.optional if random.random() < 0.6)
        for _ in range(_FORESEEN):
            lines = bounding_lines(random, self._leaves_to_bound)
            marked, _ = without_numbers(lines)
            variant = self._variant(present, counts, repeated, marked)
            types = None if variant is None else variant[1].draw(random)
            if variant is None or types is None:
                return None
            left = variant[0]
            fixed = frozenset(leaf.name for leaf in left.leaves if self._is_constant(leaf) or self._may_be_constant(random, leaf))
            if self._foresight.refuses_types(left, types):
                continue
            refused = self._foresight.refuses_ranges(left, types, lines)
            for _ in range(_RENUMBERED if refused else 0):
                lines = with_other_numbers(random, lines)
                refused = self._foresight.refuses_ranges(left, types, lines)
                if not refused:
                    break
            # Elements of constants have narrower ranges, so some of these draws are tried nevertheless.
            constant = any(leaf.name in fixed for leaf in left.leaves if leaf.number is None)
            if not refused or (constant and random.random() < _NEVERTHELESS):
                break
        else:
            return None
        if numbers := without_numbers(lines)[1]:
            left = replace(left, leaves=tuple([replace(leaf, number=numbers.get(leaf.number, leaf.number)) if leaf.number else leaf for leaf in left.leaves]))
        shapes = self._own_shapes(random, left) if line is None else self._shapes_of(random, left, line)
        reduced = any(step.operator.name.startswith("Reduce") for step in left.steps)
        symbolic = random.random() < named * (_STRICT if any(step.operator.name in _STRICT_OPERATORS for step in left.steps) else _SYMBOLIC)
        shapes = draw_shapes(random, shapes, reduced)
        values: Mapping[str, Setting] = {} if line is None else line.values
        return Drawing(left, random, generator, types, shapes, fixed, values, self._bindings(left, types, present), symbolic=symbolic)

    def _shapes_of(self, random: Random, left: Left, line: _Line) -> dict[str, Sizes]:
        """The shapes of a test line. Items of a spread beyond those of the line resemble one of
        them.
        """
        found: dict[str, Sizes] = {}
        for leaf in left.leaves:
            given = line.shapes.get(owner(leaf.given), ())
            if given:
                found[leaf.name] = given[leaf.index] if leaf.index < len(given) else random.choice(given)
        return found

    def _own_shapes(self, random: Random, left: Left) -> dict[str, Sizes]:
        """One shape for all tensors, changed in rank where a judgement of the rule demands it."""
        shape = first_shape(random)
        return {leaf.name: of_rank(random, shape, *self._ranks.get(owner(leaf.given), (0, RANK_LIMIT))) for leaf in left.leaves}

    def test(self, random: Random, generator: np.random.Generator, index: int, place: int) -> Drawing | None:
        """The draw of a test line, whose letters stand for the data type at `place`; None if its
        types make no left side.
        """
        line = self._lines[index]
        counts = {key: self._count(line, key) for key in self._choices.spreads}
        present = frozenset(name for name in self._choices.optional if name in line.shapes or name in line.values)
        variant = self._variant(present, counts, frozenset())
        if variant is None:
            return None
        left, dtypes = variant
        given = [leaf for leaf in left.leaves if leaf.index < len(line.shapes.get(leaf.given, ()))]
        wanted: dict[Key, int] = {leaf.name: line.dtypes[leaf.given][leaf.index] for leaf in given if line.dtypes[leaf.given][leaf.index]}
        wanted.update({(RULE, name): code for name, code in line.values.items() if self._rule.sorts[name] is Sort.DTYPE and isinstance(code, int)})
        types = dtypes.plain(wanted, place)
        if types is None:
            return None
        shapes = {leaf.name: line.shapes[leaf.given][leaf.index] for leaf in given}
        fixed = frozenset(leaf.name for leaf in left.leaves if self._is_constant(leaf))
        bindings = self._bindings(left, types, present)
        bindings.values.update({name: value for name, value in line.values.items() if self._rule.sorts[name] is not Sort.DTYPE})
        return Drawing(left, random, generator, types, shapes, fixed, {}, bindings, plain=True)

    def _is_constant(self, leaf: Leaf) -> bool:
        return leaf.number is not None or leaf.given in self._constants

    def _may_be_constant(self, random: Random, leaf: Leaf) -> bool:
        return leaf.given not in self._never_constant and random.random() < _CONSTANT

    def _bindings(self, left: Left, types: Mapping[Key, int], present: frozenset[str]) -> Bindings:
        bindings = Bindings(self._conditions, lists=left.lists)
        bindings.leave_out(frozenset(self._choices.optional) - present)
        bindings.set_dtypes(types)
        return bindings

    def _variant(
        self, present: frozenset[str], counts: Mapping[str, int], repeated: frozenset[str], bounding: tuple[Line, ...] = ()
    ) -> tuple[Left, Dtypes] | None:
        """The left side with the present inputs, and its types; None if an operator has too few
        inputs. The lines of `bounding` make some of its leaves.
        """
        key = (present, tuple(counts.values()), repeated, bounding)
        if key not in self._variants:
            rule = replace(self._rule, rule=replace(self._rule.rule, left=(*self._rule.rule.left, *bounding))) if bounding else self._rule
            left = flatten(rule, present, counts, repeated, self._read)
            legal = all(step.operator.schema is not None and len(step.inputs) >= step.operator.schema.min_input for step in left.steps)
            self._variants[key] = (left, Dtypes(self._rule, left)) if legal else None
        return self._variants[key]

    def _count(self, line: _Line, key: str) -> int:
        """The number of tensors that the line gives for a spread.

        The first `.._` gets the types of `_` that single wildcards leave over.
        """
        if not key.startswith(".."):
            return len(line.shapes.get(key, ()))
        bare = flatten(self._rule, frozenset(self._choices.optional), dict.fromkeys(self._choices.spreads, 0))
        wildcards = sum(leaf.given == "_" for leaf in bare.leaves)
        first = next(other for other in self._choices.spreads if other.startswith(".."))
        return max(0, len(line.shapes.get("_", ())) - wildcards) if key == first else 0

"""Drawn nodes: one node of a left side while a sampler draws it.

The input is the facts of the inputs, which of them are new (their shapes are still open), and the
rule's patterns of attributes and parameters. The output is values for the open ones, and shapes for
new inputs. A value that the rule prescribes or an earlier node has bound stays. An attribute that
the rule omits keeps ONNX's default.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from random import Random
from typing import TypeAlias

from onnx import defs

from eqsat.checker.samplers.leaf_shapes import Sizes, numbers
from eqsat.facts.fact import Fact
from eqsat.frozen import frozen, mutable
from eqsat.operators import Operator, attribute_default

OBEDIENCE = 0.8  # the chance of a draw that follows what conditions ask, where that is known

Setting: TypeAlias = "int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]"


# A shape that conditions ask: a size that is open yet is a name, if the rule has one for it, or None.
Asked: TypeAlias = "tuple[int | str | None, ...]"


class Unfit(Exception):
    """There is no legal draw here, or none was found; another draw may succeed."""


@frozen
class Slot:
    """The constraints of an attribute or parameter that the rule leaves open, at least in part."""

    value: Setting | None = None  # prescribed, or bound by an earlier node
    items: tuple[int | None, ...] | None = None  # the items of a list whose length is prescribed
    given: Setting | None = None  # the value in a test line
    # The integers at the borders that guards set to an integer, or to each item of a list.
    rivals: tuple[tuple[int, ...], ...] = ()
    asked: Setting | None = None  # the value to which a guard demands equality
    carried: bool = False  # one of the attributes of `..p` or `_`, which may be omitted


@mutable
class DrawnNode:
    """One node.

    `inputs` are facts with concrete shapes, `fresh` the inputs whose shapes may be set, `numbers`
    the inputs with a prescribed value.
    """

    random: Random
    operator: Operator
    inputs: list[Fact | None]
    fresh: frozenset[int]
    numbers: frozenset[int]
    slots: Mapping[str, Slot]
    outputs: int
    dtype: int  # of the first output
    # Lists that guards may want again: shapes of other tensors, lists that earlier nodes have
    # bound.
    lists: Sequence[Sizes]
    asked: Asked | None = None  # the shape that conditions ask of the first result
    demanded: frozenset[int] = frozenset()  # the new inputs of which conditions ask some sizes
    from_test: bool = False  # whether it comes from a test line, whose shapes stay
    # Whether sizes will have names. Rules then see parameters as written, because normalizing them
    # needs known sizes.
    symbolic: bool = False
    chosen: dict[str, Setting] = field(default_factory=dict[str, Setting])

    def chance(self, share: float) -> bool:
        """True in `share` of all draws."""
        return self.random.random() < share

    def present(self, position: int) -> bool:
        """Whether there is a tensor at `position`."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def shape(self, position: int) -> Sizes:
        """The shape of an input that is there."""
        fact = self.inputs[position]
        assert fact is not None and fact.shape is not None
        return numbers(fact.shape)

    def fit(self, position: int, shape: Sequence[int]) -> None:
        """Gives an input a shape; `Unfit` if it is not new and has another shape, unless a test
        line gives it.
        """
        fact = self.inputs[position]
        if fact is None or fact.shape == tuple(shape):
            return
        if position in self.fresh:
            self.inputs[position] = fact._replace(shape=tuple(shape))
        elif not self.from_test:
            raise Unfit

    def open(self, key: str) -> bool:
        """Whether the rule mentions an attribute or parameter."""
        return key in self.slots

    def length(self, *keys: str) -> int | None:
        """The common length of the lists `keys`, if the rule prescribes it for one of them."""
        for key in keys:
            slot = self.slots.get(key)
            if slot is not None and slot.items is not None:
                return len(slot.items)
            if slot is not None and isinstance(slot.value, tuple):
                return len(slot.value)
        return None

    def prescribed(self, key: str, count: int) -> Sizes | None:
        """The list of `count` integers that the rule prescribes, if it does."""
        slot = self.slots.get(key)
        value = None if slot is None else slot.value
        return tuple(int(item) for item in value) if isinstance(value, tuple) and len(value) == count else None

    def default(self, key: str) -> Setting | None:
        """The default of an omitted attribute; None for parameters and for attributes without a
        default.
        """
        return default(self.operator, key)

    def again(self, low: int, high: int) -> int:
        """An integer in the range: often a size of another tensor, or its mirror image there."""
        known = [size for sizes in self.lists for size in sizes if low <= size <= high] if self.chance(0.5) else []
        if not known:
            return self.random.randint(low, high)
        size = self.random.choice(known)
        return high - size + low if self.chance(0.3) else size

    def integer(self, key: str, draw: Callable[[], int], default: int = 0) -> int:
        """An integer: the prescribed one, the default if the rule omits it, else the result of
        `draw`.
        """
        value = self._settle(key, draw)
        if value is not None and not isinstance(value, int):
            raise Unfit
        return default if value is None else value

    def integers(self, key: str, draw: Callable[[], Sequence[int]], count: int | None = None) -> Sizes | None:
        """A list of `count` integers (None: any number), chosen as by `integer`; None if the rule
        omits it and it has no default.
        """
        value = self._settle(key, lambda: tuple(draw()), count)
        if value is None:
            return None
        if not isinstance(value, tuple) or count not in (None, len(value)):
            raise Unfit
        return tuple(int(item) for item in value)

    def texts(self, key: str, draw: Callable[[], Sequence[str]], count: int) -> tuple[str, ...] | None:
        """A list of `count` strings, chosen as by `integers`."""
        value = self._settle(key, lambda: tuple(draw()), count)
        return tuple(str(item) for item in value) if isinstance(value, tuple) else None

    def floats(self, key: str, draw: Callable[[], Sequence[float]]) -> None:
        """Draws a list of floats unless it is prescribed. The rule must mention it."""
        if self.slots[key].value is None:
            self.chosen[key] = tuple(draw())

    def text(self, key: str, words: Sequence[str]) -> str:
        """A string, chosen as by `integer`, or drawn from `words`, often the first of them."""
        value = self._settle(key, lambda: words[0] if self.chance(0.4) else self.random.choice(words))
        return value if isinstance(value, str) else ""

    def number(self, key: str, numbers: Sequence[float]) -> None:
        """Chooses a floating-point attribute as `integer` does, or draws one of `numbers`."""
        self._settle(key, lambda: float(self.random.choice(numbers)))

    def choose(self, key: str, values: Sequence[int] | Sequence[float] | Sequence[str]) -> None:
        """Chooses an attribute as `integer` does, or draws one of `values`."""
        schema = self.operator.schema
        assert schema is not None
        real = schema.attributes[key].type == defs.OpSchema.AttrType.FLOAT
        self._settle(key, lambda: float(self.random.choice(values)) if real else self.random.choice(values))

    def _settle(self, key: str, draw: Callable[[], Setting], count: int | None = None) -> Setting | None:
        slot = self.slots.get(key)
        if slot is None:
            return self.default(key)
        if slot.value is not None:
            self.chosen[key] = slot.value
            return slot.value
        if slot.carried and not self.required(key) and self.chance(0.3):
            return self.default(key)
        usable = slot.given is not None and (count is None or (isinstance(slot.given, tuple) and len(slot.given) == count))
        value = slot.given if usable and slot.given is not None and self.chance(0.15) else draw()
        if slot.items is not None:
            value = self._complete(slot.items, value)
        if slot.asked is not None and type(slot.asked) is type(value) and self.chance(OBEDIENCE):
            value = slot.asked
        elif any(slot.rivals) and self.chance(0.4):
            value = self._near(slot, value)
        self.chosen[key] = value
        return value

    def required(self, key: str) -> bool:
        """Whether ONNX requires the attribute or the parameter."""
        return _required(self.operator, key)

    def _near(self, slot: Slot, value: Setting) -> Setting:
        """The value, with each part that guards compare with a number replaced by that number or a
        neighbour.
        """
        if isinstance(value, tuple):
            rivals = (*slot.rivals, *((),) * len(value))
            return tuple(self._beside(near) if near else int(item) for item, near in zip(value, rivals, strict=False))
        return self._beside(slot.rivals[0]) if isinstance(value, int) and slot.rivals[0] else value

    def _beside(self, near: Sequence[int]) -> int:
        return self.random.choice(near) + self.random.choice((0, 0, 1, -1))

    def _complete(self, items: tuple[int | None, ...], value: Setting) -> Setting:
        if not isinstance(value, tuple) or len(value) != len(items):
            raise Unfit
        return tuple(int(drawn) if item is None else item for item, drawn in zip(items, value, strict=True))


@functools.cache
def _required(operator: Operator, key: str) -> bool:
    schema = operator.schema
    if schema is None:
        return False
    if key in schema.attributes:
        return schema.attributes[key].required
    return any(formal.name == key and formal.option == defs.OpSchema.FormalParameterOption.Single for formal in schema.inputs)


@functools.cache
def default(operator: Operator, key: str) -> Setting | None:
    """ONNX's default of an attribute; None if it has none."""
    value = attribute_default(operator, key)
    return value.decode() if isinstance(value, bytes) else value if isinstance(value, int | float) else _plain(value)


def _plain(value: object) -> tuple[int, ...] | None:
    """A list of integers as a setting.

    No drawn attribute has a list of other elements, or a tensor, as its default.
    """
    return tuple(value) if isinstance(value, tuple) and all(isinstance(item, int) for item in value) else None  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

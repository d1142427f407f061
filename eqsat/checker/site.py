"""One node of a left side while it is drawn: what a sampler sees of it and what it decides.

Comes in: the facts of the inputs, which of them are new (their shapes are still open), and what the rule's patterns
prescribe of attributes and parameters. Goes out: values for what is open, and shapes for new inputs. Promised: what the
rule prescribes or an earlier node has bound keeps its value; what the rule omits keeps ONNX's default.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from onnx import defs

from eqsat.checker.shapes import Sizes
from eqsat.facts import Fact
from eqsat.operators import Operator, attribute_default

Setting: TypeAlias = "int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]"


class Unfit(Exception):
    """There is no legal draw here, or none was found: another one may be tried."""


@dataclass(frozen=True)
class Slot:
    """What is known of an attribute or parameter that the rule leaves open or prescribes in part."""

    value: Setting | None = None  # prescribed, or bound by an earlier node
    items: tuple[int | None, ...] | None = None  # the items of a list whose length is prescribed
    given: Setting | None = None  # what a test line gives
    rivals: tuple[tuple[int, ...], ...] = ()  # of an integer, or of each item of such a list, what guards compare it with
    carried: bool = False  # one of "all the other attributes": it may be left out


@dataclass
class Site:
    """One node; `inputs` are facts with concrete shapes, `fresh` the inputs whose shapes may be set, `numbers` those with a prescribed value."""

    random: Random
    operator: Operator
    inputs: list[Fact | None]
    fresh: frozenset[int]
    numbers: frozenset[int]
    slots: Mapping[str, Slot]
    outputs: int
    dtype: int  # of the first output
    lists: Sequence[Sizes]  # what guards may want again: shapes of other tensors, lists that earlier nodes have bound
    stated: bool = False  # by a test line, whose shapes stay
    symbolic: bool = False  # sizes will have names: rules see parameters as they are written, not as these sizes let them be tidied up
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
        return tuple(size for size in fact.shape if isinstance(size, int))

    def fit(self, position: int, shape: Sequence[int]) -> None:
        """Gives an input a shape; `Unfit` where it has another already and is not new, unless a test line states it."""
        fact = self.inputs[position]
        if fact is None or fact.shape == tuple(shape):
            return
        if position in self.fresh:
            self.inputs[position] = fact._replace(shape=tuple(shape))
        elif not self.stated:
            raise Unfit

    def open(self, key: str) -> bool:
        """Whether the rule says anything of an attribute or parameter."""
        return key in self.slots

    def length(self, *keys: str) -> int | None:
        """The length of the lists `keys`, which belong together, where one of them has a prescribed one."""
        for key in keys:
            slot = self.slots.get(key)
            if slot is not None and slot.items is not None:
                return len(slot.items)
            if slot is not None and isinstance(slot.value, tuple):
                return len(slot.value)
        return None

    def default(self, key: str) -> Setting | None:
        """What ONNX means where the attribute is omitted; None for parameters and for attributes without a default."""
        return default(self.operator, key)

    def again(self, low: int, high: int) -> int:
        """An integer in the range: often a size of another tensor, or what is left beside it."""
        known = [size for sizes in self.lists for size in sizes if low <= size <= high] if self.chance(0.5) else []
        if not known:
            return self.random.randint(low, high)
        size = self.random.choice(known)
        return high - size + low if self.chance(0.3) else size

    def integer(self, key: str, draw: Callable[[], int], default: int = 0) -> int:
        """An integer: the prescribed one, the default where the rule omits it, else one that `draw` makes."""
        value = self._settle(key, draw)
        if value is not None and not isinstance(value, int):
            raise Unfit
        return default if value is None else value

    def integers(self, key: str, draw: Callable[[], Sequence[int]], count: int | None = None) -> Sizes | None:
        """A list of `count` integers (None: of any number), in the same way; None where it is left out and has no default."""
        value = self._settle(key, lambda: tuple(draw()), count)
        if value is None:
            return None
        if not isinstance(value, tuple) or count not in (None, len(value)):
            raise Unfit
        return tuple(int(item) for item in value)

    def texts(self, key: str, draw: Callable[[], Sequence[str]], count: int) -> tuple[str, ...] | None:
        """A list of `count` strings, in the same way."""
        value = self._settle(key, lambda: tuple(draw()), count)
        return tuple(str(item) for item in value) if isinstance(value, tuple) else None

    def floats(self, key: str, draw: Callable[[], Sequence[float]]) -> None:
        """A list of floating-point numbers, in the same way, but that it is there."""
        if self.slots[key].value is None:
            self.chosen[key] = tuple(draw())

    def text(self, key: str, words: Sequence[str]) -> str:
        """A string, in the same way, drawn from `words`, the most usual of which stand first."""
        value = self._settle(key, lambda: words[0] if self.chance(0.4) else self.random.choice(words))
        return value if isinstance(value, str) else ""

    def number(self, key: str, numbers: Sequence[float]) -> None:
        """A floating-point attribute, in the same way, drawn from `numbers`."""
        self._settle(key, lambda: float(self.random.choice(numbers)))

    def choose(self, key: str, values: Sequence[int] | Sequence[float] | Sequence[str]) -> None:
        """One of the values, in the same way."""
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
        if any(slot.rivals) and self.chance(0.4):
            value = self._near(slot, value)
        self.chosen[key] = value
        return value

    def required(self, key: str) -> bool:
        """Whether ONNX requires the attribute."""
        schema = self.operator.schema
        return schema is not None and key in schema.attributes and schema.attributes[key].required

    def _near(self, slot: Slot, value: Setting) -> Setting:
        """The value, each part that guards compare with a number replaced by that number, or one beside it."""
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
def default(operator: Operator, key: str) -> Setting | None:
    """ONNX's default of an attribute; None where it has none."""
    value = attribute_default(operator, key)
    return value.decode() if isinstance(value, bytes) else value if isinstance(value, int | float) else _plain(value)


def _plain(value: object) -> tuple[int, ...] | None:
    """A list of integers as a setting; lists of other things and tensors are no defaults of any attribute that is drawn."""
    return tuple(value) if isinstance(value, tuple) and all(isinstance(item, int) for item in value) else None  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

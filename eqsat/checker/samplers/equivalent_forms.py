"""Equivalent forms of a node: axes counted from the end, ends beyond the end, inferred sizes.

The input is a node in the plain spelling of the samplers, with the facts of its inputs and output.
The output is the same node in one of the spellings that models use, with the same meaning. Rules
see all of them in one spelling, so the names of a rule keep their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Final

from eqsat.checker.samplers.drawn_node import Setting, default
from eqsat.checker.samplers.leaf_shapes import Sizes
from eqsat.families import FAMILIES
from eqsat.operators import Operator

END: Final = (1 << 63) - 1


@dataclass
class Spelling:
    """A node: its attributes and parameters, and the sizes of its first input and output."""

    operator: Operator
    settings: dict[str, Setting]
    x: Sizes
    y: Sizes
    kernel: Sizes | None  # of the weights

    def integers(self, key: str) -> Sizes | None:
        """A list among the settings."""
        value = self.settings.get(key)
        return tuple(int(item) for item in value) if isinstance(value, tuple) else None


def respell(random: Random, spelling: Spelling) -> None:
    """Writes the node another way, in place."""
    name = spelling.operator.name
    rank = len(spelling.y) if name in ("Unsqueeze", "OneHot") else len(spelling.x)
    axis = spelling.settings.get("axis")
    if isinstance(axis, int) and name not in _UNSIGNED and random.random() < 0.4 and 0 <= axis < rank:
        spelling.settings["axis"] = axis - rank
    function = _SPELLINGS.get(name)
    if function is not None:
        function(random, spelling)
    assert spelling.operator.schema is not None
    for key in spelling.operator.schema.attributes:
        value = default(spelling.operator, key)
        if value is not None and key not in spelling.settings and random.random() < 0.1:
            spelling.settings[key] = value
    axes = spelling.integers("axes")
    if axes is not None and random.random() < 0.5:
        spelling.settings["axes"] = tuple(axis - rank if axis >= 0 and random.random() < 0.6 else axis for axis in axes)


_UNSIGNED: Final = frozenset({"ReverseSequence"})


def _slice(random: Random, spelling: Spelling) -> None:
    starts, ends, steps = spelling.integers("starts"), spelling.integers("ends"), spelling.integers("steps")
    axes = spelling.integers("axes")
    if starts is None or ends is None or len(starts) != len(ends):
        return
    places = axes if axes is not None else tuple(range(len(starts)))
    written: list[tuple[int, int]] = []
    for start, end, axis, step in zip(starts, ends, places, steps or (1,) * len(starts), strict=False):
        size = spelling.x[axis] if -len(spelling.x) <= axis < len(spelling.x) else 0
        if 0 <= start < size and random.random() < 0.3:
            start -= size
        if step > 0 and end == size and random.random() < 0.6:
            end = random.choice((END, size + 1, (1 << 31) - 1, 1000))
        elif 0 <= end < size and random.random() < 0.4:
            end -= size
        elif step < 0 and end < -size and random.random() < 0.5:
            end = -END
        written.append((start, end))
    if len(written) != len(starts):
        return
    spelling.settings["starts"], spelling.settings["ends"] = tuple(start for start, _ in written), tuple(end for _, end in written)
    if steps is not None and set(steps) <= {1} and random.random() < 0.5:
        del spelling.settings["steps"]
    if axes == tuple(range(len(starts))) and "steps" not in spelling.settings and random.random() < 0.5:
        del spelling.settings["axes"]


def _reshape(random: Random, spelling: Spelling) -> None:
    shape = spelling.integers("shape")
    if shape is None or spelling.settings.get("allowzero") or prod(shape) == 0:
        return
    written = list(shape)
    for place, size in enumerate(written):
        if place < len(spelling.x) and spelling.x[place] == size and random.random() < 0.4:
            written[place] = 0
    if written and random.random() < 0.4:
        written[random.randrange(len(written))] = -1
    if 0 not in written and random.random() < 0.1:
        spelling.settings["allowzero"] = 1
    spelling.settings["shape"] = tuple(written)


def _expand(random: Random, spelling: Spelling) -> None:
    shape = spelling.integers("shape")
    if shape is None:
        return
    offset = len(shape) - len(spelling.x)
    written = tuple(1 if place >= offset and spelling.x[place - offset] == size and random.random() < 0.4 else size for place, size in enumerate(shape))
    spelling.settings["shape"] = written


def _reduce(random: Random, spelling: Spelling) -> None:
    axes = spelling.integers("axes")
    if axes is None or not axes:
        return
    if sorted(axes) == list(range(len(spelling.x))) and not spelling.settings.get("noop_with_empty_axes") and random.random() < 0.4:
        del spelling.settings["axes"]
    elif random.random() < 0.3:
        spelling.settings["axes"] = tuple(random.sample(axes, len(axes)))


def _squeeze(random: Random, spelling: Spelling) -> None:
    axes = spelling.integers("axes")
    if axes is not None and sorted(axes) == [axis for axis, size in enumerate(spelling.x) if size == 1] and random.random() < 0.3:
        del spelling.settings["axes"]


def _transpose(random: Random, spelling: Spelling) -> None:
    if spelling.integers("perm") == tuple(reversed(range(len(spelling.x)))) and random.random() < 0.4:
        del spelling.settings["perm"]


def _pad(random: Random, spelling: Spelling) -> None:
    if spelling.integers("axes") == tuple(range(len(spelling.x))) and random.random() < 0.4:
        del spelling.settings["axes"]


def _window(random: Random, spelling: Spelling) -> None:
    settings, count = spelling.settings, len(spelling.x) - 2
    if spelling.kernel is not None and random.random() < 0.3:
        settings["kernel_shape"] = spelling.kernel
    for key in ("strides", "dilations"):
        if key not in settings and random.random() < 0.15:
            settings[key] = (1,) * count
    if settings.get("auto_pad", "NOTSET") == "NOTSET" and not any(spelling.integers("pads") or ()):
        if random.random() < 0.15:
            settings.pop("pads", None)
            if "output_padding" not in settings:
                settings["auto_pad"] = "VALID"
        elif random.random() < 0.2:
            settings["pads"] = (0,) * (2 * count)


_SPELLINGS: Final[Mapping[str, Callable[[Random, Spelling], None]]] = {
    **dict.fromkeys(FAMILIES["reduction"].members, _reduce),
    **dict.fromkeys(("Conv", "ConvInteger", "ConvTranspose", "QLinearConv", "MaxPool", "AveragePool", "LpPool"), _window),
    "Expand": _expand,
    "Pad": _pad,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
}

"""What is known of the range of a value from its fact, and of the inputs of a node."""

from __future__ import annotations

import functools

from eqsat.facts.dims import Dim, bounds
from eqsat.facts.element_bytes import decoded
from eqsat.facts.fact import Fact
from eqsat.facts.intervals import Range, coarse, everything, is_floating, limits, made, meet, spanned
from eqsat.facts.node import Node

# The most floats of a constant whose range is exact. Layers have larger constants, biases of eight
# channels among them, whose ranges must not tell them apart.
_FEW = 4


def known_range(fact: Fact) -> Range | None:
    """Return the range of a value, as far as its fact tells; None if its elements are no numbers."""
    if fact.range is None and fact.ints is None and fact.uniform is None and fact.floats is None:
        return everything(fact.dtype) if fact.dtype else None
    return _told(fact)


@functools.lru_cache(maxsize=1 << 12)
def _told(fact: Fact) -> Range | None:
    """Return the range of a value whose fact tells more than its data type."""
    whole = everything(fact.dtype) if fact.dtype else None
    if whole is None:
        return None
    found = fact.range or whole
    if fact.ints:
        found = meet(found, _of_integers(fact.dtype, fact.ints) or whole)
    elements = fact.floats if fact.uniform is None else fact.uniform
    if elements and is_floating(fact.dtype):
        found = meet(found, _of_floats(elements, fact.dtype) or whole)
    elif elements and fact.ints is None:
        number = int(decoded(elements, fact.dtype)[0])
        found = Range(number, number, number, number, False)
    # Bounds that contradict each other tell of a tensor without elements, so they are of no use.
    return found if found.low <= found.high and found.least <= found.most else whole


def _of_integers(dtype: int, elements: tuple[Dim, ...]) -> Range | None:
    lows, highs = zip(*map(bounds, elements), strict=True)
    whole = limits(dtype)
    if whole is None:
        return None
    low = max(whole[0], min(whole[0] if low is None else low for low in lows))
    high = min(whole[1], max(whole[1] if high is None else high for high in highs))
    return made(dtype, (low, high), (low, high), False)


def _of_floats(elements: bytes, dtype: int) -> Range | None:
    numbers = decoded(elements, dtype)
    found = spanned(numbers)
    return found if len(numbers) <= _FEW else coarse(dtype, found)


def input_ranges(node: Node) -> list[Range] | None:
    """Return the ranges of all inputs; None if one of them is absent or no numbers."""
    found = [range_of(node, position) for position in range(len(node.inputs))]
    known = [one for one in found if one is not None]
    return known if known and len(known) == len(found) else None


def range_of(node: Node, position: int) -> Range | None:
    """Return the range of an input; None if it is absent or no numbers."""
    fact = node.fact(position)
    return None if fact is None else known_range(fact)

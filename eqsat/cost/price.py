"""The price of a node: the time that it takes, and the launches, bytes and operations behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eqsat.cost.shaped import Shaped
from eqsat.operators import Attributes

Bound = Literal["launch", "memory", "compute"]


@dataclass(frozen=True, slots=True)
class PricedNode:
    """A node as a price sees it. Trailing absent inputs may be left out; an absent input is None."""

    domain: str  # "" for ONNX's own operators
    name: str
    attributes: Attributes  # defaults may be left out
    inputs: Sequence[Shaped | None]
    outputs: Sequence[Shaped | None]


@dataclass(frozen=True, slots=True)
class Price:
    """What a node costs. `seconds` are predicted; the other figures are counted."""

    seconds: float
    launches: int
    bytes: float  # read and written
    operations: float  # multiply-adds count as two
    bound: Bound

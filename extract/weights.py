"""Exact integer weights for the costs and ties of a graph."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .graph import ExtractionError, Graph


@dataclass(frozen=True, slots=True)
class Exact:
    """Floats as integers over one common denominator, so sums and comparisons are exact."""

    values: list[int]
    unit: int

    @staticmethod
    def from_floats(what: str, floats: Sequence[float], signed: Sequence[float] = ()) -> Exact:
        """Convert `floats` (non-negative, infinity becomes -1), then `signed` (infinity becomes 0).

        The sum of all must be a finite float.
        """
        ratios: dict[float, tuple[int, int]] = {}
        for index, value in enumerate(floats):
            if value not in ratios:
                if not value >= 0:
                    raise ExtractionError(f"{what} {index} is {value!r}; it has to be a number that is not negative")
                ratios[value] = value.as_integer_ratio() if value != math.inf else (-1, 0)
        for value in signed:
            if value != math.inf:
                ratios[value] = value.as_integer_ratio()
        unit = max((denominator for _, denominator in ratios.values()), default=1) or 1
        scaled = {value: -1 if denominator == 0 else numerator * (unit // denominator) for value, (numerator, denominator) in ratios.items()}
        values = [scaled[value] for value in floats]
        changes = [scaled[value] if value != math.inf else 0 for value in signed]
        if sum(value for value in values if value > 0) + sum(abs(value) for value in changes) > int(sys.float_info.max) * unit:
            raise ExtractionError(f"the sum over {what} is too large for a float")
        return Exact(values + changes, unit)

    def to_float(self, value: int) -> float:
        """Return the float nearest to `value`."""
        return value / self.unit


@dataclass(frozen=True, slots=True)
class Scale:
    """The encoding of costs in a weight: (cost * `tie_base` + tie) * `change_base` + changes.

    The order of weights is the lexicographic order of (cost, tie, changes). A change is a chosen
    node that the initial choice lacks: of otherwise equal choices, the one with fewest changes is
    lightest. `change_base` is a power of 2, so the last bits of a weight count changes alone.
    """

    cost: Exact
    tie: Exact
    tie_base: int
    change_base: int

    @staticmethod
    def of(graph: Graph, *, counts_changes: bool) -> Scale:
        """Make the scale of a graph's costs and ties."""
        cost = Exact.from_floats("cost of node", [node.cost for node in graph.nodes], [term.cost for term in graph.terms])
        tie = Exact.from_floats("tie of node", [node.tie for node in graph.nodes])
        return Scale(cost, tie, sum(value for value in tie.values if value > 0) + 1, 1 << len(graph.nodes).bit_length() if counts_changes else 1)

    def weights(self, kept: Collection[int] | None) -> list[int]:
        """Return the weight of each node, -1 for infinity; nodes outside `kept` are changes."""
        level = self.tie_base * self.change_base
        weights = [c * level + t * self.change_base if c >= 0 and t >= 0 else -1 for c, t in zip(self.cost.values, self.tie.values, strict=False)]
        if kept is None:
            return weights
        return [w + 1 if w >= 0 and n not in kept else w for n, w in enumerate(weights)]

    def term_weights(self) -> list[int]:
        """Return the weight of each term; an infinite cost gives 0."""
        return [change * self.tie_base * self.change_base for change in self.cost.values[len(self.tie.values) :]]

    def costs(self, weight: int) -> tuple[float, float]:
        """Return the cost and the tie of a weight."""
        cost, tie = divmod(weight // self.change_base, self.tie_base)
        return self.cost.to_float(cost), self.tie.to_float(tie)

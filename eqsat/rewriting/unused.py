"""Unused rules: why a result does not use a rule that fired, as data and in words."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from eqsat.choose.writable import Obstacle
from eqsat.frozen import frozen
from eqsat.parameters.amounts import scaled

OPSET, DOMAIN, KERNEL, GROWTH = "opset", "domain", "kernel", "growth"
"""What a result with the rule needs: a newer opset, an allowed domain, a kernel that the target
lacks, or a larger file.
"""
COST, SAME = "cost", "same cost"
NOTHING = "nothing new"
"""The result has what the rule made already, or it is a constant that is stored."""
UNPRICED = "not priced"
STAYED = "original stays"
LOST = "not found"
"""What the rule made is not found in the e-graphs that the result comes from."""

SECONDS, LAUNCHES, BYTES = "seconds", "launches", "bytes"
"""The units of costs."""


@frozen
class Reason:
    """Why a result does not use a rule that fired."""

    kind: str
    operator: str | None = None
    """What the result may not have."""
    opset: int | None = None
    """The opset that it needs."""
    domain: str | None = None
    """The domain that has to be allowed."""
    more: float | None = None
    """What the best graph with the rule costs more than the result."""
    unit: str = SECONDS
    """Of costs: seconds, launches or bytes."""
    excess: float | None = None
    """The bytes by which that graph exceeds the limit of the file."""

    @property
    def rank(self) -> tuple[int, float]:
        """Orders the reasons of several places: the one that is nearest to a use comes first."""
        more = math.inf if self.more is None else self.more
        if self.kind in (COST, SAME):
            return 1, more
        needs = self.kind in (OPSET, DOMAIN, KERNEL, GROWTH)
        return (0 if more <= 0 else 2, more) if needs else (3 if self.kind == UNPRICED else 4, more)

    def to_json(self) -> dict[str, Any]:
        """Returns the reason as plain data, with its words."""
        return {"reason": self.kind, **{key: value for key, value in asdict(self).items() if key != "kind"}, "text": str(self)}

    def __str__(self) -> str:
        words = {
            OPSET: f"{self.operator} needs opset {self.opset} (--opset {self.opset})",
            DOMAIN: f"{self.operator} is of a domain that is not allowed (--allow-domain {self.domain})",
            KERNEL: f"the target has no kernel for this {self.operator}",
            GROWTH: f"stores {scaled(self.excess or 0.0)}B more than --max-growth allows",
            SAME: "costs the same as what was chosen",
            NOTHING: "the result has what it makes already",
            UNPRICED: "has too many alternatives to be priced",
            STAYED: "the rewritten model was no better than the original, which stays",
            LOST: "what it made is in no graph that the result comes from",
        }
        if self.kind == COST:
            return f"costs {self._amount()} more"
        if self.kind == SAME or self.more is None:
            return words[self.kind]
        price = f"cost {self._amount()} more" if self.more > 0 else f"save {self._amount()}" if self.more else "cost the same"
        return f"{words[self.kind]}, and would {price}"

    def _amount(self) -> str:
        more = abs(self.more or 0.0)
        if self.unit == LAUNCHES:
            return f"{more:g} {'launch' if more == 1 else 'launches'}"
        return f"{scaled(more)}{'s' if self.unit == SECONDS else 'B'}"


def lacks(found: Obstacle, more: float | None = None, unit: str = SECONDS) -> Reason:
    """Returns the reason that an obstacle is."""
    kind = DOMAIN if found.domain is not None else OPSET if found.opset is not None else KERNEL
    return Reason(kind, found.operator, found.opset, found.domain, more, unit)

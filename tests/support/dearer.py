"""Whether a result costs more than its original, by the figures of its report."""

from __future__ import annotations

import math
from typing import Any

from eqsat.cost.target import load_target
from eqsat.rewriting.valuation import EQUALLY_DEAR, SLIGHT


def dearer(report: Any) -> str:
    """Returns the price that rose: the target's time, or the number of launches on paper.

    A loop that is unrolled has more nodes, but each trip of a loop launches those of its body.
    """
    cost = report["cost"]
    if cost["target"] == "launches" and cost["after"]["launches"] > cost["before"]["launches"]:
        return "there are more launches than before"
    before, after = (cost[side]["seconds"] for side in ("before", "after"))
    slight = SLIGHT * load_target(cost["target"]).start
    slower = before is not None and after is not None and after > before and not math.isclose(after, before, rel_tol=EQUALLY_DEAR, abs_tol=slight)
    return f"it is predicted to take {after} s, and took {before}" if slower else ""

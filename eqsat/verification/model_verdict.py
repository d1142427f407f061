"""Verdicts: the result of a verification, as plain data with figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from eqsat.verification.request import OutputJudgement
from eqsat.verification.sample_plan import Draw


@dataclass
class Verdict:
    """The result of verification; `asdict` of it is JSON.

    `status` is "equal", "different" or "unverified"; the last two have a `reason`. `output` is the
    output that differs, if one does. `sizes` lists the size of each named dimension in each run.
    The last `edges` of the runs were at edges: sizes 0, 1 and beyond the models' constants, and
    integers at the limits of their type. `regions` counts the parts that were judged apart; it is
    None if the models ran whole.
    """

    status: str
    reason: str = ""
    output: str = ""
    engine: str = ""
    outputs: list[OutputJudgement] = field(default_factory=list[OutputJudgement])
    runs: int = 0
    edges: int = 0
    sizes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    notes: list[str] = field(default_factory=list[str])
    regions: int | None = None
    seconds: float = 0.0
    draw: Draw | None = None  # the draw that showed the difference
    relative: float | None = None  # the unexplained error on it, as a share of the output's length; infinite for another shape
    agreed: frozenset[str] = frozenset()  # the values inside that were compared as well, and equal in all runs
    seconds_inside: float = field(default=0.0, compare=False)  # of the runs of the whole models, spent on values inside

    @property
    def max_error(self) -> float | None:
        """The largest error of any output; None if one was not finite."""
        errors = [output.max_error for output in self.outputs]
        return None if None in errors else max((error for error in errors if error is not None), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Returns the verdict as plain JSON data."""
        found = {**asdict(self), "max_error": self.max_error}
        del found["draw"], found["relative"], found["agreed"], found["seconds_inside"]
        return found

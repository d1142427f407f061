"""Variants: the forms of a model that optimizers make, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eqsat.verification.request import DIFFERENT, EQUAL

FAILED, STOPPED, MISSING = "failed", "stopped", "missing"
"""The optimizer crashed or wrote no model, hit a limit, or is not installed: there is no model."""

UNCHECKED = "unchecked"
"""Verification itself did not come to an end."""


@dataclass(frozen=True)
class Variant:
    """A model as an optimizer left it. It is right if its `status` is "equal"; any other status has
    a `reason`. Without a `path` there is no model.

    `nodes` counts no constants, and `operators` counts them by kind. `bytes` are those of the file
    and its external data. Seconds and memory are the optimizer's, with everything that it started.
    `stages` are the seconds of the stages named in eqsat's report.
    """

    name: str
    path: str = ""
    nodes: int = 0
    cpu_seconds: float = 0.0
    status: str = EQUAL
    reason: str = ""
    stages: Mapping[str, float] = field(default_factory=dict[str, float])
    wall_seconds: float = 0.0
    peak_bytes: int = 0
    bytes: int = 0
    operators: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def right(self) -> bool:
        """Tells whether there is a model that computes what the original computes."""
        return bool(self.path) and self.status == EQUAL

    @property
    def definite(self) -> bool:
        """Tells whether another run, with more time or memory, would come to the same."""
        return self.status in (EQUAL, DIFFERENT, FAILED)

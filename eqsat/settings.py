"""Settings: everything that a caller can ask of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from eqsat.extract import Method
from eqsat.language.library import Source
from eqsat.language.syntax import Label


@dataclass(slots=True)
class Settings:
    """Everything that a caller can ask of a run; the command line and `optimize` share the names."""

    inputs: Mapping[str, np.ndarray[Any, Any]] | None = None
    verify: bool = True
    time_limit: float | None = None
    node_limit: int = 2_000_000
    memory_limit: int = 1 << 30
    max_growth: int | None = None
    inline: bool = False
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    assume_dims: Mapping[str, int] = field(default_factory=dict[str, int])
    custom_op_library: str | Path | None = None
    opset: str | int = "keep"
    exact: bool = False
    strict: bool = False
    rules: Sequence[Source] = ()
    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    needed: bool = False
    extractor: Method = "exact"
    extract_time: float | None = None
    dump_egraph: Path | None = None
    effort: str = "normal"
    phases: Path | None = None
    progress: Callable[[str], None] = lambda stage: None

    @property
    def least(self) -> Label:
        """What a rule must promise to be used."""
        return Label.EXACT if self.exact else Label.REAL if self.strict else Label.FINITE

"""Agreement: the values inside two models that are equal in each run of the judge.

The input is the names of values that both models compute, and the arrays of each run. The output is
the names whose arrays were the same bits, or as near as the original's own sensitivity allows, in
all runs. A name that is missing tells nothing: it may stand for two values, or its arrays may take
too much memory. Few runs are spent on values inside, because they only save runs of regions
(eqsat/verification/inside.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import onnx

from eqsat.frozen import frozen
from eqsat.runtime.session import OnnxRuntimeSession, Session
from eqsat.verification import tolerance
from eqsat.verification.leaves import leaves, signature
from eqsat.verification.request import Request
from eqsat.verification.steering import Decided

_HEAVY_BYTES = 1 << 23  # of the arrays of one run: beyond, to explain rounding takes longer than regions do
_MOST_BYTES = 1 << 27  # of the arrays of one run: beyond, keeping and comparing them takes longer than regions do
_FREE = 16  # the size that is reckoned for a dimension of which nothing is known
_WIDTH = 4  # the bytes of most elements
_FAR = 0.01  # a larger error, as a share of the value, is no rounding


@frozen(slots=False)
class Doubt:
    """A value inside that differs in a run: its name, and the differences of its parts."""

    name: str
    parts: list[tuple[int, tolerance.Difference]]


class Agreement:
    """The values inside that have agreed so far."""

    def __init__(self, request: Request, original: Session) -> None:
        self._decided = request.steering.decided
        # Only the runtime tells the sizes of values before it runs.
        self._shapes = original.shapes if isinstance(original, OnnxRuntimeSession) else {}
        self.names = [name for name in request.inside if name in self._shapes]
        """The names of these values, in a fixed order."""
        self.seconds = 0.0  # spent on these values
        self.heavy = False
        """Whether the arrays of a run were so large that only those of the same bits count as equal, and
        that few more runs are spent on them.
        """

    @property
    @contextmanager
    def timed(self) -> Generator[None]:
        """Counts the seconds of a block."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - begun

    def affordable(self, sizes: Mapping[str, int]) -> list[str]:
        """Returns the names of the values after dropping all behind those that take too much memory
        together, in a run with these sizes of named dimensions.
        """
        unknown = max(sizes.values(), default=_FREE)
        left = _MOST_BYTES
        for place, name in enumerate(self.names):
            left -= _WIDTH * math.prod(size if isinstance(size, int) else sizes.get(size or "", unknown) for size in self._shapes[name])
            if left < 0:
                self.names = self.names[:place]
                break
        return self.names

    def clear(self) -> None:
        """Forgets all values."""
        self.names = []

    def doubts(self, originals: Mapping[str, Any], optimized: Sequence[Any]) -> list[Doubt]:
        """Returns the values that differ in a run: `originals` by name, and the optimized model's in
        the same order. Those of another type do not agree.
        """
        found: list[Doubt] = []
        size = sum(leaf.array.nbytes for value in originals.values() for leaf in leaves(value) if leaf.array is not None)
        self.heavy |= size > _HEAVY_BYTES
        if size > _MOST_BYTES:
            self.clear()
            return found
        for (name, a), b in zip(originals.items(), optimized, strict=True):
            if signature(a) != signature(b) or _is_far(a, b):
                self.drop([name])
            elif differences := tolerance.differences(a, b):
                if self.heavy:
                    self.drop([name])
                else:
                    found.append(Doubt(name, differences))
        return found

    def open(self, doubts: Sequence[Doubt]) -> list[Doubt]:
        """Returns the doubts that the noted changes of the original do not explain."""
        decided = self._decided
        return [doubt for doubt in doubts if not all(difference.explained(decided.get(doubt.name, Decided.CHOSEN)) for _, difference in doubt.parts)]

    def drop(self, names: Collection[str]) -> None:
        """Notes that these values do not agree."""
        self.names = [name for name in self.names if name not in names]


def _is_far(a: Any, b: Any) -> bool:
    """Tells whether two tensors of floats are not nearly the same: rounding does not explain it."""
    if not isinstance(a, np.ndarray):
        return False
    first, other = cast(np.ndarray, a).reshape(-1), cast(np.ndarray, b).reshape(-1)
    if first.dtype.name not in ("float32", "float64"):
        return False
    with np.errstate(all="ignore"):  # what is not finite is not far
        return bool(np.linalg.norm(first - other) > _FAR * np.linalg.norm(first))


def showing(model: bytes, names: Sequence[str]) -> bytes:
    """Returns a serialized model with more outputs. Messages that follow one another are merged, so
    the model need not be read.
    """
    graph = onnx.GraphProto(output=[onnx.ValueInfoProto(name=name) for name in names])
    return model + onnx.ModelProto(graph=graph).SerializeToString()

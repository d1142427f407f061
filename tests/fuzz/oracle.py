"""Whether an optimized model computes what the original computes: by bits, or within what rounding explains.

The tolerance is that of eqsat's own verification: how far the original's outputs move when its inputs do (eqsat/compare.py).
A NaN or an infinity at one place of one input is asked about as the rule checker asks (eqsat/checker/specials.py): a NaN may not
be lost, and where no NaN comes of an infinity, both models are infinite in the same elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from models import same

from eqsat import compare, judge
from eqsat.runtime import ReferenceSession, Session, open_runtime
from eqsat.samples import Plan

from .feeds import Feed


class Runs:
    """Both models on one engine."""

    def __init__(self, original: onnx.ModelProto, optimized: onnx.ModelProto, reference: bool = False) -> None:
        self._open = ReferenceSession if reference else open_runtime
        self._protos = (original, optimized)
        self.names = [value.name for value in original.graph.output]
        self.original: Session = self._open(original.SerializeToString())
        self.optimized: Session = self._open(optimized.SerializeToString())

    def difference(self, feed: Feed, expected: Sequence[Any], actual: Sequence[Any], exact: bool) -> str:
        """What tells the outputs apart; empty if nothing does."""
        for name, a, b in zip(self.names, expected, actual, strict=True):
            if compare.signature(a) != compare.signature(b):
                return f"output '{name}' is {compare.signature(a)} in the original and {compare.signature(b)} in the optimized model"
        if all(same(a, b) for a, b in zip(expected, actual, strict=True)):
            return ""
        if exact:
            name = next(name for name, a, b in zip(self.names, expected, actual, strict=True) if not same(a, b))
            return f"output '{name}' differs in bits"
        if feed.extreme:
            return ""  # where overflows part, real arithmetic says nothing
        if feed.special:
            return self._special(feed, expected, actual)
        return self._judged(feed)

    def _judged(self, feed: Feed) -> str:
        original, optimized = self._protos
        request = judge.Request(
            original=original.SerializeToString(),
            original_folder=None,
            optimized=optimized.SerializeToString(),
            optimized_folder=None,
            plan=Plan({}),
            outputs=tuple(self.names),
            dependent=frozenset(),
            random=frozenset(),
            coarsest=coarsest(original),
            inputs=feed.inputs,
            seed=0,
            patience=10.0,
        )
        found = judge.judge(request)
        return found.reason if found.status == judge.DIFFERENT else ""

    def _special(self, feed: Feed, expected: Sequence[Any], actual: Sequence[Any]) -> str:
        for name, a, b in zip(self.names, expected, actual, strict=True):
            for left, right in zip(compare.leaves(a), compare.leaves(b), strict=True):
                if left.array is None or right.array is None or not compare.is_float(left.array):
                    continue
                x, y = compare.plain(left.array), compare.plain(right.array)
                if feed.style == "nan" and (np.isnan(x) & np.isfinite(y)).any():
                    return f"output '{name}' lost a NaN"
                if feed.style == "infinity" and not np.isnan(x).any() and not np.isnan(y).any() and (np.isfinite(x) != np.isfinite(y)).any():
                    return f"output '{name}' is infinite in one model only"
        return ""


def coarsest(model: onnx.ModelProto) -> str:
    from eqsat.verifier import _coarsest  # noqa: PLC2701

    return _coarsest(model)

"""The oracle: it tells whether an optimized model computes what the original computes.

The outputs must have the same bits, or differ only as rounding explains. The tolerance is derived:
it is the effect on the outputs of either model of disturbing all its floats (tests/fuzz/noise.py).
A NaN at one place of one input must reach the same elements of both. Where no infinity turns into a
NaN, both are infinite in the same elements. None of this applies to special inputs if a rule fired
that needs finite tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from eqsat.checker.kernels.evaluate import Mode, Program
from eqsat.runtime.session import Session, open_runtime
from eqsat.verification.leaves import is_float, leaves, plain, signature
from tests.support.models import same

from .feeds import Feed
from .noise import DRAWS, Apart, Opener, disturbed, everything

DIFFERS = "elements differ: "


class KernelSession:
    """A session of the checker's own kernels, which run some nodes that ONNX's reference does not."""

    engine = "kernels"

    def __init__(self, model: bytes) -> None:
        self._program = Program(onnx.load_model_from_string(model))

    def run(self, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> list[Any]:
        outputs = dict(zip(self._program.outputs, self._program.run(feeds, Mode.BITS).outputs, strict=True))
        return list(outputs.values()) if names is None else [outputs[name] for name in names]


class Runs:
    """Both models on one engine."""

    def __init__(self, original: onnx.ModelProto, optimized: onnx.ModelProto, opener: Opener = open_runtime) -> None:
        self._open = opener
        self._protos = (original, optimized)
        self._draws = DRAWS if opener is open_runtime else 4  # the other engines are a thousand times slower
        self.names = [value.name for value in original.graph.output]
        self.original: Session = self._open(original.SerializeToString())
        self.optimized: Session = self._open(optimized.SerializeToString())

    def arises(self, feed: Feed) -> bool:
        """Tells whether an infinity or a NaN arises inside either model.

        It may come from a pole, an overflow, or an argument outside a domain.
        """
        return any(_unbounded(self._open, proto, feed) for proto in self._protos)

    def difference(self, feed: Feed, expected: Sequence[Any], actual: Sequence[Any], exact: bool, alone: bool = False) -> str:
        """Returns the difference between the outputs; empty if there is none.

        With `alone`, both come from the original, on this engine and on another.
        """
        for name, a, b in zip(self.names, expected, actual, strict=True):
            if signature(a) != signature(b):
                return f"output '{name}' is {signature(a)} in the original and {signature(b)} in the optimized model"
        if all(same(a, b) for a, b in zip(expected, actual, strict=True)):
            return ""
        if exact:
            name = next(name for name, a, b in zip(self.names, expected, actual, strict=True) if not same(a, b))
            return f"output '{name}' differs in bits"
        if feed.extreme:
            return ""  # real arithmetic tells nothing once overflows differ
        if feed.special:
            return self._special(feed, expected, actual)
        return self._unexplained(feed, expected, actual, self._protos[:1] if alone else self._protos)

    def _unexplained(self, feed: Feed, expected: Sequence[Any], actual: Sequence[Any], disturbable: Sequence[onnx.ModelProto]) -> str:
        """Returns the difference that rounding in either model does not explain."""
        found: list[tuple[int, int, Apart]] = []
        for place, values in enumerate(zip(expected, actual, strict=True)):
            for number, (a, b) in enumerate(zip(*map(leaves, values), strict=True)):
                if a.array is not None and b.array is not None:
                    found.append((place, number, Apart(a.array, b.array)))
        found = [item for item in found if item[2].unequal.any()]
        for side, proto in enumerate(disturbable):
            for outputs in disturbed(proto, feed.inputs, self._open, self.names, self._draws):
                for place, number, apart in found:
                    parts = leaves(outputs[place])
                    array = parts[number].array if number < len(parts) else None
                    if array is not None:
                        apart.moved(side, array)
        reasons = [(self.names[place], apart.unexplained()) for place, _, apart in found]
        told = "; ".join(f"output '{name}' in {reason}" for name, reason in reasons if reason)
        return DIFFERS + told if told else ""

    def _special(self, feed: Feed, expected: Sequence[Any], actual: Sequence[Any]) -> str:
        for name, a, b in zip(self.names, expected, actual, strict=True):
            for left, right in zip(leaves(a), leaves(b), strict=True):
                if left.array is None or right.array is None or not is_float(left.array):
                    continue
                x, y = plain(left.array), plain(right.array)
                if feed.style == "nan" and (np.isnan(x) != np.isnan(y)).any():
                    return f"output '{name}' {'lost' if (np.isnan(x) & ~np.isnan(y)).any() else 'got'} a NaN"
                if feed.style == "infinity" and not np.isnan(x).any() and not np.isnan(y).any() and (np.isfinite(x) != np.isfinite(y)).any():
                    return f"output '{name}' is infinite in one model only"
        return ""


def _unbounded(opener: Opener, proto: onnx.ModelProto, feed: Feed) -> bool:
    results = everything(proto, feed.inputs, opener).values()
    arrays = [leaf.array for result in results for leaf in leaves(result) if leaf.array is not None]
    return any(is_float(array) and not np.isfinite(plain(array)).all() for array in arrays)

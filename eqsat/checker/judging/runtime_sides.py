"""Runtime sides: both sides as ONNX Runtime (optimizations off) and the reference of onnx compute
them.

The input is a case and values; the output is the outputs whose bits differ. A runtime rounds in an
order of its own, which may depend on sizes and on an element's position. An `exact` rule promises
equal bits there, too.

A runtime decides nothing if it does not take a side, fails on the values, or returns other sizes or
integers than ONNX defines. Results of integers alone have one right value, so our own kernels
compute them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper

from eqsat.checker.judging.differences import unequal_bits
from eqsat.checker.judging.verdict import Case
from eqsat.checker.kernels.call import Array, is_float
from eqsat.checker.kernels.evaluate import Feeds, Program
from eqsat.facts.fact import INTEGERS
from eqsat.runtime.session import OnnxRuntimeSession, ReferenceSession, Session

_ENGINES = (OnnxRuntimeSession, ReferenceSession)
# ONNX Runtime crashes when it divides the least integer by -1.
_DIVISIONS = frozenset({"Div", "Mod"})


class Parted(NamedTuple):
    """An output for which a runtime computes different bits on the two sides."""

    engine: str
    place: int
    left: Array
    right: Array
    unequal: Array


class Runtimes:
    """The runtimes that take both sides of a case."""

    def __init__(self, case: Case, left: Program, right: Program) -> None:
        self._sessions: list[tuple[Session, frozenset[str], Session, frozenset[str]]] = []
        types = {**left.types, **right.types}
        if set(types.values()) <= INTEGERS or _divides_integers((case.left, case.right), types):
            return
        models = [_open(side, case.free) for side in (case.left, case.right)]
        for engine in _ENGINES:
            try:
                first, second = (engine(model.SerializeToString()) for model in models)
            except Exception:  # runtimes raise exceptions of any type
                continue
            names = [frozenset(info.name for info in model.graph.input) for model in models]
            self._sessions.append((first, names[0], second, names[1]))

    def parted(self, feeds: Feeds, outputs: Sequence[Array]) -> Iterator[Parted]:
        """The outputs whose two sides differ in a bit when a runtime computes them.

        `outputs` are those of the left side by our own kernels, with the sizes and integers that
        ONNX defines.
        """
        for left, first, right, second in self._sessions:
            try:
                pair = [session.run({name: feeds[name] for name in names}) for session, names in ((left, first), (right, second))]
            except Exception:
                continue
            for place, (a, b, output) in enumerate(zip(*pair, outputs, strict=True)):
                ours, theirs = np.asarray(a), np.asarray(b)
                if ours.shape == theirs.shape == output.shape and ours.dtype == theirs.dtype and (is_float(output) or np.array_equal(ours, output)):
                    unequal = unequal_bits(ours, theirs)
                    if unequal.any():
                        yield Parted(left.engine, place, ours, theirs, unequal)


def _divides_integers(sides: Sequence[onnx.ModelProto], types: dict[str, int]) -> bool:
    return any(node.op_type in _DIVISIONS and types.get(node.output[0]) in INTEGERS for side in sides for node in side.graph.node)


def _open(side: onnx.ModelProto, free: frozenset[str]) -> onnx.ModelProto:
    """A side with its arbitrary constants as inputs."""
    result = onnx.ModelProto()
    result.CopyFrom(side)
    graph = result.graph
    drawn = [tensor for tensor in graph.initializer if tensor.name in free]
    kept = [tensor for tensor in side.graph.initializer if tensor.name not in free]
    graph.input.extend(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in drawn)
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return result

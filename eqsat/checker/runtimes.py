"""Both sides of an instance as runtimes compute them: ONNX Runtime, its optimizations off, and the reference of onnx.

Comes in: a case, and values. Goes out: the outputs whose bits differ. A runtime rounds in orders of its own, which may depend on sizes and on
where an element stands; an `exact` rule promises its bits, too.

A runtime that does not take a side, or fails on the values, says nothing, nor does one whose output has other sizes than ONNX says, or other
integers. What is computed of integers alone is left to our own kernels: it has one right value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper

from eqsat.checker.call import Array, is_float
from eqsat.checker.differences import unequal_bits
from eqsat.checker.evaluate import Feeds, Program
from eqsat.checker.verdict import Case
from eqsat.facts import INTEGERS
from eqsat.runtime import OnnxRuntimeSession, ReferenceSession, Session

_ENGINES = (OnnxRuntimeSession, ReferenceSession)
_DIVISIONS = frozenset({"Div", "Mod"})  # of integers they end the process in ONNX Runtime, where the least one is divided by -1


class Parted(NamedTuple):
    """An output in which a runtime computes other bits on the right."""

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
            except Exception:  # runtimes raise what they like
                continue
            names = [frozenset(info.name for info in model.graph.input) for model in models]
            self._sessions.append((first, names[0], second, names[1]))

    def parted(self, feeds: Feeds, outputs: Sequence[Array]) -> Iterator[Parted]:
        """The outputs in which a runtime's bits differ; `outputs` are the left side's by our own kernels: the sizes and integers that ONNX says."""
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
    """A side whose arbitrary constants are inputs."""
    result = onnx.ModelProto()
    result.CopyFrom(side)
    graph = result.graph
    drawn = [tensor for tensor in graph.initializer if tensor.name in free]
    kept = [tensor for tensor in side.graph.initializer if tensor.name not in free]
    graph.input.extend(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in drawn)
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return result

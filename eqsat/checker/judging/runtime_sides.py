"""Runtime sides: both sides as ONNX Runtime (optimizations off) and the reference of onnx compute
them.

The input is a case and values; the output is the outputs whose bits differ. A runtime rounds in an
order of its own, which may depend on sizes and on an element's position. An `exact` rule promises
equal bits there, too.

A runtime decides nothing if it does not take a side, fails on the values, or returns other sizes or
integers than ONNX defines. Results of integers alone have one right value, and so have elements that
only move, which nothing rounds; our own kernels compute these.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper

from eqsat.checker.judging.differences import unequal_bits
from eqsat.checker.judging.verdict import Case
from eqsat.checker.kernels import moves
from eqsat.checker.kernels.call import Array, is_float
from eqsat.checker.kernels.evaluate import Feeds, Program
from eqsat.facts.fact import INTEGERS
from eqsat.model.imports import import_domains
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
        self._sessions: list[Session] = []
        self._inputs: frozenset[str] = frozenset()
        types = {**left.types, **right.types}
        sides = (case.left, case.right)
        if set(types.values()) <= INTEGERS or _moves_alone(sides) or _divides_integers(sides, types):
            return
        model = _both(case)
        self._inputs = frozenset(info.name for info in model.graph.input)
        for engine in _ENGINES:
            # Runtimes raise exceptions of any type.
            with contextlib.suppress(Exception):
                self._sessions.append(engine(model.SerializeToString()))

    def parted(self, feeds: Feeds, outputs: Sequence[Array]) -> Iterator[Parted]:
        """The outputs whose two sides differ in a bit when a runtime computes them.

        `outputs` are those of the left side by our own kernels, with the sizes and integers that
        ONNX defines.
        """
        for session in self._sessions:
            try:
                found = session.run({name: feeds[name] for name in self._inputs})
            except Exception:
                continue
            for place, (a, b, output) in enumerate(zip(found[: len(outputs)], found[len(outputs) :], outputs, strict=True)):
                ours, theirs = np.asarray(a), np.asarray(b)
                if ours.shape == theirs.shape == output.shape and ours.dtype == theirs.dtype and (is_float(output) or np.array_equal(ours, output)):
                    unequal = unequal_bits(ours, theirs)
                    if unequal.any():
                        yield Parted(session.engine, place, ours, theirs, unequal)


def _moves_alone(sides: Sequence[onnx.ModelProto]) -> bool:
    return all(node.op_type in moves.KERNELS and not node.domain for side in sides for node in side.graph.node)


def _divides_integers(sides: Sequence[onnx.ModelProto], types: dict[str, int]) -> bool:
    return any(node.op_type in _DIVISIONS and types.get(node.output[0]) in INTEGERS for side in sides for node in side.graph.node)


def _both(case: Case) -> onnx.ModelProto:
    """Both sides side by side, with their arbitrary constants as inputs. The right side's values get
    names of their own. A session takes longer to open than to run, so one does for both.
    """
    result = onnx.ModelProto()
    result.CopyFrom(case.left)
    graph, right = result.graph, case.right.graph
    drawn = {tensor.name: tensor for side in (right, graph) for tensor in side.initializer if tensor.name in case.free}
    graph.input.extend(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)) for name, tensor in drawn.items())
    kept = [tensor for tensor in case.left.graph.initializer if tensor.name not in case.free]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    shared = {"", *(info.name for info in graph.input)}

    def own(name: str) -> str:
        return name if name in shared else f"{name} on the right"

    for tensor in right.initializer:
        if tensor.name not in shared:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = own(tensor.name)
    for node in right.node:
        copy = graph.node.add()
        copy.CopyFrom(node)
        copy.name = ""
        copy.input[:], copy.output[:] = map(own, node.input), map(own, node.output)
    graph.output.extend(onnx.ValueInfoProto(name=own(info.name)) for info in right.output)
    import_domains(result)
    return result

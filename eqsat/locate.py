"""Where two models part: the regions of an optimized model that do not compute what the original's nodes compute.

Comes in: two models that were found to be different, and the draw that showed it. Goes out: a `Fault` for each region
that is wrong by itself. Each region is run on what the original really computes in front of it, so that no fault is
blamed on what comes behind it, and each in a process that may crash.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import onnx
from onnx import helper

from eqsat.examiner import Examiner
from eqsat.regions import GIVEN, Cut
from eqsat.request import DIFFERENT
from eqsat.samples import Draw, make_plan
from eqsat.subject import Subject
from eqsat.worker import RemoteError, WorkerDied, WorkerTimeout


@dataclass(frozen=True)
class Fault:
    """A part of the original that was optimized wrongly: the values that its nodes compute, those that they are made from, and what went wrong."""

    values: frozenset[str]
    before: frozenset[str]
    reason: str


def locate(original: Subject, optimized: Subject, draw: Draw | None, inputs: Mapping[str, np.ndarray[Any, Any]] | None, examiner: Examiner) -> list[Fault]:
    """The regions that are wrong; none where the models can not be taken apart, or no region is wrong by itself."""
    cut = Cut(original, optimized)
    borders = [cut.border(number) for number in range(len(cut))]
    given = {value.name for value in original.proto.graph.input}
    names = list(dict.fromkeys(name for border in borders for name in border if name not in given))
    try:
        whole = replace(examiner.request(original, optimized, make_plan(original.proto), inputs), optimized=None)
        values: dict[str, Any] = examiner.run("eqsat.runs:observe", whole, names, draw)
    except (NotImplementedError, ValueError, RemoteError, WorkerDied, WorkerTimeout):
        return []
    cut.learn({name: kind for name, value in values.items() if (kind := _type(value)) is not None})
    return [fault for number, border in enumerate(borders) if (fault := _fault(cut, number, border, values, examiner)) is not None]


def _fault(cut: Cut, number: int, border: Collection[str], values: Mapping[str, Any], examiner: Examiner) -> Fault | None:
    region = cut.region(number, GIVEN, examiner.memory_limit)
    found = cut.originals(number)
    if isinstance(region, str) or not found:
        return None
    inputs = {value.name: values[value.name] for value in region.original.proto.graph.input}
    judgement = examiner.ask(examiner.request(region.original, region.optimized, make_plan(region.original.proto), inputs))
    return Fault(found, cut.before(found), judgement.reason) if judgement.status == DIFFERENT else None


def _type(value: Any) -> onnx.TypeProto | None:
    """The type of a tensor; None for a value that is none."""
    if not isinstance(value, np.ndarray):
        return None
    array = cast("np.ndarray[Any, Any]", value)
    code = onnx.TensorProto.STRING if array.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_type_proto(code, array.shape)

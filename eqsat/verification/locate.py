"""Locating faults: the regions of an optimized model that compute something else than the original.

The input is two models that differ, and the draw that showed it. The output is a `Fault` for each
region that is wrong by itself, or whether there is none. Each region runs on the values that the
original really computes before it, so that a fault does not spread to later regions, and neither does
rounding. Each runs in a process that may crash.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import onnx
from onnx import helper

from eqsat.frozen import frozen
from eqsat.runtime.worker import RemoteError, WorkerDied, WorkerTimeout
from eqsat.verification.examiner import Examiner
from eqsat.verification.loaded_model import COPIES, LoadedModel
from eqsat.verification.regions import GIVEN, Cut
from eqsat.verification.request import DIFFERENT, EQUAL, Judgement
from eqsat.verification.sample_plan import Draw


@frozen(slots=False)
class Fault:
    """A wrongly optimized part of the original.

    It has the values that the part's nodes compute, the values before them, and the reason.
    """

    values: frozenset[str]
    before: frozenset[str]
    reason: str


def locate(
    original: LoadedModel, optimized: LoadedModel, draw: Draw | None, inputs: Mapping[str, np.ndarray[Any, Any]] | None, examiner: Examiner
) -> list[Fault]:
    """Returns the regions that are wrong by themselves.

    There are none if the models cannot be cut.
    """
    cut = Cut(original, optimized)
    values = _observed(cut, draw, inputs, examiner)
    if values is None:
        return []
    found: list[Fault] = []
    for number in range(len(cut)):
        around = cut.originals(number)
        judgement = _judged(cut, number, values, examiner) if around else None
        if judgement is not None and judgement.status == DIFFERENT:
            found.append(Fault(around, cut.before(around), judgement.reason))
    return found


def is_carried(original: LoadedModel, optimized: LoadedModel, draw: Draw | None, examiner: Examiner, seconds: float) -> bool:
    """Tells whether a difference spreads from rounding alone, as where TopK chooses among nearly equal
    elements: each region computes the same on values that the original really computes. False if a
    region does not, or if to find out takes longer than so many seconds.
    """
    cut, end = Cut(original, optimized), time.monotonic() + seconds
    values = _observed(cut, draw, None, examiner)
    if values is None:
        return False
    for number in range(len(cut)):
        judgement = _judged(cut, number, values, examiner, proved=True)
        if judgement is None or judgement.status != EQUAL or time.monotonic() > end:
            return False
    return True


def _observed(cut: Cut, draw: Draw | None, inputs: Mapping[str, np.ndarray[Any, Any]] | None, examiner: Examiner) -> dict[str, Any] | None:
    """Returns the values of the original at the borders of all regions; None if it does not run."""
    original, optimized = cut.models
    given = {value.name for value in original.proto.graph.input}
    names = list(dict.fromkeys(name for number in range(len(cut)) for name in cut.border(number) if name not in given))
    try:
        whole = replace(examiner.request(original, optimized, examiner.plan(original.proto), inputs), optimized=None)
        values: dict[str, Any] = examiner.run("eqsat.verification.runs:observe", whole, names, draw)
    except (NotImplementedError, ValueError, RemoteError, WorkerDied, WorkerTimeout):
        return None
    cut.learn({name: kind for name, value in values.items() if (kind := _type(value)) is not None})
    return values


def _judged(cut: Cut, number: int, values: Mapping[str, Any], examiner: Examiner, proved: bool = False) -> Judgement | None:
    """Returns the judgement of a region on the values of the original; None if there is no such region.
    If so asked, one that is `proved` equal does not run.
    """
    region = cut.region(number, GIVEN, examiner.memory_limit * COPIES)
    if isinstance(region, str):
        return None
    if proved and (region.is_same() or region.form() in examiner.proved):
        return Judgement(EQUAL)
    inputs = {value.name: values[value.name] for value in region.original.proto.graph.input}
    return examiner.ask(examiner.request(region.original, region.optimized, examiner.plan(region.original.proto), inputs))


def _type(value: Any) -> onnx.TypeProto | None:
    """Returns the type of a tensor; None for other values."""
    if not isinstance(value, np.ndarray):
        return None
    array = cast("np.ndarray[Any, Any]", value)
    code = onnx.TensorProto.STRING if array.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_type_proto(code, array.shape)

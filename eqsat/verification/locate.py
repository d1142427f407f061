"""Locating faults: the regions of an optimized model that compute something else than the original.

The input is two models that differ, and the draw that showed it. The output is a `Fault` for each
region that is wrong by itself. Each region runs on the values that the original really computes
before it, so that a fault does not spread to later regions. Each runs in a process that may crash.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
from eqsat.verification.request import DIFFERENT
from eqsat.verification.samples import Draw


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
    borders = [cut.border(number) for number in range(len(cut))]
    given = {value.name for value in original.proto.graph.input}
    names = list(dict.fromkeys(name for border in borders for name in border if name not in given))
    try:
        whole = replace(examiner.request(original, optimized, examiner.plan(original.proto), inputs), optimized=None)
        values: dict[str, Any] = examiner.run("eqsat.verification.runs:observe", whole, names, draw)
    except (NotImplementedError, ValueError, RemoteError, WorkerDied, WorkerTimeout):
        return []
    cut.learn({name: kind for name, value in values.items() if (kind := _type(value)) is not None})
    return [fault for number, border in enumerate(borders) if (fault := _fault(cut, number, border, values, examiner)) is not None]


def _fault(cut: Cut, number: int, border: Collection[str], values: Mapping[str, Any], examiner: Examiner) -> Fault | None:
    region = cut.region(number, GIVEN, examiner.memory_limit * COPIES)
    found = cut.originals(number)
    if isinstance(region, str) or not found:
        return None
    inputs = {value.name: values[value.name] for value in region.original.proto.graph.input}
    judgement = examiner.ask(examiner.request(region.original, region.optimized, examiner.plan(region.original.proto), inputs))
    return Fault(found, cut.before(found), judgement.reason) if judgement.status == DIFFERENT else None


def _type(value: Any) -> onnx.TypeProto | None:
    """Returns the type of a tensor; None for other values."""
    if not isinstance(value, np.ndarray):
        return None
    array = cast("np.ndarray[Any, Any]", value)
    code = onnx.TensorProto.STRING if array.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_type_proto(code, array.shape)

"""The verify stage: it tells whether one model computes the same as another.

The input is two models (eqsat/verification/loaded_model.py), and perhaps the user's inputs; the
output is a `Verdict`, plain data with figures. "equal" has one of two reasons. Either the models
are the same graph. Or both ran on the same inputs, and every output that is not random was the same
bits, or within the tolerance that the original's own sensitivity sets. Models that could not run
are "unverified", with the reason. No model can take this process down (eqsat/runtime/worker.py).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from eqsat.model.sources import Source
from eqsat.parameters import value_types
from eqsat.runtime.worker import Worker, shared
from eqsat.verification.examiner import Examiner
from eqsat.verification.inside import difference_inside, values_inside
from eqsat.verification.interface import checked_inputs, interface_change, same_graph
from eqsat.verification.loaded_model import LoadedModel, load_models, running_bytes
from eqsat.verification.model_verdict import Verdict
from eqsat.verification.region_by_region import by_regions
from eqsat.verification.regions import Cut
from eqsat.verification.request import DIFFERENT, EQUAL, UNVERIFIED
from eqsat.verification.whole import TooMuch, whole

__all__ = ["DIFFERENT", "EQUAL", "UNVERIFIED", "LoadedModel", "Verdict", "verify", "verify_files"]

_MANY_NODES = 20_000


def verify_files(
    original: Source,
    optimized: Source,
    *,
    inputs: Mapping[str, np.ndarray] | None = None,
    no_empty_inputs: bool = False,
    seed: int = 0,
    memory_limit: int | str = 1 << 30,
    custom_op_library: str | Path | None = None,
    time_limit: float = 60.0,
) -> Verdict:
    """Tells whether two models compute the same, by running both on the same inputs.

    Arguments:
        original: the model that sets the standard: a path, an `onnx.ModelProto`, an
            `onnx_ir.Model` or a `torch.onnx.ONNXProgram`.
        optimized: the model that is compared with it, in any of these kinds.
        inputs: the arrays to compare on, by the names of inputs; random ones by default.
        no_empty_inputs: draw no empty input; whether models agree there does not matter.
        seed: another seed draws other inputs.
        memory_limit: models whose weights need more bytes are judged region by region; an integer,
            or a text such as "2G". Large weights inside of a model need none, for the run maps them
            from a file.
        custom_op_library: the path of a library of custom operators for ONNX Runtime.
        time_limit: the seconds after which a call of the runtime is given up.

    Returns a `Verdict`, whose `status` is "equal", "different" or "unverified". Raises `InputError`
    if an argument is no model, or the original does not take the `inputs`.

    >>> import eqsat
    >>> from onnx.parser import parse_model
    >>> head = '<ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x) => (float[N, 4] y)'
    >>> twice = parse_model(head + "{ y = Add (x, x) }")
    >>> square = parse_model(head + "{ y = Mul (x, x) }")
    >>> eqsat.verify(twice, twice).status
    'equal'
    >>> verdict = eqsat.verify(twice, square)
    >>> verdict.status, verdict.output
    ('different', 'y')
    """
    return verify(
        *load_models(original, optimized),
        inputs=None if inputs is None else value_types.arrays("inputs", inputs),
        no_empty_inputs=value_types.flag("no_empty_inputs", no_empty_inputs),
        seed=value_types.whole_number("seed", seed),
        memory_limit=value_types.size_in_bytes("memory_limit", memory_limit),
        custom_op_library=None if custom_op_library is None else value_types.existing_file("custom_op_library", custom_op_library),
        time_limit=value_types.seconds("time_limit", time_limit),
    )


def verify(
    original: LoadedModel,
    optimized: LoadedModel,
    *,
    inputs: Mapping[str, np.ndarray] | None = None,
    no_empty_inputs: bool = False,
    seed: int = 0,
    memory_limit: int = 1 << 30,
    custom_op_library: str | Path | None = None,
    time_limit: float = 60.0,
    worker: Worker | None = None,
    proved: set[bytes] | None = None,
) -> Verdict:
    """Judges whether `optimized` computes the same as `original`, on random or given inputs.

    Raises `InputError` if the original does not take `inputs`, or if one of them is empty in spite of
    `no_empty_inputs`. Models whose weights need more than `memory_limit` bytes are judged region by
    region. `time_limit` is in seconds and holds for each call of the runtime.

    With `proved`, the regions that differ are judged first, whatever the `inputs`. The whole models
    run only if some region is not found equal. `proved` is the forms of regions that were found
    equal so far, which need no other run; this call adds those that it finds.
    """
    started = time.perf_counter()
    library = str(custom_op_library) if custom_op_library is not None else None
    examiner = Examiner(memory_limit, library, worker or shared(), seed, time_limit, set() if proved is None else proved, filled=no_empty_inputs)
    verdict = _verify(original, optimized, inputs, examiner, proved is not None)
    verdict.seconds = time.perf_counter() - started
    return verdict


def _verify(original: LoadedModel, optimized: LoadedModel, inputs: Mapping[str, np.ndarray] | None, examiner: Examiner, changes_first: bool) -> Verdict:
    reason = interface_change(original.proto, optimized.proto)
    if reason:
        return Verdict(DIFFERENT, reason)
    # Inputs that do not fit are a mistake even where nothing has to run.
    same = same_graph(original, optimized)
    if same and inputs is None:
        return _unchanged()
    try:
        plan = examiner.plan(original.proto)
    except NotImplementedError as error:
        return _unchanged() if same else Verdict(UNVERIFIED, str(error))
    if inputs is not None:
        inputs = checked_inputs(inputs, plan)
    if same:
        return _unchanged()
    if running_bytes(original.proto, optimized.proto) > examiner.memory_limit:
        return by_regions(original, optimized, examiner, "the weights do not fit in the memory limit")
    many = inputs is None and max(len(model.proto.graph.node) for model in (original, optimized)) > _MANY_NODES
    doubt = ""
    if many or changes_first:
        # Not every runtime loads in linear time. If models differ little, little has to run.
        why = f"there are more than {_MANY_NODES:,} nodes" if many else "only what differs had to run"
        verdict = by_regions(original, optimized, examiner, why)
        if verdict.status == EQUAL:
            return verdict
        doubt = verdict.reason
    cut = Cut(original, optimized) if inputs is None else None
    begun = time.monotonic()
    try:
        verdict = whole(original, optimized, inputs, plan, examiner, inside=[] if cut is None else values_inside(cut))
    except TooMuch as reason:
        # Parts that both models share need no run, and often that is nearly everything.
        verdict = by_regions(original, optimized, examiner, str(reason))
        if verdict.status == UNVERIFIED:
            verdict.reason = f"{reason}; {verdict.reason}"
        return verdict
    if doubt:
        verdict.notes.append(f"the whole models ran, for their regions did not tell: {doubt}")
    if verdict.status == EQUAL and cut is not None:
        _look_inside(verdict, cut, examiner, time.monotonic() - begun)
    return verdict


def _look_inside(verdict: Verdict, cut: Cut, examiner: Examiner, seconds: float) -> None:
    """Judges equal models, which ran in so many seconds, different if a value inside is wrong, which
    their outputs hide.
    """
    found = difference_inside(cut, verdict.agreed, examiner, seconds, verdict.seconds_inside)
    verdict.notes += found.notes
    if found.reason:
        verdict.status, verdict.reason = DIFFERENT, found.reason


def _unchanged() -> Verdict:
    return Verdict(EQUAL, notes=["unchanged: the two models are the same graph; nothing was run"])

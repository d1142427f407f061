"""Results that pass: the last step before a model is returned.

The input is an optimized model, the output a model that computes what the original computes. In
doubt, or after Ctrl-C, it is the original itself. A model that could not run, or that the settings
exempt, passes unverified; its verdict tells so.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from eqsat.deadline import INTERRUPTED
from eqsat.language.library import Library
from eqsat.model.model import Model
from eqsat.rewriting.attempt import Attempt
from eqsat.rewriting.job import Job
from eqsat.runtime.worker import shared
from eqsat.settings import Settings
from eqsat.verification.examiner import Examiner
from eqsat.verification.loaded_model import LoadedModel
from eqsat.verification.locate import Fault, locate
from eqsat.verification.mend import Mended, mend
from eqsat.verification.verify import DIFFERENT, EQUAL, UNVERIFIED, Verdict, verify


def passing(model: Model, original: onnx.ModelProto, folder: Path | None, job: Job, library: Library, found: Attempt) -> Mended:
    """Returns `found`, or the same without its wrong rewrites, and the verdict on it.

    `original` is the model that the caller gave, and `model` the optimizer's form of it.
    """
    if not job.settings.verify:
        return Mended(found, Verdict("skipped"))
    try:
        checked = _verified(model, original, folder, job, library, found)
    except KeyboardInterrupt:
        found.hit, found.model = INTERRUPTED, original
        checked = Mended(found, Verdict(EQUAL, notes=["interrupted: the result is the original model, unchanged"]))
    if checked.verdict.status == UNVERIFIED:
        checked.found.notes.append(f"not verified: {checked.verdict.reason}")
    return checked


def judged(original: onnx.ModelProto, result: onnx.ModelProto, folder: Path | None, settings: Settings, proved: set[bytes] | None = None) -> Verdict:
    """Returns the verdict on two models whose external data are under `folder`, as settings ask.
    With `proved`, regions that differ are judged first, as `verify` tells.
    """
    return verify(
        LoadedModel(original, folder),
        LoadedModel(result, folder),
        inputs=settings.inputs,
        no_empty_inputs=settings.no_empty_inputs,
        memory_limit=settings.memory_bytes,
        custom_op_library=settings.custom_op_library,
        worker=shared(),
        proved=proved,
    )


def _verified(model: Model, original: onnx.ModelProto, folder: Path | None, job: Job, library: Library, found: Attempt) -> Mended:
    settings = job.settings
    examiner = Examiner(settings.memory_bytes, settings.custom_operators, shared(), filled=settings.no_empty_inputs)

    def verified(result: onnx.ModelProto) -> Verdict:
        verdict = judged(original, result, folder, settings)
        if verdict.status in (EQUAL, UNVERIFIED) and result is not model.proto and not job.valuation.loads(result, folder):
            # Verification runs models without the optimizations of ONNX Runtime, and users with them.
            return Verdict(DIFFERENT, "ONNX Runtime loads the original, and not the result")
        return verdict

    def faults(result: onnx.ModelProto, verdict: Verdict) -> list[Fault]:
        return locate(LoadedModel(model.proto, folder), LoadedModel(result, folder), verdict.draw, settings.inputs, examiner)

    checked = Mended(found, verified(found.model))
    if checked.verdict.status == DIFFERENT and found.unflushed is not None:
        found.unflush()
        checked = Mended(found, verified(found.model))
    if checked.verdict.status in (EQUAL, UNVERIFIED):
        return checked
    return mend(model, original, job, library, checked, verified, faults)

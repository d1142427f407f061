"""Candidates: several good forms of one model, made with other targets, objectives and efforts.
Each is verified.

The first is the choice that a run makes without tuning, the last is the original. Equal models are
one candidate, under the name of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import onnx

from eqsat.cost.target import load_target
from eqsat.deadline import INTERRUPTED
from eqsat.egraph.phases import Plan
from eqsat.egraph.phases import load as load_plan
from eqsat.frozen import mutable
from eqsat.language.library import Library
from eqsat.model.model import Model
from eqsat.rewriting.attempt import Attempt
from eqsat.rewriting.job import Job
from eqsat.rewriting.trace import Trace
from eqsat.rewriting.turns import attempt
from eqsat.rewriting.valuation import Valuation
from eqsat.settings import Objective
from eqsat.verification.interface import same_graph
from eqsat.verification.loaded_model import LoadedModel
from eqsat.verification.mend import Mended
from eqsat.verification.passing import passing
from eqsat.verification.verify import UNVERIFIED

CHOICE = "choice"
ORIGINAL = "original"
_RUNTIME, _LAUNCHES = "onnxruntime-cpu", "launches"


@mutable
class Candidate:
    """A model that may be kept, and the job that made it."""

    name: str
    job: Job
    mended: Mended
    same: str | None = None  # the earlier candidate that equals it
    reason: str = ""  # why it cannot be kept; empty if it can

    @property
    def model(self) -> onnx.ModelProto:
        return self.mended.found.model


def make_candidates(
    model: Model, original: onnx.ModelProto, folder: Path | None, job: Job, library: Library, choice: Mended, progress: Callable[[str], None]
) -> list[Candidate]:
    """Returns the candidates, the choice first and the original last.

    `model` is the original in the requested opset; `choice` is the result of the run. An interrupt,
    or the time limit of the run, ends the making of candidates.
    """
    made = [Candidate(CHOICE, job, choice)]
    for name, other in _jobs(job):
        if job.deadline.hit is not None:
            break
        progress(f"tune: {name}")
        found = attempt(model, other, library)
        if found.hit == INTERRUPTED:
            break
        _add(Candidate(name, other, passing(model, original, folder, other, library, found)), made, folder)
    unchanged = Attempt(model.proto, Trace(), None, [])
    _add(Candidate(ORIGINAL, job, passing(model, original, folder, job, library, unchanged)), made, folder)
    return made


def _add(candidate: Candidate, made: list[Candidate], folder: Path | None) -> None:
    """Compares a candidate with the earlier ones, and adds it."""
    for other in made:
        if other.same is None and same_graph(LoadedModel(other.model, folder), LoadedModel(candidate.model, folder)):
            candidate.same = other.name
            break
    if candidate.mended.verdict.status == UNVERIFIED:
        candidate.reason = f"not verified: {candidate.mended.verdict.reason}"
    made.append(candidate)


def _jobs(job: Job) -> Iterator[tuple[str, Job]]:
    """Yields other jobs to try, without any that repeats an earlier one."""
    plan, old = job.plan, job.valuation
    simplify = Plan(plan.phases[:1])
    own = old.target.name
    wanted: list[tuple[str, Plan, str, Objective]] = [
        ("simplified", simplify, own, "time"),
        # A user's file of phases may have no other efforts.
        ("effort low", load_plan("low") if job.settings.phases is None else simplify, own, "time"),
        (f"target {_RUNTIME}", plan, _RUNTIME, "time"),
        (f"target {_RUNTIME}, objective launches", plan, _RUNTIME, "launches"),
        (f"target {_LAUNCHES}", plan, _LAUNCHES, "time"),
    ]
    tried: list[tuple[Plan, str, Objective]] = [(plan, own, old.objective)]
    for name, phases, target, objective in wanted:
        if (phases, target, objective) not in tried:
            tried.append((phases, target, objective))
            known = old.target if own == target else load_target(target).holding(old.target.weights)
            yield name, replace(job, plan=phases, valuation=Valuation(known, objective, old.sizes, old.library, old.worker, old.memory, old.verified))

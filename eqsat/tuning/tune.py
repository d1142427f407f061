"""Tuning a run: the candidates of a model race on ONNX Runtime, and the fastest becomes the result.

The choice of the run stays unless another candidate is faster by more than the measurements spread,
or the original is not slower. If a race cannot be run, the choice stays, and one line says why.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import onnx

from eqsat.frozen import frozen
from eqsat.language.library import Library
from eqsat.model.external_data import has_external_data
from eqsat.model.model import Model, count_nodes
from eqsat.rewriting.job import Job
from eqsat.rewriting.valuation import Valuation
from eqsat.runtime.interleaved import THREADS, NotTimed, time_rounds
from eqsat.runtime.worker import shared
from eqsat.tuning.race import FEWEST, Race, run_race
from eqsat.tuning.runnable import runnable_inputs
from eqsat.tuning.variants import Candidate, make_candidates
from eqsat.verification.loaded_model import weight_bytes
from eqsat.verification.mend import Mended

_COPIES = 3  # copies of the weights: the message, the session, and the kernels' packed ones


@frozen
class Tuned:
    """The candidate that is kept, and the result of the race."""

    kept: Candidate
    candidates: Sequence[Candidate]
    race: Race | None = None  # None if nothing was timed
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])  # of named dimensions
    note: str = ""  # a line for people
    seconds: float = 0.0  # seconds that measuring took

    def to_json(self, valuation: Valuation, folder: Path | None) -> dict[str, Any]:
        """Returns the race as plain data, with the times that the target predicts."""
        rows = [self._row(candidate, valuation, folder) for candidate in self.candidates]
        batches = 0 if self.race is None else self.race.batches
        return {"kept": self.kept.name, "threads": THREADS, "batches": batches, "sizes": dict(self.sizes), "seconds": self.seconds, "candidates": rows}

    def _row(self, candidate: Candidate, valuation: Valuation, folder: Path | None) -> dict[str, Any]:
        figures = valuation.figures(candidate.model, folder)
        row: dict[str, Any] = {
            "name": candidate.name,
            "same": candidate.same,
            "nodes": count_nodes(candidate.model),
            "predicted": None if valuation.target.counts or figures.refused else figures.totals.seconds,
            "measured": None,
            "ratio": None,
            "kept": candidate is self.kept,
            "reason": candidate.reason,
        }
        name = _standing(candidate)
        if self.race is not None and name in self.race.seconds:
            ratio = self.race.ratio(name, _standing(self.candidates[-1]))
            row["measured"] = self.race.median(name)
            row["ratio"] = [ratio.low, ratio.middle, ratio.high if math.isfinite(ratio.high) else None]
        return row


def tune(model: Model, original: onnx.ModelProto, folder: Path | None, job: Job, library: Library, choice: Mended) -> Tuned:
    """Returns the fastest of several models. `choice` is the one that the run found."""
    settings = job.settings
    candidates = make_candidates(model, original, folder, job, library, choice, settings.progress)
    begun = time.monotonic()
    try:
        return replace(_raced(candidates, original, folder, job), seconds=time.monotonic() - begun)
    except NotTimed as error:
        reason = " ".join(str(error).split())
    except KeyboardInterrupt:
        reason = "interrupted"
    return Tuned(candidates[0], candidates, note=f"not tuned: {reason}", seconds=time.monotonic() - begun)


def _raced(candidates: Sequence[Candidate], original: onnx.ModelProto, folder: Path | None, job: Job) -> Tuned:
    """Runs the race. Raises `NotTimed` if the choice or the original cannot be timed."""
    settings = job.settings
    first, last = _standing(candidates[0]), _standing(candidates[-1])
    models, left = _serialized(candidates, settings.memory_bytes)
    place = str(folder) if folder is not None and any(has_external_data(candidate.model) for candidate in candidates) else None

    def timed(feeds: Mapping[str, Any], rounds: Sequence[Sequence[str]]) -> dict[str, list[float]]:
        return time_rounds(models, place, job.valuation.library, feeds, rounds, shared())

    settings.progress("tune: inputs")
    feeds, sizes = runnable_inputs(original, settings.inputs, settings.assume_dims, lambda feeds: timed(feeds, [[last]]))
    for candidate in candidates:
        if candidate.name in models and candidate.name != last:
            try:
                timed(feeds, [[candidate.name]])
            except NotTimed as error:
                if candidate.name == first:
                    raise
                candidate.reason = str(error)
                del models[candidate.name]
    race = run_race(list(models), first, last, lambda rounds: timed(feeds, rounds), settings.tune_seconds, time.monotonic, settings.progress)
    winner = race.fastest(first, last)
    notes = [f"{left} models were not timed, as they need more memory than --memory-limit allows"] if left else []
    if len(models) > 1 and race.batches < FEWEST:
        notes.append(f"{settings.tune_seconds:g} s of measuring were too few to tell the models apart; --tune-seconds gives more")
    return Tuned(next(candidate for candidate in candidates if candidate.name == winner), candidates, race, sizes, "; ".join(notes))


def _standing(candidate: Candidate) -> str:
    """Returns the name under which a candidate races: that of the first candidate equal to it."""
    return candidate.same or candidate.name


def _serialized(candidates: Sequence[Candidate], memory: int) -> tuple[dict[str, bytes], int]:
    """Returns the different models that may be kept, as many as memory holds at once, and the
    number that it does not hold. The choice and the original come first.
    """
    standing = {_standing(candidates[0]), _standing(candidates[-1])}
    possible = [candidate for candidate in candidates if candidate.same is None and (not candidate.reason or candidate.name in standing)]
    found: dict[str, bytes] = {}
    used = left = 0
    for candidate in sorted(possible, key=lambda candidate: candidate.name not in standing):
        used += weight_bytes(candidate.model) * _COPIES
        if used <= memory:
            try:
                found[candidate.name] = candidate.model.SerializeToString()
                continue
            except ValueError:
                candidate.reason = "is too large to be handed to the runtime in one piece"
        else:
            candidate.reason = "needs more memory than --memory-limit allows"
        if candidate.name in standing:
            raise NotTimed(f"the model {candidate.reason}")
        left += 1
    return found, left

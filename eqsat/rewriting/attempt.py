"""An attempt: the result of rewriting a model by a set of rules, with the record of the run.

The input is a model and its record so far. Each turn (eqsat/rewriting/turn.py) makes an attempt. The
course of turns (eqsat/rewriting/turns.py) keeps the better one, whose record follows that of the turn
before.
"""

from __future__ import annotations

from dataclasses import field

import onnx

from eqsat.deadline import INTERRUPTED
from eqsat.frozen import mutable
from eqsat.garbage import give_back
from eqsat.rewriting.faint_weights import FLUSHED
from eqsat.rewriting.job import Job
from eqsat.rewriting.solved import Turn
from eqsat.rewriting.trace import Trace
from eqsat.runtime.worker import shared

STOPS = (INTERRUPTED, "time", "memory")
"""The limits that end the whole run."""


@mutable
class Attempt:
    """The result of one rewriting of the model, after its check."""

    model: onnx.ModelProto
    trace: Trace
    hit: str | None
    notes: list[str]
    closed: bool = False  # whether control flow stays even if its condition is known
    raised: bool = False  # whether low scores were raised in this turn
    unflushed: onnx.ModelProto | None = None  # the model with its subnormal weights, if these became zeros
    # By rule, the matches that the limit left unapplied.
    waiting: dict[str, int] = field(default_factory=dict[str, int])

    def unflush(self) -> None:
        """Takes the subnormal weights back."""
        assert self.unflushed is not None
        self.model, self.unflushed = self.unflushed, None
        self.notes.remove(FLUSHED)
        del self.trace.turns[-1:]

    def stay(self, original: onnx.ModelProto) -> None:
        """Takes the original in place of what was found."""
        self.model = original
        self.trace.forget()
        self.notes = ["the rewritten model was no better than the original, which stays as it is"]

    def ended(self, other: Attempt) -> None:
        """Takes over the limit that ended another turn."""
        self.hit, self.waiting = other.hit, other.waiting

    def settle(self, job: Job) -> None:
        """Finds out which rules a result uses that is kept."""
        priced = job.settings.reasons and job.deadline.hit is None
        self.trace.settle(shared(), job.settings.extractor if priced else None)

    def settle_before(self, job: Job) -> None:
        """Finds out which rules a result uses, and frees its e-graphs before prices or the next turn need
        memory. Reasons against rules wait for all turns, since a later one may fire more.
        """
        if not job.settings.reasons:
            self.settle(job)
        give_back(len(self.model.graph.node))

    def follow(self, before: Attempt, job: Job) -> None:
        """Adds the record of the turn that made the input of this one."""
        before.settle(job)
        self.trace.follow(before.trace)
        self.notes[:0] = [note for note in before.notes if note not in self.notes]

    def become(self, model: onnx.ModelProto, note: str, job: Job) -> None:
        """Makes another model of the same nodes the result, with a note."""
        if model is not self.model:
            self.notes.append(note)
            self.trace.turns += [Turn(self.model, model)] if job.keep else []
            self.model = model

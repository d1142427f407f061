"""The explanation of a run: the few rules that reach its cost, and the chain to its result.

The input is a model and settings, as for a run. The output is an `Explanation`, plain data. Each
step of the chain is verified by running the models before and after it, and can be written to a
folder, so that anybody can check it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import onnx

from eqsat.deadline import INTERRUPTED, Deadline, ends_on_interrupt
from eqsat.explain.chain import Change, links
from eqsat.explain.minimal import Minimal, minimal
from eqsat.language.library import Library
from eqsat.model.likeness import Keys
from eqsat.model.model import count_nodes
from eqsat.model.sources import Source
from eqsat.pipeline import begin
from eqsat.report import Run
from eqsat.rewriting.solved import Turn
from eqsat.rewriting.trace import fired_rules
from eqsat.rewriting.turns import attempt
from eqsat.rewriting.valuation import Valuation
from eqsat.settings import Settings, silent
from eqsat.verification.mend import Mended
from eqsat.verification.passing import judged, passing
from eqsat.verification.verify import DIFFERENT, EQUAL, UNVERIFIED, Verdict


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the chain, from the model before to the next one."""

    index: int
    change: Change
    before: float
    after: float
    """The predicted cost of the models."""
    nodes: int
    """The nodes of the model after the step."""
    verify: Verdict | None

    def to_json(self) -> dict[str, Any]:
        """Returns the step as plain data."""
        verdict = None if self.verify is None else self.verify.to_json()
        costs = {"before": self.before, "after": self.after, "nodes": self.nodes}
        return {"index": self.index, **asdict(self.change), **costs, "verify": verdict}


@dataclass(slots=True)
class Explanation:
    """Why a result is as it is."""

    model: str | None
    target: str
    objective: str
    unit: str
    """Of costs: seconds, launches or bytes."""
    before: float
    after: float
    """The predicted cost of the original and of the result."""
    nodes: tuple[int, int]
    fired: dict[str, int]
    used: list[str]
    """The rules of the chain, in the order of their first use."""
    minimal: Minimal | None
    steps: list[Step] = field(default_factory=list[Step])
    reached: bool = False
    """Whether the last model of the chain is the result."""
    hit: str | None = None
    """The limit that ended the run."""
    verdict: Verdict = field(default_factory=lambda: Verdict("skipped"))
    """The verdict on the result as a whole."""
    seconds: float = 0.0

    @property
    def status(self) -> str:
        """The verdict on the chain: "different" if the chain misses the result, or else the worst
        verdict on a step; "skipped" if no step was verified. A chain that Ctrl-C ended misses nothing.
        """
        found = {step.verify.status for step in self.steps if step.verify is not None}
        if DIFFERENT in found or not (self.reached or self.ended):
            return DIFFERENT
        if not self.reached:
            return UNVERIFIED
        if self.steps and not found:
            return "skipped"
        return EQUAL if found <= {EQUAL} else UNVERIFIED

    @property
    def ended(self) -> bool:
        """Tells whether Ctrl-C ended the run, its chain, or the search for fewer rules."""
        return self.hit == INTERRUPTED

    def to_json(self) -> dict[str, Any]:
        """Returns the explanation as plain data."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        sets = None if self.minimal is None else {**asdict(self.minimal), "proved": self.minimal.proved}
        kinds = [step.change.kind for step in self.steps]
        counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
        steps = [step.to_json() for step in self.steps]
        return {**plain, "minimal": sets, "steps": steps, "status": self.status, "kinds": counts, "verdict": self.verdict.to_json()}


Keep = Callable[[int, onnx.ModelProto, Path | None], None]
"""Receives the model after a step, with the number of the step and the folder of external data."""


def explain(source: Source, settings: Settings, *, seconds: float = 60.0, verify_steps: bool = True, keep: Keep | None = None) -> Explanation:
    """Explains the result that `optimize` gives with the same settings.

    The search for a minimal set of rules begins no further run after `seconds`; with 0 there is
    none. `keep` receives the models of the chain with their numbers, the original as number 0, and
    the folder of their external data. Raises `InputError` for mistakes of the caller.

    Ctrl-C ends the work within seconds; the explanation has what was found until then. A result
    that the search had until then is neither verified nor followed step by step.
    """
    this = begin(source, settings)
    this.job = replace(this.job, keep=True)
    with this.search(), this.stage("optimize"):
        found = attempt(this.original.model, this.job, this.library)
        this.checked = Mended(found, Verdict("skipped"))
    if found.hit != INTERRUPTED:
        with this.stage("verify"):
            this.checked = passing(this.original.model, this.original.lean, this.original.folder, this.job, this.library, found)
    found = this.checked.found
    cost = this.job.valuation.cost
    before, after = (cost(model, this.original.folder) for model in (this.original.lean, found.model))
    chain = _Chain(this, verify_steps, keep)
    sets: Minimal | None = None
    try:
        if found.hit != INTERRUPTED:
            chain.walk()
            sets = _minimal(this, chain.used, after, seconds) if seconds else None
    except KeyboardInterrupt:
        found.hit = INTERRUPTED
    return Explanation(
        this.original.path,
        this.job.valuation.target.name,
        this.job.valuation.objective,
        _unit(this.job.valuation),
        before,
        after,
        (count_nodes(this.original.lean), count_nodes(found.model)),
        fired_rules(found.trace),
        chain.used,
        sets,
        chain.steps,
        chain.reached,
        found.hit,
        this.checked.verdict,
        time.monotonic() - this.begun,
    )


def _unit(valuation: Valuation) -> str:
    if valuation.objective == "time":
        return "launches" if valuation.target.counts else "seconds"
    return "launches" if valuation.objective == "launches" else "bytes"


class _Chain:
    """The chain of a run, step by step."""

    def __init__(self, this: Run, verify_steps: bool, keep: Keep | None) -> None:
        self._this = this
        self._verify_steps = verify_steps
        self._keep = keep
        self._proved: set[bytes] = set()
        self.steps: list[Step] = []
        self.reached = False

    @property
    def used(self) -> list[str]:
        """The rules of the steps, in the order of their first use."""
        return list(dict.fromkeys(name for step in self.steps for name in step.change.rules))

    def walk(self) -> None:
        """Adds the steps one by one. Afterwards `reached` tells whether they lead to the result."""
        this, original = self._this, self._this.original
        found = this.checked.found
        model = original.lean
        converted = [] if original.model.proto is model else [Turn(model, original.model.proto)]
        if self._keep is not None:
            self._keep(0, model, original.folder)
        turns = [*converted, *found.trace.turns] if found.model is not model else []
        cost = this.job.valuation.cost(model, original.folder)
        for index, (change, after) in enumerate(links(turns, this.library, list(fired_rules(found.trace)), this.job.least), 1):
            this.settings.progress(f"chain, step {index}: {', '.join(dict.fromkeys(change.rules)) or change.kind}")
            before, cost = cost, this.job.valuation.cost(after, original.folder)
            verdict = judged(model, after, original.folder, this.settings, self._proved) if self._verify_steps else None
            if self._keep is not None:
                self._keep(index, after, original.folder)
            model = after
            self.steps.append(Step(index, change, before, cost, count_nodes(after), verdict))
        keys = Keys()
        self.reached = model is found.model or keys.of(model).same(keys.of(found.model))


def _minimal(this: Run, used: list[str], wanted: float, seconds: float) -> Minimal | None:
    """Returns a minimal set of rules that reaches the cost of the result. Ctrl-C ends the search with
    the least set so far.
    """
    original, settings = this.original, this.settings
    fired = list(fired_rules(this.checked.found.trace))
    end = time.monotonic() + seconds
    deadline = Deadline()
    job = replace(this.job, keep=False, deadline=deadline, settings=replace(settings, progress=silent))
    kept = frozenset(this.checked.left)

    def cost(names: Collection[str]) -> float:
        if deadline.hit:
            return math.inf
        settings.progress(f"which rules are needed: a run with {len(names)}, {max(0.0, end - time.monotonic()):.0f} s left")
        library = this.library.select(tuple(names), ()) if names else Library(())
        model = attempt(original.model, job, library, kept).model
        return math.inf if deadline.hit else job.valuation.cost(model, original.folder)

    with ends_on_interrupt(deadline, lambda: settings.progress("interrupted: finish with what was found")):
        found = minimal([used, fired], cost, wanted, lambda: bool(deadline.hit) or time.monotonic() > end)
    if deadline.hit:
        this.checked.found.hit = INTERRUPTED
    return found

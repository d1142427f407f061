"""The report: the findings of each stage of a run, as plain data that JSON can hold.

docs/report.md describes every field of the report.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import onnx

from eqsat.deadline import INTERRUPTED, Deadline, ends_on_interrupt
from eqsat.frozen import frozen, mutable
from eqsat.language.library import Library
from eqsat.language.syntax import Label
from eqsat.model.file_bytes import model_bytes
from eqsat.model.model import Model, count_nodes, count_operators
from eqsat.model.read import normalize
from eqsat.model.weight_file import WeightFile, joined
from eqsat.rewriting.job import Job
from eqsat.rewriting.trace import Trace, fired_rules
from eqsat.rewriting.unused import LOST, NOTHING, STAYED, Reason
from eqsat.rewriting.valuation import Figures, Valuation
from eqsat.settings import EFFORTS, Settings
from eqsat.verification.mend import Mended

Report: TypeAlias = dict[str, Any]


@frozen(slots=False)
class Original:
    """The model as the caller gave it, with fixed sizes in place of named dimensions."""

    lean: onnx.ModelProto
    """Its message, in which large weights may be apart."""
    model: Model
    """Its normal form, in the opset and with the inlining that the settings ask for. Its folder has the
    weights that are apart."""
    folder: Path | None
    """The folder of its external data."""
    path: str | None
    """The file it was read from, or None."""
    given: object = None
    """The object that the caller gave."""
    stripped: int = 0
    """The bytes of metadata that were dropped from the message."""
    notes: list[str] = field(default_factory=list[str])
    """Remarks on the model for the reader of the report."""
    weights: WeightFile | None = None
    """The file of its large weights, if they are apart."""
    fixed: Sequence[onnx.ValueInfoProto] = ()
    """The inputs with a default value that became constants."""

    @property
    def as_given(self) -> onnx.ModelProto:
        """Its message with all inputs, none of which the runtime can fold."""
        if not self.fixed:
            return self.lean
        found = onnx.ModelProto()
        found.CopyFrom(self.lean)
        found.graph.input.extend(self.fixed)
        return found

    @cached_property
    def proto(self) -> onnx.ModelProto:
        """Its message, with all weights that were inside."""
        return self.whole(self.lean)

    def whole(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Returns a model of the run with those weights inside that are apart."""
        return model if self.weights is None else joined(model, self.weights.folder)

    def inside(self) -> Original:
        """Returns the same with all weights inside, as it can go to another process."""
        if self.weights is None:
            return self
        proto = self.proto
        wanted = proto if self.model.proto is self.lean else self.whole(self.model.proto)
        return replace(self, lean=proto, model=normalize(wanted, self.folder, self.path), weights=None)


@mutable
class Run:
    """One run over one model. Each stage of the pipeline adds what it found."""

    settings: Settings
    begun: float = field(default_factory=time.monotonic)
    deadline: Deadline = field(init=False)
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    library: Library = field(init=False)
    job: Job = field(init=False)
    original: Original = field(init=False)
    checked: Mended = field(init=False)
    tuned_job: Job | None = None
    """The job that made the result, where tuning chose among the results of several."""
    tuned: Report | None = None
    """The race of candidates, if there was one."""
    needed: dict[str, bool] = field(default_factory=dict[str, bool])
    """By rule that fired, whether the result needs it; empty if the settings do not ask."""

    def __post_init__(self) -> None:
        self.deadline = Deadline.after(self.settings.time_limit)

    @contextmanager
    def search(self) -> Generator[None, None, None]:
        """Makes the first Ctrl-C end the search, whose result is kept and names the interrupt."""
        with ends_on_interrupt(self.deadline, lambda: self.settings.progress("interrupted: finish with what was found")):
            yield
        if self.deadline.hit == INTERRUPTED:
            self.checked.found.hit = INTERRUPTED

    @contextmanager
    def stage(self, name: str) -> Generator[None, None, None]:
        """Tells the caller that a stage begins, and records its time."""
        self.settings.progress(name)
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - start


def report_of(run: Run) -> Report:
    """Returns the report: the changes to the model, their reasons, and times."""
    original, checked, found = run.original.lean, run.checked, run.checked.found
    changed = found.model is not original
    trace = found.trace
    return {
        "input": run.original.path,
        "output": None,
        "no_empty_inputs": run.settings.no_empty_inputs,
        "nodes": {"before": count_nodes(original), "after": count_nodes(found.model), "bound": _bound(run) if changed else 0.0},
        "operators": _operators(original, found.model),
        "cost": _cost(run),
        "bytes": {"before": model_bytes(original) + run.original.stripped, "after": model_bytes(found.model), "stripped": run.original.stripped},
        "engine": {"name": run.settings.engine, "order": run.settings.order if run.job.greedy else None},
        "extraction": _extraction(run.settings.extractor, trace if changed else Trace()),
        "rules": _rules(run),
        "finite": [name for name in fired_rules(trace) if run.library.entry(name).listed.label is Label.FINITE],
        "saturation": _saturation(trace),
        "folded": trace.folded if changed else 0,
        "became": trace.became if changed else {},
        "left": checked.left,
        "verify": checked.verdict.to_json(),
        "tune": run.tuned,
        "limits": _limits(run),
        "notes": [*run.original.notes, *found.notes],
        "seconds": {**trace.seconds, **run.seconds, "total": time.monotonic() - run.begun},
    }


def _operators(original: onnx.ModelProto, result: onnx.ModelProto) -> dict[str, dict[str, int]]:
    """Returns how many nodes of each operator both models have, by the operator's name."""
    before, after = count_operators(original), count_operators(result)
    return {name: {"before": before[name], "after": after[name]} for name in sorted(before | after)}


def _bound(run: Run) -> float:
    """Returns a proved lower bound on the nodes of every choice; 0 if costs do not count nodes."""
    valuation = run.job.valuation
    return run.checked.found.trace.bound if valuation.objective == "launches" or (valuation.objective == "time" and valuation.target.counts) else 0.0


def _cost(run: Run) -> dict[str, Any]:
    """Returns the price of the model on the target, before and after."""
    valuation, folder = run.job.valuation, run.original.model.folder
    models = run.original.as_given, run.checked.found.model
    both = valuation.both(*models, folder)
    if both[1].refused:
        # ONNX Runtime refuses the result at the sizes that prices assume, so both are priced as written.
        valuation.asks = False
        both = valuation.both(*models, folder)
    before = _figures(valuation, models[0], both[0], folder)
    after = before if models[1] is models[0] else _figures(valuation, models[1], both[1], folder)
    sizes = valuation.assumed_by_name(models[0])
    return {"target": valuation.target.name, "objective": valuation.objective, "asked": both[1].asked, "sizes": sizes, "before": before, "after": after}


def _figures(valuation: Valuation, model: onnx.ModelProto, figures: Figures, folder: Path | None) -> dict[str, Any]:
    """Returns the figures of a model; of the runtime's, a target that counts has only launches."""
    totals = asdict(figures.totals)
    if valuation.target.counts:
        totals = {**dict.fromkeys(totals), "launches": figures.totals.launches}
    # Inferring the types of all values takes as long as encoding the model.
    peak = valuation.peak(model, folder) if valuation.objective == "memory" else None
    multiply_adds = None if valuation.target.counts else valuation.multiply_adds(model, figures)
    return {**totals, "multiply_adds": multiply_adds, "size": figures.stored, "memory": peak}


def _rules(run: Run) -> list[dict[str, Any]]:
    """Returns each rule that fired, and each that was left out because its result was wrong."""
    trace = run.checked.found.trace
    seconds: Counter[str] = Counter()
    for record in trace.records:
        seconds.update(record.seconds)
    fired = {
        name: {"matches": count, "seconds": seconds[name], **_use(run, name), "needed": run.needed.get(name)} for name, count in fired_rules(trace).items()
    }
    idle = {"used": False, "unused": None}
    fired |= {name: {"matches": 0, "seconds": 0.0, **idle, "needed": None, "dropped": True} for name in run.checked.dropped}
    return [{"name": name, "label": run.library.entry(name).listed.label.value, **record} for name, record in fired.items()]


def _use(run: Run, name: str) -> dict[str, Any]:
    """Returns whether the result uses a rule that fired, and else the reason, as far as these are
    known.
    """
    found = run.checked.found
    uses = found.trace.uses
    if name in uses.rules:
        return {"used": True, "unused": None}
    stays = found.model is run.original.lean
    reason = uses.reasons.get(name) or (Reason(STAYED if stays else LOST) if run.settings.reasons else None)
    # What is not traced back may come from any rule that is not known to have made something else.
    proved = uses.complete or (reason is not None and reason.kind not in (NOTHING, LOST))
    return {"used": False if proved else None, "unused": None if reason is None else reason.to_json()}


def _limits(run: Run) -> dict[str, Any]:
    """Returns the limit that ended the run, the option that lifts it, and the matches that were
    found and not applied.
    """
    hit = run.checked.found.hit
    following = {effort: f"--effort {more}" for effort, more in itertools.pairwise(EFFORTS)} if run.settings.phases is None else {}
    lifted = {
        **dict.fromkeys(("rounds", "growth"), following.get(run.settings.effort, "--phases")),
        "time": "--time-limit",
        "nodes": "--node-limit",
        "memory": "--memory-limit",
        "extract time": "--extract-time",
    }
    return {"hit": hit, "option": None if hit is None else lifted.get(hit), "waiting": run.checked.found.waiting if hit is not None else {}}


def _saturation(trace: Trace) -> dict[str, Any]:
    """Returns sizes and matches, summed over the model's graphs, and each step of each graph."""
    matches: Counter[str] = Counter()
    for record in trace.records:
        matches.update(record.matches)
    sizes = {key: sum(getattr(record, key) for record in trace.records) for key in ("classes", "nodes")}
    steps = [{"graph": graph, **step._asdict()} for graph, record in enumerate(trace.records) for step in record.iterations]
    return {"graphs": len(trace.records), "iterations": len(steps), **sizes, "matches": dict(sorted(matches.items())), "steps": steps}


def _extraction(method: str, trace: Trace) -> dict[str, Any]:
    """Returns how extraction chose the main graph; no figures if the original stayed."""
    choice = trace.choice
    figures = {key: None if choice is None else getattr(choice, key) for key in ("status", "cost", "bound", "gap")}
    return {"method": method, **figures}

"""The pipeline: a model comes in, an optimized model and the report of the run go out.

Data flows one way: read, then for each graph encode, saturate, extract and decode, then verify, then report.
Whatever happens on the way (a limit, Ctrl-C, a check that fails), what comes out is a valid model that computes
what the original computed: in doubt the original itself.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from eqsat.attempts import Attempt, Job, attempt, fired_rules
from eqsat.convert import bake, check_dimensions, convert, inline
from eqsat.dump import save_dump
from eqsat.errors import InputError
from eqsat.examiner import Examiner
from eqsat.extract import Method
from eqsat.language.library import Library, Source, built_in
from eqsat.language.library import load as load_rules
from eqsat.language.syntax import Label
from eqsat.locate import Fault, locate
from eqsat.mend import Mended, mend
from eqsat.model import Model, count_nodes
from eqsat.phases import load as load_plan
from eqsat.read import Source as ModelSource
from eqsat.read import load, normalize
from eqsat.report import Report, before_after
from eqsat.rewrite import Trace, written_bytes
from eqsat.settings import Settings
from eqsat.verifier import EQUAL, UNVERIFIED, Subject, Verdict, verify
from eqsat.worker import shared
from eqsat.write import has_external_data, save


@dataclass(slots=True)
class Result:
    """An optimized model, the report of the run, where its external data lie, and whether the original had such."""

    model: onnx.ModelProto
    report: Report
    folder: Path | None = None
    source: Path | None = None
    outside: bool = False

    def save(self, path: str | Path) -> None:
        """Writes the model to `path`, whole or not at all; external data go into one file beside it."""
        save(self.model, self.folder, Path(path), self.source, self.outside)


def run(source: ModelSource, settings: Settings) -> Result:
    """The optimized form of a model; raises `InputError` for what the caller must mend, and nothing else on purpose."""
    start, begun = time.perf_counter(), time.monotonic()
    worker = shared()
    worker.start()
    settings.progress("read")
    everything = load_rules(settings.rules, built_in())
    library = everything.select(settings.only, settings.skip)
    plan = load_plan(settings.effort, settings.phases)
    plan.check(group.name for group in everything.groups)
    label = str(source) if isinstance(source, (str, Path)) else None
    original, folder = load(source)
    bake(original, settings.dims)
    check_dimensions(original, settings.assume_dims)
    model = normalize(original, folder, label)
    proto = convert(inline(original) if settings.inline else original, settings.opset)
    if proto is not original:
        model = normalize(proto, folder, label)
    read = time.perf_counter() - start
    settings.progress("optimize")
    job = Job(settings, plan, None if settings.time_limit is None else begun + settings.time_limit)
    found = attempt(model, job, library)
    seconds: dict[str, float] = {"read": read, **found.trace.seconds}
    clock = time.perf_counter()
    checked = Mended(found, Verdict("skipped"))
    if settings.verify:
        settings.progress("verify")
        try:
            checked = _checked(model, job, library, found, original, folder)
        except KeyboardInterrupt:
            found.hit, found.model = "interrupted", original
            checked = Mended(found, Verdict(EQUAL, notes=["interrupted: the result is the original model, unchanged"]))
    seconds["verify"] = time.perf_counter() - clock
    found, verdict = checked.found, checked.verdict
    result, trace, notes = found.model, found.trace, found.notes
    if verdict.status == UNVERIFIED:
        notes.append(f"not verified: {verdict.reason}")
    if settings.dump_egraph is not None:
        if trace.dump is None:
            notes.append("no e-graph was written: the main graph was not extracted")
        else:
            save_dump(trace.dump, settings.dump_egraph)
    seconds["total"] = time.perf_counter() - start
    before, after = count_nodes(original), count_nodes(result)
    report: Report = {
        "input": label,
        "output": None,
        "nodes": before_after(before, after),
        "launches": before_after(before, after),
        "bytes": before_after(_model_bytes(original), _model_bytes(result)),
        "cost": {"before": before, "after": after, "bound": trace.bound if result is not original else 0.0},
        "extraction": _extraction(trace if result is not original else Trace(), settings.extractor),
        "rules": _rules(library, trace, checked.dropped, _needed(model, job, library, checked) if settings.needed else {}),
        "finite": [name for name in fired_rules(trace) if library.rule(name).rule.label is Label.FINITE],
        "saturation": _saturation(trace),
        "folded": trace.folded if result is not original else 0,
        "became": trace.became if result is not original else {},
        "left": checked.left,
        "verify": verdict.to_json(),
        "limits": {"hit": found.hit},
        "notes": notes,
        "seconds": seconds,
    }
    return Result(result, report, folder, Path(label) if label else None, has_external_data(original))


def _rules(library: Library, trace: Trace, dropped: Sequence[str], needed: Mapping[str, bool]) -> list[dict[str, Any]]:
    seconds: Counter[str] = Counter()
    for record in trace.records:
        seconds.update(record.seconds)
    fired = {name: {"matches": count, "seconds": seconds[name], "needed": needed.get(name)} for name, count in fired_rules(trace).items()}
    fired |= {name: {"matches": 0, "seconds": 0.0, "needed": None, "dropped": True} for name in dropped}
    return [{"name": name, "label": library.rule(name).rule.label.value, **record} for name, record in fired.items()]


def _needed(model: Model, job: Job, library: Library, checked: Mended) -> dict[str, bool]:
    """By rule that fired, whether all others together leave more."""
    nodes, kept = count_nodes(checked.found.model), frozenset(checked.left)
    timeless = Job(job.settings, job.plan, None)
    return {name: count_nodes(attempt(model, timeless, library.select((), (name,)), kept).model) > nodes for name in fired_rules(checked.found.trace)}


def _checked(model: Model, job: Job, library: Library, found: Attempt, original: onnx.ModelProto, folder: Path | None) -> Mended:
    """A result that passed verification, or the original, with the verdict."""
    settings = job.settings
    library_file = None if settings.custom_op_library is None else str(settings.custom_op_library)
    examiner = Examiner(settings.memory_limit, library_file, shared())

    def verified(result: onnx.ModelProto) -> Verdict:
        return verify(
            Subject(original, folder),
            Subject(result, folder),
            inputs=settings.inputs,
            memory_limit=settings.memory_limit,
            custom_op_library=settings.custom_op_library,
            worker=shared(),
        )

    def faults(result: onnx.ModelProto, verdict: Verdict) -> list[Fault]:
        return locate(Subject(model.proto, folder), Subject(result, folder), verdict.draw, settings.inputs, examiner)

    checked = Mended(found, verified(found.model))
    if checked.verdict.status in (EQUAL, UNVERIFIED):
        return checked
    return mend(model, original, job, library, checked, verified, faults)


def _saturation(trace: Trace) -> dict[str, Any]:
    """Sizes and matches, summed over the graphs of the model, and each step of each graph."""
    matches: dict[str, int] = {}
    for record in trace.records:
        for name, count in record.matches.items():
            matches[name] = matches.get(name, 0) + count
    sizes = {key: sum(getattr(record, key) for record in trace.records) for key in ("classes", "nodes")}
    steps = [{"graph": graph, **asdict(step)} for graph, record in enumerate(trace.records) for step in record.iterations]
    return {"graphs": len(trace.records), "iterations": len(steps), **sizes, "matches": dict(sorted(matches.items())), "steps": steps}


def _extraction(trace: Trace, method: Method) -> dict[str, Any]:
    """What the main graph's extraction came to; without figures where the original stayed."""
    if trace.choice is None:
        return {"method": method, "status": None, "bound": None, "gap": None}
    return {"method": method, "status": trace.choice.status, "bound": trace.choice.bound, "gap": trace.choice.gap}


def _model_bytes(model: onnx.ModelProto) -> int:
    return model.ByteSize() - model.graph.ByteSize() + written_bytes(model.graph)


def optimize(
    source: ModelSource,
    *,
    inputs: Mapping[str, np.ndarray[Any, Any]] | None = None,
    verify: bool = True,
    time_limit: float | None = None,
    node_limit: int | None = None,
    memory_limit: int | None = None,
    max_growth: int | None = None,
    inline: bool = False,
    dims: Mapping[str, int] | None = None,
    assume_dims: Mapping[str, int] | None = None,
    custom_op_library: str | Path | None = None,
    opset: str | int = "keep",
    exact: bool = False,
    strict: bool = False,
    rules: Sequence[Source] = (),
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    needed: bool = False,
    extractor: Method = "exact",
    extract_time: float | None = None,
    dump_egraph: str | Path | None = None,
    effort: str = "normal",
    phases: str | Path | None = None,
) -> Result:
    """The same function, smaller: optimizes a model given as a path, an `onnx.ModelProto` or an `onnx_ir.Model`.

    `inputs` are used for verification instead of random ones. `time_limit` is in seconds, `memory_limit` (of evaluation
    and verification) and `max_growth` (of the file) in bytes. `dims` bakes sizes of named dimensions in, `assume_dims`
    only assumes them where prices are compared. `rules` adds rule files, or texts of such, to the built-in ones; `only` and
    `skip` choose among all by the names of rules and groups; `exact` keeps every bit, and `strict` uses no rule that is true of finite
    numbers only. `needed` finds out which of the rules
    that fired the result needs, by running again without each. `extractor` is "exact", "greedy" or "tree", `extract_time` the seconds
    that choosing may take, and `dump_egraph` a file for the e-graph of the main graph, in the egraph-serialize format. `effort` is "low", "normal"
    or "high": how far rules that may grow the graph are followed; `phases` is a file that says it instead of rules/phases.toml.
    Raises `InputError` with one line where the input can not be used.
    """
    defaults = Settings()
    return run(
        source,
        Settings(
            inputs,
            verify,
            time_limit,
            defaults.node_limit if node_limit is None else node_limit,
            defaults.memory_limit if memory_limit is None else memory_limit,
            max_growth,
            inline,
            dims or {},
            assume_dims or {},
            custom_op_library,
            opset,
            exact,
            strict,
            rules,
            only,
            skip,
            needed,
            extractor,
            extract_time,
            None if dump_egraph is None else Path(dump_egraph),
            effort,
            None if phases is None else Path(phases),
        ),
    )


__all__ = ["InputError", "Result", "Settings", "optimize", "run"]

"""The pipeline: from a model to an optimized model and the report of the run.

Data flow one way: read, optimize (encode, saturate, choose and decode each graph), verify, tune if
asked, report. Whatever happens on the way, a limit, Ctrl-C or a failed check, the result is a valid
model that computes what the original computes. In doubt it is the original itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Concatenate, ParamSpec

import onnx

from eqsat.choose.dump import save_dump
from eqsat.cost.target import load_target
from eqsat.deadline import INTERRUPTED
from eqsat.egraph.phases import load as load_plan
from eqsat.errors import InputError
from eqsat.language.library import Library, built_in
from eqsat.language.library import load as load_rules
from eqsat.model.prepare import bake, check_dimensions, convert, inline
from eqsat.model.read import Source, load, normalize
from eqsat.model.write import has_external_data, save
from eqsat.report import Original, Report, Run, report_of
from eqsat.rewriting.turns import Job, attempt, needed_rules
from eqsat.rewriting.valuation import Valuation
from eqsat.runtime.worker import shared
from eqsat.settings import Settings, described_settings
from eqsat.tuning.tune import tune
from eqsat.verification.passing import passing

Options = ParamSpec("Options")


@dataclass(slots=True)
class Result:
    """An optimized model and the report of the run."""

    model: onnx.ModelProto
    report: Report
    original: Original

    def save(self, path: str | Path) -> None:
        """Writes the model to `path`, whole or not at all.

        External data go into one file beside it.
        """
        source = self.original.path
        save(self.model, self.original.folder, Path(path), None if source is None else Path(source), has_external_data(self.original.proto))


def run(source: Source, settings: Settings) -> Result:
    """Returns the optimized model and the report of the run.

    Raises `InputError` for mistakes of the caller, and nothing else on purpose.
    """
    shared().start()  # the worker loads its libraries while this process reads
    this = Run(settings)
    with this.stage("read"):
        this.library, this.job = _read_rules(this)
        this.original = _read_model(source, settings)
    with this.search():
        with this.stage("optimize"):
            found = attempt(this.original.model, this.job, this.library)
        with this.stage("verify"):
            this.checked = passing(this.original.model, this.original.proto, this.original.folder, this.job, this.library, found)
    if settings.tune and this.deadline.hit != INTERRUPTED:
        with this.stage("tune"):
            _tune(this)
    return _reported(this)


def _read_rules(this: Run) -> tuple[Library, Job]:
    """Returns the rules that the settings name, and the plan by which they run."""
    settings = this.settings
    everything = load_rules(settings.rules, built_in())
    plan = load_plan(settings.effort, None if settings.phases is None else Path(settings.phases))
    plan.check(group.name for group in everything.groups)
    target, library = load_target(settings.target), settings.custom_operators
    if strange := target.leaves_out - {group.name for group in everything.groups}:
        raise InputError(f"target {target.name}: leaves_out: there is no group of rules '{min(strange)}'; `eqsat rules list` has all groups")
    valuation = Valuation(target, settings.objective, settings.assume_dims, library, shared(), settings.memory_limit, settings.verify)
    return everything.select(settings.only, settings.skip), Job(settings, plan, valuation, this.deadline)


def _read_model(source: Source, settings: Settings) -> Original:
    """Returns the model in normal form, prepared as the settings ask."""
    path = str(source) if isinstance(source, (str, Path)) else None
    proto, folder = load(source)
    bake(proto, settings.dims)
    check_dimensions(proto, settings.assume_dims)
    model = normalize(proto, folder, path)
    wanted = convert(inline(proto) if settings.inline else proto, settings.opset)
    return Original(proto, model if wanted is proto else normalize(wanted, folder, path), folder, path)


def _tune(this: Run) -> None:
    """Makes the fastest of several candidates the result."""
    original = this.original
    tuned = tune(original.model, original.proto, original.folder, this.job, this.library, this.checked)
    this.tuned = tuned.to_json(this.job.valuation, original.folder)
    this.checked, this.tuned_job = tuned.kept.mended, tuned.kept.job
    if tuned.note:
        this.checked.found.notes.append(tuned.note)


def _reported(this: Run) -> Result:
    """Returns the result of a run, and writes its e-graph if the settings name a file."""
    checked, settings = this.checked, this.settings
    if settings.needed:
        this.needed = needed_rules(this.original.model, this.tuned_job or this.job, this.library, checked.found, frozenset(checked.left))
    if settings.dump_egraph is not None:
        if checked.found.trace.dump is None:
            checked.found.notes.append("no e-graph was written: the main graph was not extracted")
        else:
            save_dump(checked.found.trace.dump, Path(settings.dump_egraph))
    return Result(checked.found.model, report_of(this), this.original)


def _with_settings(make: Callable[Options, Settings]) -> Callable[Concatenate[Source, Options], Result]:
    """Returns `run` with the settings as keyword arguments, typed as `Settings` has them."""

    def optimize(source: Source, *arguments: Options.args, **settings: Options.kwargs) -> Result:
        return run(source, make(*arguments, **settings))

    optimize.__doc__ = f"""Returns a model of the same function that runs faster, and the report of the run.

    `source` is a path, an `onnx.ModelProto` or an `onnx_ir.Model`. Raises a one-line `InputError`
    if it cannot use an input. Keyword arguments, with the defaults of `eqsat.settings.Settings`:

{described_settings()}
    """
    parameters = (Parameter("source", Parameter.POSITIONAL_OR_KEYWORD), *signature(make).parameters.values())
    optimize.__signature__ = Signature(parameters, return_annotation="Result")  # pyright: ignore[reportFunctionMemberAccess]
    return optimize


optimize = _with_settings(Settings)

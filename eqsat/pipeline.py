"""The pipeline: from a model to an optimized model and the report of the run.

Data flow one way: read, optimize (encode, saturate, choose and decode each graph), verify, tune if
asked, report. Whatever happens on the way, a limit, Ctrl-C or a failed check, the result is a valid
model that computes what the original computes. In doubt it is the original itself. Stages that few
runs have are imported when they begin.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import onnx

from eqsat.choose.dump import save_dump
from eqsat.cost.target import Target, load_target
from eqsat.deadline import INTERRUPTED
from eqsat.egraph.phases import load as load_plan
from eqsat.errors import InputError
from eqsat.garbage import collecting_rarely
from eqsat.language.library import Library, built_in_for
from eqsat.language.library import load as load_rules
from eqsat.language.problems import nearest
from eqsat.model.experimental import without_experimental
from eqsat.model.external_data import has_external_data
from eqsat.model.file_bytes import model_bytes, written_bytes
from eqsat.model.known_versions import newer_ir
from eqsat.model.lean_file import load_lean
from eqsat.model.metadata import strip_metadata
from eqsat.model.model import count_operators
from eqsat.model.prepare import bake, check_dimensions, convert, default_inputs, inline, lists_weights, without_default_inputs
from eqsat.model.read import normalize
from eqsat.model.sources import Source, load, path_of, same_kind, to_onnx_ir
from eqsat.model.write import save
from eqsat.parameters import value_types
from eqsat.parameters.value_types import shown
from eqsat.report import Original, Report, Run, report_of
from eqsat.rewriting.job import Job
from eqsat.rewriting.turns import attempt, needed_rules
from eqsat.rewriting.valuation import Valuation
from eqsat.runtime.worker import shared
from eqsat.settings import Settings, described_settings
from eqsat.verification.passing import passing
from eqsat.verification.relations import with_fixed_sizes

Options = ParamSpec("Options")

_DEFAULTS = "{count} a default value that a caller may replace; --constant-defaults all makes constants of such inputs"
_LISTED = "the weights, which the model lists as inputs, became constants: nobody can replace them now; --constant-defaults none leaves them"


class Result:
    """An optimized model and the report of the run.

    `model` is an `onnx.ModelProto`, `report` a dictionary (docs/report.md), and `original` the
    model that was given. A notebook shows a result as a table and two pictures.
    """

    def __init__(self, lean: onnx.ModelProto, report: Report, original: Original) -> None:
        """`lean` is the model, whose large weights may be apart in the file of the original's."""
        self._lean = lean
        self.report = report
        self.original = original

    def __getstate__(self) -> dict[str, Any]:
        """Copies, also those in other processes, have their weights inside."""
        return {"_lean": self.model, "model": self.model, "report": self.report, "original": self.original.inside()}

    @cached_property
    def model(self) -> onnx.ModelProto:
        """The optimized model."""
        return self.original.proto if self._lean is self.original.lean else self.original.whole(self._lean)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to `path`, whole or not at all.

        External data go into one file beside it. Raises `InputError` if it cannot be written.
        """
        target = Path(value_types.path("path", path))
        source = self.original.path
        replaces = None if source is None else Path(source)
        if self.original.weights is None or self._lean is self.original.lean or "model" in vars(self):
            save(self.model, self.original.folder, target, replaces, self.original.weights is None and has_external_data(self.original.lean))
        else:
            save(self._lean, self.original.weights.folder, target, replaces)

    def as_given(self) -> Any:
        """Returns the model as the kind that `optimize` was given.

        This is an `onnx_ir.Model` or a `torch.onnx.ONNXProgram` for one of these, and else `model`
        itself, an `onnx.ModelProto`.
        """
        return same_kind(self.original.given, self.model, self.original.folder)

    def to_onnx_ir(self) -> Any:
        """Returns the model as an `onnx_ir.Model`; this needs the package onnx-ir."""
        return to_onnx_ir(self.model, self.original.folder)

    def __repr__(self) -> str:
        from eqsat.picture.notebook import verdict

        nodes = self.report["nodes"]
        return f"<eqsat.Result: {nodes['before']} -> {nodes['after']} nodes, {verdict(self.report)}>"

    def _repr_html_(self) -> str:
        """Returns the view of the result in a notebook."""
        from eqsat.picture.notebook import view

        return view(self.original.proto, self.model, self.report)


def run(source: Source, settings: Settings) -> Result:
    """Returns the optimized model and the report of the run.

    Raises `InputError` for mistakes of the caller, and nothing else on purpose.
    """
    with collecting_rarely():
        this = begin(source, settings, lean=True)
        with this.search():
            with this.stage("optimize"):
                found = attempt(this.original.model, this.job, this.library)
            with this.stage("verify"):
                this.checked = passing(this.original.model, this.original.lean, this.original.model.folder, this.job, this.library, found)
        if settings.tune and this.deadline.hit != INTERRUPTED:
            with this.stage("tune"):
                _tune(this)
        return _reported(this)


def begin(source: Source, settings: Settings, lean: bool = False) -> Run:
    """Returns a run that has read its rules and its model, and nothing more. If it is `lean`, large
    weights are apart.

    Raises `InputError` for mistakes of the caller.
    """
    # A worker that is a fork of this process has the schemas of all operators from the beginning.
    onnx.defs.has("Identity")
    shared().start()  # the worker loads its libraries while this process reads
    this = Run(settings)
    with this.stage("read"):
        this.library, this.job = _read_rules(this)
        this.original = _read_model(source, settings, this.job.valuation.target, lean)
        this.job = replace(this.job, weights=this.original.weights)
        this.job.valuation.target = this.job.valuation.target.holding(written_bytes(this.original.lean.graph))
        this.job.valuation.sizes = with_fixed_sizes(settings.assume_dims, this.original.lean)
    return this


def check_settings(settings: Settings) -> None:
    """Raises `InputError` if some rule, phase or target of the settings cannot be used."""
    _read_rules(Run(settings))


def _read_rules(this: Run) -> tuple[Library, Job]:
    """Returns the rules that the settings name, and the plan by which they run."""
    settings = this.settings
    target, custom = load_target(settings.target), settings.custom_operators
    if unknown := settings.domains - target.domains:
        known = f"it has those of {', '.join(sorted(target.domains))}" if target.domains else "it has none beside the standard's"
        raise InputError(f"target {target.name} has no operators of the domain '{min(unknown)}'; {known}")
    if settings.tune and not target.layouts:
        raise InputError(f"--tune times models on this machine's processor, and target {target.name} is for another device")
    everything = load_rules(settings.rule_sources, built_in_for(settings.domains, target.takes_in))
    plan = load_plan(settings.effort, None if settings.phases is None else Path(settings.phases))
    plan.check(group.name for group in everything.groups)
    for key, groups in (("leaves_out", target.leaves_out), ("hides_softmax", target.hides_softmax)):
        if strange := groups - {group.name for group in everything.groups}:
            raise InputError(f"target {target.name}: {key}: there is no group of rules '{min(strange)}'; `eqsat rules list` has all groups")
    valuation = Valuation(target, settings.objective, settings.assume_dims, custom, shared(), settings.memory_bytes, settings.verify)
    return everything.select(settings.only, settings.skip), Job(settings, plan, valuation, this.deadline)


def _read_model(source: Source, settings: Settings, target: Target, lean: bool) -> Original:
    """Returns the model in normal form, prepared as the settings ask. Large weights are apart if it is
    to be `lean`.
    """
    path = path_of(source)
    proto, folder, weights = load_lean(source) if lean else (*load(source), None)
    notes = [note] if (note := newer_ir(proto)) else []
    fixed: list[onnx.ValueInfoProto] = []
    if defaults := default_inputs(proto):
        listed = settings.constant_defaults == "weights" and lists_weights(proto)
        notes += [_LISTED] if listed else []
        if listed or settings.constant_defaults == "all":
            fixed = without_default_inputs(proto)
        else:
            notes.append(_DEFAULTS.format(count=f"{len(defaults)} inputs have" if len(defaults) > 1 else f"input '{defaults[0]}' has"))
    stripped = _stripped(proto) if settings.strip_metadata else 0
    bake(proto, settings.dims)
    check_dimensions(proto, settings.assume_dims)
    place = folder if weights is None else weights.folder
    model = normalize(proto, place, path)
    plain = without_experimental(inline(proto) if settings.inline else proto)
    wanted = convert(plain, settings.opset, lambda opset: target.latest_for(count_operators(proto), opset))
    model = model if wanted is proto else normalize(wanted, place, path)
    return Original(proto, model, folder, path, source, stripped, notes, weights, fixed)


def _stripped(proto: onnx.ModelProto) -> int:
    """Drops the metadata of a model, and returns how many bytes they took."""
    before = model_bytes(proto)
    strip_metadata(proto)
    return before - model_bytes(proto)


def _tune(this: Run) -> None:
    """Makes the fastest of several candidates the result."""
    from eqsat.tuning.tune import tune

    original = this.original
    tuned = tune(original.model, original.lean, original.model.folder, this.job, this.library, this.checked)
    this.tuned = tuned.to_json(this.job.valuation, original.model.folder)
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
        if arguments:
            raise InputError(f"optimize takes one model, and settings as keywords such as effort='low'; {shown(arguments[0])} has no keyword")
        _check_names(settings)
        return run(source, make(*arguments, **settings))

    optimize.__doc__ = _DOCUMENTATION.format(settings=described_settings())
    optimize.__qualname__ = "optimize"
    parameters = (Parameter("source", Parameter.POSITIONAL_OR_KEYWORD), *signature(make).parameters.values())
    optimize.__signature__ = Signature(parameters, return_annotation="Result")  # pyright: ignore[reportFunctionMemberAccess]
    return optimize


def _check_names(given: Iterable[str]) -> None:
    known = signature(Settings).parameters
    for name in given:
        if name not in known:
            raise InputError(f"optimize takes no argument '{name}'{nearest(name, known)}")


def settings_of(**given: Any) -> Settings:
    """Returns the settings that keyword arguments of `optimize` make.

    Raises `InputError` for one that cannot be used, or is not known.
    """
    _check_names(given)
    settings = Settings(**given)
    check_settings(settings)
    return settings


_DOCUMENTATION = """Returns a model that computes the same and runs faster, and the report of the run.

    Arguments:
        source: the model: a path, an `onnx.ModelProto`, an `onnx_ir.Model` or a
            `torch.onnx.ONNXProgram`. It is not changed.

    The other arguments are keywords, with the defaults of `eqsat.Settings`. One string stands for a
    list of one, and a size in bytes is an integer or a text such as "2G".

{settings}
        progress: a function that is called with the name of each stage as it begins

    Returns a `Result`: its `model`, its `report`, and methods that save and show it. Raises
    `InputError`, a message of one line, for an argument of a wrong type or a model that cannot be
    read.

    >>> import eqsat
    >>> from onnx.parser import parse_model
    >>> head = '<ir_version: 8, opset_import: ["" : 17]> twice (float[N, 4] x) => (float[N, 4] y)'
    >>> model = parse_model(head + "{{ a = Relu (x)  b = Relu (a)  y = Identity (b) }}")
    >>> result = eqsat.optimize(model, effort="low")
    >>> result
    <eqsat.Result: 3 -> 1 nodes, verified equal>
    >>> [node.op_type for node in result.model.graph.node]
    ['Relu']
    >>> eqsat.optimize(model, effort="fast")
    Traceback (most recent call last):
    eqsat.errors.InputError: effort is 'fast'; there are low, normal, high
    """

optimize = _with_settings(Settings)

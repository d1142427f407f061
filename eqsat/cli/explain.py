"""The command line of explanations: `eqsat explain MODEL`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqsat.cli.exit_codes import DIFFERENT, DONE, INTERRUPTED, UNVERIFIED
from eqsat.cli.options import add_settings, given_settings, seconds
from eqsat.cli.progress import shown_progress
from eqsat.cli.single_thread import stay_single_threaded
from eqsat.cli.streams import source_of
from eqsat.cli.summary import verification
from eqsat.errors import InputError
from eqsat.parameters.amounts import scaled
from eqsat.settings import Settings

if TYPE_CHECKING:
    import onnx

    from eqsat.explain.chain import Change
    from eqsat.explain.explanation import Explanation, Step
    from eqsat.explain.minimal import Minimal
    from eqsat.verification.verify import Verdict

_LEFT_OUT = ("engine", "order", "needed", "dump_egraph", "tune", "tune_seconds", "verify")
"""The settings of `optimize` that an explanation does not take."""

_NODES = 3  # that a line names
_UNITS = {"seconds": "s", "launches": " launches", "bytes": "B"}


def add_explain(commands: Any) -> None:
    """Adds `explain` to the commands of a parser."""
    explain = commands.add_parser("explain", help="tell which few rules a result needs, and show the rewrites that lead to it, step by step")
    explain.add_argument("model", metavar="MODEL", help="an ONNX file; - reads it from standard input")
    explain.add_argument("-o", "--output", metavar="DIR", help="write the model after each step there, and steps.json; DIR must be new or empty")
    explain.add_argument("--seconds", type=seconds, default=60.0, metavar="S", help="look for the fewest rules for about S seconds; 0: do not (default: 60)")
    explain.add_argument("--no-verify-steps", action="store_true", help="do not run the models before and after each step")
    explain.add_argument("--all", action="store_true", help="print each step with all its nodes, instead of one line for steps of the same rules")
    add_settings(explain, _settings())
    explain.add_argument("--json", action="store_true", help="print one JSON object")
    explain.set_defaults(command=_explain)


def _settings() -> tuple[str, ...]:
    return tuple(setting.name for setting in fields(Settings) if setting.name not in _LEFT_OUT)


def _explain(options: argparse.Namespace) -> int:
    folder = None if options.output is None else _folder(options.output)
    given = given_settings(options)
    stay_single_threaded()

    from eqsat.explain.explanation import explain

    files = None if folder is None else _Files(folder)
    with shown_progress(options.json) as progress:
        found = explain(
            source_of(options.model),
            Settings(**given, progress=progress),
            seconds=options.seconds,
            verify_steps=not options.no_verify_steps,
            keep=None if files is None else files.keep,
        )
    record = {**found.to_json(), "files": [] if files is None else files.names}
    if files is not None:
        (files.made() / "steps.json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record) if options.json else "\n".join(_lines(found, options.all, files)))
    if found.ended:
        print("eqsat: interrupted; this explains the best model that was found until then", file=sys.stderr)
        return INTERRUPTED
    return {"equal": DONE, "skipped": DONE if found.reached else DIFFERENT, "different": DIFFERENT}.get(found.status, UNVERIFIED)


def _folder(text: str) -> Path:
    """The folder for the steps. Raises `InputError` if it is no new or empty one."""
    folder = Path(text)
    if not text:
        raise InputError("-o is empty; give a folder")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{text}: is a file; the steps go into a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{text}: is not empty; the steps go into a folder of their own")
    if not folder.parent.is_dir():
        raise InputError(f"{folder.parent}: no such folder")
    return folder


class _Files:
    """The files of the steps."""

    def __init__(self, folder: Path) -> None:
        self.names: list[str] = []
        self.folder = folder

    def keep(self, index: int, model: onnx.ModelProto, data: Path | None) -> None:
        """Writes the model after a step; number 0 is the original."""
        from eqsat.model.external_data import has_external_data
        from eqsat.model.write import save

        self.made()
        self.names.append(f"step-{index:03}.onnx")
        save(model, data, self.folder / self.names[-1], None, has_external_data(model))

    def made(self) -> Path:
        """Makes the folder, unless it is there, and returns it."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: can not make the folder: {error.strerror}") from None
        return self.folder


def _lines(found: Explanation, whole: bool, files: _Files | None) -> list[str]:
    """The explanation for a person."""
    unit = _UNITS[found.unit]
    lines = [
        f"cost    {_amount(found.before, unit)} -> {_amount(found.after, unit)}, predicted for {found.target}",
        f"nodes   {found.nodes[0]} -> {found.nodes[1]}",
        *_rules(found, unit),
        "",
    ]
    if not found.steps:
        lines.append("no step: Ctrl-C ended the run before the first" if found.ended else "no step: the result is the original")
    elif whole:
        lines += [line for step in found.steps for line in _step(step, unit)]
    else:
        lines += _short(found.steps, unit)
    lines += ["", f"chain   {_chain(found)}", f"verify  {verification(found.verdict.to_json())}", f"took    {found.seconds:.1f} s"]
    if files is not None:
        lines.append(f"wrote   {len(files.names)} models and steps.json into {files.folder}")
        if found.steps:
            lines.append(f"check   eqsat verify {files.folder}/step-000.onnx {files.folder}/step-001.onnx, and so on")
    return lines


def _amount(amount: float, unit: str) -> str:
    return f"{scaled(amount)}{unit}" if unit in ("s", "B") else f"{amount:g}{unit}"


def _rules(found: Explanation, unit: str) -> list[str]:
    """The minimal set of rules, and what is lost without each."""
    sets: Minimal | None = found.minimal
    if sets is None:
        return [f"rules   {len(found.fired)} fired, {len(found.used)} in the chain"]
    bound = "" if sets.proved else "; more time may find fewer: --seconds"
    head = f"rules   {len(sets.rules)} of {len(found.fired)} that fired reach this cost ({_amount(sets.cost, unit)} with them alone{bound})"
    rows = [f"        {name:<34} without it {_amount(sets.without[name], unit)}" for name in _by_gain(sets) if name in sets.without]
    return [head, *rows, *(f"        {name}" for name in sets.rules if name not in sets.without)]


def _by_gain(sets: Minimal) -> list[str]:
    return sorted(sets.rules, key=lambda name: (-sets.without.get(name, 0.0), name))


def _short(steps: Sequence[Step], unit: str) -> list[str]:
    """One line for all steps of the same rules, in the order of their first use."""
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...], bool], list[Step]] = {}
    for step in steps:
        change = step.change
        alike.setdefault((change.kind, change.rules, change.laws, change.complete), []).append(step)
    lines = [f"{'steps':>9}  {'gain':>9}  rule"]
    for same in alike.values():
        numbers = ",".join(str(step.index) for step in same[:_NODES]) + ("..." if len(same) > _NODES else "")
        gain = sum(step.before - step.after for step in same)
        lines.append(f"{numbers:>9}  {_signed(gain, unit):>9}  {_title(same[0].change)}" + (f", {len(same)} steps" if len(same) > 1 else ""))
        lines.append(f"{'':22} {_nodes(same[0].change, _NODES)}")
    return lines


def _step(step: Step, unit: str) -> list[str]:
    verdict = "" if step.verify is None else f"  {step.verify.status}"
    costs = f"{_amount(step.before, unit)} -> {_amount(step.after, unit)}, {step.nodes} nodes"
    head = f"{step.index:>4}  {_title(step.change)}: {costs}{verdict}"
    return [head, *(f"        - {node}" for node in step.change.gone), *(f"        + {node}" for node in step.change.came)]


def _title(change: Change) -> str:
    """The rules of a step, and in how many places it is made."""
    if change.kind == "laws":
        return f"no rule: {', '.join(change.laws)}"
    named = ", then ".join(change.rules) or "rules that are not known"
    return named + ("" if change.complete or not change.rules else ", and others") + (f" in {change.places} places" if change.places > 1 else "")


def _nodes(change: Change, most: int) -> str:
    return f"{_some(change.gone, most)} -> {_some(change.came, most)}"


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more if names else "nothing"


def _signed(amount: float, unit: str) -> str:
    return ("-" if amount < 0 else "") + _amount(abs(amount), unit)


def _chain(found: Explanation) -> str:
    """The chain in one line: its steps by kind, and whether they were verified."""
    kinds = [step.change.kind for step in found.steps]
    names = {"rewrite": ("rewrite by one rule", "rewrites by one rule"), "joint": ("joint", "joint"), "laws": ("without a rule", "without a rule")}
    counts = [f"{kinds.count(kind)} {names[kind][kinds.count(kind) > 1]}" for kind in names if kind in kinds]
    text = f"{len(kinds)} steps: {', '.join(counts)}" if kinds else "0 steps"
    verdicts = [(step.index, step.verify) for step in found.steps if step.verify is not None]
    wrong = [f"step {index} is {verdict.status}: {verdict.reason}" for index, verdict in verdicts if verdict.status != "equal"]
    if not found.reached and found.ended:
        return f"{text}; Ctrl-C ended it before the result"
    if not found.reached:
        return f"{text}; it does NOT lead to the result, which is a defect of eqsat"
    if wrong:
        return f"{text}; {'; '.join(wrong)}"
    return f"{text}; it leads to the result{_checked([verdict for _, verdict in verdicts])}"


def _checked(verdicts: Sequence[Verdict]) -> str:
    """How steps were verified that are all equal."""
    if not verdicts:
        return ""
    whole = sum(verdict.regions is None and verdict.runs > 0 for verdict in verdicts)
    ways = {"what changes": len(verdicts) - whole, "the whole models": whole}
    return f", each step verified equal: {' and '.join(f'{count} on {way}' for way, count in ways.items() if count)}"

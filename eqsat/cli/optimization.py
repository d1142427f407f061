"""The command line of optimization: `eqsat optimize MODEL ...`.

Each model is optimized and checked on its own, one after another, with one worker process for all.
A failure of one model is reported and does not stop the others. Of several models, the exit code is
the greatest of all.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from eqsat.cli.destinations import Destination, destinations, make_folder
from eqsat.cli.exit_codes import DONE, INTERRUPTED, UNVERIFIED, failure
from eqsat.cli.options import add_settings, given_settings
from eqsat.cli.progress import shown_progress
from eqsat.cli.report_files import is_page, write_data, write_reports
from eqsat.cli.single_thread import stay_single_threaded
from eqsat.cli.streams import print_model, source_of
from eqsat.errors import InputError

if TYPE_CHECKING:
    from eqsat.pipeline import Result


def add_optimize(commands: Any) -> None:
    """Adds `optimize` to the commands of a parser."""
    optimize = commands.add_parser("optimize", help="make models smaller and faster, with the same results")
    optimize.add_argument("models", metavar="MODEL", nargs="+", help="an ONNX file; - reads it from standard input")
    optimize.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="where to write the result: a file (default: MODEL with .opt.onnx), a folder with / at its end, or - for standard output",
    )
    optimize.add_argument("--in-place", action="store_true", help="replace each model by its result")
    optimize.add_argument("--require-verified", action="store_true", help="write nothing and exit with 3 if the result could not be verified")
    add_settings(optimize)
    optimize.add_argument(
        "--report", metavar="FILE", action="append", default=[], help="write the report there: a page if FILE ends in .html, else JSON (repeatable)"
    )
    optimize.add_argument("--json", action="store_true", help="print the report as one JSON object")
    optimize.add_argument("-v", "--verbose", action="store_true", help="print the figures of each step and of each rule, too")
    optimize.add_argument("--quiet", action="store_true", help="print nothing but errors and warnings")
    optimize.set_defaults(command=_optimize)


def _optimize(options: argparse.Namespace) -> int:
    found = destinations(options)
    given = given_settings(options)
    if options.verbose or any(is_page(Path(path)) for path in options.report):
        given["reasons"] = True
    if options.require_verified and not given.get("verify", True):
        raise InputError("--require-verified and --no-verify exclude one another")
    if options.require_verified and options.dump_egraph:
        raise InputError("--dump-egraph writes before the result is verified, and --require-verified may have to write nothing")
    stay_single_threaded()
    if len(found) > 1:
        _check_once(given)
    # The bytes of a model are alone on standard output.
    text = sys.stderr if found[0].result is None else sys.stdout
    if len(found) == 1:
        code, report = _one(found[0], options, given, text)
        if options.json:
            print(json.dumps(report), file=text)
        return code
    return _several(found, options, given)


def _check_once(given: Mapping[str, Any]) -> None:
    """Raises `InputError` for options that no model could be optimized with."""
    from eqsat.pipeline import check_settings
    from eqsat.settings import Settings

    check_settings(Settings(**given))


def _one(destination: Destination, options: argparse.Namespace, given: Mapping[str, Any], text: Any) -> tuple[int, dict[str, Any]]:
    """Optimizes one model. Returns its exit code and its report."""
    from eqsat.pipeline import run
    from eqsat.settings import Settings

    source = source_of(destination.model)
    if destination.result is None and isinstance(source, str):
        _check_single_file(source)
    label = f"{destination.model}: " if len(options.models) > 1 else ""
    with shown_progress(options.quiet) as progress:
        settings = Settings(**given, progress=lambda stage: progress(f"{label}{stage}"))
        result = run(source, settings)
        report = result.report
        report["input"] = destination.model
        refused = options.require_verified and report["verify"]["status"] != "equal"
        if not refused:
            _save(result, destination, options)
            if len(options.models) == 1:
                write_reports([Path(path) for path in options.report], result, settings)
    for note in report["notes"]:
        print(f"eqsat: warning: {label}{note}", file=sys.stderr)
    if not (options.json or options.quiet):
        print("\n".join(_summary(report, options.verbose, text)), file=text)
    if refused:
        print(f"eqsat: error: {destination.model}: nothing was written, because the result is {_doubt(report['verify'])}", file=sys.stderr)
        return UNVERIFIED, report
    if report["limits"]["hit"] == "interrupted":
        print(f"eqsat: interrupted; {destination.shown} is the best model that was found until then", file=sys.stderr)
        return INTERRUPTED, report
    return DONE, report


def _check_single_file(path: str) -> None:
    """Raises `InputError` if a model keeps its weights in another file, before the work begins."""
    from eqsat.model.external_data import has_external_data
    from eqsat.model.sources import read_proto

    if has_external_data(read_proto(path)):
        raise InputError(f"{path}: keeps its weights in another file, so its result does not go to standard output; give a file: -o FILE")


def _save(result: Result, destination: Destination, options: argparse.Namespace) -> None:
    result.report["output"] = destination.shown
    if destination.result is None:
        print_model(result.model)
    else:
        make_folder(options)
        result.save(destination.result)


def _doubt(verdict: Mapping[str, Any]) -> str:
    return f"{verdict['status']}: {verdict['reason'] or 'no reason given'}"


def _summary(report: Mapping[str, Any], verbose: bool, stream: TextIO) -> list[str]:
    from eqsat.cli.operator_table import operator_table, width_of
    from eqsat.cli.summary import INDENT, details, summary

    nodes, *others = summary(report)
    operators = [" " * INDENT + line for line in operator_table(report["operators"], width_of(stream) - INDENT)]
    return [nodes, *operators, *others, *(details(report) if verbose else [])]


def _several(found: Sequence[Destination], options: argparse.Namespace, given: Mapping[str, Any]) -> int:
    """Optimizes several models in turn. Ctrl-C ends the turn; the models after it are not begun."""
    reports: list[dict[str, Any]] = []
    for number, destination in enumerate(found):
        if not (options.json or options.quiet):
            print(("\n" if number else "") + f"model   {destination.model}")
        try:
            code, report = _one(destination, options, given, sys.stdout)
            error = None if code == DONE else _doubt(report["verify"]) if code == UNVERIFIED else "interrupted"
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:
            code, error, report = INTERRUPTED, "interrupted", _empty(destination)
        except Exception as fault:
            code, line = failure(fault)
            error, report = str(fault), _empty(destination)
            print(line if destination.model in line else line.replace("error: ", f"error: {destination.model}: ", 1), file=sys.stderr)
        reports.append({**report, "error": error, "exit_code": code})
        if code == INTERRUPTED:
            reports += [{**_empty(late), "error": "not begun, because of an interrupt", "exit_code": INTERRUPTED} for late in found[number + 1 :]]
            break
    everything = {"models": reports}
    write_data([Path(path) for path in options.report], everything)
    if options.json:
        print(json.dumps(everything))
    failed = [report["input"] for report in reports if report["exit_code"]]
    if failed:
        print(f"eqsat: {len(failed)} of {len(found)} models failed: {', '.join(failed)}", file=sys.stderr)
    return max(report["exit_code"] for report in reports)


def _empty(destination: Destination) -> dict[str, Any]:
    """Returns the report of a model that has no result."""
    return {"input": destination.model, "output": None}

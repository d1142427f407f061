"""The command line: `eqsat optimize MODEL`, `eqsat verify A B`; `extract`, `rules`, `cost` and
`calibrate` have files of their own.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done, 1 our
fault or models that differ, 2 the caller's fault. Heavy modules are imported only when a command
runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eqsat.cli.calibration import add_calibrate
from eqsat.cli.cost import add_cost
from eqsat.cli.extraction import add_extract
from eqsat.cli.options import add_settings, given_settings
from eqsat.cli.progress import shown_progress
from eqsat.cli.rules import add_rules
from eqsat.deadline import INTERRUPTED
from eqsat.errors import InputError
from eqsat.version import __version__


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise InputError(f"{message} (see: {self.prog} --help)")


def _check_values(arguments: Sequence[str]) -> None:
    """Refuses `--option=--`, which argparse would read as no value at all."""
    for text in arguments:
        if text.startswith("--") and text.endswith("=--"):
            raise InputError(f"argument {text[:-3]}: '--' is no value")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="eqsat", description="An equality-saturation optimizer for ONNX models.")
    parser.add_argument("--version", action="version", version=f"eqsat {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    optimize = commands.add_parser("optimize", help="make a model smaller and faster, with the same results")
    optimize.add_argument("model", metavar="MODEL", help="an ONNX file")
    optimize.add_argument("-o", "--output", metavar="OUT", help="where to write the result (default: MODEL with .opt.onnx)")
    add_settings(optimize)
    optimize.add_argument(
        "--report", metavar="FILE", action="append", default=[], help="write the report there: a page if FILE ends in .html, else JSON (repeatable)"
    )
    optimize.add_argument("--json", action="store_true", help="print the report as one JSON object")
    optimize.add_argument("-v", "--verbose", action="store_true", help="print the figures of each step and of each rule, too")
    optimize.add_argument("--quiet", action="store_true", help="print nothing but errors and warnings")
    optimize.set_defaults(command=_optimize)

    verify = commands.add_parser("verify", help="tell whether two models compute the same")
    verify.add_argument("a", metavar="A", help="the original")
    verify.add_argument("b", metavar="B", help="the model to compare with it")
    add_settings(verify, ("inputs", "memory_limit", "custom_op_library"))
    verify.add_argument("--json", action="store_true", help="print the verdict as one JSON object")
    verify.set_defaults(command=_verify)
    add_extract(commands)
    add_rules(commands)
    add_cost(commands)
    add_calibrate(commands)
    return parser


def _keep_apart(source: Path, inputs: str | None, written: Sequence[tuple[str, Path]]) -> None:
    """A run must not write a file twice, or over a file that it reads. Only the model may be
    replaced by its result.
    """
    kept = {source.resolve(): "the model"}
    if inputs is not None:
        kept[Path(inputs).resolve()] = "the inputs"
    for what, path in written:
        before = kept.get(path.resolve())
        if before is not None and (what, before) != ("the result", "the model"):
            raise InputError(f"{path}: {what} would overwrite {before}")
        kept[path.resolve()] = what


def _result_file(options: argparse.Namespace, source: Path) -> Path:
    """The file of the result. Raises `InputError` if a file that the run writes can not be
    written.
    """
    result = Path(options.output or source.with_suffix(".opt.onnx"))
    written = [("the result", result), *(("the report", Path(path)) for path in options.report)]
    if options.dump_egraph:
        written.append(("the e-graph", Path(options.dump_egraph)))
    for _, path in written:
        if not path.parent.is_dir():
            raise InputError(f"{path.parent}: no such folder")
        if path.is_dir():
            raise InputError(f"{path}: is a folder, not a file to write")
    _keep_apart(source, options.inputs, written)
    return result


def _optimize(options: argparse.Namespace) -> int:
    source = Path(options.model)
    output = _result_file(options, source)
    for path in filter(None, (options.custom_op_library, source)):
        if not Path(path).exists():
            raise InputError(f"{path}: no such file")
    given = given_settings(options)

    from eqsat.cli.report_files import write_reports
    from eqsat.cli.summary import details, summary
    from eqsat.pipeline import run
    from eqsat.settings import Settings

    with shown_progress(options.quiet) as progress:
        settings = Settings(**given, progress=progress)
        result = run(source, settings)
        result.save(output)
        report = result.report
        report["output"] = str(output)
        write_reports([Path(path) for path in options.report], result, settings)
    for note in report["notes"]:
        print(f"eqsat: warning: {note}", file=sys.stderr)
    if options.json:
        print(json.dumps(report))
    elif not options.quiet:
        print("\n".join([*summary(report), *(details(report) if options.verbose else [])]))
    if report["limits"]["hit"] == INTERRUPTED:
        print(f"eqsat: interrupted; {report['output']} is the best model that was found until then", file=sys.stderr)
        return 130
    return 1 if report["verify"]["status"] == "different" else 0


def _verify(options: argparse.Namespace) -> int:
    given = given_settings(options)

    from eqsat.cli.summary import verification
    from eqsat.verification.verify import verify_files

    verdict = verify_files(options.a, options.b, **given).to_json()
    print(json.dumps(verdict) if options.json else verification(verdict))
    return 0 if verdict["status"] == "equal" else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that `arguments` (default: the process' own) name. Returns the exit code."""
    try:
        _check_values(sys.argv[1:] if arguments is None else arguments)
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
        return code
    except InputError as error:
        # Each problem in a rule file has a line with its place.
        print(error if error.located else f"eqsat: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("eqsat: interrupted; a file that was being written is whole or not there", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except Exception as error:
        if os.environ.get("EQSAT_TRACEBACK"):
            raise
        # Our fault: one line for the user; EQSAT_TRACEBACK shows the rest.
        text = " ".join(str(error).split())[:300]
        print(f"eqsat: internal error: {type(error).__name__}: {text} (please report it; EQSAT_TRACEBACK=1 shows more)", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""The command line: `eqsat optimize MODEL`, `eqsat verify A B`; `compare`, `extract`, `rules`, `cost`
and `calibrate` have files of their own.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done, 1 our
fault or models that differ, 2 the caller's fault. Heavy modules are imported only when a command
runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eqsat.cli.calibration import add_calibrate
from eqsat.cli.compare import add_compare
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
    optimize.add_argument("--report", metavar="FILE.json", help="write the report there")
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
    add_compare(commands)
    add_extract(commands)
    add_rules(commands)
    add_cost(commands)
    add_calibrate(commands)
    return parser


def _keep_apart(source: Path, inputs: str | None, written: Mapping[str, Path]) -> None:
    """A run must not write a file twice, or over a file that it reads. Only the model may be
    replaced by its result.
    """
    kept = {source.resolve(): "the model"}
    if inputs is not None:
        kept[Path(inputs).resolve()] = "the inputs"
    for what, path in written.items():
        before = kept.get(path.resolve())
        if before is not None and (what, before) != ("the result", "the model"):
            raise InputError(f"{path}: {what} would overwrite {before}")
        kept[path.resolve()] = what


def _files(options: argparse.Namespace, source: Path) -> dict[str, Path]:
    """The files that a run writes, by their purpose. Raises `InputError` if one can not be
    written.
    """
    asked = {"the result": options.output or source.with_suffix(".opt.onnx"), "the report": options.report, "the e-graph": options.dump_egraph}
    written = {what: Path(path) for what, path in asked.items() if path}
    for path in written.values():
        if not path.parent.is_dir():
            raise InputError(f"{path.parent}: no such folder")
        if path.is_dir():
            raise InputError(f"{path}: is a folder, not a file to write")
    _keep_apart(source, options.inputs, written)
    return written


def _optimize(options: argparse.Namespace) -> int:
    source = Path(options.model)
    written = _files(options, source)
    for path in filter(None, (options.custom_op_library, source)):
        if not Path(path).exists():
            raise InputError(f"{path}: no such file")
    given = given_settings(options)

    from eqsat.cli.summary import details, summary
    from eqsat.pipeline import run
    from eqsat.settings import Settings

    with shown_progress(options.quiet) as progress:
        result = run(source, Settings(**given, progress=progress))
    result.save(written["the result"])
    report = result.report
    report["output"] = str(written["the result"])
    if options.report:
        try:
            written["the report"].write_text(json.dumps(report, indent=2) + "\n")
        except OSError as error:
            raise InputError(f"{options.report}: can not write it: {error.strerror}") from None
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

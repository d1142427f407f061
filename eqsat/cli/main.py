"""The command line: `eqsat verify A B` is here; each other command has a file of its own.

Results go to standard output, progress and errors to standard error. eqsat/cli/exit_codes.py has
the exit codes. Heavy modules are imported only when a command runs.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from eqsat.cli.calibration import add_calibrate
from eqsat.cli.compare import add_compare
from eqsat.cli.cost import add_cost
from eqsat.cli.example import add_example
from eqsat.cli.exit_codes import CLOSED_PIPE, DIFFERENT, DONE, INTERRUPTED, UNVERIFIED, failure
from eqsat.cli.explain import add_explain
from eqsat.cli.extraction import add_extract
from eqsat.cli.low_rank_command import add_low_rank
from eqsat.cli.optimization import add_optimize
from eqsat.cli.options import add_settings, given_settings, prints_help
from eqsat.cli.rules import add_rules
from eqsat.cli.single_thread import stay_single_threaded
from eqsat.cli.streams import abandon_results, once, results_alone, source_of
from eqsat.errors import InputError
from eqsat.garbage import collect_rarely
from eqsat.version import __version__


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise InputError(f"{message} (see: {self.prog} --help)")


def _check_values(arguments: Sequence[str]) -> None:
    """Refuses `--option=--`, which argparse would read as no value at all."""
    for text in arguments:
        if text.startswith("--") and text.endswith("=--"):
            raise InputError(f"argument {text[:-3]}: '--' is no value")


def _joined(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments with `--eqsat OPTIONS` as one of them. Of two, argparse would take a single
    option, as in `--eqsat --no-verify`, for one of its own.
    """
    joined: list[str] = []
    for text in arguments:
        if joined and joined[-1] == "--eqsat":
            joined[-1] += f"={text}"
        else:
            joined.append(text)
    return joined


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="eqsat", description="An equality-saturation optimizer for ONNX models.")
    parser.add_argument("--version", action="version", version=f"eqsat {__version__}")
    parser.set_defaults(command=prints_help(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    add_optimize(commands)
    add_explain(commands)
    verify = commands.add_parser("verify", help="tell whether two models compute the same")
    verify.add_argument("a", metavar="A", help="the original; - reads it from standard input")
    verify.add_argument("b", metavar="B", help="the model to compare with it, or -")
    add_settings(verify, ("inputs", "no_empty_inputs", "memory_limit", "custom_op_library"))
    verify.add_argument("--json", action="store_true", help="print the verdict as one JSON object")
    verify.set_defaults(command=_verify)
    add_compare(commands)
    add_extract(commands)
    add_rules(commands)
    add_cost(commands)
    add_calibrate(commands)
    add_low_rank(commands)
    add_example(commands)
    return parser


def _verify(options: argparse.Namespace) -> int:
    given = given_settings(options)
    once([options.a, options.b])
    stay_single_threaded()

    from eqsat.cli.summary import verification
    from eqsat.verification.verify import verify_files

    verdict = verify_files(source_of(options.a), source_of(options.b), **given).to_json()
    print(json.dumps(verdict) if options.json else verification(verdict))
    return {"equal": DONE, "different": DIFFERENT}.get(verdict["status"], UNVERIFIED)


@contextmanager
def _ended_like_interrupted() -> Generator[None]:
    """Makes the signal by which systems end a process act as Ctrl-C does, so that temporary files go
    away and the best result so far is written.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that `arguments` (default: the process' own) name. Returns the exit code."""
    with _ended_like_interrupted():
        return _main(arguments)


def _run(arguments: Sequence[str]) -> int:
    try:
        given = _joined(arguments)
        _check_values(given)
        options = _parser().parse_args(given)
        code: int = options.command(options)
        return code
    finally:
        print(end="", flush=True)  # here, where a reader that has gone is no error yet


def _main(arguments: Sequence[str] | None) -> int:
    collect_rarely()
    results_alone()
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        print("eqsat: interrupted; a file that was being written is whole or not there", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        abandon_results()
        return CLOSED_PIPE
    except Exception as error:
        code, line = failure(error)
        print(line, file=sys.stderr)
        return code


if __name__ == "__main__":
    sys.exit(main())

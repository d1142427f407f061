"""The command line: `eqsat optimize MODEL`, `eqsat verify A B`; `extract` and `rules` have files of their own.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done, 1 our fault, 2 the
caller's fault. Everything heavy is imported only when a command runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqsat import __version__
from eqsat.cli_extract import METHODS, add_extract
from eqsat.cli_rules import add_rules, count
from eqsat.errors import InputError
from eqsat.phases import EFFORTS
from eqsat.progress import shown_progress

if TYPE_CHECKING:
    import numpy as np


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise InputError(f"{message} (see: {self.prog} --help)")


def _size(text: str) -> int:
    """A number of bytes: 1000, 64k, 2M, 1.5G."""
    factor = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(text[-1:].lower(), 1)
    try:
        number = float(text[:-1] if factor > 1 else text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of bytes such as 1000, 64k, 2M or 1.5G") from None
    if not 0 <= number * factor < 1 << 62:
        raise argparse.ArgumentTypeError(f"'{text}' is not a sensible number of bytes")
    return int(number * factor)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return seconds


def _dimension(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not name or not size.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=SIZE")
    return name, int(size)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="eqsat", description="An equality-saturation optimizer for ONNX models.")
    parser.add_argument("--version", action="version", version=f"eqsat {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    optimize = commands.add_parser("optimize", help="make a model smaller and faster without changing what it computes")
    optimize.add_argument("model", metavar="MODEL", help="an ONNX file")
    optimize.add_argument("-o", "--output", metavar="OUT", help="where to write the result (default: MODEL with .opt.onnx)")
    optimize.add_argument("--time-limit", metavar="S", type=_seconds, help="stop looking for more after S seconds; the result is valid anyway")
    optimize.add_argument("--node-limit", metavar="N", type=count, help="stop when the e-graph has N nodes")
    optimize.add_argument("--memory-limit", metavar="BYTES", type=_size, help="memory for evaluating constants and for verification (default: 1G)")
    optimize.add_argument("--max-growth", metavar="BYTES", type=_size, help="let the file grow by as much (default: 2k, for shape constants)")
    optimize.add_argument("--no-verify", action="store_true", help="do not compare the result with the original")
    optimize.add_argument("--inputs", metavar="FILE.npz", help="compare on these inputs instead of random ones")
    optimize.add_argument("--opset", metavar="N", default="keep", help="keep (default), latest, or the opset that the result is to have")
    optimize.add_argument("--inline", action="store_true", help="replace calls of model-local functions by their bodies")
    optimize.add_argument("--dim", metavar="N=SIZE", type=_dimension, action="append", default=[], help="give a named dimension its size for good (repeatable)")
    optimize.add_argument(
        "--assume-dim", metavar="N=SIZE", type=_dimension, action="append", default=[], help="assume a size where prices are compared (repeatable)"
    )
    optimize.add_argument("--custom-op-library", metavar="FILE", help="a library of custom operators for ONNX Runtime, used in verification")
    optimize.add_argument("--exact", action="store_true", help="use only what keeps every bit of every result")
    optimize.add_argument("--strict", action="store_true", help="use no rule that is true of finite numbers only: one through which NaN or infinity spreads")
    optimize.add_argument("--rules", metavar="FILE.rules", action="append", default=[], help="use the rules of this file as well (repeatable)")
    optimize.add_argument("--only", metavar="NAME", action="append", default=[], help="use only this rule or group of rules (repeatable)")
    optimize.add_argument("--skip", metavar="NAME", action="append", default=[], help="do not use this rule or group of rules (repeatable)")
    optimize.add_argument("--needed", action="store_true", help="find out which rules the result needs, by running again without each")
    optimize.add_argument("--effort", choices=EFFORTS, default="normal", help="how far rules that may grow the graph are followed (default: normal)")
    optimize.add_argument("--phases", metavar="FILE.toml", help="which rules run in which order, and how far, instead of rules/phases.toml")
    optimize.add_argument("--extractor", choices=METHODS, default="exact", help="prove the best choice (default), or search, or by the least trees")
    optimize.add_argument("--extract-time", metavar="S", type=_seconds, help="stop improving the choice after S seconds; the result is valid anyway")
    optimize.add_argument("--dump-egraph", metavar="FILE", help="write the main graph's e-graph there, for `eqsat extract`; compressed if FILE ends in .gz")
    optimize.add_argument("--report", metavar="FILE.json", help="write the report there")
    optimize.add_argument("--json", action="store_true", help="print the report as one JSON object")
    optimize.add_argument("-v", "--verbose", action="store_true", help="print what each step and each rule came to as well")
    optimize.add_argument("--quiet", action="store_true", help="print nothing but errors and warnings")
    optimize.set_defaults(command=_optimize)

    verify = commands.add_parser("verify", help="tell whether two models compute the same")
    verify.add_argument("a", metavar="A", help="the original")
    verify.add_argument("b", metavar="B", help="the model to compare with it")
    verify.add_argument("--inputs", metavar="FILE.npz", help="compare on these inputs instead of random ones")
    verify.add_argument("--memory-limit", metavar="BYTES", type=_size, help="memory that running the models may take (default: 1G)")
    verify.add_argument("--custom-op-library", metavar="FILE", help="a library of custom operators for ONNX Runtime")
    verify.add_argument("--json", action="store_true", help="print the verdict as one JSON object")
    verify.set_defaults(command=_verify)
    add_extract(commands, _seconds)
    add_rules(commands)
    return parser


def _load_inputs(path: str | None) -> dict[str, np.ndarray[Any, Any]] | None:
    if path is None:
        return None
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise InputError(f"{path}: holds one array; inputs are an .npz file with one array for each input")
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        raise InputError(f"{path}: can not read it: {error.strerror or error}") from None
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{path}: not an .npz file of plain arrays ({error})") from None


def _keep_apart(source: Path, inputs: str | None, written: Mapping[str, Path]) -> None:
    """One run must not write a file twice, or over what it reads; the model itself may be replaced by its result."""
    kept = {source.resolve(): "the model"}
    if inputs is not None:
        kept[Path(inputs).resolve()] = "the inputs"
    for what, path in written.items():
        before = kept.get(path.resolve())
        if before is not None and (what, before) != ("the result", "the model"):
            raise InputError(f"{path}: {what} would overwrite {before}")
        kept[path.resolve()] = what


def _sizes(option: str, pairs: Sequence[tuple[str, int]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, size in pairs:
        if sizes.setdefault(name, size) != size:
            raise InputError(f"{option} gives '{name}' two sizes, {sizes[name]} and {size}")
    return sizes


def _optimize(options: argparse.Namespace) -> int:
    source = Path(options.model)
    target = Path(options.output) if options.output else source.with_suffix(".opt.onnx")
    report_file = Path(options.report) if options.report else None
    dump = Path(options.dump_egraph) if options.dump_egraph else None
    optional = {"the report": report_file, "the e-graph": dump}
    written = {"the result": target, **{what: path for what, path in optional.items() if path is not None}}
    for path in written.values():
        if not path.parent.is_dir():
            raise InputError(f"{path.parent}: no such folder")
        if path.is_dir():
            raise InputError(f"{path}: is a folder, not a file to write")
    _keep_apart(source, options.inputs, written)
    sizes, assumed = _sizes("--dim", options.dim), _sizes("--assume-dim", options.assume_dim)
    if options.custom_op_library and not Path(options.custom_op_library).is_file():
        raise InputError(f"{options.custom_op_library}: no such file")
    if not source.exists():
        raise InputError(f"{source}: no such file")
    inputs = _load_inputs(options.inputs)

    from eqsat.pipeline import run
    from eqsat.report import details, summary
    from eqsat.settings import Settings

    settings = Settings(
        inputs=inputs,
        verify=not options.no_verify,
        time_limit=options.time_limit,
        max_growth=options.max_growth,
        inline=options.inline,
        dims=sizes,
        assume_dims=assumed,
        custom_op_library=options.custom_op_library,
        opset=options.opset,
        exact=options.exact,
        strict=options.strict,
        rules=[Path(path) for path in options.rules],
        only=options.only,
        skip=options.skip,
        needed=options.needed,
        extractor=options.extractor,
        extract_time=options.extract_time,
        dump_egraph=dump,
        effort=options.effort,
        phases=None if options.phases is None else Path(options.phases),
    )
    if options.node_limit is not None:
        settings.node_limit = options.node_limit
    if options.memory_limit is not None:
        settings.memory_limit = options.memory_limit
    with shown_progress(options.quiet) as progress:
        settings.progress = progress
        result = run(source, settings)
    result.save(target)
    result.report["output"] = str(target)
    if report_file is not None:
        try:
            report_file.write_text(json.dumps(result.report, indent=2) + "\n")
        except OSError as error:
            raise InputError(f"{report_file}: can not write it: {error.strerror}") from None
    for note in result.report["notes"]:
        print(f"eqsat: warning: {note}", file=sys.stderr)
    if options.json:
        print(json.dumps(result.report))
    elif not options.quiet:
        print("\n".join([*summary(result.report), *(details(result.report) if options.verbose else [])]))
    return 1 if result.report["verify"]["status"] == "different" else 0


def _verify(options: argparse.Namespace) -> int:
    inputs = _load_inputs(options.inputs)

    from eqsat.report import verification
    from eqsat.verifier import verify_files

    limits = {} if options.memory_limit is None else {"memory_limit": options.memory_limit}
    verdict = verify_files(options.a, options.b, inputs=inputs, custom_op_library=options.custom_op_library, **limits).to_json()
    print(json.dumps(verdict) if options.json else verification(verdict))
    return 0 if verdict["status"] == "equal" else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that `arguments` (default: the process' own) name; gives the exit code."""
    try:
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
        return code
    except InputError as error:
        # What is wrong in a rule file is said with its place, a line each.
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
        # Our fault: one line for the user, the rest for whoever asks for it.
        text = " ".join(str(error).split())[:300]
        print(f"eqsat: internal error: {type(error).__name__}: {text} (please report it; EQSAT_TRACEBACK=1 shows more)", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

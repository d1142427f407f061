"""The commands of the zoo: `python -m benchmarks.zoo export FOLDER [--only NAME ...] [--jobs N]` and
`python -m benchmarks.zoo quantize MODEL ... FOLDER [--form FORM ...]`.

NAME is an architecture (`bert`), an exporter's version of it (`bert.ts`) or one model
(`bert.ts.dynamic`). `bert-base`, `llama-16` and `vit-base` are hundreds of megabytes each, and are
exported only where they are named. Each model is exported in a process of its own; an exporter that
fails is a row with the reason. The command needs the extra `zoo`. `quantize` writes int8 and other
forms of exported models into another folder.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx

from benchmarks.zoo.names import Export, exports
from eqsat import count_nodes

FAILED = 1
FORM_NAMES = ("int8", "uint8", "operators", "dynamic", "float16")  # of `quantize.FORMS`, which takes seconds to import


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    exporting = commands.add_parser("export", help="export models into a folder")
    exporting.add_argument("folder", type=Path, metavar="FOLDER")
    exporting.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these models (default: all but the largest)")
    exporting.add_argument("--static", action="store_true", help="no models with symbolic sizes")
    exporting.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time (default: 1)")
    exporting.add_argument("--time-limit", type=float, default=600, metavar="S", help="seconds for each model (default: 600)")
    exporting.set_defaults(call=export_all)
    quantizing = commands.add_parser("quantize", help="write int8 and other forms of exported models")
    quantizing.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    quantizing.add_argument("folder", type=Path, metavar="FOLDER")
    quantizing.add_argument("--form", nargs="+", default=["int8"], choices=FORM_NAMES, metavar="FORM", help=f"{', '.join(FORM_NAMES)} (default: int8)")
    quantizing.set_defaults(call=quantize_all)
    one = commands.add_parser("export-one", help="export one model in this process")
    one.add_argument("name", metavar="NAME")
    one.add_argument("folder", type=Path, metavar="FOLDER")
    one.set_defaults(call=export_one)
    options = parser.parse_args()
    try:
        return options.call(options)
    except ModuleNotFoundError as error:
        print(f"error: the zoo needs the module {error.name}; install the extra: pip install -e '.[zoo]'", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def export_all(options: argparse.Namespace) -> int:
    """Prints a row for each model. The exit code tells whether all were exported."""
    from benchmarks.zoo.architectures import ARCHITECTURES

    usual = [name for name, architecture in ARCHITECTURES.items() if options.only or not architecture.large]
    chosen: list[Export] = [export for export in exports(usual, options.only) if not (options.static and export.dynamic)]
    options.folder.mkdir(parents=True, exist_ok=True)
    print("| model | nodes | MB | error | seconds | sha256 |\n|---|---|---|---|---|---|", flush=True)
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for row, good in pool.map(functools.partial(exported, folder=options.folder, time_limit=options.time_limit), chosen):
            failed += not good
            print(row, flush=True)
    print(f"\n{len(chosen) - failed} of {len(chosen)} models exported into {options.folder}")
    return FAILED if failed else 0


def exported(export: Export, folder: Path, time_limit: float) -> tuple[str, bool]:
    """Returns a row of the table, and whether the export succeeded."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.zoo", "export-one", export.name, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=time_limit)
    except subprocess.TimeoutExpired:
        return f"| {export.name} | failed: it took longer than {time_limit:.0f} s | | | | |", False
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        reason = said[-1] if said else f"exit code {done.returncode}"
        return f"| {export.name} | failed: {reason[:200].replace('|', '/')} | | | | |", False
    error = done.stdout.splitlines()[-1].replace("|", "/")
    data = (folder / f"{export.name}.onnx").read_bytes()
    nodes = count_nodes(onnx.load_from_string(data))
    taken = time.perf_counter() - started
    return f"| {export.name} | {nodes} | {len(data) / 1e6:.1f} | {error} | {taken:.0f} | {hashlib.sha256(data).hexdigest()[:12]} |", True


def export_one(options: argparse.Namespace) -> int:
    from benchmarks.zoo.architectures import ARCHITECTURES
    from benchmarks.zoo.export import export

    (wanted,) = (wanted for wanted in exports(ARCHITECTURES, [options.name]) if wanted.name == options.name)
    try:
        print(export(wanted, options.folder))
    except Exception as error:  # an exporter may raise anything; the reason is one line of the table
        print(reason(error), file=sys.stderr)
        return FAILED
    return 0


def quantize_all(options: argparse.Namespace) -> int:
    """Prints a row for each model. The exit code tells whether all were quantized."""
    from benchmarks.zoo.quantize import quantize

    options.folder.mkdir(parents=True, exist_ok=True)
    print("| model | nodes | error |\n|---|---|---|", flush=True)
    failed = 0
    for model, form in itertools.product(options.models, options.form):
        made = options.folder / f"{model.stem}.{form}.onnx"
        try:
            quantize(model, made, form)
            row = f"{count_nodes(onnx.load(made))} | "
        except Exception as error:  # the quantizer may raise anything; the reason is one line of the table
            failed += 1
            row = f" | {reason(error)[:200].replace('|', '/')}"
        print(f"| {made.stem} | {row} |", flush=True)
    return FAILED if failed else 0


def reason(error: BaseException) -> str:
    """Returns one line: the exception at the bottom of the chain, because exporters wrap it in
    general advice.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


if __name__ == "__main__":
    sys.exit(main())

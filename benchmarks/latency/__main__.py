"""The command: `python -m benchmarks.latency FOLDER|MODEL ... --cache FOLDER [--against NAMES]
...`.

Makes each optimizer's version of each model once, and keeps it in the cache. Then it times all
versions of a model side by side, and prints the table. A model has the description of its inputs
beside it, as the zoo writes it. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.inputs import Description, read_description
from benchmarks.latency.optimizers import AGAINST, CONTROL, KNOWN, chosen_optimizers
from benchmarks.latency.table import Row, header, line, remarks, summary
from benchmarks.latency.variants import kept_variant
from eqsat.comparing.child import Limits
from eqsat.comparing.making import as_it_is
from eqsat.comparing.optimizers import ORIGINAL, Optimizer, installed_version
from eqsat.comparing.prediction import predicted
from eqsat.comparing.stopwatch import CLOCKS, Request, measure, own_worker
from eqsat.comparing.variant import Variant

WRONG_USE = 2


def main() -> int:
    options = arguments()
    try:
        models = {model: read_description(model) for model in find_models(options.models)}
        optimizers = chosen_optimizers(options.against, shlex.split(options.eqsat))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_USE
    rows: list[Row] = []
    names = [ORIGINAL, *(optimizer.name for optimizer in optimizers), *([CONTROL] if options.control else [])]
    print(header(names), flush=True)
    for model, description in models.items():
        rows.append(make_row(model, description, optimizers, options))
        print(line(rows[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(record(rows, options), indent=2) + "\n", encoding="utf-8")
    for text in ("", *summary(rows), "", *remarks(rows)):
        print(text)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="FOLDER|MODEL", help="models, or folders with models")
    parser.add_argument("--cache", type=Path, required=True, metavar="FOLDER", help="the folder that keeps the optimizers' results")
    parser.add_argument("--against", default=",".join(AGAINST), metavar="NAMES", help=f"some of {','.join(KNOWN)} (default: {','.join(AGAINST)})")
    parser.add_argument("--eqsat", default="", metavar="OPTIONS", help='options of the command `eqsat optimize`, as in --eqsat="--effort low"')
    parser.add_argument("--rounds", type=int, default=1000, metavar="N", help="at most so many runs of each variant (default: 1000)")
    parser.add_argument("--seconds", type=float, default=60, metavar="S", help="about so long at most for the runs of one model (default: 60)")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall", help="processor time suits a machine that others use as well (default: wall)")
    parser.add_argument("--control", action="store_true", help="time the original a second time, which shows how noisy the times are")
    parser.add_argument("--time-limit", type=float, default=900, metavar="S", help="at most so long for one optimizer and one model (default: 900)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    return parser.parse_args()


def find_models(paths: Sequence[Path]) -> list[Path]:
    """Returns the models named or found in a named folder. Raises ValueError if one is not usable."""
    models = [model for path in paths for model in (sorted(path.glob("*.onnx")) if path.is_dir() else [path])]
    models = [model for model in models if not model.name.startswith(".")]
    if not models:
        raise ValueError(f"no models in {', '.join(map(str, paths))}; make some: python -m benchmarks.zoo export FOLDER")
    for model in models:
        if not model.is_file():
            raise ValueError(f"there is no file {model}")
    return models


def make_row(model: Path, description: Description, optimizers: Sequence[Optimizer], options: argparse.Namespace) -> Row:
    """Returns the variants of one model and their measurements."""
    limits = Limits(options.time_limit)
    variants = {variant.name: variant for variant in make_all(model, description, optimizers, options.cache, limits)}
    if options.control:
        variants[CONTROL] = replace(variants[ORIGINAL], name=CONTROL)
    paths = {name: variant.path for name, variant in variants.items() if variant.path}
    with own_worker() as worker:
        measurement = measure(Request(paths, description.draw(), options.rounds, options.seconds, options.clock, patience=options.time_limit), worker)
    guesses = {name: predicted(Path(path), description.sizes, limits) for name, path in paths.items()}
    return Row(model.stem, variants, measurement, predicted={name: guess for name, guess in guesses.items() if guess is not None})


def make_all(model: Path, description: Description, optimizers: Sequence[Optimizer], cache: Path, limits: Limits) -> Iterator[Variant]:
    yield as_it_is(model)
    for optimizer in optimizers:
        yield kept_variant(model, description, optimizer, cache, limits)


def record(rows: Sequence[Row], options: argparse.Namespace) -> dict[str, object]:
    """Returns all figures as JSON data, with the versions and options that they depend on."""
    packages = ("onnxruntime", "onnxsim", "onnxslim", "onnxscript", "onnx")
    versions = {package: version for package in packages if (version := installed_version(package))}
    return {"versions": versions, "eqsat": options.eqsat, "clock": options.clock, "models": [asdict(row) for row in rows]}


if __name__ == "__main__":
    sys.exit(main())

"""The command line of comparisons: `eqsat compare MODEL ...` and `eqsat compare A B --as-is`."""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from eqsat.cli.available_memory import available_memory
from eqsat.cli.options import add_settings, count, given_settings, seconds, size
from eqsat.cli.progress import shown_progress
from eqsat.cli.streams import check_file
from eqsat.errors import InputError

if TYPE_CHECKING:
    from eqsat.comparing.comparison import Comparison, Conditions
    from eqsat.comparing.optimizers import Optimizer

_SETTINGS = ("dims", "assume_dims", "inputs", "no_empty_inputs", "target", "custom_op_library")
_ONLY_OPTIMIZERS = {"against": "--against", "peer": "--peer", "eqsat": "--eqsat", "keep": "--keep", "dims": "--dim"}
"""The options that mean nothing for two given models."""

_ONLY_RESULTS = {"against": "--against", "peer": "--peer", "keep": "--keep", "csv": "--csv", "inputs": "--inputs"}
"""The options that mean nothing for engines, whose results are priced and not timed."""


def add_compare(commands: Any) -> None:
    """Adds `compare` to the commands of a parser."""
    compare = commands.add_parser("compare", help="compare optimizers on models, or two given models: same results, launches, latency, size")
    compare.add_argument("models", metavar="MODEL", nargs="+", help="an ONNX file")
    compare.add_argument("--as-is", action="store_true", help="compare two given models, without any optimizer; the first is the original")
    compare.add_argument("--engines", action="store_true", help="compare saturation with the greedy engine, on the same rules and prices")
    compare.add_argument("--orders", type=count, default=100, metavar="N", help="with --engines: so many random orders of the rules (default: 100)")
    compare.add_argument("--against", metavar="NAMES", help="the optimizers, as in eqsat,onnxsim (default: all that are installed)")
    compare.add_argument("--peer", metavar="NAME=COMMAND", action="append", help="another optimizer: a command with {input} and {output} (repeatable)")
    compare.add_argument("--eqsat", metavar="OPTIONS", help='options of `eqsat optimize`, as in --eqsat "--effort low"')
    add_settings(compare, _SETTINGS)
    compare.add_argument("--seconds", type=seconds, default=30.0, metavar="S", help="time each model for about S seconds at most (default: 30)")
    compare.add_argument("--rounds", type=count, default=1000, metavar="N", help="run each result at most N times (default: 1000)")
    compare.add_argument("--threads", type=count, default=1, metavar="N", help="threads of ONNX Runtime (default: 1)")
    compare.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="processor time suits a machine that others use as well (default: wall)")
    compare.add_argument("--time-limit", type=seconds, default=600.0, metavar="S", help="at most so long for one optimizer and one model (default: 600)")
    compare.add_argument("--memory-limit", type=size, metavar="SIZE", help="memory of one optimizer (default: three quarters of the available memory)")
    compare.add_argument("--keep", metavar="DIR", help="keep the results: DIR/MODEL/OPTIMIZER.onnx")
    compare.add_argument("--csv", metavar="FILE", help="write a table with a row for each result")
    compare.add_argument("--json", action="store_true", help="print one JSON object, with all figures")
    compare.set_defaults(command=_compare)


def _compare(options: argparse.Namespace) -> int:
    if sys.platform == "win32":
        raise InputError("eqsat compare needs Linux or macOS: it limits and measures other programs by POSIX processes")
    if options.engines:
        return _engines(options)
    models = [Path(model) for model in options.models]
    _check_places(options, models)
    if options.as_is:
        _check_as_is(options)
    if options.clock == "cpu" and options.threads > 1:
        raise InputError("--clock cpu shows the time of one thread; it needs --threads 1")
    if options.clock == "cpu" and options.custom_op_library is not None:
        raise InputError("--clock cpu shows the time of one thread; the operators of --custom-op-library may have threads of their own")

    from eqsat.comparing.child import Limits
    from eqsat.comparing.comparison import Conditions

    given = given_settings(options)
    memory = available_memory() * 3 // 4 if options.memory_limit is None else options.memory_limit
    _check_target(given.get("target"))
    conditions = Conditions(
        Limits(options.time_limit, memory),
        options.rounds,
        options.seconds,
        options.threads,
        options.clock,
        given.get("assume_dims", {}),
        given.get("inputs"),
        None if options.inputs is None else Path(options.inputs),
        given.get("target"),
        _library(given.get("custom_op_library")),
        _settings(options).get("no_empty_inputs", False),
    )
    with shown_progress(options.json) as progress:
        progress("read")
        _check_models(models, {**given.get("dims", {}), **conditions.assumed})
    return _as_is(models, options, conditions) if options.as_is else _optimizers(models, options, conditions, given.get("dims", {}))


def _engines(options: argparse.Namespace) -> int:
    """Compares saturation with the greedy engine on each model."""
    from eqsat.cli.engines import compare_engines

    if options.as_is:
        raise InputError("--as-is compares given models, and --engines makes its own: give one of both")
    for name, flag in _ONLY_RESULTS.items():
        if getattr(options, name) is not None:
            raise InputError(f"--engines prices results and runs no other optimizer, so {flag} has no meaning with it")
    return compare_engines(options, _settings(options))


def _as_is(models: Sequence[Path], options: argparse.Namespace, conditions: Conditions) -> int:
    """Compares two given models. Returns the exit code of `eqsat verify`."""
    from eqsat.cli.comparison_table import print_operators
    from eqsat.comparing.comparison import compare_as_is
    from eqsat.comparing.variant import DIFFERENT, EQUAL, FAILED

    with shown_progress(options.json) as progress:
        found = compare_as_is(models[0], models[1], conditions, progress)
    other = found.variants[str(models[1])]
    if other.status == FAILED:
        raise InputError(f"{models[1]}: {other.reason}")
    record = _shown([found], conditions, (), options)
    if options.json:
        print(json.dumps(record))
    else:
        print_operators(record["models"][0])
    return {EQUAL: 0, DIFFERENT: 1}.get(other.status, 3)


def _optimizers(models: Sequence[Path], options: argparse.Namespace, conditions: Conditions, dims: Mapping[str, int]) -> int:
    """Compares optimizers on each model."""
    from eqsat.cli.comparison_table import print_means
    from eqsat.comparing.comparison import compare
    from eqsat.comparing.making import warm_up
    from eqsat.comparing.optimizers import REMEDY, chosen_optimizers, left_out

    peers, own = _own_peers(options.peer or ()), _eqsat_options(options.eqsat or "")
    optimizers = chosen_optimizers(options.against, peers, own, conditions.library, conditions.no_empty_inputs)
    found: list[Comparison] = []
    record: dict[str, Any] = {}
    with _folder(options.keep) as folder:
        with shown_progress(options.json) as progress:
            progress("warm up")
            warm_up(optimizers, conditions.limits)
        for number, model in enumerate(models, 1):
            place = _new_folder(folder, model.stem)
            with shown_progress(options.json) as progress:
                show = partial(_show_stage, progress, f"{number} of {len(models)}: " if len(models) > 1 else "")
                found.append(compare(str(model), _fixed(model, dims, place), optimizers, place, conditions, show))
            record = _shown(found, conditions, optimizers, options)
    if options.json:
        print(json.dumps(record))
        return 0
    if len(models) > 1:
        print_means(record["means"])
    if missing := left_out(optimizers, options.against):
        print(f"{', '.join(missing)}: {REMEDY}")
    return 0


def _show_stage(progress: Callable[[str], None], begin: str, stage: str) -> None:
    progress(begin + stage)


def _shown(found: Sequence[Comparison], conditions: Conditions, optimizers: Sequence[Optimizer], options: argparse.Namespace) -> dict[str, Any]:
    """Returns the record of all comparisons. Writes it as CSV and prints the last one, if asked."""
    from eqsat.cli.comparison_table import print_comparison
    from eqsat.comparing.comparison_record import recorded

    record = recorded(found, conditions, optimizers)
    if options.csv is not None:
        _write_csv(Path(options.csv), record)
    if not options.json:
        print_comparison(record["models"][-1], record, made=not options.as_is)
    return record


def _write_csv(path: Path, record: Mapping[str, Any]) -> None:
    from eqsat.comparing.comparison_record import COLUMNS, csv_rows

    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *csv_rows(record)])
        unfinished.replace(path)
    except OSError as error:
        raise InputError(f"{path}: can not write it: {error.strerror}") from None
    finally:
        unfinished.unlink(missing_ok=True)


def _check_places(options: argparse.Namespace, models: Sequence[Path]) -> None:
    """Refuses a file or folder that can not be written, or that the command reads."""
    if options.csv is not None:
        path = Path(options.csv)
        check_file(path)
        if path.resolve() in {read.resolve() for read in (*models, *(Path(path) for path in (options.inputs, options.custom_op_library) if path))}:
            raise InputError(f"{path}: the table would overwrite a file that is read")
    if options.keep is not None and Path(options.keep).exists() and not Path(options.keep).is_dir():
        raise InputError(f"{options.keep}: is no folder")


def _check_as_is(options: argparse.Namespace) -> None:
    if len(options.models) != 2:
        raise InputError(f"--as-is compares two models, not {len(options.models)}")
    if Path(options.models[0]).resolve() == Path(options.models[1]).resolve():
        raise InputError(f"--as-is compares two models; both are {options.models[0]}")
    for name, flag in _ONLY_OPTIMIZERS.items():
        if getattr(options, name) is not None:
            raise InputError(f"--as-is runs no optimizer, so {flag} has no meaning with it")


def _library(path: str | None) -> Path | None:
    """Returns the library of custom operators, which every process finds."""
    from eqsat.parameters.value_types import existing_file

    return None if path is None else Path(existing_file("--custom-op-library", path)).absolute()


def _check_target(target: str | None) -> None:
    """Refuses a target that predicts no time."""
    if target is not None:
        from eqsat.cost.target import load_target

        if load_target(target).counts:
            raise InputError(f"--target {target}: this target counts nodes and predicts no time")


def _check_models(models: Sequence[Path], dims: Mapping[str, int]) -> None:
    """Refuses a file that is not a model, and a dimension that no model has."""
    from eqsat.model.prepare import check_dimensions, dimension_names
    from eqsat.model.read import read

    known: set[str] = set()
    for model in models:
        proto = read(model).proto
        known |= dimension_names(proto)
        if len(models) == 1:
            check_dimensions(proto, dims)
    unknown = sorted(set(dims) - known)
    if unknown:
        raise InputError(f"no model has a dimension named '{unknown[0]}'; they have: {', '.join(sorted(known)) or 'none with a name'}")


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of eqsat: those given to `eqsat compare`, and else those in `--eqsat`."""
    return {**_eqsat_settings(_eqsat_options(options.eqsat or "")), **given_settings(options)}


class _EqsatOptions(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"--eqsat: {message}")


def _eqsat_options(text: str) -> list[str]:
    """The user's options of `eqsat optimize`. Raises `InputError` if they are none."""
    try:
        found = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--eqsat: '{text}' are no options: {error}") from None
    _eqsat_settings(found)
    return found


def _eqsat_settings(options: Sequence[str]) -> dict[str, Any]:
    """The settings that options of `eqsat optimize` give. Raises `InputError` if they are none."""
    checker = _EqsatOptions(add_help=False, allow_abbrev=False)
    add_settings(checker)
    return given_settings(checker.parse_args(options))


def _own_peers(texts: Sequence[str]) -> dict[str, str]:
    """The user's own optimizers: commands by name."""
    found: dict[str, str] = {}
    for text in texts:
        name, separator, command = text.partition("=")
        if not separator or not name or not command.strip():
            raise InputError(f"--peer '{text}' is not of the form NAME=COMMAND")
        if found.setdefault(name, command) != command:
            raise InputError(f"--peer gives '{name}' two commands")
    return found


@contextmanager
def _folder(keep: str | None) -> Generator[Path]:
    """The folder of the results, which is removed unless the user keeps it."""
    if keep is None:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    yield Path(keep)


def _new_folder(parent: Path, name: str) -> Path:
    """Makes a folder of this name, or of one with a number if there is a folder already."""
    number = 1
    while True:
        place = parent / (name if number == 1 else f"{name}-{number}")
        try:
            place.mkdir(parents=True)
            return place
        except FileExistsError:
            number += 1
        except OSError as error:
            raise InputError(f"{place}: can not make this folder: {error.strerror}") from None


def _fixed(model: Path, dims: Mapping[str, int], place: Path) -> Path:
    """The model with fixed sizes for named dimensions, as a file in the folder of the results."""
    if not dims:
        return model
    from eqsat.model.external_data import has_external_data
    from eqsat.model.prepare import bake, dimension_names
    from eqsat.model.read import load
    from eqsat.model.write import save

    proto, folder = load(model)
    names = dimension_names(proto)
    bake(proto, {name: each for name, each in dims.items() if name in names})
    target = place / "original.onnx"
    save(proto, folder, target, None, has_external_data(proto))
    return target

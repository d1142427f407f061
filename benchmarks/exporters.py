"""The command: `python -m benchmarks.exporters FOLDER [--only NAME ...] [--dynamic] [--json FILE]`.

Optimizes each architecture of the zoo as both exporters of PyTorch write it, and compares the
results: kernel launches and predicted time. FOLDER is that of `python -m benchmarks.zoo export`.
The exporters write different opsets, and a newer opset has more operators. So there are two tables:
each model in its own opset, and both models in the newer one.

A row is outside of the bounds if launches differ by more than 5 %, or times by more than 3 %. Below
the tables stand the operators whose number differs in such a row. The exit code is 1 if there is
one.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import onnx

import eqsat
from benchmarks.zoo.names import EXPORTERS, Export

LAUNCHES = 0.05
TIME = 0.03
OUTSIDE, WRONG_USE = 1, 2


@dataclass(frozen=True)
class Optimized:
    """What eqsat made of one export: predicted seconds, launches, and the operators left."""

    launches: int
    seconds: float
    operators: Mapping[str, int]


@dataclass(frozen=True)
class Pair:
    """The results for both exports of one architecture, in the order of `EXPORTERS`."""

    name: str
    opset: int | None  # of both results, or None if each keeps its own
    results: tuple[Optimized, Optimized]

    @property
    def launches(self) -> float:
        """The difference of launches as a share of the smaller number."""
        return _apart(*(result.launches for result in self.results))

    @property
    def time(self) -> float:
        """The difference of predicted times as a share of the shorter one."""
        return _apart(*(result.seconds for result in self.results))

    @property
    def outside(self) -> bool:
        return self.launches > LAUNCHES or self.time > TIME

    def differences(self) -> dict[str, tuple[int, int]]:
        """Returns the operators whose number differs, with both numbers."""
        one, other = (result.operators for result in self.results)
        pairs = {name: (one.get(name, 0), other.get(name, 0)) for name in sorted({*one, *other})}
        return {name: numbers for name, numbers in pairs.items() if numbers[0] != numbers[1]}


def _apart(one: float, other: float) -> float:
    return abs(one - other) / min(one, other)


def main() -> int:
    options = _arguments()
    found = list(find_pairs(options.folder, options.dynamic, options.only))
    if not found:
        print(f"error: {options.folder} has no architecture by both exporters; python -m benchmarks.zoo export makes them", file=sys.stderr)
        return WRONG_USE
    pairs: list[Pair] = []
    for newest in (False, True):
        print(header("both in the newer opset" if newest else "each in its own opset"), flush=True)
        for name, models in found:
            opset = max(map(opset_of, models)) if newest else None
            pairs.append(Pair(name, opset, (optimized(models[0], opset), optimized(models[1], opset))))
            print(line(pairs[-1]), flush=True)
            if options.json:
                options.json.write_text(json.dumps(record(pairs), indent=2) + "\n", encoding="utf-8")
        print()
    outside = [pair for pair in pairs if pair.outside]
    print(f"outside of {LAUNCHES:.0%} of launches or {TIME:.0%} of time: {len(outside)} of {len(pairs)} pairs")
    for pair in outside:
        where = "" if pair.opset is None else f" in opset {pair.opset}"
        print(f"- {pair.name}{where}: {', '.join(f'{name} {one} / {other}' for name, (one, other) in pair.differences().items()) or 'the same operators'}")
    return OUTSIDE if outside else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exporters", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these architectures (default: all that both exporters wrote)")
    parser.add_argument("--dynamic", action="store_true", help="the exports with symbolic sizes instead of those with fixed ones")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures there")
    return parser.parse_args()


def find_pairs(folder: Path, dynamic: bool, only: Sequence[str]) -> Iterator[tuple[str, tuple[Path, Path]]]:
    """Yields the architectures in a folder that both exporters wrote, with the paths of the models."""
    for name in only or sorted({path.name.split(".")[0] for path in folder.glob("*.onnx")}):
        one, other = (folder / f"{Export(dynamic, name, exporter).name}.onnx" for exporter in EXPORTERS)
        if one.is_file() and other.is_file():
            yield name, (one, other)


def opset_of(model: Path) -> int:
    """Returns the version of ONNX's own operators that a model uses."""
    opsets = onnx.load(model, load_external_data=False).opset_import
    return next(item.version for item in opsets if item.domain in ("", "ai.onnx"))


def optimized(model: Path, opset: int | None) -> Optimized:
    """Optimizes a model by default, in its own opset or in a newer one."""
    return _optimized(model, None if opset == opset_of(model) else opset)


# The model in the newer opset is in both tables.
@functools.cache
def _optimized(model: Path, opset: int | None) -> Optimized:
    report = eqsat.optimize(model, verify=False, opset="keep" if opset is None else opset).report
    cost = report["cost"]["after"]
    left = {name: numbers["after"] for name, numbers in report["operators"].items() if numbers["after"]}
    return Optimized(cost["launches"], cost["seconds"], left)


def header(what: str) -> str:
    """Returns the head of a table."""
    titles = [what, *(f"launches {exporter}" for exporter in EXPORTERS), "apart", *(f"ms {exporter}" for exporter in EXPORTERS), "apart", ""]
    return f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"


def line(pair: Pair) -> str:
    """Returns a row of a table; `!` marks it if it is outside of the bounds."""
    one, other = pair.results
    cells = [pair.name, one.launches, other.launches, f"{pair.launches:.1%}", f"{one.seconds * 1e3:.3f}", f"{other.seconds * 1e3:.3f}", f"{pair.time:.1%}"]
    return f"| {' | '.join(map(str, cells))} | {'!' if pair.outside else ''} |"


def record(pairs: Sequence[Pair]) -> dict[str, object]:
    """Returns all figures as plain data."""
    rows = [{**asdict(pair), "results": dict(zip(EXPORTERS, map(asdict, pair.results), strict=True)), "outside": pair.outside} for pair in pairs]
    return {"bounds": {"launches": LAUNCHES, "seconds": TIME}, "pairs": rows}


if __name__ == "__main__":
    sys.exit(main())

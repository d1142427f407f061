"""Measures extraction: `python -m tests.benchmarks.extraction FOLDER`.

FOLDER holds e-graphs in the egraph-serialize format, or ONNX models with `--models`. For each graph
it prints the size, the cost of the least trees, of the greedy search and of the exact extraction,
the proof, and seconds. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import eqsat
from eqsat.extract import Choice, Graph, Method, extract
from eqsat.extract.serialize import read


def timed(graph: Graph, method: Method) -> tuple[Choice, float]:
    """Returns a choice, and the median seconds of three extractions, or of one if that is slow."""
    seconds: list[float] = []
    while len(seconds) < 3 and sum(seconds) < 5:
        begin = time.perf_counter()
        choice = extract(graph, method=method)
        seconds.append(time.perf_counter() - begin)
    return choice, statistics.median(seconds)


def graphs(folder: Path) -> Iterator[str]:
    """Yields a row of the table for each e-graph of a folder."""
    yield "| graph | classes | nodes | roots | trees | greedy | s | exact | bound | status | s |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for path in sorted(folder.glob("*.json*")):
        with path.open("rb") as file:
            graph, _ = read(file)
        trees, (greedy, quick), (exact, slow) = extract(graph, method="tree"), timed(graph, "greedy"), timed(graph, "exact")
        sizes = f"{graph.classes} | {len(graph.nodes)} | {len(graph.roots)}"
        found = f"{trees.cost:.6g} | {greedy.cost:.6g} | {quick:.2f} | {exact.cost:.6g} | {exact.bound:.6g} | {exact.status} | {slow:.2f}"
        yield f"| {path.name.split('.')[0]} | {sizes} | {found} |"


def models(folder: Path, count: int) -> Iterator[str]:
    """Yields a row for each of the largest models of a folder, optimized with all rules."""
    yield "| model | nodes | after | status | gap | extraction s | all s |"
    yield "|---|---|---|---|---|---|---|"
    for path in sorted(folder.rglob("*.onnx"), key=lambda path: path.stat().st_size)[-count:]:
        try:
            report = eqsat.optimize(path, target="launches", verify=False).report
        except eqsat.InputError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        proof, seconds, nodes = report["extraction"], report["seconds"], report["nodes"]
        sizes = f"{nodes['before']} | {nodes['after']}"
        yield f"| {path.stem} | {sizes} | {proof['status']} | {proof['gap'] or 0:.2%} | {seconds['extract']:.3f} | {seconds['total']:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", action="store_true", help="the folder holds ONNX models")
    parser.add_argument("--count", type=int, default=50, help="so many of the largest models")
    options = parser.parse_args()
    for row in models(options.folder, options.count) if options.models else graphs(options.folder):
        print(row, flush=True)


if __name__ == "__main__":
    main()

"""Measures how time grows with the number of repeated blocks.

`python -m tests.benchmarks.scaling [--layers N ...] [--target TARGET] [--plot FILE.svg]`

The models are transformers of 1, 4, 16, ... equal layers, no two of which share a weight, with all
rules. Seconds are processor time of this process on one core, the least of several runs in one warm
process, so that other work of the machine counts little. "per further layer" is the slope between
two rows. The plot has a line of slope one beside them; it needs the extra `plot`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import eqsat
from tests.support.transformer import transformer

WIDTH = 32
"""The elements of a bias. Rules may read up to eight, so narrower layers would all differ."""


def measure(layers: int, runs: int, target: str) -> tuple[int, int, dict[str, float]]:
    """Returns nodes before and after, and the fastest run's seconds: each stage's, and in all."""
    model = transformer(layers, WIDTH)
    quickest: dict[str, float] = {}
    nodes = 0
    for _ in range(runs):
        begin = time.process_time()
        report = eqsat.optimize(model, target=target, verify=False).report
        seconds = time.process_time() - begin
        nodes = int(report["nodes"]["after"])
        if not quickest or seconds < quickest["all"]:
            quickest = {**report["seconds"], "all": seconds}
    return eqsat.count_nodes(model), nodes, quickest


def plot(path: Path, layers: list[int], seconds: list[float]) -> None:
    """Draws seconds over layers, with both axes logarithmic."""
    from matplotlib import pyplot  # pyright: ignore[reportMissingImports]

    figure, axes = pyplot.subplots(figsize=(5, 3.5), layout="constrained")
    axes.loglog(layers, seconds, "o-", label="eqsat, all rules")
    axes.loglog(layers, [seconds[-1] * count / layers[-1] for count in layers], ":", label="linear")
    axes.set_xlabel("layers of 70 nodes")
    axes.set_ylabel("seconds of one core")
    axes.set_xticks(layers, [str(count) for count in layers])
    axes.minorticks_off()
    axes.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[1, 4, 16, 64, 96], metavar="N", help="how many (default: 1 4 16 64 96)")
    parser.add_argument("--target", default="onnxruntime-cpu", help="the target (default: onnxruntime-cpu)")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="of each, of which the quickest counts (default: 3)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the seconds there")
    options = parser.parse_args()
    measure(1, 1, options.target)
    found: list[float] = []
    print("| layers | nodes | seconds | per further layer | encode | saturate | extract |\n|---|---|---|---|---|---|---|")
    for number, layers in enumerate(options.layers):
        before, after, seconds = measure(layers, options.runs, options.target)
        found.append(seconds["all"])
        further = f"{(found[-1] - found[-2]) / (layers - options.layers[number - 1]):.3f}" if number else "-"
        stages = " | ".join(f"{seconds[stage]:.2f}" for stage in ("encode", "saturate", "extract"))
        print(f"| {layers} | {before} -> {after} | {seconds['all']:.2f} | {further} | {stages} |", flush=True)
    if options.plot is not None:
        plot(options.plot, options.layers, found)


if __name__ == "__main__":
    main()

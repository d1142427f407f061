"""Compares eqsat with other optimizers on a corpus of models.

`python -m tests.benchmarks.peers FOLDER [--worst N]`

FOLDER holds models, and `peers.json`: for each model its nodes, whether ONNX Runtime executes it,
and for each optimizer the nodes that it left and whether its result computes the same. Only models
count for which every optimizer gave a right result. Nodes are summed by suite (the folder of a
model). Then come the models on which some optimizer left fewer nodes than eqsat, by the difference.
Every result of eqsat is verified.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import eqsat

NOT_OPTIMIZERS = {"runnable", "nodes"}


def optimizers(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns the optimizers with results."""
    return [name for name in next(iter(models.values())) if name not in NOT_OPTIMIZERS]


def comparable(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns the models that run, and for which every optimizer gave a right result."""
    names = optimizers(models)
    return [model for model, found in sorted(models.items()) if found["runnable"] and all(found[name].get("equal") for name in names)]


def left(path: Path) -> int:
    """Returns the number of nodes that eqsat leaves, or the original's if it is unverified."""
    result = eqsat.optimize(path, target="launches")
    return int(result.report["nodes"]["after" if result.report["verify"]["status"] == "equal" else "before"])


def rows(models: Mapping[str, Mapping[str, Any]], ours: Mapping[str, int], worst: int) -> Iterator[str]:
    """Yields the lines of the two tables."""
    names = optimizers(models)
    suites: dict[str, list[str]] = {}
    for model in ours:
        suites.setdefault(model.partition("/")[0], []).append(model)
    yield f"| suite | models | nodes | {' | '.join(names)} | best of each | eqsat |"
    yield "|" + "---|" * (len(names) + 5)
    for suite, members in [*sorted(suites.items()), ("all", list(ours))]:
        sums = " | ".join(str(sum(models[model][name]["nodes"] for model in members)) for name in names)
        best = sum(min(models[model][name]["nodes"] for name in names) for model in members)
        yield f"| {suite} | {len(members)} | {sum(models[model]['nodes'] for model in members)} | {sums} | {best} | {sum(ours[model] for model in members)} |"
    yield ""
    yield "| model | nodes | eqsat | best | of |\n|---|---|---|---|---|"
    best_of = {model: min((models[model][name]["nodes"], name) for name in names) for model in ours}
    behind = sorted((best_of[model][0] - nodes, model) for model, nodes in ours.items() if nodes > best_of[model][0])
    for _, model in behind[:worst]:
        yield f"| {model} | {models[model]['nodes']} | {ours[model]} | {best_of[model][0]} | {best_of[model][1]} |"


def every(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    for name in names:
        yield name, left(folder / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--worst", type=int, default=30, metavar="N", help="models on which another leaves fewer nodes (default: 30)")
    options = parser.parse_args()
    models = json.loads((options.folder / "peers.json").read_text(encoding="utf-8"))
    for row in rows(models, dict(every(options.folder, comparable(models))), options.worst):
        print(row, flush=True)


if __name__ == "__main__":
    main()

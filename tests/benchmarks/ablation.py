"""Finds which rules a result needs: `python tests/benchmarks/ablation.py MODEL ...`, or of transformers of some layers with `--layers N`.

Rules that fired are left out one after the other, those that fired least first, as long as the result keeps its number of nodes: what is left is a set
of which none can go. Beside it stands how far the best of them comes alone. Where that is not far, the result is due to rules that compose.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

import eqsat
from eqsat.language.library import built_in

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from transformer import transformer

EVERYTHING = frozenset(resolved.rule.name for resolved in built_in().rules)


def left(model: onnx.ModelProto | Path, names: Iterable[str]) -> int:
    """The nodes that these rules alone leave."""
    return eqsat.count_nodes(eqsat.optimize(model, verify=False, skip=sorted(EVERYTHING.difference(names))).model)


def needed(model: onnx.ModelProto | Path, fired: list[str], nodes: int) -> list[str]:
    """A set of the rules that fired which leaves as few nodes, and of which none can go."""
    kept = list(fired)
    for name in fired:
        others = [other for other in kept if other != name]
        if left(model, others) <= nodes:
            kept = others
    return kept


def rows(models: Iterable[tuple[str, onnx.ModelProto | Path]]) -> Iterator[str]:
    """A table for people."""
    yield "| model | nodes | without rules | with the best rule alone | with all | rules that fired | rules that it needs |"
    yield "|---|---|---|---|---|---|---|"
    for name, model in models:
        report = eqsat.optimize(model, verify=False).report
        before, after = int(report["nodes"]["before"]), int(report["nodes"]["after"])
        fired = [rule["name"] for rule in sorted(report["rules"], key=lambda rule: (rule["matches"], rule["name"])) if rule["matches"]]
        kept = needed(model, fired, after)
        alone = min((left(model, [rule]) for rule in kept), default=after)
        yield f"| {name} | {before} | {left(model, ())} | {alone} | {after} | {len(fired)} | {len(kept)}: {', '.join(sorted(kept))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--layers", type=int, action="append", default=[], metavar="N", help="a transformer of N layers; may be given several times")
    options = parser.parse_args()
    models: list[tuple[str, onnx.ModelProto | Path]] = [(path.stem, path) for path in options.models]
    models += [(f"transformer of {layers} layers", transformer(layers)) for layers in options.layers]
    for row in rows(models):
        print(row, flush=True)


if __name__ == "__main__":
    main()

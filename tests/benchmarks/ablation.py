"""Finds the rules that a result needs: `python -m tests.benchmarks.ablation MODEL ...`.

With `--layers N`, the models are transformers of so many layers. With `--examples`, it finds the
rules that can each be left out without any change to the examples of the tests.

It leaves out fired rules one by one, those with the fewest firings first, as long as the result
keeps its number of nodes. So no rule of the remaining set can go. Beside the set it shows how far
its best rule comes alone. If that is not far, the result is due to rules that compose.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

import eqsat
from eqsat.language.library import built_in
from tests.rules.examples import filled
from tests.rules.test_rules import EXAMPLES
from tests.support.models import parse
from tests.support.transformer import transformer

EVERYTHING = frozenset(resolved.rule.name for resolved in built_in().rules)


def left(model: onnx.ModelProto | Path, names: Iterable[str]) -> int:
    """Returns the number of nodes that these rules alone leave."""
    return eqsat.count_nodes(eqsat.optimize(model, target="launches", verify=False, skip=sorted(EVERYTHING.difference(names))).model)


def needed(model: onnx.ModelProto | Path, fired: list[str], nodes: int) -> list[str]:
    """Returns a set of fired rules that leaves as few nodes, and of which none can go."""
    kept = list(fired)
    for name in fired:
        others = [other for other in kept if other != name]
        if left(model, others) <= nodes:
            kept = others
    return kept


def rows(models: Iterable[tuple[str, onnx.ModelProto | Path]]) -> Iterator[str]:
    """Yields the lines of a table."""
    yield "| model | nodes | without rules | with the best rule alone | with all | rules that fired | rules that it needs |"
    yield "|---|---|---|---|---|---|---|"
    for name, model in models:
        report = eqsat.optimize(model, target="launches", verify=False).report
        before, after = int(report["nodes"]["before"]), int(report["nodes"]["after"])
        fired = [rule["name"] for rule in sorted(report["rules"], key=lambda rule: (rule["matches"], rule["name"])) if rule["matches"]]
        kept = needed(model, fired, after)
        alone = min((left(model, [rule]) for rule in kept), default=after)
        yield f"| {name} | {before} | {left(model, ())} | {alone} | {after} | {len(fired)} | {len(kept)}: {', '.join(sorted(kept))} |"


def outcome(model: onnx.ModelProto, skip: Iterable[str]) -> tuple[object, frozenset[str]]:
    """Returns the result of a model as operators with their neighbors, and the rules that fired."""
    result = eqsat.optimize(model, max_growth=1 << 16, target="launches", verify=False, skip=list(skip))
    nodes = result.model.graph.node
    makers = {name: node.op_type for node in nodes for name in node.output}
    joins = sorted((makers.get(name, ""), node.op_type, position) for node in nodes for position, name in enumerate(node.input))
    return joins, frozenset(rule["name"] for rule in result.report["rules"] if rule["matches"])


def spare() -> Iterator[str]:
    """Yields the rules that no example needs, at its oldest and its newest opset."""
    firing: dict[str, list[tuple[onnx.ModelProto, object]]] = {name: [] for name in sorted(EVERYTHING)}
    for example in EXAMPLES.values():
        for opset in {example.opsets[0], example.opsets[-1]}:
            model = filled(parse(example.text, f'<ir_version: 8, opset_import: ["" : {opset}]>'))
            joins, fired = outcome(model, ())
            for name in fired:
                firing[name].append((model, joins))
    for name, models in firing.items():
        if all(outcome(model, [name])[0] == joins for model, joins in models):
            yield name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--layers", type=int, action="append", default=[], metavar="N", help="a transformer of N layers; may be given several times")
    parser.add_argument("--examples", action="store_true", help="the rules that no example of the tests needs, a line each")
    options = parser.parse_args()
    if options.examples:
        for name in spare():
            print(name, flush=True)
    models: list[tuple[str, onnx.ModelProto | Path]] = [(path.stem, path) for path in options.models]
    models += [(f"transformer of {layers} layers", transformer(layers)) for layers in options.layers]
    if models:
        for row in rows(models):
            print(row, flush=True)


if __name__ == "__main__":
    main()

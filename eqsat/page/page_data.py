"""The data of the page: the report of a run, both graphs, and how they correspond, as plain data
that JSON can hold.

Text is kept once, in `strings`; everything else names it by its number. Texts of models are
shortened, so that no model makes the page large. Weights are never part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx

from eqsat.cost.target import load_target
from eqsat.model.file_bytes import written_bytes
from eqsat.model.model import Model
from eqsat.model.read import normalize
from eqsat.model.validity import light
from eqsat.page.correspondence import Correspondence, Region, correspondence, equal_constants, shared_values
from eqsat.page.flat import Flat, Step, bare, flat, types
from eqsat.page.folds import folds
from eqsat.page.node_prices import at_nodes, kernels
from eqsat.pipeline import Result
from eqsat.rewriting.valuation import Row, Valuation
from eqsat.runtime.onnx_passes import NativeFailure, inferred
from eqsat.runtime.worker import shared
from eqsat.settings import Settings
from eqsat.verification.relations import with_fixed_sizes
from eqsat.version import __version__

_LONGEST = 300  # characters of a text that are kept


@dataclass(slots=True)
class Strings:
    """The texts of the page, each once."""

    texts: list[str] = field(default_factory=list[str])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])

    def number(self, text: str) -> int:
        """Returns the number of a text, shortened if it is long."""
        short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        found = self._numbers.get(short)
        if found is None:
            found = self._numbers[short] = len(self.texts)
            self.texts.append(short)
        return found


def page_data(result: Result, settings: Settings, lines: Sequence[str]) -> dict[str, Any]:
    """Returns the data of the page for the result of a run. `lines` tell the run in words, each
    after its topic.
    """
    original = result.original.model
    written = original if result.model is result.original.proto else normalize(result.model, result.original.folder, None)
    before, after = flat(original), flat(written)
    unchanged = result.model is result.original.proto
    became = {name: name for name in map(bare, before.values())} if unchanged else result.report["became"]
    found = correspondence(before.steps, after.steps, shared_values(before, after, became), equal_constants(after))
    tree = folds(before.steps, after.steps, found)
    valuation = _valuation(settings, result)
    strings = Strings()
    sides = [
        _side(graph, model, kernels(valuation, model.proto, model.folder), place, strings)
        for graph, model, place in ((before, original, tree.before), (after, written, tree.after))
    ]
    return {
        "version": __version__,
        "lines": [[topic, text.strip()] for topic, _, text in (line.partition(" ") for line in lines)],
        "report": {key: value for key, value in result.report.items() if key != "became"},
        "folds": [[strings.number(title), parent] for title, parent in zip(tree.titles, tree.parents, strict=True)],
        "sides": sides,
        "kept": sorted(found.kept.items()),
        **_regions(before, after, found, strings),
        "strings": strings.texts,
    }


def _valuation(settings: Settings, result: Result) -> Valuation:
    sizes = with_fixed_sizes(settings.assume_dims, result.original.lean)
    target = load_target(settings.target).holding(written_bytes(result.original.lean.graph))
    found = Valuation(target, settings.objective, sizes, settings.custom_operators, shared(), settings.memory_bytes)
    # The figures of the report and those of the nodes have one origin.
    found.asks = result.report["cost"]["asked"]
    return found


def _side(graph: Flat, model: Model, rows: Sequence[Row], places: Sequence[int], strings: Strings) -> dict[str, Any]:
    """Returns one graph: its values, its nodes, and its kernels."""
    known = _types(model.proto)
    numbers: dict[str, int] = {}
    values: list[list[int]] = []

    def value(key: str) -> int:
        if not key:
            return -1
        if key not in numbers:
            numbers[key] = len(values)
            stored = graph.constants.get(key)
            kind = known.get(key, "") if stored is None else stored.type
            values.append([strings.number(bare(key)), strings.number(kind), *([] if stored is None else [strings.number(stored.text)])])
        return numbers[key]

    own, others = at_nodes(graph.steps, rows)
    return {
        "inputs": [value(key) for key in graph.inputs[: graph.fed]],
        "outputs": [value(key) for key in graph.outputs],
        "nodes": [
            {
                "o": strings.number(step.operator),
                "n": strings.number(step.name),
                "i": [value(key) for key in step.inputs],
                "r": [value(key) for key in step.outputs],
                "f": place,
                **({"b": [value(key) for key in step.results]} if step.results else {}),
                **({"a": [[strings.number(name), strings.number(text)] for name, text in step.attributes]} if step.attributes else {}),
                **({"k": own[number]} if number in own else {"w": others[number]} if number in others else {}),
            }
            for number, (step, place) in enumerate(zip(graph.steps, places, strict=True))
        ],
        "values": values,
        "kernels": [[strings.number(row.operator), *_figures(row)] for row in rows],
    }


def _figures(row: Row) -> list[Any]:
    price = row.price
    return [float(f"{price.seconds:.4g}"), price.launches, round(price.bytes), round(price.operations), price.bound, int(row.known)]


def _types(model: onnx.ModelProto) -> dict[str, str]:
    """Returns the types of values, as far as onnx infers them."""
    try:
        return types(inferred(light(model)))
    except NativeFailure:
        return types(model)


def _regions(before: Flat, after: Flat, found: Correspondence, strings: Strings) -> dict[str, Any]:
    """Returns the changed regions and their kinds: regions with the same operators on both sides."""
    kinds: dict[tuple[tuple[tuple[str, int], ...], ...], list[int]] = {}
    for number, region in enumerate(found.regions):
        kinds.setdefault((_operators(before.steps, region.old), _operators(after.steps, region.new)), []).append(number)
    ordered = sorted(kinds.items(), key=lambda item: -sum(map(_size, (found.regions[number] for number in item[1]))))
    return {
        "regions": [{"old": region.old, "new": region.new, "stands": region.stands} for region in found.regions],
        "kinds": [
            {"regions": numbers, **{side: [[strings.number(name), count] for name, count in counts] for side, counts in zip(("old", "new"), kind, strict=True)}}
            for kind, numbers in ordered
        ],
    }


def _operators(steps: Sequence[Step], members: Sequence[int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(steps[member].operator for member in members).items(), key=lambda item: (-item[1], item[0])))


def _size(region: Region) -> int:
    return len(region.old) + len(region.new)

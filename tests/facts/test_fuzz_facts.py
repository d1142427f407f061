"""A slice of the fuzzer of facts, its coverage, and proof that it finds wrong facts.

The whole: `python -m tests.fuzz.facts --seeds 20000`.
"""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import defs, helper

from eqsat.facts import inference
from eqsat.facts.shapes import SHAPES
from tests.fuzz.facts import fuzz
from tests.fuzz.facts_draw import Draw
from tests.fuzz.facts_graphs import NEWEST, OLDEST, TABLE, draw_graph

# Operators that the table of single nodes lacks, with the generator that draws them instead.
ELSEWHERE = {
    "If": "bodies",
    "Loop": "bodies",
    "Scan": "nothing is stated of what it gives",
    "SequenceMap": "nothing is stated of what it gives",
    **dict.fromkeys("ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength".split(), "boxes"),
    **dict.fromkeys("Optional OptionalGetElement OptionalHasElement SplitToSequence".split(), "boxes"),
}
# Attributes that always have their defaults, with the reason.
UNDRAWN = {
    ("BatchNormalization", "spatial"): "the runtime has no kernel for 0",
    ("LSTM", "input_forget"): "the runtime refuses 1",
}


def versions() -> dict[tuple[str, int], defs.OpSchema]:
    """Returns all operators of the fuzzed opsets, by name and version."""
    found: dict[tuple[str, int], defs.OpSchema] = {}
    for name in {schema.name for schema in defs.get_all_schemas_with_history() if schema.domain == ""}:
        for opset in range(OLDEST, NEWEST + 1):
            try:
                schema = defs.get_schema(name, opset, "")
            except defs.SchemaError:
                continue
            if not schema.deprecated:
                found[name, schema.since_version] = schema
    return found


def test_every_operator_is_drawn() -> None:
    names = {name for name, _ in versions()}
    assert names == TABLE.keys() | ELSEWHERE.keys()
    boxed = {node.op_type for seed in range(1500) for node in draw_graph(seed)[0].nodes} & ELSEWHERE.keys()
    assert boxed == {name for name, place in ELSEWHERE.items() if place == "boxes"}


def test_every_attribute_is_drawn_away_from_its_default() -> None:
    wanted: set[tuple[str, str]] = set()
    drawn: set[tuple[str, str]] = set()
    for (name, version), schema in versions().items():
        if name not in TABLE:
            continue
        wanted.update((name, attribute) for attribute in schema.attributes)
        for seed in range(60):
            for attribute, value in TABLE[name](Draw([seed, version], schema)).attributes.items():
                assert attribute in schema.attributes, (name, version, attribute)
                if not default(schema.attributes[attribute], value):
                    drawn.add((name, attribute))
    assert wanted - drawn == UNDRAWN.keys()


def default(declared: defs.OpSchema.Attribute, value: Any) -> bool:
    stated = declared.default_value
    if stated.type == onnx.AttributeProto.UNDEFINED:
        return False
    meant = helper.get_attribute_value(stated)
    return value == (meant.decode() if isinstance(meant, bytes) else meant)


@pytest.mark.slow
def test_what_is_stated_is_so() -> None:
    tally = fuzz(range(100_000, 100_450))
    assert not tally.wrong, "\n\n".join(f"seed {wrong.seed}: {wrong.text}\n{wrong.model}" for wrong in tally.wrong)
    assert tally.ran["the runtime"] > 350
    assert tally.ran["the reference"] > 380
    assert tally.facts > 38_000
    assert len(tally.operators) > 150


@pytest.mark.parametrize(("name", "lie"), [("Slice", "Identity"), ("Concat", "Identity"), ("Resize", "Identity"), ("MaxPool", "Identity")])
def test_a_wrong_table_is_found(name: str, lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an operator had the sizes of its input, some seed would show it.

    ONNX's inference had this fault for Slice-10.
    """
    inference.forget()
    monkeypatch.setitem(SHAPES, name, SHAPES[lie])
    try:
        assert fuzz(range(20), (name,)).wrong
    finally:
        inference.forget()

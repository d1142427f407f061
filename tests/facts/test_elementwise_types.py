"""The types of elementwise nodes that we find are those of ONNX's own inference."""

from __future__ import annotations

from itertools import product

import pytest
from onnx import TensorProto, defs

from eqsat.facts import onnx_inference
from eqsat.facts.elementwise_types import elementwise_type
from eqsat.facts.fact import Fact
from eqsat.facts.node import Node
from eqsat.operators import Operator, find_operator

SHAPES = ((), (1,), (3,), (0,), (2, 3), (2, 1), (1, 0), (4, 1, 3))
FLOAT, DOUBLE, INT, UINT, BOOL = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT8, TensorProto.BOOL
TYPES: dict[int, list[tuple[int, ...]]] = {
    1: [(FLOAT,), (INT,), (UINT,), (BOOL,), (TensorProto.STRING,)],
    2: [(FLOAT, FLOAT), (INT, INT), (UINT, UINT), (BOOL, BOOL), (FLOAT, INT), (INT, DOUBLE)],
    3: [(FLOAT, FLOAT, FLOAT), (BOOL, INT, INT), (BOOL, FLOAT, INT), (INT, INT, INT)],
}
SIZELESS = {"GreaterOrEqual-12", "LessOrEqual-12"}  # ONNX's inference finds their data types alone


def operators() -> list[Operator]:
    schemas = [schema for schema in defs.get_all_schemas_with_history() if not schema.domain and not schema.deprecated and not schema.attributes]
    found = [find_operator("", schema.name, schema.since_version) for schema in schemas]
    return sorted(found, key=str)


def of_onnx(node: Node) -> tuple[tuple[Fact, ...], str | None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_inference, "elementwise_type", lambda node: None)
        return onnx_inference.standard(node, ())


@pytest.mark.parametrize("operator", operators(), ids=str)
def test_a_type_is_the_one_that_onnx_finds(operator: Operator) -> None:
    for count, types in TYPES.items():
        for dtypes, shapes in product(types, product(SHAPES, repeat=count)):
            node = Node(operator, {}, tuple(Fact(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=True)), 1)
            if (found := elementwise_type(node)) is not None:
                (type_,), refusal = of_onnx(node)
                assert refusal is None
                assert type_ == (found._replace(shape=None) if str(operator) in SIZELESS else found), (dtypes, shapes)


def test_most_operators_have_an_answer() -> None:
    def answers(operator: Operator) -> bool:
        nodes = (Node(operator, {}, (Fact(dtype, (2, 3)),) * count, 1) for count, types in TYPES.items() for dtype, *_ in types)
        return any(elementwise_type(node) is not None for node in nodes)

    found = {operator.name for operator in operators() if answers(operator)}
    assert found >= {"Add", "And", "Equal", "Exp", "GreaterOrEqual", "Max", "Mul", "Neg", "Pow", "Relu", "Sigmoid", "Sqrt", "Sum"} and len(found) > 45


UNUSUAL = [
    ((Fact(FLOAT, (2,)), Fact(FLOAT, (3,))), 1),
    ((Fact(FLOAT, (2,)), None), 1),
    ((Fact(FLOAT, (2,)), Fact(FLOAT, None)), 1),
    ((Fact(FLOAT, (2,)), Fact(FLOAT, (None,))), 1),
    ((Fact(FLOAT, (2,)), Fact(0, (2,))), 1),
    ((Fact(FLOAT, (2,)),), 1),
    ((Fact(FLOAT, (2,)),) * 3, 1),
    ((Fact(FLOAT, (2,)), Fact(other=b"")), 1),
    ((Fact(FLOAT, (2,)),) * 2, 2),
]


@pytest.mark.parametrize(("inputs", "outputs"), UNUSUAL)
def test_what_is_unusual_is_left_to_onnx(inputs: tuple[Fact | None, ...], outputs: int) -> None:
    assert elementwise_type(Node(find_operator("", "Add", 14), {}, inputs, outputs)) is None


def test_an_early_operator_is_left_to_onnx() -> None:
    assert elementwise_type(Node(find_operator("", "Add", 6), {}, (Fact(FLOAT, (2,)),) * 2, 1)) is None

"""The types of nodes that move elements or multiply matrices are those of ONNX's own inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement, permutations, product

import pytest
from onnx import TensorProto, defs

from eqsat.facts import onnx_inference
from eqsat.facts.fact import Fact
from eqsat.facts.moved_types import moved_type
from eqsat.facts.node import Node
from eqsat.operators import AttributeValue, Operator, find_operator

FLOAT, INT64, INT32, UINT8, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.STRING
SHAPES = ((), (1,), (3,), (0,), (2, 3), (3, 2), (1, 3), (2, 0), (2, 1, 3), (4, 3, 2), (1, 1, 1))
LISTS = ((), (0,), (-1,), (1,), (6,), (3, 2), (2, -1), (0, 3), (1, 1), (2, 3), (-1, 1), (0, 1), (0, 0), (2, 2, 3), (4, 1, 3, 2), (-1, -1))
AXES = (0, 1, -1, 2, -3, 5)

Case = tuple[Mapping[str, AttributeValue], tuple[Fact | None, ...]]


def listed(*elements: int, dtype: int = INT64) -> Fact:
    return Fact(dtype, (len(elements),), ints=elements)


def lists() -> Iterator[Case]:
    """Data and a list of integers, as the operators take that have a shape or axes."""
    for shape, elements in product(SHAPES, LISTS):
        yield {}, (Fact(FLOAT, shape), listed(*elements))
    for data in (Fact(STRING, (6,)), Fact(UINT8, (6,)), Fact(FLOAT, (None,)), Fact(FLOAT), Fact(0, (6,)), None):
        yield {}, (data, listed(2, 3))
        yield {}, (data, listed(0))
    for second in (Fact(INT64, (2,)), Fact(INT64, (1, 2), ints=(2, 3)), Fact(INT64, (), ints=(6,)), listed(2, 3, dtype=INT32), Fact(FLOAT, (2,)), None):
        yield {}, (Fact(FLOAT, (6,)), second)
    yield {"allowzero": 1}, (Fact(FLOAT, (6,)), listed(2, 3))
    yield {"axis": 1}, (Fact(FLOAT, (6,)), listed(2, 3))


def pairs() -> Iterator[Case]:
    for first, second in product(SHAPES, SHAPES):
        for dtypes in ((FLOAT, FLOAT), (INT64, INT64), (FLOAT, INT64), (UINT8, INT32), (STRING, STRING)):
            yield {}, (Fact(dtypes[0], first), Fact(dtypes[1], second))
        for axis in AXES:
            yield {"axis": axis}, (Fact(FLOAT, first), Fact(FLOAT, second))
            yield {"axis": axis}, (Fact(STRING, first), Fact(INT64, second))


def several() -> Iterator[Case]:
    yield from pairs()
    for axis, shapes in product(AXES, combinations_with_replacement(SHAPES[4:], 3)):
        yield {"axis": axis}, tuple(Fact(FLOAT, shape) for shape in shapes)
    yield {"axis": 0}, (Fact(FLOAT, (2,)),)
    yield {}, (Fact(FLOAT, (2,)), Fact(FLOAT, (3,)))
    yield {"axis": 0.0}, (Fact(FLOAT, (2,)), Fact(FLOAT, (3,)))


def transposed() -> Iterator[Case]:
    for shape in SHAPES:
        yield {}, (Fact(FLOAT, shape),)
        for count in range(4):
            for order in (*permutations(range(count)), (0,) * count, tuple(range(1, count + 1)), tuple(range(-count, 0))):
                yield {"perm": order}, (Fact(FLOAT, shape),)
    yield {"perm": (1.0, 0.0)}, (Fact(FLOAT, (2, 3)),)


def cast() -> Iterator[Case]:
    for to, dtype, shape in product(range(26), (FLOAT, UINT8, STRING, 0), SHAPES[:5]):
        yield {"to": to}, (Fact(dtype, shape),)
    yield {"to": 1, "saturate": 0}, (Fact(FLOAT, (2,)),)
    yield {}, (Fact(FLOAT, (2,)),)


CASES = {
    "Cast": cast,
    "Concat": several,
    "Expand": lists,
    "Gather": pairs,
    "MatMul": pairs,
    "Reshape": lists,
    "Squeeze": lists,
    "Transpose": transposed,
    "Unsqueeze": lists,
}
OPERATORS = sorted(
    (find_operator("", schema.name, schema.since_version) for schema in defs.get_all_schemas_with_history() if not schema.domain and schema.name in CASES),
    key=str,
)


def of_onnx(node: Node) -> tuple[tuple[Fact, ...], str | None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_inference, "moved_type", lambda node: None)
        return onnx_inference.standard(node, ())


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_a_type_is_the_one_that_onnx_finds(operator: Operator) -> None:
    answers = 0
    for attributes, inputs in CASES[operator.name]():
        node = Node(operator, attributes, inputs, 1)
        if (found := moved_type(node)) is not None:
            answers += 1
            assert of_onnx(node) == ((found,), None), (attributes, inputs)
    newest = operator.version == find_operator("", operator.name, 1 << 10).version
    assert answers > 5 or not newest


PLAIN: list[tuple[str, Mapping[str, AttributeValue], tuple[Fact, ...], tuple[int, ...]]] = [
    ("Cast", {"to": INT64}, (Fact(FLOAT, (2, 3)),), (2, 3)),
    ("Concat", {"axis": -1}, (Fact(FLOAT, (2, 3)), Fact(FLOAT, (2, 4)), Fact(FLOAT, (2, 0))), (2, 7)),
    ("Expand", {}, (Fact(FLOAT, (2, 1)), listed(4, 1, 3)), (4, 2, 3)),
    ("Gather", {"axis": 1}, (Fact(FLOAT, (2, 3, 4)), Fact(INT32, (5, 6))), (2, 5, 6, 4)),
    ("MatMul", {}, (Fact(FLOAT, (5, 1, 2, 3)), Fact(FLOAT, (6, 3, 4))), (5, 6, 2, 4)),
    ("Reshape", {}, (Fact(FLOAT, (2, 6)), listed(3, 4)), (3, 4)),
    ("Squeeze", {}, (Fact(FLOAT, (1, 2, 1)), listed(-1, 0)), (2,)),
    ("Transpose", {"perm": (2, 0, 1)}, (Fact(FLOAT, (2, 3, 4)),), (4, 2, 3)),
    ("Unsqueeze", {}, (Fact(FLOAT, (2, 3)), listed(-1, 1)), (2, 1, 3, 1)),
]


@pytest.mark.parametrize(("name", "attributes", "inputs", "shape"), PLAIN, ids=[name for name, *_ in PLAIN])
def test_plain_nodes_have_an_answer(name: str, attributes: Mapping[str, AttributeValue], inputs: tuple[Fact, ...], shape: tuple[int, ...]) -> None:
    found = moved_type(Node(find_operator("", name, 23), attributes, inputs, 1))
    assert found == Fact(INT64 if name == "Cast" else FLOAT, shape)


def test_several_results_are_left_to_onnx() -> None:
    assert moved_type(Node(find_operator("", "Transpose", 21), {}, (Fact(FLOAT, (2, 3)),), 2)) is None

"""Total operators: nodes that cannot fail when they run, by what is known of their inputs.

Such a node may run where the model would not have run it. NaN and infinities are no failures. A
node fails if the sizes or elements that it meets are illegal for it, so of most operators sizes have
to be known. An operator that no table names may fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from onnx import TensorProto

from eqsat.facts.dims import Dim, equal
from eqsat.facts.fact import INTEGERS, UNKNOWN, Fact, element_count
from eqsat.facts.legality import illegal
from eqsat.families import members
from eqsat.model.model import Graph, Node
from eqsat.operators import Attributes, may_train, read_attributes
from eqsat.traits import PARAMETERS

_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16})
_NUMBERS = _FLOATS | INTEGERS
_FIRST = 7  # the first opset in which operands broadcast without an attribute

Inputs = Sequence[Fact | None]
Test = Callable[[Attributes, Inputs, Fact], bool]


def cannot_fail(body: Graph, facts: Mapping[str, Fact]) -> bool:
    """Tell whether no node of a body can fail or has an effect. `facts` are those of its values."""
    return not body.sparse and all(_is_total(node, facts) for node in body.nodes)


def _is_total(node: Node, facts: Mapping[str, Fact]) -> bool:
    operator = node.operator
    test = _TESTS.get(operator.name)
    if test is None or not operator.standard or operator.opset < _FIRST or node.bodies or node.function is not None or not operator.pure:
        return False
    attributes = read_attributes(operator, node.proto.attribute)
    inputs = tuple(facts.get(name, UNKNOWN) if name else None for name in node.inputs)
    if any(fact is not None and not fact.dtype for fact in inputs) or may_train(operator, attributes, len(inputs), len(node.outputs)):
        return False
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return illegal(operator, attributes, inputs, len(node.outputs)) is None and test(attributes, inputs, facts.get(node.outputs[0], UNKNOWN))


def broadcast(shapes: Sequence[tuple[Dim, ...] | None]) -> bool:
    """Tell whether tensors of these shapes broadcast to common sizes, whatever the named sizes are."""
    known = [shape for shape in shapes if shape is not None]
    for axis in range(1, max(map(len, known), default=0) + 1):
        wide = [shape[-axis] for shape in known if len(shape) >= axis and shape[-axis] != 1]
        if any(equal(wide[0], size) is not True for size in wide[1:]):
            return False
    return len(known) == len(shapes)


def _always(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
    return True


def _broadcasts(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
    return broadcast([None if fact is None else fact.shape for fact in inputs])


def _divides(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
    """Processors trap on a division by 0, and on that of the least integer by -1."""
    by = inputs[1] if len(inputs) > 1 else None
    if by is None or not _broadcasts(attributes, inputs, result):
        return False
    if by.dtype in _FLOATS:
        return attributes.get("fmod", 1) == 1
    return by.ints is not None and all(isinstance(number, int) and number not in (0, -1) for number in by.ints)


def _raises(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
    return inputs[0] is not None and inputs[0].dtype in _FLOATS and _broadcasts(attributes, inputs, result)


def _converts(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
    return inputs[0] is not None and inputs[0].dtype in _NUMBERS and result.dtype in _NUMBERS


def _clips(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
    return all(fact is None or fact.shape == () for fact in inputs[1:])


def _sized(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
    """Tell whether all sizes are numbers: then ONNX's own inference has found them legal."""
    return all(fact is None or _numbers(fact.shape) for fact in inputs) and _numbers(result.shape)


def _numbers(values: tuple[Dim, ...] | None) -> bool:
    return values is not None and all(isinstance(value, int) for value in values)


def _moves(name: str) -> Test:
    """Return the test of an operator whose parameters have to be known numbers as well."""

    def test(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
        parameters = [inputs[place] for place in PARAMETERS.get(name, {}) if place < len(inputs)]
        return _sized(attributes, inputs, result) and all(fact is None or _numbers(fact.ints) for fact in parameters)

    return test


def _reshapes(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
    source = inputs[0]
    return _moves("Reshape")(attributes, inputs, result) and source is not None and element_count(source) == element_count(result)


def _slices(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
    steps = inputs[4] if len(inputs) > 4 else None
    return _moves("Slice")(attributes, inputs, result) and (steps is None or 0 not in (steps.ints or ()))


def _gathers(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
    source, places, axis = inputs[0], inputs[1], attributes.get("axis", 0)
    if not _sized(attributes, inputs, result) or source is None or places is None or source.shape is None or places.ints is None or not isinstance(axis, int):
        return False
    size = source.shape[axis] if -len(source.shape) <= axis < len(source.shape) else 0
    return isinstance(size, int) and all(isinstance(place, int) and -size <= place < size for place in places.ints)


def _fills(name: str) -> Test:
    """Return the test of an operator that may have no result for no elements."""

    def test(attributes: Attributes, inputs: Inputs, result: Fact) -> bool:
        return _moves(name)(attributes, inputs, result) and inputs[0] is not None and element_count(inputs[0]) != 0

    return test


_TESTS: Final[dict[str, Test]] = {
    **dict.fromkeys(members("unary") | {"Constant", "Identity", "Shape", "Size"}, _always),
    **dict.fromkeys((members("binary") | members("variadic") | {"Where"}) - {"BitShift"}, _broadcasts),
    **{name: _moves(name) for name in ("Concat", "Expand", "Flatten", "Squeeze", "Transpose", "Unsqueeze")},
    **{name: _fills(name) for name in members("reduction") | {"LogSoftmax", "MatMul", "Softmax"}},
    "Cast": _converts,
    "Clip": _clips,
    "Div": _divides,
    "Gather": _gathers,
    "Mod": _divides,
    "Pow": _raises,
    "Reshape": _reshapes,
    "Slice": _slices,
}
"""The test of each operator that can be total."""

"""The table of attributes: ONNX has none that it lacks, what it says is drawn is drawn, and each
value makes a difference to the engines that judge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import defs, helper

from eqsat.checker.drawing.instances import Instance, draw
from eqsat.checker.judging.trial_values import ANY, Slot, Style, Values
from eqsat.checker.kernels.call import Illegal, Unsupported
from eqsat.checker.kernels.evaluate import IllegalModel, Mode, Program
from eqsat.checker.samplers.attribute_draws import ATTRIBUTES, Kept
from eqsat.language.schemas import standard_operators
from eqsat.operators import attribute_default, find_operator
from eqsat.traits import NEWEST
from tests.support.parameters import spread
from tests.support.single_operators import SINGLE, newest, single

DRAWN = 80
BODIES = (defs.OpSchema.AttrType.GRAPH, defs.OpSchema.AttrType.GRAPHS)
PAIRS = [(operator, name) for operator in SINGLE for name, values in ATTRIBUTES[operator].items() if not isinstance(values, Kept)]
# What is drawn decides the data type of a result, and nothing else.
TYPES = {("BitCast", "to"), ("Cast", "to"), ("DequantizeLinear", "output_dtype"), ("EyeLike", "dtype"), ("MelWeightMatrix", "output_datatype")}
TYPES |= {("QuantizeLinear", "output_dtype"), *((f"{window}Window", "output_datatype") for window in ("Blackman", "Hamming", "Hann"))}
# Attributes that say what shapes or data types say already, or what only training uses.
SILENT = {(operator, "kernel_shape") for operator in ("Conv", "ConvInteger", "ConvTranspose", "QLinearConv", "DeformConv")}
SILENT |= {(operator, "hidden_size") for operator in ("GRU", "LSTM", "RNN")}
SILENT |= {
    ("BatchNormalization", "momentum"),
    ("Mod", "fmod"),
    ("Split", "num_outputs"),
    ("RotaryEmbedding", "rotary_embedding_dim"),
    ("DeformConv", "strides"),
}
# Where the other value is legal as well, it means the same: a size of 0 that is copied, updates
# that do not go beyond the end.
SILENT |= {("Reshape", "allowzero"), ("TensorScatter", "mode")}


def nameable() -> Iterator[str]:
    """The operators that a rule may name."""
    for name in standard_operators():
        operator = find_operator("", name, NEWEST)
        assert operator.schema is not None
        if operator.pure and not any(attribute.type in BODIES for attribute in operator.schema.attributes.values()):
            yield name


def test_the_table_has_every_attribute_of_every_operator() -> None:
    lacking = {
        (name, attribute)
        for name in nameable()
        for attribute in find_operator("", name, NEWEST).schema.attributes  # type: ignore[union-attr]
        if attribute not in ATTRIBUTES.get(name, {})
    }
    assert not lacking, "say in eqsat/checker/samplers/attribute_draws.py which values are drawn of them"
    known = {name: newest(name).schema for name in ATTRIBUTES}
    assert all(schema is not None and ATTRIBUTES[name].keys() == schema.attributes.keys() for name, schema in known.items())


def test_every_operator_whose_attributes_are_drawn_has_a_line() -> None:
    assert SINGLE.keys() >= {name for name, attributes in ATTRIBUTES.items() if not all(isinstance(values, Kept) for values in attributes.values())}


@cache
def instances(operator: str) -> list[Instance]:
    return list(islice(draw(single(operator), 1), DRAWN))


def node(model: onnx.ModelProto, operator: str) -> onnx.NodeProto:
    return next(node for node in model.graph.node if node.op_type == operator)


def stated(model: onnx.ModelProto, operator: str) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node(model, operator).attribute}


def plain(value: Any) -> Any:
    """A value as a key: lists are tuples, floats those that an attribute holds."""
    if isinstance(value, str):
        return value.encode()
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else float(np.float32(value)) if isinstance(value, float) else value


@pytest.mark.parametrize("pair", spread(PAIRS, "-".join))
def test_what_the_table_says_is_drawn(pair: tuple[str, str]) -> None:
    """Away from the default in a fifth of all instances; and all values that the table lists."""
    operator, name = pair
    default = plain(attribute_default(newest(operator), name))
    found = [plain(stated(instance.model, operator).get(name, default)) for instance in instances(operator)]
    least = DRAWN / 40 if ATTRIBUTES[operator][name] is ATTRIBUTES["Conv"]["group"] else DRAWN / 5
    assert sum(value != default for value in found) >= least, found
    values = ATTRIBUTES[operator][name]
    if isinstance(values, tuple):
        kind = newest(operator).schema.attributes[name].type  # type: ignore[union-attr]
        wanted = {plain(float(value) if kind == defs.OpSchema.AttrType.FLOAT else value) for value in values}
        assert wanted <= {*found, default}


def outcome(model: onnx.ModelProto, feeds: dict[str, Any], mode: Mode) -> list[bytes] | None:
    """The outputs, with their shapes; None where no engine has them."""
    try:
        outputs = Program(model).run(feeds, mode).outputs
    except (Illegal, IllegalModel, Unsupported):
        return None
    return [repr((array.shape, array.dtype)).encode() + array.tobytes() for array in outputs]


def values_for(instance: Instance, seed: int) -> dict[str, Any]:
    slots = {
        info.name: Slot(info.type.tensor_type.elem_type, tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim), instance.domains.get(info.name, ANY))
        for info in instance.model.graph.input
    }
    return Values(slots, [], seed).draw(Style.SPECIAL if seed % 4 == 3 else Style.NORMAL, 0)


def differs(operator: str, name: str, value: Any, mode: Mode) -> bool | None:
    """Whether an instance becomes another one by this value; None where none of them was computed
    with it.
    """
    compared = None
    for number, instance in enumerate(instances(operator)):
        one = stated(instance.model, operator)
        if plain(one.get(name)) == value or b"bidirectional" in (value, one.get(name)):  # as the weights say
            continue
        other = onnx.ModelProto()
        other.CopyFrom(instance.model)
        del other.graph.output[0].type.tensor_type.shape.dim[:]
        for output in other.graph.output:
            output.ClearField("type")
        changed = node(other, operator)
        kept = [attribute for attribute in changed.attribute if attribute.name != name]
        del changed.attribute[:]
        changed.attribute.extend(kept)
        schema = newest(operator).schema
        assert schema is not None
        changed.attribute.append(helper.make_attribute(name, value, attr_type=int(schema.attributes[name].type.value)))  # type: ignore[arg-type]
        feeds = values_for(instance, number)
        after = outcome(other, feeds, mode)
        if after is None:
            continue
        before = outcome(instance.model, feeds, mode)
        if before is None:
            continue
        if before != after:
            return True
        compared = False
    return compared


MATTERS = [pair for pair in PAIRS if pair not in TYPES | SILENT]


@pytest.mark.parametrize("pair", spread(MATTERS, "-".join))
def test_each_value_makes_a_difference(pair: tuple[str, str]) -> None:
    """Where no engine heeds an attribute, what has it is not judged: the checker must not call it
    equal.
    """
    operator, name = pair
    default = plain(attribute_default(newest(operator), name))
    seen: dict[Any, int] = defaultdict(int)
    for instance in instances(operator):
        value = plain(stated(instance.model, operator).get(name, default))
        seen[value] += value is not None and value != default
    values = sorted((value for value in seen if seen[value]), key=seen.__getitem__, reverse=True)
    listed = isinstance(ATTRIBUTES[operator][name], tuple)
    assert values
    answers = {value: differs(operator, name, value, Mode.REAL) for value in (values if listed else values[:4])}
    if listed:
        assert all(answers.values()) or set(answers.values()) == {None}, answers
    else:
        assert any(answers.values()) or set(answers.values()) <= {None}, answers

"""Graphs for the fuzzer of facts: a node of a table, its sizes partly named, its parameters partly computed, and nodes that follow it.

Comes in: a seed. Goes out: a model all of whose values can be looked at, and inputs for it at several choices of the named sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper

from eqsat.operators import Operator, find_operator, to_attribute

from .facts_draw import BOOL, FLOAT, INT32, INT64, STRING, TYPES, Array, Case, Draw, Fixed, Free, Maker, elements, ints, scalar
from .facts_layers import LAYERS
from .facts_nodes import NODES

OLDEST, NEWEST = 7, 26
TABLE: dict[str, Maker] = {**NODES, **LAYERS}
_SIZES = (0, 1, 1, 2, 3, 4, 6, 11, 13)
_MOST = 1 << 15  # elements of one input
_RUNS = 6


@dataclass
class Drawn:
    """A graph of which every value is named, and what its inputs are fed with at each choice of sizes."""

    opset: int
    inputs: dict[str, tuple[int, list[int | str | None]]] = field(default_factory=dict[str, tuple[int, list[int | str | None]]])
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    fixed: dict[str, Array] = field(default_factory=dict[str, Array])  # inputs that are fed the same each time
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    base: dict[str, int] = field(default_factory=dict[str, int])  # the sizes at which the node was drawn
    count: int = 0

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, array: Array) -> str:
        name = self.fresh("c")
        self.constants[name] = array
        return name

    def add(self, operator: str, inputs: Sequence[str], attributes: Mapping[str, Any] | None = None, outputs: int = 1) -> list[str]:
        names = [self.fresh() for _ in range(outputs)]
        node = helper.make_node(operator, inputs, names)
        meant = find_operator("", operator, self.opset)
        node.attribute.extend(_attribute(meant, name, value) for name, value in (attributes or {}).items())
        self.nodes.append(node)
        return names

    def listed(self, operator: str, data: str, name: str, values: list[int], since: int = 13) -> str:
        """A node with a list that was an attribute before the opset `since`."""
        if self.opset < since:
            return self.add(operator, [data], {name: values})[0]
        return self.add(operator, [data, self.constant(np.array(values, np.int64))])[0]

    def model(self) -> onnx.ModelProto:
        """The graph with every value an output."""
        infos: list[onnx.ValueInfoProto] = []
        for name, (dtype, shape) in self.inputs.items():
            infos.append(helper.make_tensor_value_info(name, dtype, shape))
        infos += [helper.make_tensor_value_info(name, int(helper.np_dtype_to_tensor_dtype(array.dtype)), array.shape) for name, array in self.fixed.items()]
        # Of optionals no engine gives the value.
        outputs = [onnx.ValueInfoProto(name=name) for node in self.nodes if node.op_type != "Optional" for name in node.output]
        graph = helper.make_graph(self.nodes, "g", infos, outputs, [numpy_helper.from_array(array, name) for name, array in self.constants.items()])
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", self.opset)])

    def feeds(self, sizes: Mapping[str, int], seed: int) -> dict[str, Array] | None:
        """Inputs at a choice of sizes; None where they would be large."""
        random = np.random.default_rng(seed)
        found = dict(self.fixed)
        for name, (dtype, declared) in self.inputs.items():
            shape = [size if isinstance(size, int) else sizes[size or f"?{name}.{axis}"] for axis, size in enumerate(declared)]
            if int(np.prod(shape, dtype=float)) > _MOST:
                return None
            found[name] = elements(random, shape, dtype, *self.bounds[name])
        return found

    def choices(self, draw: Draw) -> list[dict[str, int]]:
        """Sizes to run at: those the node was drawn at, and others."""
        found = [self.base]
        if not self.base:
            return found * 2
        found += [dict.fromkeys(self.base, draw.pick(0, 1)), dict.fromkeys(self.base, 13)]
        while len(found) < _RUNS:
            found.append({name: size if draw.chance(0.5) else draw.pick(*_SIZES) for name, size in self.base.items()})
        return found


def _attribute(operator: Operator, name: str, value: Any) -> onnx.AttributeProto:
    return to_attribute(operator, name, tuple(value) if isinstance(value, list) else value)


def draw_graph(seed: int, names: Sequence[str] = ()) -> tuple[Drawn, Draw]:
    """The graph of a seed: a node of the table or a computation with sizes, and nodes that follow."""
    draw = Draw([seed])
    if not names and draw.chance(0.12):
        drawn = Drawn(draw.number(OLDEST, NEWEST))
        source = _tensor(drawn, draw)
        _shape_program(drawn, draw, source)
        return drawn, draw
    if not names and draw.chance(0.06):
        drawn = Drawn(draw.number(11, NEWEST))
        _boxed(drawn, draw)
        return drawn, draw
    operators = names or tuple(TABLE)
    while True:
        name = operators[draw.number(0, len(operators) - 1)]
        versions = {opset: _schema(name, opset) for opset in range(OLDEST, NEWEST + 1)}
        known = sorted({schema.since_version for schema in versions.values() if schema is not None})
        if known:
            break
    version = draw.pick(*known)
    opset = draw.pick(*(opset for opset, schema in versions.items() if schema is not None and schema.since_version == version))
    schema = versions[opset]
    assert schema is not None
    draw.schema, draw.version = schema, version
    drawn = Drawn(opset)
    outputs = place_node(drawn, draw, schema, TABLE[name](draw))
    if draw.chance(0.4):
        _followers(drawn, draw, outputs[0])
    return drawn, draw


def _schema(name: str, opset: int) -> defs.OpSchema | None:
    try:
        schema = defs.get_schema(name, opset, "")
    except defs.SchemaError:
        return None
    return None if schema.deprecated else schema


# --- a node of the table ---


def place_node(drawn: Drawn, draw: Draw, schema: defs.OpSchema, case: Case) -> list[str]:
    """Adds a case's node with its inputs; the names of its outputs."""
    scheme = draw.pick("numbers", "by size", "by size", "by size", "apart", "unknown", "mixed")
    types: dict[str, int] = {}
    chosen: list[tuple[Free | Fixed | None, int]] = []
    for place, item in enumerate(case.inputs):
        formal = schema.inputs[min(place, len(schema.inputs) - 1)]
        dtype = 0 if item is None else _dtype(draw, formal, item, types, schema)
        chosen.append((item, dtype))
    names: dict[int, str] = {}
    for place, (item, dtype) in enumerate(chosen):
        if isinstance(item, Free):
            names[place] = _free(drawn, draw, item, dtype, scheme)
    for place, (item, dtype) in enumerate(chosen):
        if isinstance(item, Fixed):
            names[place] = _parameter(drawn, draw, item.array if item.array.dtype == object else item.array.astype(helper.tensor_dtype_to_np_dtype(dtype)))
    inputs = [names.get(place, "") for place in range(len(case.inputs))]
    while inputs and not inputs[-1]:
        inputs.pop()
    return drawn.add(schema.name, inputs, case.attributes, case.outputs)


def _dtype(draw: Draw, formal: defs.OpSchema.FormalParameter, item: Free | Fixed, types: dict[str, int], schema: defs.OpSchema) -> int:
    allowed = [TYPES[kind] for kind in sorted(formal.types) if kind in TYPES]
    wanted = types.get(formal.type_str) if formal.type_str in types and formal.is_homogeneous else None
    if isinstance(item, Fixed):
        own = int(helper.np_dtype_to_tensor_dtype(item.array.dtype))
        if wanted is None and own == INT64 and INT32 in allowed and draw.chance(0.3):
            own = INT32
        wanted = wanted or (own if own in allowed or not allowed else allowed[0])
    else:
        plain = [kind for kind in allowed if kind != STRING] or allowed
        wanted = wanted or item.dtype or (FLOAT if FLOAT in plain and draw.chance(0.6) else draw.pick(*plain))
    types[formal.type_str] = wanted
    return wanted


def _free(drawn: Drawn, draw: Draw, item: Free, dtype: int, scheme: str) -> str:
    name = drawn.fresh("x")
    declared: list[int | str | None] = []
    for axis, size in enumerate(item.shape):
        way = draw.pick("numbers", "by size", "apart", "unknown") if scheme == "mixed" else scheme
        if way == "numbers" or (way == "by size" and size == 1 and draw.chance(0.7)):
            declared.append(size)
        elif way == "unknown":
            declared.append(None)
            drawn.base[f"?{name}.{axis}"] = size
        else:
            declared.append(f"S{size}" if way == "by size" else f"{name}_{axis}")
            drawn.base[str(declared[-1])] = size
    if scheme == "numbers" and draw.chance(0.2):
        drawn.constants[name] = elements(draw.random, item.shape, dtype, item.low, item.high)
        return name
    drawn.inputs[name] = dtype, declared
    drawn.bounds[name] = item.low, item.high
    return name


def _parameter(drawn: Drawn, draw: Draw, array: Array) -> str:
    """A parameter as a constant, an input of which nothing is known, or computed from the sizes of inputs."""
    kind = draw.number(0, 9)
    if kind <= 1:
        name = drawn.fresh("p")
        drawn.fixed[name] = array
        return name
    if kind <= 5 and array.dtype in (np.int64, np.int32) and array.ndim <= 1 and array.size and drawn.base:
        return _computed(drawn, draw, array)
    if kind == 6:
        return drawn.add("Constant", [], {"value": numpy_helper.from_array(array)})[0]
    return drawn.constant(array)


def _computed(drawn: Drawn, draw: Draw, array: Array) -> str:
    places = [(name, axis, size) for name, (_, shape) in drawn.inputs.items() for axis, size in enumerate(shape) if not isinstance(size, int)]
    parts: list[str] = []
    for element in array.ravel().tolist():
        exact = [(name, axis, size) for name, axis, size in places if drawn.base[size or f"?{name}.{axis}"] == element]
        if not places or (not exact and draw.chance(0.7)) or abs(element) > 99:
            parts.append(drawn.constant(np.array([element], np.int64)))
            continue
        name, axis, size = draw.pick(*(exact or places))
        shape = drawn.add("Shape", [name])[0]
        part = drawn.add("Gather", [shape, drawn.constant(np.array([axis], np.int64))])[0]
        rest = element - drawn.base[size or f"?{name}.{axis}"]
        parts.append(part if not rest else drawn.add("Add", [part, drawn.constant(np.array([rest], np.int64))])[0])
    result = parts[0] if len(parts) == 1 else drawn.add("Concat", parts, {"axis": 0})[0]
    if array.ndim == 0:
        result = drawn.listed("Squeeze", result, "axes", [0])
    return drawn.add("Cast", [result], {"to": INT32})[0] if array.dtype == np.int32 else result


# --- what follows ---


def _move(drawn: Drawn, draw: Draw, x: str) -> str:
    """A node that takes a tensor of any type and moves its elements."""
    kind = draw.number(0, 13)
    if kind == 0:
        return drawn.add("Identity", [x])[0]
    if kind == 1:
        return drawn.add("Flatten", [x], {"axis": draw.number(0, 1)})[0]
    if kind <= 3:
        return drawn.add("Reshape", [x, drawn.constant(np.array(draw.pick([-1], [0, -1], [-1, 1], [0, 0, -1], [1, -1], [-1, 2]), np.int64))])[0]
    if kind == 4:
        return drawn.add("Transpose", [x])[0]
    if kind == 5:
        return drawn.add("Concat", [x, x], {"axis": draw.pick(0, 0, 1)})[0]
    if kind <= 7 and drawn.opset >= 10:
        bounds = [draw.pick(0, 1, -1, 2, -2), draw.pick(-1, 2, 4, 2**63 - 1), draw.pick(0, 0, 1), draw.pick(1, 1, 2)]
        return drawn.add("Slice", [x, *(drawn.constant(np.array([bound], np.int64)) for bound in bounds)])[0]
    if kind == 8:
        return drawn.add("Gather", [x, drawn.constant(np.array(draw.pick(0, [0], [0, 0], [[0]]), np.int64))], {"axis": draw.pick(0, 0, 1)})[0]
    if kind == 9:
        return drawn.listed("Unsqueeze", x, "axes", draw.pick([0], [1], [0, 1]))
    if kind == 10:
        return drawn.add("Squeeze", [x])[0]
    if kind == 11:
        return drawn.add("Split", [x], {"axis": 0} | ({"num_outputs": 2} if drawn.opset >= 18 else {}), 2)[1]
    if kind == 12 and drawn.opset >= 8:
        return drawn.add("Expand", [x, drawn.constant(np.array(draw.pick([1], [2, 1, 1], [3], [1, 3, 1, 1]), np.int64))])[0]
    shape = drawn.add("Shape", [x])[0]
    return drawn.add("Reshape", [x, shape])[0]


def _followers(drawn: Drawn, draw: Draw, x: str) -> None:
    for _ in range(draw.number(1, 3)):
        x = _move(drawn, draw, x)
    if draw.chance(0.3):
        _shape_program(drawn, draw, x)


def _tensor(drawn: Drawn, draw: Draw) -> str:
    name = drawn.fresh("x")
    declared: list[int | str | None] = [draw.pick(draw.size(), "N", "N", "M", None) for _ in range(draw.number(1, 4))]
    drawn.inputs[name] = FLOAT, declared
    drawn.bounds[name] = -4, 4
    drawn.base |= {size or f"?{name}.{axis}": draw.number(1, 6) for axis, size in enumerate(declared) if not isinstance(size, int)}
    return name


def _shape_program(drawn: Drawn, draw: Draw, x: str) -> None:
    """Integers computed from the sizes of a tensor, which then decide what is done with it."""
    values = [drawn.add("Shape", [x])[0]]
    for _ in range(draw.number(2, 9)):
        values.append(_integers(drawn, draw, values, x))
    last = values[-1]
    kind = draw.number(0, 8)
    if kind == 0:
        drawn.add("Reshape", [x, last])
    elif kind == 1 and drawn.opset >= 9:
        drawn.add("ConstantOfShape", [last])
    elif kind == 2 and drawn.opset >= 8:
        drawn.add("Expand", [drawn.constant(np.array(1.0, np.float32)), last])
    elif kind == 3 and drawn.opset >= 10:
        first = drawn.add("Gather", [last, drawn.constant(np.array([0]))])[0]
        drawn.add("Slice", [x, drawn.constant(np.array([draw.pick(0, 1, -2)])), first, drawn.constant(np.array([0])), drawn.constant(np.array([draw.pick(1, 2)]))])
    elif kind == 4 and drawn.opset >= 11:
        first = drawn.add("Gather", [last, drawn.constant(np.array(0))])[0]
        drawn.add("Range", [drawn.constant(np.array(draw.number(-1, 1))), first, drawn.constant(np.array(draw.pick(1, 2, -1)))])
    elif kind == 5:
        drawn.add("Tile", [x, last])
    elif kind == 6:
        _move(drawn, draw, last)
    elif kind == 7 and drawn.opset >= 11:
        drawn.add("Pad", [drawn.constant(np.ones(2, np.float32)), drawn.add("Concat", [last, last], {"axis": 0})[0]])


_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Div", "Max", "Min", "Mod", "Pow")


def _integers(drawn: Drawn, draw: Draw, values: list[str], x: str) -> str:
    """One more list of integers."""
    a, b = draw.pick(*values), draw.pick(*values)
    kind = draw.number(0, 20)
    if kind <= 6:
        name = draw.pick(*_ARITHMETIC)
        if (name == "Mod" and drawn.opset < 10) or (name in ("Max", "Min", "Pow") and drawn.opset < 12):
            name = "Mul"
        other = b if draw.chance(0.35) else drawn.constant(np.array(draw.pick([1], [2], [3], 2, [-1], [0], [-3], [7], 64), np.int64))
        pair = [a, other] if draw.chance(0.75) else [other, a]
        return drawn.add(name, pair, {"fmod": 1} if name == "Mod" and draw.chance(0.3) else {})[0]
    if kind == 7:
        return drawn.add(draw.pick("Neg", "Abs", "Identity", *(("Sign",) if drawn.opset >= 9 else ())), [a])[0]
    if kind == 8:
        return drawn.add("Concat", [a, b] if draw.chance() else [a, drawn.constant(np.array([draw.number(-1, 4)]))], {"axis": 0})[0]
    if kind == 9:
        return drawn.add("Gather", [a, drawn.constant(np.array(draw.pick([0], [0, 0], [1], [-1] if drawn.opset >= 11 else [1]), np.int64))])[0]
    if kind == 10 and drawn.opset >= 10:
        cut = draw.pick((0, 1, 1), (1, 2**63 - 1, 1), (-1, -(2**63), -1), (0, -1, 1), (-2, 2**31 - 1, 1), (0, 9, 2))
        bounds = [drawn.constant(np.array([bound], np.int64)) for bound in (cut[0], cut[1], 0, cut[2])]
        return drawn.add("Slice", [a, *bounds])[0]
    if kind == 11:
        name = draw.pick("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin")
        return drawn.add(name, [a], {"keepdims": 1})[0]
    if kind == 12:
        to = draw.pick(INT32, FLOAT, BOOL, TensorProto.INT8, TensorProto.UINT8, TensorProto.DOUBLE)
        return drawn.add("Cast", [drawn.add("Cast", [a], {"to": to})[0]], {"to": INT64})[0]
    if kind == 13 and drawn.opset >= 9:
        less = drawn.add(draw.pick("Less", "Equal", "Greater"), [a, b if draw.chance() else drawn.constant(np.array([draw.number(0, 4)]))])[0]
        less = drawn.add("Not", [less])[0] if draw.chance(0.3) else less
        return drawn.add("Where", [less, a, drawn.constant(np.array([draw.number(-1, 5)]))])[0] if draw.chance() else drawn.add("Cast", [less], {"to": INT64})[0]
    if kind == 14:
        return drawn.listed("Unsqueeze", drawn.add("Size", [x])[0], "axes", [0])
    if kind == 15 and drawn.opset >= 11:
        return drawn.add("CumSum", [a, drawn.constant(np.array(0))], {"exclusive": draw.number(0, 1), "reverse": draw.number(0, 1)})[0]
    if kind == 16 and drawn.opset >= 11:
        return drawn.add("Range", [drawn.constant(np.array(0)), drawn.add("Size", [a])[0], drawn.constant(np.array(1))])[0]
    if kind == 17 and drawn.opset >= 9:
        size = drawn.add("Shape", [a])[0]
        return drawn.add("ConstantOfShape", [size], {"value": numpy_helper.from_array(np.array([draw.number(-1, 2)]))})[0]
    if kind == 18:
        return drawn.add("Split", [a], {"axis": 0} | ({"num_outputs": 2} if drawn.opset >= 18 else {}), 2)[draw.number(0, 1)]
    if kind == 19 and drawn.opset >= 15:
        return drawn.add("Shape", [x], {"start": draw.number(-3, 2), "end": draw.number(-2, 4)})[0]
    if kind == 20 and drawn.opset >= 9:
        return drawn.add("Reshape", [drawn.add("NonZero", [a])[0], drawn.constant(np.array([-1]))])[0]
    return drawn.add("Tile", [a, drawn.constant(np.array([2]))])[0]


# --- sequences and optionals ---


def _boxed(drawn: Drawn, draw: Draw) -> None:
    """A sequence or an optional that is filled, and what is taken from it."""
    x = _tensor(drawn, draw)
    takes: list[Callable[[str], Any]] = [
        lambda box: drawn.add("SequenceAt", [box, drawn.constant(np.array(draw.number(-2, 2)))]),
        lambda box: drawn.add("SequenceLength", [box]),
        lambda box: drawn.add("ConcatFromSequence", [box], {"axis": draw.number(-2, 1)} | ({"new_axis": 1} if draw.chance(0.4) else {})),
        lambda box: drawn.add("SequenceAt", [drawn.add("SequenceInsert", [box, x, *_place(drawn, draw)])[0], drawn.constant(np.array(draw.number(-2, 2)))]),
        lambda box: drawn.add("SequenceAt", [drawn.add("SequenceErase", [box, *_place(drawn, draw)])[0], drawn.constant(np.array(0))]),
    ]
    kind = draw.number(0, 5)
    if kind <= 2:
        rank = len(drawn.inputs[x][1])
        attributes = {"axis": draw.number(-rank, rank - 1)} if draw.chance(0.7) else {}
        attributes |= {"keepdims": draw.number(0, 1)} if draw.chance(0.7) else {}
        parts = draw.pick(None, None, scalar(draw.number(1, 3)), ints(*draw.numbers(draw.number(1, 3), 1, 3)), ints(1))
        box = drawn.add("SplitToSequence", [x] if parts is None else [x, _parameter(drawn, draw, parts.array)], attributes)[0]
    elif kind == 3:
        box = drawn.add("SequenceConstruct", [x, x] if draw.chance() else [x, _move(drawn, draw, x)])[0]
    elif kind == 4:
        box = drawn.add("SequenceInsert", [drawn.add("SequenceEmpty", [], {"dtype": FLOAT} if draw.chance() else {})[0], x])[0]
    else:
        if drawn.opset < 15:
            return
        full = drawn.add("Optional", [x])[0]
        drawn.add("OptionalHasElement", [full])
        _move(drawn, draw, drawn.add("OptionalGetElement", [full])[0])
        return
    taken = draw.pick(*takes)(box)
    if draw.chance():
        _followers(drawn, draw, taken[0])


def _place(drawn: Drawn, draw: Draw) -> list[str]:
    return [drawn.constant(np.array(draw.number(-1, 1)))] if draw.chance() else []

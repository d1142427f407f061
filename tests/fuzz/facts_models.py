"""Graphs for the fuzzer of facts: a node of a table, and nodes that follow it.

Some of the node's sizes have names, and the graph computes some of its parameters. The input is a
seed. The output is a model that shows all its values, and inputs for it at several choices of the
named sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

from eqsat.operators import Operator, find_operator, to_attribute

from .facts_draw import FLOAT, INT32, INT64, STRING, TYPES, Array, Case, Draw, Fixed, Free, elements, with_extremes

_SIZES = (0, 1, 1, 2, 3, 4, 6, 11, 13)
_MOST = 1 << 15  # the most elements of one input
_RUNS = 6


@dataclass
class Drawn:
    """A graph in which every value has a name, and its inputs at each choice of sizes."""

    opset: int
    inputs: dict[str, tuple[int, list[int | str | None]]] = field(default_factory=dict[str, tuple[int, list[int | str | None]]])
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    wild: set[str] = field(default_factory=set[str])  # inputs that hold NaN, infinities and extremes, too
    fixed: dict[str, Array] = field(default_factory=dict[str, Array])  # inputs that are the same in each run
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    base: dict[str, int] = field(default_factory=dict[str, int])  # the sizes for which the node was drawn
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
        """Returns a node with a list that was an attribute before the opset `since`."""
        if self.opset < since:
            return self.add(operator, [data], {name: values})[0]
        return self.add(operator, [data, self.constant(np.array(values, np.int64))])[0]

    def model(self) -> onnx.ModelProto:
        """Returns the graph with every value as an output."""
        infos: list[onnx.ValueInfoProto] = []
        for name, (dtype, shape) in self.inputs.items():
            infos.append(helper.make_tensor_value_info(name, dtype, shape))
        infos += [helper.make_tensor_value_info(name, int(helper.np_dtype_to_tensor_dtype(array.dtype)), array.shape) for name, array in self.fixed.items()]
        # No engine returns the value of an optional.
        outputs = [onnx.ValueInfoProto(name=name) for node in self.nodes if node.op_type != "Optional" for name in node.output]
        graph = helper.make_graph(self.nodes, "g", infos, outputs, [numpy_helper.from_array(array, name) for name, array in self.constants.items()])
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", self.opset)])

    def feeds(self, sizes: Mapping[str, int], seed: int) -> dict[str, Array] | None:
        """Returns inputs at a choice of sizes; None if they would be large."""
        random = np.random.default_rng(seed)
        found = dict(self.fixed)
        for name, (dtype, declared) in self.inputs.items():
            shape = [size if isinstance(size, int) else sizes[size or f"?{name}.{axis}"] for axis, size in enumerate(declared)]
            if int(np.prod(shape, dtype=float)) > _MOST:
                return None
            found[name] = elements(random, shape, dtype, *self.bounds[name])
            if name in self.wild:
                found[name] = with_extremes(random, found[name])
        return found

    def choices(self, draw: Draw) -> list[dict[str, int]]:
        """Returns sizes to run at: those for which the node was drawn, and others."""
        found = [self.base]
        if not self.base:
            return found * 2
        found += [dict.fromkeys(self.base, draw.pick(0, 1)), dict.fromkeys(self.base, 13)]
        while len(found) < _RUNS:
            found.append({name: size if draw.chance(0.5) else draw.pick(*_SIZES) for name, size in self.base.items()})
        return found


def _attribute(operator: Operator, name: str, value: Any) -> onnx.AttributeProto:
    return to_attribute(operator, name, tuple(value) if isinstance(value, list) else value)


def place_node(drawn: Drawn, draw: Draw, schema: defs.OpSchema, case: Case) -> list[str]:
    """Adds a case's node with its inputs. Returns the names of its outputs."""
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
            names[place] = parameter(drawn, draw, item.array if item.array.dtype == object else item.array.astype(helper.tensor_dtype_to_np_dtype(dtype)))
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


def parameter(drawn: Drawn, draw: Draw, array: Array) -> str:
    """Returns a parameter in one of three forms.

    It is a constant, an input of unknown elements, or computed from the sizes of inputs.
    """
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

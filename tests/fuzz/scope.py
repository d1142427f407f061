"""A graph under construction whose values are known: ONNX Runtime runs each node when it is added.

So ONNX Runtime accepts every finished model. Sizes that will get names are numbers that no other
size has. Constants avoid them, so that the model works at other sizes too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from eqsat.operators import find_operator
from eqsat.runtime.session import open_runtime

from .chance import Array, Chance

NAMED = (5, 7, 11)  # sizes of inputs that get names
_MOST = 4096  # the most elements of a value
_STATIC = (1, 2, 3, 4, 2, 3, 1, 6)
_ALIASES = {("Pad", "value"): "constant_value", ("TopK", "k"): "K", ("Upsample", "scales"): "scales"}
_ODD = ("{}", "{}", "{}", "{}:0", "a/b.{}", "{} {{x}}", "Ünï{}", '"{}"', "x{}__folded", "{}\n")

Setting = Any


@dataclass(frozen=True)
class Value:
    """A value of the graph, and its content on the inputs that the model was built with.

    The content is an array, a list of arrays, or None.
    """

    name: str
    data: Any
    maker: str = ""  # the operator that computes it
    constant: bool = False

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.data, np.ndarray)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype if self.is_tensor else np.dtype("V")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape if self.is_tensor else ()

    @property
    def rank(self) -> int:
        return len(self.shape)

    def proto(self) -> ValueInfoProto:
        return ValueInfoProto(name=self.name, type=type_proto(self.data))


@dataclass(frozen=True)
class Given:
    """An input of the model.

    If it is `fixed`, elements other than those it was built with are useless. If it has a `high`,
    its elements are indices below this.
    """

    value: Value
    fixed: bool = False
    high: int | None = None
    default: bool = False


def type_proto(data: Any) -> onnx.TypeProto:
    if isinstance(data, list):
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(element_code(data[0].dtype), None))
    return helper.make_tensor_type_proto(element_code(data.dtype), data.shape)


def element_code(dtype: np.dtype[Any]) -> int:
    return TensorProto.STRING if dtype.kind == "O" else int(helper.np_dtype_to_tensor_dtype(dtype))


def type_name(data: Any) -> str:
    """Returns the name of a type, as schemas write it."""
    if isinstance(data, list):
        return f"seq({type_name(data[0])})" if data else ""
    names = {"float16": "float16", "float32": "float", "float64": "double", "object": "string", "complex64": "complex64"}
    return f"tensor({names.get(data.dtype.name, data.dtype.name)})"


@dataclass
class Scope:
    """A graph, or the body of a node, which also sees the values around it."""

    chance: Chance
    opset: int
    symbols: Sequence[int] = ()
    prefix: str = ""
    outer: Sequence[Value] = ()
    values: list[Value] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    givens: list[Given] = field(default_factory=list)
    odd: bool = False
    count: int = 0
    floats: Sequence[Any] = (np.float32,)

    # --- names and values ---

    def fresh(self) -> str:
        self.count += 1
        name = f"{self.prefix}v{self.count}"
        return self.chance.pick(_ODD).format(name) if self.odd else name

    @property
    def known(self) -> list[Value]:
        return [*self.outer, *self.values]

    def inner(self) -> Scope:
        """Returns the scope of a body of the next node."""
        self.count += 1
        return Scope(self.chance, self.opset, self.symbols, f"{self.prefix}b{self.count}_", self.known, odd=self.odd, floats=self.floats)

    def given(self, data: Any, fixed: bool = False, high: int | None = None) -> Value:
        """Returns a new input of the graph. In a body it returns a constant or another value."""
        if self.prefix:
            return self.literal(data)
        value = Value(self.fresh(), data)
        default = self.chance.often(0.04) and isinstance(data, np.ndarray)
        self.givens.append(Given(value, fixed, high, default))
        if default:
            self.initializers.append(numpy_helper.from_array(data, value.name))
        self.values.append(value)
        return value

    def literal(self, array: Array) -> Value:
        """Returns a constant: an initializer, or a Constant node."""
        value = Value(self.fresh(), array, constant=True)
        if self.chance.often(0.75):
            self.initializers.append(numpy_helper.from_array(array, value.name))
        else:
            self.nodes.append(self._constant_node(array, value.name))
        self.values.append(value)
        return value

    def _constant_node(self, array: Array, name: str) -> NodeProto:
        if self.opset >= 12 and array.ndim <= 1 and array.dtype in (np.float32, np.int64) and self.chance.often():
            kind = "float" if array.dtype == np.float32 else "int"
            item: Any = array.item() if array.ndim == 0 else array.tolist()
            if array.ndim == 0 or item:
                return helper.make_node("Constant", [], [name], **{f"value_{kind}" + "s" * array.ndim: item})
        return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))

    def size(self) -> int:
        return self.chance.pick(self.symbols) if self.symbols and self.chance.often(0.45) else 0 if self.chance.often(0.03) else self.chance.pick(_STATIC)

    def sizes(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.chance.number(low, high)))

    def floating(self) -> np.dtype[Any]:
        return np.dtype(self.chance.pick(self.floats))

    def new(self, dtype: Any, shape: Sequence[int]) -> Value:
        """Returns a tensor that no node computes: an input, or a constant without a named size."""
        kind = np.dtype(dtype)
        if not set(shape) & set(self.symbols) and self.chance.often(0.55):
            return self.literal(self.chance.constant(kind, shape))
        return self.given(self.chance.ordinary(kind, shape))

    def tensor(self, dtype: Any, shape: Sequence[int], reuse: float = 0.5) -> Value:
        """Returns a tensor of exactly this type, an existing or a new one."""
        found = [value for value in self.known if value.is_tensor and value.dtype == np.dtype(dtype) and value.shape == tuple(shape)]
        return self.chance.pick(found) if found and self.chance.often(reuse) else self.new(dtype, shape)

    def operand(self, x: Value, dtype: Any = None) -> Value:
        """Returns a value that broadcasts with `x`: all of its sizes, some, or one number."""
        kind = x.dtype if dtype is None else np.dtype(dtype)
        found = [value for value in self.known if value.is_tensor and value.dtype == kind and broadcasts(value.shape, x.shape)]
        if found and self.chance.often(0.45):
            return self.chance.pick(found)
        if self.chance.often(0.3):
            return self.literal(self.chance.constant(kind, self.chance.pick([(), (1,)])))
        shape = x.shape[self.chance.number(0, x.rank) if self.chance.often() else 0 :]
        return self.new(kind, [1 if size in self.symbols or self.chance.often(0.25) else size for size in shape])

    def parameter(self, array: Array) -> Value:
        """Returns a controlling input: mostly a constant, seldom known only at run time."""
        return self.given(array, fixed=True) if not self.prefix and self.chance.often(0.04) else self.literal(array)

    # --- nodes ---

    def node(self, operator: str, inputs: Sequence[Value | None], outputs: int = 1, domain: str = "", /, **settings: Setting) -> list[Value] | None:
        """Adds a node if the runtime accepts it, else returns None.

        Settings become attributes or inputs, whichever this opset has, or are left out.
        """
        schema = find_operator(domain, operator, 1 if domain else self.opset).schema
        if schema is None and not domain:
            return None
        operands: list[Value | None] = list(inputs)
        attributes: dict[str, Any] = {}
        formals = [formal.name for formal in schema.inputs] if schema is not None else []
        for name, setting in settings.items():
            if setting is None:
                continue
            if schema is None or name in schema.attributes:
                attributes[name] = setting
                continue
            name = _ALIASES.get((operator, name), name)
            if name in formals:
                place = formals.index(name)
                operands += [None] * (place + 1 - len(operands))
                kind = np.int64 if not isinstance(setting, np.ndarray) else setting.dtype
                operands[place] = setting if isinstance(setting, Value) else self.parameter(np.asarray(setting, kind))
        for value, formal in zip(operands, schema.inputs if schema is not None else (), strict=False):
            if value is not None and type_name(value.data) not in formal.types:
                return None
        while operands and operands[-1] is None:
            operands.pop()
        names = [self.fresh() for _ in range(outputs)]
        made = helper.make_node(operator, [value.name if value else "" for value in operands], names, domain=domain)
        for name, setting in attributes.items():
            made.attribute.append(self._attribute(schema, name, setting))
        return self.add(made, [value for value in operands if value])

    @staticmethod
    def _attribute(schema: Any, name: str, setting: Setting) -> AttributeProto:
        kinds = onnx.defs.OpSchema.AttrType
        kind = schema.attributes[name].type if schema is not None else None
        if kind == kinds.FLOAT:
            setting = float(setting)
        elif kind == kinds.TENSOR and isinstance(setting, np.ndarray):
            setting = numpy_helper.from_array(setting)
        elif isinstance(setting, np.ndarray):
            setting = setting.tolist()
        if isinstance(setting, list) and not setting:
            return helper.make_attribute(name, setting, attr_type=AttributeProto.FLOATS if kind == kinds.FLOATS else AttributeProto.INTS)
        return helper.make_attribute(name, setting)

    def add(self, node: NodeProto, operands: Sequence[Value]) -> list[Value] | None:
        """Adds a node as it is, if the runtime accepts it and its results are small."""
        try:
            results = self._results(node, operands)
        except Exception:
            return None
        if any(result is None or not _is_small(result) for result in results):
            return None
        values = [Value(name, result, node.op_type) for name, result in zip([name for name in node.output if name], results, strict=True)]
        self.nodes.append(node)
        self.values += values
        return values

    def _results(self, node: NodeProto, operands: Sequence[Value]) -> list[Any]:
        captured = captures(node)
        wanted = {value.name: value for value in (*(value for value in self.known if value.name in captured), *operands)}
        given = [value for value in wanted.values() if not value.constant]
        constants = [numpy_helper.from_array(value.data, value.name) for value in wanted.values() if value.constant]
        outputs = [ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "one", [value.proto() for value in given], outputs, constants)
        model = helper.make_model(graph, opset_imports=self.imports(), ir_version=ir_version(self.opset))
        return open_runtime(model.SerializeToString()).run({value.name: value.data for value in given})

    def imports(self) -> list[onnx.OperatorSetIdProto]:
        return [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]

    def graph(self, name: str, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]) -> GraphProto:
        return helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)


def ir_version(opset: int) -> int:
    """Returns an IR version that fits the opset."""
    return 4 if opset < 10 else 8 if opset < 21 else 10


def broadcasts(a: Sequence[int], b: Sequence[int]) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(tuple(a), tuple(b)))) <= _MOST
    except ValueError:
        return False


def captures(node: NodeProto) -> set[str]:
    """Returns the names that the bodies of a node capture."""
    found: set[str] = set()
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs:
            own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            for inner in graph.node:
                found |= ({*inner.input} | captures(inner)) - own
                own |= {*inner.output}
            found |= {value.name for value in graph.output} - own
    return found - {""}


def _is_small(result: Any) -> bool:
    if isinstance(result, list):
        return bool(result) and all(isinstance(part, np.ndarray) and _is_small(part) for part in result)
    return isinstance(result, np.ndarray) and result.size <= _MOST and result.ndim <= 6


Emitter = Callable[[Scope, Value, str], "list[Value] | None"]
Emitters = Mapping[str, Emitter]

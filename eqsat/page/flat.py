"""The flat form of a model: the nodes of all its graphs in one list, as plain data that can be
compared and drawn.

A value has a key that is unique in the model: its name, after the path of bodies or the function
that it is inside. Nodes of a body come before the node that has the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import onnx
from onnx import TensorProto

from eqsat.model.model import BODY_TYPES, Constant, FunctionKey, Graph, Model, Node, attribute_graphs
from eqsat.model.tensors import Tensor
from eqsat.operators import AttributeValue, read_attributes

INSIDE = "\x1f"
"""The separator of keys: a control character that no exporter writes into a name."""
_SMALL = 1024  # the most bytes of a constant that is compared with others
_SHOWN = 8  # the most elements of a list that the text of an attribute or a constant shows


@dataclass(frozen=True, slots=True)
class Step:
    """One node. Absent inputs and outputs have empty keys."""

    operator: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    """The given attributes as text for people."""
    meaning: tuple[object, ...] = ()
    """Equal for two nodes of one opset whose operators and attributes are equal, defaults included."""
    results: tuple[str, ...] = ()
    """The values that its bodies return to it."""
    within: tuple[str, ...] = ()
    """The titles of the bodies, or the function, that the node is inside."""
    scopes: tuple[str, ...] = ()
    """The modules of the source that an exporter recorded in the metadata."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A constant: its type, a text that shows it, and its content if that is small."""

    type: str
    text: str
    content: tuple[object, ...] | None


@dataclass(slots=True)
class Flat:
    """All graphs of a model."""

    steps: list[Step] = field(default_factory=list[Step])
    inputs: list[str] = field(default_factory=list[str])
    """The keys of the inputs of the main graph, then those of bodies and functions."""
    fed: int = 0
    """How many of them are the main graph's."""
    outputs: list[str] = field(default_factory=list[str])
    """The keys of the outputs of the main graph."""
    returned: list[str] = field(default_factory=list[str])
    """The keys of the outputs of all graphs, whose names never change."""
    constants: dict[str, Stored] = field(default_factory=dict[str, Stored])

    def values(self) -> set[str]:
        """Returns the keys of all values."""
        return {*self.inputs, *self.constants, *(key for step in self.steps for key in step.outputs if key)}


def bare(key: str) -> str:
    """Returns the name of a value without the path of its key."""
    return key.rpartition(INSIDE)[2]


def flat(model: Model) -> Flat:
    """Returns the flat form of a model in normal form. Weights are not read, only small constants."""
    found = Flat()
    names = _titles(model.functions)
    _Flattener(found, names).graph(model.graph, "", (), {})
    found.fed = len(model.graph.inputs)
    found.inputs = [*model.graph.inputs, *(key for key in found.inputs if INSIDE in key)]
    found.outputs = list(model.graph.outputs)
    for key, function in model.functions.items():
        title = f"function {names[key]}"
        _Flattener(found, names).graph(function.body, title + INSIDE, (title,), {})
    return found


def _titles(functions: Iterable[FunctionKey]) -> dict[FunctionKey, str]:
    return {key: ".".join(filter(None, key)) for key in functions}


@dataclass(slots=True)
class _Flattener:
    found: Flat
    functions: Mapping[FunctionKey, str]

    def graph(self, graph: Graph, prefix: str, within: tuple[str, ...], outer: Mapping[str, str]) -> tuple[str, ...]:
        """Adds a graph and its bodies. `outer` has the keys of the values around it, by name.
        Returns the keys of its outputs.
        """
        defined = [*graph.inputs, *graph.constants, *graph.sparse, *(name for node in graph.nodes for name in node.outputs if name)]
        keys = {"": "", **outer, **{name: prefix + name for name in defined}}
        self.found.inputs += [keys[name] for name in graph.inputs]
        self.found.constants.update({keys[name]: _stored(constant) for name, constant in graph.constants.items() if name not in graph.inputs})
        self.found.constants.update({keys[name]: Stored("sparse tensor", "", None) for name in graph.sparse})
        for node in graph.nodes:
            self._node(node, prefix, within, keys)
        outputs = tuple(keys.get(name, name) for name in graph.outputs)
        self.found.returned += outputs
        return outputs

    def _node(self, node: Node, prefix: str, within: tuple[str, ...], keys: Mapping[str, str]) -> None:
        operator = self.functions[node.function] if node.function is not None else ".".join(filter(None, (node.operator.domain, node.operator.name)))
        first = next(filter(None, node.outputs), "")
        results: list[str] = []
        for body, graph in node.bodies.items():
            results += self.graph(graph, f"{prefix}{first}{INSIDE}{body}{INSIDE}", (*within, f"{operator} {node.proto.name or first}", body), keys)
        plain = [item for item in node.proto.attribute if item.type not in BODY_TYPES]
        values = read_attributes(node.operator, plain)
        self.found.steps.append(
            Step(
                operator,
                node.proto.name,
                tuple(keys[name] for name in node.inputs),
                tuple(keys[name] for name in node.outputs),
                tuple((item.name, attribute_text(values[item.name])) for item in plain),
                (operator, node.operator.version, *((name, _comparable(value)) for name, value in values.items()), *node.bodies),
                tuple(results),
                within,
                _scopes(node.proto),
            )
        )


def types(model: onnx.ModelProto) -> dict[str, str]:
    """Returns the declared and inferred types of values as text, by key."""
    found: dict[str, str] = {}

    def add(graph: onnx.GraphProto, prefix: str) -> None:
        for info in (*graph.input, *graph.value_info, *graph.output):
            found.setdefault(prefix + info.name, _type_text(info.type))
        for node in graph.node:
            first = next(filter(None, node.output), "")
            for body, inner in attribute_graphs(node):
                add(inner, f"{prefix}{first}{INSIDE}{body}{INSIDE}")

    add(model.graph, "")
    return {key: text for key, text in found.items() if text}


def attribute_text(value: AttributeValue) -> str:
    """Returns the value of an attribute as text, shortened."""
    if isinstance(value, onnx.AttributeProto):
        if value.HasField("t"):
            return tensor_type(value.t.data_type, value.t.dims)
        return onnx.AttributeProto.AttributeType.Name(value.type).lower()
    if isinstance(value, tuple):
        shown = ", ".join(_scalar(item) for item in value[:_SHOWN])
        return f"[{shown}, … {len(value)} in all]" if len(value) > _SHOWN else f"[{shown}]"
    return _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _comparable(value: AttributeValue) -> object:
    return value.SerializeToString(deterministic=True) if isinstance(value, onnx.AttributeProto) else repr(value)


def tensor_type(dtype: int, dims: Iterable[object] | None) -> str:
    """Returns a type as people write it: `float32[N, 8]`, or `float32` if the rank is unknown."""
    known = TensorProto.DataType.Name(dtype).lower() if dtype in TensorProto.DataType.values() else f"type {dtype}"
    element = {"float": "float32", "double": "float64"}.get(known, known)
    return element if dims is None else f"{element}[{', '.join(map(str, dims))}]"


def _type_text(kind: onnx.TypeProto) -> str:
    which = kind.WhichOneof("value")
    if which != "tensor_type":
        return (which or "").removesuffix("_type").replace("_", " ")
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return tensor_type(tensor.elem_type, None) if tensor.elem_type else ""
    return tensor_type(tensor.elem_type, [size.dim_value if size.HasField("dim_value") else size.dim_param or "?" for size in tensor.shape.dim])


def _stored(constant: Constant) -> Stored:
    tensor = constant.tensor
    kind = tensor_type(tensor.dtype, tensor.dims)
    if not _is_plain(tensor):
        return Stored(kind, "", None)
    array = tensor.array()
    return Stored(kind, attribute_text(tuple(array.flatten().tolist())) if array.size <= _SHOWN else "", (tensor.dtype, tensor.dims, array.tobytes()))


def _is_plain(tensor: Tensor) -> bool:
    return tensor.nbytes <= _SMALL and tensor.external is None and not tensor.hollow and tensor.dtype != TensorProto.STRING


def _scopes(node: onnx.NodeProto) -> tuple[str, ...]:
    """Returns the modules that PyTorch's exporter records: a list, in Python's notation, of the
    full names of modules, each inside the one before; the node is the last.
    """
    for item in node.metadata_props:
        if item.key == "pkg.torch.onnx.name_scopes":
            parts: list[str] = []
            before = ""
            for name in [part.strip(" '\"") for part in item.value.strip("[]").split(",")][:-1]:
                if name and name != before:
                    parts.append(name.removeprefix(before + ".") if before else name)
                    before = name
            return tuple(parts)
    return ()

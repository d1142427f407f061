"""Read a model: a source (eqsat/model/sources.py) becomes a `Model` in normal form.

`read` refuses a model without meaning and says where the defect is, in one line: an undefined
value, two definitions of one value, a cycle, a number of inputs that the schema forbids, or
external data outside the model's folder. It accepts harmless deviations from the standard (unsorted
nodes, missing declarations, unknown operators), as runtimes do.
"""

from __future__ import annotations

import dataclasses
import heapq
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import onnx
from onnx import defs

from eqsat.errors import InputError
from eqsat.facts.onnx_inference import is_equation
from eqsat.model.known_versions import check_opset
from eqsat.model.model import Constant, Function, FunctionKey, Graph, Model, Node, NodeCount, attribute_graphs, callees_first, function_key
from eqsat.model.names import stored_names
from eqsat.model.sources import Source, load, path_of
from eqsat.model.tensors import constant_value, read_tensor
from eqsat.operators import attribute_spellings, find_operator, may_train, normal_domain, read_attributes

_MOST_UNFOLDED = 1 << 20  # nodes; runtimes need some kilobytes for each


def read(source: Source, name: str = "source") -> Model:
    """Read a model and bring it into normal form; `name` is the argument that it was given for."""
    proto, folder = load(source, name)
    return normalize(proto, folder, path_of(source))


def normalize(proto: onnx.ModelProto, folder: Path | None, label: str | None) -> Model:
    """Bring a message into normal form; error messages begin with `label`."""
    try:
        return _Reader(proto, folder).model()
    except InputError as error:
        raise InputError(f"{label}: {error}" if label else str(error)) from None


def as_constant(node: onnx.NodeProto, folder: Path | None) -> Constant | None:
    """Return the constant that a `Constant` node stands for; None for any other node.

    External data are under `folder`.
    """
    if node.op_type != "Constant" or normal_domain(node.domain) or len(node.output) != 1 or not node.output[0] or len(node.attribute) != 1:
        return None
    tensor = constant_value(node.attribute[0], folder)
    return None if tensor is None else Constant(tensor, node)


class _Reader:
    def __init__(self, proto: onnx.ModelProto, folder: Path | None) -> None:
        self.proto = proto
        self.folder = folder
        self.opsets = _opsets(proto.opset_import)
        self.functions: dict[FunctionKey, Function] = {}
        self.protos = {function_key(f.domain, f.name, f.overload): f for f in proto.functions}
        self.pure: dict[FunctionKey, bool] = {}

    def model(self) -> Model:
        if not self.proto.HasField("graph"):
            raise InputError("the model holds no graph")
        shell = self.proto
        texts = (shell.producer_name, shell.producer_version, shell.domain, shell.doc_string)
        self._check_text((*texts, *(item.domain for item in shell.opset_import)), "the model")
        for key in callees_first(self.protos):
            self._function(key)
        graph = self._graph(self.proto.graph, self.opsets, frozenset(), "the graph", top=True)
        if self.protos and (unfolded := NodeCount(self.proto.functions).nodes(self.proto.graph.node)) > _MOST_UNFOLDED:
            raise InputError(f"the calls of functions unfold to {unfolded:,} nodes; runtimes inline them all, and load at most {_MOST_UNFOLDED:,}")
        return Model(self.proto, graph, self.functions, self.folder)

    def _function(self, key: FunctionKey) -> None:
        proto = self.protos[key]
        where = f"function {proto.domain}.{proto.name}"
        shell = onnx.GraphProto(name=proto.name)
        shell.input.extend(onnx.ValueInfoProto(name=name) for name in proto.input)
        shell.output.extend(onnx.ValueInfoProto(name=name) for name in proto.output)
        shell.node.extend(proto.node)
        shell.value_info.extend(proto.value_info)
        body = self._graph(shell, {**self.opsets, **_opsets(proto.opset_import)}, frozenset(), where)
        self.functions[key] = Function(proto, body)
        self.pure[key] = _pure(body)

    def _graph(self, proto: onnx.GraphProto, opsets: Mapping[str, int], outer: frozenset[str], where: str, top: bool = False) -> Graph:
        folder = self.folder
        inputs = [info.name for info in proto.input]
        defaults = frozenset(inputs).intersection(stored_names(proto))
        defined = dict.fromkeys(inputs, f"an input of {where}")
        _check_types((*proto.input, *proto.output, *proto.value_info), where)
        constants: dict[str, Constant] = {}
        for tensor in proto.initializer:
            if not tensor.name:
                raise InputError(f"{where} has an initializer without a name")
            if tensor.name in constants:
                raise InputError(f"{where} has two initializers named '{tensor.name}'")
            constants[tensor.name] = Constant(read_tensor(tensor, folder))
            if tensor.name not in defaults:
                defined[tensor.name] = "an initializer"
        sparse: dict[str, onnx.SparseTensorProto] = {}
        for item in proto.sparse_initializer:
            name = item.values.name
            if name in sparse or name in constants or name not in defaults:
                _define(defined, name, "a sparse initializer", where)
            sparse[name] = item
        if top and self.proto.ir_version < 4:  # before IR version 4 every initializer is an input, and none can be fed
            inputs, defaults = [name for name in inputs if name not in defaults], frozenset[str]()
        raw: list[onnx.NodeProto] = []
        self._check_text((proto.name, proto.doc_string, *inputs, *(info.name for info in proto.output), *(tensor.name for tensor in proto.initializer)), where)
        for node in proto.node:
            self._check_text((node.op_type, node.domain, node.overload, *node.input, *node.output, *(a.name for a in node.attribute)), where)
            constant = as_constant(node, folder)
            if constant is not None and node.output[0] in constants:
                # Exporters repeat constants under one name; ONNX Runtime takes the last one, and so
                # do we.
                constants[node.output[0]] = constant
                continue
            for name in node.output:
                if name:
                    _define(defined, name, _describe(node), where)
            if constant is not None:
                constants[node.output[0]] = constant
            elif any(node.output):
                raw.append(node)  # a node without outputs computes nothing
        visible = outer.union(defined)
        for name in (info.name for info in proto.output):
            if name not in visible:
                raise InputError(f"{where}: output '{name}' is not defined by anything")
        nodes = _sort([self._node(node, opsets, visible, where) for node in raw], where)
        return Graph(proto, tuple(inputs), tuple(info.name for info in proto.output), constants, nodes, defaults, sparse)

    @staticmethod
    def _check_text(names: Iterable[str], where: str) -> None:
        """Reject text that is not UTF-8, which protobuf returns as bytes."""
        for name in names:
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(f"{where} holds a name that is not UTF-8 text: {name!r}")

    def _node(self, proto: onnx.NodeProto, opsets: Mapping[str, int], visible: frozenset[str], where: str) -> Node:
        for name in proto.input:
            if name and name not in visible:
                raise InputError(f"{where}: {_describe(proto)} uses '{name}', which nothing defines")
        bodies: dict[str, Graph] = {}
        captures: dict[str, None] = {}
        for name, graph in attribute_graphs(proto):
            body = self._graph(graph, opsets, visible, f"{where}, {_describe(proto)}, {name}")
            bodies[name] = body
            captures.update(dict.fromkeys(body.captured()))
        key = function_key(proto.domain, proto.op_type, proto.overload)
        domain = normal_domain(proto.domain)
        opset = opsets.get(domain, _missing(domain))
        operator = find_operator(domain, proto.op_type, opset)
        if key in self.protos:
            operator = dataclasses.replace(operator, version=0, schema=None, pure=self.pure[key])
        else:
            check_opset(domain, opset)
            _check_schema(operator.schema, proto, where)
        if bodies and operator.pure:
            operator = dataclasses.replace(operator, pure=all(_pure(body) for body in bodies.values()))
        inside = [inner for body in bodies.values() for inner in body.nodes]
        if key in self.protos:
            inside += self.functions[key].body.nodes
        dequantizes = any(inner.dequantizes or inner.operator.name == "DequantizeLinear" for inner in inside)
        function = key if key in self.protos else None
        # A name stands in many places, and in each reading of the model's turns; so there is one string of it.
        inputs, outputs = tuple(map(sys.intern, proto.input)), tuple(map(sys.intern, proto.output))
        return Node(operator, proto, inputs, outputs, bodies, tuple(captures), function, dequantizes)


def _pure(graph: Graph) -> bool:
    """Tell whether all nodes of a body or function are pure, for all inputs."""
    return all(
        node.operator.pure and not may_train(node.operator, read_attributes(node.operator, node.proto.attribute), len(node.inputs), len(node.outputs))
        for node in graph.nodes
    )


def _missing(domain: str) -> int:
    """Return the opset of a domain that a model uses but does not import.

    Runtimes take the newest one.
    """
    return defs.onnx_opset_version() if domain == "" else 1


def _opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {normal_domain(item.domain): item.version for item in imports}


def _describe(node: onnx.NodeProto) -> str:
    label = f" '{node.name}'" if node.name else ""
    return f"node {node.op_type}{label}"


def _define(defined: dict[str, str], name: str, what: str, where: str) -> None:
    if name in defined:
        raise InputError(f"{where}: '{name}' is defined twice, by {defined[name]} and by {what}")
    defined[name] = what


def _check_types(infos: Iterable[onnx.ValueInfoProto], where: str) -> None:
    """Reject declared types that ONNX does not have. Missing or wrong declarations are accepted."""
    known = set(onnx.TensorProto.DataType.values())
    for info in infos:
        kind = info.type.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type") and getattr(info.type, kind).elem_type not in known:
            raise InputError(f"{where}: '{info.name}' is declared with an element type that ONNX does not know ({getattr(info.type, kind).elem_type})")


def _type_number(attribute: defs.OpSchema.Attribute) -> int:
    kind: Any = attribute.type
    return int(kind.value)


def _check_schema(schema: defs.OpSchema | None, node: onnx.NodeProto, where: str) -> None:
    if schema is None:
        return
    if not schema.min_input <= len(node.input) <= schema.max_input:
        raise InputError(f"{where}: {_describe(node)} has {len(node.input)} inputs; {schema.name} takes {schema.min_input} to {schema.max_input}")
    if not len(node.output) <= schema.max_output:
        raise InputError(f"{where}: {_describe(node)} has {len(node.output)} outputs; {schema.name} gives at most {schema.max_output}")
    if where.startswith("function"):
        return  # attributes that the node lacks may be parameters of the function
    given = {attribute.name: attribute for attribute in node.attribute}
    for name, attribute in given.items():
        if name not in schema.attributes:
            # Exported models often have attributes from another version of the operator. They are
            # harmless.
            if name not in attribute_spellings(schema.domain, schema.name):
                raise InputError(f"{where}: {_describe(node)} has an attribute '{name}' that no version of {schema.name} knows")
        elif (
            schema.name != "Constant"
            and attribute.type != _type_number(schema.attributes[name])
            and attribute.type != onnx.AttributeProto.UNDEFINED
            and not attribute.ref_attr_name
        ):
            raise InputError(f"{where}: {_describe(node)}: attribute '{name}' has the wrong type for {schema.name}")
    if schema.name == "Einsum" and not is_equation(given["equation"].s.decode(errors="replace") if "equation" in given else ""):
        # On some illegal equations onnx's inference never ends.
        raise InputError(f"{where}: {_describe(node)}: {given['equation'].s!r} is no equation; a term has letters and at most one '...'")
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in given:
            raise InputError(f"{where}: {_describe(node)} lacks the attribute '{name}' that {schema.name} needs")


def _sort(nodes: list[Node], where: str) -> list[Node]:
    """Sort nodes topologically; apart from that, keep the order of the file."""
    producer = {name: index for index, node in enumerate(nodes) for name in node.outputs if name}
    users: list[list[int]] = [[] for _ in nodes]
    missing = [0] * len(nodes)
    for index, node in enumerate(nodes):
        for source in {producer[name] for name in (*node.inputs, *node.captures) if name in producer}:
            users[source].append(index)
            missing[index] += 1
    ready = [index for index, count in enumerate(missing) if count == 0]
    order: list[Node] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(nodes[index])
        for user in users[index]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, user)
    if len(order) < len(nodes):
        stuck = next(node for node, count in zip(nodes, missing, strict=True) if count)
        raise InputError(f"{where}: {_describe(stuck.proto)} depends on itself: the graph has a cycle")
    return order

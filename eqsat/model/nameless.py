"""Nameless keys: models that differ in names alone, of values and of nodes, have one key.

Nodes keep their order, so a runtime makes the same of both models. Elements of the weights that have
stand-ins (eqsat/model/stand_ins.py) do not count either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import onnx

from eqsat.model.model import BODY_TYPES, copy_fields
from eqsat.model.tensors import is_weight


def nameless_key(model: onnx.ModelProto) -> bytes | None:
    """Returns the key of a model, or None where values have names at more places: in bodies,
    functions, sparse constants and annotations.
    """
    graph = model.graph
    if model.functions or graph.sparse_initializer or graph.quantization_annotation:
        return None
    rest = onnx.ModelProto()
    copy_fields(model, rest, {"graph"})
    numbers: dict[str, int] = {"": 0}
    rows: list[object] = [rest.SerializeToString(deterministic=True)]

    def numbered(names: Iterable[str]) -> list[int]:
        return [numbers.setdefault(name, len(numbers)) for name in names]

    rows += [[(numbered([info.name]), info.type.SerializeToString()) for info in infos] for infos in (graph.input, graph.output)]
    for node in graph.node:
        rows.append((node.op_type, node.domain, numbered(node.input), numbered(node.output)))
        for attribute in node.attribute:
            if attribute.type in BODY_TYPES:
                return None
            rows.append(attribute.SerializeToString())
    rows.append(sorted([(numbers[info.name], info.type.SerializeToString()) for info in graph.value_info if info.name in numbers]))
    rows.append(sorted([(numbered([tensor.name]), _content(tensor)) for tensor in graph.initializer], key=lambda row: row[0]))
    return hashlib.blake2b(repr(rows).encode(), digest_size=16).digest()


def _content(tensor: onnx.TensorProto) -> object:
    """Returns the type of a constant and the elements that count, without its name."""
    kind = tensor.data_type, list(tensor.dims)
    if is_weight(tensor):
        return kind
    if tensor.data_location != onnx.TensorProto.EXTERNAL and tensor.HasField("raw_data"):
        return *kind, hashlib.blake2b(tensor.raw_data, digest_size=16).digest()
    bare = onnx.TensorProto()
    bare.CopyFrom(tensor)
    bare.ClearField("name")
    bare.ClearField("doc_string")
    return *kind, bare.SerializeToString(deterministic=True)

"""Changes that a caller asks for: another opset, inlined functions, fixed dimensions, constant defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from eqsat.errors import InputError
from eqsat.model.imports import standard_opset
from eqsat.model.model import all_graphs
from eqsat.model.names import stored_names
from eqsat.operators import normal_domain
from eqsat.runtime.onnx_passes import NativeFailure, converted, inferred, inlined
from eqsat.runtime.worker import shared

_NO_ADAPTER = re.compile(r"No Adapter (From|To) Version \$?(\d+) for (\w+)")
_NO_SCHEMA = re.compile(r"has no registered schema.*%lld\.(\w*?)\d+\s*$", re.DOTALL)
_OPSET = re.compile("[0-9]{1,9}")
# Inputs that were attributes before an opset.
_INPUTS = 11
_FROM_ATTRIBUTES: Final[Mapping[str, tuple[int, ...]]] = {"Clip": (1, 2), "Pad": (2,)}
_WITH_WEIGHTS = frozenset("Conv ConvInteger ConvTranspose GRU Gemm LSTM MatMul MatMulInteger QLinearConv QLinearMatMul RNN".split())


def check_dimensions(proto: onnx.ModelProto, dims: Mapping[str, int]) -> None:
    """Raise an `InputError` if `dims` names a dimension that the model does not have."""
    known = dimension_names(proto)
    unknown = sorted(set(dims) - known)
    if unknown:
        raise InputError(f"the model has no dimension named '{unknown[0]}'; it has: {', '.join(sorted(known)) or 'none with a name'}")


def dimension_names(proto: onnx.ModelProto) -> set[str]:
    """Return the names of dimensions that the model declares."""
    return {size.dim_param for size in _declared(proto) if size.HasField("dim_param")}


def bake(proto: onnx.ModelProto, dims: Mapping[str, int]) -> None:
    """Replace named dimensions by their sizes, in place, wherever the model declares them."""
    check_dimensions(proto, dims)
    for size in _declared(proto):
        if size.HasField("dim_param") and size.dim_param in dims:
            size.dim_value = dims[size.dim_param]


def default_inputs(proto: onnx.ModelProto) -> list[str]:
    """Return the inputs that have a default value.

    Before IR version 4 every initializer had to be an input, and none was a default.
    """
    given = set(stored_names(proto.graph))
    return [value.name for value in proto.graph.input if value.name in given] if proto.ir_version >= 4 else []


def lists_weights(proto: onnx.ModelProto) -> bool:
    """Tell whether a model lists its weights as inputs, as every model did before IR version 4.

    Some exporters went on doing so, so their weights look like defaults that a caller may replace. Such a
    model lists all of its initializers, and a Conv, a product or a recurrence reads one of them. Where
    somebody chose which inputs have a default value, weights are not among them.
    """
    stored = set(stored_names(proto.graph))
    if not stored or len(default_inputs(proto)) < len(stored):
        return False
    matrices = {tensor.name for tensor in proto.graph.initializer if len(tensor.dims) > 1}
    return any(node.op_type in _WITH_WEIGHTS and not matrices.isdisjoint(node.input) for node in proto.graph.node)


def without_default_inputs(proto: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Make constants of the inputs that have a default value, in place, and return these inputs."""
    stored = set(stored_names(proto.graph))
    inputs = list(proto.graph.input)
    del proto.graph.input[:]
    proto.graph.input.extend(info for info in inputs if info.name not in stored)
    return [info for info in inputs if info.name in stored]


def _declared(proto: onnx.ModelProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    graph = proto.graph
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.type.HasField("tensor_type"):
            yield from info.type.tensor_type.shape.dim


def inline(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with every call of a local function replaced by the function's body."""
    try:
        found = inlined(proto)
    except NativeFailure as error:
        raise InputError(f"the model's functions can not be inlined: {error}") from None
    del found.functions[:]  # onnx keeps those that nothing calls
    return found


def _in_words(failure: str) -> str:
    """Returns the failure of onnx's converter, in words where it lacks a step for an operator, or the operator."""
    if unknown := _NO_SCHEMA.search(failure):
        return f"onnx knows no operator {unknown[1]} of the model's opset; without --opset the model keeps its own"
    found = _NO_ADAPTER.search(failure)
    if found is None:
        return failure
    direction, version, name = found.groups()
    return f"onnx converts no {name} {direction.lower()} opset {version}; another --opset may do, and without it the model keeps its own"


def _drop_empty_scales(graph: onnx.GraphProto) -> None:
    """Remove the scales of each Resize that has sizes, in place: before opset 13 they were a required input, which
    onnx's converter keeps, and later versions refuse both.
    """
    empty = {tensor.name for tensor in graph.initializer if 0 in tensor.dims}
    empty |= {node.output[0] for node in graph.node if node.op_type == "Constant" for attribute in node.attribute if 0 in attribute.t.dims}
    for node in graph.node:
        if node.op_type == "Resize" and len(node.input) == 4 and node.input[2] in empty:
            node.input[2] = ""


def _give_numbers_their_types(graph: onnx.GraphProto, types: Mapping[str, int]) -> None:
    """Give the bounds of each Clip, and the elements around each Pad, the type of what it works on, in place. onnx's
    converter makes them from attributes, as float whatever that type is. A bound beyond that type is none.
    """
    constants = (node for node in graph.node if node.op_type == "Constant")
    made = {name: attribute.t for node in constants for name in node.output for attribute in node.attribute if attribute.name == "value"}
    for node in graph.node:
        for place in _FROM_ATTRIBUTES.get(node.op_type, ()):
            dtype = types.get(node.input[0], TensorProto.UNDEFINED) if place < len(node.input) else TensorProto.UNDEFINED
            number = made.get(node.input[place]) if dtype not in (TensorProto.UNDEFINED, TensorProto.FLOAT) else None
            if number is None or number.data_type != TensorProto.FLOAT:
                continue
            with np.errstate(over="ignore"):
                array = numpy_helper.to_array(number).astype(helper.tensor_dtype_to_np_dtype(dtype))
            if node.op_type == "Clip" and not np.isfinite(array):
                node.input[place] = ""
            else:
                number.CopyFrom(numpy_helper.from_array(array))


def _types(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the data types of the values of a model, as far as onnx infers them."""
    types: dict[str, int] = {}
    try:
        found = inferred(proto)
    except NativeFailure:
        found = proto
    for graph in all_graphs(found.graph):
        types |= {info.name: info.type.tensor_type.elem_type for info in (*graph.input, *graph.output, *graph.value_info)}
        types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    return types


def convert(proto: onnx.ModelProto, opset: str | int, best: Callable[[int], int | None]) -> onnx.ModelProto:
    """Convert `proto` to an opset of the default domain. Its functions, which onnx can not convert, are inlined.

    `opset` is "keep", "latest" or a number. The latest is the `best` one for a model of its opset,
    or else the newest that onnx and ONNX Runtime both know; a model of a later one keeps its own.
    """
    if opset == "keep":
        return proto
    if opset != "latest" and not _OPSET.fullmatch(str(opset)):
        raise InputError(f"an opset is 'keep', 'latest' or a number, not '{opset}'")
    newest: int = shared().call("eqsat.runtime.onnx_passes:newest_opset")
    if opset == "latest":
        own = standard_opset(proto.opset_import)
        wanted = max(own, min(newest, best(own) or newest))
    else:
        wanted = int(opset)
    if not 7 <= wanted <= newest:
        raise InputError(f"opset {wanted} is not one of 7 to {newest}, which onnx and ONNX Runtime know here")
    if [item.version for item in proto.opset_import if normal_domain(item.domain) == ""] in ([], [wanted]):
        return proto  # without the default domain there is nothing to convert
    plain = inline(proto) if proto.functions else proto
    try:
        result = converted(plain, wanted)
    except NativeFailure as error:
        raise InputError(f"the model can not be converted to opset {wanted}: {_in_words(str(error))}") from None
    # In that opset Clip and Pad got inputs in place of attributes.
    gains = any(node.op_type in _FROM_ATTRIBUTES for graph in all_graphs(plain.graph) for node in graph.node)
    types = _types(plain) if gains and standard_opset(plain.opset_import) < _INPUTS <= wanted else {}
    for graph in all_graphs(result.graph):
        _drop_empty_scales(graph)
        if types:
            _give_numbers_their_types(graph, types)
    needed = helper.find_min_ir_version_for(list(result.opset_import), ignore_unknown=True)
    if proto.ir_version < 4 <= needed:
        # From IR version 4 on, an initializer that is also listed as an input is only a default
        # value.
        without_default_inputs(result)
    result.ir_version = max(proto.ir_version, needed)
    return result

"""Steering: the values that decide sizes, indices and bounds, and the integers that floats decide.

The input is a model without function calls; the output is a `Steering`. A steering constant is no
weight: the size of a Resize depends on the exact bits of its scales, so nudges leave them alone. An
integer output of two right models may differ only if some float decides it, and only as far as that
float's own rounding allows. The graph alone shows both, without a run. In doubt a constant steers,
and an integer is exact.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from enum import IntEnum

import onnx
from onnx import TensorProto, defs, numpy_helper

from eqsat.frozen import frozen
from eqsat.model.imports import standard_opset
from eqsat.model.model import attribute_graphs
from eqsat.operators import find_operator, normal_domain

_FLOATS = frozenset(code for name, code in TensorProto.DataType.items() if "FLOAT" in name or name in ("DOUBLE", "COMPLEX64", "COMPLEX128"))
_INTEGERS = frozenset({TensorProto.INT32, TensorProto.INT64})
# Attributes that took the place of inputs in older opsets.
_BOUNDS = frozenset({"ends", "pads", "paddings", "shape", "split", "starts"})
_FEW = 64  # the most elements of a constant that holds sizes
_ENDLESS = 1 << 20  # a bound of at least this means "to the end"
_COUNTS = frozenset({"tensor(int32)", "tensor(int64)"})

# Steering inputs that need not be integers. Schemas show the other steering inputs.
_STEERS = {
    "Compress": (1,),
    "If": (0,),
    "Loop": (0, 1),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "NonMaxSuppression": (2, 3, 4),
    "OneHot": (0, 1),
    "Range": (0, 1, 2),
    "Resize": (1, 2, 3),
    "Tile": (1, 2),
    "Upsample": (1,),
}
_INDICES = frozenset({"B", "I", "batch_indices", "indices", "labels", "position", "position_ids", "target", "write_indices"})

# Operators that mix many numbers into each result, so that data and not a constant decide.
_MIXES = frozenset(
    """
    ArgMax ArgMin Attention AveragePool CausalConvWithState Conv ConvInteger ConvTranspose DeformConv Einsum Gemm GlobalAveragePool GlobalLpPool
    GlobalMaxPool GridSample GroupNormalization GRU InstanceNormalization LayerNormalization LinearAttention LogSoftmax LpNormalization LpPool LRN LSTM
    MatMul MatMulInteger MaxPool MaxRoiPool MeanVarianceNormalization NonMaxSuppression NonZero QLinearConv QLinearMatMul RMSNormalization RNN RoiAlign
    Softmax TopK Unique
    """.split()
)
_HIDES = frozenset({"Shape", "Size"})  # these read types, not values

# Operators from numbers to numbers. As their float inputs move, their integer outputs take all
# values in between.
_NUMERIC = frozenset(
    """
    Abs Add Cast CastLike Clip Concat ConvInteger CumSum DepthToSpace Div DynamicQuantizeLinear Expand Flatten Gather GatherElements GatherND Gemm Identity
    MatMul MatMulInteger Max MaxPool Mean Min Mul Neg Pad QLinearConv QLinearMatMul QuantizeLinear ReduceMax ReduceMean ReduceMin ReduceSum Reshape Slice
    SpaceToDepth Split Squeeze Sub Sum Tile Transpose Unsqueeze
    """.split()
)


class Decided(IntEnum):
    """The way floats decide an integer: not at all, by being rounded to it, or by choosing it."""

    NOT = 0
    ROUNDED = 1
    CHOSEN = 2


@frozen(slots=False)
class Steering:
    """The names of constants and model inputs that steer, and how floats decide other values."""

    constants: frozenset[str]
    inputs: frozenset[str]
    decided: dict[str, Decided]


def steering(proto: onnx.ModelProto) -> Steering:
    """Returns the steering of a model, its bodies included.

    A value that is missing in `decided` is floating-point, or of unknown type.
    """
    opset = standard_opset(proto.opset_import)
    backward = _Backward(opset)
    before = -1
    # Values that a body carries to its next iteration reach further in each round.
    while before != len(backward.bounds) + len(backward.indices):
        before = len(backward.bounds) + len(backward.indices)
        backward.graph(proto.graph)
    forward = _Forward(opset)
    forward.graph(proto.graph)
    return Steering(frozenset(backward.bounds | backward.indices), frozenset(backward.bounds), forward.decided)


def size_bounds(proto: onnx.ModelProto, steers: Steering) -> frozenset[int]:
    """Returns the amounts of integer constants that bound, or may bound, the size of some axis.

    Bounds that no size can reach are left out.
    """
    found: set[int] = set()
    waiting = [proto.graph]
    while waiting:
        graph = waiting.pop()
        tensors = [(tensor.name, tensor) for tensor in graph.initializer]
        for node in graph.node:
            waiting.extend(body for _, body in attribute_graphs(node))
            for attribute in node.attribute:
                if attribute.name in _BOUNDS:
                    found.update(attribute.ints)
                elif node.op_type == "Constant" and node.output[0] in steers.constants:
                    found.update((attribute.i,) if attribute.name == "value_int" else attribute.ints)
                    tensors += [(node.output[0], attribute.t)] if attribute.name == "value" else []
        for name, tensor in tensors:
            small = tensor.data_location != TensorProto.EXTERNAL and math.prod(tensor.dims) <= _FEW
            if name in steers.constants and small and tensor.data_type in _INTEGERS:
                found.update(numpy_helper.to_array(tensor).ravel().tolist())
    return frozenset(abs(bound) for bound in found if 1 < abs(bound) < _ENDLESS)


@functools.lru_cache(maxsize=4096)
def steered(name: str, opset: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the inputs of a standard operator that are sizes or bounds, and the indices."""
    schema = find_operator("", name, opset).schema
    bounds = list(_STEERS.get(name, ()))
    indices: list[int] = []
    for position, formal in enumerate(schema.inputs if schema is not None else ()):
        if _allowed(schema, formal.type_str) <= _COUNTS:
            (indices if formal.name in _INDICES else bounds).append(position)
    return tuple(dict.fromkeys(bounds)), tuple(indices)


def _allowed(schema: defs.OpSchema | None, type_name: str) -> frozenset[str]:
    """Returns the types that a type variable of a schema stands for."""
    constraints = schema.type_constraints if schema is not None else ()
    return frozenset(next((item.allowed_type_strs for item in constraints if item.type_param_str == type_name), (type_name,)))


class _Backward:
    """Walks from the steering inputs of operators back to the constants that they come from."""

    def __init__(self, opset: int) -> None:
        self.bounds: set[str] = set()
        self.indices: set[str] = set()
        self._opset = opset

    def graph(self, graph: onnx.GraphProto) -> None:
        for node in reversed(graph.node):
            for _, body in attribute_graphs(node):
                inputs, outputs = _carried(node, body)
                for inner, outer in outputs:
                    self._spread([outer], [inner])
                self.graph(body)
                for outer, inner in inputs:
                    self._spread([inner], [outer])
            if not normal_domain(node.domain):
                if node.op_type not in _MIXES and node.op_type not in _HIDES and not any(attribute_graphs(node)):
                    self._spread(node.output, node.input)
                bounds, indices = steered(node.op_type, self._opset)
                self.bounds.update(node.input[position] for position in bounds if position < len(node.input))
                self.indices.update(node.input[position] for position in indices if position < len(node.input))
        self.bounds.discard("")
        self.indices.discard("")

    def _spread(self, later: Iterable[str], earlier: Iterable[str]) -> None:
        for known in (self.bounds, self.indices):
            if not known.isdisjoint(later):
                known.update(earlier)


def _carried(node: onnx.NodeProto, body: onnx.GraphProto) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Returns pairs of names that link a node and its body.

    The first list pairs the node's inputs with those of the body. The second pairs the body's
    results with the node's outputs, and with the body's inputs in the next iteration.
    """
    names, results = [info.name for info in body.input], [info.name for info in body.output]
    inputs = list(zip(node.input[len(node.input) - len(names) :], names, strict=False)) if names else []
    if node.op_type == "Loop":
        results, states = results[1:], names[2:]
    elif node.op_type == "Scan":
        states = names[: len(names) - next((item.i for item in node.attribute if item.name == "num_scan_inputs"), 0)]
    else:
        states = []
    return inputs, [*zip(results, node.output, strict=False), *zip(results, states, strict=False)]


class _Forward:
    """Walks from the inputs of a graph forward to the values that floats decide.

    It leaves out floating-point values and values of unknown type.
    """

    def __init__(self, opset: int) -> None:
        self.decided: dict[str, Decided] = {}
        self._opset = opset

    def graph(self, graph: onnx.GraphProto) -> None:
        for tensor in graph.initializer:
            self._value(tensor.name, tensor.data_type)
        for info in graph.input:
            self._value(info.name, info.type.tensor_type.elem_type)
        for node in graph.node:
            self._node(node)

    def _value(self, name: str, dtype: int) -> None:
        if dtype and dtype not in _FLOATS:
            self.decided[name] = Decided.NOT

    def _node(self, node: onnx.NodeProto) -> None:
        bodies = [body for _, body in attribute_graphs(node)]
        if bodies:  # a body may contain floats
            whole = [info.type.tensor_type.elem_type for info in bodies[0].output][1 if node.op_type == "Loop" else 0 :]
            self.decided.update((name, Decided.CHOSEN) for name, dtype in zip(node.output, whole, strict=False) if dtype and dtype not in _FLOATS)
            return
        how = self._how(node)
        self.decided.update((name, how) for place, name in enumerate(node.output) if name and not self._may_be_float(node, place))

    def _how(self, node: onnx.NodeProto) -> Decided:
        if node.op_type in _HIDES:
            return Decided.NOT
        states = [self.decided.get(name, Decided.ROUNDED) if name else Decided.NOT for name in node.input]
        most = max(states, default=Decided.NOT)
        if most != Decided.ROUNDED:
            return most
        bounds, indices = steered(node.op_type, self._opset)
        if any(states[position] for position in (*bounds, *indices) if position < len(states)):
            return Decided.CHOSEN
        if node.op_type in ("Cast", "CastLike") and _stated(node) == TensorProto.BOOL:
            return Decided.CHOSEN
        return Decided.ROUNDED if node.op_type in _NUMERIC or node.op_type.startswith("QLinear") else Decided.CHOSEN

    def _may_be_float(self, node: onnx.NodeProto, place: int) -> bool:
        """Tells whether an output is, or may be, floating-point."""
        stated = _stated(node)
        if stated:
            return stated in _FLOATS
        schema = None if normal_domain(node.domain) else find_operator("", node.op_type, self._opset).schema
        if schema is None or not schema.outputs:
            return not node.op_type.startswith("QLinear")
        kind = schema.outputs[min(place, len(schema.outputs) - 1)].type_str
        like = [name for name, formal in zip(node.input, _formals(schema, len(node.input)), strict=True) if formal == kind and name]
        if like:
            return all(name not in self.decided for name in like)
        return any("float" in name or "double" in name or "complex" in name for name in _allowed(schema, kind))


def _formals(schema: defs.OpSchema, count: int) -> Sequence[str]:
    """Returns the type variables of the inputs; the last one repeats for variadic inputs."""
    names = [formal.type_str for formal in schema.inputs][:count]
    return names + names[-1:] * (count - len(names))


def _stated(node: onnx.NodeProto) -> int:
    """Returns the output data type in a node's attributes; 0 if they have none."""
    if normal_domain(node.domain) or node.op_type not in ("Cast", "Constant", "ConstantOfShape"):
        return 0
    for attribute in node.attribute:
        if attribute.name == "to":
            return attribute.i
        if attribute.name == "value":
            return attribute.t.data_type
        if attribute.name in ("value_int", "value_ints"):
            return TensorProto.INT64
    return 0

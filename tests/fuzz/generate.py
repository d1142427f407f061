"""Random models: a seed becomes a model that ONNX Runtime accepts, and the facts of its inputs.

Nodes are added one by one to existing values: neighbors in rules, whole left sides of rules, or any
operator. Then the model is dressed: sizes get names, nodes become a function, values get odd names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import ValueInfoProto, helper

from .chance import BFLOAT16, Chance
from .dress import outlined
from .left_sides import instance, neighbours, splice
from .operators_bodies import emitters
from .operators_layers import LAYERS
from .operators_moves import MOVES
from .operators_pointwise import POINTWISE
from .scope import NAMED, Emitter, Given, Scope, Value, captures, element_code, ir_version, type_proto

OPSETS = range(7, 27)
_FLOATS = (np.float32, np.float32, np.float32, np.float32, np.float64, np.float16)
_RARE = (np.float64, np.float16, np.int64, np.int64, np.int32, np.bool_, np.int8, np.uint8, np.uint64, np.int16, BFLOAT16, np.dtype(object))
_KINDS = (np.float32,) * 5 + _RARE
# Operators that few random values suit, with the data types and the rank that they need.
_FLOAT, _BYTES, _INTEGERS = (np.float32, np.float32, np.float64, np.float16), (np.int8, np.uint8), (np.uint8, np.int32, np.int64, np.uint32, np.uint64)
_IMAGES = """Attention AveragePool BatchNormalization Conv ConvTranspose DepthToSpace GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample
GroupNormalization InstanceNormalization LRN LpPool MaxPool Resize RotaryEmbedding SpaceToDepth Upsample""".split()
_WANTED: Mapping[str, tuple[Sequence[Any], int]] = {
    **dict.fromkeys(_IMAGES, (_FLOAT, 4)),
    **dict.fromkeys(("GRU", "LSTM", "RNN", "DFT"), ((np.float32,), 3)),
    **dict.fromkeys(("ConvInteger", "QLinearConv"), (_BYTES, 4)),
    **dict.fromkeys(("MatMulInteger", "QLinearMatMul", "DequantizeLinear"), (_BYTES, 2)),
    **dict.fromkeys(("And", "Or", "Xor", "Not"), ((np.bool_,), 2)),
    **dict.fromkeys(("BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"), (_INTEGERS, 2)),
    **dict.fromkeys(("CumProd", "Gemm", "LayerNormalization", "RMSNormalization", "Scatter", "Swish", "Det", "NegativeLogLikelihoodLoss"), (_FLOAT, 2)),
}
_SEQUENCES = ["SplitToSequence", "SequenceAt", "SequenceAt", "ConcatFromSequence", "SequenceLength"]
_CONTROL_FLOW = 2  # of the sources of chance of a seed
_OF_STRINGS = "Concat Equal Expand Gather Identity Reshape SequenceConstruct Shape Slice Split Squeeze StringConcat Tile Transpose Unsqueeze Where".split()


@dataclass(frozen=True)
class Model:
    """A model, and the inputs that it was built with.

    `symbols` are the sizes that its named dimensions had then.
    """

    proto: onnx.ModelProto
    givens: Sequence[Given]
    symbols: dict[str, int]


class Generator:
    """Draws models."""

    def __init__(self) -> None:
        self.table: dict[str, Emitter] = {**POINTWISE, **MOVES, **LAYERS, **emitters(self.grow)}
        self.names = sorted(self.table)

    def model(self, seed: int) -> Model | None:
        """Returns the model of a seed; None for the few without a result."""
        chance = Chance(seed)
        opset = chance.pick([*OPSETS, 26, 26, 24, 21, 18, 17, 17, 13, 10])
        symbols = NAMED[: chance.pick([0, 0, 1, 1, 1, 2, 2, 3])]
        floats = [chance.pick(_FLOATS)] * 3 + [np.float32]
        s = Scope(chance, opset, symbols, odd=chance.often(0.08), floats=floats)
        shape = s.sizes(1 if chance.often(0.9) else 0, 4)
        for _ in range(chance.number(1, 2)):
            s.given(chance.ordinary(s.floating() if chance.often(0.7) else chance.pick(_KINDS), shape if chance.often() else s.sizes(0, 4)))
        nodes = chance.number(1, 10)
        if chance.often(0.55):
            before = chance.number(0, nodes // 2)
            self.grow(s, before)
            found = instance(chance)
            if found is not None:
                splice(s, found)
            nodes = max(0, nodes - before - 2)
        self.grow(s, nodes)
        # A source of chance of its own, so that the other models stay those of their seeds.
        if Chance(seed, _CONTROL_FLOW).often(0.15):
            self.control(s)
        return finished(s)

    def control(self, s: Scope) -> None:
        """Adds a node with bodies, or a sequence and what reads it, and a node behind it."""
        for operator in s.chance.pick([["If"], ["If", "If"], ["Loop"], ["Loop", "Loop"], ["Scan"], _SEQUENCES]):
            for _ in range(6):
                if self.table[operator](s, self.chosen(s), operator):
                    break
        self.grow(s, 1)

    def grow(self, s: Scope, nodes: int) -> None:
        """Adds some nodes to a graph."""
        for _ in range(nodes):
            for _ in range(6):
                if self.step(s):
                    break

    def step(self, s: Scope) -> bool:
        """Tries to add a node. Tells whether it did."""
        x = self.chosen(s)
        readers = neighbours().get(x.maker, {})
        if s.prefix and s.chance.often(0.6):
            operator = s.chance.pick(["Add", "Mul", "Relu", "Neg", "Sub", "Concat", "Identity", "Transpose", "Cast", "Abs"])
        elif readers and s.chance.often(0.55):
            operator = s.chance.weighted(readers)
        else:
            operator = s.chance.pick(self.names)
        if x.dtype == object:
            operator = s.chance.pick(_OF_STRINGS)
        emitter = self.table.get(operator)
        if emitter is None or (emitter.__name__ in ("choice", "loop", "scan") and s.prefix.count("b") > 1):
            return False
        if operator == "Identity" and s.chance.often(0.5):
            return False
        if s.chance.often(0.06) and self.again(s):
            return True
        return bool(emitter(s, x, operator) or (operator in _WANTED and s.chance.often(0.7) and emitter(s, self.wanted(s, operator), operator)))

    @staticmethod
    def wanted(s: Scope, operator: str) -> Value:
        """Returns a tensor of a data type and a rank that suit the operator."""
        kinds, rank = _WANTED[operator]
        inner = [s.chance.pick([2, 4, s.size()]) if operator in ("RotaryEmbedding", "SpaceToDepth", "DFT") else s.size() for _ in range(rank - 2)]
        shape = [s.size(), s.chance.pick([2, 4, 3]), *inner]
        if operator == "DFT":
            shape = [*shape[:2], s.chance.pick([1, 2])]
        if operator == "RotaryEmbedding":
            shape[3] = s.chance.pick([2, 4])
        if operator == "Det":
            shape[0] = shape[1]
        return s.tensor(s.chance.pick(kinds), shape, 0.6)

    @staticmethod
    def chosen(s: Scope) -> Value:
        """Returns a tensor for the next node to read: mostly a recent one."""
        known = [value for value in s.known if value.is_tensor] or [s.new(s.floating(), s.sizes(1, 3))]
        made = [value for value in known if value.maker]
        if made and s.chance.often(0.75):
            return s.chance.pick(made[-3:])
        changing = [value for value in known if not value.constant]
        return s.chance.pick(changing if changing and s.chance.often(0.9) else known)

    @staticmethod
    def again(s: Scope) -> bool:
        """Adds an existing node under another name."""
        known = {value.name: value for value in s.values}
        single = [node for node in s.nodes if len(node.output) == 1 and node.output[0] in known]
        alike = [node for node in single if known[node.output[0]].maker not in ("", "OptionalGetElement", "OptionalHasElement")]
        if not alike:
            return False
        node, twin = s.chance.pick(alike), onnx.NodeProto()
        twin.CopyFrom(node)
        twin.output[0] = s.fresh()
        old = known[node.output[0]]
        s.nodes.append(twin)
        s.values.append(Value(twin.output[0], old.data, old.maker))
        return True


def finished(s: Scope) -> Model | None:
    """Returns the model of a graph, with chosen outputs and named sizes."""
    chance = s.chance
    made = [value for value in s.values if value.maker]
    if not made:
        return None
    read = {name for node in s.nodes for name in node.input}
    ends = [value for value in made if value.name not in read]
    outputs = list({value.name: value for value in [*chance.some(ends, 1), *(chance.some(made)[:2] if chance.often(0.4) else [])]}.values())
    if chance.often(0.03):
        outputs += [value for value in chance.some([given.value for given in s.givens])[:1] if value not in outputs]
    names = dict(zip(s.symbols, chance.pick([("N", "M", "K"), ("batch", "seq_len", "past + 1")]), strict=False))
    separate = chance.often(0.15)
    symbols: dict[str, int] = {}
    inputs = [_input(given.value, names, symbols, separate) for given in s.givens]
    graph = helper.make_graph(s.nodes, "g", inputs, [_output(value, bool(symbols), chance) for value in outputs], s.initializers)
    used = {name for node in s.nodes for name in (*node.input, *captures(node))} | {value.name for value in outputs}
    kept = [value for value in graph.input if value.name in used or chance.often(0.7)]
    dropped = {value.name for value in graph.input} - {value.name for value in kept}
    del graph.input[:]
    graph.input.extend(kept)
    for place in reversed([place for place, tensor in enumerate(graph.initializer) if tensor.name in dropped]):
        del graph.initializer[place]
    model = helper.make_model(graph, opset_imports=_imports(s), ir_version=ir_version(s.opset))
    if chance.often(0.1):
        outlined(model, chance)
    return Model(model, [given for given in s.givens if given.value.name not in dropped], symbols)


def _imports(s: Scope) -> list[onnx.OperatorSetIdProto]:
    custom = any(node.domain for node in s.nodes)
    return s.imports() if custom else s.imports()[:1]


def _input(value: Value, names: Mapping[int, str], symbols: dict[str, int], separate: bool) -> ValueInfoProto:
    """Returns an input. Named sizes get names; equal ones share a name, or each has its own."""
    kind = type_proto(value.data)
    if value.is_tensor:
        for axis, dim in enumerate(kind.tensor_type.shape.dim):
            if dim.dim_value in names:
                size, name = dim.dim_value, names[dim.dim_value]
                dim.dim_param = f"{name}_{len(symbols)}_{axis}" if separate else name
                symbols[dim.dim_param] = size
    return ValueInfoProto(name=value.name, type=kind)


def _output(value: Value, symbolic: bool, chance: Chance) -> ValueInfoProto:
    if not value.is_tensor:
        return ValueInfoProto(name=value.name, type=type_proto(value.data))
    shape: Any = value.shape
    if symbolic or value.maker == "NonZero":
        # A name of its own states nothing; equal names would state equal sizes.
        named = chance.often(0.3)
        shape = [f"{value.name}_{axis}" if named else None for axis in range(value.rank)]
    return helper.make_tensor_value_info(value.name, element_code(value.dtype), None if chance.often(0.05) else shape)

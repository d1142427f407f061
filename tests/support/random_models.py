"""Random small valid models, drawn by hypothesis, of about thirty operators.

The shapes and types of their values are known. Graphs share values, repeat nodes, hold constants
and identities, have several outputs and bodies that capture outer values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from tests.support.models import HEADER, parse

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

UNARY = ["Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Exp", "Sqrt", "Floor", "Identity", "Softsign"]
BINARY = ["Add", "Sub", "Mul", "Div", "Max", "Min"]
COMPARISONS = ["Equal", "Less", "GreaterOrEqual"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.25, 1e-40, 3e38, float("inf"), float("nan")]
SHAPES = [(), (1,), (2,), (3,), (1, 3), (2, 3), (2, 1), (0, 3), (2, 2, 3)]


@dataclass(frozen=True)
class Value:
    name: str
    dtype: int
    shape: tuple[int, ...]


@dataclass
class Scope:
    """A graph under construction. A body also sees the values around it."""

    draw: st.DrawFn
    prefix: str = ""
    values: list[Value] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)
    count: int = 0

    def new(self, dtype: int, shape: tuple[int, ...]) -> Value:
        self.count += 1
        return Value(f"{self.prefix}v{self.count}", dtype, shape)

    def pick(self, dtype: int = FLOAT, rank: int = 0) -> Value:
        """Returns a value of the type and of at least the rank; a new constant if there is none."""
        known = [value for value in self.values if value.dtype == dtype and len(value.shape) >= rank]
        return self.draw(st.sampled_from(known)) if known else self.constant(dtype, self.draw(st.sampled_from([s for s in SHAPES if len(s) >= rank])))

    def constant(self, dtype: int, shape: tuple[int, ...]) -> Value:
        size = int(np.prod(shape))
        if dtype == FLOAT:
            elements = self.draw(st.lists(st.sampled_from(SPECIAL), min_size=size, max_size=size))
        else:
            elements = self.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
        return self.literal(np.array(elements, helper.tensor_dtype_to_np_dtype(dtype)).reshape(shape))

    def literal(self, array: np.ndarray) -> Value:
        """Returns a constant as an initializer or as a Constant node."""
        value = self.new(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        if self.draw(st.booleans()):
            self.constants.append(numpy_helper.from_array(array, value.name))
        else:
            self.nodes.append(helper.make_node("Constant", [], [value.name], value=numpy_helper.from_array(array, "")))
        self.values.append(value)
        return value

    def indices(self, *elements: int) -> Value:
        return self.literal(np.array(elements, np.int64))

    def add(self, operator: str, inputs: list[Value], dtype: int, shape: tuple[int, ...], **attributes: Any) -> Value:
        value = self.new(dtype, shape)
        self.nodes.append(helper.make_node(operator, [each.name for each in inputs], [value.name], **attributes))
        self.values.append(value)
        return value


def broadcast(*values: Value) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*[value.shape for value in values])
    except ValueError:
        return None


def add_elementwise(scope: Scope) -> None:
    kind = scope.draw(st.sampled_from(["unary", "binary", "compare", "where", "clip", "cast", "logic"]))
    x = scope.pick()
    if kind == "unary":
        scope.add(scope.draw(st.sampled_from(UNARY)), [x], FLOAT, x.shape)
    elif kind == "clip":
        scope.add("Clip", [x, scope.literal(np.array(-1, np.float32)), scope.literal(np.array(1, np.float32))], FLOAT, x.shape)
    elif kind == "cast":
        whole = scope.add("Cast", [scope.add("Clip", [x, scope.literal(np.array(-9, np.float32))], FLOAT, x.shape)], BOOL, x.shape, to=BOOL)
        scope.add("Cast", [whole], FLOAT, x.shape, to=FLOAT)
    elif kind == "logic":
        condition = scope.pick(BOOL)
        scope.add("Not", [condition], BOOL, condition.shape)
    else:
        y = scope.pick()
        shape = broadcast(x, y)
        if shape is None:
            return
        if kind == "binary":
            scope.add(scope.draw(st.sampled_from(BINARY)), [x, y], FLOAT, shape)
        elif kind == "compare":
            scope.add(scope.draw(st.sampled_from(COMPARISONS)), [x, y], BOOL, shape)
        else:
            condition = scope.pick(BOOL)
            shape = broadcast(condition, x, y)
            if shape is not None:
                scope.add("Where", [condition, x, y], FLOAT, shape)


def add_movement(scope: Scope) -> None:
    kind = scope.draw(st.sampled_from(["transpose", "reshape", "concat", "slice", "gather", "unsqueeze", "expand", "shape"]))
    x = scope.pick(rank=1)
    if kind == "transpose":
        order = scope.draw(st.permutations(range(len(x.shape))))
        scope.add("Transpose", [x], FLOAT, tuple(x.shape[axis] for axis in order), perm=order)
    elif kind == "reshape":
        target = scope.draw(st.sampled_from([(int(np.prod(x.shape)),), (1, *x.shape), tuple(reversed(x.shape))]))
        scope.add("Reshape", [x, scope.indices(*target)], FLOAT, target, allowzero=1)
    elif kind == "concat":
        scope.add("Concat", [x, x], FLOAT, (2 * x.shape[0], *x.shape[1:]), axis=0)
    elif kind == "slice":
        start = scope.draw(st.integers(0, 2))
        scope.add("Slice", [x, scope.indices(start), scope.indices(2), scope.indices(0)], FLOAT, (max(0, min(2, x.shape[0]) - start), *x.shape[1:]))
    elif kind == "gather" and x.shape[-1] > 0:
        at = scope.draw(st.integers(-x.shape[-1], x.shape[-1] - 1))
        scope.add("Gather", [x, scope.literal(np.array(at, np.int64))], FLOAT, x.shape[:-1], axis=-1)
    elif kind == "unsqueeze":
        wide = scope.add("Unsqueeze", [x, scope.indices(0)], FLOAT, (1, *x.shape))
        scope.add("Squeeze", [wide, scope.indices(0)], FLOAT, x.shape)
    elif kind == "expand":
        scope.add("Expand", [x, scope.indices(2, *[1] * len(x.shape))], FLOAT, (2, *x.shape))
    elif kind == "shape":
        sizes = scope.add("Shape", [x], INT64, (len(x.shape),))
        zeros = scope.add("ConstantOfShape", [sizes], FLOAT, x.shape)
        scope.add("Add", [x, zeros], FLOAT, x.shape)


def add_reduction(scope: Scope) -> None:
    kind = scope.draw(st.sampled_from(["softmax", "sum", "mean", "matmul", "dropout"]))
    x = scope.pick(rank=1)
    if kind == "softmax":
        scope.add("Softmax", [x], FLOAT, x.shape, axis=-1)
    elif kind == "sum":
        scope.add("ReduceSum", [x, scope.indices(0)], FLOAT, x.shape[1:], keepdims=0)
    elif kind == "mean":
        scope.add("ReduceMean", [x], FLOAT, (*x.shape[:-1], 1), axes=[-1])
    elif kind == "dropout":
        scope.add("Dropout", [x], FLOAT, x.shape)
    elif len(x.shape) == 2:
        turned = scope.add("Transpose", [x], FLOAT, x.shape[::-1], perm=[1, 0])
        scope.add("MatMul", [x, turned], FLOAT, (x.shape[0], x.shape[0]))


def add_repetition(scope: Scope) -> None:
    """Repeats a node of the scope under another name."""
    repeatable = [node for node in scope.nodes if node.op_type != "If" and len(node.output) == 1]
    if not repeatable:
        return
    node = scope.draw(st.sampled_from(repeatable))
    known = {value.name: value for value in scope.values}[node.output[0]]
    value = scope.new(known.dtype, known.shape)
    twin = NodeProto()
    twin.CopyFrom(node)
    twin.output[0] = value.name
    scope.nodes.append(twin)
    scope.values.append(value)


def add_if(scope: Scope) -> None:
    shape = scope.pick().shape
    bodies: list[GraphProto] = []
    for branch in ("then", "else"):
        inner = Scope(scope.draw, f"{scope.prefix}{scope.count}{branch}_", list(scope.values))
        for _ in range(scope.draw(st.integers(1, 4))):
            scope.draw(st.sampled_from([add_elementwise, add_repetition]))(inner)
        made = [value for value in inner.values[len(scope.values) :] if (value.dtype, value.shape) == (FLOAT, shape)]
        outer = [value for value in scope.values if (value.dtype, value.shape) == (FLOAT, shape)]
        result = scope.draw(st.sampled_from(made or outer))
        last = inner.add("Identity", [result], FLOAT, shape) if result in outer else result
        bodies.append(helper.make_graph(inner.nodes, branch, [], [helper.make_tensor_value_info(last.name, FLOAT, shape)], inner.constants))
    condition = scope.literal(np.array(scope.draw(st.booleans()))) if scope.draw(st.booleans()) else Value("c", BOOL, ())
    scope.add("If", [condition], FLOAT, shape, then_branch=bodies[0], else_branch=bodies[1])


STEPS = [add_elementwise, add_elementwise, add_elementwise, add_movement, add_movement, add_reduction, add_repetition, add_if]


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    """Draws a model with inputs `x` (float[2, 3]), `z` (float[3]) and `c` (bool).

    The first size of `x` is sometimes symbolic.
    """
    inputs = [Value("x", FLOAT, (2, 3)), Value("z", FLOAT, (3,)), Value("c", BOOL, ())]
    scope = Scope(draw, values=list(inputs))
    for _ in range(draw(st.integers(1, 14))):
        draw(st.sampled_from(STEPS))(scope)
    made = [value for value in scope.values if value not in inputs]
    outputs = draw(st.lists(st.sampled_from(made or inputs), min_size=1, max_size=4, unique=True))
    symbolic = draw(st.booleans())
    graph = helper.make_graph(
        scope.nodes,
        "random",
        [helper.make_tensor_value_info(value.name, value.dtype, ["N", 3] if value.name == "x" and symbolic else value.shape) for value in inputs],
        [helper.make_tensor_value_info(value.name, value.dtype, [None] * len(value.shape) if symbolic else value.shape) for value in outputs],
        scope.constants,
    )
    model = parse(f"{HEADER} g () => () {{}}")
    model.graph.CopyFrom(graph)
    return model


def feeds() -> list[dict[str, np.ndarray]]:
    """Returns ordinary and special values for the inputs of a random model."""
    generator = np.random.default_rng(0)
    ordinary = generator.standard_normal((2, 3)).astype(np.float32), generator.standard_normal(3).astype(np.float32)
    special = np.array([[0.0, -0.0, np.inf], [np.nan, -np.inf, 1e-40]], np.float32), np.array([-0.0, 1.0, np.inf], np.float32)
    return [{"x": x, "z": z, "c": np.array(c)} for (x, z), c in ((ordinary, True), (ordinary, False), (special, True))]

"""Symbolic inference against ONNX Runtime: at many sizes, the node has the inferred sizes.

Sizes that the runtime refuses prove nothing, and every case must run at some sizes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, helper, numpy_helper

from eqsat.contributed import DOMAINS, contributed_names
from eqsat.facts.dims import Dim, add, evaluate, exact_divide, floordiv, minimum, mul, product, sub, symbol
from eqsat.facts.fact import Fact, from_array
from eqsat.facts.inference import infer
from eqsat.facts.shapes import SHAPES
from eqsat.operators import find_operator, read_attributes
from tests.support.models import run_reference, session

N, M, H = symbol("N"), symbol("M"), symbol("H")
TRIED = ((0, 2, 5), (1, 1, 6), (2, 3, 7), (4, 4, 8), (3, 0, 9), (5, 2, 10), (6, 6, 11), (0, 0, 4), (1, 5, 13))
SIZES = [dict(zip("NMH", sizes, strict=True)) for sizes in TRIED]
END = 2**63 - 1


def at(dim: Dim, sizes: dict[str, int]) -> int:
    value = evaluate(dim, sizes)
    assert value is not None
    return value


@dataclass(frozen=True)
class Given:
    """An input: its fact for inference, and its value for the runtime at given sizes."""

    fact: Fact
    fixed: np.ndarray[Any, Any] | None = None

    def value(self, sizes: dict[str, int]) -> np.ndarray[Any, Any]:
        if self.fixed is not None:
            return self.fixed
        kind = helper.tensor_dtype_to_np_dtype(self.fact.dtype)
        shape = tuple(3 if dim is None else at(dim, sizes) for dim in self.fact.shape or ())
        if self.fact.ints is not None:
            return np.array([at(element, sizes) for element in self.fact.ints], kind).reshape(shape)
        return np.ones(shape, kind)


def of(*shape: Dim, dtype: int = TensorProto.FLOAT) -> Given:
    """Returns a tensor of known type and unknown elements."""
    return Given(Fact(dtype, shape))


def hold(*elements: Dim, dtype: int = TensorProto.INT64) -> Given:
    """Returns a list of integers, known or symbolic."""
    return Given(Fact(dtype, (len(elements),), ints=elements))


def one(element: Dim, dtype: int = TensorProto.INT64) -> Given:
    """Returns an integer scalar."""
    return Given(Fact(dtype, (), ints=(element,)))


def const(values: Any, kind: Any = np.int64) -> Given:
    """Returns a constant."""
    array = np.array(values, kind)
    return Given(from_array(array), array)


def hidden(*elements: int) -> Given:
    """Returns a list of integers that only the runtime knows."""
    return Given(Fact(TensorProto.INT64, (len(elements),)), np.array(elements, np.int64))


@dataclass(frozen=True)
class Case:
    name: str
    inputs: tuple[Given | None, ...]
    opset: int = 17
    outputs: int = 1
    partial: bool = False  # some sizes cannot be known
    positive: bool = False  # not on empty tensors: there the runtime's kernel aborts or refuses negative axes, or we assume a size
    attributes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = "_".join("none" if given is None else "x".join(map(str, given.fact.shape or ())) for given in self.inputs)
        return f"{self.name}-{self.opset}-{shapes}-{self.attributes}"


def case(name: str, *inputs: Given | None, opset: int = 17, outputs: int = 1, partial: bool = False, positive: bool = False, **attributes: Any) -> Case:
    return Case(name, inputs, opset, outputs, partial, positive, attributes)


def model(case: Case) -> onnx.ModelProto:
    values = [onnx.ValueInfoProto(name=f"o{position}") for position in range(case.outputs)]
    node = helper.make_node(
        case.name, ["" if given is None else f"i{position}" for position, given in enumerate(case.inputs)], [value.name for value in values], **case.attributes
    )
    inputs = [helper.make_tensor_value_info(f"i{position}", given.fact.dtype, None) for position, given in enumerate(case.inputs) if given is not None]
    graph = helper.make_graph([node], "g", inputs, values)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", case.opset)])


def inferred(case: Case) -> tuple[Fact, ...]:
    operator = find_operator("", case.name, case.opset)
    attributes = read_attributes(operator, [helper.make_attribute(name, value) for name, value in case.attributes.items()])
    return infer(operator, attributes, tuple(None if given is None else given.fact for given in case.inputs), case.outputs)


def check(case: Case, sizes: Sequence[dict[str, int]] = SIZES) -> int:
    """Compares at all sizes. Returns the number of sizes at which the node ran."""
    facts = inferred(case)
    running = session(model(case))
    runs = 0
    for chosen in sizes:
        if (case.positive and 0 in chosen.values()) or forbidden(case, chosen):
            continue
        try:
            found = running.run(None, {f"i{position}": given.value(chosen) for position, given in enumerate(case.inputs) if given is not None})
        except Exception as error:
            assert "onnxruntime" in type(error).__module__, error
            continue
        runs += 1
        for fact, array in zip(facts, found, strict=True):
            assert fact.dtype == helper.np_dtype_to_tensor_dtype(array.dtype)
            if fact.shape is not None:
                agrees(fact.shape, array.shape, chosen)
            if fact.ints is not None:
                agrees(fact.ints, [int(element) for element in array.ravel()], chosen)
            if fact.uniform is not None:
                assert from_array(array).uniform == fact.uniform
    return runs


def forbidden(case: Case, chosen: dict[str, int]) -> bool:
    """Tells whether a Reshape has a 0 beside a -1, which ONNX forbids, and more sizes of 0.

    ONNX Runtime then infers another size than the quotient that we assume.
    """
    if case.name != "Reshape" or case.attributes.get("allowzero", 0) == 0:
        return False
    data, wanted = (None if given is None else given.value(chosen) for given in case.inputs)
    return data is not None and wanted is not None and -1 in wanted and 0 in wanted and data.shape.count(0) > 1


def agrees(dims: Sequence[Dim], actual: Sequence[int], sizes: dict[str, int]) -> None:
    assert len(dims) == len(actual), (dims, actual, sizes)
    for dim, size in zip(dims, actual, strict=True):
        assert dim is None or evaluate(dim, sizes) == size, (dims, tuple(actual), sizes)


@pytest.mark.parametrize(("start", "size"), [(-8, None), (-7, 1), (-6, 1), (-5, 2)])
@pytest.mark.parametrize("opset", [10, 11, 13])
def test_a_backward_slice_from_before_the_front_has_no_known_size(start: int, size: int | None, opset: int) -> None:
    """ONNX begins there at the first element, and its reference nowhere."""
    (found,) = inferred(case("Slice", of(7, 5), const([start]), const([-END]), const([0]), const([-2]), opset=opset))
    assert found.shape == (size, 5)
    (found,) = inferred(case("Slice", hold(*range(7)), const([start]), const([-END]), const([0]), const([-2]), opset=opset))
    assert found.ints == (None if size is None else tuple(range(7 + start, -1, -2)))


IMAGE = of(N, 4, H, add(H, 1))
WEIGHT = of(8, 4, 3, 2)

CASES = [
    case("Concat", of(N, 3), of(M, 3), axis=0),
    case("Concat", of(N, M), of(N, M), of(2, M), axis=-2),
    case("Concat", of(N, M), of(N, M), opset=4, axis=1),
    case("Slice", of(N, M), const([1]), const([END]), const([0])),
    case("Slice", of(N, M), const([0]), const([-1]), const([-1])),
    case("Slice", of(N, M), const([-3, 0]), const([END, 2])),
    case("Slice", of(N, M), const([1, 0]), const([4, 2**31 - 1]), const([0, 1]), const([2, 3])),
    case("Slice", of(N, M), const([-1]), const([-END]), const([0]), const([-1])),
    case("Slice", of(N, M), const([3, -1]), const([0, -END]), const([0, 1]), const([-2, -3])),
    case("Slice", of(N, M), hold(0), hold(M), const([0])),
    case("Slice", of(N, M), hold(sub(M, 1)), hold(N), const([0]), partial=True),
    case("Slice", of(N, M), of(1, dtype=7), of(1, dtype=7), const([0]), partial=True),
    case("Slice", of(N, M), opset=9, axes=[1], starts=[1], ends=[-1]),
    case("Slice", of(7, 5), const([-20, 5]), const([-2, -END]), const([0, 1]), const([3, -2])),
    *(
        case("Slice", of(N, M), const([start]), const([end]), const([-1]), const([step]), opset=opset)
        for opset in (10, 11, 13)
        for start, end, step in ((0, 512, 1), (1, END, 1), (0, -1, 1), (0, 2, 1), (0, END, 2), (-1, -END, -1))
    ),
    case("Conv", IMAGE, WEIGHT),
    case("Conv", IMAGE, WEIGHT, strides=[2, 2], pads=[1, 0, 1, 1]),
    case("Conv", IMAGE, of(6, 4, 7, 7), strides=[2, 2], pads=[3, 3, 3, 3]),
    case("Conv", IMAGE, WEIGHT, dilations=[2, 3], strides=[1, 3], pads=[2, 2, 2, 2]),
    case("Conv", IMAGE, WEIGHT, auto_pad="SAME_UPPER", strides=[2, 3]),
    case("Conv", IMAGE, WEIGHT, auto_pad="SAME_LOWER", strides=[2, 1]),
    case("Conv", IMAGE, WEIGHT, auto_pad="VALID", strides=[2, 3]),
    case("Conv", of(N, 4, H), of(6, 2, 3), group=2, pads=[1, 1]),
    case("ConvTranspose", IMAGE, of(4, 3, 3, 2)),
    case("ConvTranspose", IMAGE, of(4, 3, 3, 2), strides=[2, 3], pads=[1, 0, 1, 1], output_padding=[1, 0]),
    case("ConvTranspose", IMAGE, of(4, 3, 3, 2), group=2, dilations=[2, 2], strides=[2, 2]),
    case("ConvTranspose", IMAGE, of(4, 3, 3, 2), auto_pad="SAME_UPPER", strides=[2, 2]),
    *(
        case(
            "ConvTranspose",
            of(N, 4, size),
            of(4, 3, kernel),
            partial=kernel < stride or extra > 0,
            auto_pad="SAME_LOWER",
            strides=[stride],
            output_padding=[extra],
        )
        for size in (H, 7)
        for kernel in (1, 2, 3)
        for stride in (2, 3)
        for extra in (0, 1)
    ),
    case("ConvTranspose", IMAGE, of(4, 3, 3, 2), strides=[2, 2], output_shape=[24, 26]),
    *(
        case(name, IMAGE, kernel_shape=[3, 2], strides=strides, pads=pads, ceil_mode=ceil, opset=22)
        for name in ("MaxPool", "AveragePool")
        for strides in ([1, 1], [2, 3], [3, 2])
        for pads in ([0, 0, 0, 0], [1, 0, 1, 1], [2, 1, 0, 0])
        for ceil in (0, 1)
    ),
    case("MaxPool", IMAGE, outputs=2, kernel_shape=[2, 2], dilations=[2, 1], strides=[2, 2], ceil_mode=1),
    case("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER"),
    case("AveragePool", IMAGE, kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1),
    case("LpPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2], opset=11),
    case("AveragePool", IMAGE, kernel_shape=[2, 2], strides=[2, 2], auto_pad="VALID", opset=7),
    case("GlobalAveragePool", IMAGE),
    case("GlobalMaxPool", of(N, M, H)),
    case("ConvInteger", of(N, 2, H, H, dtype=2), of(3, 2, 2, 2, dtype=2), strides=[2, 2]),
    case("Reshape", of(N, M, 12), const([0, 0, 3, 4])),
    case("Reshape", of(N, M, 12), const([0, -1])),
    case("Reshape", of(N, M, 12), const([-1, 12])),
    case("Reshape", of(N, M, 12), const([-1])),
    case("Reshape", of(N, M, 12), const([0, 4, -1])),
    case("Reshape", of(N, M, 12), hold(N, M, 3, 4)),
    case("Reshape", of(N, M, 12), hold(mul(N, M), 12)),
    # A named size that is 0 copies an input size. We assume that the empty tensor has the requested
    # sizes, where these make up its elements for all names.
    case("Reshape", of(N, 3, M, 4), hold(N, M, 12), positive=True),
    case("Reshape", of(N, 4, N), hold(N, N, 4), positive=True),
    case("Reshape", of(N, 3, M, 4), hold(N, M, 6)),
    case("Reshape", of(N, 4, N), hold(N, N, 4), allowzero=1),
    case("Reshape", of(2, 3), hold(M, 3)),
    case("Reshape", of(N, 3, M, 4), hold(-1, M, 4), positive=True),
    case("Reshape", of(N, 3, M, H), hold(M, 0, -1)),
    case("Reshape", of(N, M, H, 4), hold(-1, H, 4), partial=False),
    case("Reshape", of(N, M, 3, H), hold(M, H, -1), positive=True),
    case("Reshape", of(N, 12), hold(sub(M, 1), 12), partial=True),
    case("Reshape", of(N, 12), hold(N, sub(M, 1), -1), partial=True),
    case("Reshape", of(N, 12), hold(N, -1, 6)),
    # With `allowzero`, ONNX forbids a size of 0 beside a -1. ONNX Runtime accepts it, and infers
    # the -1 from the nonzero sizes.
    case("Reshape", of(N, 12), hold(N, -1, 6), allowzero=1),
    case("Reshape", of(N, M), hold(N, -1), allowzero=1),
    case("Reshape", of(N, M), hold(-1, M), allowzero=1),
    case("Reshape", of(N, 4, M, 6), hold(-1, M, 8), allowzero=1),
    case("Reshape", of(N, 0, M), hold(N, 0, -1), allowzero=1, partial=True),
    case("Reshape", of(N, M), hold(H, -1), allowzero=1, partial=True),
    case("Reshape", of(0, N, M, 4), hold(N, N, -1, M, M), allowzero=1, partial=True),
    case("Reshape", of(0, N, M), hold(3, -1, 4), allowzero=1),
    case("Reshape", of(mul(N, 4), M), hold(-1, mul(M, 2))),
    case("Reshape", of(N, 6), hidden(0, 2, 3), partial=True),
    case("Reshape", of(N, None, 12), const([0, 0, 3, 4]), partial=True),
    case("Flatten", of(N, M, H)),
    case("Flatten", of(N, M, H), axis=0),
    case("Flatten", of(N, M, H), axis=-1),
    case("Flatten", of(N, M, H), axis=3, opset=8),
    case("Expand", of(N, 1, 3), hold(M, 1)),
    case("Expand", of(1, 3), hold(N, M, 3)),
    case("Expand", of(N, 3), hold(N, 1), partial=False),
    case("Expand", of(1, N), hold(M, M), partial=True),
    case("Split", of(N, 7), const([3, 4]), outputs=2, axis=1),
    case("Split", of(N, mul(M, 2)), outputs=2, axis=-1),
    case("Split", of(N, M), hold(sub(M, 1), 1), outputs=2, axis=1),
    case("Split", of(N, M), outputs=2, axis=0, opset=11),
    case("Split", of(N, 6), outputs=2, axis=1, split=[2, 4], opset=11),
    case("Split", of(N, H), outputs=3, axis=1, num_outputs=3, opset=18),
    case("Split", of(N, 4), outputs=3, axis=0, opset=18, num_outputs=3),
    case("Tile", of(N, 3), const([2, 4])),
    case("Tile", of(N, 3), hold(M, 2)),
    case("Tile", of(N, 3), of(2, dtype=7), partial=True),
    case("Pad", of(N, M), const([1, 0, 2, 3])),
    case("Pad", of(N, M), hold(0, M, 0, 1)),
    case("Pad", of(N, M), const([1, 2]), None, const([-1]), opset=18),
    case("Pad", of(N, H), opset=10, pads=[1, -2, 0, 1]),
    case("Pad", of(N, H), const([0, 2, 0, 1]), mode="reflect"),
    case("Range", one(0), one(N), one(1)),
    case("Range", one(M), one(N), one(2)),
    case("Range", one(N), one(-2), one(-3)),
    case("Range", const(1.0, np.float32), const(7.5, np.float32), const(2.0, np.float32)),
    case("ConstantOfShape", hold(N, 3, M)),
    case("ConstantOfShape", const([2, 3])),
    case("ConstantOfShape", of(3, dtype=7), partial=True),
    case("Gather", of(N, M, 3), of(H, 2, dtype=7), axis=1),
    case("Gather", of(N, M, 3), one(0), axis=1),
    case("Squeeze", of(N, 1, M, 1), const([1, -1])),
    case("Squeeze", of(N, 1, M, 1), opset=11, axes=[1, 3]),
    case("Squeeze", of(2, 1, 3)),
    case("Unsqueeze", of(N, M), const([0, -1])),
    case("Unsqueeze", of(N, M), opset=11, axes=[1, 2]),
    case("Transpose", of(N, M, H), perm=[2, 0, 1]),
    case("Transpose", of(N, M, H)),
    case("MatMul", of(N, M, H), of(H, 4)),
    case("MatMul", of(N, 1, M, H), of(4, H, M)),
    case("MatMul", of(H), of(N, H, M)),
    case("MatMul", of(H), of(H)),
    case("MatMul", of(N, M, 2), of(M, 2, 2), partial=True),
    case("Gemm", of(M, N), of(H, M), transA=1, transB=1),
    case("Add", of(N, 1), of(1, 4)),
    case("Add", of(N, 1), of(M)),
    case("Add", of(N, M), of(4), partial=False),
    case("Add", of(N), of(M), partial=True),
    case("Add", of(N, M), of(1, minimum(3, M))),
    case("Sum", of(M), of(minimum(2, M)), of(minimum(3, M))),
    case("Add", of(M), of(minimum(1, M)), partial=True),
    case("Add", of(M), of(minimum(N, M)), partial=True),
    case("Add", of(add(N, 2)), of(M)),
    case("Mul", of(N, M, H), of(M, 1), opset=7),
    case("Where", of(N, 1, dtype=9), of(1, M), of(2, 1, 1)),
    case("Max", of(N, 1), of(4, 1, 1), of(M)),
    *(case(name, of(N, M, H), opset=13, axes=[0, -1], keepdims=keep, positive=True) for name in ("ReduceMean", "ReduceMax") for keep in (0, 1)),
    case("ReduceSum", of(N, M, H), const([1]), keepdims=0),
    case("ReduceSum", of(N, M, H), keepdims=1),
    case("ReduceSum", of(N, M, H), noop_with_empty_axes=1),
    case("ReduceMean", of(N, M, H), const([0, 2]), opset=18),
    case("ReduceL2", of(N, M, H), of(1, dtype=7), opset=18, partial=True),
    case("ArgMax", of(N, M, H), axis=-1, keepdims=0, positive=True),
    case("ArgMin", of(N, M, H), axis=1),
    case("TopK", of(N, H), const([3]), outputs=2),
    case("TopK", of(N, H), hold(M), outputs=2, axis=1),
    case("OneHot", of(N, M, dtype=7), one(5), of(2)),
    case("OneHot", of(N, M, dtype=7), hold(H), of(2), axis=0),
    case("NonZero", of(N, M), partial=True),
    case("DepthToSpace", of(N, 8, M, H), blocksize=2),
    case("SpaceToDepth", of(N, M, mul(H, 2), 4), blocksize=2),
    case("Resize", of(N, 3, H, H), None, const([1, 1, 2, 3], np.float32)),
    case("Resize", of(N, 3, H, H), None, const([1, 1, 0.5, 0.25], np.float32)),
    case("Resize", of(N, 3, H, H), None, const([1, 1, 1.3, 0.7], np.float32), partial=True),
    case("Resize", of(N, 3, 9, 7), None, const([1, 1, 1.3, 0.7], np.float32)),
    case("Resize", of(N, 10), None, const([1, 0.7], np.float32), partial=True),
    case("Resize", of(N, 3, H, H), None, None, hold(N, 3, mul(H, 2), 5)),
    case("Resize", of(N, 3, H, H), None, None, hold(M, 5), opset=18, axes=[2, 3]),
    case("Resize", of(N, 3, H, H), const([1, 1, 2, 2], np.float32), opset=10),
    case("Upsample", of(N, 3, H, H), const([1, 1, 2, 2], np.float32), opset=9),
    case("Upsample", of(N, 3, H, H), opset=7, scales=[1.0, 1.0, 2.0, 2.0]),
    case("CenterCropPad", of(N, M, 3), hold(H, 4), axes=[0, 1], opset=18),
    case("Cast", of(N, M), to=7),
    case("Identity", of(N, M)),
    case("Shape", of(N, 3, M)),
    case("Shape", of(N, 3, M), start=-2, end=10, opset=15),
    case("Size", of(N, 3, M)),
    case("Softmax", of(N, M)),
    case("BatchNormalization", of(N, 3, H), of(3), of(3), of(3), of(3)),
    case("LayerNormalization", of(N, M, H), of(H)),
    case("Einsum", of(N, M, H), of(N, H, 5), equation="bij,bjk->bik"),
    case("LSTM", of(H, N, 3), of(1, 16, 3), of(1, 16, 4), outputs=3, hidden_size=4, positive=True),
    case("GRU", of(H, N, 3), of(1, 12, 3), of(1, 12, 4), outputs=2, hidden_size=4, positive=True),
    case("GatherND", of(N, M, 3), of(H, 2, dtype=7), partial=False),
    case("ScatterND", of(N, M), of(H, 1, dtype=7), of(H, M)),
    case("GatherElements", of(N, M), of(H, M, dtype=7), axis=0),
    case("CumSum", of(N, M), one(1)),
    case("Trilu", of(N, M)),
    case("Compress", of(N, M), of(M, dtype=9), axis=1, partial=True),
    case("GridSample", of(N, 3, H, H), of(N, M, 5, 2), opset=16),
    case("QuantizeLinear", of(N, M), const(0.5, np.float32), const(0, np.uint8)),
]


# Sizes on which the runtime, ONNX's inference and its reference disagree: a case, the axis, and the
# image that shows it.
DISPUTED = [
    (case("Resize", of(1, 1, H), None, const([1, 1, 0.7], np.float32)), 2, (1, 1, 10)),
    (case("Upsample", of(1, 1, H), const([1, 1, 1.3], np.float32), opset=9), 2, (1, 1, 10)),
    *((case("MaxPool", of(1, 1, H), kernel_shape=[1], strides=[2], ceil_mode=1, opset=opset), 2, (1, 1, 4)) for opset in (10, 11, 12)),
    *((case("AveragePool", of(1, 1, H), kernel_shape=[1], strides=[2], ceil_mode=1, opset=opset), 2, (1, 1, 4)) for opset in (10, 11, 19)),
    (case("MaxPool", of(1, 1, H, H), kernel_shape=[2, 2], dilations=[2, 2], auto_pad="SAME_UPPER"), 2, (1, 1, 5, 5)),
    (case("ConvTranspose", of(1, 1, H), of(1, 1, 1), strides=[3], auto_pad="SAME_UPPER"), 2, (1, 1, 3)),
    (case("ConvTranspose", of(1, 1, H), of(1, 1, 3), strides=[2], auto_pad="SAME_UPPER", output_padding=[1]), 2, (1, 1, 3)),
    (case("NonZero", of()), 0, ()),
]


@pytest.mark.parametrize(("case", "axis", "image"), DISPUTED, ids=str)
def test_a_size_on_which_engines_disagree_is_not_known(case: Case, axis: int, image: tuple[int, ...]) -> None:
    given = replace(case, inputs=(of(*image), *case.inputs[1:]))
    for known in (case, given):
        (fact,) = inferred(known)
        assert fact.shape is not None
        assert fact.shape[axis] is None
    values = {f"i{position}": item.value({}) for position, item in enumerate(given.inputs) if item is not None}
    proto = model(given)
    opinions = {session(proto).run(None, values)[0].shape}
    with contextlib.suppress(Exception):
        opinions.add(np.shape(run_reference(proto, values)[0]))
    for info, value in zip(proto.graph.input, values.values(), strict=True):
        info.CopyFrom(helper.make_tensor_value_info(info.name, info.type.tensor_type.elem_type, value.shape))
    proto.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in values.items() if name != "i0")
    found = onnx.shape_inference.infer_shapes(proto).graph.output[0].type.tensor_type
    opinions.add(tuple(dim.dim_value for dim in found.shape.dim))
    assert len(opinions) > 1, opinions


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shapes_are_those_of_the_runtime(case: Case) -> None:
    assert check(case) > 0, "the case must run at some sizes"
    unknown = [fact.shape for fact in inferred(case) if fact.shape is None or None in fact.shape]
    assert bool(unknown) == case.partial


def test_a_convolution_has_the_size_that_exporters_compute_by_a_division() -> None:
    """They write 1 + (H - 1) / 4 behind two layers that halve the image."""
    (halved,) = inferred(case("Conv", of(N, 4, H), of(4, 4, 7), strides=[2], pads=[3, 3]))
    (quartered,) = inferred(case("MaxPool", Given(halved), strides=[2], pads=[1, 1], kernel_shape=[3]))
    (size,) = inferred(case("Div", hold(sub(H, 1)), hold(4)))
    assert quartered.shape is not None
    assert size.ints is not None
    assert quartered.shape[2] == add(size.ints[0], 1)


def test_slices_at_random() -> None:
    random = Random(1)
    bounds = [-9, -2, -1, 0, 1, 3, 6, END, -END, 2**31 - 1, -(2**31)]
    for _ in range(100):
        cuts = [(random.choice(bounds), random.choice(bounds), random.choice([-3, -2, -1, 1, 2, 3])) for _ in range(2)]
        starts, ends, steps = zip(*cuts, strict=True)
        for shape in (of(N, M), of(6, 4)):
            assert check(case("Slice", shape, const(starts), const(ends), const([0, 1]), const(steps))) == len(SIZES)


def test_reshapes_at_random() -> None:
    random = Random(2)
    pool: list[Dim] = [0, -1, N, M, 2, 3, 4, 6, mul(N, M), mul(N, 2), floordiv(M, 2), sub(M, 1)]
    known = 0
    for _ in range(150):
        data = [random.choice([N, M, 2, 3, 4, mul(N, 2), mul(N, M)]) for _ in range(random.randint(1, 3))]
        wanted = [random.choice(pool) for _ in range(random.randint(1, 3))]
        zero = random.randint(0, 1)
        if wanted.count(-1) < 2:
            assumed = exact_divide(product(data), product(size for size in wanted if size != -1)) is not None
            known += check(case("Reshape", of(*data), hold(*wanted), allowzero=zero, positive=assumed))
    assert known > 50


# Only ONNX's inference knows the sizes of these operators, so they are numbers. No such operator
# copies a size that may have a name; or it takes no tensor, or is newer than the fuzzer of facts
# covers.
NUMBERS_ONLY = """BlackmanWindow CausalConvWithState ConcatFromSequence Constant HammingWindow HannWindow If ImageDecoder LinearAttention Loop
    MelWeightMatrix Optional OptionalGetElement OptionalHasElement RandomNormal RandomUniform STFT Scan SequenceAt SequenceConstruct SequenceEmpty
    SequenceErase SequenceInsert SequenceLength SequenceMap Shape Size SplitToSequence StringNormalizer SwiGLU"""


def test_every_operator_is_in_the_table_of_sizes_or_has_numbers_only() -> None:
    names = {schema.name for schema in defs.get_all_schemas_with_history() if schema.domain == "" and not schema.deprecated}
    contributed = {name for domain in DOMAINS for name in contributed_names(domain)}
    assert not names & contributed, "tables go by name"
    assert names | contributed >= SHAPES.keys() >= contributed
    assert names - SHAPES.keys() == set(NUMBERS_ONLY.split())

"""The price of a node: work in hand-computed examples, and properties of all operators."""

import math
import platform
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, defs, helper, numpy_helper

from eqsat.cost.kinds import COUNTERS, DECLARED, KINDS, MOVES
from eqsat.cost.price import PricedNode, blocks, price, work
from eqsat.cost.shaped import Shaped
from eqsat.cost.target import Blocked, load_target, shipped_targets
from eqsat.cost.workload import Work, passed

F = TensorProto.FLOAT
CPU = load_target("onnxruntime-cpu")
PLAIN = load_target("launches")
TARGETS = [load_target(name) for name in shipped_targets()]
SCHEMAS = {(schema.domain, schema.name): schema for schema in defs.get_all_schemas_with_history()}
KEYS = sorted({*COUNTERS, "com.acme.Unheard"})


def tensor(*shape: int, dtype: int = F, constant: bool = False) -> Shaped:
    return Shaped(dtype, shape, constant)


def weights(*shape: int) -> Shaped:
    return Shaped(F, shape, True)


def node(key: str, inputs: list[Shaped | None], outputs: list[Shaped | None] | None = None, **attributes) -> PricedNode:
    domain, _, name = key.rpartition(".")
    return PricedNode(domain, name, attributes, inputs, outputs if outputs is not None else [None])


def counted(key: str, inputs: list[Shaped | None], outputs: list[Shaped | None] | None = None, **attributes) -> Work:
    return work(node(key, inputs, outputs, **attributes), PLAIN)


def test_every_operator_of_onnx_has_an_entry() -> None:
    missing = sorted(f"{domain}.{name}" if domain else name for domain, name in SCHEMAS if (f"{domain}.{name}" if domain else name) not in COUNTERS)
    assert not missing


def test_no_entry_is_misspelled() -> None:
    known = {f"{domain}.{name}" if domain else name for domain, name in SCHEMAS} | {"SimplifiedLayerNormalization"}
    assert not sorted(key for key in COUNTERS if key not in known and not key.startswith("com.microsoft"))


def test_every_class_is_listed_and_priced_on_the_cpu() -> None:
    used = {counter(PricedNode("", "X", {}, [tensor(2, 4, 8, 8), tensor(4, 4, 3, 3)], [tensor(2, 4, 8, 8)])).kind for counter in COUNTERS.values()}
    assert used <= set(KINDS)
    assert set(DECLARED) <= set(KINDS)
    assert MOVES <= set(KINDS)
    # A class without rates would cost only its launch.
    unrated = {kind for kind in KINDS if kind not in CPU.classes}
    assert not unrated


IMAGE = tensor(2, 8, 10, 10)

OPERATIONS = [
    # 2 x 16 x 8 x 8 results, each of 8 x 3 x 3 products and sums.
    (counted("Conv", [IMAGE, weights(16, 8, 3, 3)]), 2 * (2 * 16 * 8 * 8) * 72),
    (counted("Conv", [IMAGE, weights(16, 8, 3, 3), weights(16)]), 2 * (2 * 16 * 8 * 8) * 72 + 2 * 16 * 8 * 8),
    (counted("Conv", [IMAGE, weights(16, 8, 3, 3)], pads=(1, 1, 1, 1), strides=(2, 2)), 2 * (2 * 16 * 5 * 5) * 72),
    # Dilated by 2, a window of 3 reaches over 5: 10 - 5 + 1 = 6.
    (counted("Conv", [IMAGE, weights(16, 8, 3, 3)], dilations=(2, 2)), 2 * (2 * 16 * 6 * 6) * 72),
    (counted("Conv", [IMAGE, weights(16, 8, 3, 3)], auto_pad=b"SAME_UPPER", strides=(3, 3)), 2 * (2 * 16 * 4 * 4) * 72),
    (counted("Conv", [IMAGE, weights(16, 8, 3, 3)], auto_pad=b"VALID", strides=(3, 3)), 2 * (2 * 16 * 3 * 3) * 72),
    (counted("Conv", [IMAGE, weights(16, 2, 3, 3)], group=4), 2 * (2 * 16 * 8 * 8) * 18),
    (counted("Conv", [IMAGE, weights(8, 1, 3, 3)], group=8), 2 * (2 * 8 * 8 * 8) * 9),
    (counted("Conv", [tensor(1, 4, 20), weights(6, 4, 5)], strides=(2,)), 2 * (6 * 8) * 20),
    (counted("com.microsoft.FusedConv", [IMAGE, weights(16, 8, 3, 3)], activation=b"Relu"), 2 * (2 * 16 * 8 * 8) * 72),
    # Each of 2 x 8 x 10 x 10 elements meets 4 x 3 x 3 weights.
    (counted("ConvTranspose", [IMAGE, weights(8, 4, 3, 3)], [tensor(2, 4, 12, 12)]), 2 * (2 * 8 * 10 * 10) * 36),
    (counted("ConvInteger", [IMAGE, weights(16, 8, 3, 3)]), 2 * (2 * 16 * 8 * 8) * 72),
    (counted("QLinearConv", [IMAGE, None, None, weights(16, 8, 3, 3), None, None, None, None]), 2 * (2 * 16 * 8 * 8) * 72),
    (counted("MatMul", [tensor(3, 4), tensor(4, 5)]), 2 * 3 * 4 * 5),
    (counted("MatMul", [tensor(7, 1, 3, 4), tensor(6, 4, 5)]), 2 * 7 * 6 * 3 * 4 * 5),
    (counted("MatMul", [tensor(4), tensor(4, 5)]), 2 * 4 * 5),
    (counted("MatMul", [tensor(3, 4), tensor(4)]), 2 * 3 * 4),
    (counted("MatMul", [tensor(4), tensor(4)]), 2 * 4),
    (counted("MatMul", [tensor(7, 3, 4), tensor(4)]), 2 * 7 * 3 * 4),
    (counted("Gemm", [tensor(4, 3), tensor(5, 4), tensor(5)], transA=1, transB=1), 2 * 3 * 4 * 5 + 3 * 5),
    (counted("Gemm", [tensor(3, 4), tensor(4, 5)]), 2 * 3 * 4 * 5),
    (counted("com.microsoft.FusedMatMul", [tensor(2, 4, 3), tensor(2, 4, 5)], transA=1), 2 * 2 * 3 * 4 * 5),
    (counted("com.microsoft.FusedMatMul", [tensor(4, 2, 3), tensor(4, 2, 5)], transBatchA=1, transA=1, transBatchB=1), 2 * 2 * 3 * 4 * 5),
    (counted("QLinearMatMul", [tensor(3, 4), None, None, tensor(4, 5), None, None, None, None]), 2 * 3 * 4 * 5),
    (counted("com.microsoft.MatMulNBits", [tensor(3, 64), None], [tensor(3, 32)], K=64, N=32), 2 * 3 * 64 * 32),
    (counted("Einsum", [tensor(2, 3, 4), tensor(2, 4, 5)], equation=b"bij,bjk->bik"), 2 * 2 * 3 * 4 * 5),
    (counted("Einsum", [tensor(2, 3, 4), tensor(2, 4, 5)], equation=b"...ij, ...jk"), 2 * 2 * 3 * 4 * 5),
    (counted("Einsum", [tensor(3), tensor(4)], equation=b"i,j->ij"), 3 * 4),
    # Two steps: ij,jk to ik, then ik,kl to il.
    (counted("Einsum", [tensor(2, 3), tensor(3, 4), tensor(4, 5)], equation=b"ij,jk,kl->il"), 2 * 2 * 3 * 4 + 2 * 2 * 4 * 5),
    # The first step sums nothing, for the third operand needs j and k.
    (counted("Einsum", [tensor(2, 3), tensor(4, 5), tensor(3, 4)], equation=b"ij,kl,jk->il"), 3 * 2 * 3 * 4 * 5),
    (counted("Einsum", [tensor(3, 3)], equation=b"ij->ji"), 0),
    (counted("Einsum", [tensor(3, 5)], equation=b"ij->i"), 15),
    # 8 heads of queries share 2 heads of keys: all 8 compute scores.
    (counted("Attention", [tensor(1, 8, 10, 16), tensor(1, 2, 12, 16), tensor(1, 2, 12, 32)]), 8 * 10 * 12 * (2 * 16 + 2 * 32 + 4)),
    (
        counted("Attention", [tensor(1, 10, 128), tensor(1, 12, 32), tensor(1, 12, 64)], q_num_heads=8, kv_num_heads=2),
        8 * 10 * 12 * (2 * 16 + 2 * 32 + 4),
    ),
    # Four more tokens are in the cache.
    (
        counted("Attention", [tensor(1, 8, 10, 16), tensor(1, 8, 10, 16), tensor(1, 8, 10, 16), None, tensor(1, 8, 4, 16), tensor(1, 8, 4, 16)]),
        8 * 10 * 14 * (4 * 16 + 4),
    ),
    (counted("com.microsoft.MultiHeadAttention", [tensor(2, 10, 64), tensor(2, 12, 64), tensor(2, 12, 64)], num_heads=4), 2 * 4 * 10 * 12 * (4 * 16 + 4)),
    (
        counted("com.microsoft.Attention", [tensor(2, 10, 64), weights(64, 192), weights(192)], num_heads=4),
        2 * 4 * 10 * 10 * (4 * 16 + 4) + 2 * 2 * 10 * 64 * 192,
    ),
    # 5 steps of 2 directions, 3 rows, 4 gates of 7; the input has 6.
    (counted("LSTM", [tensor(5, 3, 6), weights(2, 28, 6), weights(2, 28, 7)], hidden_size=7), 2 * 5 * 3 * 4 * 7 * (2 * (6 + 7) + 12)),
    (
        counted("com.microsoft.DynamicQuantizeLSTM", [tensor(5, 3, 6), weights(2, 6, 28), weights(2, 7, 28)], hidden_size=7),
        2 * 5 * 3 * 4 * 7 * (2 * (6 + 7) + 12),
    ),
    (counted("GRU", [tensor(3, 5, 6), weights(1, 21, 6), weights(1, 21, 7)], layout=1), 5 * 3 * 3 * 7 * (2 * (6 + 7) + 12)),
    (counted("MaxPool", [IMAGE], kernel_shape=(3, 3), strides=(2, 2)), (2 * 8 * 4 * 4) * 9),
    (counted("MaxPool", [IMAGE], kernel_shape=(3, 3), strides=(2, 2), ceil_mode=1), (2 * 8 * 5 * 5) * 9),
    (counted("AveragePool", [IMAGE], kernel_shape=(2, 2), strides=(2, 2)), (2 * 8 * 5 * 5) * 4),
    # A window is clipped to the image; in the blocked layout its rows and columns beyond are stepped over.
    (counted("AveragePool", [IMAGE], [tensor(2, 8, 1, 1)], kernel_shape=(1280, 1270), strides=(1280, 1270), ceil_mode=1), 2 * 8 * 10 * 10),
    (
        counted("com.microsoft.nchwc.MaxPool", [IMAGE], [tensor(2, 8, 1, 1)], kernel_shape=(1280, 1270), strides=(1280, 1270), ceil_mode=1),
        2 * 8 * (10 * 1270 + 1270),
    ),
    (counted("GlobalAveragePool", [IMAGE]), 2 * 8 * 10 * 10),
    (counted("ReduceSum", [tensor(3, 5)], [tensor(3, 1)], axes=(1,)), 15),
    (counted("ReduceL2", [tensor(3, 5)], [tensor(3, 1)]), 30),
    (counted("ArgMax", [tensor(3, 5)], axis=1), 15),
    (counted("Resize", [IMAGE], [tensor(2, 8, 20, 20)], mode=b"linear"), 2 * 8 * 20 * 20 * 2 * 4),
    (counted("Resize", [IMAGE], [tensor(2, 8, 20, 20)], mode=b"nearest"), 0),
    (counted("Add", [tensor(3, 1), tensor(1, 5)]), 15),
    (counted("Sum", [tensor(3, 5), tensor(3, 5), tensor(5)]), 2 * 15),
    (counted("Relu", [tensor(3, 5)]), 15),
    (counted("Reshape", [tensor(3, 5), tensor(1, dtype=TensorProto.INT64)], [tensor(15)]), 0),
    (counted("Det", [tensor(2, 3, 3)]), 2 * 27 * 2 / 3),
]


@pytest.mark.parametrize(("found", "operations"), OPERATIONS)
def test_operations(found: Work, operations: float) -> None:
    assert found.operations == pytest.approx(operations, rel=1e-12)


# The bias, the scale of a Gemm, Softmax and the gates of a cell are no multiply-adds.
MULTIPLY_ADDS = [
    (counted("Conv", [IMAGE, weights(16, 8, 3, 3), weights(16)]), (2 * 16 * 8 * 8) * 72),
    (counted("Conv", [IMAGE, weights(8, 1, 3, 3)], group=8), (2 * 8 * 8 * 8) * 9),
    (counted("ConvTranspose", [IMAGE, weights(8, 4, 3, 3), weights(4)], [tensor(2, 4, 12, 12)]), (2 * 8 * 10 * 10) * 36),
    (counted("DeformConv", [IMAGE, weights(16, 8, 3, 3), tensor(2, 18, 8, 8)], [tensor(2, 16, 8, 8)]), (2 * 16 * 8 * 8) * 72),
    (counted("QLinearConv", [IMAGE, None, None, weights(16, 8, 3, 3), None, None, None, None]), (2 * 16 * 8 * 8) * 72),
    (counted("MatMul", [tensor(7, 1, 3, 4), tensor(6, 4, 5)]), 7 * 6 * 3 * 4 * 5),
    (counted("Gemm", [tensor(4, 3), tensor(5, 4), tensor(5)], transA=1, transB=1, alpha=0.5), 3 * 4 * 5),
    (counted("com.microsoft.MatMulNBits", [tensor(3, 64), None], [tensor(3, 32)], K=64, N=32), 3 * 64 * 32),
    (counted("Einsum", [tensor(2, 3), tensor(3, 4), tensor(4, 5)], equation=b"ij,jk,kl->il"), 2 * 3 * 4 + 2 * 4 * 5),
    (counted("Einsum", [tensor(3), tensor(4)], equation=b"i,j->ij"), 0),
    (counted("Attention", [tensor(1, 8, 10, 16), tensor(1, 2, 12, 16), tensor(1, 2, 12, 32)]), 8 * 10 * 12 * (16 + 32)),
    (
        counted("com.microsoft.Attention", [tensor(2, 10, 64), weights(64, 192), weights(192)], num_heads=4),
        2 * 4 * 10 * 10 * 2 * 16 + 2 * 10 * 64 * 192,
    ),
    (counted("LSTM", [tensor(5, 3, 6), weights(2, 28, 6), weights(2, 28, 7)], hidden_size=7), 2 * 5 * 3 * 4 * 7 * (6 + 7)),
    (counted("AveragePool", [IMAGE], kernel_shape=(2, 2), strides=(2, 2)), 0),
    (counted("LayerNormalization", [tensor(2, 3, 4), weights(4)]), 0),
]


@pytest.mark.parametrize(("found", "multiply_adds"), MULTIPLY_ADDS)
def test_multiply_adds(found: Work, multiply_adds: float) -> None:
    assert found.multiply_adds == multiply_adds


ROWS = [
    (counted("LayerNormalization", [tensor(2, 3, 4), weights(4)]), 6),
    (counted("LayerNormalization", [tensor(2, 3, 4), weights(3, 4)], axis=1), 2),
    (counted("GroupNormalization", [IMAGE, weights(8), weights(8)], num_groups=4), 2 * 4),
    (counted("InstanceNormalization", [IMAGE, weights(8), weights(8)]), 2 * 8),
    (counted("Softmax", [tensor(2, 3, 4)], axis=1), 8),
    (counted("ReduceSum", [tensor(3, 5)], [tensor(3)]), 3),
    (counted("LSTM", [tensor(5, 3, 6), weights(2, 28, 6), weights(2, 28, 7)]), 10),
    (counted("LSTM", [tensor(3, 5, 6), weights(2, 28, 6), weights(2, 28, 7)], layout=1), 10),
    (counted("Transpose", [tensor(2, 3, 4, 5)], perm=(0, 2, 1, 3)), 24),
    (counted("Gather", [tensor(6, 7, 8), tensor(3, dtype=TensorProto.INT64)], [tensor(6, 3, 8)], axis=1), 6 * 3),
    (counted("Slice", [tensor(6, 8)], [tensor(6, 4)]), 6),
    (counted("Expand", [tensor(6, 1)], [tensor(6, 8)]), 6),
    (counted("Expand", [tensor()], [tensor(6, 8)]), 0),
    (counted("Expand", [tensor(6, 8)], [tensor(6, 8)]), 0),
    (counted("Slice", [tensor(6, 8)], [tensor(3, 8)]), 1),
    # An input that broadcasts makes runs: an equal shape, a scalar, along the last axis, before it,
    # in between.
    (counted("Add", [tensor(6, 8), tensor(6, 8)], [tensor(6, 8)]), 0),
    (counted("Add", [tensor(6, 8), tensor()], [tensor(6, 8)]), 0),
    (counted("Add", [tensor(6, 8), tensor(1, 1)], [tensor(6, 8)]), 0),
    (counted("Add", [tensor(6, 8), tensor(8)], [tensor(6, 8)]), 6),
    (counted("Add", [tensor(6, 8), tensor(6, 1)], [tensor(6, 8)]), 6),
    # One element at a time, for an operand of few axes that ends where the others have sizes of 1.
    (counted("Add", [tensor(6, 8, 1), tensor()], [tensor(6, 8, 1)]), 48),
    (counted("Where", [tensor(6, 8, 1), tensor(), tensor(1)], [tensor(6, 8, 1)]), 48),
    (counted("Pow", [tensor(6, 1, 1), tensor(1, 1)], [tensor(6, 1, 1)]), 6),
    (counted("Max", [tensor(6, 8, 1), tensor(6, 8, 1), tensor(1)], [tensor(6, 8, 1)]), 48),
    (counted("Add", [tensor(6, 8, 1), tensor(1, 1)], [tensor(6, 8, 1)]), 0),
    (counted("Add", [tensor(6, 8, 1), tensor(1, 1, 1)], [tensor(6, 8, 1)]), 0),
    (counted("Add", [tensor(1, 1), tensor()], [tensor(1, 1)]), 0),
    (counted("Clip", [tensor(6, 8, 1), tensor(), tensor()], [tensor(6, 8, 1)]), 0),
    (counted("Max", [tensor(6, 8), tensor(8)], [tensor(6, 8)]), 6),
    (counted("Mul", [tensor(2, 3, 4, 5), tensor(3, 1, 1)], [tensor(2, 3, 4, 5)]), 6),
    # Runs of the input of Expand, of the results of Tile and of each input of Concat. Single elements need no runs.
    (counted("Expand", [tensor(6, 1, 8)], [tensor(6, 4, 8)]), 6),
    (counted("Expand", [tensor(6, 8, 1)], [tensor(6, 8, 4)]), 48),
    (counted("Expand", [tensor(1, 8)], [tensor(6, 8)]), 0),
    (counted("Tile", [tensor(6, 8)], [tensor(6, 32)]), 24),
    (counted("Tile", [tensor(6, 8)], [tensor(12, 8)]), 2),
    (counted("Concat", [tensor(6, 8, 3), tensor(6, 2, 3)], [tensor(6, 10, 3)], axis=1), 12),
    (counted("Concat", [tensor(6, 1), tensor(6, 1)], [tensor(6, 2)], axis=-1), 0),
    (counted("Concat", [tensor(6, 1), tensor(6, 7)], [tensor(6, 8)], axis=-1), 12),
    # Pixels that are found one by one.
    (counted("Resize", [tensor(1, 2, 4, 5)], [tensor(1, 2, 8, 10)], coordinate_transformation_mode=b"asymmetric", nearest_mode=b"floor"), 0),
    (counted("Resize", [tensor(1, 2, 4, 5)], [tensor(1, 2, 8, 10)]), 160),
    (counted("Resize", [tensor(1, 2, 4, 5)], [tensor(1, 2, 4, 10)], coordinate_transformation_mode=b"asymmetric", nearest_mode=b"floor"), 80),
    (counted("Mul", [tensor(2, 3, 4, 5), tensor(3, 1, 5)], [tensor(2, 3, 4, 5)]), 24),
    (counted("Attention", [tensor(2, 8, 10, 16), tensor(2, 8, 12, 16), tensor(2, 8, 12, 16)]), 2 * 8 * 10),
    # The products of a batch behind the first one. If all have the same second factor, they are one.
    (counted("MatMul", [tensor(4, 3, 6, 8), tensor(4, 3, 8, 5)]), 11),
    (counted("MatMul", [tensor(4, 3, 6, 8), tensor(4, 1, 8, 5)]), 11),
    (counted("MatMul", [tensor(4, 3, 6, 8), tensor(8, 5)]), 0),
    (counted("MatMul", [tensor(4, 3, 6, 8), tensor(1, 1, 8, 5)]), 0),
    (counted("MatMul", [tensor(0, 6, 8), tensor(0, 8, 5)]), 0),
    (counted("MatMul", [weights(6, 8), tensor(4, 8, 5)]), 3),
    (counted("com.microsoft.FusedMatMul", [tensor(4, 8, 6), tensor(8, 5)], transA=1), 3),
    (counted("Gemm", [tensor(6, 8), tensor(8, 5)]), 0),
    # Blocks in front of the reduced axes, else results.
    (counted("ReduceSum", [tensor(2, 3, 4, 5)], [tensor(2, 3, 1, 5)], axes=(2,)), 6),
    (counted("ReduceSum", [tensor(1, 3, 5)], [tensor(1, 1, 5)], axes=(1,)), 5),
]


@pytest.mark.parametrize(("found", "rows"), ROWS)
def test_rows(found: Work, rows: float) -> None:
    assert found.rows == rows


INT = TensorProto.INT64
BYTES = [
    (counted("Add", [tensor(3, 1), tensor(1, 5)]), 4 * (3 + 5 + 15)),
    (counted("Add", [tensor(3, 1), tensor(1, 5)], [tensor(3, 5)]), 4 * (3 + 5 + 15)),
    (counted("MatMul", [tensor(3, 4), tensor(4, 5)]), 4 * (12 + 20 + 15)),
    (counted("Cast", [tensor(6)], [tensor(6, dtype=INT)]), 6 * (4 + 8)),
    (counted("Equal", [tensor(6), tensor(6)], [tensor(6, dtype=TensorProto.BOOL)]), 6 * (4 + 4 + 1)),
    (counted("DequantizeLinear", [tensor(6, dtype=TensorProto.INT4), tensor()], [tensor(6)]), 6 * 0.5 + 4 + 6 * 4),
    # The node reads and writes three rows, not a table of a million.
    (counted("Gather", [tensor(1_000_000, 8), tensor(3, dtype=INT)], [tensor(3, 8)]), 2 * 4 * 24 + 24),
    (counted("Slice", [tensor(1000, 8), tensor(1, dtype=INT)], [tensor(3, 8)]), 2 * 4 * 24),
    (counted("Expand", [tensor(3, 1)], [tensor(3, 8)]), 4 * (3 + 24)),
    (counted("Split", [tensor(6, 8)], [tensor(2, 8), tensor(4, 8)]), 2 * 4 * 48),
    (counted("Concat", [tensor(2, 8), tensor(4, 8)], [tensor(6, 8)], axis=0), 2 * 4 * 48),
    (counted("Transpose", [tensor(3, 4)], [tensor(4, 3)], perm=(1, 0)), 2 * 4 * 12),
    (counted("Transpose", [tensor(3, 1, 4)], [tensor(1, 3, 4)], perm=(1, 0, 2)), 0),
    (counted("Reshape", [tensor(3, 5), tensor(1, dtype=INT)], [tensor(15)]), 0),
    (counted("Shape", [tensor(3, 5)], [tensor(2, dtype=INT)]), 0),
    (counted("Range", [tensor(), tensor(), tensor()], [tensor(100)]), 400),
    (counted("ScatterND", [tensor(100, 8), tensor(3, 1, dtype=INT), tensor(3, 8)], [tensor(100, 8)]), 2 * 3200 + 2 * 96 + 24),
    (counted("com.acme.Unheard", [tensor(3), None, tensor(2)], [tensor(7)]), 4 * 12),
    (counted("LSTM", [tensor(5, 1, 6), weights(1, 8, 6), weights(1, 8, 2)], [None, tensor(1, 1, 2)]), 4 * (30 + 48 + 16 + 2)),
]


@pytest.mark.parametrize(("found", "size"), BYTES)
def test_bytes(found: Work, size: float) -> None:
    assert found.bytes == pytest.approx(size, rel=1e-12)


KINDS_BY_EXAMPLE = [
    (node("Transpose", [tensor(2, 3, 4, 5)], perm=(0, 2, 1, 3)), "transpose_runs"),
    (node("Transpose", [tensor(2, 3, 4, 5, 6)], perm=(0, 2, 3, 1, 4)), "transpose_inward"),
    (node("Transpose", [tensor(2, 3, 1, 5, 6)], perm=(0, 2, 3, 1, 4)), "transpose_inward"),
    (node("Transpose", [tensor(2, 3, 4, 5, 6)], perm=(0, 3, 1, 2, 4)), "transpose_runs"),
    (node("Transpose", [tensor(2, 3, 4, 2)], perm=(0, 2, 1, 3)), "transpose_plane"),  # runs of 8 bytes
    (node("Transpose", [tensor(2, 3, 4, 2, dtype=INT)], perm=(0, 2, 1, 3)), "transpose_runs"),
    (node("Transpose", [tensor(2, 3, 4, 5, 2)], perm=(0, 3, 2, 1, 4)), "transpose_runs"),
    (node("Transpose", [tensor(2, 3, 4, 5, 6)], perm=(0, 3, 4, 1, 2)), "transpose_plane"),
    (node("Transpose", [tensor(2, 3, 4, 5, 6)], perm=(0, 2, 4, 1, 3)), "transpose"),
    (node("Transpose", [tensor(2, 3, 4, 5)], perm=(0, 1, 3, 2)), "transpose_plane"),
    (node("Transpose", [tensor(2, 3, 4, 5)], perm=(0, 2, 3, 1)), "transpose_plane"),
    (node("Transpose", [tensor(2, 3, 4, 5)], perm=(0, 3, 2, 1)), "transpose"),
    (node("Transpose", [tensor(2, 3, 4, 5)], perm=(0, 1, 2, 3)), "view"),
    (node("Transpose", [tensor(2, 3)]), "transpose_plane"),
    (node("Transpose", [tensor(1, 3)]), "view"),
    (node("MaxPool", [tensor(1, 3, 9)], kernel_shape=(3,), strides=(3,)), "pool_line"),
    (node("MaxPool", [tensor(1, 3, 9, 9)], kernel_shape=(3, 3), strides=(3, 2)), "pool"),
    (node("AveragePool", [tensor(1, 3, 9, 9)], kernel_shape=(3, 3), strides=(2, 3)), "pool_steps"),
    (node("com.microsoft.nchwc.MaxPool", [tensor(1, 16, 9, 9)], kernel_shape=(3, 3), strides=(3, 3)), "pool_blocked"),
    (node("Softmax", [tensor(2, 3)]), "softmax"),
    (node("Softmax", [tensor(2, 3)], axis=0), "softmax_outer"),
    (node("Softmax", [tensor(2, 3, 4, 1)], axis=1), "softmax_outer"),
    (node("Softmax", [tensor(2, 3, 4, 5)], axis=1), "softmax_swapped"),
    (node("ReduceSum", [tensor(2, 3)], [tensor(1, 3)], axes=(0,)), "reduction_outer"),
    (node("ReduceSum", [tensor(2, 3, 4)], [tensor(2, 1, 4)], axes=(1,)), "reduction_middle"),
    (node("ReduceSum", [tensor(2, 3, 4), weights(1)], [tensor(2, 4)]), "reduction_middle"),
    (node("ReduceSum", [tensor(1, 2, 3, 4)], [tensor(1, 2, 1, 4)], axes=(-2,)), "reduction_middle"),
    (node("ReduceSum", [tensor(2, 3, 4, 5, 6)], [tensor(2, 1, 4, 1, 6)], axes=(1, 3)), "reduction_apart"),
    (node("ReduceSum", [tensor(2, 3, 4, 5)], [tensor(1, 3, 1, 5)], axes=(0, -2)), "reduction_apart"),
    (node("ReduceSum", [tensor(2, 3, 4, 5)], [tensor(1, 3, 4, 1)], axes=(0, 3)), "reduction"),
    (node("ReduceSum", [tensor(2, 3, 4, 5), weights(2)], [tensor(2, 4)]), "reduction_apart"),
    (node("ReduceSum", [tensor(2, 3, 4, 5), weights(2)], [tensor(2, 1, 4, 1)]), "reduction_apart"),
    (node("ReduceSum", [tensor(2, 3, 4, 5), weights(2)], [tensor(2, 3)]), "reduction"),
    (node("ReduceSum", [tensor(1, 3, 4)], [tensor(1, 1, 4)], axes=(1,)), "reduction_single"),
    (node("ReduceSum", [tensor(1, 3, 4), weights(1)], [tensor(1, 4)]), "reduction_single"),
    (node("ReduceSum", [tensor(2, 3), weights(1)], [tensor(1, 3)]), "reduction_outer"),
    (node("ReduceSum", [tensor(2, 3), weights(1)], [tensor(2)]), "reduction"),
    (node("ArgMax", [tensor(2, 3)], axis=1), "reduction"),
    (node("ArgMax", [tensor(2, 3)]), "reduction_outer"),
    (node("MatMul", [tensor(2, 3), weights(3, 4)]), "matmul"),
    (node("MatMul", [tensor(2, 3), tensor(3, 4)]), "product"),
    (node("MatMul", [tensor(5, 2, 3), weights(1, 3, 4)]), "product"),  # only matrices are packed beforehand
    (node("Conv", [tensor(1, 18, 9, 9), weights(16, 18, 3, 3)]), "conv"),
    (node("Conv", [tensor(1, 16, 9, 9), weights(16, 16, 3, 3)]), "conv_blocked"),
    (node("Conv", [tensor(1, 16, 9, 9), tensor(16, 16, 3, 3)]), "conv"),
    (node("Conv", [tensor(1, 16, 9, 9), weights(16, 16, 3, 3), tensor(16)]), "conv"),
    (node("Conv", [tensor(1, 16, 9), weights(16, 16, 3)]), "conv"),
    (node("Conv", [tensor(1, 16, 9, 9), weights(16, 1, 3, 3)], group=16), "depthwise_blocked"),
    (node("Conv", [tensor(1, 18, 9, 9), weights(18, 1, 3, 3)], group=18), "depthwise"),
    (node("com.microsoft.nchwc.Conv", [tensor(1, 16, 9, 9), weights(16, 16, 3, 3)]), "conv_blocked"),
]


@pytest.mark.parametrize(("example", "kind"), KINDS_BY_EXAMPLE)
def test_classes(example: PricedNode, kind: str) -> None:
    assert work(example, CPU).kind == kind


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="ONNX Runtime has the blocked layout on x86-64 alone")
@pytest.mark.parametrize(
    ("channels", "outputs", "groups"), [(3, 16, 1), (3, 7, 1), (18, 16, 1), (20, 5, 1), (32, 32, 32), (18, 18, 18), (32, 64, 32), (64, 64, 2), (16, 64, 4)]
)
def test_blocked_convs_are_those_of_onnxruntime(channels: int, outputs: int, groups: int, tmp_path) -> None:
    """Examples on which blocks of 8 and of 16 channels, which differ by processor, agree."""
    filters = np.ones((outputs, channels // groups, 3, 3), np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], group=groups)],
        "g",
        [helper.make_tensor_value_info("x", F, [1, channels, 9, 9])],
        [helper.make_tensor_value_info("y", F, None)],
        [numpy_helper.from_array(filters, "w")],
    )
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 4
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    converted = any(each.domain == "com.microsoft.nchwc" for each in onnx.load(options.optimized_model_filepath).graph.node)
    expected = blocks(node("Conv", [tensor(1, channels, 9, 9), weights(*filters.shape)], group=groups), Blocked(16, 4, frozenset({F})))
    assert converted == expected


SIZES = st.one_of(st.none(), st.lists(st.sampled_from([0, 1, 2, 3, 4, 7, 16, 64, 1000, 1 << 40]), max_size=6).map(tuple))
SHAPED = st.builds(Shaped, st.sampled_from(sorted(TensorProto.DataType.values())), SIZES, st.booleans())
INTEGERS = st.integers(-3, 9) | st.sampled_from([-(1 << 62), 1 << 62])
VALUES = st.one_of(
    INTEGERS,
    st.floats(allow_nan=True),
    st.lists(INTEGERS, max_size=8).map(tuple),
    st.sampled_from([b"", b"linear", b"cubic", b"SAME_UPPER", b"bidirectional", b"ij,jk->ik", b"...i,i...", b"->", b",,", b"\xff"]),
)
NAMES = """axis axes perm group pads strides dilations kernel_shape auto_pad ceil_mode transA transB equation mode num_heads q_num_heads kv_num_heads
    hidden_size direction layout size num_groups K N sampling_ratio nodes_treeids coefficients""".split()


@st.composite
def any_node(draw: st.DrawFn) -> PricedNode:
    key = draw(st.sampled_from(KEYS))
    tensors = st.lists(st.none() | SHAPED, max_size=6)
    return node(key, draw(tensors), draw(tensors), **draw(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4)))


@settings(max_examples=800, deadline=None)
@given(any_node())
def test_prices_are_finite_and_not_negative(drawn: PricedNode) -> None:
    for target in TARGETS:
        found = price(drawn, target)
        assert math.isfinite(found.seconds) and found.seconds >= 0
        assert math.isfinite(found.bytes) and found.bytes >= 0
        assert math.isfinite(found.operations) and found.operations >= 0
        assert found.launches >= 0


# Attributes with which a node of the shapes below runs.
ATTRIBUTES = {"Einsum": {"equation": b"abcd,abde->abce"}, "Transpose": {"perm": (0, 2, 1, 3)}, "com.microsoft.MatMulNBits": {"K": 8, "N": 8}}
LARGER = [key for key in KEYS if not key.startswith("ai.onnx.ml.")]


@settings(max_examples=1000, deadline=None)
@given(st.sampled_from(LARGER), st.lists(st.sampled_from([2, 3, 4, 8, 16, 33, 64]), min_size=4, max_size=4), st.integers(0, 3), st.booleans())
def test_larger_tensors_never_cost_less(key: str, sizes: list[int], axis: int, constant: bool) -> None:
    larger = list(sizes)
    larger[axis] *= 2

    def made(shape: list[int]) -> PricedNode:
        full = tensor(*shape)
        factor = tensor(*shape[:2], shape[3], shape[2], constant=constant) if key in ("MatMul", "Einsum") else tensor(*shape, constant=constant)
        return node(key, [full, factor, full], [full], **ATTRIBUTES.get(key, {}))

    small, large = made(sizes), made(larger)
    for target in TARGETS:
        # Another kernel may be faster on larger inputs: a blocked Conv needs channels that fill
        # vectors.
        if work(small, target).kind == work(large, target).kind:
            assert price(large, target).seconds >= price(small, target).seconds * (1 - 1e-12)


def test_launches_counts_nodes() -> None:
    for example in (node("Conv", [IMAGE, weights(16, 8, 3, 3)]), node("Reshape", [IMAGE]), node("com.acme.Unheard", [IMAGE])):
        assert price(example, PLAIN).seconds == 1.0
    assert price(node("Constant", [], [tensor(3)]), PLAIN).seconds == 0.0
    assert price(node("Conv", [IMAGE, weights(16, 8, 3, 3)]), PLAIN).bound == "launch"


def test_convs_copy_the_windows_of_each_group_and_none_of_one_element() -> None:
    image, groups = tensor(1, 64, 100), 8
    one, three = (work(node("Conv", [image, weights(128, 8, size)], [tensor(1, 128, 100)], group=groups), CPU) for size in (1, 3))
    assert (one.elements, one.rows) == (128 * 100, 0)
    assert (three.elements, three.rows) == (128 * 100 + 64 * 3 * 100, 64 * 3)
    dense = work(node("Conv", [image, weights(128, 64, 3)], [tensor(1, 128, 100)]), CPU)
    assert (dense.elements, dense.rows) == (three.elements, three.rows)


def test_a_product_passes_over_its_results_once_for_each_depth_and_for_a_bias() -> None:
    def passes(inner: int, *bias: Shaped) -> float:
        done = work(node("Gemm" if bias else "MatMul", [tensor(64, inner), weights(inner, 100), *bias], [tensor(64, 100)]), CPU)
        return passed(done, 256) / 6400

    assert [passes(inner) for inner in (1, 256, 257, 512, 513)] == [1, 1, 2, 2, 3]
    assert [passes(inner, weights(100)) for inner in (256, 257)] == [2, 3]
    assert passed(Work("matmul", 0.0, elements=7.0, multiply_adds=70000.0, inner=10000.0), 0) == 7


def test_a_row_of_weights_costs_less_than_a_bias_of_many_rows() -> None:
    def seconds(rows: int, inner: int, columns: int) -> tuple[float, float]:
        x, y, ones = tensor(rows, inner), tensor(rows, columns), weights(rows, 1)
        wide = tensor(rows, inner + 1)
        bias = price(node("Gemm", [x, weights(inner, columns), weights(columns)], [y]), CPU).seconds
        row = [node("Concat", [x, ones], [wide], axis=-1), node("MatMul", [wide, weights(inner + 1, columns)], [y])]
        return bias, sum(price(each, CPU).seconds for each in row)

    for sizes in ((3136, 48, 192), (784, 96, 384), (197, 192, 768)):
        bias, row = seconds(*sizes)
        assert row < bias
    for sizes in ((64, 256, 1024), (3136, 192, 48), (4, 48, 192)):
        bias, row = seconds(*sizes)
        assert bias < row


def test_a_wider_conv_is_no_free_merge() -> None:
    """Node counts get this case wrong.

    One Conv in place of two costs at least as many operations as both.
    """
    one = price(node("Conv", [tensor(1, 96, 28, 28), weights(24, 96, 1, 1)]), CPU)
    chain = price(node("Conv", [tensor(1, 24, 28, 28), weights(144, 24, 1, 1)]), CPU)
    merged = price(node("Conv", [tensor(1, 96, 28, 28), weights(144, 96, 1, 1)]), CPU)
    assert merged.seconds > one.seconds + chain.seconds


def test_float16_is_slower_on_the_cpu_but_its_views_are_not() -> None:
    half = TensorProto.FLOAT16
    assert price(node("Exp", [tensor(64, 1024, dtype=half)]), CPU).seconds > price(node("Exp", [tensor(64, 1024)]), CPU).seconds
    moved = [price(node("Transpose", [tensor(64, 1024, dtype=dtype)]), CPU).seconds for dtype in (half, F)]
    assert moved[0] <= moved[1]


def test_the_approximate_gelu_is_priced_as_the_kernel_for_it() -> None:
    x = tensor(1, 128, 768)
    approximate = price(node("Gelu", [x], approximate=b"tanh"), CPU)
    assert approximate == price(node("com.microsoft.FastGelu", [x]), CPU)
    assert approximate.seconds < price(node("Gelu", [x]), CPU).seconds == price(node("Gelu", [x], approximate=b"none"), CPU).seconds


def test_the_runtimes_slow_norm_is_dearer_than_its_parts() -> None:
    x, scale = tensor(1, 128, 768), weights(768)
    parts = price(node("Add", [x, x]), CPU).seconds + price(node("LayerNormalization", [x, scale, scale]), CPU).seconds
    assert price(node("com.microsoft.SkipLayerNormalization", [x, x, scale, scale]), CPU).seconds > 3 * parts
    assert any("LayerNormalization" in fusion.second and fusion.becomes == "com.microsoft.SkipLayerNormalization" for fusion in CPU.fusions)


def test_windows_that_lie_apart_take_longer_to_copy_outside_the_blocked_layout() -> None:
    def each(*, channels: int, filters: tuple[int, ...], step: int, groups: int) -> float:
        """Returns the seconds of a Conv whose result has the same size whatever the step."""
        size = 56 * step
        conv = node("Conv", [tensor(1, channels, size, size), weights(*filters)], [tensor(1, filters[0], 56, 56)], group=groups, strides=(step, step))
        return price(conv, CPU).seconds

    for channels, filters, groups in ((18, (8, 18, 3, 3), 1), (18, (18, 1, 3, 3), 18), (96, (24, 8, 3, 3), 12), (18, (18, 18, 1, 1), 1)):
        assert each(channels=channels, filters=filters, step=2, groups=groups) > 1.3 * each(channels=channels, filters=filters, step=1, groups=groups)


def test_an_average_of_few_channels_is_no_dearer_than_the_depthwise_conv_that_computes_it() -> None:
    x, y = tensor(1, 10, 32, 32), tensor(1, 10, 4, 4)
    pool = price(replace(node("AveragePool", [x], [y], kernel_shape=(8, 8), strides=(8, 8)), opset=17), CPU)
    conv = price(node("Conv", [x, weights(10, 1, 8, 8)], [y], group=10, strides=(8, 8)), CPU)
    assert 1.5 * pool.seconds < conv.seconds  # measured: 9 us and 16 us


def test_a_fused_activation_takes_as_long_as_alone_but_for_a_relu_in_a_conv() -> None:
    def seconds(activation: str, channels: int) -> float:
        attributes = {"activation": activation.encode()} if activation else {}
        image, result = tensor(1, 64, 56, 56), tensor(1, channels, 56, 56)
        return price(node("com.microsoft.nchwc.Conv", [image, weights(channels, 64, 1, 1)], [result], **attributes), CPU).seconds

    sigmoid = work(node("Sigmoid", [tensor(1, 16, 56, 56)]), CPU).operations / CPU.rates("elementwise", "Sigmoid", 22).throughput
    assert seconds("Relu", 16) == seconds("", 16)
    assert seconds("Sigmoid", 16) - seconds("", 16) == pytest.approx(sigmoid)
    assert seconds("Sigmoid", 4) - seconds("", 4) == pytest.approx(sigmoid), "the channels that fill up a block have it too"
    factors: list[Shaped | None] = [tensor(256, 64), weights(64, 1024), weights(1024)]
    bare, relu, softplus = (
        price(node(key, factors, [tensor(256, 1024)], **attributes), CPU).seconds
        for key, attributes in (("Gemm", {}), ("com.microsoft.FusedGemm", {"activation": b"Relu"}), ("com.microsoft.FusedGemm", {"activation": b"Softplus"}))
    )
    assert bare < relu < 1.2 * bare and softplus > 5 * bare  # measured: 332, 349 and 3267 us


def test_slices_of_all_parts_take_no_less_than_a_split() -> None:
    x, parts = tensor(1, 16, 256, 256), (tensor(1, 4, 256, 256), tensor(1, 12, 256, 256))
    split = price(node("Split", [x], list(parts)), CPU).seconds
    assert sum(price(node("Slice", [x], [part]), CPU).seconds for part in parts) >= split

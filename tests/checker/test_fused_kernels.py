"""The kernels of runtimes' own operators against ONNX Runtime's: integers to the bit, floats within
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from eqsat.checker.kernels import foreign, fused
from eqsat.checker.kernels.call import Array, Call
from eqsat.checker.kernels.evaluate import Mode, Program
from eqsat.contributed import DOMAINS, MICROSOFT, contributed_names
from eqsat.operators import contributed_operator, read_attributes
from eqsat.runtime.session import OnnxRuntimeSession
from eqsat.traits import NEWEST

Draw = Callable[[np.random.Generator], "tuple[list[Array | None], dict[str, Any]]"]
ROUNDING = 1e-5
WRITTEN = {"SkipLayerNormalization": (True, False, False, True), "SkipSimplifiedLayerNormalization": (True, False, False, True)}


def _floats(generator: np.random.Generator, *shape: int) -> Array:
    return generator.standard_normal(shape).astype(np.float32)


def _bytes(generator: np.random.Generator, kind: type, *shape: int) -> Array:
    return np.asarray(generator.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, endpoint=True)).astype(kind)


def _seven_bits(generator: np.random.Generator, *shape: int) -> Array:
    """Weights whose products with bytes fit in 16 bits in pairs. Processors without instructions for
    products of bytes cut the sum of two such products off, and ONNX Runtime lets them.
    """
    return generator.integers(-64, 64, shape).astype(np.int8)


def _scale(generator: np.random.Generator) -> Array:
    return np.asarray(generator.uniform(0.01, 0.1)).astype(np.float32)


def _product(generator: np.random.Generator) -> tuple[list[Array | None], dict[str, Any]]:
    flips = [int(flip) for flip in generator.integers(0, 2, 2)]
    a, b = ((2, 4, 3) if flips[0] else (2, 3, 4)), ((5, 4) if flips[1] else (4, 5))
    return [_floats(generator, *a), _floats(generator, *b)], {"transA": flips[0], "transB": flips[1], "alpha": 0.5}


def _normalized(inputs: int) -> Draw:
    def draw(generator: np.random.Generator) -> tuple[list[Array | None], dict[str, Any]]:
        given = [_floats(generator, 8) for _ in range(generator.integers(1, inputs - 1))]
        return [_floats(generator, 1, 3, 8), _floats(generator, 1, 3, 8), *given], {"epsilon": 0.125}

    return draw


def _integers_as_floats(generator: np.random.Generator) -> tuple[list[Array | None], dict[str, Any]]:
    zeros = [_bytes(generator, np.uint8), _bytes(generator, np.int8)]
    operands = [_bytes(generator, np.uint8, 3, 4), _seven_bits(generator, 4, 5)]
    return [*operands, _scale(generator), _scale(generator), *zeros, _floats(generator, 5)], {}


def _dynamic(generator: np.random.Generator) -> tuple[list[Array | None], dict[str, Any]]:
    return [_floats(generator, 3, 4), _seven_bits(generator, 4, 5), _scale(generator), _bytes(generator, np.int8), _floats(generator, 5)], {}


def _activation(**attributes: float) -> Draw:
    def draw(generator: np.random.Generator) -> tuple[list[Array | None], dict[str, Any]]:
        kind = np.uint8 if generator.integers(2) else np.int8
        return [_bytes(generator, kind, 64), _scale(generator), _bytes(generator, kind), _scale(generator), _bytes(generator, kind)], attributes

    return draw


def _attention(generator: np.random.Generator) -> tuple[list[Array | None], dict[str, Any]]:
    queries, keys, heads, width = (int(size) for size in generator.integers(1, 5, 4))
    parts = [_floats(generator, 2, length, heads * width) for length in (queries, keys, keys)]
    mask = _floats(generator, int(generator.integers(1, 3)), 1, queries, keys) if generator.integers(2) else None
    attributes = {"num_heads": heads, "scale": float(generator.choice([0.0, 0.5]))}
    return [*parts, None, None, mask], attributes


DRAWS: dict[str, Draw] = {
    "DynamicQuantizeMatMul": _dynamic,
    "FusedMatMul": _product,
    "MatMulIntegerToFloat": _integers_as_floats,
    "MultiHeadAttention": _attention,
    "QLinearLeakyRelu": _activation(alpha=0.25),
    "QLinearSigmoid": _activation(),
    "QuickGelu": lambda generator: ([_floats(generator, 3, 5)], {"alpha": 1.5}),
    "SkipLayerNormalization": _normalized(5),
    "SkipSimplifiedLayerNormalization": _normalized(4),
}


def test_every_operator_has_a_kernel() -> None:
    assert set(DRAWS) == set(fused.KERNELS) == {name for domain in DOMAINS for name in contributed_names(domain)}


@pytest.mark.parametrize("name", DRAWS)
def test_a_kernel_computes_what_the_runtime_does(name: str) -> None:
    generator = np.random.default_rng(3)
    operator = contributed_operator(MICROSOFT, name)
    assert operator is not None
    for _ in range(20):
        inputs, attributes = DRAWS[name](generator)
        dtypes = tuple(0 if x is None else int(helper.np_dtype_to_tensor_dtype(x.dtype)) for x in inputs)
        written = WRITTEN.get(name, (True,))
        result = dtypes[0] if name.startswith("QLinear") else int(TensorProto.FLOAT)
        results = tuple(result if named else 0 for named in written)
        call = Call(operator, {**read_attributes(operator, ()), **attributes}, tuple(inputs), dtypes, results)
        ours = [x for x, named in zip(fused.KERNELS[name](call), written, strict=True) if named]
        for mine, theirs in zip(ours, foreign.compute(call), strict=True):
            assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
            if mine.dtype == np.float32:
                np.testing.assert_allclose(mine, theirs, rtol=ROUNDING, atol=ROUNDING * float(np.abs(theirs).max()))
            else:
                np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("domain", "name"), [("", "Gemm"), ("com.microsoft", "FusedMatMul")])
@pytest.mark.parametrize("alpha", [2.0, math.inf, math.nan])
def test_the_factor_of_no_products_is_that_of_the_runtime(domain: str, name: str, alpha: float) -> None:
    node = helper.make_node(name, ["a", "b"], ["y"], domain=domain, alpha=alpha)
    inputs = [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape) for value, shape in (("a", [2, 0]), ("b", [0, 3]))]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
    feeds = {"a": np.zeros((2, 0), np.float32), "b": np.zeros((0, 3), np.float32)}
    (ours,), (theirs,) = Program(model).run(feeds, Mode.BITS).outputs, OnnxRuntimeSession(model.SerializeToString()).run(feeds)
    assert np.array_equal(ours, theirs, equal_nan=True)

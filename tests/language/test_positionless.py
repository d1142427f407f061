"""Where the bits of an element do not depend on its place: the table `POSITIONLESS`, and the
operators that rules move without asking.

Each operator computes the same numbers one by one, and then many together in other orders and
numbers, in ONNX Runtime and in the reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from eqsat.checker.judging.differences import unequal_bits
from eqsat.checker.kernels.call import Array
from eqsat.language.tensor_functions import is_positionless
from eqsat.language.values import DTYPES
from eqsat.runtime.session import OnnxRuntimeSession, ReferenceSession, Session
from eqsat.traits import POSITIONLESS

BINARY = "Add Div Equal Greater GreaterOrEqual Less LessOrEqual Mul PRelu Sub".split()
REQUIRED: dict[str, dict[str, Any]] = {"Cast": {"to": onnx.TensorProto.INT8}}  # attributes without which a node is illegal
FLOATS = ("float16", "bfloat16", "float", "double")
LENGTHS = (2, 3, 5, 8, 9, 16, 17, 33, 65, 1000, 40_000)
CASES = [(name, dtype) for name in POSITIONLESS for dtype in sorted(POSITIONLESS[name])]


def numbers(kind: np.dtype, generator: np.random.Generator) -> Array:
    wide = np.exp(generator.uniform(-20, 20, 100)) * generator.choice([-1, 1], 100)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-6, 6e-8, 3e-39, 6e4, -6e4, 1e30, 1e300]
    with np.errstate(all="ignore"):
        return np.concatenate([special, 3 * generator.standard_normal(100), wide]).astype(kind)


def session(engine: type[OnnxRuntimeSession] | type[ReferenceSession], name: str, dtype: int, inputs: int) -> Session | None:
    """The operator alone; None where the engine does not take it."""
    names = [f"x{place}" for place in range(inputs)]
    node = helper.make_node(name, names, ["y"], **REQUIRED.get(name, {}))
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(x, dtype, None) for x in names], [onnx.ValueInfoProto(name="y")])
    try:
        return engine(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10).SerializeToString())
    except Exception:
        return None


def run(computer: Session, *inputs: Array) -> Array:
    return np.asarray(computer.run({f"x{place}": np.asarray(array) for place, array in enumerate(inputs)})[0])


@pytest.mark.parametrize("engine", [OnnxRuntimeSession, ReferenceSession], ids=["onnxruntime", "reference"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_bits_do_not_depend_on_the_place(name: str, dtype: str, engine: type[OnnxRuntimeSession] | type[ReferenceSession]) -> None:
    code = DTYPES[dtype].code
    arity = 2 if name in BINARY else 1
    computer = session(engine, name, code, arity)
    if computer is None:
        return
    generator = np.random.default_rng(7)
    operands = [numbers(helper.tensor_dtype_to_np_dtype(code), generator) for _ in range(arity)]
    try:
        alone = np.concatenate([run(computer, *(x[place : place + 1] for x in operands)) for place in range(len(operands[0]))])
    except Exception:
        return  # it has no kernel of this type
    for length in LENGTHS:
        order = generator.integers(0, len(alone), length)
        together = run(computer, *(x[order] for x in operands))
        # A transposed array lies in memory by steps.
        stepped = run(computer, *(np.stack([x[order], x[order]]).T for x in operands))
        assert not unequal_bits(together, alone[order]).any(), length
        assert not unequal_bits(np.ascontiguousarray(stepped[:, 0]), alone[order]).any(), length


def test_what_is_measured_otherwise_is_not_in_the_table() -> None:
    assert not is_positionless("Tanh", DTYPES["double"])
    assert not is_positionless("Softplus", DTYPES["float"])
    assert is_positionless("Tanh", DTYPES["float"])
    assert not is_positionless("Sin", DTYPES["float"])


def test_integers_as_exponents_tell_nothing_of_their_base() -> None:
    """ONNX Runtime multiplies where one exponent of 3 stands for a row, and else computes a power."""
    assert not is_positionless("Pow", DTYPES["int64"])
    assert is_positionless("Mul", DTYPES["int64"])
    generator = np.random.default_rng(0)
    base, exponent = generator.standard_normal((64, 64), np.float32), np.full((64, 1), 3, np.int64)
    graph = helper.make_graph(
        [helper.make_node("Pow", ["x", "y"], ["z"])],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None), helper.make_tensor_value_info("y", onnx.TensorProto.INT64, None)],
        [onnx.ValueInfoProto(name="z")],
    )
    computer = OnnxRuntimeSession(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10).SerializeToString())
    one, each = (np.asarray(computer.run({"x": base, "y": powers})[0]) for powers in (exponent, np.repeat(exponent, 64, axis=1)))
    assert unequal_bits(one, each).any()
    assert is_positionless("Add", DTYPES["int8"]) and not is_positionless("ReduceSum", DTYPES["float"])
    assert onnx.defs.get_schema("Tanh") is not None and all(onnx.defs.has(name) for name in POSITIONLESS)

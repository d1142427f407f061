"""Families of operators: what the table says of them is so in ONNX Runtime and in the reference."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import defs, helper

from eqsat.checker.judging.differences import unequal_bits
from eqsat.checker.kernels.call import Array
from eqsat.families import FAMILIES, members
from eqsat.language.values import DTYPES
from eqsat.runtime.session import OnnxRuntimeSession, ReferenceSession, Session
from eqsat.traits import ELEMENTWISE, NEWEST

ENGINES: tuple[type[OnnxRuntimeSession] | type[ReferenceSession], ...] = (OnnxRuntimeSession, ReferenceSession)
TYPES = "float16 float double int8 int32 int64 uint8 uint64 bool".split()
STATED = {"Mod": {"fmod": 1}, "BitShift": {"direction": "LEFT"}}  # what these need to compute anything, or to take floats
DEFECTS = {(ReferenceSession, "Mean")}  # it does not broadcast
Compute = Callable[..., Array]


@functools.cache
def session(engine: type[OnnxRuntimeSession] | type[ReferenceSession], name: str, dtype: str, inputs: int) -> Session | None:
    """The operator alone; None where the engine does not take it."""
    code = DTYPES[dtype].code
    names = [f"x{place}" for place in range(inputs)]
    given = [helper.make_tensor_value_info(x, code, None) for x in names]
    node = helper.make_node(name, names, ["y"], **STATED.get(name, {}))
    if name in members("reduction"):
        node.input.append("axes")
        given.append(helper.make_tensor_value_info("axes", onnx.TensorProto.INT64, None))
    graph = helper.make_graph([node], "g", given, [onnx.ValueInfoProto(name="y")])
    schema = defs.get_schema(name, max_inclusive_version=NEWEST)
    try:
        # A kernel may lag behind the newest opset where only types were added.
        return engine(helper.make_model(graph, opset_imports=[helper.make_opsetid("", max(18, schema.since_version))], ir_version=10).SerializeToString())
    except Exception:
        return None


def computers(name: str, dtype: str, inputs: int) -> list[Compute]:
    """What computes an operator on so many tensors of a data type: engines that have a kernel of
    it.
    """
    found: list[Compute] = []
    for engine in ENGINES:
        if DTYPES[dtype].code not in admitted(defs.get_schema(name, max_inclusive_version=NEWEST)) or (engine, name) in DEFECTS:
            continue
        computer = session(engine, name, dtype, inputs)
        if computer is None:
            continue

        def compute(*arrays: Array, computer: Session = computer, **more: Array) -> Array:
            return np.asarray(computer.run({**{f"x{place}": np.asarray(array) for place, array in enumerate(arrays)}, **more})[0])

        try:
            axes = {"axes": np.array([0])} if name in members("reduction") else {}
            compute(*(np.ones(2, kind(dtype)) for _ in range(inputs)), **cast(Any, axes))
        except Exception:
            continue
        found.append(compute)
    return found


def kind(dtype: str) -> np.dtype[np.generic]:
    return helper.tensor_dtype_to_np_dtype(DTYPES[dtype].code)


def numbers(dtype: str, count: int, seed: int, special: bool = True) -> Array:
    """Small and large numbers; of floats also special ones."""
    generator = np.random.default_rng(seed)
    found = kind(dtype)
    if found == np.bool_:
        return generator.random(count) < 0.5
    if found.kind in "iu":
        low = 0 if found.kind == "u" else -7
        return generator.integers(low, 8, count).astype(found)
    plain = np.concatenate([generator.standard_normal(count - count // 3) * 3, generator.integers(-6, 7, count // 3) / 2])
    if special:
        plain[: 5 * (count // 16) : count // 16] = np.nan, np.inf, -np.inf, 0.0, -0.0
    return plain.astype(found)


def close(a: Array, b: Array) -> bool:
    """Whether two results are the same but for rounding."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    steps = 16 * float(np.finfo(a.dtype).eps)
    return bool(np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=steps, atol=steps, equal_nan=True))


def same(a: Array, b: Array) -> bool:
    """Whether two results are the same to the bits."""
    return a.shape == b.shape and a.dtype == b.dtype and not unequal_bits(a, b).any()


def is_unary(f: Compute, dtype: str) -> bool:
    x = numbers(dtype, 48, 1)
    alone = np.concatenate([f(x[place : place + 1]) for place in range(len(x))])
    return close(f(x), alone) and close(f(x.reshape(4, 3, 4).transpose(2, 0, 1)), alone.reshape(4, 3, 4).transpose(2, 0, 1))


def is_binary(f: Compute, dtype: str) -> bool:
    x, y = numbers(dtype, 16, 1), positive(numbers(dtype, 16, 2))
    alone = np.stack([np.concatenate([f(x[i : i + 1], y[j : j + 1]) for j in range(len(y))]) for i in range(len(x))])
    return close(f(x[:, None], y), alone) and close(f(x.reshape(4, 1, 4), y[:1]), alone[:, 0].reshape(4, 1, 4))


def positive(array: Array) -> Array:
    """Without what integers can not be divided by, or be raised to."""
    return np.where(array <= 0, 1, array).astype(array.dtype) if array.dtype.kind in "iu" else array


def is_comparison(f: Compute, dtype: str) -> bool:
    x, y = numbers(dtype, 48, 1, special=False), numbers(dtype, 48, 2, special=False)
    order = np.sign(x.astype(np.float64) - y.astype(np.float64))
    answers = [set(f(x, y)[order == sign].tolist()) for sign in (-1, 0, 1)]
    return f(x, y).dtype == np.bool_ and all(len(answer) <= 1 for answer in answers)


def is_variadic(f: Compute, dtype: str) -> bool:
    return is_binary(f, dtype) and all(len(computers(name, dtype, 3)) > 0 for name in members("variadic") if computers(name, dtype, 2))


def is_commutative(f: Compute, dtype: str) -> bool:
    # 0 is added, so that none is negative.
    x, y = (numbers(dtype, 64, seed) for seed in (1, 2))
    x, y = (array + kind(dtype).type(0) if array.dtype.kind == "f" else array for array in (x, y))
    return same(f(x, y), f(y, x)) and same(f(x[:8, None], y), f(y, x[:8, None]))


def is_associative(f: Compute, dtype: str) -> bool:
    x, y, z = (numbers(dtype, 64, seed, special=False) for seed in (1, 2, 3))
    return close(f(f(x, y), z), f(x, f(y, z)))


def is_idempotent(f: Compute, dtype: str) -> bool:
    x = numbers(dtype, 64, 1)
    return same(f(f(x)), f(x))


def is_involutive(f: Compute, dtype: str) -> bool:
    x = numbers(dtype, 64, 1)
    return same(f(f(x)), x)


def is_even(f: Compute, dtype: str) -> bool:
    x = numbers(dtype, 64, 1)
    return x.dtype.kind == "u" or same(f(-x), f(x))


def is_odd(f: Compute, dtype: str) -> bool:
    x = numbers(dtype, 64, 1)
    return x.dtype.kind == "u" or close(f(-x), -f(x))


def is_monotone(f: Compute, dtype: str) -> bool:
    x = np.sort(numbers(dtype, 64, 1, special=False))
    y = f(x).astype(np.float64)
    return bool(not np.isnan(y).any() and (y[1:] >= y[:-1] * (1 - np.sign(y[:-1]) * 1e-3) - 1e-6).all())


def keeps_zero(f: Compute, dtype: str) -> bool:
    return not f(np.zeros(5, kind(dtype))).any()


def is_reduction(f: Compute, dtype: str) -> bool:
    x = positive(np.abs(numbers(dtype, 12, 1, special=False).astype(np.float64)).astype(kind(dtype))).reshape(3, 4)
    y = f(x, axes=np.array([1]))
    return y.shape == (3, 1) and close(y, f(x[:, ::-1], axes=np.array([1]))) and close(y, f(x[:, [2, 0, 3, 1]], axes=np.array([-1])))


CHECKS: dict[str, tuple[Callable[[Compute, str], bool], int]] = {
    "unary": (is_unary, 1),
    "binary": (is_binary, 2),
    "comparison": (is_comparison, 2),
    "variadic": (is_variadic, 2),
    "commutative": (is_commutative, 2),
    "associative": (is_associative, 2),
    "idempotent": (is_idempotent, 1),
    "involutive": (is_involutive, 1),
    "even": (is_even, 1),
    "odd": (is_odd, 1),
    "monotone": (is_monotone, 1),
    "zero_preserving": (keeps_zero, 1),
    "reduction": (is_reduction, 1),
}
CASES = [(family.name, operator) for family in FAMILIES.values() for operator in family.members]


@pytest.mark.parametrize(("family", "operator"), CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_member_is_as_its_family(family: str, operator: str) -> None:
    assert family in CHECKS, f"CHECKS needs a function that tries the property of the family {family}"
    check, inputs = CHECKS[family]
    tried = 0
    for dtype in TYPES:
        for compute in computers(operator, dtype, inputs):
            tried += 1
            assert check(compute, dtype), dtype
    assert tried, "no engine computes it"


@pytest.mark.parametrize(
    ("family", "operator"),
    [
        ("unary", "CumSum"),
        ("commutative", "Sub"),
        ("commutative", "Pow"),
        ("associative", "Sub"),
        ("idempotent", "Neg"),
        ("involutive", "Reciprocal"),
        ("even", "Sin"),
        ("odd", "Elu"),
        ("monotone", "Gelu"),
        ("monotone", "Sqrt"),
        ("zero_preserving", "Exp"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_stranger_is_found_out(family: str, operator: str) -> None:
    check, inputs = CHECKS[family]
    found = computers(operator, "float", inputs) if operator != "CumSum" else [lambda x: np.cumsum(x, dtype=x.dtype)]
    assert found and not any(check(compute, "float") for compute in found)


def test_families_name_operators_each_once() -> None:
    for family in FAMILIES.values():
        assert len(set(family.members)) == len(family.members) and all(map(defs.has, family.members)), family.name
        assert list(family.members) == sorted(family.members), family.name
    assert members("comparison") < members("binary") and members("associative") < members("commutative")
    for name in ("idempotent", "involutive", "even", "odd", "monotone", "zero_preserving"):
        assert members(name) < members("unary"), name


def test_no_unary_operator_is_missing() -> None:
    """One input, one output, of the same sizes whatever they are: of those that the newest opset
    has, these are no unary ones.
    """
    strange = set("Bernoulli BitCast Cast Hardmax Identity LogSoftmax LpNormalization LRN MeanVarianceNormalization OptionalGetElement Softmax".split())
    strange |= {"DepthToSpace", "RandomNormalLike", "RandomUniformLike", "SpaceToDepth"}
    found: set[str] = set()
    for schema in defs.get_all_schemas():
        if schema.domain or schema.deprecated or len(schema.inputs) != 1 or len(schema.outputs) != 1:
            continue
        if schema.inputs[0].option != defs.OpSchema.FormalParameterOption.Single or not schema.inputs[0].type_str[:1].isupper():
            continue
        kinds = sorted(admitted(schema) & {DTYPES[name].code for name in TYPES})
        if not kinds:
            continue
        node = helper.make_node(schema.name, ["x"], ["y"], **cast(Any, {name: 1 for name, one in schema.attributes.items() if one.required}))
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", kinds[0], [2, 3, 5, 7])], [onnx.ValueInfoProto(name="y")])
        try:
            inferred = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST)]))
        except Exception:
            continue
        if [dim.dim_value for dim in inferred.graph.output[0].type.tensor_type.shape.dim] == [2, 3, 5, 7]:
            found.add(schema.name)
    assert found - strange <= members("unary"), found - strange - members("unary")
    assert members("unary") < ELEMENTWISE


def admitted(schema: defs.OpSchema) -> frozenset[int]:
    """The data types that an operator takes at its first input."""
    return frozenset(DTYPES[name].code for kind in schema.inputs[0].types if (name := kind.removeprefix("tensor(").removesuffix(")")) in DTYPES)

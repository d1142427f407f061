"""Random nodes for the checker's own kernels: elementwise operators and moves.

`ELEMENTS` has a function for each operator that draws its inputs and attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import numpy_helper

from eqsat.checker.kernels.call import Array

Random: TypeAlias = np.random.Generator
Drawn: TypeAlias = tuple[Sequence[Array | None], dict[str, Any]]


def sizes(random: Random, low: int = 1, high: int = 4) -> list[int]:
    return [int(random.integers(1, 5)) for _ in range(random.integers(low, high + 1))]


def floats(random: Random, shape: list[int] | tuple[int, ...], scale: float = 2) -> Array:
    return np.asarray(scale * random.standard_normal(shape), np.float32)


def positive(random: Random, shape: list[int] | tuple[int, ...]) -> Array:
    return np.asarray(np.abs(random.standard_normal(shape)) + 0.1, np.float32)


def whole(random: Random, shape: list[int] | tuple[int, ...], kind: Any = np.int64, low: int = -9, high: int = 10) -> Array:
    return np.asarray(random.integers(low, high, shape)).astype(kind)


def ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def pick(random: Random, *choices: Any) -> Any:
    return choices[random.integers(len(choices))]


def some(random: Random, **attributes: Any) -> dict[str, Any]:
    """Returns some of the attributes; the others stay at their defaults."""
    return {name: value for name, value in attributes.items() if random.random() < 0.7}


def broadcasting(random: Random) -> tuple[list[int], list[int]]:
    shape = sizes(random, 0)
    other = [1 if random.random() < 0.3 else size for size in shape][int(random.integers(len(shape) + 1)) :]
    return (shape, other) if random.random() < 0.5 else (other, shape)


# --- elementwise ---


def unary(make: Callable[[Random, list[int]], Array] = floats, **attributes: Callable[[Random], Any]) -> Callable[[Random], Drawn]:
    return lambda random: ([make(random, sizes(random, 0))], some(random, **{name: value(random) for name, value in attributes.items()}))


def binary(make: Callable[[Random, list[int]], Array] = floats) -> Callable[[Random], Drawn]:
    def draw(random: Random) -> Drawn:
        a, b = broadcasting(random)
        return [make(random, a), make(random, b)], {}

    return draw


def either(*makes: Callable[[Random], Drawn]) -> Callable[[Random], Drawn]:
    return lambda random: pick(random, *makes)(random)


def within(random: Random, shape: list[int]) -> Array:
    return np.clip(floats(random, shape), -0.99, 0.99).astype(np.float32)


def truths(random: Random, shape: list[int]) -> Array:
    return np.asarray(random.random(shape) < 0.5)


def integers(random: Random, shape: list[int]) -> Array:
    return whole(random, shape, np.int32)


def nonzero(random: Random, shape: list[int]) -> Array:
    x = whole(random, shape, np.int32)
    return np.where(x == 0, 3, x).astype(np.int32)


def quotients(random: Random) -> Drawn:
    a, b = broadcasting(random)
    return [integers(random, a), nonzero(random, b)], {}


def unsigned(random: Random, shape: list[int]) -> Array:
    return whole(random, shape, np.uint8, 0, 256)


def shifts(random: Random) -> Drawn:
    a, b = broadcasting(random)
    return [unsigned(random, a), whole(random, b, np.uint8, 0, 8)], {"direction": pick(random, "LEFT", "RIGHT")}


def modulo(random: Random) -> Drawn:
    a, b = broadcasting(random)
    if random.random() < 0.5:
        return [floats(random, a), floats(random, b)], {"fmod": 1}
    return [integers(random, a), nonzero(random, b)], some(random, fmod=1)


def power(random: Random) -> Drawn:
    a, b = broadcasting(random)
    kind = random.integers(4)
    if kind == 0:
        return [floats(random, a), whole(random, b, np.float32, -3, 4)], {}
    if kind == 1:
        return [positive(random, a), floats(random, b)], {}
    if kind == 2:
        return [floats(random, a), whole(random, b, np.int64, -3, 4)], {}
    return [whole(random, a, np.int32), whole(random, b, np.int32, 0, 5)], {}


def many(make: Callable[[Random, list[int]], Array]) -> Callable[[Random], Drawn]:
    def draw(random: Random) -> Drawn:
        a, b = broadcasting(random)
        return [make(random, shape) for shape in [a, b, a][: random.integers(1, 4)]], {}

    return draw


def clip(random: Random) -> Drawn:
    make = pick(random, floats, integers)
    low, high = (None if random.random() < 0.3 else make(random, []) for _ in range(2))
    return [make(random, sizes(random, 0)), low, high], {}


def where(random: Random) -> Drawn:
    a, b = broadcasting(random)
    make = pick(random, floats, integers)
    return [truths(random, b), make(random, a), make(random, b)], {}


def slope(random: Random) -> Drawn:
    shape = sizes(random)
    return [floats(random, shape), floats(random, shape[int(random.integers(len(shape))) :])], {}


def infinite(random: Random) -> Drawn:
    x = floats(random, sizes(random, 0))
    x = np.where(random.random(x.shape) < 0.5, np.array(pick(random, np.inf, -np.inf, np.nan), np.float32), x)
    return [x], some(random, detect_positive=int(random.integers(2)), detect_negative=int(random.integers(2)))


def number(low: float, high: float) -> Callable[[Random], float]:
    return lambda random: float(np.float32(random.uniform(low, high)))


# --- moves ---


def reshape(random: Random) -> Drawn:
    shape = sizes(random)
    order = list(random.permutation(shape))
    if random.random() < 0.5:
        order[random.integers(len(order))] = -1
    elif order[0] == shape[0]:
        order[0] = 0
    return [floats(random, shape), ints(*order)], {}


def squeeze(random: Random) -> Drawn:
    shape = [1, *sizes(random), 1]
    axes = pick(random, ints(0), ints(-1), ints(0, len(shape) - 1), None)
    return [floats(random, shape), axes][: 1 if axes is None else 2], {}


def unsqueeze(random: Random) -> Drawn:
    shape = sizes(random, 0)
    rank = len(shape) + 2
    return [floats(random, shape), ints(*(int(axis) - pick(random, 0, rank) for axis in random.permutation(rank)[:2]))], {}


def transpose(random: Random) -> Drawn:
    shape = sizes(random)
    return [floats(random, shape)], some(random, perm=[int(axis) for axis in random.permutation(len(shape))])


def concat(random: Random) -> Drawn:
    shape = sizes(random)
    axis = int(random.integers(-len(shape), len(shape)))
    parts = []
    for _ in range(random.integers(1, 4)):
        part = list(shape)
        part[axis] = int(random.integers(0, 4))
        parts.append(floats(random, part))
    return parts, {"axis": axis}


def split(random: Random) -> Drawn:
    shape = sizes(random)
    axis = int(random.integers(-len(shape), len(shape)))
    if random.random() < 0.5:
        shape[axis] = 5
        return [floats(random, shape)], {"axis": axis, "num_outputs": pick(random, 2, 3)}
    parts = [int(random.integers(0, 4)) for _ in range(random.integers(1, 4))]
    shape[axis] = sum(parts)
    return [floats(random, shape), ints(*parts)], {"axis": axis}


def slicing(random: Random) -> Drawn:
    shape = sizes(random)
    axes = random.permutation(len(shape))[: random.integers(1, len(shape) + 1)]
    bound = lambda: pick(random, *range(-6, 7), 2**63 - 1, -(2**63))  # noqa: E731
    inputs: list[Array | None] = [floats(random, shape), ints(*(bound() for _ in axes)), ints(*(bound() for _ in axes))]
    inputs.append(ints(*(int(axis) - pick(random, 0, len(shape)) for axis in axes)))
    return [*inputs, ints(*(pick(random, 1, 1, 2, -1, -2) for _ in axes))], {}


def gather(random: Random) -> Drawn:
    shape = sizes(random)
    axis = int(random.integers(-len(shape), len(shape)))
    return [floats(random, shape), whole(random, sizes(random, 0, 2), np.int64, -shape[axis], shape[axis])], {"axis": axis}


def gather_elements(random: Random) -> Drawn:
    shape = sizes(random)
    axis = int(random.integers(-len(shape), len(shape)))
    index = [int(random.integers(1, size + 1)) for size in shape]
    index[axis] = int(random.integers(1, 6))
    return [floats(random, shape), whole(random, index, np.int64, -shape[axis], shape[axis])], {"axis": axis}


def expand(random: Random) -> Drawn:
    a, b = broadcasting(random)
    return [floats(random, a), ints(*b)], {}


def tile(random: Random) -> Drawn:
    shape = sizes(random)
    return [floats(random, shape), whole(random, [len(shape)], np.int64, 0, 4)], {}


def pad(random: Random) -> Drawn:
    shape = [int(random.integers(2, 6)) for _ in range(random.integers(1, 4))]
    mode = pick(random, "constant", "reflect", "edge", "wrap")
    axes = random.permutation(len(shape))[: random.integers(1, len(shape) + 1)]
    amounts = whole(random, [2 * len(axes)], np.int64, -1 if mode == "constant" else 0, 2)
    return [floats(random, shape), amounts, floats(random, []) if random.random() < 0.5 else None, ints(*axes)], {"mode": mode}


def shape_of(random: Random) -> Drawn:
    return [floats(random, sizes(random, 0))], some(random, start=int(random.integers(-5, 5)), end=int(random.integers(-5, 5)))


def filled(random: Random) -> Drawn:
    value = numpy_helper.from_array(pick(random, floats(random, [1]), whole(random, [1]), truths(random, [1])), "")
    return [ints(*sizes(random))], some(random, value=value)


def constant(random: Random) -> Drawn:
    tensor = numpy_helper.from_array(floats(random, sizes(random, 0)), "")
    return [], pick(random, {"value": tensor}, {"value_float": 1.5}, {"value_floats": [1.5, 2.0]}, {"value_int": 3}, {"value_ints": [3, 4]})


def triangle(random: Random) -> Drawn:
    shape = sizes(random, 2)
    return [floats(random, shape), np.array(random.integers(-3, 4), np.int64)][: random.integers(1, 3)], some(random, upper=int(random.integers(2)))


def depth_to_space(random: Random) -> Drawn:
    return [floats(random, [2, 8, 2, 3])], {"blocksize": 2, **some(random, mode=pick(random, "DCR", "CRD"))}


def one_hot(random: Random) -> Drawn:
    shape = sizes(random, 1, 3)
    inputs = [whole(random, shape, np.int64, -5, 5), np.array(4, np.int64), floats(random, [2])]
    return inputs, some(random, axis=int(random.integers(-len(shape) - 1, len(shape) + 1)))


ELEMENTS: dict[str, Callable[[Random], Drawn]] = {
    **dict.fromkeys(
        "Asinh Atan Cos Cosh Erf Exp HardSwish Mish Sigmoid Sin Sinh Softplus Softsign Tan Tanh Ceil Floor Round Reciprocal IsNaN Relu".split(), unary()
    ),
    **dict.fromkeys(["Acos", "Asin", "Atanh"], unary(within)),
    **dict.fromkeys(["Log", "Sqrt"], unary(positive)),
    "Acosh": unary(lambda random, shape: positive(random, shape) + np.float32(1)),
    **dict.fromkeys(["Abs", "Neg", "Sign"], either(unary(), unary(integers))),
    **dict.fromkeys(["Add", "Sub", "Mul", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"], either(binary(), binary(integers))),
    "Div": either(binary(), quotients),
    **dict.fromkeys(["And", "Or", "Xor"], binary(truths)),
    **dict.fromkeys(["BitwiseAnd", "BitwiseOr", "BitwiseXor"], binary(integers)),
    "BitShift": shifts,
    "BitwiseNot": unary(integers),
    "Not": unary(truths),
    "Celu": unary(alpha=number(0.5, 2)),
    "Clip": clip,
    "Elu": unary(alpha=number(0.5, 2)),
    "Gelu": unary(approximate=lambda random: pick(random, "none", "tanh")),
    "HardSigmoid": unary(alpha=number(0.1, 0.5), beta=number(0.1, 0.9)),
    "IsInf": infinite,
    "LeakyRelu": unary(alpha=number(-1, 1)),
    "Max": either(many(floats), many(integers)),
    "Min": either(many(floats), many(integers)),
    "Mean": many(floats),
    "Mod": modulo,
    "PRelu": slope,
    "Pow": power,
    "Selu": unary(alpha=number(1, 2), gamma=number(1, 2)),
    "Shrink": unary(bias=number(-1, 1), lambd=number(0, 2)),
    "Sum": many(floats),
    "Swish": unary(alpha=number(0.5, 2)),
    "ThresholdedRelu": unary(alpha=number(-1, 2)),
    "Where": where,
    "Concat": concat,
    "Constant": constant,
    "ConstantOfShape": filled,
    "DepthToSpace": depth_to_space,
    "Dropout": lambda random: ([floats(random, sizes(random))], {}),
    "Expand": expand,
    "Flatten": lambda random: (lambda shape: ([floats(random, shape)], some(random, axis=int(random.integers(-len(shape), len(shape) + 1)))))(sizes(random)),
    "Gather": gather,
    "GatherElements": gather_elements,
    "Identity": unary(),
    "OneHot": one_hot,
    "Pad": pad,
    "Reshape": reshape,
    "Shape": shape_of,
    "Size": unary(),
    "Slice": slicing,
    "SpaceToDepth": lambda random: ([floats(random, [2, 3, 4, 6])], {"blocksize": 2}),
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": triangle,
    "Unsqueeze": unsqueeze,
}

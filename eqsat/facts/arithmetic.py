"""Arithmetic on single elements of integer tensors, as the operators of ONNX define it.

An element is a known integer, a symbolic one, or unknown.
"""

from __future__ import annotations

from collections.abc import Callable

from onnx import TensorProto

from eqsat.facts.dims import Dim, add, bounds, equal, floordiv, maximum, minimum, mul, negate, nonnegative, sub, truncdiv
from eqsat.facts.fact import INTEGERS
from eqsat.families import members

BOOL = int(TensorProto.BOOL)
# A symbolic element keeps factors up to this. Such a product does not overflow at realistic sizes.
_SYMBOLIC = {int(TensorProto.INT32): 1 << 16, int(TensorProto.INT64): 1 << 31}


def wrap(dtype: int, value: Dim) -> Dim:
    """Return `value` wrapped to the data type `dtype`."""
    if not isinstance(value, int):
        return value if dtype in _SYMBOLIC and moderate(dtype, value) else None
    if dtype == BOOL:
        return int(value != 0)
    info = _limits(dtype)
    if info is None:
        return None
    low, bits = info
    return (value - low) % (1 << bits) + low


def moderate(dtype: int, value: Dim) -> bool:
    """Tell whether every factor in a symbolic element is small enough for realistic sizes."""
    if value is None or isinstance(value, int):
        return value is None or wrap(dtype, value) == value
    inner = (argument for monomial, _ in value for atom in monomial if not isinstance(atom, str) for argument in atom.arguments)
    return all(abs(factor) <= _SYMBOLIC[dtype] for _, factor in value) and all(moderate(dtype, argument) for argument in inner)


def _limits(dtype: int) -> tuple[int, int] | None:
    name = TensorProto.DataType.Name(dtype).upper()  # pyright: ignore[reportArgumentType]
    unsigned = name.startswith("UINT")
    if dtype not in INTEGERS or not name[3 + unsigned :].isdigit():
        return None
    bits = int(name[3 + unsigned :])
    return (0 if unsigned else -(1 << (bits - 1)), bits)


def cast(source: int, target: int, value: Dim) -> Dim:
    """Return an element of the integer type `source` cast to the type `target`."""
    if target == BOOL:
        return _not(_truth(equal(value, 0)))
    return wrap(target, value) if source in INTEGERS and target in INTEGERS else None


def _modulo(a: Dim, b: Dim) -> Dim:
    return None if not isinstance(b, int) or b == 0 else sub(a, mul(floordiv(a, b), b))


def _remainder(a: Dim, b: Dim) -> Dim:
    return sub(a, mul(truncdiv(a, b), b))


def _truth(value: bool | None) -> Dim:
    return None if value is None else int(value)


def _less(a: Dim, b: Dim) -> Dim:
    lower, upper = bounds(sub(a, b))
    return 1 if upper is not None and upper < 0 else 0 if lower is not None and lower >= 0 else None


def _not(a: Dim) -> Dim:
    return sub(1, a)


def _and(a: Dim, b: Dim) -> Dim:
    return 0 if a == 0 or b == 0 else 1 if a == 1 and b == 1 else None


def _absolute(a: Dim) -> Dim:
    return abs(a) if isinstance(a, int) else a if nonnegative(a) else None


def _sign(a: Dim) -> Dim:
    less = _less(a, 0)
    return -1 if less == 1 else 0 if a == 0 else 1 if _less(0, a) == 1 else None


def _equal(a: Dim, b: Dim) -> Dim:
    return _truth(equal(a, b))


def _or(a: Dim, b: Dim) -> Dim:
    return _not(_and(_not(a), _not(b)))


def _where(chosen: Dim, a: Dim, b: Dim) -> Dim:
    return (a if chosen else b) if isinstance(chosen, int) else a if a == b else None


ElementFunction = Callable[[tuple[Dim, ...]], Dim]


def _one(function: Callable[[Dim], Dim]) -> ElementFunction:
    return lambda operands: function(operands[0]) if len(operands) == 1 else None


def _two(function: Callable[[Dim, Dim], Dim]) -> ElementFunction:
    return lambda operands: function(operands[0], operands[1]) if len(operands) == 2 else None


def _two_reversed(function: Callable[[Dim, Dim], Dim]) -> ElementFunction:
    return lambda operands: function(operands[1], operands[0]) if len(operands) == 2 else None


# Functions from the operands' elements to the result's element, before it wraps.
ELEMENT_FUNCTIONS: dict[str, ElementFunction] = {
    "Abs": _one(_absolute),
    "Add": _two(add),
    "And": _two(_and),
    "Div": _two(truncdiv),
    "Equal": _two(_equal),
    "Greater": _two_reversed(_less),
    "GreaterOrEqual": _two(lambda a, b: _not(_less(a, b))),
    "Less": _two(_less),
    "LessOrEqual": _two_reversed(lambda a, b: _not(_less(a, b))),
    "Max": lambda operands: maximum(*operands),
    "Min": lambda operands: minimum(*operands),
    "Mod": _two(_modulo),
    "Mul": _two(mul),
    "Neg": _one(negate),
    "Not": _one(_not),
    "Or": _two(_or),
    "Sign": _one(_sign),
    "Sub": _two(sub),
    "Where": lambda operands: _where(*operands) if len(operands) == 3 else None,
    "Xor": _two(lambda a, b: _not(_equal(a, b))),
}
C_REMAINDER = _two(_remainder)  # Mod with fmod: the result has the dividend's sign
TRUTHS = members("comparison") | {"And", "Not", "Or", "Xor"}

"""The values of the rule language's expressions, known or unknown, with their arithmetic and
comparison.

None stands for a value that exists but is unknown. Comparisons answer in three values: true, false
or unknown. A known result holds for all named sizes, each an integer >= 0. An operation without a
value at some of them (a division by a size that may be 0) raises `NoValue`, and nothing else is
ever raised.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeGuard

import numpy as np
from onnx import TensorProto

from eqsat.facts import dims
from eqsat.facts.dims import INT64_MAX, INT64_MIN, Dim, Known, Poly
from eqsat.facts.fact import Fact, dtype_name
from eqsat.frozen import frozen
from eqsat.language.sorts import Sort

LIST_LIMIT = 4096  # items of a list, nested lists included
_NESTING_LIMIT = 16  # of nested lists
_POLY_EFFORT = 20  # least number of steps that an operation on a symbolic size costs


class NoValue(ValueError):
    """An operation has no value for its operands, or for some of the sizes in them. The text says
    why.
    """


@frozen
class DType:
    """A data type: `code` is an onnx.TensorProto.DataType."""

    code: int

    def __str__(self) -> str:
        return dtype_name(self.code)


@frozen
class Tensor:
    """A tensor as described by its fact."""

    fact: Fact


Value: TypeAlias = bool | int | Poly | float | str | DType | Tensor | tuple["Value | None", ...]
List: TypeAlias = tuple[Value | None, ...]
Number: TypeAlias = int | Poly | float

DTYPES = {dtype_name(code): DType(code) for code in TensorProto.DataType.values() if code != TensorProto.UNDEFINED}


def is_list(value: Value | None) -> TypeGuard[List]:
    """Whether a value is a list. A symbolic size is a tuple too, but no list."""
    return type(value) is tuple


def is_integer(value: Value | None) -> TypeGuard[Known]:
    """Whether a value is an integer, known or symbolic, and no condition."""
    return type(value) is int or type(value) is Poly


def are_integers(values: List) -> TypeGuard[tuple[int, ...]]:
    """Whether all items of a list are known integers."""
    return _INTEGER.issuperset(map(type, values))


_INTEGER = frozenset({int})


def is_number(value: Value | None) -> TypeGuard[Number]:
    """Whether a value is an integer or a float."""
    return isinstance(value, float) or is_integer(value)


def sort_of(value: Value) -> Sort:
    """The sort of a value. A list of tensors and an empty list are both written `Sort.LIST`."""
    return _SORTS.get(type(value)) or (Sort.FLOAT if isinstance(value, float) else Sort.LIST)


_SORTS: dict[type[Value], Sort] = {
    bool: Sort.BOOLEAN,
    int: Sort.INTEGER,
    Poly: Sort.INTEGER,
    float: Sort.FLOAT,
    str: Sort.STRING,
    DType: Sort.DTYPE,
    Tensor: Sort.TENSOR,
    tuple: Sort.LIST,
}


def article(sort: Sort) -> str:
    """The word for a sort with its article: "an integer"."""
    return f"an {sort}" if sort in (Sort.INTEGER, Sort.ATTRIBUTES) else f"a {sort}"


def described(value: Value | None) -> str:
    """A value described in words."""
    return "an unknown value" if value is None else article(sort_of(value))


# --- the work that a value costs ---


def leaves(value: Value | None, nesting: int = 0) -> int:
    """The number of items in a list, nested lists included; 1 for any other value. Raises `NoValue`
    beyond the limits.
    """
    if not is_list(value):
        return 1
    if nesting == _NESTING_LIMIT:
        raise NoValue(f"lists nest deeper than {_NESTING_LIMIT}")
    total = len(value)
    for item in value if tuple in map(type, value) else ():
        if type(item) is tuple and total <= LIST_LIMIT:
            total += leaves(item, nesting + 1)
    if total > LIST_LIMIT:
        raise NoValue(f"a list has more than {LIST_LIMIT} items")
    return total


def effort(values: Iterable[Value | None]) -> int:
    """The steps of an operation that looks at each item once; a bound on its time, up to a constant
    factor.
    """
    steps = 0
    for value in values:
        steps += _effort(value) if isinstance(value, tuple) else 1
    return steps


def _effort(value: List | Poly) -> int:
    if isinstance(value, Poly):
        return _POLY_EFFORT + len(value)
    total = leaves(value)
    for item in value:
        if isinstance(item, tuple):
            total += _effort(item)
    return total


# --- truth ---


def negation(value: bool | None) -> bool | None:
    """`not`; the negation of unknown is unknown."""
    return None if value is None else not value


def every(values: Iterable[bool | None]) -> bool | None:
    """Whether all hold: False if one does not, else unknown if one is unknown."""
    found: bool | None = True
    for value in values:
        if value is False:
            return False
        found = found if value else None
    return found


def some(values: Iterable[bool | None]) -> bool | None:
    """Whether one holds: True if one does, else unknown if one is unknown."""
    return negation(every(map(negation, values)))


def condition(value: Value | None) -> bool | None:
    """The value itself, if it is a condition or unknown; otherwise raises `NoValue`."""
    if value is None or isinstance(value, bool):
        return value
    raise NoValue(f"{described(value)} is no condition")


def concrete(value: Known, what: str) -> int:
    """The integer itself; raises `NoValue` for a symbolic size."""
    if isinstance(value, int):
        return value
    raise NoValue(f"{what} is {dims.render(value)}, which is no number")


# --- comparison ---


def equal(a: Value | None, b: Value | None) -> bool | None:
    """Whether two values are equal: numbers by value, lists item by item. Raises `NoValue` for
    sorts that do not compare.
    """
    if a is None or b is None:
        return None
    if type(a) is int and type(b) is int:
        return a == b
    if is_number(a) and is_number(b):
        if is_integer(a) and is_integer(b):
            return dims.equal(a, b)
        return None if isinstance(a, Poly) or isinstance(b, Poly) else a == b
    if is_list(a) and is_list(b):
        if len(a) != len(b):
            return False
        return a == b if are_integers(a) and are_integers(b) else every(equal(x, y) for x, y in zip(a, b, strict=True))
    if sort_of(a) is not sort_of(b) or isinstance(a, Tensor):
        raise NoValue(f"{described(a)} and {described(b)} can not be compared")
    return a == b


def at_most(a: Known, b: Known) -> bool | None:
    """Whether `a <= b`."""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    lower, upper = dims.bounds(dims.sub(b, a))
    return True if lower is not None and lower >= 0 else False if upper is not None and upper < 0 else None


# Those of known integers, which most are.
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# By symbol, the comparison of symbolic integers, and that of floats as in IEEE 754, where NaN has no
# order.
_ORDERS: dict[str, tuple[Callable[[Known, Known], bool | None], Callable[[float, float], bool]]] = {
    "<": (lambda a, b: negation(at_most(b, a)), operator.lt),
    "<=": (at_most, operator.le),
    ">": (lambda a, b: negation(at_most(a, b)), operator.gt),
    ">=": (lambda a, b: at_most(b, a), operator.ge),
}


def ordered(symbol: str, a: Value | None, b: Value | None) -> bool | None:
    """One of `< <= > >=`, for numbers."""
    if a is None or b is None:
        return None
    if not is_number(a) or not is_number(b):
        raise NoValue(f"{described(a)} and {described(b)} are in no order")
    integers, floats = _ORDERS[symbol]
    if is_integer(a) and is_integer(b):
        return integers(a, b)
    return None if isinstance(a, Poly) or isinstance(b, Poly) else floats(a, b)


def contains(items: Value | None, item: Value | None) -> bool | None:
    """Whether a list contains an item."""
    if items is None:
        return None
    if not is_list(items):
        raise NoValue(f"{described(items)} has no items")
    return some(equal(other, item) for other in items)


def compare(symbol: str, a: Value | None, b: Value | None) -> bool | None:
    """One of `== != < <= > >= in` and `not in`."""
    if type(a) is int and type(b) is int and symbol in _COMPARISONS:
        return _COMPARISONS[symbol](a, b)
    if symbol in ("==", "!="):
        return equal(a, b) if symbol == "==" else negation(equal(a, b))
    if symbol in ("in", "not in"):
        return contains(b, a) if symbol == "in" else negation(contains(b, a))
    return ordered(symbol, a, b)


def common(a: Value | None, b: Value | None) -> Value | None:
    """A value that is one of two, as far as it is known: None where the two differ. Lists of equal
    length are merged item by item.
    """
    if is_list(a) and is_list(b) and len(a) == len(b):
        return tuple(map(common, a, b))
    if type(a) is not type(b) or (isinstance(a, float) and isinstance(b, float) and a.hex() != b.hex()):
        return None
    return a if isinstance(a, float) or a == b else None


# --- arithmetic ---


def _nonzero(divisor: Dim) -> Dim:
    if dims.equal(divisor, 0) is not False:
        raise NoValue("division by 0" if divisor == 0 else f"the divisor {dims.render(divisor)} may be 0")
    return divisor


def _floor_divide(a: Dim, b: Dim) -> Dim:
    return dims.floordiv(a, _nonzero(b))


def _modulo(a: Dim, b: Dim) -> Dim:
    divisor = _nonzero(b)
    return a % divisor if isinstance(a, int) and isinstance(divisor, int) else dims.sub(a, dims.mul(dims.floordiv(a, divisor), divisor))


def _divide(a: Dim, b: Dim) -> float | None:
    divisor = _nonzero(b)
    return a / divisor if isinstance(a, int) and isinstance(divisor, int) else None


def _power(a: Dim, b: Dim) -> Dim:
    if not dims.nonnegative(b):
        raise NoValue(f"an integer to the power {dims.render(b)}, which may be below 0; a float has such powers")
    if isinstance(a, int) and isinstance(b, int) and abs(a) <= 1:
        return a**b
    if not isinstance(b, int) or b >= 64:  # any other base leaves int64
        return None
    return functools.reduce(dims.mul, [a] * b, 1)


_INTEGERS: dict[str, Callable[[Dim, Dim], Dim | float]] = {
    "+": dims.add,
    "-": dims.sub,
    "*": dims.mul,
    "/": _divide,
    "//": _floor_divide,
    "%": _modulo,
    "**": _power,
}
# The same for two known integers, which most are.
_QUOTIENTS: dict[str, Callable[[int, int], int]] = {"//": lambda a, b: a // b, "%": operator.mod}
_QUICK: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul, **_QUOTIENTS}
_FLOATS: dict[str, Callable[[np.float64, np.float64], np.float64]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.remainder,
    "**": np.power,
}


def arithmetic(symbol: str, a: Value | None, b: Value | None) -> Value | None:
    """One of `+ - * / // % **`. Integers beyond int64 are unknown; floats have double precision;
    lists can be added.
    """
    if type(a) is int and type(b) is int and symbol in _QUICK and (b or symbol not in _QUOTIENTS):
        return dims.whole(_QUICK[symbol](a, b))
    if symbol == "+" and (is_list(a) or is_list(b)):
        if (a is not None and not is_list(a)) or (b is not None and not is_list(b)):
            raise NoValue(f"{described(a)} and {described(b)} can not be added")
        return None if a is None or b is None else a + b
    if (a is not None and not is_number(a)) or (b is not None and not is_number(b)):
        raise NoValue(f"`{symbol}` is not for {described(a)} and {described(b)}")
    if isinstance(a, float) or isinstance(b, float):
        return floating(_FLOATS[symbol], a, b)
    return _INTEGERS[symbol](a, b)


def negative(a: Value | None) -> Value | None:
    """`-a`."""
    if a is None:
        return None
    if isinstance(a, float):
        return -a
    if not is_integer(a):
        raise NoValue(f"`-` is not for {described(a)}")
    return dims.negate(a)


def floating(function: Callable[..., np.float64], *operands: Number | None) -> float | None:
    """A function of floats as in IEEE: an overflow is infinite, an undefined result is NaN. The
    result is unknown if an operand is.
    """
    numbers: list[np.float64] = []
    for operand in operands:
        if operand is None or isinstance(operand, Poly):
            return None
        numbers.append(np.float64(operand))
    with np.errstate(all="ignore"):
        return float(function(*numbers))


def to_integer(value: float) -> int | None:
    """A float without a fraction as an integer; unknown if it is beyond int64 or no number."""
    return int(value) if INT64_MIN <= value <= INT64_MAX else None

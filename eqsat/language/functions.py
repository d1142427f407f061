"""The functions of the rule language: a table from each name to its parameters, its result, its
description and its implementation.

A function takes values and returns a value, None if it is unknown, or raises `NoValue`. A known
result holds for all named sizes, and a result is returned only if it exists at all of them. Three
functions, `known`, `constant` and `regroup`, depend on how much is known; a rule must be true
whatever they answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from eqsat.facts import dims
from eqsat.facts.dims import Dim, Poly
from eqsat.frozen import frozen
from eqsat.language import einsum_letters, lists, sizes
from eqsat.language import tensor_functions as tensors
from eqsat.language.sorts import Sort
from eqsat.language.values import NoValue, Number, Value, article, described, effort, floating, is_integer, is_list, leaves, sort_of, to_integer

BOOLEAN, DTYPE, FLOAT, INTEGER, LIST, TENSOR, TEXT = Sort.BOOLEAN, Sort.DTYPE, Sort.FLOAT, Sort.INTEGER, Sort.LIST, Sort.TENSOR, Sort.STRING


@frozen
class Function:
    """A function of the language.

    `parameters` are sorts, and None is any sort. An integer may stand for a float, and a list of
    tensors for a list. The last `optional` parameters may be left out. The last parameter of a
    `variadic` function may be given more than once. A `partial` function has no value for some
    arguments of its sorts, and so none for an unknown argument. Any other function gives an unknown
    value for an unknown argument, unless it takes unknown arguments itself.
    """

    name: str
    parameters: tuple[Sort | None, ...]
    result: Sort | None
    documentation: str
    implementation: Callable[..., Value | None]
    optional: int = 0
    variadic: bool = False
    partial: bool = False
    takes_unknown: bool = False
    degree: int = 1  # the work grows with the number of items to this power

    def work(self, arguments: tuple[Value | None, ...]) -> int:
        """The number of steps that a call costs."""
        steps = effort(arguments)
        return steps if self.degree == 1 else steps * sum(map(leaves, arguments)) ** (self.degree - 1)

    def apply(self, arguments: tuple[Value | None, ...]) -> Value | None:
        """The value for `arguments`, whose number must fit; raises `NoValue` if there is none."""
        sorts = self.parameters
        if len(arguments) > len(sorts):
            sorts += sorts[-1:] * (len(arguments) - len(sorts))
        for value, wanted in zip(arguments, sorts, strict=False):
            if value is not None and wanted is not None and not _fits(value, wanted):
                raise NoValue(f"{self.name} takes {article(wanted)}, not {described(value)}")
        if None in arguments and not self.takes_unknown:
            if self.partial:
                raise NoValue(f"an argument of {self.name} is not known")
            return None
        return self.implementation(*arguments)


def _fits(value: Value, wanted: Sort) -> bool:
    return sort_of(value) is wanted or (wanted is FLOAT and is_integer(value))


# --- numbers ---


def _rounded(function: Callable[[np.float64], np.float64], x: Number) -> Dim:
    if not isinstance(x, float):
        return x
    result = floating(function, x)
    return None if result is None else to_integer(result)


def _absolute(x: Number) -> Value | None:
    return dims.maximum(x, dims.negate(x)) if isinstance(x, Poly) else dims.whole(abs(x)) if isinstance(x, int) else abs(x)


def _given(value: Value | None) -> bool:
    return True  # for a name without a value, `expressions` answers False itself


def _known(value: Value | None) -> bool:
    return value is not None and not (is_list(value) and not all(map(_known, value)))


_TABLE = (
    # of tensors
    Function("dim", (TENSOR, INTEGER), INTEGER, "the size of an axis; a negative axis counts from the end", tensors.dim, partial=True),
    Function("rank", (TENSOR,), INTEGER, "the number of axes", tensors.rank),
    Function("shape", (TENSOR,), LIST, "the sizes of all axes", tensors.shape),
    Function("dtype", (TENSOR,), DTYPE, "the data type", tensors.dtype),
    Function("elements", (TENSOR,), INTEGER, "the number of elements", tensors.elements),
    Function("constant", (TENSOR,), BOOLEAN, "whether the tensor is known to be constant; false if that is unknown", tensors.constant),
    Function("uniform", (TENSOR,), None, "the value that all elements equal; unknown if they differ or there are none", tensors.uniform),
    Function("values", (TENSOR,), LIST, "the elements of a small tensor, in row-major order", tensors.values),
    Function("halves_equal", (TENSOR,), BOOLEAN, "whether the halves of the last axis are known to be equal; false if that is unknown", tensors.halves_equal),
    Function(
        "pairs_equal",
        (TENSOR,),
        BOOLEAN,
        "whether each element at an even place of the last axis is known to equal the next one; false if that is unknown",
        tensors.pairs_equal,
    ),
    Function("low", (TENSOR,), None, "a number that no element is below in real arithmetic; NaN is not counted", tensors.low),
    Function("high", (TENSOR,), None, "a number that no element is above in real arithmetic; NaN is not counted", tensors.high),
    Function("rounded_low", (TENSOR,), None, "as `low`, of the elements that runtimes compute, with their rounding", tensors.rounded_low),
    Function("rounded_high", (TENSOR,), None, "as `high`, of the elements that runtimes compute, with their rounding", tensors.rounded_high),
    Function("numbers", (TENSOR,), BOOLEAN, "whether it is known that no element is NaN; false if that is unknown", tensors.numbers),
    # of data types
    Function("floating", (DTYPE,), BOOLEAN, "whether the data type is floating-point", tensors.is_floating),
    Function("integral", (DTYPE,), BOOLEAN, "whether the data type is an integer type; bool is not", tensors.is_integral),
    Function("signed", (DTYPE,), BOOLEAN, "whether the data type has negative numbers", tensors.is_signed),
    Function("bits", (DTYPE,), INTEGER, "the bits that an element takes", tensors.bits, partial=True),
    Function("lowest", (DTYPE,), None, "the least finite number of the data type", tensors.lowest, partial=True),
    Function("highest", (DTYPE,), None, "the greatest finite number of the data type", tensors.highest, partial=True),
    Function("lossless", (DTYPE, DTYPE), BOOLEAN, "whether a Cast from the first data type to the second keeps every value", tensors.lossless),
    Function(
        "positionless",
        (TEXT, DTYPE),
        BOOLEAN,
        "whether, for this operator and data type, the bits of a result element depend on its operands alone, not on its position",
        tensors.is_positionless,
    ),
    # of numbers
    Function("abs", (FLOAT,), None, "the absolute value", _absolute),
    Function("sqrt", (FLOAT,), FLOAT, "the square root", functools.partial(floating, np.sqrt)),
    Function("exp", (FLOAT,), FLOAT, "e to this power", functools.partial(floating, np.exp)),
    Function("log", (FLOAT,), FLOAT, "the natural logarithm", functools.partial(floating, np.log)),
    Function("floor", (FLOAT,), INTEGER, "the number, rounded down", functools.partial(_rounded, np.floor)),
    Function("ceil", (FLOAT,), INTEGER, "the number, rounded up", functools.partial(_rounded, np.ceil)),
    Function("round", (FLOAT,), INTEGER, "the nearest integer; halves round to the even one", functools.partial(_rounded, np.rint)),
    Function("float", (FLOAT,), FLOAT, "the number as a float", functools.partial(floating, np.positive)),
    Function("min", (None,), None, "the least of several numbers, or of a list", functools.partial(lists.extreme, "min"), variadic=True, takes_unknown=True),
    Function("max", (None,), None, "the greatest of several numbers, or of a list", functools.partial(lists.extreme, "max"), variadic=True, takes_unknown=True),
    # of lists
    Function("len", (None,), INTEGER, "the number of items, or of tensors", lists.length),
    Function("sum", (LIST,), None, "the sum of the items", lists.total),
    Function("prod", (LIST,), None, "the product of the items", lists.product),
    Function("sorted", (LIST,), LIST, "the numbers in ascending order", lists.in_order, partial=True),
    Function("reversed", (LIST,), LIST, "the items from last to first", lists.backwards),
    Function("unique", (LIST,), LIST, "the distinct items, in the order of their first occurrences", lists.unique, degree=2),
    Function("all", (LIST,), BOOLEAN, "whether all conditions hold", lists.all_hold),
    Function("any", (LIST,), BOOLEAN, "whether a condition holds", lists.one_holds),
    Function("index", (LIST, None), INTEGER, "the position of the first item that equals the value", lists.first_index, partial=True),
    Function("count", (LIST, None), INTEGER, "the number of items that equal the value", lists.count),
    Function(
        "range",
        (INTEGER, INTEGER, INTEGER),
        LIST,
        "as in Python: the integers from 0 to below the number, or from the first to below the second in steps of the third",
        lists.steps,
        optional=2,
        partial=True,
    ),
    Function("repeat", (None, INTEGER), LIST, "a list that holds the value this many times", lists.repeat),
    Function("ones", (None,), LIST, "a list of ones: this many, or one for each item of the list", functools.partial(lists.filled, 1)),
    Function("zeros", (None,), LIST, "a list of zeros: this many, or one for each item of the list", functools.partial(lists.filled, 0)),
    # of axes and sizes
    Function(
        "normalized", (None, INTEGER), None, "an axis, or a list of axes, of a tensor of this rank, as counts from the front", sizes.normalized, partial=True
    ),
    Function("is_permutation", (LIST, INTEGER), BOOLEAN, "whether the list holds each integer from 0 to below the number once", sizes.is_permutation),
    Function("inverse", (LIST,), LIST, "the permutation that undoes this one", sizes.inverse, partial=True, degree=2),
    Function(
        "moves_only_ones",
        (LIST, LIST),
        BOOLEAN,
        "whether a Transpose by the permutation moves only axes of size 1 of a tensor of these sizes",
        sizes.moves_only_ones,
        partial=True,
    ),
    Function(
        "bound",
        (INTEGER, INTEGER),
        INTEGER,
        "a start or end of a forward Slice of an axis of this size, counted from the front and clamped to the axis",
        sizes.bound,
    ),
    Function("broadcast", (LIST,), LIST, "the sizes to which tensors of these sizes broadcast together", sizes.broadcast, variadic=True, partial=True),
    Function("broadcasts_to", (LIST, LIST), BOOLEAN, "whether a tensor of the first sizes broadcasts to exactly the second", sizes.broadcasts_to),
    Function("same_without_ones", (LIST, LIST), BOOLEAN, "whether two lists of sizes are equal without their ones", sizes.same_without_ones),
    Function(
        "regroup",
        (LIST, LIST),
        LIST,
        "the groups of a Reshape from the first sizes to the second, as pairs [m, n]: m consecutive sizes have the same product as n "
        "consecutive sizes of the result. The grouping is the finest that is known; it may be finer if more sizes are known",
        sizes.regroup,
        partial=True,
        degree=2,
    ),
    # of equations
    Function(
        "letters",
        (TEXT, INTEGER, INTEGER),
        LIST,
        "the letters in the equation of an Einsum for the axes of the operand at this place, or of the result at -1, of this rank, as numbers; the axes "
        "of `...` have negative ones",
        einsum_letters.letters,
        partial=True,
    ),
    Function(
        "equation",
        (LIST, LIST),
        TEXT,
        "the equation of an Einsum whose operands have these lists of letters, and whose result has the last one",
        einsum_letters.equation,
        partial=True,
    ),
    # of anything
    Function("known", (None,), BOOLEAN, "whether a value is known; never unknown itself", _known, takes_unknown=True),
    Function("given", (None,), BOOLEAN, "whether an optional `x?` is present", _given, takes_unknown=True),
)
FUNCTIONS = {function.name: function for function in _TABLE}

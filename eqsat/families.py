"""Families of operators: sets of operators that share a property and are named after it.

Each family states a property of all its members, for every data type that they take and any
attributes. Tests check each statement against the kernels of ONNX Runtime and of the reference
(tests/language/test_families.py).
"""

from __future__ import annotations

from typing import Final

from eqsat.frozen import frozen


@frozen
class Family:
    """Operators that share a property. `about` completes the sentence "a member F ..."."""

    name: str
    members: tuple[str, ...]
    about: str


def _family(name: str, members: str, about: str) -> Family:
    return Family(name, tuple(members.split()), about)


_TABLE = (
    _family(
        "unary",
        """Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsInf IsNaN
        LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu""",
        "has one input, and computes each element of its result from the element at the same place",
    ),
    _family(
        "binary",
        """Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Or Pow Sub Xor""",
        "of two tensors computes each element of its result from the elements at the same place, once both are broadcast to common sizes",
    ),
    _family("comparison", "Equal Greater GreaterOrEqual Less LessOrEqual", "is binary and tells of two numbers how they compare, as bool"),
    _family("variadic", "Max Mean Min Sum", "is as binary, of any number of tensors"),
    _family(
        "commutative",
        "Add And BitwiseAnd BitwiseOr BitwiseXor Equal Max Mean Min Mul Or Sum Xor",
        "gives the same of two tensors in either order, to the bits; of 0 and -0, Max and Min give either",
    ),
    _family(
        "associative",
        "Add And BitwiseAnd BitwiseOr BitwiseXor Max Min Mul Or Xor",
        "has F(F(x, y), z) = F(x, F(y, z)) in real arithmetic, and to the bits for integers and bool",
    ),
    _family("idempotent", "Abs Ceil Floor Relu Round Sign", "is unary and has F(F(x)) = F(x) to the bits"),
    _family("involutive", "BitwiseNot Neg Not", "is unary and has F(F(x)) = x to the bits"),
    _family("even", "Abs Cos Cosh", "is unary and has F(-x) = F(x) to the bits, but for the least integer"),
    _family("odd", "Asin Asinh Atan Atanh Erf Neg Round Sign Sin Sinh Softsign Tan Tanh", "is unary and has F(-x) = -F(x) in real arithmetic"),
    _family(
        "monotone",
        "Atan Ceil Erf Exp Floor Relu Round Sigmoid Sign Sinh Softplus Tanh",
        "is unary, is a number wherever x is one, and has F(x) <= F(y) in real arithmetic where x <= y",
    ),
    _family(
        "zero_preserving",
        """Abs Asin Asinh Atan Atanh Ceil Celu Elu Erf Floor Gelu HardSwish LeakyRelu Mish Neg Relu Round Selu Sign Sin Sinh Softsign Sqrt
        Swish Tan Tanh""",
        "is unary and gives 0 for 0; Neg alone gives -0",
    ),
    _family(
        "reduction",
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare",
        "makes one element of those along its axes, in whose order its result does not depend in real arithmetic",
    ),
)  # fmt: skip
FAMILIES: Final = {family.name: family for family in _TABLE}


def members(*names: str) -> frozenset[str]:
    """Returns the operators that belong to every one of these families."""
    first, *others = names
    return frozenset(FAMILIES[first].members).intersection(*(FAMILIES[name].members for name in others))

"""Traits of the standard operators that schemas lack, as tables for their newest versions.

The tables list the integer inputs that are parameters, the attributes that name a data type, the
operators that commute, and those whose elements do not depend on their position. Rules write
parameters in place; reading lifts them from attributes.
"""

from __future__ import annotations

from typing import Final

from eqsat.families import members

# The newest opset that both onnx and ONNX Runtime know. Rules are written in it.
NEWEST: Final = 26

# By operator and input position, the rank of the integer tensor that ONNX passes there.
PARAMETERS: Final[dict[str, dict[int, int]]] = {
    "CenterCropPad": {1: 1},
    "Col2Im": {1: 1, 2: 1},
    "ConstantOfShape": {0: 1},
    "CumSum": {1: 0},
    "Expand": {1: 1},
    "MaxUnpool": {2: 1},
    "Pad": {1: 1, 3: 1},
    "Reshape": {1: 1},
    "Resize": {3: 1},
    "Slice": {1: 1, 2: 1, 3: 1, 4: 1},
    "Split": {1: 1},
    "Squeeze": {1: 1},
    "Tile": {1: 1},
    "TopK": {1: 1},
    "Trilu": {1: 0},
    "Unsqueeze": {1: 1},
    **{name: {1: 1} for name in members("reduction")},
}

# By operator and output, the input beside which ONNX Runtime computes only if the output has a name.
NAMED_BESIDE: Final[dict[str, dict[int, int]]] = {"Attention": {1: 4, 2: 5}}

# Attributes whose integers are data types.
DTYPE_ATTRIBUTES: Final = frozenset(
    {
        ("BitCast", "to"),
        ("BlackmanWindow", "output_datatype"),
        ("Cast", "to"),
        ("DequantizeLinear", "output_dtype"),
        ("EyeLike", "dtype"),
        ("HammingWindow", "output_datatype"),
        ("HannWindow", "output_datatype"),
        ("LayerNormalization", "stash_type"),
        ("MelWeightMatrix", "output_datatype"),
        ("QuantizeLinear", "output_dtype"),
        ("RMSNormalization", "stash_type"),
        ("SequenceEmpty", "dtype"),
    }
)

# Operators whose operand order changes no bit, by IEEE 754: the binary ones and the variadic ones.
COMMUTATIVE: Final = members("commutative") - members("variadic")
SYMMETRIC: Final = members("commutative", "variadic")

# By elementwise operator, the float types in which an element depends only on its operands, not on
# its position. ONNX Runtime computes the elements after the last full vector (of a tensor, a row
# or a thread's share) with other code, which may round differently. The table is measured on x86-64
# (tests/language/test_positionless.py); nothing is known of other operators. IEEE 754 defines the
# operators of `_STEPS`, or a few of its steps compute them. Pow is missing: its kernels have
# shortcuts for an exponent that is one number, such as -1, and shapes decide which exponents are
# one number.
_HALVES = frozenset({"bfloat16", "float16"})
_STEPS = """
    Abs Add Cast Ceil Div Equal Floor Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Mul Neg PRelu
    Reciprocal Relu Round Shrink Sign Softsign Sqrt Sub ThresholdedRelu
"""
POSITIONLESS: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(_STEPS.split(), _HALVES | {"float", "double"}),
    **dict.fromkeys("Acosh Asinh Atanh Cosh Erf Exp Gelu Sigmoid Sinh Swish Tan Tanh".split(), _HALVES | {"float"}),
    **dict.fromkeys("Acos Asin Atan Celu Cos Elu Log Mish Selu Sin Softplus".split(), _HALVES),
}
ELEMENTWISE: Final = members("unary") | members("binary") | members("variadic") | {"Cast", "PRelu"}

"""What schemas do not say of the standard operators, as tables, for their newest versions.

Which integer inputs are parameters (written in place by rules, lifted from attributes on reading), which attributes
name a data type, and which operators take their operands in either order.
"""

from __future__ import annotations

from typing import Final

NEWEST: Final = 26  # the newest opset that both onnx and ONNX Runtime know; rules are written in it

_REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare".split()

# By operator and place of the input, the rank of the integer tensor that ONNX passes there.
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
    **{name: {1: 1} for name in _REDUCTIONS},
}

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

# Operators of two operands, and of any number of them, whose order does not matter: by IEEE's rules not even to the bits.
COMMUTATIVE: Final = frozenset({"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Mul", "Or", "Xor"})
SYMMETRIC: Final = frozenset({"Max", "Mean", "Min", "Sum"})

# By operator of elements that rounds and is no correctly rounded one, the data types in which the bits of an element depend on its operands
# alone, not on where it stands: ONNX Runtime computes what is left behind its vectors, at the end of a tensor, of a row or of a thread's
# share, by other code, which may round otherwise. Measured on x86-64 (tests/test_positionless.py); what is not here is not known to be so.
_HALVES = frozenset({"bfloat16", "float16"})
POSITIONLESS: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("Elu", "Log", "Softplus"), _HALVES),
    **dict.fromkeys(("Erf", "Exp", "Gelu", "Sigmoid", "Tanh"), _HALVES | {"float"}),
}

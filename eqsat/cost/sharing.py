"""Sharing: which operators give their result in memory that one of their inputs has.

This is what ONNX Runtime 1.32 does on a CPU, measured operator by operator as the peak of its
memory. A result that leaves the graph always has memory of its own.
"""

from __future__ import annotations

from typing import Final

VIEWS: Final = frozenset("Flatten Identity Reshape Squeeze Unsqueeze".split())
"""Operators whose result is the memory of the first input, whoever else reads that."""

OVERWRITES: Final = frozenset(
    """Cast Celu Clip Elu HardSigmoid LeakyRelu LogSoftmax Relu ScatterElements Selu Shrink Sigmoid Softmax Softplus Softsign Tanh
    ThresholdedRelu Trilu""".split()
)
"""Operators that write the result over the first input, if it has the size and nobody else needs it."""

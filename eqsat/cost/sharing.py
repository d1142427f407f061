"""Sharing: which operators return their result in the memory of an input.

The tables hold what ONNX Runtime 1.32 does on a CPU, measured for each operator as its peak of
memory. A result that leaves the graph always has memory of its own.
"""

from __future__ import annotations

from typing import Final

VIEWS: Final = frozenset("Flatten Identity Reshape Squeeze Unsqueeze".split())
"""Operators whose result shares the memory of the first input, whatever else reads that input."""

OVERWRITES: Final = frozenset(
    """Cast Celu Clip Elu HardSigmoid LeakyRelu LogSoftmax Relu ScatterElements Selu Shrink Sigmoid Softmax Softplus Softsign Tanh
    ThresholdedRelu Trilu""".split()
)
"""Operators that overwrite the first input if its size fits and nothing else needs it."""

"""Fusions of a target: neighbors that its runtime runs as one kernel, and on which conditions.

Either two neighbors are fused, or an operator with the nodes around it that dequantize its inputs and
quantize its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import onnx

from eqsat.cost.shaped import PricedNode, Shaped
from eqsat.frozen import frozen

Condition = Callable[[PricedNode, Sequence[Shaped | None]], bool]
"""Takes the first node and the second's other inputs."""


def _constant(_first: PricedNode, others: Sequence[Shaped | None]) -> bool:
    return all(other is None or other.constant for other in others)


def _alike(first: PricedNode, _others: Sequence[Shaped | None]) -> bool:
    shapes = {None if tensor is None else tensor.shape for tensor in first.inputs}
    return len(shapes) == 1 and all(shape is not None and len(shape) == 3 for shape in shapes)


def _bias(first: PricedNode, others: Sequence[Shaped | None]) -> bool:
    result, factor = first.outputs[0], first.inputs[1]
    if result is None or factor is None or result.shape is None or factor.shape is None or len(factor.shape) != 2:
        return False
    rows = result.shape[:-1]
    width = result.shape[-1:]
    allowed = [width, (1, *width), (*rows, *width), (*rows, 1)] if len(rows) == 1 else [width]
    return all(other is not None and other.shape in allowed for other in others)


CONDITIONS: Final[Mapping[str, Condition]] = {"constant": _constant, "alike": _alike, "bias": _bias}
"""The conditions that a fusion may have, by their names in a target's file."""


@frozen
class Fusion:
    """Two neighbors that the runtime fuses into one kernel if the second is the first's only
    consumer and all conditions hold.
    """

    first: frozenset[str]
    second: frozenset[str]
    becomes: str
    conditions: tuple[str, ...] = ()

    def holds(self, first: PricedNode, others: Sequence[Shaped | None]) -> bool:
        """Tells whether the conditions hold. `others` are the second's inputs but the first's result."""
        return all(CONDITIONS[name](first, others) for name in self.conditions)


_BIAS = onnx.TensorProto.INT32


@frozen
class Quantized:
    """Operators that the runtime runs on quantized tensors: DequantizeLinear of every input, the
    operator, and QuantizeLinear of its result, which nothing else reads, are one kernel.
    """

    operators: frozenset[str]
    becomes: str
    dtypes: frozenset[int]  # of the first input, and of the result, which has the same
    weights: frozenset[int] = frozenset()  # of the second input; if there are none, that of the first
    floats: str = ""  # the kernel without QuantizeLinear; empty if the runtime has none

    def kernel(self, inputs: Sequence[int], result: int | None) -> str:
        """Returns the kernel for inputs and a result of these data types; empty if there is none.

        Without QuantizeLinear, the result is None.
        """
        first, *others = inputs
        weights, *rest = others or [first]
        allowed = self.weights or {first}
        fits = first in self.dtypes and weights in allowed and all(dtype == (_BIAS if self.weights else first) for dtype in rest)
        if not fits or result not in (first, None):
            return ""
        return self.floats if result is None else self.becomes

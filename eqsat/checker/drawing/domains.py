"""Domains: the elements that a tensor may hold, such as indices in range, nonzero divisors and
nonnegative variances.

The input is the nodes of an instance with the facts of their inputs. The output is a `Domain` for
each tensor whose elements reach an input at which other elements have no meaning, directly or
through operators that only move them. A domain excludes only elements for which ONNX leaves the
result open, so it hides no way for a rule to be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from eqsat.facts.fact import INTEGERS, Array, packed_bytes
from eqsat.facts.node import Node, from_front
from eqsat.frozen import frozen


@frozen
class Domain:
    """Elements from `low` to `high`, both included; None is no bound. `zero`: whether 0 is one of
    them.
    """

    low: float | None = None
    high: float | None = None
    zero: bool = True

    def holds(self, array: Array) -> bool:
        """Whether all elements are in the domain."""
        low = self.low is None or bool((array >= self.low).all())
        high = self.high is None or bool((array <= self.high).all())
        return low and high and (self.zero or bool((array != 0).all()))

    def meet(self, other: Domain) -> Domain:
        """The elements that are in both."""
        lows = [bound for bound in (self.low, other.low) if bound is not None]
        highs = [bound for bound in (self.high, other.high) if bound is not None]
        return Domain(max(lows, default=None), min(highs, default=None), self.zero and other.zero)


NONZERO: Final = Domain(zero=False)
NONNEGATIVE: Final = Domain(low=0)
POSITIVE: Final = Domain(low=0, zero=False)

# Operators that only move elements, with the inputs whose elements they move; None: all of them.
_MOVES: Final[Mapping[str, tuple[int, ...] | None]] = {
    **dict.fromkeys(("Concat", "Max", "Min"), None),
    **dict.fromkeys(("Compress", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape", "ReverseSequence"), (0,)),
    **dict.fromkeys(("Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "DepthToSpace", "SpaceToDepth", "Cast", "Clip"), (0,)),
    "Where": (1, 2),
}


def _index(position: int) -> Callable[[Node], dict[int, Domain]]:
    def domains(node: Node) -> dict[int, Domain]:
        shape = node.shape(0) or ()
        axis = from_front(node.integer("axis", 0), len(shape))
        size = shape[axis] if axis is not None else None
        return {position: Domain(-size, size - 1)} if isinstance(size, int) else {}

    return domains


def _places(node: Node) -> dict[int, Domain]:
    shape, indices = node.shape(0) or (), node.shape(1) or ()
    batch = node.integer("batch_dims", 0)
    depth = indices[-1] if indices and isinstance(indices[-1], int) else 0
    size = min((size for size in shape[batch : batch + depth] if isinstance(size, int)), default=1)
    return {1: Domain(-size, size - 1)}


def _divisor(node: Node) -> dict[int, Domain]:
    return {1: NONZERO} if node.dtype(1) in INTEGERS else {}


def _exponent(node: Node) -> dict[int, Domain]:
    return {1: Domain(0, 5)} if node.dtype(1) in INTEGERS and node.dtype(0) in INTEGERS else {}


def _shift(node: Node) -> dict[int, Domain]:
    fact = node.fact(1)
    if fact is None:
        return {}
    return {1: Domain(0, 8 * (packed_bytes(fact.dtype, 1) if fact.dtype in INTEGERS else 1) - 1)}


def _lengths(node: Node) -> dict[int, Domain]:
    shape, axis = node.shape(0) or (), node.integer("time_axis", 0)
    size = shape[axis] if -len(shape) <= axis < len(shape) else None
    return {1: Domain(1, size)} if isinstance(size, int) else {}


def _classes(node: Node) -> dict[int, Domain]:
    shape = node.shape(0) or ()
    return {1: Domain(0, shape[1] - 1)} if len(shape) > 1 and isinstance(shape[1], int) else {}


def _images(node: Node) -> dict[int, Domain]:
    x = node.shape(0) or ()
    return {2: Domain(0, x[0] - 1)} if x and isinstance(x[0], int) else {}


def _room(node: Node) -> dict[int, Domain]:
    x, updates = node.shape(0) or (), node.shape(1) or ()
    axis = from_front(node.integer("axis", -2), len(x))
    if axis is None or len(updates) != len(x):
        return {}
    size, taken = x[axis], updates[axis]
    if not isinstance(size, int) or not isinstance(taken, int):
        return {}
    return {2: Domain(0, size - 1 if node.text("mode", "linear") == "circular" else size - taken)}


def _transform(node: Node) -> dict[int, Domain]:
    """A length not much longer than the drawn signals, and an axis other than that of the complex
    parts.
    """
    return {1: Domain(1, 12), 2: Domain(-len(node.shape(0) or ()), -2)}


def _fixed(domains: Mapping[int, Domain]) -> Callable[[Node], Mapping[int, Domain]]:
    return lambda node: domains


_DOMAINS: Final[Mapping[str, Callable[[Node], Mapping[int, Domain]]]] = {
    **dict.fromkeys(("Gather", "GatherElements", "ScatterElements"), _index(1)),
    **dict.fromkeys(("GatherND", "ScatterND"), _places),
    **dict.fromkeys(("Div", "Mod"), _divisor),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _fixed({1: POSITIVE})),
    **dict.fromkeys(("QLinearConv", "QLinearMatMul"), _fixed({1: POSITIVE, 4: POSITIVE, 6: POSITIVE})),
    "BatchNormalization": _fixed({4: NONNEGATIVE}),
    "BitShift": _shift,
    "Dropout": _fixed({1: Domain(0, 0.5)}),
    "OneHot": _fixed({1: Domain(1, 5)}),
    "Pow": _exponent,
    "Resize": _fixed({1: Domain(-1, 2), 2: Domain(0.5, 3)}),
    "AffineGrid": _fixed({1: Domain(1, 3)}),
    "DFT": _transform,
    "MelWeightMatrix": _fixed({0: Domain(1, 5), 1: Domain(16, 32), 2: Domain(4000, 8000), 3: Domain(0, 100), 4: Domain(1000, 2000)}),
    "NonMaxSuppression": _fixed({2: Domain(0, 5), 3: Domain(0, 1)}),
    "RoiAlign": _images,
    "STFT": _fixed({1: Domain(1, 4), 3: Domain(1, 4)}),
    "TensorScatter": _room,
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _fixed({0: Domain(1, 12)})),
    "Range": _fixed({2: NONZERO}),
    "ReverseSequence": _lengths,
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), _classes),
}

_SIGNALS: Final[Mapping[str, tuple[int, ...]]] = {
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), (0,)),
    "AffineGrid": (1,),
    "DFT": (1, 2),
    "MelWeightMatrix": (0, 1, 2),
    "STFT": (1, 3),
}

# Inputs whose elements decide the shape of the result: they must be constants that inference can
# read.
DECISIVE: Final[Mapping[str, tuple[int, ...]]] = {"OneHot": (1,), "Range": (0, 1, 2), "Resize": (2,), "Dropout": (2,), **_SIGNALS}


def direct(node: Node) -> Mapping[int, Domain]:
    """The domains of a node's own inputs, by position."""
    function = _DOMAINS.get(node.operator.name)
    return {} if function is None else function(node)


def domains(nodes: Iterable[tuple[Node, tuple[str | None, ...], tuple[str, ...]]]) -> dict[str, Domain]:
    """The domains of all tensors of nodes in execution order, each with the names of its inputs and
    outputs.
    """
    found: dict[str, Domain] = {}

    def meet(name: str | None, domain: Domain) -> None:
        if name is not None:
            found[name] = found[name].meet(domain) if name in found else domain

    for node, inputs, outputs in reversed(list(nodes)):
        for position, domain in direct(node).items():
            meet(inputs[position] if position < len(inputs) else None, domain)
        passed = [found[name] for name in outputs if name in found]
        if passed and node.operator.name in _MOVES:
            positions = _MOVES[node.operator.name]
            for position in range(len(inputs)) if positions is None else positions:
                for domain in passed:
                    meet(inputs[position], domain)
    return found

"""The ranges of a node's results, from those of its inputs.

A fact stores a range only if it says more than the data type and the known elements do, and none
for a small constant, whose elements are known. So a graph without bounded values stores none. The
tables have a function for each operator with a range; other operators have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from onnx import AttributeProto, TensorProto

from eqsat.facts.dims import Dim, bounds
from eqsat.facts.element_ranges import ELEMENT_RANGES, is_finite, kernel_margin, mean, signs, truth, within
from eqsat.facts.fact import Fact, from_tensor
from eqsat.facts.intervals import BOOL, Ends, Range, apply, everything, finite_limits, hull, is_floating, limits, made, outward
from eqsat.facts.known_ranges import input_ranges, known_range, range_of
from eqsat.facts.node import Node
from eqsat.facts.product_ranges import conv, gemm, matmul
from eqsat.facts.quantized_ranges import dequantized, quantized

RangeFunction = Callable[[Node, tuple[Fact, ...]], Range | None]


def with_ranges(node: Node, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts of a node's results with their ranges."""
    name = node.operator.name
    facts = list(facts)
    if not facts or not facts[0].dtype:
        return facts
    if name in ELEMENT_RANGES:
        inputs = input_ranges(node)
        found = None if inputs is None else ELEMENT_RANGES[name](facts[0].dtype, inputs)
    elif name in RANGES:
        found = RANGES[name](node, tuple(facts))
    else:
        return facts
    rest = [found] * len(facts) if name == "Split" else [_index(fact, None) for fact in facts] if name == "TopK" else [None] * len(facts)
    return [_ranged(fact, one) for fact, one in zip(facts, [found, *rest[1:]], strict=True)]


def _ranged(fact: Fact, found: Range | None) -> Fact:
    silent = found is None or not fact.dtype or fact.ints is not None or fact.uniform is not None
    return fact if silent else fact._replace(range=found)


# --- operators that move elements ---


def _joined(*positions: int) -> RangeFunction:
    """Return the function of an operator that takes its elements from these inputs, or from all."""

    def function(node: Node, facts: tuple[Fact, ...]) -> Range | None:
        inputs = [range_of(node, position) for position in positions or range(len(node.inputs))]
        known = [one for one in inputs if one is not None]
        return hull(facts[0].dtype, known) if len(known) == len(inputs) else None

    return function


def _zero(dtype: int) -> Range:
    zero = 0.0 if is_floating(dtype) else 0
    return Range(zero, zero, zero, zero, False)


def _with_zero(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    x = range_of(node, 0)
    return None if x is None else hull(facts[0].dtype, [x, _zero(facts[0].dtype)])


def _chosen(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    condition = range_of(node, 0)
    if condition is not None and condition.low == condition.high:
        return _joined(1 if condition.low else 2)(node, facts)
    return _joined(1, 2)(node, facts)


def _padded(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    if node.text("mode", "constant") != "constant":
        return _joined(0)(node, facts)
    if "value" in node.attributes:
        return None
    return _with_zero(node, facts) if node.fact(2) is None else _joined(0, 2)(node, facts)


def _scattered(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    return _joined(0, 2)(node, facts) if node.text("reduction", "none") == "none" else None


def _resized(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    copies = node.text("mode", "nearest") == "nearest" and node.text("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize"
    return _joined(0)(node, facts) if copies else None


def _filled(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    value = node.attributes.get("value")
    if not isinstance(value, AttributeProto):
        return _zero(int(TensorProto.FLOAT)) if not node.attributes else None
    return known_range(from_tensor(value.t))


# --- operators that count ---


def _counted(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    return _index(facts[0], None)


def _index(fact: Fact, size: Dim) -> Range | None:
    """Return the range of indices of an axis of this size."""
    whole = limits(fact.dtype)
    most = bounds(size)[1]
    if whole is None or fact.dtype == BOOL:
        return None
    ends = 0, whole[1] if most is None or most < 1 else most - 1
    return made(fact.dtype, ends, ends, False)


def _place(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    shape = node.shape(0)
    axis = None if shape is None else node.axis(len(shape), 0)
    return _index(facts[0], None if shape is None or axis is None else shape[axis])


def _stepped(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    inputs = input_ranges(node)
    if inputs is None or is_floating(facts[0].dtype) or inputs[2].low <= 0:
        return None
    # A result without elements has any range.
    ends = inputs[0].low, max(inputs[0].low, inputs[1].high - 1)
    return made(facts[0].dtype, ends, ends, False)


# --- operators that combine several elements ---


def _is_filled(node: Node, spatial: bool = False) -> bool:
    """Tell whether a reduction is known to reduce at least one element to each result."""
    shape = node.shape(0)
    if shape is None:
        return False
    axes = tuple(range(2, len(shape))) if spatial else node.axes(len(shape), 1) if node.given("axes", 1) else None
    sizes = [shape[axis] for axis in axes] if axes else list(shape)
    return all((bounds(size)[0] or 0) > 0 for size in sizes)


def _extreme(high: bool, spatial: bool = False) -> RangeFunction:
    """Return the function of a greatest or a least element; of none, it is an infinity."""

    def function(node: Node, facts: tuple[Fact, ...]) -> Range | None:
        x = range_of(node, 0)
        whole = limits(facts[0].dtype)
        if x is None or whole is None:
            return None
        filled = _is_filled(node, spatial) and not (spatial and x.nan)
        low = x.low if filled or not high else whole[0], x.least if filled or not high else whole[0]
        most = x.high if filled or high else whole[1], x.most if filled or high else whole[1]
        return made(facts[0].dtype, (low[0], most[0]), (low[1], most[1]), x.nan)

    return function


def _pooled(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    x = range_of(node, 0)
    whole = limits(facts[0].dtype)
    if x is None or whole is None:
        return None
    # The runtime begins with the least number, which stays if a window has only NaN, or nothing:
    # a window beyond the end, or one whose gaps are where the tensor is.
    gaps = any(step != 1 for step in node.integers("dilations") or ())
    safe = not x.nan and not node.integer("ceil_mode", 0) and not gaps
    low, least = (x.low, x.least) if safe else (whole[0], whole[0])
    return made(facts[0].dtype, (low, x.high), (least, x.most), x.nan)


def _averaged(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    x = range_of(node, 0)
    if x is None or not is_floating(facts[0].dtype):
        return None
    found = mean(facts[0].dtype, [x])
    pads = node.operator.name == "AveragePool"
    return found if found is None or not pads else hull(facts[0].dtype, [found, _zero(facts[0].dtype)._replace(nan=True)])


def _summed(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    x = range_of(node, 0)
    return None if x is None or not is_floating(facts[0].dtype) else made(facts[0].dtype, signs(x.real), signs(x.rounded), True)


def _multiplied(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    x = range_of(node, 0)
    if x is None or not is_floating(facts[0].dtype) or x.least < 0 or x.low < 0:
        return None
    return made(facts[0].dtype, (0.0, math.inf), (0.0, math.inf), True)


def _sized(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    """Return the range of a sum of sizes or of squares."""
    return made(facts[0].dtype, (0.0, math.inf), (0.0, math.inf), True) if is_floating(facts[0].dtype) else None


def _shared(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    x = range_of(node, 0)
    return None if x is None else within(0.0, 1.0, is_finite)(facts[0].dtype, [x])


def _logarithms(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    return made(facts[0].dtype, (-math.inf, 0.0), None, True)


# --- operators with parameters ---


def _clipped(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    x, dtype = range_of(node, 0), facts[0].dtype
    whole = everything(dtype)
    if x is None or whole is None or not {"min", "max"}.isdisjoint(node.attributes):
        return None  # the normal form has inputs
    # An absent bound cuts nothing off, or what is beyond the finite numbers: runtimes differ.
    (low, high), (least, most) = whole.real, finite_limits(dtype)
    absent = [Range(low, least, low, least, False), Range(most, high, most, high, False)]
    minimum, maximum = (absent[place - 1] if node.fact(place) is None else range_of(node, place) for place in (1, 2))
    if minimum is None or maximum is None or minimum.nan or maximum.nan:
        return None

    def transfer(ends: Sequence[Ends]) -> Ends:
        (a, b), (c, d), (e, f) = ends
        return min(max(a, c), e), min(max(b, d), f)

    return apply(dtype, transfer, [x, minimum, maximum], x.nan)


def _hard_sigmoid(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    x, dtype = range_of(node, 0), facts[0].dtype
    slope, shift = (node.attributes.get(name, default) for name, default in (("alpha", 0.2), ("beta", 0.5)))
    if x is None or not is_floating(dtype) or not isinstance(slope, float) or not isinstance(shift, float):
        return None
    margin = kernel_margin(dtype)

    def ends(pair: Ends, error: float) -> Ends:
        if slope <= 0:
            return 0.0, 1.0
        low, high = (slope * end + shift for end in pair)
        low, high = low - error * (1 + abs(low)), high + error * (1 + abs(high))
        return min(1.0, max(0.0, low)), min(1.0, max(0.0, high))

    return made(dtype, ends(x.real, margin), ends(x.rounded, margin), x.nan or slope <= 0)


def _cast(node: Node, facts: tuple[Fact, ...]) -> Range | None:
    x, target = range_of(node, 0), facts[0].dtype
    source = node.dtype(0)
    if x is None or limits(target) is None:
        return None
    if target == BOOL:
        return truth(None if x.least <= 0 <= x.most else True)
    if is_floating(target):
        return made(target, _as_floats(x.real), _as_floats(x.rounded), x.nan)
    if not is_floating(source):
        return made(target, x.real, x.rounded, False)
    if x.nan or max(abs(x.least), abs(x.most)) >= 1 << 31:
        return None  # what is beyond the type, or NaN, becomes some number
    ends = math.trunc(x.least), math.trunc(x.most)
    return made(target, ends, ends, False)


def _as_floats(ends: Ends) -> Ends:
    """Return the ends as doubles, rounded outward."""
    double = int(TensorProto.DOUBLE)
    return outward(double, ends[0], -math.inf), outward(double, ends[1], math.inf)


_MOVES = """
    Compress DepthToSpace Expand Flatten Gather GatherElements GatherND Identity Reshape ReverseSequence Slice SpaceToDepth
    Split Squeeze Tile TopK Transpose Unsqueeze
"""

RANGES: dict[str, RangeFunction] = {
    **dict.fromkeys(_MOVES.split(), _joined(0)),
    **dict.fromkeys("CenterCropPad Trilu".split(), _with_zero),
    **dict.fromkeys("Cast CastLike".split(), _cast),
    **dict.fromkeys("ArgMax ArgMin".split(), _place),
    **dict.fromkeys("NonZero Shape Size".split(), _counted),
    **dict.fromkeys("ScatterElements ScatterND".split(), _scattered),
    **dict.fromkeys("AveragePool GlobalAveragePool ReduceMean".split(), _averaged),
    **dict.fromkeys("GlobalLpPool LpPool ReduceL1 ReduceL2 ReduceSumSquare".split(), _sized),
    **dict.fromkeys("CumSum ReduceSum".split(), _summed),
    "Clip": _clipped,
    "Concat": _joined(),
    "Conv": lambda node, facts: conv(node, facts[0].dtype),
    "ConstantOfShape": _filled,
    "DequantizeLinear": lambda node, facts: dequantized(node, facts[0].dtype),
    "EyeLike": lambda node, facts: hull(facts[0].dtype, [_zero(facts[0].dtype), truth(True) or _zero(facts[0].dtype)]),
    "Gemm": lambda node, facts: gemm(node, facts[0].dtype),
    "GlobalMaxPool": _extreme(high=True, spatial=True),
    "HardSigmoid": _hard_sigmoid,
    "LogSoftmax": _logarithms,
    "MatMul": lambda node, facts: matmul(node, facts[0].dtype),
    "MaxPool": _pooled,
    "OneHot": _joined(2),
    "Pad": _padded,
    "QuantizeLinear": lambda node, facts: quantized(node, facts[0].dtype),
    "Range": _stepped,
    "ReduceMax": _extreme(high=True),
    "ReduceMin": _extreme(high=False),
    "ReduceProd": _multiplied,
    "Resize": _resized,
    "Softmax": _shared,
    "Where": _chosen,
}
"""By operator, the range of its first output, whose type is known."""

"""The meaning of attributes in the newest opset: which values are defaults, and which are axes.

The functions take an operator of the newest opset, an attribute name and input facts. Schemas give
most answers; the tables hold the facts that only the schemas' texts give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from eqsat.facts.fact import Fact
from eqsat.operators import AttributeValue, Operator, attribute_default
from eqsat.terms.terms import attribute_key


class Span(NamedTuple):
    """The space that an axis counts in: the rank of an input, plus `more`.

    The input is the first of `inputs` whose rank is known.
    """

    inputs: tuple[int, ...] = (0,)  # empty: all inputs, which have one rank
    more: int = 0


# By operator and name, the attributes that are an axis or a list of axes and may be negative.
# Flatten's axis may equal the rank.
AXIS_ATTRIBUTES: Final[dict[tuple[str, str], Span]] = {
    ("ArgMax", "axis"): Span(),
    ("ArgMin", "axis"): Span(),
    ("CenterCropPad", "axes"): Span(),
    ("Compress", "axis"): Span(),
    ("Concat", "axis"): Span(()),
    ("DequantizeLinear", "axis"): Span(),
    ("Flatten", "axis"): Span(),
    ("Gather", "axis"): Span(),
    ("GatherElements", "axis"): Span((0, 1)),
    ("Hardmax", "axis"): Span(),
    ("LayerNormalization", "axis"): Span(),
    ("LogSoftmax", "axis"): Span(),
    ("LpNormalization", "axis"): Span(),
    ("MeanVarianceNormalization", "axes"): Span(),
    ("OneHot", "axis"): Span(more=1),
    ("QuantizeLinear", "axis"): Span(),
    ("RMSNormalization", "axis"): Span(),
    ("Resize", "axes"): Span(),
    ("ScatterElements", "axis"): Span((0, 1, 2)),
    ("Shape", "end"): Span(),
    ("Shape", "start"): Span(),
    ("Softmax", "axis"): Span(),
    ("Split", "axis"): Span(),
    ("SplitToSequence", "axis"): Span(),
    ("TensorScatter", "axis"): Span((0, 1)),
    ("TopK", "axis"): Span(),
    ("Unique", "axis"): Span(),
}

# List attributes without a default in the schema. If omitted, every element has this value.
_IMPLIED: Final = {"strides": 1, "dilations": 1, "pads": 0, "output_padding": 0}


def is_default(operator: Operator, name: str, value: AttributeValue | None) -> bool:
    """Tell whether `value` means the same as an omitted attribute, in the newest opset."""
    if value is None:
        return True
    declared = attribute_default(operator, name)
    if declared is not None:
        return attribute_key(declared) == attribute_key(value)
    element = _IMPLIED.get(name)
    # An empty list has the wrong length, so its meaning is unknown.
    return element is not None and isinstance(value, tuple) and set(value) == {element}


def axis_span(operator: Operator, name: str, facts: Sequence[Fact | None]) -> int | None:
    """Return the n for which an axis of -1 means n - 1; None for no axis, or if n is unknown.

    Legal axes are -n to n - 1, for Flatten also n. Shape's `start` and `end` may be any number.
    """
    span = AXIS_ATTRIBUTES.get((operator.name, name))
    if span is None or not operator.standard:
        return None
    ranks = (len(fact.shape) for place, fact in enumerate(facts) if (place in span.inputs or not span.inputs) and fact is not None and fact.shape is not None)
    rank = next(ranks, None)
    return None if rank is None else rank + span.more

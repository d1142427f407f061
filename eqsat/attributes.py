"""What attributes of the newest operators mean: which values say the same as leaving them out, and which are axes.

Comes in: an operator of the newest opset, an attribute's name, what is known of the inputs. What schemas say is taken
from them; the tables hold what only their texts say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from eqsat.facts import Fact
from eqsat.operators import AttributeValue, Operator, attribute_default
from eqsat.terms import attribute_key


class Span(NamedTuple):
    """What an axis counts: the axes of the tensor at the first of these inputs whose rank is known, and `more`."""

    inputs: tuple[int, ...] = (0,)  # none: all inputs, which have one rank
    more: int = 0


# Attributes that are an axis or a list of axes and may count from the end, by operator and name. Flatten's may be the rank too.
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

# Lists without a default in the schema, and the element that all of them are where they are left out.
_IMPLIED: Final = {"strides": 1, "dilations": 1, "pads": 0, "output_padding": 0}


def is_default(operator: Operator, name: str, value: AttributeValue | None) -> bool:
    """Whether `value` means what leaving the attribute out means, in an operator of the newest opset."""
    if value is None:
        return True
    declared = attribute_default(operator, name)
    if declared is not None:
        return attribute_key(declared) == attribute_key(value)
    element = _IMPLIED.get(name)
    # An empty list has the wrong length: what it means is left open.
    return element is not None and isinstance(value, tuple) and set(value) == {element}


def axis_span(operator: Operator, name: str, facts: Sequence[Fact | None]) -> int | None:
    """The number n for which -1 means n - 1 in the attribute; None where it is no axis, or n is not known.

    Legal axes are those from -n to n - 1, for Flatten also n; Shape's `start` and `end` may be any number.
    """
    span = AXIS_ATTRIBUTES.get((operator.name, name))
    if span is None or not operator.standard:
        return None
    ranks = (len(fact.shape) for place, fact in enumerate(facts) if (place in span.inputs or not span.inputs) and fact is not None and fact.shape is not None)
    rank = next(ranks, None)
    return None if rank is None else rank + span.more

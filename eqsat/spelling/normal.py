"""The normal form of a node: the one spelling of a meaning that rules see.

`normalize` takes a `Form` of the newest opset, `normal_form` a node of any opset, and both take
input facts. In the result, axes count from the front, parameters are explicit int64 integers, and
defaults and parts without effect are omitted. The form computes what the node computes, for all
values that satisfy the facts. Unknown parts stay as they are. Normalization is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import TensorProto

from eqsat.facts.fact import Fact
from eqsat.families import FAMILIES
from eqsat.operators import Attributes, AttributeValue, Operator, attribute_default, read_attributes
from eqsat.spelling import axes, pads
from eqsat.spelling.opsets import read
from eqsat.terms.attribute_meaning import AXIS_ATTRIBUTES, axis_span, is_default
from eqsat.terms.forms import Draft, Form, scalar

ZEROS_IF_ABSENT: Mapping[str, tuple[int, ...]] = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}
"""The optional inputs that are zeros if they are absent, by operator: the states in which recurrences
begin.
"""

_FLOAT8 = frozenset(int(code) for name, code in TensorProto.DataType.items() if name.startswith("FLOAT8"))


def normal_form(operator: Operator, attributes: Attributes, facts: Sequence[Fact | None], outputs: int) -> Form | None:
    """Apply `read`, then `normalize`."""
    form = read(operator, attributes, facts, outputs)
    return None if form is None else normalize(form, facts, outputs)


def normalize(form: Form, facts: Sequence[Fact | None], outputs: int) -> Form:
    """Return the normal form of a node of the newest opset, as far as `facts` determine it.

    `facts` belong to the inputs that `form` refers to. In the result, an attribute with a default
    in the schema always has a value. Any other attribute is absent if `is_default` holds for it.
    Absent inputs at the end are omitted.
    """
    operator = form.operator
    inputs = [None if isinstance(source, int) and facts[source] is None else source for source in form.inputs]
    draft = Draft(operator, {**read_attributes(operator, ()), **form.attributes}, inputs, facts, outputs)
    for name, value in draft.attributes.items():
        if (operator.name, name) in AXIS_ATTRIBUTES:
            draft.attributes[name] = _from_front(value, axis_span(operator, name, draft.facts))
    function = _FUNCTIONS.get(operator.name)
    if function is not None:
        function(draft)
    kept = {
        name: value
        for name, value in sorted(draft.attributes.items())
        if attribute_default(operator, name) is not None or not is_default(operator, name, value)
    }
    return Form(operator, kept, tuple(draft.inputs))


def _from_front(value: AttributeValue, span: int | None) -> AttributeValue:
    if span is None:
        return value
    if isinstance(value, tuple):
        return tuple(axis + span if isinstance(axis, int) and -span <= axis < 0 else axis for axis in value)  # pyright: ignore[reportReturnType]
    return value + span if isinstance(value, int) and -span <= value < 0 else value


def _inference(draft: Draft) -> None:
    """BatchNormalization uses its momentum only in training mode."""
    if draft.integer("training_mode", 0) == 0:
        draft.attributes["momentum"] = _default(draft, "momentum")


def _copied(draft: Draft) -> None:
    """Dropout copies its input, unless it is, or may be, in training mode."""
    if draft.fact(2) is None or draft.numbers(2) == (0,):
        del draft.inputs[1:]
        draft.attributes.pop("seed", None)


def _cast(draft: Draft) -> None:
    """Cast's rounding and saturation affect only float 8 types."""
    if draft.integer("to", 0) not in _FLOAT8:
        draft.attributes |= {name: _default(draft, name) for name in ("saturate", "round_mode")}


def _quantized(draft: Draft) -> None:
    """The axis has no effect if the whole tensor has one scale."""
    if draft.rank(1) == 0 and draft.integer("block_size", 0) == 0:
        draft.attributes["axis"] = _default(draft, "axis")


def _resized(draft: Draft) -> None:
    """Resize has attributes and inputs that only some modes use."""
    mode, crops = draft.attributes.get("mode"), draft.attributes.get("coordinate_transformation_mode") == b"tf_crop_and_resize"
    unused = {"nearest_mode": mode != b"nearest", "cubic_coeff_a": mode != b"cubic", "extrapolation_value": not crops}
    draft.attributes |= {name: _default(draft, name) for name, leave in unused.items() if leave}
    if not crops:
        draft.put(1, None)
    if draft.fact(3) is not None and draft.shape(2) == (0,):
        draft.put(2, None)
    rank = draft.rank(0)
    if rank is not None and draft.attributes.get("axes") == tuple(range(rank)):
        del draft.attributes["axes"]


def _counted(draft: Draft) -> None:
    """Range's known bounds are scalars. ONNX Runtime takes vectors of one element as well, as the function
    of AffineGrid has them, but not where all bounds are constants.
    """
    for position in range(3):
        fact, numbers = draft.fact(position), draft.numbers(position)
        if fact is not None and fact.dtype == TensorProto.INT64 and fact.shape == (1,) and numbers is not None:
            draft.put(position, scalar(numbers[0]))


def _default(draft: Draft, name: str) -> AttributeValue:
    value = attribute_default(draft.operator, name)
    assert value is not None
    return value


_FUNCTIONS: dict[str, Callable[[Draft], None]] = {
    **dict.fromkeys(FAMILIES["reduction"].members, axes.reduce),
    **dict.fromkeys(["AveragePool", "LpPool", "MaxPool"], pads.pool),
    **dict.fromkeys(["Conv", "ConvInteger", "DeformConv"], pads.convolution),
    **dict.fromkeys(["DequantizeLinear", "QuantizeLinear"], _quantized),
    "BatchNormalization": _inference,
    "Cast": _cast,
    "CenterCropPad": axes.crop,
    "ConvTranspose": pads.transposed_convolution,
    "CumSum": axes.cumulate,
    "DFT": axes.fourier,
    "Dropout": _copied,
    "Expand": axes.expand,
    "MeanVarianceNormalization": axes.mean_variance,
    "Pad": axes.pad,
    "QLinearConv": pads.quantized_convolution,
    "Range": _counted,
    "Reshape": axes.reshape,
    "Resize": _resized,
    "Shape": axes.shape,
    "Slice": axes.cut,
    "Split": axes.split,
    "Squeeze": axes.squeeze,
    "Transpose": axes.transpose,
    "Unsqueeze": axes.unsqueeze,
}

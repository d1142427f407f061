"""The normal form of a node: of all spellings that mean the same the one that rules see.

Comes in: a node of any opset, or a `Form` of the newest one, and what is known of its inputs. Goes out: a `Form` in
which axes count from the front, parameters are written out as 64-bit integers, and what is a default, or does nothing,
is left out. Promised: for all values of which the facts are true the form computes what the node computes; what is not
known stays as it is. Normalizing a normal form changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import TensorProto

from eqsat import padding, positions
from eqsat.attributes import AXIS_ATTRIBUTES, axis_span, is_default
from eqsat.facts import Fact
from eqsat.forms import Draft, Form
from eqsat.operators import Attributes, AttributeValue, Operator, attribute_default, read_attributes
from eqsat.spelling import read

_FLOAT8 = frozenset(int(code) for name, code in TensorProto.DataType.items() if name.startswith("FLOAT8"))


def normal_form(operator: Operator, attributes: Attributes, facts: Sequence[Fact | None], outputs: int) -> Form | None:
    """`read`, then `normalize`."""
    form = read(operator, attributes, facts, outputs)
    return None if form is None else normalize(form, facts, outputs)


def normalize(form: Form, facts: Sequence[Fact | None], outputs: int) -> Form:
    """The one spelling of a node of the newest opset, as far as `facts` (of the inputs that `form` counts) tell.

    Attributes of the result: those with a default in the schema always have a value; others are absent where `is_default`
    says so. Inputs: absent ones at the end are left out.
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
    """BatchNormalization uses its momentum in training only."""
    if draft.integer("training_mode", 0) == 0:
        draft.attributes["momentum"] = _default(draft, "momentum")


def _copied(draft: Draft) -> None:
    """Dropout copies its input, unless it is, or may be, in training mode."""
    if draft.fact(2) is None or draft.numbers(2) == (0,):
        del draft.inputs[1:]
        draft.attributes.pop("seed", None)


def _cast(draft: Draft) -> None:
    """How Cast rounds and saturates concerns float 8 types only."""
    if draft.integer("to", 0) not in _FLOAT8:
        draft.attributes |= {name: _default(draft, name) for name in ("saturate", "round_mode")}


def _quantized(draft: Draft) -> None:
    """With one scale for the whole tensor there is no axis."""
    if draft.rank(1) == 0 and draft.integer("block_size", 0) == 0:
        draft.attributes["axis"] = _default(draft, "axis")


def _resized(draft: Draft) -> None:
    """Resize has attributes and inputs that only some of its modes use."""
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


def _default(draft: Draft, name: str) -> AttributeValue:
    value = attribute_default(draft.operator, name)
    assert value is not None
    return value


_FUNCTIONS: dict[str, Callable[[Draft], None]] = {
    **dict.fromkeys(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare".split(), positions.reduce
    ),
    **dict.fromkeys(["AveragePool", "LpPool", "MaxPool"], padding.pool),
    **dict.fromkeys(["Conv", "ConvInteger", "DeformConv"], padding.convolution),
    **dict.fromkeys(["DequantizeLinear", "QuantizeLinear"], _quantized),
    "BatchNormalization": _inference,
    "Cast": _cast,
    "CenterCropPad": positions.crop,
    "ConvTranspose": padding.transposed_convolution,
    "CumSum": positions.cumulate,
    "DFT": positions.fourier,
    "Dropout": _copied,
    "Expand": positions.expand,
    "MeanVarianceNormalization": positions.mean_variance,
    "Pad": positions.pad,
    "QLinearConv": padding.quantized_convolution,
    "Reshape": positions.reshape,
    "Resize": _resized,
    "Shape": positions.shape,
    "Slice": positions.cut,
    "Split": positions.split,
    "Squeeze": positions.squeeze,
    "Transpose": positions.transpose,
    "Unsqueeze": positions.unsqueeze,
}

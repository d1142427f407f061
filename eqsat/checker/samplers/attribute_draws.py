"""Attribute draws: every attribute of every operator that a rule may name, and the values drawn for
it.

An attribute with values in the table gets one of them, whatever the shapes are. The operator's
sampler draws a `FITTED` attribute, which has to agree with shapes or with other attributes. A
`Kept` attribute keeps ONNX's default, for the given reason. A test fails if the table lacks an
attribute of ONNX, if an attribute is not drawn although the table says so, or if a value makes no
difference to the engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from eqsat.families import FAMILIES


class Fitted(Enum):
    """Drawn by the operator's sampler."""

    FITTED = auto()


class Kept(NamedTuple):
    """Not drawn."""

    reason: str


FITTED: Final = Fitted.FITTED
Draw: TypeAlias = "tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Fitted | Kept"

_ROUNDING: Final = Kept("says in which type an operator computes: how it rounds, which is the same for every rule")
_TRAINING: Final = Kept("of training alone")
_UNDRAWN: Final = Kept("no strings and no sequences are drawn, so that no instance of it is judged")
_TENSOR: Final = Kept("holds a tensor, which no rule can write")
_NARROW: Final = Kept("of floats of 8 bits and fewer, of which none are drawn")

_FLAG: Final = (0, 1)
_EPSILONS: Final = (1e-5, 1e-3, 0.5, 0.125)
_SLOPES: Final = (0.5, 0.25, 1.0, 2.0, 0.0, -0.5, 1.5)
_REDUCTIONS: Final = ("none", "add", "mul", "max", "min")

_AXIS: Final[Mapping[str, Draw]] = {"axis": FITTED}
_WINDOW: Final[Mapping[str, Draw]] = dict.fromkeys(("auto_pad", "dilations", "kernel_shape", "pads", "strides"), FITTED)
_RECURRENT: Final[Mapping[str, Draw]] = {
    **dict.fromkeys(("activation_alpha", "activation_beta", "activations", "direction", "hidden_size", "layout"), FITTED),
    "clip": (0.25, 0.5, 1.5),
}
_REDUCED: Final[Mapping[str, Draw]] = {"keepdims": _FLAG, "noop_with_empty_axes": _FLAG}
_PERIOD: Final[Mapping[str, Draw]] = {"output_datatype": FITTED, "periodic": _FLAG}

ATTRIBUTES: Final[Mapping[str, Mapping[str, Draw]]] = {
    **dict.fromkeys(("Concat", "Compress", "Flatten", "Gather", "GatherElements", "OneHot"), _AXIS),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _AXIS),
    **{key: {**_AXIS, "keepdims": _FLAG, "select_last_index": _FLAG} for key in ("ArgMax", "ArgMin")},
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _PERIOD),
    **{key: {"alpha": (1.0, *_SLOPES)} for key in ("Celu", "Elu", "QuickGelu", "Swish", "ThresholdedRelu")},
    **{key: {**_WINDOW, "group": FITTED} for key in ("Conv", "ConvInteger", "QLinearConv")},
    **{key: {"exclusive": _FLAG, "reverse": _FLAG} for key in ("CumProd", "CumSum")},
    **{key: {**_AXIS, "epsilon": _EPSILONS, "stash_type": _ROUNDING} for key in ("LayerNormalization", "RMSNormalization")},
    **{key: {"ignore_index": (0, 1, -1, 7), "reduction": ("mean", "sum", "none")} for key in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
    **dict.fromkeys(FAMILIES["reduction"].members, _REDUCED),
    "AffineGrid": {"align_corners": _FLAG},
    "Attention": {
        **dict.fromkeys(("kv_num_heads", "q_num_heads"), FITTED),
        "is_causal": _FLAG,
        "left_window_size": (-1, 0, 1, 2),
        "qk_matmul_output_mode": (0, 1, 2, 3),
        "right_window_size": (-1, 0, 1, 2),
        "scale": (0.5, 1.0, 0.25),
        "softcap": (0.0, 0.5, 2.0),
        "softmax_precision": _ROUNDING,
    },
    "AveragePool": {**_WINDOW, "ceil_mode": _FLAG, "count_include_pad": _FLAG},
    "BatchNormalization": {"epsilon": _EPSILONS, "momentum": (0.9, 0.5), "training_mode": _TRAINING},
    "BitCast": {"to": FITTED},
    "BitShift": {"direction": ("LEFT", "RIGHT")},
    "Cast": {"round_mode": _NARROW, "saturate": _NARROW, "to": FITTED},
    "CastLike": {"round_mode": _NARROW, "saturate": _NARROW},
    "CenterCropPad": {"axes": FITTED},
    "Col2Im": dict.fromkeys(("dilations", "pads", "strides"), FITTED),
    "ConcatFromSequence": {"axis": _UNDRAWN, "new_axis": _UNDRAWN},
    "Constant": {
        **dict.fromkeys(("sparse_value", "value"), _TENSOR),
        **dict.fromkeys(("value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"), Kept("a rule writes numbers as they are")),
    },
    "ConstantOfShape": {"value": _TENSOR},
    "ConvTranspose": {**_WINDOW, "group": FITTED, "output_padding": FITTED, "output_shape": FITTED},
    "DFT": {"inverse": FITTED, "onesided": FITTED},
    "DeformConv": {**dict.fromkeys(("dilations", "kernel_shape", "pads", "strides"), FITTED), "group": FITTED, "offset_group": FITTED},
    "DepthToSpace": {"blocksize": FITTED, "mode": ("DCR", "CRD")},
    "DequantizeLinear": {"axis": FITTED, "block_size": FITTED, "output_dtype": FITTED},
    "Dropout": {"seed": _TRAINING},
    "Einsum": {"equation": FITTED},
    "EyeLike": {"dtype": FITTED, "k": (0, 1, -1, 2)},
    "FusedMatMul": {
        "alpha": (1.0, 0.5, 2.0, 0.25, -1.0),
        **dict.fromkeys(("transA", "transB"), FITTED),
    },
    "GRU": {**_RECURRENT, "linear_before_reset": _FLAG},
    "GatherND": {"batch_dims": FITTED},
    "Gelu": {"approximate": ("none", "tanh")},
    "Gemm": {"alpha": (1.0, 0.5, 2.0, 0.25, -1.0), "beta": (1.0, 0.5, 2.0, 0.25, -1.0), "transA": FITTED, "transB": FITTED},
    "GlobalLpPool": {"p": (1, 2, 3)},
    "GridSample": {"align_corners": _FLAG, "mode": FITTED, "padding_mode": ("zeros", "border", "reflection")},
    "GroupNormalization": {"epsilon": _EPSILONS, "num_groups": FITTED, "stash_type": _ROUNDING},
    "HardSigmoid": {"alpha": (0.2, *_SLOPES), "beta": (0.5, *_SLOPES)},
    "ImageDecoder": {"pixel_format": Kept("no engine has it")},
    "InstanceNormalization": {"epsilon": _EPSILONS},
    "IsInf": {"detect_negative": _FLAG, "detect_positive": _FLAG},
    "LRN": {"alpha": (0.0001, 0.5, 1.0), "beta": (0.75, 0.5, 1.0), "bias": (1.0, 2.0), "size": (1, 3, 5)},
    "LSTM": {**_RECURRENT, "input_forget": _FLAG},
    "LeakyRelu": {"alpha": (0.01, *_SLOPES)},
    "LpNormalization": {**_AXIS, "p": (1, 2)},
    "LpPool": {**_WINDOW, "ceil_mode": _FLAG, "p": (1, 2, 3)},
    "MaxPool": {**_WINDOW, "ceil_mode": _FLAG, "storage_order": _FLAG},
    "MaxRoiPool": dict.fromkeys(("pooled_shape", "spatial_scale"), Kept("its regions name their images by floats, which are not drawn so")),
    "MaxUnpool": {"kernel_shape": FITTED, "pads": Kept("with pads ONNX's text and its reference disagree on the size"), "strides": FITTED},
    "MeanVarianceNormalization": {"axes": FITTED},
    "MelWeightMatrix": {"output_datatype": FITTED},
    "Mod": {"fmod": FITTED},
    "MultiHeadAttention": {"mask_filter_value": Kept("no rule has a mask of keys"), "num_heads": FITTED, "scale": (0.5, 1.0, 0.25), "unidirectional": _FLAG},
    "NonMaxSuppression": {"center_point_box": _FLAG},
    "Optional": {"type": _UNDRAWN},
    "Pad": {"mode": FITTED},
    "QuantizeLinear": {"axis": FITTED, "block_size": FITTED, "output_dtype": FITTED, "precision": _ROUNDING, "saturate": _NARROW},
    "RNN": _RECURRENT,
    "RegexFullMatch": {"pattern": _UNDRAWN},
    "Reshape": {"allowzero": FITTED},
    "Resize": {
        **dict.fromkeys(("antialias", "axes", "cubic_coeff_a", "exclude_outside", "keep_aspect_ratio_policy", "mode", "nearest_mode"), FITTED),
        "coordinate_transformation_mode": FITTED,
        "extrapolation_value": (0.0, 1.5, -2.0),
    },
    "ReverseSequence": {"batch_axis": FITTED, "time_axis": FITTED},
    "RoiAlign": {
        "coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
        "mode": ("avg", "max"),
        "output_height": (1, 2, 3),
        "output_width": (1, 2, 3),
        "sampling_ratio": (0, 1, 2),
        "spatial_scale": (1.0, 0.5),
    },
    "RotaryEmbedding": {"interleaved": _FLAG, "num_heads": FITTED, "rotary_embedding_dim": FITTED},
    "STFT": {"onesided": _FLAG},
    "ScatterElements": {**_AXIS, "reduction": _REDUCTIONS},
    "ScatterND": {"reduction": _REDUCTIONS},
    "Selu": {"alpha": (1.67326, *_SLOPES), "gamma": (1.0507, *_SLOPES)},
    "SequenceEmpty": {"dtype": _UNDRAWN},
    "Shape": {"end": FITTED, "start": FITTED},
    "Shrink": {"bias": (0.0, *_SLOPES), "lambd": (0.5, *_SLOPES)},
    "SpaceToDepth": {"blocksize": FITTED},
    "Split": {**_AXIS, "num_outputs": FITTED},
    "SplitToSequence": {"axis": _UNDRAWN, "keepdims": _UNDRAWN},
    "StringNormalizer": dict.fromkeys(("case_change_action", "is_case_sensitive", "locale", "stopwords"), _UNDRAWN),
    "StringSplit": {"delimiter": _UNDRAWN, "maxsplit": _UNDRAWN},
    "TensorScatter": {**_AXIS, "mode": ("linear", "circular")},
    "TfIdfVectorizer": dict.fromkeys(
        ("max_gram_length", "max_skip_count", "min_gram_length", "mode", "ngram_counts", "ngram_indexes", "pool_int64s", "pool_strings", "weights"),
        Kept("its lists describe one vocabulary: a rule keeps what its test line gives"),
    ),
    "TopK": {**_AXIS, "largest": _FLAG, "sorted": Kept("unsorted, ONNX leaves open in which order the elements come")},
    "Transpose": {"perm": FITTED},
    "Trilu": {"upper": _FLAG},
    "Unique": {**_AXIS, "sorted": _FLAG},
}

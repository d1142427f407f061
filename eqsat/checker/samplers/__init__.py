"""The table of samplers, by operator, and the sampler for operators without one of their own.

A sampler gives a `DrawnNode` shapes for its new inputs, and values for everything that the rule
leaves open. Bound values stay. Most draws are legal, and inference has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from eqsat.checker.samplers import elementwise, image_regions, indexed, moved, multiplied, reduced, resampling, reshaped, sequences, signals
from eqsat.checker.samplers.attribute_draws import ATTRIBUTES, Kept
from eqsat.checker.samplers.drawn_node import DrawnNode, Unfit
from eqsat.families import FAMILIES

Sampler = Callable[[DrawnNode], None]

SAMPLERS: Final[Mapping[str, Sampler]] = {
    **dict.fromkeys((*FAMILIES["binary"].members, *FAMILIES["variadic"].members, "Where"), elementwise.together),
    **dict.fromkeys(FAMILIES["reduction"].members, reduced.sample_reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), reduced.sample_arg),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"), reduced.sample_axis),
    **dict.fromkeys(("CumSum", "CumProd"), reduced.sample_cumulative),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), reduced.sample_layer_normalization),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), elementwise.sample_quantize),
    **dict.fromkeys(("MatMul", "MatMulInteger"), multiplied.sample_matmul),
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv"), multiplied.sample_conv),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), multiplied.sample_pool),
    **dict.fromkeys(("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), multiplied.sample_global_pool),
    **dict.fromkeys(("GatherElements", "ScatterElements"), indexed.sample_gather_elements),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), moved.sample_blocks),
    "BatchNormalization": reduced.sample_batch_normalization,
    "ConstantOfShape": moved.sample_filled,
    "CenterCropPad": moved.sample_center_crop_pad,
    "Clip": elementwise.sample_clip,
    "Compress": indexed.sample_compress,
    "Concat": moved.sample_concat,
    "ConvTranspose": multiplied.sample_conv_transpose,
    "Dropout": elementwise.sample_dropout,
    "Einsum": multiplied.sample_einsum,
    "Expand": reshaped.sample_expand,
    "Flatten": reshaped.sample_flatten,
    "FusedMatMul": multiplied.sample_fused_matmul,
    "Gather": indexed.sample_gather,
    "GatherND": indexed.sample_gather_nd,
    "Gemm": multiplied.sample_gemm,
    "GroupNormalization": reduced.sample_group_normalization,
    "InstanceNormalization": reduced.sample_instance_normalization,
    "LRN": reduced.sample_local_response,
    "MeanVarianceNormalization": reduced.sample_mean_variance,
    "Mod": elementwise.sample_mod,
    "NegativeLogLikelihoodLoss": sequences.sample_loss,
    "SoftmaxCrossEntropyLoss": sequences.sample_loss,
    "Attention": sequences.sample_attention,
    "MultiHeadAttention": sequences.sample_multi_head_attention,
    "RotaryEmbedding": sequences.sample_rotary,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), sequences.sample_recurrent),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"), signals.sample_scalars),
    "AffineGrid": signals.sample_affine_grid,
    "Col2Im": image_regions.sample_columns,
    "DFT": signals.sample_transform,
    "DeformConv": image_regions.sample_deformed,
    "MaxUnpool": image_regions.sample_unpool,
    "NonMaxSuppression": image_regions.sample_boxes,
    "RoiAlign": image_regions.sample_region,
    "STFT": signals.sample_short_transform,
    "TensorScatter": indexed.sample_tensor_scatter,
    "Unique": indexed.sample_unique,
    "OneHot": indexed.sample_one_hot,
    "PRelu": elementwise.sample_prelu,
    "Pad": moved.sample_pad,
    "QLinearMatMul": multiplied.sample_quantized_matmul,
    "Range": elementwise.sample_range,
    "Reshape": reshaped.sample_reshape,
    "Resize": resampling.sample_resize,
    "GridSample": resampling.sample_grid,
    "ReverseSequence": moved.sample_reverse_sequence,
    "ScatterND": indexed.sample_scatter_nd,
    "Shape": moved.sample_shape,
    "Slice": moved.sample_slice,
    "Split": moved.sample_split,
    "Squeeze": reshaped.sample_squeeze,
    "Tile": moved.sample_tile,
    "TopK": reduced.sample_top_k,
    "Transpose": moved.sample_transpose,
    "Trilu": moved.sample_trilu,
    "Unsqueeze": reshaped.sample_unsqueeze,
}


def sample(node: DrawnNode) -> None:
    """Draws everything that is open at `node`; `Unfit` if no possibly legal draw was found."""
    sampler = SAMPLERS.get(node.operator.name)
    if sampler is not None:
        try:
            sampler(node)
        except Unfit:
            # Samplers know usual values. A test line is legal unless ONNX says otherwise.
            if not node.from_test:
                raise
    table = ATTRIBUTES.get(node.operator.name, {})
    for key, slot in node.slots.items():
        if key in node.chosen:
            continue
        values = table.get(key)
        if isinstance(values, tuple) and not isinstance(values, Kept):
            node.choose(key, values)
            continue
        # An attribute that is not drawn keeps the value of a test line or an earlier node.
        value = slot.value if slot.value is not None else slot.given
        if value is not None:
            node.chosen[key] = value
        elif not slot.carried or node.required(key):
            raise Unfit

"""The table of samplers, by operator, and the sampler for all that have none of their own.

Comes in: a `Site`. Goes out: the site with shapes for its new inputs and with values for everything that the rule
leaves open. Promised: what is bound stays; a draw is mostly legal, and inference has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from eqsat.checker.samplers import elementwise, moves, products, reductions, regions, resampling, sequences, signals
from eqsat.checker.samplers.attributes import ATTRIBUTES, Kept
from eqsat.checker.site import Site, Unfit

Sampler = Callable[[Site], None]

_REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare".split()
_BROADCASTING = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mul Or Pow Sub Sum Where Xor
    """.split()

SAMPLERS: Final[Mapping[str, Sampler]] = {
    **dict.fromkeys(_BROADCASTING, elementwise.together),
    **dict.fromkeys(_REDUCTIONS, reductions.sample_reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), reductions.sample_arg),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"), reductions.sample_axis),
    **dict.fromkeys(("CumSum", "CumProd"), reductions.sample_cumulative),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), reductions.sample_layer_normalization),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), elementwise.sample_quantize),
    **dict.fromkeys(("MatMul", "MatMulInteger"), products.sample_matmul),
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv"), products.sample_conv),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), products.sample_pool),
    **dict.fromkeys(("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), products.sample_global_pool),
    **dict.fromkeys(("GatherElements", "ScatterElements"), moves.sample_gather_elements),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), moves.sample_blocks),
    "BatchNormalization": reductions.sample_batch_normalization,
    "ConstantOfShape": moves.sample_filled,
    "CenterCropPad": moves.sample_center_crop_pad,
    "Clip": elementwise.sample_clip,
    "Compress": moves.sample_compress,
    "Concat": moves.sample_concat,
    "ConvTranspose": products.sample_conv_transpose,
    "Dropout": elementwise.sample_dropout,
    "Einsum": products.sample_einsum,
    "Expand": moves.sample_expand,
    "Flatten": moves.sample_flatten,
    "Gather": moves.sample_gather,
    "GatherND": moves.sample_gather_nd,
    "Gemm": products.sample_gemm,
    "GroupNormalization": reductions.sample_group_normalization,
    "InstanceNormalization": reductions.sample_instance_normalization,
    "LRN": reductions.sample_local_response,
    "MeanVarianceNormalization": reductions.sample_mean_variance,
    "Mod": elementwise.sample_mod,
    "NegativeLogLikelihoodLoss": sequences.sample_loss,
    "SoftmaxCrossEntropyLoss": sequences.sample_loss,
    "Attention": sequences.sample_attention,
    "RotaryEmbedding": sequences.sample_rotary,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), sequences.sample_recurrent),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"), signals.sample_scalars),
    "AffineGrid": signals.sample_affine_grid,
    "Col2Im": regions.sample_columns,
    "DFT": signals.sample_transform,
    "DeformConv": regions.sample_deformed,
    "MaxUnpool": regions.sample_unpool,
    "NonMaxSuppression": regions.sample_boxes,
    "RoiAlign": regions.sample_region,
    "STFT": signals.sample_short_transform,
    "TensorScatter": moves.sample_tensor_scatter,
    "Unique": moves.sample_unique,
    "OneHot": moves.sample_one_hot,
    "PRelu": elementwise.sample_prelu,
    "Pad": moves.sample_pad,
    "QLinearMatMul": products.sample_quantized_matmul,
    "Range": elementwise.sample_range,
    "Reshape": moves.sample_reshape,
    "Resize": resampling.sample_resize,
    "GridSample": resampling.sample_grid,
    "ReverseSequence": moves.sample_reverse_sequence,
    "ScatterND": moves.sample_scatter_nd,
    "Shape": moves.sample_shape,
    "Slice": moves.sample_slice,
    "Split": moves.sample_split,
    "Squeeze": moves.sample_squeeze,
    "Tile": moves.sample_tile,
    "TopK": reductions.sample_top_k,
    "Transpose": moves.sample_transpose,
    "Trilu": moves.sample_trilu,
    "Unsqueeze": moves.sample_unsqueeze,
}


def sample(site: Site) -> None:
    """Draws everything that is open at `site`; `Unfit` where no draw was found that may be legal."""
    sampler = SAMPLERS.get(site.operator.name)
    if sampler is not None:
        try:
            sampler(site)
        except Unfit:
            # Samplers know what is usual. What a test line states is legal unless ONNX says otherwise.
            if not site.stated:
                raise
    table = ATTRIBUTES.get(site.operator.name, {})
    for key, slot in site.slots.items():
        if key in site.chosen:
            continue
        values = table.get(key)
        if isinstance(values, tuple) and not isinstance(values, Kept):
            site.choose(key, values)
            continue
        # What nobody draws keeps what a test line or an earlier node gives.
        value = slot.value if slot.value is not None else slot.given
        if value is not None:
            site.chosen[key] = value
        elif not slot.carried or site.required(key):
            raise Unfit

"""The table of samplers, by operator, and the sampler for all that have none of their own.

Comes in: a `Site`. Goes out: the site with shapes for its new inputs and with values for everything that the rule
leaves open. Promised: what is bound stays; a draw is mostly legal, and inference has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from onnx import defs

from eqsat.checker.samplers import elementwise, moves, products, reductions, resampling, sequences
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

# The strings that attributes without a sampler of their own admit.
_WORDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("Cast", "round_mode"): ("up",),
    ("CastLike", "round_mode"): ("up",),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("NegativeLogLikelihoodLoss", "reduction"): ("mean", "sum", "none"),
    ("SoftmaxCrossEntropyLoss", "reduction"): ("mean", "sum", "none"),
}

# What carried attributes keep at its default: how results are stored and rounded, which is the same for every rule, and training.
_KEPT: Final = frozenset({"block_size", "precision", "round_mode", "saturate", "seed", "stash_type", "training_mode"})

_FLOATS: Final = (0.5, 0.25, 1.0, 2.0, 0.0, -0.5, 1.5)
_TYPES = defs.OpSchema.AttrType


def sample(site: Site) -> None:
    """Draws everything that is open at `site`; `Unfit` where no draw was found that may be legal."""
    sampler = SAMPLERS.get(site.operator.name)
    if sampler is not None:
        sampler(site)
    for key, slot in site.slots.items():
        if key not in site.chosen and (not slot.carried or site.required(key) or (key not in _KEPT and (sampler is None or sampler is elementwise.together))):
            _sample_attribute(site, key)


def _sample_attribute(site: Site, key: str) -> None:
    """A value by the attribute's type and default alone, for those that no sampler knows."""
    assert site.operator.schema is not None
    attribute = site.operator.schema.attributes.get(key)
    default = site.default(key)
    match None if attribute is None else attribute.type:
        case _TYPES.FLOAT:
            site.number(key, (default, *_FLOATS) if isinstance(default, float) else _FLOATS)
        case _TYPES.INT:
            flag = default in (0, 1)
            low = default if isinstance(default, int) else 1
            site.integer(key, lambda: site.random.randint(0, 1) if flag else low + site.random.choice((0, 0, 1, 2)))
        case _TYPES.STRING:
            words = _WORDS.get((site.operator.name, key), (default,) if isinstance(default, str) else ())
            if words:
                site.text(key, words)
        case _:
            # Lists and tensors whose meaning is not known here keep what a test line or an earlier node gives.
            slot = site.slots[key]
            value = slot.value if slot.value is not None else slot.given
            if value is not None:
                site.chosen[key] = value
            elif not slot.carried or site.required(key):
                raise Unfit

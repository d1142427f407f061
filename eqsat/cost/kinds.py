"""The table of operators: how the work of each operator is counted.

`COUNTERS` maps the key of an operator ("Conv", "com.microsoft.FusedConv") to its counter. It covers
every operator of ONNX, and those that ONNX Runtime writes into graphs on CPUs. Any other operator
counts as `movement.unknown`: all its tensors move, at a slow rate.
"""

from __future__ import annotations

from typing import Final

from eqsat.cost import contractions, movement, passes, sliding
from eqsat.cost.workload import Counter
from eqsat.families import members
from eqsat.operators import full_name

# Operations per element, in float32. A comparison, sum or product is one. A function approximated
# by polynomials counts the operations of a vectorized implementation.
_ELEMENTWISE: Final[dict[float, str]] = {
    1: """Abs Add And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Equal Floor Greater GreaterOrEqual IsInf IsNaN
        Less LessOrEqual Mul Neg Not Or Relu Round Sign Sub ThresholdedRelu Where Xor com.microsoft.BiasAdd""",
    2: "BatchNormalization Clip LeakyRelu PRelu",
    3: "HardSigmoid Shrink",
    4: "Div HardSwish Mod Reciprocal Softsign Sqrt",
    12: "Celu Elu Exp Selu",
    14: "Log Sigmoid Swish SwiGLU com.microsoft.QuickGelu",
    16: "Cos Erf Sin Softplus Tanh",
    20: """Acos Acosh Asin Asinh Atan Atanh Cosh Gelu Mish Sinh Tan com.microsoft.Gelu com.microsoft.BiasGelu com.microsoft.FastGelu
        com.microsoft.BiasSplitGelu""",
}

BROADCASTING: Final = members("binary") | members("variadic") | {"PRelu", "Where"}
"""The operators whose kernels stretch one operand to the sizes of another."""

_VIEWS = """BitCast Flatten Identity Optional OptionalGetElement OptionalHasElement Reshape Shape Size Squeeze Unsqueeze Dropout
    com.microsoft.ExpandDims"""
_COPIES = "CenterCropPad Pad ReverseSequence Split Trilu com.microsoft.Pad com.microsoft.Trilu"
_FILLS = "BlackmanWindow ConstantOfShape EyeLike HammingWindow HannWindow MelWeightMatrix OneHot Range com.microsoft.Range"
_SEQUENCES = "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence"
_STRINGS = """ImageDecoder RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer com.microsoft.Tokenizer
    ai.onnx.ml.CastMap ai.onnx.ml.CategoryMapper ai.onnx.ml.DictVectorizer ai.onnx.ml.LabelEncoder ai.onnx.ml.ZipMap"""
_BODIES = "If Loop Scan SequenceMap ai.onnx.preview.training.Gradient"
_RANDOM = "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike com.microsoft.Sampling"
_ML = "ArrayFeatureExtractor Binarizer FeatureVectorizer Imputer Normalizer OneHotEncoder Scaler"
_LINEAR = "LinearClassifier LinearRegressor SVMClassifier SVMRegressor"
_TREES = "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor"

_quantize = passes.elementwise(4.0, "quantize")


def _each(names: str, entry: Counter, domain: str = "") -> dict[str, Counter]:
    return {full_name(domain, name): entry for name in names.split()}


def _table() -> dict[str, Counter]:
    table: dict[str, Counter] = {}
    for operations, names in _ELEMENTWISE.items():
        table |= {name: (passes.broadcasting if name in BROADCASTING else passes.elementwise)(operations) for name in names.split()}
    table |= _each("Max Mean Min Sum", passes.variadic)
    table |= _each("Pow", passes.power)
    table |= _each("Constant", movement.nothing)
    table |= _each(_VIEWS, movement.view)
    table |= _each(_COPIES, movement.copy)
    table |= _each("Slice", movement.part)
    table |= _each("Expand", movement.expand) | _each("Tile", movement.tile)
    table |= _each("Concat ConcatFromSequence", movement.concat)
    table |= _each("Cast CastLike", movement.convert)
    table |= _each("Transpose", movement.transpose) | _each("DepthToSpace SpaceToDepth", movement.rearrange)
    table |= _each("Gather GatherElements GatherND com.microsoft.GatherND com.microsoft.GatherBlockQuantized", movement.gather)
    table |= _each("Compress NonZero", movement.compress)
    table |= _each("Scatter ScatterElements ScatterND", movement.scatter(2)) | _each("TensorScatter", movement.scatter(1))
    table |= _each("MaxUnpool", movement.scatter(0)) | _each("Col2Im", sliding.fold)
    table |= _each(_FILLS, passes.generate("fill", 1.0)) | _each(_RANDOM, passes.generate("random", 20.0))
    table |= _each(_SEQUENCES, movement.holder("sequence")) | _each(_STRINGS, movement.holder("string")) | _each(_BODIES, movement.body)
    table |= _reductions() | _products() | _windows() | _quantized() | _microsoft()
    table |= _each("TopK Unique NonMaxSuppression com.microsoft.Unique", passes.sort)
    table |= _each("CumProd CumSum", passes.scan()) | _each("Det", passes.determinant)
    table |= _each("DFT STFT com.microsoft.Rfft com.microsoft.Irfft", passes.fourier)
    table |= _each("RotaryEmbedding com.microsoft.RotaryEmbedding", passes.rotary)
    table |= _each("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", passes.loss)
    table |= _each("Adagrad Adam Momentum", passes.update(10.0), "ai.onnx.preview.training")
    table |= _each(_ML, passes.plain_model, "ai.onnx.ml") | _each(_LINEAR, passes.linear_model, "ai.onnx.ml")
    return table | _each(_TREES, passes.trees, "ai.onnx.ml")


def _reductions() -> dict[str, Counter]:
    return {
        **_each("ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum", passes.reduction(1.0)),
        **_each("ReduceL1 ReduceL2 ReduceSumSquare", passes.reduction(2.0)),
        **_each("ReduceLogSum", passes.reduction(1.0)),
        **_each("ReduceLogSumExp", passes.reduction(14.0)),
        **_each("ArgMax ArgMin", passes.choice),
        **_each("Softmax LogSoftmax", passes.softmax(15.0)),
        **_each("Hardmax", passes.softmax(2.0)),
        **_each("LayerNormalization SimplifiedLayerNormalization", passes.norm(8.0)),
        **_each("RMSNormalization", passes.norm(4.0)),
        **_each("LpNormalization", passes.norm(3.0)),
        **_each("InstanceNormalization GroupNormalization MeanVarianceNormalization", passes.channel_norm(6.0)),
        **_each("LRN", passes.local_norm),
    }


def _products() -> dict[str, Counter]:
    return {
        **_each("MatMul", contractions.matmul),
        **_each("Gemm", contractions.gemm),
        **_each("Einsum", contractions.einsum),
        **_each("Attention ai.onnx.preview.FlexAttention", contractions.attention),
        **_each("LinearAttention", contractions.linear_attention),
        **_each("RNN", contractions.recurrent(1)),
        **_each("GRU", contractions.recurrent(3)),
        **_each("LSTM com.microsoft.DynamicQuantizeLSTM", contractions.recurrent(4)),
    }


def _windows() -> dict[str, Counter]:
    return {
        **_each("Conv", sliding.conv()),
        **_each("ConvTranspose com.microsoft.ConvTransposeWithDynamicPads", sliding.conv_transpose),
        **_each("CausalConvWithState", sliding.causal_conv),
        **_each("DeformConv", sliding.deform_conv),
        **_each("AveragePool LpPool MaxPool com.microsoft.NhwcMaxPool com.microsoft.MaxpoolWithMask", sliding.pool("pool")),
        **_each("GlobalAveragePool GlobalLpPool GlobalMaxPool", sliding.global_pool("pool")),
        **_each("Resize Upsample", sliding.resize),
        **_each("AffineGrid", sliding.affine_grid),
        **_each("GridSample com.microsoft.GridSample", sliding.sample(4.0)),
        **_each("MaxRoiPool", sliding.sample(16.0)),
        **_each("RoiAlign com.microsoft.CropAndResize", sliding.roi_align),
    }


def _quantized() -> dict[str, Counter]:
    domain = "com.microsoft"
    return {
        **_each("DequantizeLinear DynamicQuantizeLinear QuantizeLinear", _quantize),
        **_each("DequantizeLinear QuantizeLinear", _quantize, domain),
        **_each("MatMulInteger", contractions.quantized_matmul(1)),
        **_each("DynamicQuantizeMatMul MatMulInteger16 MatMulIntegerToFloat", contractions.quantized_matmul(1), domain),
        **_each("QLinearMatMul", contractions.quantized_matmul(3)),
        **_each("QGemm", contractions.quantized_matmul(3), domain),
        **_each("MatMulBnb4 MatMulFpQ4 MatMulNBits", contractions.blockwise_matmul, domain),
        **_each("ConvInteger", sliding.conv(0, 1, "quantized_conv")),
        **_each("QLinearConv com.microsoft.QLinearConv", sliding.conv(0, 3, "quantized_conv")),
        **_each("QLinearAdd QLinearLeakyRelu QLinearMul QLinearSigmoid QLinearWhere", _quantize, domain),
        **_each("QLinearConcat", movement.concat, domain),
        **_each("QLinearAveragePool", sliding.pool("pool"), domain),
        **_each("QLinearGlobalAveragePool", sliding.global_pool("pool"), domain),
        **_each("QLinearReduceMean ReduceSumInteger", passes.reduction(1.0), domain),
        **_each("QLinearSoftmax", passes.softmax(15.0), domain),
        **_each("QAttention", contractions.projected_attention, domain),
    }


def _microsoft() -> dict[str, Counter]:
    domain, blocked = "com.microsoft", "com.microsoft.nchwc"
    return {
        **_each("FusedConv NhwcFusedConv NhwcConv", sliding.conv(), domain),
        **_each("FusedMatMul FusedMatMulActivation TransposeMatMul", contractions.fused_matmul, domain),
        **_each("FusedGemm GemmFastGelu", contractions.gemm, domain),
        **_each("SkipLayerNormalization EmbedLayerNormalization", passes.norm(9.0), domain),
        **_each("SimplifiedLayerNormalization SkipSimplifiedLayerNormalization", passes.norm(5.0), domain),
        **_each("GroupNorm SkipGroupNorm", passes.channel_norm(6.0), domain),
        **_each("Attention", contractions.projected_attention, domain),
        **_each("DecoderMaskedMultiHeadAttention GroupQueryAttention MultiHeadAttention", contractions.multi_head_attention, domain),
        **_each("BiasSoftmax", passes.softmax(16.0), domain),
        **_each("Conv", sliding.conv(), blocked),
        **_each("AveragePool MaxPool", sliding.pool("pool_blocked"), blocked),
        **_each("GlobalAveragePool GlobalMaxPool", sliding.global_pool("pool_blocked"), blocked),
        **_each("ReorderInput ReorderOutput", movement.blocked_reorder, blocked),
        **_each("Upsample", sliding.blocked_resize, blocked),
    }


COUNTERS: Final = _table()
"""The counter of each known operator, by key."""


KINDS: Final = tuple(
    """attention cast cast_integer constant control conv conv_blocked copy depthwise depthwise_blocked einsum elementwise fill fourier gather gemm
    grouped grouped_blocked matmul ml norm pool pool_blocked pool_line pool_steps product product_vector quantize quantized_conv quantized_matmul
    random recurrent reduction reduction_apart reduction_outer reduction_middle reduction_single resize_blocked resize_cubic resize_linear
    resize_nearest sample scan scatter sequence softmax softmax_outer softmax_swapped sort string transpose transpose_inward transpose_plane transpose_runs
    transposed_conv unknown view""".split()
)
"""The classes of work that a target gives rates for."""

MOVES: Final = frozenset(
    """cast cast_integer constant control copy fill gather random resize_blocked resize_nearest scatter sequence string transpose transpose_inward
    transpose_plane transpose_runs view""".split()
)
"""The classes of operators that only move elements. A data type slows them only by its bytes."""

DECLARED: Final[dict[str, Counter]] = {
    "elementwise": passes.elementwise(1.0),
    "quantize": _quantize,
    "constant": movement.nothing,
    "view": movement.view,
    "copy": movement.copy,
    "cast": movement.convert,
    "gather": movement.gather,
    "scatter": movement.scatter(2),
    "matmul": contractions.matmul,
    "product": contractions.matmul,
    "gemm": contractions.gemm,
    "conv": sliding.conv(),
    "depthwise": sliding.conv(),
    "grouped": sliding.conv(),
    "transposed_conv": sliding.conv_transpose,
    "attention": contractions.multi_head_attention,
    "norm": passes.norm(8.0),
    "softmax": passes.softmax(15.0),
    "reduction": passes.reduction(1.0),
    "pool": sliding.pool("pool"),
    "control": movement.body,
}
"""The counter of an operator without an entry, by the class that a target declares for it."""

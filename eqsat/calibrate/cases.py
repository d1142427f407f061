"""The cases that calibration times: for launches, for bandwidth, and for each class of work."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import TensorProto

from eqsat.calibrate.case import FLOAT, INT64, Case, Given
from eqsat.cost.subnormals import VECTOR

_LINKS = 33
_BYTES = int(TensorProto.UINT8)
_SIGNED = int(TensorProto.INT8)
_DOUBLE = int(TensorProto.DOUBLE)
_HALF = int(TensorProto.FLOAT16)
_BOOL = int(TensorProto.BOOL)


def _numbers(*elements: int) -> Given:
    return Given((len(elements),), INT64, True, elements)


def _weights(*shape: int, dtype: int = FLOAT) -> Given:
    return Given(shape, dtype, True)


def launches() -> dict[str, Case]:
    """Returns a chain of nodes with almost no work for each class of work."""
    few = Given((2, 2))
    chains = {
        "elementwise": Case("Neg", (few,)),
        "view": Case("Reshape", (few, _numbers(2, 2))),
        "matmul": Case("MatMul", (few, _weights(2, 2))),
        "gemm": Case("Gemm", (few, _weights(2, 2), _weights(2))),
        "product": Case("MatMul", (few, few)),
        "softmax": Case("Softmax", (few,)),
        "norm": Case("LayerNormalization", (few, _weights(2))),
        "transpose_plane": Case("Transpose", (few,), {"perm": (1, 0)}),
        "transpose_runs": Case("Transpose", (Given((2, 2, 3)),), {"perm": (1, 0, 2)}),
        "copy": Case("Slice", (few, _numbers(0), _numbers(2), _numbers(1))),
        "gather": Case("Gather", (few, _numbers(0, 1))),
        "reduction": Case("ReduceSum", (few, _numbers(1)), {"keepdims": 1}),
        "pool": Case("MaxPool", (Given((1, 1, 2, 2)),), {"kernel_shape": (1, 1)}),
        "conv": Case("Conv", (Given((1, 2, 2, 2)), _weights(2, 2, 1, 1))),
        "scan": Case("CumSum", (few, Given((), INT64, True, [0]))),
        "einsum": Case("Einsum", (few, few), {"equation": "ab,bc->ac"}),
        "resize_nearest": Case("Resize", (Given((1, 1, 2, 2)), None, None, _numbers(1, 1, 2, 2)), {"mode": "nearest"}),
    }
    return {kind: _chained(case) for kind, case in chains.items()}


def _chained(case: Case) -> Case:
    return Case(case.key, case.inputs, case.attributes, case.outputs, _LINKS, case.optimized)


BANDWIDTH = tuple(Case("Neg", (Given((1 << power,)),)) for power in (13, 14, 16, 18, 19, 20, 21, 22, 23, 25))
"""A pass over tensors of growing size. It reads and writes each element once."""

_UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Neg
    Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh ThresholdedRelu
    com.microsoft.FastGelu com.microsoft.Gelu""".split()
_BINARY = "Add Div Equal Less Max Min Mul Pow Sub".split()
_MANY = 1 << 17


def elementwise() -> Iterator[Case]:
    """Yields each elementwise operator, on so few elements that they stay in the cache."""
    sizes = (32, 512)
    x = Given(sizes)
    for name in _UNARY:
        yield Case(name, (x,))
    for name in _BINARY:
        yield Case(name, (x, x))
    # It chooses element by element, which takes ten times as long where the processor can not foresee the signs. Those of
    # fewer elements it learns.
    yield Case("PRelu", (Given((512, 512), low=-0.9), Given((512, 1))))
    for name in ("Add", "Mul"):
        for shape, other in (((512, 32), (32,)), ((512, 32), (512, 1)), ((64, 256), (256,)), ((1, 16, 32, 32), (16, 1, 1))):
            yield Case(name, (Given(shape), Given(other)))
    yield Case("Pow", (x, Given((), FLOAT, True, [2])))
    yield Case("Clip", (x, Given((), FLOAT, True, [0]), Given((), FLOAT, True, [6])))
    yield Case("Where", (Given(sizes, _BOOL, below=1), x, x))
    yield Case("And", (Given(sizes, _BOOL), Given(sizes, _BOOL)))
    yield Case("Not", (Given(sizes, _BOOL),))
    yield Case("com.microsoft.BiasGelu", (x, _weights(512)))
    # Swish, which is much more frequent than the default of 1.702 and takes one pass less.
    yield Case("com.microsoft.QuickGelu", (x,), {"alpha": 1.0})
    yield Case("RotaryEmbedding", (Given((1, 8, 128, 64)), _weights(128, 32), _weights(128, 32), Given((1, 128), INT64, below=128)))
    image = Given((1, 32, 64, 64))
    yield Case("BatchNormalization", (image, *(_weights(32) for _ in range(4))))


def matrices() -> Iterator[Case]:
    """Yields products of matrices, small and large, with constant and with computed second factors."""
    sizes = [(1, 768, 768), (4, 512, 512), (16, 768, 768), (49, 48, 48), (49, 48, 192), (64, 256, 1024), (128, 768, 3072), (196, 32, 128), (512, 64, 64)]
    sizes += [(3136, 48, 192), (784, 96, 384), (197, 192, 768)]
    for rows, inner, columns in sizes:
        yield Case("MatMul", (Given((rows, inner)), _weights(inner, columns)))
        yield Case("Gemm", (Given((rows, inner)), _weights(inner, columns), _weights(columns)))
    batches = [(12, 64, 64, 64), (12, 128, 64, 128), (3, 197, 64, 197), (3, 197, 197, 64), (64, 49, 16, 49), (64, 49, 49, 16), (1, 256, 256, 256)]
    batches += [(1024, 8, 8, 8), (256, 16, 16, 16)]
    for batch, rows, inner, columns in batches:
        yield Case("MatMul", (Given((batch, rows, inner)), Given((batch, inner, columns))))
    for rows, inner in ((16, 64), (65, 64), (64, 256), (256, 256), (128, 1024), (1024, 64)):
        yield Case("MatMul", (Given((rows, inner)), Given((inner,))))
    yield Case("Einsum", (Given((4, 128, 64)), Given((4, 64, 128))), {"equation": "bij,bjk->bik"})
    yield Case("Einsum", (Given((2, 128, 4, 64)), Given((2, 128, 4, 64))), {"equation": "bqhd,bkhd->bhqk"})


def subnormal() -> tuple[Case, Case]:
    """Returns a product of subnormal numbers, and the same of normal ones."""
    first, second = (128, 128), (128, VECTOR)
    return Case("MatMul", (Given(first, scale=1e-40), Given(second))), Case("MatMul", (Given(first), Given(second)))


def other_dtypes() -> Iterator[tuple[str, str, Case, Case]]:
    """Yields, for a class of work and a data type, a case and the same case in float32."""
    for name, dtype in (("double", _DOUBLE), ("float16", _HALF)):
        first, second = ((Given((64, 512), each), _weights(512, 512, dtype=each)) for each in (dtype, FLOAT))
        yield "matmul", name, Case("MatMul", first, optimized=True), Case("MatMul", second, optimized=True)
        first, second = ((Given((128, 512), each), Given((128, 512), each)) for each in (dtype, FLOAT))
        yield "elementwise", name, Case("Mul", first, optimized=True), Case("Mul", second, optimized=True)


def _conv(batch: int, inputs: int, outputs: int, size: int, window: int, groups: int = 1, chain: int = 1, axes: int = 2, step: int = 1) -> Case:
    filters = _weights(outputs, inputs // groups, *(window,) * axes)
    pads = (window // 2,) * (2 * axes)
    steps = {"strides": (step,) * axes} if step > 1 else {}
    attributes = {"group": groups, "pads": pads, **steps}
    return Case("Conv", (Given((batch, inputs, *(size,) * axes)), filters, _weights(outputs)), attributes, 1, chain, optimized=True)


def convolutions() -> Iterator[Case]:
    """Yields Convs outside the blocked layout, and chains in it, so that the conversions do not
    count.
    """
    for channels, size, window in [(32, 56, 1), (64, 56, 3), (64, 28, 1), (128, 28, 3), (256, 14, 1), (256, 14, 3), (24, 28, 1), (512, 7, 1)]:
        yield _conv(1, channels, channels, size, window, chain=4)
    for channels, size, window in [(32, 112, 3), (96, 56, 3), (144, 28, 5), (384, 14, 3), (96, 56, 7), (960, 7, 3), (64, 56, 3), (240, 28, 3)]:
        yield _conv(1, channels, channels, size, window, channels, chain=4)
    for channels, groups, size in [(64, 2, 28), (128, 4, 28), (256, 8, 14)]:
        yield _conv(1, channels, channels, size, 3, groups, chain=4)
    for channels, size, window in [(30, 56, 1), (66, 56, 3), (130, 28, 1), (130, 28, 3), (258, 14, 1), (258, 14, 3)]:
        yield _conv(1, channels, channels, size, window)
    for inputs, outputs, size in [(30, 8, 56), (66, 8, 28), (258, 16, 14)]:
        yield _conv(1, inputs, outputs, size, 3)
    for channels, size, window in [(30, 112, 3), (98, 56, 3), (386, 14, 3)]:
        yield _conv(1, channels, channels, size, window, channels)
    for channels, size, window in [(10, 64, 8), (98, 56, 3)]:
        yield _conv(1, channels, channels, size, window, channels, step=window // 2 + 1)
    for channels, groups, size in [(96, 12, 28), (144, 18, 14), (64, 16, 28)]:
        yield _conv(1, channels, channels, size, 3, groups)
    for channels, outputs, groups, size in [(384, 1536, 4, 64), (256, 256, 8, 200)]:
        yield Case("Conv", (Given((1, channels, size)), _weights(outputs, channels // groups, 1), _weights(outputs)), {"group": groups}, 1, optimized=True)
    yield _conv(1, 256, 256, 200, 3, 8, axes=1)
    yield _conv(1, 64, 64, 512, 3, axes=1)
    yield _conv(1, 192, 192, 512, 3, 192, axes=1)
    yield _conv(1, 16, 16, 24, 3, axes=3)
    for inputs, outputs, size, window in [(64, 32, 28, 4), (128, 64, 14, 2), (32, 16, 56, 3)]:
        yield Case("ConvTranspose", (Given((1, inputs, size, size)), _weights(inputs, outputs, window, window)), {"strides": (2, 2)})


def rows() -> Iterator[Case]:
    """Yields norms, softmax and reductions, by the length of their rows."""
    for length in (16, 49, 64, 128, 256, 768):
        count = _MANY // length
        x, scale = Given((count, length)), _weights(length)
        yield Case("LayerNormalization", (x, scale, scale))
        yield Case("RMSNormalization", (x, scale))
        yield Case("Softmax", (x,))
        yield Case("LogSoftmax", (x,))
        yield Case("com.microsoft.SkipLayerNormalization", (Given((1, count, length)), Given((1, count, length)), scale, scale))
        yield Case("com.microsoft.SkipSimplifiedLayerNormalization", (Given((1, count, length)), Given((1, count, length)), scale))
        for name in ("ReduceMean", "ReduceMax", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"):
            yield Case(name, (x, _numbers(1)), {"keepdims": 0})
            yield Case(name, (Given((length, count)), _numbers(0)), {"keepdims": 0})
            yield Case(name, (Given((1, length, count)), _numbers(1)), {"keepdims": 0})
            yield Case(name, (Given((count // 64, length, 64)), _numbers(1)), {"keepdims": 0})
            yield Case(name, (Given((4, count // 64, 16, length)), _numbers(1, 3)), {"keepdims": 0})
        yield Case("ArgMax", (x,), {"axis": 1})
        yield Case("Softmax", (Given((8, length, count // 8)),), {"axis": 1})
        yield Case("Softmax", (Given((2, length, 4, count // 8)),), {"axis": 1})
    for channels, size in ((32, 64), (128, 32), (512, 8)):
        image = Given((1, channels, size, size))
        yield Case("InstanceNormalization", (image, _weights(channels), _weights(channels)))
        yield Case("GroupNormalization", (image, _weights(channels), _weights(channels)), {"num_groups": 32})
        yield Case("LRN", (image,), {"size": 5})
        yield Case("GlobalAveragePool", (image,))
        yield Case("ReduceMean", (image, _numbers(2, 3)))
    yield Case("LpNormalization", (Given((1024, 128)),), {"axis": -1})


def moves() -> Iterator[Case]:
    """Yields transposes by the size of the blocks that they keep, copies, gathers, scatters and
    casts.
    """
    for shape, order in [
        ((1, 128, 12, 64), (0, 2, 1, 3)), ((1, 512, 8, 32), (0, 2, 1, 3)), ((64, 49, 3, 16), (0, 2, 1, 3)), ((8, 128, 32, 4), (0, 2, 1, 3)),
        ((1, 128, 1024), (0, 2, 1)), ((1, 64, 3136), (0, 2, 1)), ((1, 3136, 64), (0, 2, 1)), ((64, 49, 48), (0, 2, 1)), ((768, 768), (1, 0)),
        ((1, 12, 128, 64), (0, 1, 3, 2)), ((1, 56, 56, 64), (0, 3, 1, 2)), ((1, 64, 56, 56), (0, 2, 3, 1)), ((3, 64, 49, 16), (0, 1, 3, 2)),
        ((32, 8, 16, 32), (3, 2, 1, 0)), ((16, 64, 128, 4), (0, 3, 2, 1)), ((1, 128, 12, 64), (0, 2, 3, 1)), ((1, 8, 7, 8, 7, 48), (0, 1, 3, 2, 4, 5)),
        ((1, 128, 1, 12, 64), (0, 2, 3, 1, 4)), ((64, 49, 1, 3, 16), (0, 2, 3, 1, 4)), ((8, 128, 1, 32, 4), (0, 2, 3, 1, 4)),
    ]:  # fmt: skip
        yield Case("Transpose", (Given(shape),), {"perm": order})
    for outer, inner in ((4096, 32), (512, 256), (64, 2048)):
        x = Given((outer, inner))
        yield Case("Slice", (x, _numbers(0), _numbers(inner // 2), _numbers(1)))
        yield Case("Split", (x,), {"axis": 1, "num_outputs": 2}, 2)
        yield Case("Concat", (x, x), {"axis": 1})
        yield Case("Pad", (x, _numbers(0, 2, 0, 2)))
        yield Case("Expand", (Given((outer, 1)), _numbers(outer, inner)))
        yield Case("Tile", (x, _numbers(1, 2)))
        yield Case("Gather", (Given((8192, inner)), Given((outer,), INT64, below=8192)))
        yield Case("Gather", (x, Given((inner // 2,), INT64, below=inner)), {"axis": 1})
    for outer, inner in ((4096, 4), (1024, 8)):
        x = Given((outer, inner))
        yield Case("Concat", (x, x), {"axis": 1})
        yield Case("Tile", (x, _numbers(1, 2)))
        yield Case("Expand", (Given((outer, 1, inner)), _numbers(outer, 8, inner)))
    yield Case("DepthToSpace", (Given((1, 64, 56, 56)),), {"blocksize": 2})
    yield Case("SpaceToDepth", (Given((1, 16, 112, 112)),), {"blocksize": 2})
    x = Given((512, 256))
    yield Case("GatherElements", (x, Given((512, 256), INT64, below=256)), {"axis": 1})
    yield Case("ScatterElements", (x, Given((512, 256), INT64, below=256), x), {"axis": 1})
    yield Case("ScatterND", (x, Given((256, 1), INT64, below=512), Given((256, 256))))
    for source, target in ((FLOAT, INT64), (INT64, FLOAT), (FLOAT, _HALF), (_HALF, FLOAT), (FLOAT, _BOOL), (_BOOL, FLOAT)):
        yield Case("Cast", (Given((256, 512), source),), {"to": target})


def layers() -> Iterator[Case]:
    """Yields attention, recurrent layers, pools in both layouts, resizing and other operators worth a
    measurement.
    """
    for batch, tokens, heads, width in [(1, 64, 4, 64), (1, 197, 3, 64), (64, 49, 3, 16), (1, 256, 12, 64)]:
        part = Given((batch, heads, tokens, width))
        yield Case("Attention", (part, part, part))
        flat = Given((batch, tokens, heads * width))
        yield Case("com.microsoft.MultiHeadAttention", (flat, flat, flat), {"num_heads": heads})
    for key, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for inner, hidden in ((64, 64), (128, 256)):
            yield Case(key, (Given((32, 1, inner)), _weights(1, gates * hidden, inner), _weights(1, gates * hidden, hidden)), {"hidden_size": hidden})
    for channels, size, window in ((32, 56, 2), (64, 28, 3), (64, 28, 5)):
        image = Given((1, channels, size, size))
        yield Case("MaxPool", (image,), {"kernel_shape": (window, window), "strides": (2, 2)})
        # Later versions take the elements of a window one by one.
        for opset in (18, 23):
            yield Case("AveragePool", (image,), {"kernel_shape": (window, window), "strides": (2, 2)}, opset=opset)
            yield Case("AveragePool", (image,), {"kernel_shape": (window, window)}, opset=opset)
    for channels, length, window, step in ((15, 1024, 2, 2), (15, 1024, 5, 1), (15, 512, 3, 3), (15, 2048, 8, 8)):
        for name in ("MaxPool", "AveragePool"):
            yield Case(name, (Given((4, channels, length)),), {"kernel_shape": (window,), "strides": (step,)}, opset=18)
            yield Case(name, (Given((4, channels, 1, length)),), {"kernel_shape": (1, window), "strides": (1, step)}, opset=18)
    for channels, size, window, step in ((64, 112, 3, 2), (64, 56, 3, 1), (192, 28, 3, 2), (64, 56, 2, 2), (512, 14, 5, 1)):
        for name in ("MaxPool", "AveragePool"):
            windows = {"kernel_shape": (window, window), "strides": (step, step), "pads": (window // 2,) * 4}
            yield Case(f"com.microsoft.nchwc.{name}", (Given((1, channels, size, size)),), windows)
    for channels, size in ((32, 112), (96, 56), (240, 28), (672, 14), (1280, 7)):
        yield Case("com.microsoft.nchwc.GlobalAveragePool", (Given((1, channels, size, size)),))
    for channels, before, after in ((96, 1, 56), (240, 1, 28), (672, 1, 14), (64, 28, 56)):
        scales = {"scales": (1, 1, after // before, after // before)}
        yield Case("com.microsoft.nchwc.Upsample", (Given((1, channels, before, before)),), scales)
        linear = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        yield Case("com.microsoft.nchwc.Upsample", (Given((1, channels, before, before)),), scales | linear)
    image = Given((1, 32, 28, 28))
    yield Case("Resize", (image, None, None, _numbers(1, 32, 56, 56)), {"mode": "nearest"})
    twice = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    yield Case("Resize", (image, None, None, _numbers(1, 32, 56, 56)), twice)
    yield Case("Resize", (image, None, None, _numbers(1, 32, 56, 56)), {"mode": "linear"})
    yield Case("Resize", (image, None, None, _numbers(1, 32, 56, 56)), {"mode": "cubic"})
    yield Case("GridSample", (image, Given((1, 56, 56, 2))))
    yield Case("CumSum", (Given((128, 512)), Given((), INT64, True, [1])))
    yield Case("TopK", (Given((128, 512)), _numbers(5)), {"axis": -1}, 2)
    yield Case("DFT", (Given((64, 256, 1)), None, Given((), INT64, True, [1])))
    yield Case("ConstantOfShape", (_numbers(256, 512),))
    yield Case("Range", (Given((), FLOAT, True, [0]), Given((), FLOAT, True, [100000]), Given((), FLOAT, True, [1])))


def quantized() -> Iterator[Case]:
    """Yields products and Convs of integers, and conversions to them and back."""
    scale, zero = Given((), FLOAT, True, [1]), Given((), _BYTES, True, [0])
    signed = Given((), _SIGNED, True, [0])
    for rows_, inner, columns in [(1, 768, 768), (64, 256, 1024), (128, 768, 768)]:
        a, b = Given((rows_, inner), _BYTES, below=255), Given((inner, columns), _SIGNED, True, below=127)
        yield Case("MatMulInteger", (a, b))
        yield Case("QLinearMatMul", (a, scale, zero, b, scale, signed, scale, zero))
        yield Case("com.microsoft.DynamicQuantizeMatMul", (Given((rows_, inner)), b, scale, signed))
    for channels, size in ((64, 28), (128, 14)):
        image, filters = Given((1, channels, size, size), _BYTES, below=255), Given((channels, channels, 3, 3), _SIGNED, True, below=127)
        yield Case("QLinearConv", (image, scale, zero, filters, scale, signed, scale, zero), {"pads": (1, 1, 1, 1)})
    yield Case("QuantizeLinear", (Given((256, 512)), scale, zero))
    yield Case("DequantizeLinear", (Given((256, 512), _BYTES, below=255), scale, zero))
    yield Case("DynamicQuantizeLinear", (Given((256, 512)),), {}, 3)


def all_cases() -> list[Case]:
    """Returns every case that measures a class of work."""
    return [*elementwise(), *matrices(), *convolutions(), *rows(), *moves(), *layers(), *quantized()]

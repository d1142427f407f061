"""The seven graphs that TASO and Tensat were measured on, as ONNX models with random weights.

The input is a name of `GRAPHS`, a factor for the number of channels, and the source of weights. The
output is a model of opset 17, of float32 tensors, batch 1 and static shapes, without bias,
BatchNormalization and Softmax. Its operators are those of the published graph at any width, and at
width 1 so are its sizes. There a Conv may have a fused Relu, which ONNX cannot express: it is a
Conv and a Relu here. There a `noop` joins several results: here they are the graph's outputs.

`python -m tests.support.taso_models NAME FILE [--width F]` writes one.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]
Weight = Callable[[str, Shape], onnx.TensorProto]


def random_weight(name: str, shape: Shape) -> onnx.TensorProto:
    """Returns normally distributed numbers, the same for the same name and shape.

    Their scale keeps signals as large as they are.
    """
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    fan_in = shape[0] if len(shape) == 2 else math.prod(shape[1:])
    return numpy_helper.from_array(generator.standard_normal(shape, np.float32) * np.float32(math.sqrt(2 / fan_in)), name)


def absent_weight(name: str, shape: Shape) -> onnx.TensorProto:
    """Returns a weight of a missing file, for tests that read only the graph."""
    tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="absent")
    return tensor


@dataclass(frozen=True)
class Value:
    """A tensor of the graph."""

    name: str
    shape: Shape


class Builder:
    """A graph that grows node by node. Every method returns the value of the node it adds."""

    def __init__(self, name: str, weight: Weight) -> None:
        self.name = name
        self._weight = weight
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[onnx.TensorProto] = []
        self._inputs: list[Value] = []

    def model(self, outputs: Sequence[Value]) -> onnx.ModelProto:
        """Returns a model of all added nodes, with these outputs."""
        inputs = [helper.make_tensor_value_info(value.name, TensorProto.FLOAT, value.shape) for value in self._inputs]
        results = [helper.make_tensor_value_info(value.name, TensorProto.FLOAT, value.shape) for value in outputs]
        graph = helper.make_graph(self._nodes, self.name, inputs, results, self._tensors)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])

    def input(self, *shape: int) -> Value:
        self._inputs.append(Value(f"x{len(self._inputs)}", shape))
        return self._inputs[-1]

    def weight(self, *shape: int) -> Value:
        tensor = self._weight(f"w{len(self._tensors)}", shape)
        self._tensors.append(tensor)
        return Value(tensor.name, shape)

    def node(self, operator: str, inputs: Sequence[Value], shape: Shape, **attributes: Any) -> Value:
        name = f"{operator.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, [value.name for value in inputs], [name], name, **attributes))
        return Value(name, shape)

    def unary(self, operator: str, x: Value) -> Value:
        return self.node(operator, [x], x.shape)

    def binary(self, operator: str, x: Value, y: Value) -> Value:
        assert x.shape == y.shape
        return self.node(operator, [x, y], x.shape)

    def matmul(self, x: Value, y: Value) -> Value:
        assert x.shape[-1] == y.shape[-2]
        return self.node("MatMul", [x, y], (*x.shape[:-1], y.shape[-1]))

    def transpose(self, x: Value, *perm: int) -> Value:
        return self.node("Transpose", [x], tuple(x.shape[axis] for axis in perm), perm=perm)

    def reshape(self, x: Value, *shape: int) -> Value:
        sizes = numpy_helper.from_array(np.array(shape, np.int64), f"sizes{len(self._tensors)}")
        self._tensors.append(sizes)
        return self.node("Reshape", [x, Value(sizes.name, (len(shape),))], shape)

    def concat(self, *parts: Value) -> Value:
        first = parts[0].shape
        return self.node("Concat", parts, (first[0], sum(part.shape[1] for part in parts), *first[2:]), axis=1)

    def conv(self, x: Value, channels: int, kernel: int | tuple[int, int], stride: int = 1, group: int = 1, valid: bool = False, relu: bool = True) -> Value:
        """Adds a Conv, and a Relu where the published graph fuses one.

        Padding is as in SAME_UPPER, unless the Conv is `valid`.
        """
        sizes = (kernel, kernel) if isinstance(kernel, int) else kernel
        w = self.weight(channels, x.shape[1] // group, *sizes)
        pads, spatial = _window(x.shape[2:], sizes, stride, valid)
        y = self.node("Conv", [x, w], (x.shape[0], channels, *spatial), kernel_shape=sizes, strides=(stride, stride), group=group, pads=pads)
        return self.unary("Relu", y) if relu else y

    def pool(self, operator: str, x: Value, kernel: int, stride: int, valid: bool = False) -> Value:
        pads, spatial = _window(x.shape[2:], (kernel, kernel), stride, valid)
        return self.node(operator, [x], (*x.shape[:2], *spatial), kernel_shape=(kernel, kernel), strides=(stride, stride), pads=pads)


def _window(sizes: Shape, kernel: Shape, stride: int, valid: bool) -> tuple[Shape, Shape]:
    """Returns the pads and the sizes of the result."""
    if valid:
        return (0,) * (2 * len(sizes)), tuple((size - length) // stride + 1 for size, length in zip(sizes, kernel, strict=True))
    results = tuple(-(-size // stride) for size in sizes)
    totals = [max(0, (result - 1) * stride + length - size) for size, result, length in zip(sizes, results, kernel, strict=True)]
    return (*(total // 2 for total in totals), *(total - total // 2 for total in totals)), results


def nasrnn(b: Builder, width: float) -> list[Value]:
    """Five steps of a recurrent cell from an architecture search.

    Its products have one row, so only launches matter.
    """
    size = scaled(512, width)
    inputs = [b.input(1, size) for _ in range(5)]
    state = b.weight(1, size)
    for x in inputs:
        t = [b.binary("Add", b.matmul(x, b.weight(size, size)), b.matmul(state, b.weight(size, size))) for _ in range(8)]
        m0 = b.binary("Add", b.unary("Relu", t[0]), b.unary("Sigmoid", t[3]))
        m1 = b.binary("Add", b.unary("Sigmoid", t[1]), b.unary("Tanh", t[2]))
        m2 = b.binary("Mul", b.unary("Sigmoid", t[4]), b.unary("Tanh", t[5]))
        m3 = b.binary("Mul", b.unary("Sigmoid", t[6]), b.unary("Relu", t[7]))
        m4 = b.binary("Add", b.unary("Sigmoid", m1), b.unary("Tanh", m2))
        m5 = b.binary("Mul", b.unary("Tanh", m0), b.unary("Tanh", m3))
        state = b.unary("Tanh", b.binary("Mul", b.unary("Tanh", m4), b.unary("Tanh", m5)))
    return [state]


def bert(b: Builder, width: float) -> list[Value]:
    """Both papers call it BERT, though it differs.

    Its attention has no Softmax and is off the main path, and no nodes follow it.
    """
    # Nothing transposes the keys. So there are as many tokens as a head has channels, and the width
    # scales the number of heads.
    tokens, heads = 64, scaled(16, width)
    size = heads * tokens
    t = b.unary("Relu", b.input(tokens, size))
    outputs: list[Value] = []
    for _ in range(8):
        q, k, v = (b.transpose(b.reshape(b.matmul(t, b.weight(size, size)), tokens, heads, tokens), 1, 0, 2) for _ in range(3))
        outputs.append(b.reshape(b.transpose(b.matmul(b.matmul(q, k), v), 1, 0, 2), tokens, size))
        t = b.matmul(t, b.weight(size, size))
    return [*outputs, t]


def resnext(b: Builder, width: float) -> list[Value]:
    """ResNeXt-50 in 32 groups, without its classifier."""
    x = b.pool("MaxPool", b.conv(b.input(1, 3, 224, 224), scaled(64, width), 7, 2), 3, 2)
    for stage, (blocks, channels) in enumerate(((3, 4), (4, 8), (6, 16), (3, 32))):
        inner = 32 * scaled(channels, width)  # this keeps 32 groups at every width
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            y = b.conv(b.conv(x, inner, 1), inner, 3, stride, group=32)
            y = b.conv(y, 2 * inner, 1, relu=False)
            shortcut = b.conv(x, 2 * inner, 1, stride) if block == 0 else x
            x = b.unary("Relu", b.binary("Add", y, shortcut))
    return [x]


def nasnet(b: Builder, width: float) -> list[Value]:
    """NasNet-A: cells of five sums of separable Convs and pools, whose results are concatenated."""
    x = b.pool("MaxPool", b.conv(b.input(1, 3, 224, 224), scaled(64, width), 7, 2), 3, 2)
    for channels in (128, 256, 512):
        before, current = x, x
        for _ in range(5):
            before, current = current, _normal_cell(b, before, current, scaled(channels, width))
        x = _reduction_cell(b, before, current, scaled(2 * channels, width))
    return [x]


def _separable(b: Builder, x: Value, kernel: int, stride: int = 1) -> Value:
    channels = x.shape[1]
    return b.conv(b.conv(x, channels, kernel, stride, group=channels, relu=False), channels, 1, relu=False)


def _normal_cell(b: Builder, before: Value, current: Value, channels: int) -> Value:
    current, before = b.conv(current, channels, 1), b.conv(before, channels, 1)
    return b.concat(
        b.binary("Add", _separable(b, current, 3), current),
        b.binary("Add", _separable(b, before, 3), _separable(b, current, 3)),
        b.binary("Add", b.pool("AveragePool", current, 3, 1), before),
        b.binary("Add", b.pool("AveragePool", before, 3, 1), b.pool("AveragePool", before, 3, 1)),
        b.binary("Add", _separable(b, before, 3), _separable(b, before, 3)),
    )


def _reduction_cell(b: Builder, before: Value, current: Value, channels: int) -> Value:
    current, before = b.conv(current, channels, 1), b.conv(before, channels, 1)
    first = b.binary("Add", _separable(b, before, 7, 2), _separable(b, current, 5, 2))
    second = b.binary("Add", b.pool("MaxPool", current, 3, 2), _separable(b, before, 7, 2))
    third = b.binary("Add", b.pool("AveragePool", current, 3, 2), _separable(b, before, 5, 2))
    fourth = b.binary("Add", b.pool("MaxPool", current, 3, 2), _separable(b, first, 3))
    fifth = b.binary("Add", b.pool("AveragePool", first, 3, 1), second)
    return b.concat(first, second, third, fourth, fifth)


def squeezenet(b: Builder, width: float) -> list[Value]:
    """SqueezeNet 1.1: each fire module has a 1x1 and a 3x3 Conv of one input, side by side."""
    x = b.conv(b.input(1, 3, 224, 224), scaled(64, width), 3, 2, valid=True)
    for pooled, squeezed in ((True, 16), (False, 16), (True, 32), (False, 32), (True, 48), (False, 48), (False, 64), (False, 64)):
        if pooled:
            x = b.pool("MaxPool", x, 3, 2, valid=True)
        x = b.conv(x, scaled(squeezed, width), 1)
        expanded = scaled(4 * squeezed, width)
        x = b.concat(b.conv(x, expanded, 1), b.conv(x, expanded, 3))
    x = b.conv(b.unary("Dropout", x), 1000, 1)
    return [b.reshape(b.pool("AveragePool", x, 13, 1, valid=True), 1, 1000)]


def inception(b: Builder, width: float) -> list[Value]:
    """Inception-v3 without its classifier: branches of many kernels, joined two by two."""

    def chain(x: Value, *convs: tuple[int, int | tuple[int, int]], stride: int = 1) -> Value:
        """Adds consecutive Convs. A stride belongs to the last one, which then has no padding."""
        for channels, kernel in convs[:-1]:
            x = b.conv(x, scaled(channels, width), kernel)
        channels, kernel = convs[-1]
        return b.conv(x, scaled(channels, width), kernel, stride, valid=stride > 1)

    def average(x: Value) -> Value:
        return b.pool("AveragePool", x, 3, 1)

    x = chain(b.input(1, 3, 299, 299), (32, 3), stride=2)
    x = chain(b.conv(x, scaled(32, width), 3, valid=True), (64, 3))
    x = chain(b.pool("MaxPool", x, 3, 2, valid=True), (80, 1))
    x = b.pool("MaxPool", b.conv(x, scaled(192, width), 3, valid=True), 3, 2, valid=True)
    for pooled in (32, 64, 64):
        narrow = b.concat(chain(x, (64, 1)), chain(x, (48, 1), (64, 5)))
        x = b.concat(narrow, b.concat(chain(x, (64, 1), (96, 3), (96, 3)), chain(average(x), (pooled, 1))))
    narrow = b.concat(chain(x, (384, 3), stride=2), chain(x, (64, 1), (96, 3), (96, 3), stride=2))
    x = b.concat(b.pool("AveragePool", x, 3, 2, valid=True), narrow)
    for c in (128, 160, 160, 192):
        narrow = b.concat(chain(x, (192, 1)), chain(x, (c, 1), (c, (1, 7)), (192, (7, 1))))
        long = chain(x, (c, 1), (c, (7, 1)), (c, (1, 7)), (c, (7, 1)), (192, (1, 7)))
        x = b.concat(narrow, b.concat(long, chain(average(x), (192, 1))))
    wide = chain(x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3), stride=2)
    x = b.concat(chain(x, (192, 1), (320, 3), stride=2), wide, b.pool("MaxPool", x, 3, 2, valid=True))
    for _ in range(2):
        second = chain(x, (384, 1))
        third = chain(x, (448, 1), (384, 3))
        x = b.concat(
            chain(x, (320, 1)),
            b.concat(chain(second, (384, (1, 3))), chain(second, (384, (3, 1)))),
            b.concat(chain(third, (384, (1, 3))), chain(third, (384, (3, 1)))),
            chain(b.pool("MaxPool", x, 3, 1), (192, 1)),
        )
    return [b.pool("AveragePool", x, 8, 1, valid=True)]


def vgg(b: Builder, width: float) -> list[Value]:
    """VGG-19: a chain of 3x3 Convs, and three products whose weights are stored transposed."""
    x = b.input(1, 3, 224, 224)
    for channels, convs in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(convs):
            x = b.conv(x, scaled(channels, width), 3)
        x = b.pool("MaxPool", x, 2, 2)
    x = b.reshape(x, 1, math.prod(x.shape))
    hidden = scaled(4096, width)
    for _ in range(2):
        y = b.unary("Dropout", b.unary("Relu", b.matmul(x, b.transpose(b.weight(hidden, x.shape[1]), 1, 0))))
        x = b.reshape(y, 1, hidden)
    return [b.matmul(x, b.transpose(b.weight(1000, hidden), 1, 0))]


GRAPHS: dict[str, Callable[[Builder, float], list[Value]]] = {
    "nasrnn": nasrnn,
    "bert": bert,
    "resnext50": resnext,
    "nasnet": nasnet,
    "squeezenet": squeezenet,
    "inception": inception,
    "vgg19": vgg,
}


def scaled(channels: int, width: float) -> int:
    """Returns the number of channels at this width, at least one."""
    return max(1, round(channels * width))


def build(name: str, width: float = 1.0, weight: Weight = random_weight) -> onnx.ModelProto:
    """Returns one of `GRAPHS`.

    The numbers of classes, images and tokens are the same at every width.
    """
    builder = Builder(name, weight)
    return builder.model(GRAPHS[name](builder, width))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write one of the graphs that TASO and Tensat were measured on.")
    parser.add_argument("name", choices=GRAPHS)
    parser.add_argument("file")
    parser.add_argument("--width", type=float, default=1.0, help="a factor for the number of channels (default: 1)")
    arguments = parser.parse_args()
    onnx.save(build(arguments.name, arguments.width), arguments.file)


if __name__ == "__main__":
    main()

"""The bytes of a model, counted without its weights, are those of its message."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from eqsat.model import file_bytes
from eqsat.model.file_bytes import model_bytes, written_bytes
from tests.support.models import parse


def with_weights(*weights: TensorProto) -> onnx.ModelProto:
    branches = "then_branch = t () => (float[N] a) { a = Neg (x) }, else_branch = e () => (float[N] b) { b = Abs (x) }"
    model = parse(f"g (float[N] x, bool c) => (float[N] y) {{ y = If (c) <{branches}> }}")
    model.graph.initializer.extend(weights)
    return model


def weight(size: int, **fields: str) -> TensorProto:
    tensor = numpy_helper.from_array(np.zeros((size,), np.float32), "weight")
    for name, value in fields.items():
        setattr(tensor, name, value)
    return tensor


def external(location: str, size: int) -> TensorProto:
    tensor = TensorProto(name=f"at {location}", data_type=TensorProto.FLOAT, dims=[size], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


@pytest.mark.parametrize("size", [0, 1, 31, 32, 4095, 4096, 1 << 19])
def test_large_weights_are_counted_without_being_read(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = helper.make_tensor("typed", TensorProto.INT64, [3], [1, 1 << 40, -1])
    half = helper.make_tensor("half", TensorProto.INT4, [size], bytes((size + 1) // 2), raw=True)
    for tensors in ([weight(size)], [weight(size, doc_string="told"), typed, half], [weight(size, doc_string=""), weight(size)]):
        model = with_weights(*tensors)
        for threshold in (0, 1 << 20):
            monkeypatch.setattr(file_bytes, "_LARGE", threshold)
            assert written_bytes(model.graph) == model.graph.ByteSize()
            assert model_bytes(model) == model.ByteSize()


def test_external_weights_count_once_for_each_place() -> None:
    model = with_weights(external("a", 10), external("a", 10), external("b", 7))
    inner = model.graph.node[0].attribute[0].g
    inner.initializer.extend([external("a", 10), external("c", 1)])
    assert written_bytes(model.graph) == model.graph.ByteSize() + 4 * (10 + 7 + 1)
    assert model_bytes(model) == model.ByteSize() + 4 * (10 + 7 + 1)

"""Tensors whose elements do not make up their dimensions, and models that were stripped of all elements."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

import eqsat
from eqsat.errors import InputError
from eqsat.model.tensors import read_tensor


def tensor(**fields: object) -> TensorProto:
    return TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("proto", "reason"),
    [
        (tensor(raw_data=bytes(16)), "tensor 'w' has 16 bytes of elements where its type and dimensions want 24"),
        (tensor(raw_data=bytes(28)), "tensor 'w' has 28 bytes of elements where its type and dimensions want 24"),
        (tensor(float_data=[1, 2, 3]), "tensor 'w' has 3 numbers where its type and dimensions [2, 3] want 6 elements"),
    ],
)
def test_other_elements_than_the_dimensions_want(proto: TensorProto, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        read_tensor(proto, None)
    assert str(caught.value) == reason


def test_a_stripped_tensor_has_none() -> None:
    assert read_tensor(tensor(), None).hollow and read_tensor(tensor(raw_data=b""), None).hollow
    assert not read_tensor(tensor(raw_data=bytes(24)), None).hollow


def test_a_claim_of_gigabytes_is_refused(tmp_path: Path) -> None:
    """The dimensions of a weight of 16 bytes claim 40 GB."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[100_000, 100_000], raw_data=bytes(16))
    value = onnx.helper.make_tensor_value_info
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "g", [value("x", 1, [1, 100_000])], [value("y", 1, [1, 100_000])], [weight])
    onnx.save(onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    with pytest.raises(InputError, match=r"m\.onnx: tensor 'w' has 16 bytes of elements where its type and dimensions want 40000000000$"):
        eqsat.optimize(tmp_path / "m.onnx")

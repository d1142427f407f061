"""Literals of computed shapes mean the same at every size, zero included."""

from __future__ import annotations

import onnx.parser
import pytest
from onnx import TensorProto, numpy_helper

import eqsat
from eqsat.egraph.shape_literals import realized
from eqsat.facts.dims import Dim, mul, symbol
from eqsat.facts.fact import Fact

N, S = symbol("N"), symbol("S")


@pytest.mark.parametrize(
    "wanted, allowzero, sizes",
    [
        ((N, S, 12, 64), 0, (0, 0, 12, 64)),
        ((N, S, 12, 64), 1, (0, 0, 12, 64)),
        ((N, S, -1, 64), 0, (0, 0, -1, 64)),
        ((N, S, -1, 64), 1, None),  # at N = 0 the runtime infers the -1, and with a 0 that copies it does not
        ((mul(N, S), 768), 1, (-1, 768)),
        ((N, mul(S, 12), 64), 0, None),
        ((N, 0, 64), 1, None),
        ((S, -1, 64), 0, None),
        ((N, -1, -1), 0, None),
    ],
)
def test_a_literal_for_a_reshape(wanted: tuple[Dim, ...], allowzero: int, sizes: tuple[int, ...] | None) -> None:
    x, shape = Fact(TensorProto.FLOAT, (N, S, 768)), Fact(TensorProto.INT64, (len(wanted),), ints=wanted)
    found = realized("Reshape", {"allowzero": allowzero}, x, shape)
    assert (None if found is None else tuple(found.array.tolist())) == sizes


# The detection head of a model of images of any size, as PyTorch exports `x.permute(0, 2, 3, 1).view(x.shape[0], -1, 4)`.
_HEAD = """
<ir_version: 8, opset_import: ["": OPSET]>
head (float[N, 4, H, W] x) => (float[N, M, 4] y)
    <int64 zero = {0}, int64[1] zeros = {0}, int64[1] open = {-1}, int64[1] four = {4}>
{
    r = Relu (x)
    last = Transpose <perm = [0, 2, 3, 1]> (r)
    form = Shape (r)
    batch = Gather <axis = 0> (form, zero)
    one = UNSQUEEZE
    wanted = Concat <axis = 0> (one, SIZES)
    y = Reshape (last, wanted)
}
"""


@pytest.mark.parametrize("opset, unsqueeze", [("11", "Unsqueeze <axes = [0]> (batch)"), ("17", "Unsqueeze (batch, zeros)")])
@pytest.mark.parametrize("written, sizes", [("open, four", [0, -1, 4]), ("four, open", [0, 4, -1])])
def test_an_open_size_beside_a_computed_one(opset: str, unsqueeze: str, written: str, sizes: list[int]) -> None:
    model = onnx.parser.parse_model(_HEAD.replace("OPSET", opset).replace("UNSQUEEZE", unsqueeze).replace("SIZES", written))
    result = eqsat.optimize(model)
    assert [node.op_type for node in result.model.graph.node] == ["Relu", "Transpose", "Reshape"]
    assert [numpy_helper.to_array(tensor).tolist() for tensor in result.model.graph.initializer] == [sizes]
    assert result.report["verify"]["status"] == "equal"

"""Literals of computed shapes mean the same at every size, zero included."""

from __future__ import annotations

import pytest
from onnx import TensorProto

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
    ],
)
def test_a_literal_for_a_reshape(wanted: tuple[Dim, ...], allowzero: int, sizes: tuple[int, ...] | None) -> None:
    x, shape = Fact(TensorProto.FLOAT, (N, S, 768)), Fact(TensorProto.INT64, (len(wanted),), ints=wanted)
    found = realized("Reshape", {"allowzero": allowzero}, x, shape)
    assert (None if found is None else tuple(found.array.tolist())) == sizes

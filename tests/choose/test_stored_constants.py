"""Constants that rules made are computed once, for all choices from one encoding."""

from collections.abc import Mapping
from typing import Any

import onnx
import pytest

import eqsat
from eqsat.choose.folding import Folding
from tests.support.models import parse

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[2, 3] y)
<float[3] a = {1.5, 2, 3}, float[3] b = {4, 5, 6}, float[3] c = {7, 8, 9}, float[3] d = {0.5, 3, 2}> {
  s = Add (x, a)
  t = Add (s, b)
  u = Mul (t, c)
  y = Mul (u, d)
}"""


def test_a_constant_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[tuple[object, ...]] = []
    compute = Folding.compute

    def watched(self: Folding, models: Mapping[int, onnx.ModelProto]) -> dict[int, Any]:
        for model in models.values():
            computed.append((*(tensor.raw_data for tensor in model.graph.initializer), *(node.op_type for node in model.graph.node)))
        return compute(self, models)

    monkeypatch.setattr(Folding, "compute", watched)
    result = eqsat.optimize(parse(MODEL))
    assert [node.op_type for node in result.model.graph.node] == ["Add", "Mul"]
    assert len(computed) >= 2 and len(set(computed)) == len(computed)

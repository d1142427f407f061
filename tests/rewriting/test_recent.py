"""Findings about recent models."""

import onnx
from onnx import helper

from eqsat.garbage import MANY
from eqsat.rewriting.recent import Recent


def _model(nodes: int = 0) -> onnx.ModelProto:
    return onnx.ModelProto(graph=onnx.GraphProto(node=[helper.make_node("Neg", ["x"], ["y"])] * nodes))


def test_a_model_is_looked_at_once_and_equal_models_are_two() -> None:
    recent: Recent[int] = Recent()
    one, other = _model(), _model()
    counts = iter(range(10))
    assert [recent.of(model, lambda: next(counts)) for model in (one, other, one, other)] == [0, 1, 0, 1]


def test_the_last_finding_counts() -> None:
    recent: Recent[str] = Recent()
    model = _model()
    assert recent.add(model, "old") == "old"
    recent.add(model, "new")
    assert recent.get(model) == "new"


def test_few_models_are_kept_and_fewer_large_ones() -> None:
    recent: Recent[int] = Recent()
    models = [_model() for _ in range(6)]
    for number, model in enumerate(models):
        recent.add(model, number)
    assert [recent.get(model) for model in models] == [None, None, 2, 3, 4, 5]
    large = _model(MANY)
    recent.add(large, 6)
    assert [recent.get(model) for model in (*models, large)] == [None, None, None, None, None, 5, 6]

"""Verification of files keeps large weights apart, so that they are neither copied nor in messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import eqsat
from eqsat.model.tensors import is_apart
from eqsat.model.weight_file import WORTH
from eqsat.verification.loaded_model import load_models
from tests.support.models import weighted

ROWS = WORTH // 4 // 512
TABLE = np.random.default_rng(0).standard_normal((ROWS, 512), dtype=np.float32)
LOOKUP = "g (int64[N] i) => (float[N, 512] y) { r = Gather (table, i) y = Relu (r) }"


def saved(folder: Path, name: str, text: str, **weights: np.ndarray) -> Path:
    path = folder / f"{name}.onnx"
    onnx.save(weighted(text, **weights), path)
    return path


def test_weights_of_one_name_and_content_are_one(tmp_path: Path) -> None:
    other = TABLE.copy()
    other[-1, -1] += 1
    first = saved(tmp_path, "a", LOOKUP, table=TABLE)
    a, b = load_models(first, saved(tmp_path, "b", LOOKUP, table=TABLE))
    assert is_apart(a.proto.graph.initializer[0]) and a.proto.graph == b.proto.graph
    a, c = load_models(first, saved(tmp_path, "c", LOOKUP, table=other))
    assert is_apart(c.proto.graph.initializer[0]) and a.proto.graph != c.proto.graph and a.folder == c.folder


def test_other_elements_are_found(tmp_path: Path) -> None:
    """Both files hold their weights at the same places."""
    first = saved(tmp_path, "a", LOOKUP, table=TABLE)
    verdict = eqsat.verify(first, saved(tmp_path, "b", LOOKUP, table=TABLE))
    assert verdict.status == "equal" and verdict.notes == ["unchanged: the two models are the same graph; nothing was run"]
    assert eqsat.verify(first, saved(tmp_path, "c", LOOKUP, table=-TABLE)).status == "different"
    renamed = saved(tmp_path, "d", LOOKUP.replace("table", "rows"), rows=TABLE)
    assert eqsat.verify(first, renamed).status == "equal"
    assert eqsat.verify(first, onnx.load(renamed)).status == "equal"


@pytest.mark.slow
def test_rounding_of_large_models_without_floats_among_the_inputs_is_no_difference(tmp_path: Path) -> None:
    """Nothing showed how far rounding carries: weights of more than 128 MiB did not move."""
    table = np.random.default_rng(1).standard_normal((70_000, 512), dtype=np.float32)
    matrix = np.random.default_rng(2).standard_normal((512, 512), dtype=np.float32)
    scale = np.float32(1.1)
    head = "g (int64[N] i) => (float[N, 512] y) { r = Gather (table, i)"
    first = saved(tmp_path, "a", f"{head} p = MatMul (r, w) y = Mul (p, scale) }}", table=table, w=matrix, scale=np.array(scale))
    second = saved(tmp_path, "b", f"{head} y = MatMul (r, w) }}", table=table, w=matrix * scale)
    verdict = eqsat.verify(first, second)
    assert verdict.status == "equal" and verdict.regions is None
    wrong = saved(tmp_path, "c", f"{head} y = MatMul (r, w) }}", table=table, w=matrix * np.float32(1.10001))
    assert eqsat.verify(first, wrong).status == "different"

"""ONNX's own node tests: a model of one operator, or of the function that it stands for, with
inputs and what they give.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any

import onnx
import pytest
from onnx import numpy_helper


@cache
def node_cases() -> dict[str, Any]:
    """All cases by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return {case.name: case for case in collect_testcases(None)}  # type: ignore[arg-type]


def feeds_of(model: onnx.ModelProto, values: list[Any]) -> dict[str, Any]:
    arrays = [numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for value in values]
    return {value.name: array for value, array in zip(model.graph.input, arrays, strict=False)}


def parameters(cases: Iterable[Any]) -> list[Any]:
    """Each case as a parameter of a test; all are slow but the first of each operator."""
    found: list[Any] = []
    seen: set[str] = set()
    for case in cases:
        operator = case.model.graph.node[0].op_type
        found.append(pytest.param(case, id=case.name.removeprefix("test_"), marks=[pytest.mark.slow] if operator in seen else []))
        seen.add(operator)
    return found

"""ONNX's own node tests.

A case is a model of one operator, or of the function that defines it, with inputs and expected
outputs.
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
    """Returns all cases by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return {case.name: case for case in collect_testcases(None)}  # type: ignore[arg-type]


def feeds_of(model: onnx.ModelProto, values: list[Any]) -> dict[str, Any]:
    arrays = [numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for value in values]
    return {value.name: array for value, array in zip(model.graph.input, arrays, strict=False)}


def parameters(cases: Iterable[Any]) -> list[Any]:
    """Returns each case as a parameter of a test. All but the first of each operator are slow."""
    found: list[Any] = []
    seen: set[str] = set()
    for case in cases:
        operator = case.model.graph.node[0].op_type
        found.append(pytest.param(case, id=case.name.removeprefix("test_"), marks=[pytest.mark.slow] if operator in seen else []))
        seen.add(operator)
    return found

"""ONNX's own node tests: `eqsat.optimize` keeps each result.

ONNX Runtime executes a case with its optimizations off; ONNX's reference does so where the runtime
has no kernel. The optimized model must give the same bits on the same engine. If a rule fired that
rounds differently, it must stay within the tolerances of the case, and without such rules the bits
must be the same.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest

import eqsat
from tests.support.dearer import dearer
from tests.support.models import run, run_reference, same, signature
from tests.support.node_cases import feeds_of, node_cases, parameters

# No engine here decodes images.
NOT_EXECUTED = {"ImageDecoder"}


def execute(engine: Callable[..., list[Any]], model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any] | None:
    """Returns the outputs, or None if the engine refuses the model.

    Engines refuse with many kinds of exceptions.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return engine(model, feeds)
        except Exception:
            return None


def of_one_kind(left: Any, right: Any) -> bool:
    """Tells whether two draws of a random operator have the same type and shape."""
    return np.asarray(left).dtype == np.asarray(right).dtype and np.asarray(left).shape == np.asarray(right).shape


def within(left: Any, right: Any, case: Any) -> bool:
    """Tells whether two values differ only by rounding, as the case defines it."""
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(within(*pair, case) for pair in zip(left, right, strict=True))
    left, right = np.asarray(left), np.asarray(right)
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    return left.dtype.kind == "f" and np.allclose(right, left, rtol=case.rtol, atol=case.atol, equal_nan=True)


def fault(case: Any) -> str | None:
    """Returns the fault of a case's optimized model, or None."""
    original = case.model
    before = original.SerializeToString()
    result = eqsat.optimize(original, verify=False)
    optimized = result.model
    if original.SerializeToString() != before:
        return "the given model was changed"
    if (signature(original.graph.input), signature(original.graph.output)) != (signature(optimized.graph.input), signature(optimized.graph.output)):
        return "the inputs or outputs changed"
    if wrong := dearer(result.report):
        return wrong
    onnx.checker.check_model(optimized)
    unlike = difference(case, optimized, same)
    if unlike is None:
        return None
    return difference(case, optimized, lambda left, right: within(left, right, case)) or difference(
        case, eqsat.optimize(original, verify=False, exact=True).model, same
    )


def difference(case: Any, optimized: onnx.ModelProto, equal: Callable[[Any, Any], bool]) -> str | None:
    """Returns the difference between the outputs of a case's optimized model and its original."""
    original = case.model
    for values, _ in case.data_sets:
        feeds = feeds_of(original, values)
        engine = run
        expected = execute(engine, original, feeds)
        if expected is None:
            engine = run_reference
            expected = execute(engine, original, feeds)
        if expected is None:
            return None if NOT_EXECUTED & {node.op_type for node in original.graph.node} else "no engine executes the original"
        actual = execute(engine, optimized, feeds)
        if actual is None:
            return f"{engine.__name__} executes the original but not the optimized model"
        for place, (left, right) in enumerate(zip(expected, actual, strict=True)):
            if not equal(left, right):
                # Of a random operator, two runs of the original differ as well.
                again = (execute(engine, original, feeds) or expected)[place]
                if same(left, again) or not of_one_kind(left, right):
                    return f"{left!r} became {right!r}"
    return None


@pytest.mark.parametrize("case", parameters(node_cases().values()))
def test_a_node_case(case: Any) -> None:
    assert fault(case) is None


def test_all_cases_are_there() -> None:
    """The project's figures refer to a suite of 1,884 cases; a newer onnx has more."""
    assert len(node_cases()) >= 1884

"""Expressions of rules: what is known with symbolic sizes is so at all sizes, Python agrees at
known ones, and work is bounded.
"""

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from onnx import TensorProto

from eqsat.facts.dims import symbol
from eqsat.language import syntax
from eqsat.language.expressions import DEPTH_LIMIT, Unevaluable, evaluate
from eqsat.language.functions import FUNCTIONS
from eqsat.language.syntax import Expression, Name, Number, Place, Spread, Wildcard
from eqsat.language.values import DTYPES, DType, Tensor
from tests.support.expressions import Environments, covers, environments, expressions, read, reason, tensor, value


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(expressions(), environments())
def test_what_is_known_is_so_at_all_sizes(text: str, environment: Environments) -> None:
    symbolic, concrete, sizes = environment
    expression = read(text)
    try:
        found = evaluate(expression, symbolic)
    except Unevaluable:
        return
    try:
        exact = evaluate(expression, concrete)
    except Unevaluable as error:
        # There are more items at some sizes than a list may have; all else that has no value
        # somewhere has none with symbols.
        assert "at most" in error.reason or "more than" in error.reason, error.reason
        return
    assume(exact is not None)  # beyond int64
    assert covers(found, exact, sizes), (found, exact)


# --- at known sizes Python says what an expression is ---


def broadcast(*shapes: list[int]) -> list[int]:
    rank = max(map(len, shapes))
    columns = [{sizes[axis - rank] for sizes in shapes if axis >= rank - len(sizes)} - {1} for axis in range(rank)]
    if any(len(column) > 1 for column in columns):
        raise ValueError("these sizes do not broadcast together")
    return [min(column, default=1) for column in columns]


def inverse(permutation: list[int]) -> list[int]:
    assert sorted(permutation) == list(range(len(permutation)))
    return np.argsort(permutation).tolist()


def moves_only_ones(permutation: list[int], sizes: list[int]) -> bool:
    assert sorted(permutation) == list(range(len(sizes)))
    assume(0 not in sizes)  # of no elements nothing tells what moved
    elements = np.arange(math.prod(sizes))
    return bool((elements.reshape(sizes).transpose(permutation).ravel() == elements).all())


def broadcasts_to(sizes: list[int], target: list[int]) -> bool:
    return len(sizes) <= len(target) and all(size in (1, other) for size, other in zip(sizes[::-1], target[::-1], strict=False))


def shape_of(x: Tensor) -> list[int]:
    assert x.fact.shape is not None
    return [size for size in x.fact.shape if isinstance(size, int)]


def count_from(count: int | list[int]) -> int:
    return count if isinstance(count, int) else len(count)


PYTHON: dict[str, Any] = {
    "dim": lambda x, axis: shape_of(x)[axis],
    "rank": lambda x: len(shape_of(x)),
    "shape": shape_of,
    "elements": lambda x: math.prod(shape_of(x)),
    "values": lambda x: list(x.fact.ints),
    "prod": math.prod,
    "range": lambda *ends: list(range(*ends)),
    "reversed": lambda items: items[::-1],
    "unique": lambda items: list(dict.fromkeys(items)),
    "index": lambda items, item: items.index(item),
    "count": lambda items, item: items.count(item),
    "repeat": lambda item, count: [item] * count,
    "ones": lambda count: [1] * count_from(count),
    "zeros": lambda count: [0] * count_from(count),
    "normalized": lambda axes, rank: [range(rank)[axis] for axis in axes] if isinstance(axes, list) else range(rank)[axes],
    "is_permutation": lambda items, count: len(items) == count and sorted(items) == list(range(count)),
    "inverse": inverse,
    "moves_only_ones": moves_only_ones,
    "bound": lambda position, size: slice(position, None).indices(size)[0],
    "broadcast": broadcast,
    "broadcasts_to": broadcasts_to,
    "same_without_ones": lambda a, b: [size for size in a if size != 1] == [size for size in b if size != 1],
    "sqrt": math.sqrt,
    "exp": math.exp,
    "floor": math.floor,
    "ceil": math.ceil,
    **{name: DTYPES[name] for name in ("float16", "uint8")},
    **{name: lambda *arguments, name=name: FUNCTIONS[name].apply(arguments) for name in ("bits", "floating", "signed", "integral", "lossless")},
}


def as_python(item: Any) -> Any:
    return [as_python(part) for part in item] if isinstance(item, tuple) else item


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(expressions(), environments())
def test_known_values_are_those_of_python(text: str, environment: Environments) -> None:
    _, concrete, _ = environment
    assume("2 **" not in text)  # below 0 it is a float in Python, and has no value in the language
    names = {**PYTHON, **{name: as_python(item) for name, item in concrete.items()}}
    try:
        expected = eval(text, names)
    except (ArithmeticError, LookupError, ValueError, AssertionError):
        # Floats have no errors here, but infinities and NaN.
        if not any(part in text for part in ("/ ", "sqrt", "exp", "floor", "ceil", "round")):
            assert reason(text, **concrete)
        return
    try:
        found = value(text, **concrete)
    except Unevaluable as error:
        assert "at most" in error.reason or "more than" in error.reason, (error.reason, expected)
        return
    assume(found is not None)  # beyond int64
    if isinstance(expected, float) and isinstance(found, float):
        assert math.isclose(found, expected, rel_tol=1e-12) or expected != expected  # libraries round exp differently
    else:
        assert as_python(found) == expected
    assert isinstance(found, bool) is isinstance(expected, bool)


def test_the_place_is_the_innermost_part_without_value() -> None:
    with pytest.raises(Unevaluable) as caught:
        evaluate(read("[0, 1 + (2 // 0)]"), {})
    assert caught.value.place == Place(1, 10)


@pytest.mark.parametrize("expression", [Wildcard(), Spread(Name("x")), syntax.Constant("T", Number(1, "1")), syntax.Term("Relu", (), None, (Name("x"),))])
def test_what_is_no_number_or_list_has_no_value(expression: Expression) -> None:
    with pytest.raises(Unevaluable, match="no number, list"):
        evaluate(expression, {})


def test_logic_and_chains_stop_early() -> None:
    assert value("1 == 2 and 1 // 0 == 0") is False
    assert value("1 == 1 or 1 // 0 == 0") is True
    assert value("3 < 2 < 1 // 0") is False
    assert value("1 if 1 == 1 else 1 // 0") == 1
    assert value("rank(x) > 4 and dim(x, 4) == 1", x=tensor((2, 4))) is False


def test_a_name_of_the_rule_hides_a_data_type() -> None:
    assert value("float16", float16=3) == 3
    assert value("float16") == DType(int(TensorProto.FLOAT16))
    assert str(value("float16")) == "float16"


# --- bounded work ---

A, B, C, D, E, F = (symbol(name) for name in "ABCDEF")
HOSTILE = [
    "range(10 ** 18)",
    "repeat(0, 10 ** 18)",
    "ones(5000)",
    "range(4096) + range(4096)",
    "[*range(4096), *range(4096)]",
    "[[[0 for i in range(4096)] for j in range(4096)] for k in range(4096)]",
    "[sum(range(4096)) for i in range(4096)]",
    "[reversed(l) for i in range(4096)]",
    "[[l, l] for i in range(2)]",
    "[l == l for i in range(4096)]",
    "[l in [l, l] for i in range(4096)]",
    "all([[*l] == l[:] for i in l])",
    "[[i] for i in [[j] for j in [[k] for k in range(3000)]]]",
    "unique(range(1000))",
    "inverse(range(1000))",
    "regroup(repeat(2, 4096), repeat(2, 4096))",
    "sorted([A * i + B for i in range(4000)])",
    "[(A + B + C + D + E + F) ** 4 <= A * i for i in range(4096)]",
    "[max(A * B, C, D) // 3 - min(E * A + i, F) // (i + 7) <= A // (2 + i) for i in range(4096)]",
    "[A ** 6 + (A + B) ** 3 + (A + B + C) ** 4 - i <= 0 for i in range(4096)]",
    "-" * (DEPTH_LIMIT + 1) + "1",
    " + ".join(["1"] * (DEPTH_LIMIT + 2)),
    "[" * 40 + "]" * 40,
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("text", HOSTILE, ids=[text[:40] for text in HOSTILE])
def test_work_is_bounded(text: str) -> None:
    expression = read(text)
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    names = {"A": A, "B": B, "C": C, "D": D, "E": E, "F": F, "l": tuple(range(3000))}
    sys.setprofile(count)
    try:
        evaluate(expression, names)
    except Unevaluable as error:
        found = error.reason
    else:
        found = ""
    finally:
        sys.setprofile(None)
    assert any(part in found for part in ("steps", "at most", "more than", "deep"))
    assert calls < 1_000_000


def test_a_long_list_of_a_model_is_only_read() -> None:
    many = tuple(range(100_000))
    assert value("l[99999]", l=many) == 99_999
    assert "more than" in reason("l == l", l=many)


def test_what_is_the_same_in_all_rounds_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    product = FUNCTIONS["prod"]
    monkeypatch.setitem(FUNCTIONS, "prod", replace(product, implementation=lambda *given: (calls.append(given), product.implementation(*given))[1]))
    assert evaluate(read("[p % prod(k) for p in range(8) if p < prod(k) + 1]"), {"k": (2, 3)}) == (0, 1, 2, 3, 4, 5, 0)
    assert len(calls) == 2


def test_a_loop_in_a_loop_begins_anew() -> None:
    assert evaluate(read("[[q * prod([p, p]) for q in range(3)] for p in range(3)]"), {}) == ((0, 0, 0), (0, 1, 2), (0, 4, 8))
    assert evaluate(read("[p + n for p in [q + n for q in range(2)] + [n]]"), {"n": 5}) == (10, 11, 10)


def test_loops_in_loops_are_read_once_each() -> None:
    """Two readings of each loop, for one round and for several, would be as many as 2 to the power of 40."""
    text = "n"
    for place in range(40):
        text = f"[{text} for i{place} in [n]][0]"
    assert evaluate(read(text), {"n": 3}) == 3

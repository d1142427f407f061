"""Typing judgements of rules: what is known with symbolic sizes is so at all sizes, and what is
written is the type.
"""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqsat.facts import dims
from eqsat.facts.fact import Fact
from eqsat.language import syntax
from eqsat.language.expressions import Unevaluable, evaluate
from eqsat.language.judgements import judge
from eqsat.language.syntax import Expression, Spread, Type, Wildcard
from eqsat.language.values import DType, Tensor, Value, is_list
from tests.support.expressions import FLOAT, INT64, Environments, M, N, covers, environments, read


def fact_of(tensor: Value | None) -> Fact:
    assert isinstance(tensor, Tensor)
    return tensor.fact


# --- typing judgements ---

TYPES = st.builds(
    Type,
    st.sampled_from(["T", "U", "V", "float", "_"]),
    st.none() | st.lists(st.sampled_from(["m", "a", "N", "n", "2 * m", "m + 1", "3", "_", "u", "*s", "*r", "*_", "*ones(s)"]), max_size=4).filter(
        lambda items: sum(item.startswith("*") for item in items) < 2
    ).map(lambda items: tuple(size(item) for item in items)),
)  # fmt: skip


def size(text: str) -> Expression:
    if text.startswith("*"):
        return Spread(size(text[1:]))
    return Wildcard() if text == "_" else read(text)


def judged(type: Type, fact: Fact, names: Mapping[str, Value | None]) -> tuple[bool | None, dict[str, Value | None]] | None:
    found = dict(names)
    try:
        return judge(type, fact, found), found
    except Unevaluable:
        return None


@settings(max_examples=500, deadline=None)
@given(TYPES, environments())
def test_judgements_hold_at_all_sizes(type: Type, environment: Environments) -> None:
    symbolic, concrete, sizes = environment
    for name in "xyz":
        found = judged(type, fact_of(symbolic[name]), symbolic)
        if found is None or found[0] is None:
            continue
        exact = judged(type, fact_of(concrete[name]), concrete)
        assert exact is not None and exact[0] is found[0]
        if found[0]:
            assert found[1].keys() == exact[1].keys()
            assert all(covers(item, exact[1][key], sizes) for key, item in found[1].items() if key not in symbolic)


@settings(max_examples=500, deadline=None)
@given(TYPES, environments())
def test_judgements_at_known_sizes(type: Type, environment: Environments) -> None:
    _, concrete, _ = environment
    fact = fact_of(concrete["x"])
    assert fact.shape is not None
    found = judged(type, fact, concrete)
    if found is not None and found[0] and type.dims is not None:
        # What is written, with the names that were bound, is the shape.
        written = [item for item in type.dims if not isinstance(item, Wildcard) and item != Spread(Wildcard())]
        listed = evaluate(syntax.Items(tuple(written)), found[1])
        assert is_list(listed)
        rest = list(fact.shape)
        assert all(item in rest for item in listed)
        assert len(written) < len(type.dims) or listed == fact.shape
    if found is not None and type.dtype in ("float", "V", "_") and type.dims is not None:
        fixed = [item for item in type.dims if not isinstance(item, Spread)]
        fits = len(fixed) == len(fact.shape) if len(fixed) == len(type.dims) else len(fixed) <= len(fact.shape)
        if not fits or all(isinstance(item, Wildcard | Spread) and item in (Wildcard(), Spread(Wildcard())) for item in type.dims):
            assert found[0] is fits


def typed(dtype: str, *sizes: str) -> Type:
    return Type(dtype, tuple(map(size, sizes)))


JUDGED: list[tuple[Type, Fact, dict[str, Value | None], bool | None, dict[str, Value | None]]] = [
    (Type("T", None), Fact(FLOAT), {}, True, {"T": DType(FLOAT)}),
    (Type("T", None), Fact(FLOAT), {"T": DType(INT64)}, False, {}),
    (Type("T", None), Fact(FLOAT), {"T": None}, None, {}),
    (Type("T", None), Fact(), {}, None, {}),
    (Type("_", None), Fact(), {}, True, {}),
    (Type("float", None), Fact(FLOAT), {}, True, {}),
    (Type("float", None), Fact(INT64), {}, False, {}),
    (Type("_", None), Fact(other=b"sequence"), {}, False, {}),
    (typed("_", "m", "*k"), Fact(0, (N, 3, M)), {}, True, {"m": N, "k": (3, M)}),
    (typed("_", "*k", "m"), Fact(0, (N, 3, M)), {}, True, {"m": M, "k": (N, 3)}),
    (typed("_", "m", "*k", "n"), Fact(0, (N, M)), {}, True, {"m": N, "n": M, "k": ()}),
    (typed("_", "m", "*k", "n"), Fact(0, (N,)), {}, False, {}),
    (typed("_", "m", "m"), Fact(0, (N, N)), {}, True, {"m": N}),
    (typed("_", "m", "m"), Fact(0, (N, M)), {}, None, {}),
    (typed("_", "m", "m"), Fact(0, (N, dims.add(N, 1))), {}, False, {}),
    (typed("_", "2 * m", "m"), Fact(0, (dims.mul(N, 2), N)), {}, True, {"m": N}),
    (typed("_", "2 * m", "m"), Fact(0, (7, 3)), {}, False, {}),
    (typed("_", "2 * m", "m"), Fact(0, (M, 3)), {}, None, {}),
    (typed("_", "3", "m"), Fact(0, (4, None)), {}, False, {}),
    (typed("_", "3", "m"), Fact(0, (3, None)), {}, None, {}),
    (typed("_", "3", "_"), Fact(0, (3, None)), {}, True, {}),
    (typed("_", "3", "*k"), Fact(0, (3, None)), {}, True, {"k": (None,)}),
    (typed("_", "*k"), Fact(0, (3, None)), {"k": (3, 4)}, None, {}),
    (typed("_", "*k"), Fact(0, (3, None)), {"k": (4, 4)}, False, {}),
    (typed("_", "*k"), Fact(0, (3, None)), {"k": (3,)}, False, {}),
    (typed("_", "*ones(k)", "m"), Fact(0, (1, 1, 3)), {"k": (5, 6)}, True, {"m": 3}),
    (typed("_", "*_"), Fact(), {}, True, {}),
    (typed("_", "*k"), Fact(), {}, None, {}),
    (typed("_"), Fact(0, ()), {}, True, {}),
    (typed("_"), Fact(0, (1,)), {}, False, {}),
    (typed("_", "_"), Fact(), {}, None, {}),
    (typed("float", "3"), Fact(0, (4,)), {}, False, {}),
]  # fmt: skip


@pytest.mark.parametrize(("type", "fact", "names", "expected", "bound"), JUDGED)
def test_judgements(type: Type, fact: Fact, names: dict[str, Value | None], expected: bool | None, bound: dict[str, Value | None]) -> None:
    environment = dict(names)
    assert judge(type, fact, environment) is expected
    if expected:
        assert environment == {**names, **bound}


@pytest.mark.parametrize("sizes", [("1 // 0",), ("k",), ("*m",), ('"a"',)])
def test_judgements_without_value(sizes: tuple[str, ...]) -> None:
    with pytest.raises(Unevaluable):
        judge(typed("_", *sizes), Fact(0, (3,)), {"k": (1,), "m": 3})

"""Calls become the nodes of their functions, and compute the same bits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import helper

import eqsat
from eqsat.control.calls import inlined
from eqsat.errors import InputError
from tests.support.models import assert_same, nodes, operators, parse, random_feeds, run_reference, same

HEAD = '<ir_version: 10, opset_import: ["" : 18, "local" : 1]>\n'
FUNCTION = '\n<domain: "local", opset_import: ["" : 18, "local" : 1]> '
CHAIN = "a = Exp(x) b = Sin(a) c = Mul(b, x) d = Cos(c) e = Tanh(d)"


def read(graph: str, *functions: str) -> onnx.ModelProto:
    return parse(HEAD + graph + "".join(FUNCTION + function for function in functions))


CASES = {
    "called once": (
        ["g (float[2] x) => (float[2] y) { y = local.f(x) }", f"f (x) => (y) {{ {CHAIN} y = Neg(e) }}"],
        {"Exp": 1, "Sin": 1, "Mul": 1, "Cos": 1, "Tanh": 1, "Neg": 1},
    ),
    "called twice, and no larger": (
        ["g (float[2] x) => (float[2] y) { a = local.f(x) y = local.f(a) }", "f (x) => (y) { y = Neg(x) }"],
        {"Neg": 2},
    ),
    "functions in functions": (
        ["g (float[2] x) => (float[2] y) { y = local.f(x) }", f"h (x) => (y) {{ {CHAIN} y = Neg(e) }}", "f (x) => (y) { a = Abs(x) y = local.h(a) }"],
        {"Abs": 1, "Exp": 1, "Sin": 1, "Mul": 1, "Cos": 1, "Tanh": 1, "Neg": 1},
    ),
    "names that are taken": (
        ["g (float[2] x) => (float[2] y) { a = Abs(x) a_1 = Neg(x) b = local.f(a_1) y = Add(a, b) }",
         "f (a) => (b) { a_1 = Exp(a) x = Sin(a_1) b = Mul(x, a) }"],
        {"Abs": 1, "Neg": 1, "Exp": 1, "Sin": 1, "Mul": 1, "Add": 1},
    ),
    "arguments that are absent": (
        ["g (float[2] x, float m) => (float[2] y) { y = local.f(x, , m) }", "f (x, low, high) => (y) { y = Clip(x, low, high) }"],
        {"Clip": 1},
    ),
    "results that nobody takes": (
        ["g (float[2] x) => (float[2] y) { , y = local.f(x) }", "f (x) => (a, b) { a = Exp(x) b = Sin(x) }"],
        {"Exp": 1, "Sin": 1},
    ),
    "attributes, given and by default": (
        ["g (float[2] x) => (float[2] y) { y = local.f<a = 0.5>(x) }",
         "f <a, b: float = 0.25> (x) => (y) { h = LeakyRelu<alpha: float = @a>(x) y = Elu<alpha: float = @b>(h) }"],
        {"LeakyRelu": 1, "Elu": 1},
    ),
    "an attribute that is given has no default": (
        ["g (float[2] x) => (float[2] y) { y = local.f<b = 0.75>(x) }", "f <b: float = 0.25> (x) => (y) { y = Elu<alpha: float = @b>(x) }"],
        {"Elu": 1},
    ),
    "an attribute that nobody gives": (
        ["g (float[2] x) => (float[2] y) { y = local.f(x) }", "f <a> (x) => (y) { y = LeakyRelu<alpha: float = @a>(x) }"],
        {"LeakyRelu": 1},
    ),
    "attributes that pass through": (
        ["g (float[2] x) => (float[2] y) { y = local.f<a = 0.5>(x) }", "h <b> (x) => (y) { y = Elu<alpha: float = @b>(x) }",
         "f <a> (x) => (y) { y = local.h<b: float = @a>(x) }"],
        {"Elu": 1},
    ),
    "bodies that capture arguments": (
        [
            "g (float[2] x, bool c) => (float[2] y) { u = Neg(x) y = local.f(u, c) }",
            """f (x, c) => (y) { k = Exp(x) y = If(c) <then_branch = p () => (float[2] u) { u = Add(k, x) },
                else_branch = q () => (float[2] u) { u = If(c) <then_branch = r () => (float[2] h) { h = Cos(k) },
                else_branch = s () => (float[2] h) { h = Mul(k, x) }> }> }""",
        ],
        {"Neg": 1, "Exp": 1, "If": 2, "Add": 1, "Cos": 1, "Mul": 1},
    ),
    "a call in a body": (
        [
            """g (float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = p () => (float[2] u) { u = local.f(x) },
                else_branch = q () => (float[2] u) { u = Exp(x) }> }""",
            f"f (x) => (y) {{ {CHAIN} y = Neg(e) }}",
        ],
        {"If": 1, "Exp": 2, "Sin": 1, "Mul": 1, "Cos": 1, "Tanh": 1, "Neg": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "left"), CASES.values(), ids=CASES)
def test_calls_become_nodes(texts: list[str], left: dict[str, int]) -> None:
    model = read(*texts)
    before = model.SerializeToString()
    result = inlined(model)
    assert model.SerializeToString() == before
    assert not result.functions
    onnx.checker.check_model(result)
    assert operators(result) == Counter(left)
    feeds = {name: np.asarray(array) for name, array in random_feeds(model, {}, 0).items()}
    assert_same(model, result, feeds)


def test_an_argument_may_be_a_result() -> None:
    model = read("g (float[2] x) => (float[2] y, float[2] z) { y, z = local.f(x) }", "f (x) => (x, y) { y = Neg(x) }")
    result = inlined(model)
    assert operators(result) == Counter({"Identity": 1, "Neg": 1})
    feeds = {"x": np.array([1.0, -2.0], np.float32)}  # ONNX Runtime refuses such a function
    assert all(map(same, run_reference(model, feeds), run_reference(result, feeds)))


def test_a_function_that_is_called_often_stays() -> None:
    model = read("g (float[2] x) => (float[2] y) { a = local.f(x) b = local.f(a) y = local.f(b) }", f"f (x) => (y) {{ {CHAIN} y = Neg(e) }}")
    assert inlined(model) is model
    result = inlined(model, everything=True)
    assert operators(result)["Exp"] == 3 and not result.functions


def test_a_function_of_another_opset_stays() -> None:
    model = read("g (float[2] x) => (float[2] y) { y = local.f(x) }", "f (x) => (y) { y = Neg(x) }")
    model.functions[0].opset_import[0].version = 17
    assert inlined(model, everything=True) is model


def test_what_a_function_imports_alone_is_imported() -> None:
    model = read("g (float[2] x) => (float[2] y) { y = local.f(x) }", "f (x) => (y) { y = other.Thing(x) }")
    model.functions[0].opset_import.append(helper.make_opsetid("other", 3))
    result = inlined(model)
    assert [(item.domain, item.version) for item in result.opset_import] == [("", 18), ("local", 1), ("other", 3)]


def test_calls_that_do_not_fit_stay() -> None:
    function = "f (x) => (y) { y = Neg(x) }"
    for graph in ("g (float[2] x) => (float[2] y) { y = local.f(x, x) }", "g (float[2] x) => (float[2] y) { y, z = local.f(x) }"):
        model = read(graph, function)
        assert inlined(model) is model
    model = read("g (float[2] x) => (float[2] y) { y = local.f() }", "f (x) => (x) { z = Neg(x) }")
    assert inlined(model) is model
    model = read("g (float[2] x) => (float[2] y) { y = local.f(x) }", "f <k> (x) => (y) { c = Constant<value_float: float = @k>() y = Add(x, c) }")
    assert inlined(model) is model


def test_a_function_that_calls_itself_is_refused() -> None:
    model = read("g (float[2] x) => (float[2] y) { y = local.f(x) }", "f (x) => (y) { z = Neg(x) y = local.f(z) }")
    with pytest.raises(InputError, match="calls itself"):
        eqsat.optimize(model)


def test_functions_are_inlined_where_that_pays() -> None:
    """The casts of each call are known to do nothing only where the types of its arguments are."""
    casts = "f (x, t) => (y) { a = CastLike(x, t) b = Exp(a) c = CastLike(b, t) d = Sin(c) e = CastLike(d, t) y = Cos(e) }"
    model = read("g (float[2] x, float t) => (float[2] y) { a = local.f(x, t) b = local.f(a, t) y = local.f(b, t) }", casts)
    result = eqsat.optimize(model)
    assert not result.model.functions and operators(result.model) == Counter({"Exp": 3, "Sin": 3, "Cos": 3})
    assert result.report["verify"]["status"] == "equal"


def test_functions_stay_where_inlining_them_finds_nothing() -> None:
    calls = " ".join(f"h{i + 1} = local.f(h{i})" for i in range(30))
    model = read(f"g (float[2] h0) => (float[2] y) {{ {calls} y = Neg(h30) }}", f"f (x) => (y) {{ {CHAIN} y = Neg(e) }}")
    result = eqsat.optimize(model, effort="low")
    assert len(result.model.functions) == 1 and len(list(nodes(result.model))) < 45

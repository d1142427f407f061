"""Sizes whose names are arithmetic: what they say, and models that need them."""

from __future__ import annotations

import onnx
import pytest

import eqsat
from eqsat.facts.dims import evaluate
from eqsat.verification.sizes_by_name import sizes_by_name
from tests.support.models import parse

SIZES = {"batch": 3, "past": 5, "s": 7}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("64*batch", 192),
        ("past + batch", 8),
        ("(s//2)", 3),
        ("s - 1", 6),
        ("batch*past + 2", 17),
        ("7", 7),
    ],
)
def test_a_name_says_its_size(name: str, size: int) -> None:
    assert evaluate(sizes_by_name([name])[name], SIZES) == size


@pytest.mark.parametrize(
    "name",
    [
        "batch",
        "x.y",
        "f(3)",
        "2**9",
        "a if b else c",
        "True + 1",
        "",
        "a;b",
        "unk__1:0",
        "(" * 500,
        "s[0]",
        "1.5*s",
        "-1",
        "9" * 150,
        "10000000000*s",
        "s - 100",
    ],
)
def test_other_names_say_nothing(name: str) -> None:
    assert not sizes_by_name([name])


@pytest.mark.parametrize("name", ["9" * 150, "10000000000*B", "*".join("B" * 40), "B - 100", "6*K - K*K - 9", "B//0", "(" * 90 + "B" + ")" * 90])
def test_absurd_names_hinder_nothing(name: str) -> None:
    original, same, other = (joined(name, f"{first} z = {last} (y)") for first, last in (("", "Neg"), ("p = Abs (x)", "Neg"), ("", "Abs")))
    assert eqsat.verify(original, same).status == "equal" and eqsat.verify(original, other).status == "different"


def joined(size: str, body: str) -> onnx.ModelProto:
    """Returns a model whose second input has a size of this name."""
    model = parse(f"g (float[B, 4] x, float[K] y) => (float[M] z) {{ {body} }}")
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = size
    return model


FLAT = "minus = Constant <value_ints = [-1]> () f = Reshape (x, minus)"


def test_a_model_runs_at_the_sizes_that_its_names_say() -> None:
    original = joined("4*B", f"{FLAT} z = Add (f, y)")
    verdict = eqsat.verify(original, joined("4*B", f"{FLAT} z = Add (y, f)"))
    assert verdict.status == "equal" and max(verdict.sizes["B"]) > 1
    assert not any(note.startswith("ran where") for note in verdict.notes), "no search was needed"
    assert verdict.sizes["4*B"] == [4 * size for size in verdict.sizes["B"]]
    assert eqsat.verify(original, joined("4*B", f"{FLAT} z = Sub (f, y)")).status == "different"


def test_names_that_do_not_hold_are_given_up() -> None:
    body = "one = Constant <value_ints = [1]> () k = ReduceSum <keepdims = 0> (x, one) z = {}"
    verdict = eqsat.verify(joined("2*B", body.format("Add (k, y)")), joined("2*B", body.format("Add (y, k)")))
    assert verdict.status == "equal" and max(verdict.sizes["2*B"]) > 1

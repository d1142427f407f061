"""Sameness: the nodes chosen for a region are compared with those it has, whatever their names are."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eqsat
from eqsat.choose.decode import Decoded
from eqsat.model.model import Constant
from eqsat.model.tensors import from_array
from eqsat.regions.sameness import is_region
from eqsat.regions.stitch import Solution, Stitcher
from tests.support.models import operators, parse

LARGE = np.ones((16, 16), np.float32)
CONSTANTS = {"w": Constant(from_array(LARGE, "w")), "k": Constant(from_array(np.array(2, np.float32), "k"))}
HEAD = "g (float[N, 16] x) => (float[N, 16] y) "
REGION = "a = MatMul (x, w)  b = Mul (a, k)  c = Exp (b)  y = Sub (c, a)"


def nodes(text: str) -> list[onnx.NodeProto]:
    return list(parse(f"{HEAD} <float[16, 16] w, float k, float m, float v, float u> {{ {text} }}").graph.node)


def same(chosen: str, constants: dict[str, str] | None = None, literals: list[TensorProto] | None = None) -> bool:
    held = {"w": "w", "k": "k"} if constants is None else constants
    return is_region(Solution(nodes(chosen), ["y"], held, literals or [], {}, {}), nodes(REGION), CONSTANTS)


@pytest.mark.parametrize(
    "chosen",
    [
        REGION,
        "p = MatMul (x, w)  q = Mul (p, k)  r = Exp (q)  y = Sub (r, p)",
        "a = MatMul (x, w)  b = Mul (a, k)  c = Exp (b)  d = Sub (c, a)  y = Identity (d)",
    ],
)
def test_names_and_copies_to_outputs_do_not_count(chosen: str) -> None:
    assert same(chosen)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Exp", "Tanh"),
        ("Sub (c, a)", "Sub (a, c)"),
        ("Mul (a, k)", "Mul (x, k)"),
        ("MatMul (x, w)", "MatMul (w, x)"),
        ("c = Exp (b)  y = Sub (c, a)", "y = Sub (b, a)"),
    ],
)
def test_another_node_or_operand_counts(old: str, new: str) -> None:
    assert old in REGION and not same(REGION.replace(old, new))


def test_a_further_node_counts() -> None:
    assert not same(REGION + "  z = Neg (y)")
    assert not same("a = MatMul (x, w)  e = MatMul (x, w)  b = Mul (e, k)  c = Exp (b)  y = Sub (c, a)")


def test_small_constants_count_by_their_elements() -> None:
    chosen = REGION.replace("Mul (a, k)", "Mul (a, m)")
    raw, typed = numpy_helper.from_array(np.array(2, np.float32), "m"), helper.make_tensor("m", TensorProto.FLOAT, [], [2.0])
    assert same(chosen, {"w": "w"}, [raw]) and same(chosen, {"w": "w"}, [typed]) and same(chosen, {"w": "w", "m": "k"})
    assert not same(chosen, {"w": "w"}, [numpy_helper.from_array(np.array(3, np.float32), "m")])
    assert not same(chosen, {"w": "w"}, [numpy_helper.from_array(np.array([2], np.float32), "m")])


def test_a_large_constant_under_another_name_counts() -> None:
    assert not same(REGION.replace("(x, w)", "(x, v)"), {"v": "w", "k": "k"})


def stitched(monkeypatch: pytest.MonkeyPatch) -> list[Decoded]:
    """Returns a list that gets each graph that is written from regions."""
    written: list[Decoded] = []
    graph = Stitcher.graph

    def noted(stitcher: Stitcher) -> Decoded:
        written.append(graph(stitcher))
        return written[-1]

    monkeypatch.setattr(Stitcher, "graph", noted)
    return written


def test_a_turn_that_changes_nothing_writes_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn before the cut merges the twins. In regions nothing is left to find."""
    written = stitched(monkeypatch)
    blocks = [f"a{n} = Elu (i{n})  b{n} = Elu (i{n})  i{n + 1} = Add (a{n}, b{n})" for n in range(100)]
    model = parse(f"g (float[N, 4] i0) => (float[N, 4] i{len(blocks)}) {{ {'  '.join(blocks)} }}")
    result = eqsat.optimize(model)
    assert not written
    assert operators(result.model) == {"Elu": 100, "Add": 100}
    report = result.report
    assert report["notes"] == [] and report["verify"]["status"] == "equal"
    assert report["became"]["b7"] in ("a7", "b7") and report["became"]["i50"] == "i50"


def test_a_turn_that_changes_a_region_writes_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    written = stitched(monkeypatch)
    blocks = [f"a{n} = Transpose <perm = [1, 0]> (i{n})  b{n} = Tanh (a{n})  i{n + 1} = Transpose <perm = [1, 0]> (b{n})" for n in range(100)]
    model = parse(f"g (float[N, M] i0) => (float[N, M] i{len(blocks)}) {{ {'  '.join(blocks)} }}")
    result = eqsat.optimize(model)
    assert written
    assert operators(result.model)["Transpose"] < 10 and result.report["verify"]["status"] == "equal"

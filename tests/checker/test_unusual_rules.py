"""Right rules about operators, ranks and shapes that few rules are about: the checker takes them,
and what it refuses it gives a reason for.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eqsat.checker import check
from eqsat.checker.check import IDLE, OK, check_rule
from eqsat.checker.drawing.writing import Instance
from eqsat.checker.judging.trial import Trials
from eqsat.language.compile import Compiled
from eqsat.language.library import load
from tests.support.parameters import spread

FIRED = 30
RULES = """
# Sums of columns change their sign with them.
real rule col2im-neg:
    Col2Im<..p>(Neg(x), i, b) => Neg(Col2Im<..p>(x, i, b))
    where floating(dtype(x))
    test x: T[1, 8, 9], i = [4, 4], b = [2, 2]

# Points between pixels are weighted means of those.
real rule gridsample-neg:
    GridSample<..p>(Neg(x), g) => Neg(GridSample<..p>(x, g))
    where floating(dtype(x))
    test x: float[1, 2, 4, 4], g: float[1, 3, 3, 2]

# A recurrent network without a bias has one of zeros.
real rule rnn-zero-bias:
    y, h = RNN<hidden_size = n>(x, w, r)
 => y, h = RNN<hidden_size = n>(x, w, r, Expand(T(0), [1, 2 * n]))
    where w: T
    test x: float[3, 2, 4], w: float[1, 5, 4], r: float[1, 5, 5], n = 5

# A product of matrices in other words.
real rule einsum-matmul:
    Einsum<equation = "ij,jk->ik">(x, y) => MatMul(x, y)
    where floating(dtype(x))
    test x: T[2, 3], y: T[3, 4]

# A transform is linear.
real rule dft-neg:
    DFT<..p>(Neg(x), l?, a?) => Neg(DFT<..p>(x, l, a))
    test x: float[1, 4, 2]

# The distinct elements, in order, do not know where they stood.
exact rule unique-transpose:
    Unique<sorted = 1>(Transpose<perm = [1, 0]>(x)) => Unique<sorted = 1>(x)
    where not floating(dtype(x))
    test x: int64[5, 2]

# Boxes are chosen by no more than their number, which is 0 where it is not said.
exact rule nonmaxsuppression-none:
    NonMaxSuppression(b, s) => NonMaxSuppression(b, s, int64(0))
    test b: float[1, 6, 4], s: float[1, 1, 6]

# A factor of the queries is one of the scores.
real rule attention-scale:
    Attention<scale = 1.0, is_causal = c>(Mul(q, 0.25), k, v) => Attention<scale = 0.25, is_causal = c>(q, k, v)
    where floating(dtype(q))
    test q: T[1, 2, 3, 4], k: T[1, 2, 5, 4], v: T[1, 2, 5, 4], c = 0

# Pairs are turned whatever their sign is.
real rule rotary-neg:
    RotaryEmbedding<..p>(Neg(x), c, s) => Neg(RotaryEmbedding<..p>(x, c, s))
    test x: T[1, 2, 3, 4], c: T[1, 3, 2], s: T[1, 3, 2]

# What is written is there already.
exact rule scatter-gathered:
    ScatterElements<axis = a>(x, i, GatherElements<axis = a>(x, i)) => x
    test x: T[3, 4], i: int64[1, 4], a = 0

# Padding is zeros, which an activation keeps.
exact rule centercroppad-relu:
    CenterCropPad<axes = a>(Relu(x), s) => Relu(CenterCropPad<axes = a>(x, s))
    test x: T[4, 5, 2, 2, 1, 1, 1], s = [3, 6], a = [0, 1]

# Elements that are chosen, not computed.
exact rule tensorscatter-relu:
    TensorScatter<..p>(Relu(x), Relu(u), i) => Relu(TensorScatter<..p>(x, u, i))
    test x: T[1, 2, 4, 3], u: T[1, 2, 2, 3], i: int64[1]

# A scale for each block may be negative.
real rule dequantizelinear-neg:
    Neg(DequantizeLinear<axis = a, block_size = n>(x, s)) => DequantizeLinear<axis = a, block_size = n>(x, Neg(s))
    test x: int8[2, 6], s: float[2, 3], a = 1, n = 2

# Windows over as many axes as there are: ONNX knows no limit.
real rule conv-neg:
    Conv(Neg(x), w) => Conv(x, Neg(w))
    where floating(dtype(x))
    test x: T[1, 1, 3, 3, 3, 3], w: T[1, 1, 2, 2, 2, 2]
    test x: T[1, 1, 3, 3], w: T[1, 1, 2, 2]
"""
LIBRARY = {rule.rule.name: rule for rule in load([RULES]).rules}


@pytest.mark.parametrize("name", spread(LIBRARY, every=5))
def test_a_right_rule_is_accepted(name: str) -> None:
    verdict = check_rule(LIBRARY[name], FIRED, 0, thorough=4)
    assert verdict.status == OK, f"{verdict.status}: {verdict.reason}"


ILLEGAL = {
    "Conv(Neg(x), w) => Conv(x, Neg(w))\n    test x: T[1, 3, 5, 5], w: T[4, 2, 3, 3]": "as many channels as the weights have for all groups",
    "Transpose<perm = p>(Relu(x)) => Relu(Transpose<perm = p>(x))\n    test x: T[2, 3], p = [0, 2]": "ONNX",
    "Gather<axis = a>(Relu(x), i) => Relu(Gather<axis = a>(x, i))\n    test x: T[0, 3], i: int64[2], a = 0": "an axis without elements",
    "Clip(Relu(x), a) => Relu(Clip(x, a))\n    test x: T[3], a: T[3]": "the bounds are scalars",
    "MatMul(Neg(x), y) => Neg(MatMul(x, y))\n    test x: T[2, 3], y: T[4, 5]": "ONNX rejects MatMul",
    "Neg(Neg(x)) => x\n    where rank(x) == 3\n    test x: T[2, 3]": "this condition does not hold",
    "Neg(Reshape(x, s)) => Reshape(Neg(x), s)\n    test x: T[2, 3], s = [5]": "the elements of the data fill the shape",
    "Neg(Add(x, y)) => Add(Neg(x), Neg(y))\n    test x: T[70, 70], y: T[70, 70]": "more than 4096 elements",
}


@pytest.mark.parametrize("text", ILLEGAL)
def test_an_illegal_test_line_is_told_why(text: str) -> None:
    (rule,) = load([f"# T\nreal rule one:\n    {text}\n"]).rules
    verdict = check_rule(rule, 1, 0)
    assert verdict.status == IDLE
    assert "test line 1 is no legal instance of the left side: " in verdict.reason and ILLEGAL[text] in verdict.reason


def test_a_constant_of_the_left_side_is_no_node() -> None:
    (rule,) = load(["# T\nreal rule one:\n    Neg(Neg(Constant<value_ints = v>())) => Constant<value_ints = v>()\n    test v = [1, 2]\n"]).rules
    assert check_rule(rule, 1, 0).status == IDLE


def test_what_named_sizes_refuse_is_tried_with_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    (rule,) = load(["# T\nexact rule one:\n    Neg(Abs(x)) => Neg(Abs(Abs(x)))\n    where min([1, ..shape(x)]) > 0, floating(dtype(x))\n"]).rules
    try_rule, tried, fired = check.try_rule, list[Instance](), list[bool]()

    def noted(compiled: Compiled, instances: Sequence[Instance]) -> Trials:
        trials = try_rule(compiled, instances)
        places = {trial.instance for trial in trials.fired}
        tried.extend(instances)
        fired.extend(place in places for place in range(len(instances)))
        return trials

    monkeypatch.setattr(check, "try_rule", noted)
    assert check_rule(rule, 300, 0, thorough=1).status == OK
    refused = [one for one, fires in zip(tried, fired, strict=True) if one.symbolic is not None and not fires]
    again = [one for one, fires in zip(tried, fired, strict=True) if one.symbolic is None and fires and any(one.model is other.model for other in refused)]
    assert len(refused) > 10 and len(again) >= len(refused) - 10

"""One test line for each drawn operator with attributes: its outputs, and its inputs in order."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from eqsat.contributed import MICROSOFT
from eqsat.families import FAMILIES
from eqsat.language.parse import parse
from eqsat.language.resolve import resolve
from eqsat.language.resolved import Resolved
from eqsat.operators import Operator, contributed_operator, find_operator
from eqsat.traits import NEWEST


class Single(NamedTuple):
    test: str
    outputs: int = 1
    inputs: str = ""

    def rule(self, operator: str, carries: bool = True) -> str:
        """Returns a rule about the operator alone, which changes nothing."""
        names = self.inputs or ", ".join(part.replace("=", ":").split(":")[0].strip() for part in _parts(self.test))
        targets = ", ".join(("first", "second", "third", "fourth")[: self.outputs]) + " = "
        term = f"{targets}{newest(operator).full_name}{'<..p>' if carries else ''}({names})"
        return f"exact rule one:\n    {term}\n => {term}\n    test {self.test}\n"


def newest(name: str) -> Operator:
    """Returns the operator that rules know by this name, of the standard or of a runtime's own."""
    return contributed_operator(MICROSOFT, name) or find_operator("", name, NEWEST)


def _parts(test: str) -> list[str]:
    """Returns the parts of a test line, split at the commas outside brackets."""
    found, depth = [""], 0
    for letter in test:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


@cache
def single(operator: str) -> Resolved:
    """Returns the rule about the operator, read."""
    (rule,) = resolve(parse(SINGLE[operator].rule(operator), "one.rules"))
    return rule


_RECURRENT = ", b: float[1, {b}], l: int32[2], h: float[1, 2, 5]"

SINGLE: dict[str, Single] = {
    **dict.fromkeys(
        ("Celu", "Elu", "Gelu", "HardSigmoid", "IsInf", "LeakyRelu", "Selu", "QuickGelu", "Shrink", "Swish", "ThresholdedRelu"), Single("x: T[2, 3]")
    ),
    **dict.fromkeys(("ArgMax", "ArgMin", "Hardmax", "LogSoftmax", "LpNormalization", "Softmax", "Flatten", "Transpose"), Single("x: T[2, 3, 4]")),
    **dict.fromkeys(("BitCast", "Cast", "EyeLike", "Shape"), Single("x: float[2, 3]")),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), Single("n: int32[]")),
    "CumProd": Single("x: T[2, 3], a: int64[]"),
    "CumSum": Single("x: T[2, 3], a = 0"),
    **dict.fromkeys(("AveragePool", "GlobalLpPool", "LpPool"), Single("x: T[1, 2, 5, 5]")),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization"), Single("x: T[1, 4, 3], a: T[4], b: T[4]")),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), Single("x: T[2, 3, 4], i: int64[2, 4]")),
    **dict.fromkeys(FAMILIES["reduction"].members, Single("x: T[2, 3, 4], a = [1]")),
    "AffineGrid": Single("t: T[1, 2, 3], s: int64[4]"),
    "Attention": Single("q: T[1, 2, 3, 4], y: T[1, 2, 5, 4], v: T[1, 2, 5, 4]", 4),
    "BatchNormalization": Single("x: T[2, 3, 4], a: T[3], b: T[3], c: T[3], d: T[3]"),
    "BitShift": Single("x: uint8[2, 3], y: uint8[2, 3]"),
    "CastLike": Single("x: float[2, 3], y: int32[1]"),
    "CenterCropPad": Single("x: T[4, 5], s = [3, 6]"),
    "Col2Im": Single("x: T[1, 8, 9], i = [4, 4], b = [2, 2]"),
    "Compress": Single("x: T[3, 4], c: bool[2]"),
    "Concat": Single("x: T[2, 3], y: T[4, 3]"),
    "Conv": Single("x: T[1, 4, 5, 5], w: T[4, 4, 3, 3], b: T[4]"),
    "ConvInteger": Single("x: uint8[1, 4, 5, 5], w: uint8[4, 4, 3, 3]"),
    "ConvTranspose": Single("x: T[1, 4, 5, 5], w: T[4, 2, 3, 3], b: T[2]"),
    "DFT": Single("x: T[1, 4, 2]"),
    "DeformConv": Single("x: T[1, 2, 4, 4], w: T[2, 2, 2, 2], o: T[1, 8, 3, 3]"),
    "DepthToSpace": Single("x: T[1, 8, 2, 3]"),
    "DequantizeLinear": Single("x: uint8[2, 4], s: T[], z: uint8[]"),
    "Einsum": Single("x: T[2, 3], y: T[3, 4]"),
    "GRU": Single("x: float[3, 2, 4], w: float[1, 15, 4], r: float[1, 15, 5]" + _RECURRENT.format(b=30), 2),
    "Gather": Single("x: T[3, 4], i: int64[2]"),
    "GatherElements": Single("x: T[3, 4], i: int64[2, 4]"),
    "GatherND": Single("x: T[3, 4], i: int64[2, 1]"),
    "FusedMatMul": Single("a: T[2, 3, 4], b: T[2, 4, 5]"),
    "MultiHeadAttention": Single("q: float[2, 3, 4], k: float[2, 5, 4], v: float[2, 5, 4]"),
    "Gemm": Single("a: T[2, 3], b: T[3, 4], c: T[4]"),
    "GridSample": Single("x: T[1, 2, 4, 4], g: T[1, 3, 3, 2]"),
    "LRN": Single("x: T[1, 4, 3, 3]"),
    "LSTM": Single("x: float[3, 2, 4], w: float[1, 20, 4], r: float[1, 20, 5]" + _RECURRENT.format(b=40) + ", c: float[1, 2, 5], o: float[1, 15]", 3),
    "LayerNormalization": Single("x: T[2, 3, 4], a: T[4], b: T[4]"),
    "MaxPool": Single("x: T[1, 2, 5, 5]", 2),
    "MaxUnpool": Single("x: T[1, 1, 2, 2], i: int64[1, 1, 2, 2]"),
    "MeanVarianceNormalization": Single("x: T[2, 3, 4, 5]"),
    "MelWeightMatrix": Single("a: int32[], b: int32[], c: int32[], d: float[], e: float[]"),
    "Mod": Single("x: int32[2, 3], y: int32[3]"),
    "NonMaxSuppression": Single("b: float[1, 6, 4], s: float[1, 1, 6], c: int64[1], i: float[1], t: float[1]"),
    "OneHot": Single("i: int64[3], d: int64[], v: T[2]"),
    "Pad": Single("x: T[3, 4], i = [1, 0, 0, 2]"),
    "QLinearConv": Single("x: uint8[1, 2, 5, 5], a: float[], b: uint8[], w: uint8[2, 2, 3, 3], c: float[], d: uint8[], e: float[], f: uint8[]"),
    "QuantizeLinear": Single("x: T[2, 4], s: T[], z: uint8[]"),
    "RMSNormalization": Single("x: T[2, 3, 4], a: T[4]"),
    "RNN": Single("x: float[3, 2, 4], w: float[1, 5, 4], r: float[1, 5, 5]" + _RECURRENT.format(b=10), 2),
    "Reshape": Single("x: T[2, 6], s = [3, 4]"),
    "Resize": Single("x: T[1, 2, 4, 4], r: float[8], s = [1, 2, 3, 6]", inputs="x, r, , s"),
    "ReverseSequence": Single("x: T[3, 4], i: int64[4]"),
    "RoiAlign": Single("x: T[1, 2, 6, 6], r: T[2, 4], i: int64[2]"),
    "RotaryEmbedding": Single("x: T[1, 2, 3, 4], c: T[1, 3, 2], s: T[1, 3, 2]"),
    "STFT": Single("x: float[1, 16, 1], s: int64[], w: float[8]"),
    "ScatterElements": Single("x: T[3, 4], i: int64[1, 4], y: T[1, 4]"),
    "ScatterND": Single("x: T[3, 4], i: int64[1, 1], y: T[1, 4]"),
    "SpaceToDepth": Single("x: T[1, 2, 4, 4]"),
    "Split": Single("x: T[4, 3]", 2),
    "TensorScatter": Single("x: T[1, 2, 4, 3], y: T[1, 2, 2, 3], i: int64[1]"),
    "TopK": Single("x: T[2, 5], i = [2]", 2),
    "Trilu": Single("x: T[3, 4], i = 0"),
    "Unique": Single("x: T[5, 2]", 4),
}

"""Rules for the tests of the judge: right ones, which need their guards, and wrong ones.

Each wrong rule has deceived somebody. A rule is two ONNX texts over the same inputs, whose outputs
are compared. Constants of 16 bits are written as their bits.
"""

from __future__ import annotations

from typing import NamedTuple

import onnx
from onnx import parser

from eqsat.checker.drawing.domains import Domain
from eqsat.checker.judging.verdict import Case
from eqsat.language.syntax import Label

EXACT, REAL, FINITE = Label


def model(inputs: str, outputs: str, body: str, constants: str = "") -> onnx.ModelProto:
    stated = f"<{constants}>" if constants else ""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 26]> rule ({inputs}) => ({outputs}) {stated} {{ {body} }}')


class Rule(NamedTuple):
    label: Label
    inputs: str
    outputs: str
    left: str
    right: str
    constants: str = ""
    free: tuple[str, ...] = ()
    domains: dict[str, Domain] = {}  # noqa: RUF012

    @property
    def case(self) -> Case:
        left, right = (model(self.inputs, self.outputs, body, self.constants) for body in (self.left, self.right))
        return Case(left, right, frozenset(self.free), self.domains)


def floats(*names: str, shape: str = "2,3", dtype: str = "float") -> str:
    return ", ".join(f"{dtype}[{shape}] {name}" for name in names)


XYZ, OUT = floats("x", "y", "z"), "float[2,3] o"
ZEROS = "s = Shape(x) o = ConstantOfShape(s)"
ROW = "axes = Constant<value = int64[1] {-1}>()"
CONV = "float[1,2,5,5] x, float[4,2,3,3] w, float[4] b"
NORM = "float[4] scale, float[4] shift, float[4] mean, float[4] var"

RIGHT: dict[str, Rule] = {
    "add is associative": Rule(REAL, XYZ, OUT, "a = Add(x, y) o = Add(a, z)", "a = Add(y, z) o = Add(x, a)"),
    "add is associative in float16": Rule(
        REAL, floats("x", "y", "z", dtype="float16"), "float16[2,3] o", "a = Add(x, y) o = Add(a, z)", "a = Add(y, z) o = Add(x, a)"
    ),
    "add is associative in bfloat16": Rule(
        REAL, floats("x", "y", "z", dtype="bfloat16"), "bfloat16[2,3] o", "a = Add(x, y) o = Add(a, z)", "a = Add(y, z) o = Add(x, a)"
    ),
    "integers wrap": Rule(
        EXACT,
        floats("x", "y", "z", dtype="int8"),
        "int8[2,3] o",
        "a = Add(x, y) b = Mul(a, z) o = Add(b, x)",
        "a = Mul(x, z) b = Mul(y, z) c = Add(a, b) o = Add(x, c)",
    ),
    "an unsigned difference wraps": Rule(EXACT, floats("x", "y", dtype="uint8"), "uint8[2,3] o", "a = Sub(x, y) o = Add(a, y)", "o = Identity(x)"),
    "an integer less itself": Rule(
        REAL, floats("x", dtype="int32"), "int32[2,3] o", "o = Sub(x, x)", "s = Shape(x) o = ConstantOfShape<value = int32[1] {0}>(s)"
    ),
    "mul distributes": Rule(REAL, XYZ, OUT, "a = Add(y, z) o = Mul(x, a)", "a = Mul(x, y) b = Mul(x, z) o = Add(a, b)"),
    "mul undistributes": Rule(REAL, XYZ, OUT, "a = Mul(x, y) b = Mul(x, z) o = Add(a, b)", "a = Add(y, z) o = Mul(x, a)"),
    "constants meet": Rule(
        REAL, floats("x"), OUT, "a = Mul(x, c) o = Mul(a, d)", "a = Mul(c, d) o = Mul(x, a)", "float[3] c = {1, 2, 3}, float d = {0.3}", ("c", "d")
    ),
    "matmul is associative": Rule(
        REAL, "float[2,2,3] x, float[3,4] y, float[4,2] z", "float[2,2,2] o", "a = MatMul(x, y) o = MatMul(a, z)", "a = MatMul(y, z) o = MatMul(x, a)"
    ),
    "matmul is associative over nothing": Rule(
        REAL, "float[2,3] x, float[3,0] y, float[0,2] z", "float[2,2] o", "a = MatMul(x, y) o = MatMul(a, z)", "a = MatMul(y, z) o = MatMul(x, a)"
    ),
    "products merge": Rule(
        REAL,
        "float[2,3] x, float[3,4] v, float[3,2] w",
        "float[2,4] o, float[2,2] p",
        "o = MatMul(x, v) p = MatMul(x, w)",
        "c = Concat<axis = 1>(v, w) m = MatMul(x, c) n = Constant<value = int64[2] {4, 2}>() o, p = Split<axis = 1>(m, n)",
    ),
    "conv absorbs a normalization": Rule(
        REAL,
        f"{CONV}, {NORM}",
        "float[1,4,3,3] o",
        "c = Conv(x, w, b) o = BatchNormalization<epsilon = 0.01>(c, scale, shift, mean, var)",
        """e = Constant<value = float {0.01}>() v = Add(var, e) r = Sqrt(v) s = Div(scale, r) four = Constant<value = int64[4] {4, 1, 1, 1}>()
           t = Reshape(s, four) u = Mul(w, t) d = Sub(b, mean) f = Mul(d, s) g = Add(f, shift) o = Conv(x, u, g)""",
    ),
    "conv absorbs a normalization in float16": Rule(
        REAL,
        f"{CONV}, {NORM}".replace("float", "float16"),
        "float16[1,4,3,3] o",
        "c = Conv(x, w, b) o = BatchNormalization<epsilon = 0.00001>(c, scale, shift, mean, var)",
        """e = Constant<value = float16 {168}>() v = Add(var, e) r = Sqrt(v) s = Div(scale, r) four = Constant<value = int64[4] {4, 1, 1, 1}>()
           t = Reshape(s, four) u = Mul(w, t) d = Sub(b, mean) f = Mul(d, s) g = Add(f, shift) o = Conv(x, u, g)""",
    ),
    "a missing bias is zero": Rule(
        REAL, "float[1,2,5,5] x, float[4,2,3,3] w", "float[1,4,3,3] o", "o = Conv(x, w)", "o = Conv(x, w, z)", "float[4] z = {0, 0, 0, 0}"
    ),
    "a kernel is enlarged": Rule(
        FINITE,
        "float[1,2,5,5] x, float[3,2,1,1] w",
        "float[1,3,5,5] o",
        "o = Conv(x, w)",
        "p = Constant<value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}>() v = Pad(w, p) o = Conv<pads = [1, 1, 1, 1]>(x, v)",
    ),
    "padding is convolved": Rule(
        EXACT,
        "float[1,2,4,4] x, float[3,2,3,3] w",
        "float[1,3,4,4] o",
        "p = Constant<value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}>() y = Pad(x, p) o = Conv(y, w)",
        "o = Conv<pads = [1, 1, 1, 1]>(x, w)",
    ),
    "transposes compose": Rule(
        EXACT, "float[2,3,4] x", "float[3,2,4] o", "a = Transpose<perm = [2, 0, 1]>(x) o = Transpose<perm = [2, 1, 0]>(a)", "o = Transpose<perm = [1, 0, 2]>(x)"
    ),
    "transpose passes exp": Rule(EXACT, "float[2,30] x", "float[30,2] o", "a = Exp(x) o = Transpose(a)", "a = Transpose(x) o = Exp(a)"),
    "transpose passes a reduction": Rule(
        REAL,
        "float[2,30] x",
        "float[2] o",
        f"{ROW} o = ReduceSum<keepdims = 0>(x, axes)",
        "a = Transpose(x) axes = Constant<value = int64[1] {0}>() o = ReduceSum<keepdims = 0>(a, axes)",
    ),
    "a product of parts is a part of the product": Rule(
        EXACT,
        "float[9,5] x, float[5,3] w",
        "float[2,3] o",
        "m = MatMul(x, w) o = Slice(m, i, j)",
        "y = Slice(x, i, j) o = MatMul(y, w)",
        "int64[1] i = {6}, int64[1] j = {8}",
    ),
    "slice of a concat": Rule(
        EXACT,
        "float[5,3] x, float[2,3] y",
        "float[3,3] o",
        "c = Concat<axis = 0>(x, y) o = Slice(c, i, j)",
        "o = Slice(x, i, j)",
        "int64[1] i = {1}, int64[1] j = {4}",
    ),
    "relu is a maximum": Rule(REAL, floats("x"), OUT, "o = Relu(x)", "o = Max(x, z)", "float z = {0}"),
    "maximum commutes": Rule(REAL, floats("x", "y"), OUT, "o = Max(x, y)", "o = Max(y, x)"),
    "two clips are one": Rule(
        EXACT, floats("x"), OUT, "a = Clip(x, l, h) o = Clip(a, m, k)", "o = Clip(x, m, h)", "float l = {-2}, float h = {3}, float m = {-1}, float k = {5}"
    ),
    "nothing is subtracted": Rule(EXACT, floats("x"), OUT, "o = Sub(x, z)", "o = Identity(x)", "float z = {0}"),
    "softmax is shifted by its maximum": Rule(REAL, floats("x"), OUT, f"{ROW} m = ReduceMax(x, axes) a = Sub(x, m) o = Softmax(a)", "o = Softmax(x)"),
    "softmax is made of exponentials": Rule(FINITE, floats("x"), OUT, f"{ROW} e = Exp(x) s = ReduceSum(e, axes) o = Div(e, s)", "o = Softmax(x)"),
    "a sum of exponents": Rule(REAL, floats("x"), "float[2,1] o", f"{ROW} e = Exp(x) o = ReduceProd(e, axes)", f"{ROW} s = ReduceSum(x, axes) o = Exp(s)"),
    "gelu is made of erf": Rule(
        REAL,
        floats("x"),
        OUT,
        "a = Div(x, r) b = Erf(a) c = Add(b, u) d = Mul(x, c) o = Mul(d, h)",
        "o = Gelu(x)",
        "float r = {1.41421356}, float u = {1}, float h = {0.5}",
    ),
    "gelu is made of erf in bfloat16": Rule(
        REAL,
        floats("x", dtype="bfloat16"),
        "bfloat16[2,3] o",
        "a = Div(x, r) b = Erf(a) c = Add(b, u) d = Mul(x, c) o = Mul(d, h)",
        "o = Gelu(x)",
        "bfloat16 r = {16309}, bfloat16 u = {16256}, bfloat16 h = {16128}",
    ),
    "roots multiply": Rule(REAL, floats("x"), OUT, "a = Mul(x, r) o = Mul(a, r)", "o = Mul(x, t)", "float r = {1.41421356}, float t = {2}"),
    "leaky relu is a maximum": Rule(
        REAL, floats("x", dtype="double"), "double[2,3] o", "o = LeakyRelu<alpha = 0.1>(x)", "a = Mul(x, c) o = Max(x, a)", "double c = {0.1}"
    ),
    "a quotient of quotients": Rule(REAL, floats("x", "y", "z"), OUT, "a = Div(y, z) o = Div(x, a)", "a = Mul(x, z) o = Div(a, y)"),
    "layer normalization is made of means": Rule(
        REAL,
        "float[2,5] x, float[5] scale",
        "float[2,5] o",
        f"{ROW} m = ReduceMean(x, axes) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, axes) w = Add(v, e) r = Sqrt(w) n = Div(d, r) o = Mul(n, scale)",
        "o = LayerNormalization<axis = -1, epsilon = 0.001>(x, scale)",
        "float e = {0.001}",
    ),
    "layer normalization of float16": Rule(
        REAL,
        "float16[2,5] x, float16[5] scale",
        "float16[2,5] o",
        f"{ROW} m = ReduceMean(x, axes) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, axes) w = Add(v, e) r = Sqrt(w) n = Div(d, r) o = Mul(n, scale)",
        "o = LayerNormalization<axis = -1, epsilon = 0.001>(x, scale)",
        "float16 e = {5145}",
    ),
    "floor of a sum of halves": Rule(
        REAL, floats("x", "y"), OUT, "a = Mul(x, h) b = Mul(y, h) c = Add(a, b) o = Floor(c)", "c = Add(x, y) d = Mul(c, h) o = Floor(d)", "float h = {0.5}"
    ),
    "order is kept": Rule(REAL, floats("x"), "int64[2,1] o", "a = Mul(x, c) o = ArgMax<axis = 1>(a)", "o = ArgMax<axis = 1>(x)", "float c = {3}"),
    "quantized moves": Rule(
        EXACT,
        "float[2,3] x",
        "uint8[3,2] o",
        "q = QuantizeLinear(x, s, z) o = Transpose(q)",
        "t = Transpose(x) o = QuantizeLinear(t, s, z)",
        "float s = {0.1}, uint8 z = {7}",
    ),
    "dequantized and quantized": Rule(
        REAL,
        "uint8[2,3] x, float s",
        "uint8[2,3] o",
        "d = DequantizeLinear(x, s, z) o = QuantizeLinear(d, s, z)",
        "o = Identity(x)",
        "uint8 z = {7}",
        (),
        {"s": Domain(0, None, False)},
    ),
    "a cast of what is cut off": Rule(
        EXACT,
        "float[1] x",
        "int8[0] o",
        "s = Constant<value = int64[1] {0}>() a = Expand(x, s) o = Cast<to = 3>(a)",
        "s = Constant<value = int64[1] {0}>() a = Cast<to = 3>(x) o = Expand(a, s)",
    ),
    "widening and back": Rule(EXACT, floats("x", dtype="float16"), "float16[2,3] o", "a = Cast<to = 1>(x) o = Cast<to = 10>(a)", "o = Identity(x)"),
    "dividing integers": Rule(
        EXACT,
        floats("x", "y", dtype="int32"),
        "int32[2,3] o",
        "a = Neg(x) o = Div(a, y)",
        "a = Div(x, y) o = Neg(a)",
        "",
        (),
        {"y": Domain(-9, 9, False), "x": Domain(-9, 9)},
    ),
    "a runtime's own sum": Rule(
        REAL, "float[1,1,4,4] x, float[1,2,2,2] g", "float[1,1,2,2] o", "a = GridSample(x, g) o = Neg(a)", "a = Neg(x) o = GridSample(a, g)"
    ),
    "conv turned back": Rule(
        FINITE,
        "float[1,2,4] x, float[2,3,3] w",
        "float[1,3,6] o",
        "o = ConvTranspose(x, w)",
        """t = Transpose<perm = [1, 0, 2]>(w) start = Constant<value = int64[1] {-1}>() end = Constant<value = int64[1] {-9}>()
           two = Constant<value = int64[1] {2}>() f = Slice(t, start, end, two, start) o = Conv<pads = [2, 2]>(x, f)""",
    ),
    "numbers that cancel in one sum": Rule(REAL, floats("x"), OUT, "o = Sum(x, c, d)", "o = Identity(x)", "float c = {1e13}, float d = {-1e13}"),
    "a floor near a tie": Rule(REAL, floats("x"), OUT, "a = Mul(x, c) b = Mul(a, t) o = Floor(b)", "o = Floor(x)", "float c = {0.1}, float t = {10}"),
    "an order near a tie": Rule(
        REAL, floats("x", "y"), "bool[2,3] o", "a = Mul(x, c) b = Mul(a, t) o = Greater(b, y)", "o = Greater(x, y)", "float c = {0.1}, float t = {10}"
    ),
    "matmul is associative over nothing, the other way": Rule(
        REAL, "float[2,3] x, float[3,0] y, float[0,2] z", "float[2,2] o", "a = MatMul(y, z) o = MatMul(x, a)", "a = MatMul(x, y) o = MatMul(a, z)"
    ),
    "roots multiply in bfloat16": Rule(
        REAL,
        floats("x", dtype="bfloat16"),
        "bfloat16[2,3] o",
        "a = Mul(x, r) o = Mul(a, r)",
        "o = Mul(x, t)",
        "bfloat16 r = {16309}, bfloat16 t = {16384}",
    ),
    # 1.5 * 281.1 is 421.65, which is 422 in bfloat16; and 281.1 is 282.
    "constants meet in bfloat16": Rule(
        REAL,
        floats("x", dtype="bfloat16"),
        "bfloat16[2,3] o",
        "a = Mul(x, c) o = Mul(a, d)",
        "o = Mul(x, e)",
        "bfloat16 c = {16320}, bfloat16 d = {17293}, bfloat16 e = {17363}",
    ),
    "indices are drawn until they exist": Rule(
        EXACT, "float[4] x, int64[2,1] i", "float[2] o", "a = GatherND(x, i) o = Neg(a)", "a = Neg(x) o = GatherND(a, i)"
    ),
    "order is kept by softmax": Rule(REAL, floats("x"), "int64[2,1] o", "a = Softmax(x) o = ArgMax<axis = 1>(a)", "o = ArgMax<axis = 1>(x)"),
    "widening rounds nothing": Rule(
        REAL,
        floats("x", "y", "z", dtype="float16"),
        OUT,
        "a = Mul(x, y) b = Mul(a, z) o = Cast<to = 1>(b)",
        "a = Cast<to = 1>(x) b = Cast<to = 1>(y) c = Cast<to = 1>(z) d = Mul(b, c) o = Mul(a, d)",
    ),
}

WRONG: dict[str, Rule] = {
    "times zero": Rule(REAL, floats("x"), OUT, "o = Mul(x, z)", ZEROS, "float z = {0}"),
    "times zero, exactly": Rule(EXACT, floats("x"), OUT, "o = Mul(x, z)", ZEROS, "float z = {0}"),
    "less itself": Rule(REAL, floats("x"), OUT, "o = Sub(x, x)", ZEROS),
    "by itself": Rule(REAL, floats("x"), OUT, "o = Div(x, x)", "s = Shape(x) o = ConstantOfShape<value = float[1] {1}>(s)"),
    "multiplied and divided": Rule(REAL, floats("x", "y"), OUT, "a = Mul(x, y) o = Div(a, y)", "o = Identity(x)"),
    "a difference of squares": Rule(REAL, floats("x", "y"), OUT, "a = Mul(x, x) b = Mul(y, y) c = Sub(a, b) d = Sub(x, y) o = Div(c, d)", "o = Add(x, y)"),
    "the square of a root": Rule(REAL, floats("x"), OUT, "a = Sqrt(x) o = Mul(a, a)", "o = Identity(x)"),
    "softmax of a sum": Rule(REAL, "float[2,3] x, float c", OUT, "a = Add(x, c) o = Softmax(a)", "o = Softmax(x)"),
    "exact reassociation": Rule(EXACT, XYZ, OUT, "a = Add(x, y) o = Add(a, z)", "a = Add(y, z) o = Add(x, a)"),
    "plus zero": Rule(EXACT, floats("x"), OUT, "o = Add(x, z)", "o = Identity(x)", "float z = {0}"),
    "plus zero, one number": Rule(EXACT, "float x", "float o", "o = Add(x, z)", "o = Identity(x)", "float z = {0}"),
    "exact split of a bias": Rule(EXACT, "float[2,3] x, float[3,2] w, float[2] b", "float[2,2] o", "o = Gemm(x, w, b)", "m = MatMul(x, w) o = Add(m, b)"),
    "exact split of a bias of Conv": Rule(
        EXACT,
        "float[1,2,4] x, float[3,2,2] w, float[3] b",
        "float[1,3,3] o",
        "o = Conv(x, w, b)",
        "m = Conv(x, w) s = Constant<value = int64[2] {3, 1}>() c = Reshape(b, s) o = Add(m, c)",
    ),
    "exact sum in another order": Rule(
        EXACT,
        "float[3,9] x",
        "float[3,1] o",
        f"{ROW} o = ReduceSum(x, axes)",
        f"{ROW} i = Constant<value = int64[9] {{8, 7, 6, 5, 4, 3, 2, 1, 0}}>() y = Gather<axis = 1>(x, i) o = ReduceSum(y, axes)",
    ),
    "clip to other bounds": Rule(
        REAL, floats("x"), OUT, "a = Clip(x, l, h) o = Relu(a)", "o = Clip(x, z, k)", "float l = {-1}, float h = {60}, float z = {0}, float k = {61}"
    ),
    "clip that is none": Rule(
        REAL, floats("x"), OUT, "o = Clip(x, l, h)", "o = Identity(x)", "float l = {-3.4028234663852886e38}, float h = {3.4028234663852886e38}"
    ),
    "min above max": Rule(REAL, "float[2,3] x, float l, float h", OUT, "o = Clip(x, l, h)", "a = Min(x, h) o = Max(a, l)"),
    "no float between integers": Rule(REAL, floats("x"), "bool[2,3] o", "o = Less(x, a)", "o = LessOrEqual(x, b)", "float a = {61}, float b = {60}"),
    "another slope beside a coarse constant": Rule(
        REAL,
        floats("x", dtype="bfloat16"),
        "bfloat16[2,3] o",
        "a = Mul(x, c) o = LeakyRelu<alpha = 0.1>(a)",
        "a = Mul(x, c) o = LeakyRelu<alpha = 0.101>(a)",
        "bfloat16 c = {16026}",
    ),
    "another epsilon": Rule(
        REAL,
        f"float[1,4,3,3] x, {NORM}",
        "float[1,4,3,3] o",
        "o = BatchNormalization<epsilon = 0.00001>(x, scale, shift, mean, var)",
        "o = BatchNormalization<epsilon = 0.00002>(x, scale, shift, mean, var)",
        "",
        (),
        {"var": Domain(0)},
    ),
    "an epsilon that is stated": Rule(
        REAL,
        f"float[1,4] x, {NORM}",
        "float[1,4] o",
        "o = BatchNormalization<epsilon = 0.00001>(x, scale, shift, mean, var)",
        "v = Add(var, e) r = Sqrt(v) a = Sub(x, mean) b = Div(a, r) c = Mul(b, scale) o = Add(c, shift)",
        "float e = {0.00002}",
    ),
    "narrowing and back": Rule(REAL, floats("x"), OUT, "a = Cast<to = 10>(x) o = Cast<to = 1>(a)", "o = Identity(x)"),
    "narrowing of sums": Rule(
        REAL, floats("x", "y"), "float16[2,3] o", "a = Add(x, y) o = Cast<to = 10>(a)", "a = Cast<to = 10>(x) b = Cast<to = 10>(y) o = Add(a, b)"
    ),
    "unsigned order": Rule(REAL, floats("x", "y", dtype="uint8"), "bool[2,3] o", "a = Sub(x, y) z = Sub(y, y) o = Greater(a, z)", "o = Greater(x, y)"),
    "widened sums": Rule(
        EXACT, floats("x", "y", dtype="int8"), "int32[2,3] o", "a = Add(x, y) o = Cast<to = 6>(a)", "a = Cast<to = 6>(x) b = Cast<to = 6>(y) o = Add(a, b)"
    ),
    "regrouped division": Rule(
        REAL,
        floats("x", "y", "z", dtype="int32"),
        "int32[2,3] o",
        "a = Add(x, y) o = Div(a, z)",
        "a = Div(x, z) b = Div(y, z) o = Add(a, b)",
        "",
        (),
        {"z": Domain(-9, 9, False)},
    ),
    "division rounds down": Rule(
        REAL, floats("x", "y", dtype="int32"), "int32[2,3] o", "o = Div(x, y)", "m = Mod(x, y) d = Sub(x, m) o = Div(d, y)", "", (), {"y": Domain(-9, 9, False)}
    ),
    "a maximum by comparison": Rule(REAL, floats("x", "y"), OUT, "o = Max(x, y)", "g = Greater(x, y) o = Where(g, x, y)"),
    "a comparison by maximum": Rule(REAL, floats("x", "y"), OUT, "g = Greater(x, y) o = Where(g, x, y)", "o = Max(x, y)"),
    "the negated order": Rule(REAL, floats("x", "y"), "bool[2,3] o", "a = Less(x, y) o = Not(a)", "o = GreaterOrEqual(x, y)"),
    "nothing is infinite": Rule(REAL, floats("x"), "bool[2,3] o", "o = IsInf(x)", "s = Shape(x) o = ConstantOfShape<value = bool[1] {0}>(s)"),
    "a kernel is enlarged where there may be infinities": Rule(
        REAL,
        "float[1,2,5,5] x, float[3,2,1,1] w",
        "float[1,3,5,5] o",
        "o = Conv(x, w)",
        "p = Constant<value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}>() v = Pad(w, p) o = Conv<pads = [1, 1, 1, 1]>(x, v)",
    ),
    "a kernel enlarged under SAME_UPPER": Rule(
        REAL,
        "float[1,1,6,6] x, float[1,1,1,1] w",
        "float[1,1,3,3] o",
        'o = Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, w)',
        'p = Constant<value = int64[8] {0, 0, 1, 1, 0, 0, 1, 1}>() v = Pad(w, p) o = Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, v)',
    ),
    "depthwise convolutions merged": Rule(
        REAL,
        "float[1,2,4,4] x, float[2,1,3,3] v, float[2,1,3,3] w",
        "float[1,4,2,2] o",
        "a = Conv<group = 2>(x, v) b = Conv<group = 2>(x, w) o = Concat<axis = 1>(a, b)",
        "c = Concat<axis = 0>(v, w) o = Conv<group = 2>(x, c)",
    ),
    "a bias over padding": Rule(
        REAL,
        "float[1,1,4,4] x, float[1,1,1,1] y, float[1,1,3,3] w",
        "float[1,1,4,4] o",
        "a = Add(x, y) o = Conv<pads = [1, 1, 1, 1]>(a, w)",
        "a = Conv<pads = [1, 1, 1, 1]>(x, w) b = Conv<pads = [1, 1, 1, 1]>(y, w) z = Conv(y, w2) o = Add(a, z)",
        "float[1,1,1,1] w2 = {1}",
    ),
    "an average that forgets padding": Rule(
        REAL,
        "float[1,1,4,4] x",
        "float[1,1,4,4] o",
        "o = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)",
        "o = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1>(x)",
    ),
    "a permutation that is its inverse": Rule(
        EXACT, "float[2,2,2] x", "float[2,2,2] o", "o = Transpose<perm = [1, 2, 0]>(x)", "o = Transpose<perm = [2, 0, 1]>(x)"
    ),
    "ties in another order": Rule(REAL, floats("x"), "int64[2,1] o", "o = ArgMax<axis = 1>(x)", "o = ArgMax<axis = 1, select_last_index = 1>(x)"),
    "a rounded root": Rule(REAL, floats("x"), OUT, "o = Mul(x, r)", "a = Mul(x, r) o = Mul(a, q)", "float r = {1.41421356}, float q = {1.000001}"),
    "floats that round otherwise": Rule(REAL, floats("x"), OUT, "o = Round(x)", "a = Add(x, h) o = Floor(a)", "float h = {0.5}"),
    "halves lost": Rule(REAL, floats("x"), OUT, "a = Floor(x) o = Mul(a, t)", "a = Mul(x, t) o = Floor(a)", "float t = {2}"),
}

"""Examples of rewrites that other optimizers do in their own ways."""

from __future__ import annotations

from tests.rules.examples import Example

BOTH = (13, 21)

EXAMPLES = {
    "Dropout that does not train": Example(
        "g (float[N, 4] x) => (float[N, 4] y) { a = Relu(x)  b = Dropout(a)  y = Exp(b) }",
        {"Relu": 1, "Exp": 1},
        "dropout-nothing",
        (7, 11, 12, 13, 21),
    ),
    "Pad by nothing, with a value": Example(
        "g (float[N, 4] x) => (float[N, 4] y) <int64[4] p = {0, 0, 0, 0}, float v = {1}> { a = Pad(x, p, v)  y = Exp(a) }",
        {"Exp": 1},
        "pad-nothing",
        BOTH,
    ),
    "Pad into ConvInteger": Example(
        """g (uint8[N, 1, 5, 5] x) => (int32[N, 1, 6, 5] y, int32[N, 1, 6, 5] z) <int64[8] p = {0, 0, 1, 1, 0, 0, 2, 1},
            uint8[1, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, uint8[1, 1, 3, 5] v = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}> {
            a = Pad(x, p)  y = ConvInteger(a, w)  z = ConvInteger<pads = [0, 1, 0, 1]>(a, v) }""",
        {"ConvInteger": 2},
        "convinteger-pad",
        BOTH,
    ),
    "A product of a vector that was written as a matrix": Example(
        """g (float[4] v, float[2, 3, 4, 5] x, float[2, 6, 4] w) => (float[2, 3, 5] y, float[2, 6] z)
            <int64[2] row = {1, 4}, int64[2] column = {4, 1}, int64[3] s = {2, 3, 5}, int64[2] t = {2, 6}> {
            a = Reshape(v, row)  b = MatMul(a, x)  y = Reshape(b, s)  c = Reshape(v, column)  d = MatMul(w, c)  z = Reshape(d, t) }""",
        {"MatMul": 2},
        "matmul-vector-first matmul-vector-second",
        BOTH,
    ),
    "Axes that reductions keep": Example(
        """g (float[N, 3, 4] x) => (float[N, 1, 4] a, float[N, 1, 4] b, float[N, 1, 4] c, float[N, 1, 4] d, float[N, 1, 4] e) <int64[1] axes = {1}> {
            p = ReduceL1<axes = [1], keepdims = 0>(x)  a = Unsqueeze(p, axes)  q = ReduceSumSquare<axes = [1], keepdims = 0>(x)  b = Unsqueeze(q, axes)
            r = ReduceLogSum<axes = [1], keepdims = 0>(x)  c = Unsqueeze(r, axes)  s = ReduceLogSumExp<axes = [1], keepdims = 0>(x)  d = Unsqueeze(s, axes)
            t = ReduceProd<axes = [1], keepdims = 0>(x)  e = Unsqueeze(t, axes) }""",
        {"ReduceL1": 1, "ReduceSumSquare": 1, "ReduceLogSum": 1, "ReduceLogSumExp": 1, "ReduceProd": 1},
        """reduction-reshape[ReduceL1] reduction-reshape[ReduceSumSquare] reduction-reshape[ReduceLogSum] reduction-reshape[ReduceLogSumExp]
        reduction-reshape[ReduceProd]""",
        (13, 17),
    ),
    "Max and Min of many operands": Example(
        """g (float[N, 3] x) => (float[N, 3] y, float[N, 3] z) <float[3] a = {2, 5, 8}, float[1] b = {4}, float[3] c = {3, 1, -6}, float[1] d = {0.5}> {
            p = Max(x, a, b)  y = Max(p, c, d)  q = Min(x, a, b)  z = Min(q, c, d) }""",
        {"Max": 1, "Min": 1},
        "variadic-constants[Max] bound-bound-const[Max] variadic-constants[Min] bound-bound-const[Min]",
        BOTH,
    ),
    "Max and Min of three": Example(
        "g (float[N, 3] x, float[3] v, float[1] w) => (float[N, 3] y, float[N, 3] z) { p = Max(x, v)  y = Max(p, w)  q = Min(x, v)  z = Min(q, w) }",
        {"Max": 1, "Min": 1},
        "variadic-three[Max] variadic-three[Min]",
        BOTH,
    ),
    "Pad into AveragePool that was told to count zeros": Example(
        """g (float[1, 5, 2, 2] x) => (float[1, 5, 1, 1] y) <int64[8] p = {0, 0, 0, 0, 0, 0, 1, 1}> {
            a = Pad(x, p)  y = AveragePool<count_include_pad = 1, kernel_shape = [3, 3]>(a) }""",
        {"AveragePool": 1},
        "averagepool-pad",
        BOTH,
    ),
    "Expand between products": Example(
        """g (float[2, 1] x, float[2, 4] z) => (float[2, 4] y) <int64[2] s = {2, 4}> { a = Expand(x, s)  b = Mul(a, x)  y = Mul(b, z) }""",
        {"Mul": 2},
        "expand-binary-later[Mul]",
        BOTH,
    ),
    "Expand of a divisor": Example(
        """g (float[2, 1] x, float[2, 1] w, float[2, 4] z) => (float[2, 4] y) <int64[2] s = {2, 4}> { a = Expand(x, s)  b = Div(w, a)  y = Mul(b, z) }""",
        {"Div": 1, "Mul": 1},
        "expand-binary-later[mirrored-Div]",
        BOTH,
    ),
    "Clip without bounds among Relu and Clip": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float h = {4}, float l = {-2}> {
            a = Clip(x)  b = Clip(a, , h)  c = Clip(b, l)  d = Relu(c)  y = Clip(d) }""",
        {"Clip": 1},
        "clip-upper-bound clip-lower-bound",
        BOTH,
    ),
    "Transposes around dequantized constants": Example(
        """g (float[1, 3, 4, 4] x) => (float[1, 3, 4, 4] y)
            <int8[3] w = {1, 2, 3}, float[3] s = {0.5, 1, 2}, int8[3] z = {0, 1, 2}, float t = {0.25}, int8 o = {0}> {
            a = Transpose<perm = [0, 2, 3, 1]>(x)  p = DequantizeLinear<axis = 0>(w, s, z)  b = Mul(a, p)
            q = DequantizeLinear(w, t, o)  c = Add(b, q)  y = Transpose<perm = [0, 3, 1, 2]>(c) }""",
        {"DequantizeLinear": 2, "Mul": 1, "Add": 1},
        "transpose-binary-dequantize[Mul] transpose-binary-dequantize[Add]",
        BOTH,
    ),
    "Gelu spelled out": Example(
        """g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) <float half = {0.5}, float one = {1}, float root = {1.4142135}, float inverse = {0.70710677}> {
            a = Div(x, root)  b = Erf(a)  c = Add(b, one)  d = Mul(x, c)  y = Mul(d, half)
            u = Neg(x)  e = Mul(u, inverse)  f = Erf(e)  h = Add(f, one)  i = Mul(u, half)  z = Mul(i, h) }""",
        {"Gelu": 2, "Neg": 1},
        "gelu gelu-quotient",
        (20, 21),
    ),
    "approximate Gelu spelled out": Example(
        """g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z, float[N, 4] w)
            <float half = {0.5}, float one = {1}, float three = {3}, float root = {0.7978846}, float cubic = {0.044715}> {
            a = Mul(x, half)  b = Pow(x, three)  c = Mul(b, cubic)  d = Add(x, c)  e = Mul(d, root)  f = Tanh(e)  h = Add(f, one)  y = Mul(a, h)
            u = Neg(x)  a2 = Mul(u, half)  b2 = Mul(u, u)  c2 = Mul(b2, u)  d2 = Mul(c2, cubic)  e2 = Add(u, d2)  f2 = Mul(e2, root)
            h2 = Tanh(f2)  i2 = Add(h2, one)  z = Mul(a2, i2)
            v = Exp(x)  a3 = Mul(v, half)  b3 = Mul(v, cubic)  c3 = Mul(b3, v)  d3 = Add(c3, one)  e3 = Mul(v, root)  f3 = Mul(e3, d3)
            h3 = Tanh(f3)  i3 = Add(h3, one)  w = Mul(a3, i3) }""",
        {"Gelu": 3, "Neg": 1, "Exp": 1},
        "gelu-tanh gelu-tanh-factor gelu-tanh-cube",
        (20, 21),
    ),
    "LayerNormalization spelled out": Example(
        """g (float[N, 3, 4] x, float[4] s, float[4] b) => (float[N, 3, 4] y) <float two = {2}, float e = {0.00001}> {
            m = ReduceMean<axes = [-1]>(x)  d = Sub(x, m)  q = Pow(d, two)  v = ReduceMean<axes = [-1]>(q)
            f = Add(v, e)  r = Sqrt(f)  n = Div(d, r)  p = Mul(n, s)  y = Add(p, b) }""",
        {"LayerNormalization": 1},
        "layernormalization layernormalization-bias",
        (17,),
    ),
    "LayerNormalization by Keras, in an opset without it": Example(
        """g (float[N, 3, 4] x) => (float[N, 3, 4] y) <float[4] s = {1, 2, 3, -4}, float[4] b = {2, 0.5, -1, 3}, float e = {0.00001}> {
            m = ReduceMean<axes = [2]>(x)  d = Sub(x, m)  q = Mul(d, d)  v = ReduceMean<axes = [2]>(q)  f = Add(v, e)  r = Sqrt(f)
            i = Reciprocal(r)  k = Mul(i, s)  p = Mul(x, k)  h = Mul(m, k)  c = Sub(b, h)  y = Add(p, c) }""",
        {"InstanceNormalization": 1, "Mul": 1, "Add": 1},
        "instancenormalization",
        (11, 13),
    ),
    "RMSNormalization and Swish spelled out": Example(
        """g (float[N, 3, 4] x, float[4] s) => (float[N, 3, 4] y, float[N, 3, 4] z, float[N, 3, 4] w) <float e = {0.00001}, int64[1] axes = {-1}> {
            q = Mul(x, x)  v = ReduceMean(q, axes)  f = Add(v, e)  r = Sqrt(f)  n = Div(x, r)  y = Mul(n, s)
            u = Exp(x)  q2 = Mul(u, u)  v2 = ReduceMean(q2, axes)  f2 = Add(v2, e)  r2 = Sqrt(f2)  n2 = Reciprocal(r2)  p2 = Mul(u, n2)  z = Mul(p2, s)
            g = Sigmoid(x)  w = Mul(x, g) }""",
        {"RMSNormalization": 2, "Exp": 1, "Swish": 1},
        "rmsnormalization swish",
        (24,),
    ),
}

"""Examples of rules about parts of tensors: Slice, Split, Concat, Gather, Pad and similar ones."""

from __future__ import annotations

from tests.rules.examples import Example

EXAMPLES = {
    "Slice of Slice": Example(
        """g (float[N, 9, 8] x) => (float[N, 2, 8] y, float[N, 3, 4] z)
        <int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[1] five = {5}, int64[1] end = {9223372036854775807}> {
            s = Slice(x, two, end, one)  t = Slice(s, one, three, one)  y = Exp(t)
            u = Slice(x, one, end, one, three)  v = Slice(u, one, end, two, two)  z = Exp(v) }""",
        {"Slice": 2, "Exp": 2},
        "slice-slice slice-slice-steps",
        (11, 21),
    ),
    "two slices are one Split": Example(
        """g (float[N, 8] x) => (float[N, 3] y, float[N, 5] z)
        <int64[1] axis = {1}, int64[1] o = {0}, int64[1] a = {3}, int64[1] end = {9223372036854775807}> {
            s = Slice(x, o, a, axis)  t = Slice(x, a, end, axis)  y = Exp(s)  z = Abs(t) }""",
        {"Split": 1, "Exp": 1, "Abs": 1},
        "slices-split",
        (11, 21),
    ),
    "three and four slices are one Split": Example(
        """g (float[N, 8] x, float[N, 8] w) => (float[N, 3] y, float[N, 2] z, float[N, 3] u, float[N, 3] a1, float[N, 2] a2, float[N, 1] a3, float[N, 2] a4)
        <int64[1] axis = {1}, int64[1] o = {0}, int64[1] a = {3}, int64[1] b = {5}, int64[1] c = {6}, int64[1] end = {9223372036854775807}> {
            s = Slice(x, o, a, axis)  t = Slice(x, a, b, axis)  r = Slice(x, b, end, axis)  y = Exp(s)  z = Abs(t)  u = Neg(r)
            s1 = Slice(w, o, a, axis)  s2 = Slice(w, a, b, axis)  s3 = Slice(w, b, c, axis)  s4 = Slice(w, c, end, axis)
            a1 = Exp(s1)  a2 = Abs(s2)  a3 = Neg(s3)  a4 = Cos(s4) }""",
        {"Split": 2, "Exp": 2, "Abs": 2, "Neg": 2, "Cos": 1},
        "slices-split-three slices-split-four",
        (13, 21),
    ),
    "windows of an image that is rolled around are one Gather": Example(
        """g (float[1, 64, 16] x) => (float[4, 16, 16] z)
        <int64[1] one = {1}, int64[1] two = {2}, int64[1] o = {0}, int64[1] a = {-3}, int64[1] end = {9223372036854775807},
         int64[4] image = {1, 8, 8, 16}, int64[6] six = {1, 2, 4, 2, 4, 16}, int64[3] three = {4, 16, 16}> {
            y = Reshape(x, image)
            a0 = Slice(y, a, end, one)  a1 = Slice(y, o, a, one)  b = Concat<axis = 1>(a0, a1)
            b0 = Slice(b, a, end, two)  b1 = Slice(b, o, a, two)  c = Concat<axis = 2>(b0, b1)
            d = Reshape(c, six)  e = Transpose<perm = [0, 1, 3, 2, 4, 5]>(d)  z = Reshape(e, three) }""",
        {"Gather": 1, "Reshape": 1},
        "concat-slices-gather gathers-grid reshape-places transpose-places",
        (17,),
    ),
    "windows that become an image, which is rolled around, are one Gather": Example(
        """g (float[4, 16, 16] x) => (float[1, 64, 16] z)
        <int64[1] one = {1}, int64[1] two = {2}, int64[1] o = {0}, int64[1] a = {3}, int64[1] end = {9223372036854775807},
         int64[4] image = {1, 8, 8, 16}, int64[6] six = {1, 2, 2, 4, 4, 16}, int64[3] three = {1, 64, 16}> {
            d = Reshape(x, six)  e = Transpose<perm = [0, 1, 3, 2, 4, 5]>(d)  y = Reshape(e, image)
            a0 = Slice(y, a, end, one)  a1 = Slice(y, o, a, one)  b = Concat<axis = 1>(a0, a1)
            b0 = Slice(b, a, end, two)  b1 = Slice(b, o, a, two)  c = Concat<axis = 2>(b0, b1)
            z = Reshape(c, three) }""",
        {"Gather": 1, "Reshape": 1},
        "concat-slices-gather gathers-grid reshape-places gather-transposed-places",
        (17,),
    ),
    "patches that are merged are one Gather": Example(
        """g (float[1, 8, 6, 16] x, float[1, 8, 6, 16] y) => (float[1, 4, 3, 64] u, float[1, 4, 3, 64] v)
        <int64[2] axes = {1, 2}, int64[2] s = {2, 2}, int64[2] end = {8, 6},
         int64[2] a = {0, 0}, int64[2] b = {1, 0}, int64[2] c = {0, 1}, int64[2] d = {1, 1}> {
            x0 = Slice(x, a, end, axes, s)  x1 = Slice(x, b, end, axes, s)  x2 = Slice(x, c, end, axes, s)  x3 = Slice(x, d, end, axes, s)
            y0 = Slice(y, a, end, axes, s)  y1 = Slice(y, b, end, axes, s)  y2 = Slice(y, c, end, axes, s)  y3 = Slice(y, d, end, axes, s)
            u = Concat<axis = 3>(x0, x1, x2, x3)  v = Concat<axis = -1>(y0, y2, y1, y3) }""",
        {"Gather": 2, "Reshape": 4},
        "slices-places slices-places-rows",
        (17,),
    ),
    "Gathers of neighbours are one Split": Example(
        """g (float[N, 8] x) => (float[N, 3] y, float[N, 5] z) <int64[3] i = {0, 1, 2}, int64[5] j = {3, 4, 5, 6, 7}> {
            s = Gather<axis = 1>(x, i)  t = Gather<axis = 1>(x, j)  y = Exp(s)  z = Abs(t) }""",
        {"Split": 1, "Exp": 1, "Abs": 1},
        "gather-slice slices-split",
        (11, 21),
    ),
    "Range and Gather are a Slice": Example(
        """g (float[N, 8] x) => (float[N, 5] y) <int64 i = {2}, int64 j = {7}, int64 one = {1}> {
            r = Range(i, j, one)  s = Gather<axis = 1>(x, r)  y = Exp(s) }""",
        {"Slice": 1, "Exp": 1},
        "gather-slice",
        (11, 21),
    ),
    "Gather of all indices, which have axes of their own": Example(
        """g (bool[1, 6] x, float[2, 3, N] v) => (bool[1, 1, 1, 6] y, float[2, 1, 3, N] z) <int64[1, 1, 1, 6] i = {0, 1, 2, 3, 4, 5}, int64[1, 3] j = {0, 1, 2},
            int64[4] sizes = {1, 1, 1, 6}> {
            f = Flatten<axis = 2>(x)  g = Gather(f, i)  r = Reshape(g, sizes)  y = Not(r)  t = Gather<axis = 1>(v, j)  z = Abs(t) }""",
        {"Reshape": 2, "Not": 1, "Abs": 1},
        "gather-nothing-axes gather-flatten",
        (13, 21),
    ),
    "Gather of all indices": Example(
        """g (float[N, 4] x, float[4] v) => (float[N, 4] y, float[4] z) <int64[4] i = {0, 1, 2, 3}> {
            s = Gather<axis = 1>(x, i)  y = Exp(s)  t = Gather(v, i)  z = Abs(t) }""",
        {"Exp": 1, "Abs": 1},
        "gather-nothing gather-slice",
        (11, 21),
    ),
    "Gather of Gather": Example(
        """g (float[N, 8] x) => (float[N, 2] y) <int64[4] i = {5, 1, 7, 2}, int64[2] j = {3, 0}> {
            s = Gather<axis = 1>(x, i)  t = Gather<axis = 1>(s, j)  y = Exp(t) }""",
        {"Gather": 1, "Exp": 1},
        "gather-gather",
        (11, 21),
    ),
    "Gather over Concat": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 2] y, float[N, 2] w) <int64[2] i = {3, 0}, int64[2] j = {7, 4}> {
            c = Concat<axis = 1>(x, z)  s = Gather<axis = 1>(c, i)  t = Gather<axis = 1>(c, j)  y = Exp(s)  w = Abs(t) }""",
        {"Gather": 2, "Exp": 1, "Abs": 1},
        "gather-concat-head gather-concat-rest",
        (11, 21),
    ),
    "one index of a Concat": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N] y) <int64 i = {-1}> {
            c = Concat<axis = 1>(x, z)  s = Gather<axis = 1>(c, i)  y = Exp(s) }""",
        {"Gather": 1, "Exp": 1},
        "gather-squeeze slice-concat-rest squeeze-slice",
        (13, 21),
    ),
    "the first row of any number of rows": Example(
        """g (float[N, S, 64] x) => (float[N, 64] y) <int64 i = {0}, float[64, 64] w> {
            r = Softplus(x)  m = MatMul(r, w)  t = Add(m, r)  q = Erf(t)  y = Gather<axis = 1>(q, i) }""",
        {"Slice": 1, "Squeeze": 1, "Softplus": 1, "MatMul": 1, "Add": 1, "Erf": 1},
        "gather-squeeze slice-binary[Add] slice-matmul-rows slice-unary[Softplus]",
        (13, 21),
        target="onnxruntime-cpu",
    ),
    "the last row of any number of rows": Example(
        """g (float[N, S, 64] x) => (float[N, 64] y) <int64 i = {-1}, float[64, 64] w> {
            r = Softplus(x)  m = MatMul(r, w)  t = Add(m, r)  q = Erf(t)  y = Gather<axis = 1>(q, i) }""",
        {"Slice": 1, "Squeeze": 1, "Softplus": 1, "MatMul": 1, "Add": 1, "Erf": 1},
        "gather-squeeze-last slice-binary[Add] slice-matmul-rows slice-unary[Softplus]",
        (13, 21),
        target="onnxruntime-cpu",
    ),
    "Gather before a difference from a constant": Example(
        """g (float[N, 5, 4] x) => (float[N, 2, 4] y) <int64[2] i = {0, 3}, float[4] c = {1, 2, 3, 4}> { s = Sub(c, x)  y = Gather<axis = 1>(s, i) }""",
        {"Gather": 1, "Sub": 1},
        "gather-binary[mirrored-Sub]",
        (13, 21),
    ),
    "Gather before a product": Example(
        """g (float[N, 5, 4] x) => (float[N, 3] y) <int64 i = {0}, float[4, 3] w, float[3] b = {1, 2, 3}, float[3] c = {2, 2, 3}> {
            s = MatMul(x, w)  t = Add(s, b)  m = Relu(t)  n = Mul(m, c)  y = Gather<axis = 1>(n, i) }""",
        {"Gather": 1, "Gemm": 1, "Relu": 1},
        "gather-matmul gather-binary[Add] gather-binary[Mul] gather-unary[Relu]",
        (13, 21),
    ),
    "Gather before LayerNormalization": Example(
        """g (float16[N, 5, 4] x) => (float[N, 4] y) <int64 i = {0}, float[4] w = {1, 2, 3, 4}> {
            s = Cast<to = 1>(x)  t = LayerNormalization(s, w)  y = Gather<axis = 1>(t, i) }""",
        {"Gather": 1, "LayerNormalization": 1, "Cast": 1},
        "gather-layernorm gather-unary[Cast]",
        (17, 21),
    ),
    "GatherND and GatherElements are Gather": Example(
        """g (float[8, N] x, float[8] v, float[8, 3] m) => (float[5, N] y, float[2] z, float[2, 3] w)
        <int64[5, 1] i = {1, 2, 3, 4, 5}, int64[4] k = {5, 1, 7, 2}, int64[2] j = {3, 0}, int64[2, 1] l = {5, 1}, int64[2] sizes = {2, 3}> {
            s = GatherND(x, i)  y = Exp(s)  r = GatherElements(v, k)  t = GatherElements(r, j)  z = Abs(t)
            e = Expand(l, sizes)  u = GatherElements(m, e)  w = Neg(u) }""",
        {"Slice": 1, "Gather": 2, "Exp": 1, "Abs": 1, "Neg": 1},
        "gathernd-gather gather-slice gatherelements-vector gather-gather gatherelements-expand",
        (13, 21),
    ),
    "ScatterND and ScatterElements that overwrite everything": Example(
        """g (float[2, 3] x, float[2, 3] u) => (float[2, 3] y, float[2, 3] z) <int64[2, 1] i = {0, 1}, int64[2, 3] j = {0, 0, 0, 1, 1, 1}> {
            s = ScatterND(x, i, u)  y = Exp(s)  t = ScatterElements(x, j, u)  z = Abs(t) }""",
        {"Exp": 1, "Abs": 1},
        "scatternd-all scatterelements-all",
        (13, 21),
    ),
    # As an exporter writes x[:, :, :, 2:5] = u.
    "a ScatterND of a slice joins it with the rest": Example(
        """g (float[2, 3, 4, 6] x, float[2, 3, 4, 3] u) => (float[2, 3, 4, 6] y) <int64[3, 1] i = {2, 3, 4}> {
            t = Transpose<perm = [3, 1, 2, 0]>(x)  w = Transpose<perm = [3, 1, 2, 0]>(u)  s = ScatterND(t, i, w)
            r = Transpose<perm = [3, 1, 2, 0]>(s)  y = Exp(r) }""",
        {"Slice": 2, "Concat": 1, "Exp": 1},
        "scatternd-slice",
        (13, 21),
    ),
    "what a ScatterND of some places of an axis wrote is read again": Example(
        """g (float[2, 5] x, float[2, 3] u) => (float[2, 3] y)
            <int64[2, 3, 2] i = {0, 1, 0, 2, 0, 3, 1, 1, 1, 2, 1, 3}, int64[1] one = {1}, int64[1] end = {4}> {
            s = ScatterND(x, i, u)  r = Slice(s, one, end, one)  y = Exp(r) }""",
        {"Exp": 1},
        "scatternd-slice",
        (13, 21),
    ),
    "Split into one part": Example(
        "g (float[N, 4] x) => (float[N, 4] y) { s = Split<axis = 1>(x)  y = Exp(s) }",
        {"Exp": 1},
        "split-one",
        (11, 13),
    ),
    "Split of Concat, Concat of Split": Example(
        """g (float[N, 2] a, float[N, 3] b, float[N, 4] c) => (float[N, 2] x, float[N, 3] y, float[N, 4] z, float[N, 9] w, float[N, 9] v)
        <int64[3] sizes = {2, 3, 4}, int64[4] four = {2, 3, 2, 2}> {
            j = Concat<axis = 1>(a, b, c)  r, s, t = Split<axis = 1>(j, sizes)  x = Exp(r)  y = Abs(s)  z = Neg(t)
            w = Cos(j)  k, l, m = Split<axis = 1>(w, sizes)  o = Concat<axis = 1>(k, l, m)
            p1, p2, p3, p4 = Split<axis = 1>(o, four)  q = Concat<axis = 1>(p1, p2, p3, p4)  v = Sin(q) }""",
        {"Concat": 1, "Exp": 1, "Abs": 1, "Neg": 1, "Cos": 1, "Sin": 1},
        "split-concat[3] concat-split[3] concat-split[4]",
        (13, 21),
    ),
    "Concat with parts that have no length": Example(
        """g (float[N, 4] x, float[N, 0] e, float[N, 3] z) => (float[N, 7] y) { s = Concat<axis = 1>(e, x, e, z)  y = Exp(s) }""",
        {"Concat": 1, "Exp": 1},
        "concat-empty concat-empty-second",
        (13, 21),
    ),
    "Concat of Concat": Example(
        """g (float[N, 4] x, float[N, 2] z, float[N, 3] u) => (float[N, 13] y) {
            s = Concat<axis = 1>(x, z)  t = Concat<axis = 1>(u, s)  r = Concat<axis = 1>(t, x)  y = Exp(r) }""",
        {"Concat": 1, "Exp": 1},
        "",
        (13, 21),
    ),
    "a slice across a Concat": Example(
        """g (float[6, 4] x, float[6, 2] z) => (float[2, 6] y) <int64[1] axis = {0}, int64[1] a = {1}, int64[1] b = {3}> {
            s = Concat<axis = 1>(x, z)  t = Slice(s, a, b, axis)  y = Exp(t) }""",
        {"Concat": 1, "Slice": 1, "Exp": 1},
        "slice-concat-across",
        (13, 21),
    ),
    "Slice before elementwise operators": Example(
        """g (float[N, 64, 8] x) => (float[N, 2, 8] y)
        <int64[1] axis = {1}, int64[1] a = {1}, int64[1] b = {3}, float[8] c = {1, 2, 3, 4, 5, 6, 7, 8}, float lo = {-1}, float hi = {4}> {
            s1 = Sigmoid(x)  s2 = Tanh(s1)  s3 = Mul(s2, c)  s4 = Sub(c, s3)  s5 = Clip(s4, lo, hi)  s6 = Div(c, s5)  y = Slice(s6, a, b, axis) }""",
        {"Slice": 1, "Sigmoid": 1, "Tanh": 1, "Mul": 1, "Sub": 1, "Clip": 1, "Div": 1},
        "slice-unary[Sigmoid] slice-unary[Tanh] slice-binary[Mul] slice-binary[Sub] slice-clip slice-binary[Div]",
        (13, 21),
    ),
    "parts of sums": Example(
        """g (int32[N, 2] a, int32[N, 3] b, int32[N, 5] x) => (float[N, 2] y) <int64[1] axis = {1}, int64[1] o = {0}, int64[1] two = {2}> {
            c = Concat<axis = 1>(a, b)  s = Add(c, x)  t = Cast<to = 1>(s)  r = Relu(t)  y = Slice(r, o, two, axis) }""",
        {"Slice": 1, "Add": 1, "Cast": 1, "Relu": 1},
        "slice-unary[Relu] slice-unary[Cast] slice-binary[Add] slice-concat-head",
        (17, 21),
    ),
    "Slice before Transpose and Reshape": Example(
        """g (float[64, 4, 6] x) => (float[6, 2, 4] y, float[2, 24] z)
        <int64[1] one = {1}, int64[1] zero = {0}, int64[1] a = {1}, int64[1] b = {3}, int64[2] sizes = {-1, 24}> {
            e = Exp(x)  s = Transpose<perm = [2, 0, 1]>(e)  y = Slice(s, a, b, one)
            f = Abs(x)  t = Reshape(f, sizes)  z = Slice(t, a, b, zero) }""",
        {"Slice": 1, "Transpose": 1, "Exp": 1, "Abs": 1, "Reshape": 1},
        "slice-transpose slice-reshape",
        (13, 21),
    ),
    "Slice before products": Example(
        """g (float[N, 8, 4] x) => (float[N, 1, 2] y) <float[4, 6] w, int64[2] axes = {1, 2}, int64[1] one = {1}, int64[1] two = {2},
         int64[1] a = {1}, int64[1] b = {3}> {
            s = MatMul(x, w)  t = Slice(s, one, two, one)  y = Slice(t, a, b, two) }""",
        {"Slice": 1, "MatMul": 1},
        "slice-matmul-rows slice-matmul-columns",
        (13, 21),
    ),
    "Slice before Gemm": Example(
        """g (float[64, 4] x) => (float[2, 2] y) <float[6, 4] w, float[6] c = {1, 2, 3, 4, 5, 6}, int64[1] zero = {0}, int64[1] one = {1},
         int64[1] a = {1}, int64[1] b = {3}> {
            s = Gemm<transB = 1>(x, w, c)  t = Slice(s, a, b, zero)  y = Slice(t, a, b, one) }""",
        {"Slice": 1, "Gemm": 1},
        "slice-gemm-rows slice-gemm-columns",
        (13, 21),
    ),
    "channels of a Conv that nobody reads": Example(
        """g (float[N, 2, 5, 5] x) => (float[N, 2, 3, 3] y) <float[6, 2, 3, 3] w, float[6] c = {1, 2, 3, 4, 5, 6}, int64[1] one = {1},
         int64[1] a = {1}, int64[1] b = {3}> {
            s = Conv(x, w, c)  t = Relu(s)  y = Slice(t, a, b, one) }""",
        {"Conv": 1, "Relu": 1},
        "slice-conv slice-unary[Relu]",
        (13, 21),
    ),
    "Slice before Softmax and LayerNormalization": Example(
        """g (float[N, 64, 8] x) => (float[N, 2, 8] y) <int64[1] axis = {1}, int64[1] a = {1}, int64[1] b = {3}, float[8] w> {
            s = LayerNormalization(x, w)  t = Softmax(s)  y = Slice(t, a, b, axis) }""",
        {"Slice": 1, "LayerNormalization": 1, "Softmax": 1},
        "slice-softmax[Softmax] slice-layernorm",
        (17, 21),
    ),
    "Slice before reductions": Example(
        """g (float[N, 64, 8] x) => (float[N, 2] y, float[N, 2, 1] z) <int64[1] axis = {1}, int64[1] a = {1}, int64[1] b = {3}, int64[1] last = {2}> {
            e = Exp(x)  s = ReduceMean<axes = [2], keepdims = 0>(e)  y = Slice(s, a, b, axis)
            f = Abs(x)  t = ReduceSum(f, last)  z = Slice(t, a, b, axis) }""",
        {"Slice": 1, "Exp": 1, "ReduceMean": 1, "ReduceL1": 1},
        "slice-reduction[ReduceMean] slice-reduction[ReduceSum] slice-unary[Exp] slice-unary[Abs]",
        (13,),
    ),
    "Pad, then Slice": Example(
        """g (float[N, 3, 8, 8] x) => (float[N, 3, 8, 8] y)
        <int64[8] p = {0, 0, 2, 1, 0, 0, 2, 1}, int64[2] axes = {2, 3}, int64[2] a = {2, 1}, int64[2] b = {10, 9}> {
            s = Pad(x, p)  t = Slice(s, a, b, axes)  y = Exp(t) }""",
        {"Exp": 1},
        "slice-pad pad-nothing",
        (13, 21),
    ),
    "Pad of Pad, of nothing": Example(
        """g (float[N, 4] x) => (float[N, 8] y) <int64[4] p = {0, 1, 0, 2}, int64[4] q = {0, 1, 0, 0}, int64[4] o = {0, 0, 0, 0}, float v = {3}> {
            s = Pad(x, p, v)  t = Pad(s, q, v)  u = Pad(t, o)  y = Exp(u) }""",
        {"Pad": 1, "Exp": 1},
        "pad-pad pad-nothing",
        (11, 21),
    ),
    "Tile of Tile, by one": Example(
        """g (float[2, 4] x) => (float[2, 24] y) <int64[2] p = {1, 2}, int64[2] q = {1, 3}, int64[2] o = {1, 1}> {
            s = Tile(x, p)  t = Tile(s, q)  u = Tile(t, o)  y = Exp(u) }""",
        {"Tile": 1, "Exp": 1},
        "tile-nothing tile-tile",
        (13, 21),
    ),
    "Expand by ones": Example(
        "g (float[N, 4] x) => (float[N, 4] y) <int64[2] a = {1, 1}> { s = Expand(x, a)  y = Exp(s) }",
        {"Exp": 1},
        "",
        (13, 21),
    ),
    "windows of one element": Example(
        """g (float[N, 3, 8, 8] x) => (float[N, 3, 8, 8] y) {
            s = MaxPool<kernel_shape = [1, 1], strides = [1, 1]>(x)  t = AveragePool<kernel_shape = [1, 1], count_include_pad = 1>(s)  y = Exp(t) }""",
        {"Exp": 1},
        "maxpool-nothing averagepool-nothing",
        (11, 21),
    ),
    "Slice and Concat are SpaceToDepth": Example(
        """g (float[N, 3, 8, 8] x, float[N, 1, 4, 4] w) => (float[N, 12, 4, 4] y, float[N, 4, 2, 2] z)
        <int64[1] h = {2}, int64[1] v = {3}, int64[1] o = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] end = {9223372036854775807}> {
            a = Slice(x, o, end, h, two)  b = Slice(x, one, end, h, two)
            a0 = Slice(a, o, end, v, two)  a1 = Slice(a, one, end, v, two)  b0 = Slice(b, o, end, v, two)  b1 = Slice(b, one, end, v, two)
            j = Concat<axis = 1>(a0, b0, a1, b1)  y = Exp(j)
            c = Slice(w, o, end, h, two)  d = Slice(w, one, end, h, two)
            c0 = Slice(c, o, end, v, two)  c1 = Slice(c, one, end, v, two)  d0 = Slice(d, o, end, v, two)  d1 = Slice(d, one, end, v, two)
            k = Concat<axis = 1>(c0, c1, d0, d1)  z = Abs(k) }""",
        {"SpaceToDepth": 2, "Gather": 1, "Exp": 1, "Abs": 1},
        "slices-spacetodepth slices-spacetodepth-columns",
        (13, 21),
    ),
    "DepthToSpace and SpaceToDepth": Example(
        """g (float[N, 4, 8, 8] x) => (float[N, 4, 8, 8] y, float[N, 4, 8, 8] z) {
            s = SpaceToDepth<blocksize = 2>(x)  t = DepthToSpace<blocksize = 2>(s)  y = Exp(t)
            u = DepthToSpace<blocksize = 2>(x)  v = SpaceToDepth<blocksize = 2>(u)  z = Abs(v) }""",
        {"Exp": 1, "Abs": 1},
        "depthtospace-spacetodepth[DepthToSpace,SpaceToDepth] depthtospace-spacetodepth[SpaceToDepth,DepthToSpace]",
        (13, 21),
    ),
}

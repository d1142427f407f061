"""Examples of rules that merge.

They merge products and Convs that share an input, sums of them, joined or split parts, and kernels
of several sizes.
"""

from __future__ import annotations

from tests.rules.examples import Example

EXAMPLES = {
    "QKV: 3 MatMul same input -> 1 MatMul+Split": Example(
        """g (float[N, 2, 4] x) => (float[N, 2, 3] q, float[N, 2, 3] k, float[N, 2, 5] v)
        <float[4, 3] wq, float[4, 3] wk, float[4, 5] wv, float[3] bq, float[3] bk, float[5] bv> {
            qm = MatMul(x, wq)  km = MatMul(x, wk)  vm = MatMul(x, wv)
            q = Add(qm, bq)  k = Add(km, bk)  v = Add(vm, bv) }""",
        {"MatMul": 1, "Add": 1, "Split": 1},
        "matmul-columns split-binary-const[Add] split-slices",
        (13, 17),
    ),
    "four products of one input are one": Example(
        """g (float[M, 4] x) => (float[M, 3] a, float[M, 5] b, float[M, 2] c, float[M, 3] d) <float[4, 3] v, float[4, 5] w, float[4, 2] r, float[4, 3] s> {
            a = MatMul(x, v)  b = MatMul(x, w)  c = MatMul(x, r)  d = MatMul(x, s) }""",
        {"MatMul": 1, "Split": 1},
        "matmul-columns split-split split-split-last split-split-end",
        (13, 17),
    ),
    "eight gates of one cell: x W1 + h W2": Example(
        """g (float[N, 4] x, float[N, 3] h) => (float[N, 2] a, float[N, 2] b, float[N, 2] c, float[N, 2] d,
         float[N, 2] e, float[N, 2] f, float[N, 2] p, float[N, 2] q)
        <float[4, 2] v0, float[4, 2] v1, float[4, 2] v2, float[4, 2] v3, float[4, 2] v4, float[4, 2] v5, float[4, 2] v6, float[4, 2] v7,
         float[3, 2] w0, float[3, 2] w1, float[3, 2] w2, float[3, 2] w3, float[3, 2] w4, float[3, 2] w5, float[3, 2] w6, float[3, 2] w7> {
            x0 = MatMul(x, v0)  h0 = MatMul(h, w0)  a = Add(x0, h0)  x1 = MatMul(x, v1)  h1 = MatMul(h, w1)  b = Add(x1, h1)
            x2 = MatMul(x, v2)  h2 = MatMul(h, w2)  c = Add(x2, h2)  x3 = MatMul(x, v3)  h3 = MatMul(h, w3)  d = Add(x3, h3)
            x4 = MatMul(x, v4)  h4 = MatMul(h, w4)  e = Add(x4, h4)  x5 = MatMul(x, v5)  h5 = MatMul(h, w5)  f = Add(x5, h5)
            x6 = MatMul(x, v6)  h6 = MatMul(h, w6)  p = Add(x6, h6)  x7 = MatMul(x, v7)  h7 = MatMul(h, w7)  q = Add(x7, h7) }""",
        {"Concat": 1, "MatMul": 2, "Split": 2},
        "matmul-sum matmul-columns",
        (13, 17),
    ),
    "a sum of products with something between": Example(
        """g (float[N, 2, 4] x, float[N, 2, 3] h, float[N, 2, 5] z) => (float[N, 2, 5] y) <float[4, 5] v, float[3, 5] w, float[5] b = {1, 2, 3, 4, 5}> {
            p = MatMul(x, v)  q = MatMul(h, w)  r = Add(p, b)  s = Add(z, r)  y = Add(s, q) }""",
        {"Concat": 1, "MatMul": 1, "Add": 2},
        "matmul-sum-more const-last[Add]",
        (13, 17),
    ),
    "products by one matrix": Example(
        "g (float[2, 4] x, float[3, 4] y) => (float[5, 3] z) <float[4, 3] w> { a = MatMul(x, w)  b = MatMul(y, w)  z = Concat<axis = 0>(a, b) }",
        {"Concat": 1, "MatMul": 1},
        "matmul-rows concat-split[2]",
        (13, 17),
    ),
    "MatMul over sum: ax + bx -> (a + b)x": Example(
        """g (float[N, 2, 4] x, float[N, 2, 4] y) => (float[N, 2, 3] p, float[N, 2, 3] q) <float[4, 3] v, float[4, 3] w> {
            a = MatMul(x, v)  b = MatMul(x, w)  s = Add(a, b)  p = Relu(s)
            c = MatMul(x, v)  d = MatMul(y, v)  t = Add(c, d)  q = Tanh(t) }""",
        {"MatMul": 2, "Add": 1, "Relu": 1, "Tanh": 1},
        "matmul-sum-weights matmul-sum-inputs",
        (13, 17),
    ),
    "factor common: x y + x z -> x (y + z)": Example(
        """g (float[N, 4] x, float[N, 4] y, float[4] z) => (float[N, 4] p, float[N, 4] q) <float[4] c = {1, 2, 3, 4}> {
            a = Mul(x, y)  b = Mul(x, z)  p = Add(a, b)  d = Mul(x, c)  q = Add(d, x) }""",
        {"Mul": 2, "Add": 1},
        "mul-sum mul-sum-one",
    ),
    "merging parallel Convs": Example(
        """g (float[N, 2, H, W] x) => (float[N, 3, H, W] p, float[N, 4, H, W] q) <float[3, 2, 1, 1] v, float[4, 2, 1, 1] w> {
            a = Conv(x, v)  b = Conv(x, w)  p = Relu(a)  q = Relu(b) }""",
        {"Conv": 1, "Relu": 1, "Split": 1},
        "conv-conv split-unary[Relu]",
        (13, 17),
    ),
    "a fire module: kernels of two sizes side by side": Example(
        """g (float[N, 2, H, W] x) => (float[N, 7, H, W] y) <float[3, 2, 1, 1] v, float[4, 2, 3, 3] w> {
            a = Conv(x, v)  b = Conv<pads = [1, 1, 1, 1]>(x, w)  p = Relu(a)  q = Relu(b)  y = Concat<axis = 1>(p, q) }""",
        {"Conv": 1, "Relu": 1},
        "conv-enlarge-bare conv-concat unary-concat[Relu]",
    ),
    "rows and columns of a kernel side by side": Example(
        """g (float[N, 2, H, W] x) => (float[N, 7, H, W] y) <float[3, 2, 1, 3] v, float[4, 2, 3, 1] w> {
            a = Conv<pads = [0, 1, 0, 1]>(x, v)  b = Conv<pads = [1, 0, 1, 0]>(x, w)  y = Concat<axis = 1>(a, b) }""",
        {"Conv": 1},
        "conv-enlarge conv-concat",
    ),
    "Convs by one kernel": Example(
        """g (float[2, 2, H, W] x, float[1, 2, H, W] z) => (float[3, 3, H, W] y) <float[3, 2, 1, 1] v, float[3] b> {
            a = Conv(x, v, b)  c = Conv(z, v, b)  y = Concat<axis = 0>(a, c) }""",
        {"Concat": 1, "Conv": 1},
        "conv-batch concat-split[2]",
        (13, 17),
    ),
    "sums of Convs": Example(
        """g (float[N, 2, H, W] x, float[N, 2, H, W] z) => (float[N, 3, H, W] p, float[N, 3, H, W] q) <float[3, 2, 1, 1] v, float[3, 2, 1, 1] w> {
            a = Conv(x, v)  b = Conv(x, w)  s = Add(a, b)  p = Relu(s)
            c = Conv(x, v)  d = Conv(z, v)  t = Add(c, d)  q = Tanh(t) }""",
        {"Conv": 2, "Add": 1, "Relu": 1, "Tanh": 1},
        "conv-sum-weights conv-sum-inputs",
    ),
    "sums of Convs of several images": Example(
        """g (float[N, 2, H, W] x, float[N, 5, H, W] z, float[N, 3, H, W] r) => (float[N, 3, H, W] p, float[N, 3, H, W] q)
        <float[3, 2, 1, 1] v, float[3, 5, 1, 1] w, float[3, 5, 1, 1] u> {
            a = Conv(x, v)  b = Conv(z, w)  p = Add(a, b)
            c = Conv(z, u)  s = Add(r, a)  q = Add(s, c) }""",
        {"Concat": 1, "Conv": 2, "Add": 1},
        "conv-sum conv-sum-more",
    ),
    "what is done to parts is done to the whole": Example(
        """g (float[N, 4] x, float[N, 2] y) => (float[N, 6] p, float[N, 6] q, float[N, 6] r) {
            a = Relu(x)  b = Relu(y)  p = Concat<axis = 1>(a, b)
            c = Sigmoid(x)  d = Sigmoid(y)  q = Concat<axis = 1>(c, d)
            e = Tanh(x)  f = Tanh(y)  r = Concat<axis = 1>(e, f) }""",
        {"Concat": 1, "Relu": 1, "Sigmoid": 1, "Tanh": 1},
        "unary-concat[Relu] unary-concat[Sigmoid] unary-concat[Tanh]",
    ),
    "sums and products side by side": Example(
        """g (float[N, 4] x, float[N, 2] y, float[N, 4] z, float[N, 2] w) => (float[N, 6] p, float[N, 6] q) {
            a = Add(x, z)  b = Add(y, w)  p = Concat<axis = 1>(a, b)
            c = Mul(x, z)  d = Mul(y, w)  q = Concat<axis = 1>(c, d) }""",
        {"Concat": 2, "Add": 1, "Mul": 1},
        "binary-concat[Add] binary-concat[Mul]",
    ),
    "biases and factors side by side": Example(
        """g (float[N, 4] x, float[N, 2] y) => (float[N, 6] p)
        <float[4] a = {1, 2, 3, 4}, float[2] b = {5, 6}, float[4] f = {1, 2, 3, 4}, float[2] h = {5, 6}> {
            c = Mul(x, f)  d = Mul(y, h)  s = Add(c, a)  t = Add(d, b)  p = Concat<axis = 1>(s, t) }""",
        {"Concat": 1, "Add": 1, "Mul": 1},
        "binary-concat-const[Add] binary-concat-const[Mul]",
    ),
    "differences from constants side by side": Example(
        """g (float[N, 4] x, float[N, 2] y) => (float[N, 6] p) <float[4] a = {1, 2, 3, 4}, float[2] b = {5, 6}> {
            s = Sub(a, x)  t = Sub(b, y)  p = Concat<axis = 1>(s, t) }""",
        {"Concat": 1, "Sub": 1},
        "binary-concat-const[mirrored-Sub]",
    ),
    "products of one input side by side": Example(
        """g (float[N, 4] x) => (float[N, 8] y) <float[4, 3] v, float[4, 5] w> {
            a = MatMul(x, v)  b = MatMul(x, w)  y = Concat<axis = 1>(a, b) }""",
        {"MatMul": 1},
        "matmul-concat concat-one",
    ),
    "Concat of Concat": Example(
        """g (float[N, 4] x, float[N, 2] y, float[N, 3] z) => (float[N, 10] p, float[N, 9] q, float[N, 14] r) {
            a = Concat<axis = 1>(x, y)  p = Concat<axis = 1>(a, x)
            b = Concat<axis = 1>(y, z)  q = Concat<axis = 1>(x, b)
            c = Concat<axis = 1>(x, y, z)  s = Concat<axis = 1>(c, y, z)  r = Exp(s) }""",
        {"Concat": 3, "Exp": 1},
        "concat-front concat-front-more concat-back",
    ),
    "Split/Concat cancel": Example(
        """g (float[N, 4] x, float[N, 2] y) => (float[N, 4] p, float[N, 2] q, float[N, 4] r) <int64[2] s = {4, 2}, int64[2] h = {1, 3}> {
            c = Concat<axis = 1>(x, y)  a, b = Split<axis = 1>(c, s)  p = Exp(a)  q = Exp(b)
            d, e = Split<axis = 1>(x, h)  f = Concat<axis = 1>(d, e)  r = Abs(f) }""",
        {"Exp": 2, "Abs": 1},
        "split-concat[2] concat-split[2]",
        (13, 17),
    ),
    "activations of both parts": Example(
        """g (float[N, 4] x) => (float[N, 1] p, float[N, 3] q, float[N, 1] r, float[N, 3] t) <int64[2] h = {1, 3}> {
            a, b = Split<axis = 1>(x, h)
            p = Sigmoid(a)  q = Sigmoid(b)  r = Tanh(a)  t = Tanh(b) }""",
        {"Split": 2, "Sigmoid": 1, "Tanh": 1},
        "split-unary[Sigmoid] split-unary[Tanh]",
        (13, 17),
    ),
    "depthwise Convs of two images": Example(
        """g (float[N, 4, H, W] x, float[N, 4, H, W] z) => (float[N, 4, H, W] y)
        <float[4, 1, 3, 3] v, float[4, 1, 3, 3] w, float[4, 4, 1, 1] r, float[4, 4, 1, 1] s> {
            a = Conv<group = 4, pads = [1, 1, 1, 1]>(x, v)  b = Conv<group = 4, pads = [1, 1, 1, 1]>(z, w)
            c = Conv(a, r)  d = Conv(b, s)  y = Add(c, d) }""",
        {"Concat": 1, "Conv": 2},
        "conv-concat-groups conv-sum",
    ),
    "depthwise Convs of one image, whose channels alternate": Example(
        """g (float[N, 4, H, W] x) => (float[N, 4, H, W] y)
        <float[4, 1, 3, 3] v, float[4, 1, 3, 3] w, float[4, 4, 1, 1] r, float[4, 4, 1, 1] s> {
            a = Conv<group = 4, pads = [1, 1, 1, 1]>(x, v)  b = Conv<group = 4, pads = [1, 1, 1, 1]>(x, w)
            c = Conv(a, r)  d = Conv(b, s)  y = Add(c, d) }""",
        {"Conv": 2},
        "conv-concat-shared conv-gather conv-conv-groups",
        (13, 17),
    ),
    "a Conv in groups beside one that is not": Example(
        """g (float[N, 4, H, W] x) => (float[N, 7, H, W] y) <float[4, 2, 1, 1] v, float[3, 4, 1, 1] w> {
            a = Conv<group = 2>(x, v)  b = Conv(x, w)  y = Concat<axis = 1>(a, b) }""",
        {"Conv": 1},
        "conv-merge-groups conv-concat",
    ),
}

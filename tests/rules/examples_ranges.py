"""Examples of rules that read ranges: operators that do nothing, and results that are known."""

from __future__ import annotations

from tests.rules.examples import Example

BOTH = (13, 21)

EXAMPLES = {
    "no sign to drop, however far away the bound is": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 8] y) {
            a = Sigmoid(x)  b = Exp(z)  c = Add(a, b)  t = Transpose<perm = [1, 0]>(c)  u = Transpose<perm = [1, 0]>(t)
            j = Concat<axis = 1>(u, a)  y = Abs(j) }""",
        {"Sigmoid": 1, "Exp": 1, "Add": 1, "Concat": 1},
        "nonnegative[Abs]",
        BOTH,
    ),
    "activations of what has no sign": Example(
        """g (float[N, 4] x) => (float[N, 4] a, float[N, 4] b, float[N, 4] c) {
            s = Softmax<axis = 1>(x)  a = LeakyRelu(s)  t = Sqrt(x)  b = Elu(t)  m = Mul(x, x)  c = Relu(m) }""",
        {"Softmax": 1, "Sqrt": 1, "Mul": 1},
        "nonnegative[LeakyRelu] nonnegative[Elu] nonnegative-square[Relu]",
        BOTH,
    ),
    "bounds beyond all elements": Example(
        """g (float[N, 4] x) => (float[N, 4] a, float[N, 4] b, float[N, 4] c)
        <float zero = {0}, float one = {1}, float two = {2}, float m = {-1}> {
            s = Sigmoid(x)  a = Clip(s, zero, one)  t = Tanh(x)  u = Add(t, one)  b = Min(u, two)
            v = Cos(x)  c = Max(v, m) }""",
        {"Sigmoid": 1, "Tanh": 1, "Add": 1, "Cos": 1},
        "needless-clip needless-bound[Max] needless-bound[Min]",
        BOTH,
    ),
    "half of a Clip": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float zero = {0}, float six = {6}> { s = Softplus(x)  y = Clip(s, zero, six) }""",
        {"Softplus": 1, "Min": 1},
        "needless-bound[Max]",
        BOTH,
    ),
    "bounds that an element may pass": Example(
        """g (float[N, 4] x, int64[N, 4] i) => (float[N, 4] a, float[N, 4] b, int64[N, 4] c) <float half = {0.5}, float one = {1}> {
            s = Sigmoid(x)  a = Min(s, half)  t = Sub(s, half)  b = Abs(t)  c = Abs(i) }""",
        {"Sigmoid": 1, "Sub": 1, "Min": 1, "Abs": 2},
        "",
        BOTH,
    ),
    "a Relu that cuts off all elements": Example(
        """g (float[2, 4] x) => (float[2, 4] b) <float two = {2}> { s = Sigmoid(x)  u = Sub(s, two)  v = Relu(u)  b = Add(v, x) }""",
        {"Identity": 1},
        "single-number[Relu]",
        BOTH,
    ),
    "saturated activations, and the sign of what has one": Example(
        """g (float[2, 4] x) => (float[2, 4] a, float[2, 4] b) <float nine = {9}, float one = {1}> {
            s = Abs(x)  t = Add(s, nine)  h = HardSigmoid(t)  a = Sub(x, h)  u = Add(s, one)  v = Sign(u)  b = Mul(x, v) }""",
        {"Add": 1, "Identity": 1},
        "single-number[HardSigmoid] single-number[Sign]",
        BOTH,
    ),
    "comparisons that bounds decide": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y, float[N, 4] w) <float zero = {0}, float two = {2}> {
            s = Sigmoid(x)  c = Greater(s, two)  y = Where(c, z, s)  e = Exp(x)  d = GreaterOrEqual(e, zero)  w = Where(d, e, z) }""",
        {"Sigmoid": 1, "Exp": 1},
        "known-comparison[Greater] certain-comparison[LessOrEqual] where-true where-false",
        BOTH,
    ),
    "a mask of a computed size that hides nothing": Example(
        """g (float[N, 3, 5, 4] x, float[N, 3, 4, 5] k, float[N, 3, 5, 2] v) => (float[N, 3, 5, 2] y, float[N, 3, 5, 5] z)
        <bool[1, 1, 5, 1] all = {1, 1, 1, 1, 1}, bool[5, 1] no = {0, 0, 0, 0, 0}, float zero = {0}, float low = {-1000}, float one = {1},
         int64[3] rest = {1, 5, 5}, int64[1] first = {0}> {
            s = Shape(x)  n = Gather(s, first)  t = Concat<axis = 0>(n, rest)  c = Expand(all, t)  w = Where(c, zero, low)
            m = MatMul(x, k)  a = Add(m, w)  p = Softmax<axis = -1>(a)  q = MatMul(p, v)  i = IsNaN(q)  y = Where(i, zero, q)
            d = Expand(no, t)  f = Where(d, low, one)  e = Exp(m)  z = Mul(e, f) }""",
        {"MatMul": 2, "Softmax": 1, "Exp": 1},
        "where-true-wide where-false-wide softmax-guard-product",
        (13, 21),
    ),
    "a term of zeros and a factor of ones, by their bounds": Example(
        """g (float[N, 4] x, bool[N, 1] c) => (float[N, 4] y) <float one = {1}> {
            f = Cast<to = 1>(c)  n = Neg(f)  r = Relu(n)  a = Add(x, r)  s = Abs(a)  m = Max(f, one)  y = Mul(s, m) }""",
        {"Abs": 1},
        "zero-term[Add] unit-factor[Mul]",
        (13, 21),
    ),
    "what follows from a known comparison": Example(
        """g (int64[N, 4] i, bool[N, 4] c, float[N, 4] x) => (bool[N, 4] a, float[N, 4] y) <int64 zero = {0}> {
            s = Abs(x)  k = ArgMax<axis = 1, keepdims = 1>(s)  f = Less(k, zero)  g = And(c, f)  n = Not(g)  a = And(c, n)
            t = Cast<to = 1>(i)  p = IsNaN(t)  y = Where(p, x, t) }""",
        {"Identity": 1, "Cast": 1},
        "known-comparison[And] known-condition[Not] known-condition[IsNaN] neutral-condition[And]",
        BOTH,
    ),
    "indices that do not count from the end": Example(
        """g (float[N, M, 4] x) => (int64[N, 4] y) <int64 zero = {0}, int64 one = {1}> {
            k = ArgMax<axis = 1, keepdims = 0>(x)  s = Shape(x)  n = Gather(s, one)  c = Less(k, zero)  m = Add(k, n)  y = Where(c, m, k) }""",
        {"ArgMax": 1},
        "known-comparison[Less] where-false",
        BOTH,
    ),
    "integers less than the divisor": Example(
        """g (float[N, 8] x) => (int64[N] y, int64[N] z) <int64 d = {8}> {
            k = ArgMax<axis = 1, keepdims = 0>(x)  y = Mod(k, d)  q = Div(k, d)  z = Add(q, k) }""",
        {"ArgMax": 1, "Identity": 1},
        "mod-less div-less",
        BOTH,
    ),
    "a cast to a type that holds all elements": Example(
        """g (float[N, 8] x) => (float[N] y) { k = ArgMax<axis = 1, keepdims = 0>(x)  i = Cast<to = 6>(k)  y = Cast<to = 1>(i) }""",
        {"ArgMax": 1, "Cast": 1},
        "cast-cast-range",
        BOTH,
    ),
    "no number below zero behind sums of products": Example(
        """g (float[1, 2, 4, 4] x, float[N, 3] z) => (float[1, 2, 4, 4] a, float[N, 2] b, float[N, 2] c)
        <float[2, 1, 3, 3] w = {0.1, 0.2, 0.1, 0, 1, 0, 0.1, 0.2, 0.1, 1, 1, 1, 2, 2, 2, 1, 1, 1}, float[2] s = {0, 0.5},
        float[3, 2] m = {1, -1, 0.5, -2, 0, -1}> {
            u = Relu(x)  v = Conv<group = 2, pads = [1, 1, 1, 1]>(u, w, s)  a = Relu(v)
            t = Sigmoid(z)  p = MatMul(t, m)  o = Constant<value = float {1.5}>()  k = Constant<value = float {-4.0}>()  b = Clip(p, k, o)
            q = Gemm(t, m, s)  l = Constant<value = float {-4.0}>()  n = Constant<value = float {2}>()  c = Clip(q, l, n) }""",
        {"Relu": 1, "Conv": 1, "Sigmoid": 1, "MatMul": 1, "Add": 1},
        "nonnegative[Relu] needless-clip",
        BOTH,
    ),
    "a bound that the least sum passes": Example(
        """g (float[N, 3] z) => (float[N, 2] b) <float[3, 2] m = {1, -1, 0.5, -2, 0, -1}> {
            t = Sigmoid(z)  p = MatMul(t, m)  k = Constant<value = float {-3.9}>()  b = Max(p, k) }""",
        {"Sigmoid": 1, "MatMul": 1, "Max": 1},
        "",
        BOTH,
    ),
    "restored integers without a sign": Example(
        """g (uint8[N, 4] x, int8[N, 4] z) => (float[N, 4] a, float[N, 4] b, float[N, 4] c)
        <float s = {0.5}, uint8 zero = {0}, int8 low = {-128}, int8 three = {3}, float top = {127.5}, float bottom = {0}> {
            u = DequantizeLinear(x, s, zero)  a = Relu(u)  v = DequantizeLinear(z, s, low)  b = Clip(v, bottom, top)
            w = DequantizeLinear(z, s, three)  c = Relu(w) }""",
        {"DequantizeLinear": 3, "Clip": 1},
        "nonnegative[Relu] needless-clip",
        BOTH,
    ),
}

"""Examples of the first rules of the rule language."""

from __future__ import annotations

from tests.rules.examples import Example

EXAMPLES = {
    "chain of constants": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float[4] a = {1, 2, 3, 4}, float b = {2}, float[4] c = {4, 3, 2, 5}> {
            s = Add(a, x)  t = Mul(s, b)  u = Sub(t, c)  v = Div(u, b)  w = Add(v, a)  y = Mul(c, w) }""",
        {"Mul": 1, "Add": 1},
        "associative-const[Add] associative-const[Mul] mul-add-const sub-const div-const",
    ),
    "integers wrap": Example(
        """g (int32[N] x) => (int32[N] y) <int32 a = {2000000000}, int32 b = {1999999999}> {
            s = Add(x, a)  t = Add(s, b)  u = Mul(t, a)  y = Mul(u, b) }""",
        {"Mul": 1, "Add": 1},
        "associative-const[Add] associative-const[Mul] mul-add-const",
    ),
    "neutral numbers": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float[4] zero = {0, 0, 0, 0}, float one = {1}> {
            s = Add(zero, x)  t = Sub(s, zero)  u = Mul(one, t)  v = Div(u, one)  y = Exp(v) }""",
        {"Exp": 1},
        "neutral-zero[Add] neutral-zero[Sub] neutral-one[Mul] neutral-one[Div]",
    ),
    "a zero that makes the rank grow stays": Example(
        "g (float[N] x) => (float[1, N] y) <float[1, 1] zero = {0}> { s = Add(x, zero)  y = Exp(s) }",
        {"Add": 1, "Exp": 1},
        "",
    ),
    "Squeeze and Unsqueeze, axes as inputs": Example(
        """g (float[N, 4] x) => (float[N, 4] y, float[1, 1, N, 4] z, float[N, 4] w) <int64[1] i = {0}, int64[1] j = {1}, int64[2] ij = {0, 1}> {
            s = Unsqueeze(x, j)  t = Squeeze(s, j)  y = Exp(t)
            u = Unsqueeze(x, i)  v = Unsqueeze(u, j)  z = Neg(v)
            z1 = Squeeze(z, i)  z2 = Squeeze(z1, i)  w = Abs(z2) }""",
        {"Exp": 1, "Unsqueeze": 1, "Neg": 1, "Abs": 1},
        "squeeze-unsqueeze[Squeeze,Unsqueeze] unsqueeze-unsqueeze squeeze-squeeze",
        (13, 17, 21),
    ),
    "Squeeze and Unsqueeze, axes as attributes": Example(
        """g (float[N, 4] x) => (float[N, 4] y, float[1, 1, N, 4] z, float[N, 4] w) {
            s = Unsqueeze<axes = [1]>(x)  t = Squeeze<axes = [1]>(s)  y = Exp(t)
            u = Unsqueeze<axes = [0]>(x)  v = Unsqueeze<axes = [1]>(u)  z = Neg(v)
            z1 = Squeeze<axes = [0]>(z)  z2 = Squeeze<axes = [0]>(z1)  w = Abs(z2) }""",
        {"Exp": 1, "Unsqueeze": 1, "Neg": 1, "Abs": 1},
        "squeeze-unsqueeze[Squeeze,Unsqueeze] unsqueeze-unsqueeze squeeze-squeeze",
        (11,),
    ),
    "removed axes come back": Example(
        "g (float[N, 1, 4] x) => (float[N, 1, 4] y) <int64[1] j = {1}> { s = Squeeze(x, j)  t = Unsqueeze(s, j)  y = Exp(t) }",
        {"Exp": 1},
        "squeeze-unsqueeze[Unsqueeze,Squeeze]",
        (13, 17, 21),
    ),
    "removed axes come back, as attributes": Example(
        "g (float[N, 1, 4] x) => (float[N, 1, 4] y) { s = Squeeze<axes = [1]>(x)  t = Unsqueeze<axes = [-2]>(s)  y = Exp(t) }",
        {"Exp": 1},
        "squeeze-unsqueeze[Unsqueeze,Squeeze]",
        (11,),
    ),
    "transposes": Example(
        """g (float[N, 3, 4] x) => (float[4, N, 3] y, float[N, 3, 4] z) {
            s = Transpose<perm = [1, 2, 0]>(x)  t = Transpose<perm = [1, 2, 0]>(s)  y = Exp(t)
            u = Transpose<perm = [0, 2, 1]>(x)  v = Transpose<perm = [0, 2, 1]>(u)  z = Abs(v) }""",
        {"Transpose": 1, "Exp": 1, "Abs": 1},
        "transpose-transpose transpose-nothing",
    ),
    "reshapes": Example(
        """g (float[N, 4, 6] x) => (float[N, 24] y, float[N, 4, 6] z) <int64[2] a = {-1, 8}, int64[2] b = {-1, 24}, int64[3] c = {0, 4, 6}> {
            s = Reshape(x, a)  t = Reshape(s, b)  y = Exp(t)
            u = Reshape(x, c)  z = Abs(u) }""",
        {"Reshape": 1, "Exp": 1, "Abs": 1},
        "reshape-reshape reshape-nothing",
    ),
    "expansions and casts to what is there": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <int64[2] a = {1, 4}> {
            s = Expand(x, a)  t = Cast<to = 1>(s)  y = Exp(t) }""",
        {"Exp": 1},
        "expand-nothing cast-nothing",
    ),
    "parts of what was joined": Example(
        """g (float[N, 4] x, float[N, 3] y, float[N, 5] z) => (float[N, 2] u, float[N, 3] v, float[N, 4] w)
        <int64[1] axis = {1}, int64[1] a = {1}, int64[1] b = {3}, int64[1] c = {4}, int64[1] d = {7}, int64[1] e = {8}, int64[1] end = {9223372036854775807}> {
            j = Concat<axis = 1>(x, y, z)
            s = Slice(j, a, b, axis)  t = Slice(j, c, d, axis)  r = Slice(j, e, end, axis)
            u = Exp(s)  v = Exp(t)  w = Exp(r) }""",
        {"Slice": 2, "Exp": 3},
        "slice-concat-head slice-concat-rest concat-one slice-nothing",
    ),
    "parts that are joined again": Example(
        """g (float[N, 7] x) => (float[N, 7] y)
        <int64[1] axis = {1}, int64[1] o = {0}, int64[1] a = {2}, int64[1] b = {4}, int64[1] end = {9223372036854775807}> {
            r = Slice(x, o, a, axis)  s = Slice(x, a, b, axis)  t = Slice(x, b, end, axis)
            j = Concat<axis = -1>(r, s, t)  y = Exp(j) }""",
        {"Exp": 1},
        "concat-slices concat-one slice-nothing",
    ),
    "Conv, BatchNormalization, factor, term": Example(
        """g (float[N, 2, H, W] x) => (float[N, 4, H, W] y)
        <float[4, 1, 3, 3] w, float[4] scale = {1, 2, 3, 4}, float[4] shift = {4, 3, 2, 1}, float[4] mean = {1, -1, 2, -2}, float[4] var = {1, 4, 9, 2},
         float[4, 1, 1] f = {1, 2, 3, 4}, float[1, 4, 1, 1] c = {1, 2, 3, 4}> {
            s = Conv<group = 2, pads = [1, 1, 1, 1]>(x, w)  t = BatchNormalization<epsilon = 0.5>(s, scale, shift, mean, var)
            u = Mul(t, f)  v = Add(c, u)  y = Relu(v) }""",
        {"Conv": 1, "Relu": 1},
        "conv-zero-bias[Conv] conv-batchnorm conv-mul conv-add[Conv]",
    ),
    "ConvTranspose, BatchNormalization, factor, term": Example(
        """g (float[N, 4, L] x) => (float[N, 6, M] y)
        <float[4, 3, 2] w, float[6] scale = {1, 2, 3, 4, 5, 6}, float[6] shift = {4, 3, 2, 1, 0, 5}, float[6] mean = {1, -1, 2, -2, 3, 1},
         float[6] var = {1, 4, 9, 2, 3, 5}, float[6, 1] f = {1, 2, 3, 4, 5, 6}, float[1, 6, 1] c = {1, 2, 3, 4, 5, 6}> {
            s = ConvTranspose<group = 2, strides = [2]>(x, w)  t = BatchNormalization(s, scale, shift, mean, var)
            u = Mul(t, f)  v = Add(c, u)  y = Relu(v) }""",
        {"ConvTranspose": 1, "Relu": 1},
        "conv-zero-bias[ConvTranspose] convtranspose-batchnorm convtranspose-mul conv-add[ConvTranspose]",
    ),
    "BatchNormalization between what is linear": Example(
        """g (float[N, 4] x) => (float[N, 4] y)
        <float[4] scale = {1, 2, 3, 4}, float[4] shift = {4, 3, 2, 1}, float[4] mean = {1, -1, 2, -2}, float[4] var = {1, 4, 9, 2}, float[4] c = {1, 2, 3, 4}> {
            s = Relu(x)  t = Mul(s, c)  u = BatchNormalization(t, scale, shift, mean, var)  y = Add(u, c) }""",
        {"Relu": 1, "BatchNormalization": 1},
        "batchnorm-affine associative-const[Mul] associative-const[Add]",
    ),
    "layers without what bends between them": Example(
        """g (float[N, 4] x) => (float[N, 3] y) <float[4, 4] v, float[4] b = {1, 2, 3, 4}, float[4, 3] w, float[3] c = {1, 2, 3}, float[1] f = {2}> {
            s = MatMul(x, v)  t = Add(s, b)  u = MatMul(t, w)  r = Add(u, c)  q = Mul(r, f)  y = Relu(q) }""",
        {"Gemm": 1, "Relu": 1},
        "matmul-assoc matmul-add mul-matmul associative-const[Add]",
    ),
    "factors before a product": Example(
        "g (float[N, 4] x) => (float[N, 3] y) <float[4] f = {1, 2, 3, 4}, float[4, 3] w> { s = Mul(x, f)  y = MatMul(s, w) }",
        {"MatMul": 1},
        "matmul-mul",
    ),
    "reductions, all axes as attributes": Example(
        """g (uint32[N, 3] x, uint32 s, float[N, 3] e) => (uint32[N] y, float[N] z) {
            t = BitShift<direction = "LEFT">(x, s)  y = ReduceSum<axes = [1], keepdims = 0>(t)
            f = Exp(e)  z = ReduceProd<axes = [1], keepdims = 0>(f) }""",
        {"BitShift": 1, "ReduceSum": 2, "Exp": 1},
        "reducesum-bitshift reduceprod-exp",
        (11,),
    ),
    "reductions, some axes as attributes": Example(
        """g (uint32[N, 3] x, uint32[N, 1] s, float[N, 3] e) => (uint32[N] y, float[N] z) <int64[1] axes = {1}> {
            t = BitShift<direction = "LEFT">(x, s)  y = ReduceSum<keepdims = 0>(t, axes)
            f = Exp(e)  z = ReduceProd<axes = [-1], keepdims = 0>(f) }""",
        {"BitShift": 1, "ReduceSum": 2, "Exp": 1},
        "reducesum-bitshift reduceprod-exp",
        (13, 17),
    ),
    "reductions, axes as inputs": Example(
        """g (uint32[S, 3] x, uint32 s, float[S, 3] e) => (uint32[1, 1] y, float z) {
            t = BitShift<direction = "LEFT">(x, s)  y = ReduceSum(t)
            f = Exp(e)  z = ReduceProd<keepdims = 0>(f) }""",
        {"BitShift": 1, "ReduceSum": 2, "Exp": 1},
        "reducesum-bitshift reduceprod-exp",
        (21,),
    ),
}

"""Examples of published rewrites that no other module shows.

docs/coverage.md tells where each example is.
"""

from __future__ import annotations

from tests.rules.examples import Example

SOME = (11, 17)
BOTH = (13, 21)  # in both, axes, pads and splits are inputs
END = "9223372036854775807"

EXAMPLES = {
    # --- layers and what is affine around them ---
    "BatchNormalization + per-channel scale": Example(
        """g (float[N, 4, H, W] x) => (float[N, 4, H, W] y)
        <float[4] scale, float[4] shift, float[4] mean, float[4] var = {1, 4, 9, 2}, float[4, 1, 1] f, float[1, 4, 1, 1] t> {
            a = BatchNormalization(x, scale, shift, mean, var)  b = Mul(a, f)  y = Add(t, b) }""",
        {"BatchNormalization": 1},
        "mul-batchnorm add-batchnorm",
        SOME,
    ),
    "Conv + BatchNormalization": Example(
        """g (float[N, 4, H, W] x) => (float[N, 6, Y, Z] y)
        <float[6, 4, 3, 3] w, float[6] b, float[6] scale, float[6] shift, float[6] mean, float[6] var = {1, 4, 9, 2, 3, 5}> {
            a = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w, b)  y = BatchNormalization(a, scale, shift, mean, var) }""",
        {"Conv": 1},
        "conv-batchnorm",
    ),
    "Conv + scale": Example(
        """g (float[N, 4, H, W] x) => (float[N, 6, Y, Z] y) <float[6, 4, 3, 3] w, float[6] b, float[6, 1, 1] f> { a = Conv(x, w, b)  y = Mul(f, a) }""",
        {"Conv": 1},
        "conv-mul",
    ),
    "Conv + per-channel Add": Example(
        """g (float[N, 4, H, W] x) => (float[N, 6, Y, Z] y) <float[6, 4, 3, 3] w, float[1, 6, 1, 1] t> { a = Conv(x, w)  y = Add(a, t) }""",
        {"Conv": 1},
        "conv-add[Conv]",
    ),
    "depthwise Conv + BatchNormalization, factor, term": Example(
        """g (float[N, 4, H, W] x) => (float[N, 8, Y, Z] y)
        <float[8, 1, 3, 3] w, float[8] scale, float[8] shift, float[8] mean, float[8] var = {1, 4, 9, 2, 3, 5, 6, 7}, float[8, 1, 1] f, float[8, 1, 1] t> {
            a = Conv<group = 4>(x, w)  b = BatchNormalization(a, scale, shift, mean, var)  c = Mul(b, f)  y = Sub(c, t) }""",
        {"Conv": 1},
        "conv-batchnorm conv-mul conv-add[Conv]",
    ),
    "depthwise ConvTranspose + BatchNormalization, factor, term": Example(
        """g (float[N, 4, H, W] x) => (float[N, 4, Y, Z] y)
        <float[4, 1, 2, 2] w, float[4] scale, float[4] shift, float[4] mean, float[4] var = {1, 4, 9, 2}, float[4, 1, 1] f, float[4, 1, 1] t> {
            a = ConvTranspose<group = 4, strides = [2, 2]>(x, w)  b = BatchNormalization(a, scale, shift, mean, var)  c = Mul(b, f)  y = Add(c, t) }""",
        {"ConvTranspose": 1},
        "convtranspose-batchnorm convtranspose-mul conv-add[ConvTranspose]",
    ),
    "FC (Gemm, MatMul) + Add": Example(
        """g (float[N, 4] x, float[N, L, 4] z) => (float[N, 3] u, float[N, 3] v, float[N, L, 3] y)
        <float[3, 4] w, float[3] b, float[4, 3] q, float[3] t, float[3] r> {
            a = Gemm<transB = 1>(x, w, b)  u = Add(a, t)  c = MatMul(x, q)  v = Add(t, c)  d = MatMul(z, q)  e = Add(d, t)  y = Add(e, r) }""",
        {"Gemm": 2, "MatMul": 1, "Add": 1},
        "gemm-matmul-add matmul-add-gemm associative-const[Add]",
    ),
    "FC + BatchNormalization, transB both ways": Example(
        """g (float[N, 3] x) => (float[N, 4] y, float[N, 4] z)
        <float[3, 4] w, float[4, 3] v, float[4] b, float[4] scale, float[4] shift, float[4] mean, float[4] var = {1, 4, 9, 2}> {
            a = Gemm(x, w, b)  y = BatchNormalization(a, scale, shift, mean, var)
            c = Gemm<transB = 1>(x, v, b)  z = BatchNormalization(c, scale, shift, mean, var) }""",
        {"Gemm": 2},
        "gemm-matmul-add batchnorm-affine matmul-add-gemm",
        SOME,
    ),
    "MatMul of rank 3 + BatchNormalization, through Transpose": Example(
        """g (float[N, L, 3] x) => (float[N, 4, L] y)
        <float[3, 4] w, float[4] scale, float[4] shift, float[4] mean, float[4] var = {1, 4, 9, 2}> {
            a = MatMul(x, w)  b = Transpose<perm = [0, 2, 1]>(a)  y = BatchNormalization(b, scale, shift, mean, var) }""",
        {"MatMul": 1, "Add": 1, "Transpose": 1},
        "batchnorm-affine transpose-binary-const[Mul] mul-matmul",
        SOME,
    ),
    "an inverted residual block of MobileNet-v2": Example(
        """g (float[N, 4, 8, 8] x) => (float[N, 4, 8, 8] y)
        <float[8, 4, 1, 1] u, float[8, 1, 3, 3] v, float[4, 8, 1, 1] w, float zero = {0}, float six = {6},
         float[8] s1, float[8] b1, float[8] m1, float[8] v1 = {1, 4, 9, 2, 3, 5, 6, 7},
         float[8] s2, float[8] b2, float[8] m2, float[8] v2 = {1, 4, 9, 2, 3, 5, 6, 7},
         float[4] s3, float[4] b3, float[4] m3, float[4] v3 = {1, 4, 9, 2}> {
            a = Conv(x, u)  b = BatchNormalization(a, s1, b1, m1, v1)  c = Clip(b, zero, six)
            d = Conv<group = 8, pads = [1, 1, 1, 1]>(c, v)  e = BatchNormalization(d, s2, b2, m2, v2)  f = Clip(e, zero, six)
            h = Conv(f, w)  i = BatchNormalization(h, s3, b3, m3, v3)  y = Add(x, i) }""",
        {"Conv": 3, "Clip": 2, "Add": 1},
        "conv-batchnorm",
        SOME,
    ),
    "Add + Add, Add then Mul, Mul then Add: one affine pair": Example(
        """g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z, float[N, 4] u) <float[4] a = {1, 2, 3, 4}, float b = {2}, float[1, 4] c = {4, 3, 2, 5}> {
            p = Add(x, a)  q = Add(p, c)  y = Exp(q)
            r = Add(x, c)  s = Mul(r, a)  t = Mul(s, b)  z = Sin(t)
            v = Mul(x, b)  w = Add(v, a)  k = Mul(w, c)  l = Add(k, a)  u = Cos(l) }""",
        {"Add": 3, "Mul": 2, "Exp": 1, "Sin": 1, "Cos": 1},
        "associative-const[Add] associative-const[Mul] mul-add-const",
        BOTH,
    ),
    "an affine pair is absorbed by Conv, Gemm and BatchNormalization": Example(
        """g (float[N, 4, 6, 6] x, float[N, 4] z) => (float[N, 4, 6, 6] p, float[N, 3] q, float[N, 4, 6, 6] r)
        <float[4, 4, 1, 1] w, float[4, 1, 1] a, float[4, 1, 1] b, float[4, 3] v, float[3] c, float[4] d, float[4] e,
         float[4] scale, float[4] shift, float[4] mean, float[4] var = {1, 4, 9, 2}> {
            p0 = Add(x, a)  p1 = Mul(p0, b)  p2 = Conv(p1, w)  p3 = Mul(p2, b)  p = Add(p3, a)
            q0 = Mul(z, d)  q1 = Add(q0, e)  q2 = Gemm(q1, v, c)  q3 = Add(q2, c)  q = Mul(q3, c)
            r0 = Sin(x)  r1 = Mul(r0, a)  r2 = Add(r1, b)  r3 = BatchNormalization(r2, scale, shift, mean, var)  r4 = Add(r3, a)  r = Mul(r4, b) }""",
        {"Conv": 1, "Gemm": 1, "Sin": 1, "BatchNormalization": 1},
        "conv-mul-before conv-add-before conv-mul conv-add[Conv] batchnorm-mul batchnorm-add add-batchnorm mul-batchnorm matmul-add matmul-mul",
        SOME,
    ),
    "W2(W1 x + b1) + b2 -> one layer": Example(
        """g (float[N, 4] x) => (float[N, 3] y) <float[5, 4] v, float[5] b, float[5, 3] w, float[3] c> {
            a = Gemm<transB = 1>(x, v, b)  y = Gemm(a, w, c) }""",
        {"Gemm": 1},
        "gemm-matmul-add matmul-assoc matmul-add matmul-add-gemm",
        SOME,
    ),
    "two layers of which the product would be too large stay two": Example(
        """g (float[N, 200] x) => (float[N, 200] y) <float[200, 2] v, float[2] b, float[2, 200] w, float[200] c> {
            a = Gemm(x, v, b)  y = Gemm(a, w, c) }""",
        {"MatMul": 1, "Gemm": 1},
        "matmul-assoc matmul-add",
        SOME,
    ),
    # --- parts ---
    "Slice with steps, and of rows and columns (a crop), through elementwise chains": Example(
        """g (float[N, 3, 64, 64] x) => (float[N, 3, 32, 32] y, float[N, 3, 8, 8] z)
        <int64[2] axes = {2, 3}, int64[2] a = {0, 0}, int64[2] b = {64, 64}, int64[2] two = {2, 2}, int64[2] c = {5, 6}, int64[2] d = {13, 14},
         float[3, 1, 1] f, float t = {3}> {
            p = Relu(x)  q = Sigmoid(p)  y = Slice(q, a, b, axes, two)
            r = Mul(x, f)  s = Add(r, t)  u = Tanh(s)  z = Slice(u, c, d, axes) }""",
        {"Slice": 2, "Relu": 1, "Sigmoid": 1, "Mul": 1, "Add": 1, "Tanh": 1},
        "slice-unary[Relu] slice-unary[Sigmoid] slice-unary[Tanh] slice-binary[Add] slice-binary[Mul]",
        BOTH,
    ),
    "Slice before Mul": Example(
        """g (float[64, 8] x, float[1, 8] z) => (float[2, 8] y) <int64[1] axis = {0}, int64[1] a = {1}, int64[1] b = {3}> {
            p = Relu(x)  q = Mul(p, z)  y = Slice(q, a, b, axis) }""",
        {"Slice": 1, "Relu": 1, "Mul": 1},
        "slice-binary[Mul] slice-unary[Relu]",
        BOTH,
    ),
    "binary operators reordered": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y, float[N, 4] u) <float a = {2}, float[4] b = {1, 2, 3, 4}> {
            p = Add(x, b)  q = Add(p, z)  r = Sub(q, a)  y = Exp(r)  s = Mul(a, x)  t = Mul(z, s)  v = Div(t, b)  u = Sin(v) }""",
        {"Add": 2, "Mul": 2, "Exp": 1, "Sin": 1},
        "const-last[Add] const-last[Mul]",
        BOTH,
    ),
    # --- what does nothing ---
    "Identity, Split with one output": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <int64[1] four = {4}> { a = Identity(x)  b = Split<axis = 1>(a, four)  y = Exp(b) }""",
        {"Exp": 1},
        "split-one",
        (13, 17),
    ),
    "Flatten/Reshape after global pooling": Example(
        """g (float[N, 4, 5, 5] x) => (float[N, 4] y, float[N, 4] z) <int64[2] sizes = {0, -1}> {
            a = GlobalAveragePool(x)  b = Flatten(a)  y = Exp(b)  c = GlobalMaxPool(x)  d = Reshape(c, sizes)  z = Sin(d) }""",
        {"ReduceMean": 1, "ReduceMax": 1, "Exp": 1, "Sin": 1},
        "globalaveragepool-reducemean reduction-reshape[ReduceMean] globalmaxpool-reducemax reduction-reshape[ReduceMax]",
    ),
    "Unsqueeze into its operand, a binary operator with a scalar": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float[4] a = {1, 2, 3, 4}, float two = {2}, int64[1] zero = {0}> {
            b = Unsqueeze(a, zero)  c = Mul(b, two)  d = Squeeze(c, zero)  y = Max(x, d) }""",
        {"Max": 1},
        "",
        BOTH,
    ),
    "identity, slice, unsqueeze, cast elimination": Example(
        f"""g (float[N, 4] x) => (float[N, 4] y)
        <int64[1] i = {{1}}, int64[1] o = {{0}}, int64[1] end = {{{END}}}, int64[2] sizes = {{1, 4}}, int64[1] four = {{4}}> {{
            a = Identity(x)  b = Slice(a, o, end, i)  c = Unsqueeze(b, i)  d = Squeeze(c, i)  f = Cast<to = 1>(d)
            h = Expand(f, sizes)  j = Concat<axis = 1>(h)  k = Split<axis = 1>(j, four)  y = Exp(k) }}""",
        {"Exp": 1},
        "slice-nothing squeeze-unsqueeze[Squeeze,Unsqueeze] cast-nothing expand-nothing concat-one split-one",
        (13, 17),
    ),
    "1x1 pooling with stride 1": Example(
        """g (float[N, 3, 8, 8] x) => (float[N, 3, 8, 8] y) {
            a = MaxPool<kernel_shape = [1, 1]>(x)  b = AveragePool<kernel_shape = [1, 1], strides = [1, 1]>(a)  y = Exp(b) }""",
        {"Exp": 1},
        "maxpool-nothing averagepool-nothing",
    ),
    "a layout change and a cast at outputs that do not need them": Example(
        """g (float[N, 4, H, W] x) => (float[N, 4] y, float16[N, 4, H, W] z) {
            a = Transpose<perm = [0, 2, 3, 1]>(x)  b = ReduceMax<axes = [1, 2], keepdims = 0>(a)  y = Exp(b)
            c = Relu(x)  d = Cast<to = 11>(c)  z = Cast<to = 10>(d) }""",
        {"ReduceMax": 1, "Exp": 1, "Relu": 1, "Cast": 1},
        "transpose-reduction[ReduceMax] cast-cast",
        (13, 17),
    ),
    "Reshape before a binary operator; after a linear layer": Example(
        """g (float[N, 4, 6] x, float[N, 8] z) => (float[N, 4, 6] y, float[N, 6] u)
        <int64[2] flat = {-1, 24}, int64[3] block = {-1, 4, 6}, float[24] c, float[8, 6] w, float[6] b, int64[2] keep = {0, -1}> {
            p = Reshape(x, flat)  q = Add(p, c)  y = Reshape(q, block)
            r = Gemm(z, w, b)  s = Reshape(r, keep)  u = Flatten(s) }""",
        {"Add": 1, "Gemm": 1},
        "reshape-binary-const[Add] flatten-reshape reshape-nothing",
    ),
    "consecutive Reshapes, Casts": Example(
        """g (float16[N, 4, 6] x) => (double[N, 24] y) <int64[2] a = {-1, 8}, int64[2] b = {-1, 24}> {
            p = Reshape(x, a)  q = Cast<to = 1>(p)  r = Reshape(q, b)  y = Cast<to = 11>(r) }""",
        {"Reshape": 1, "Cast": 1},
        "reshape-reshape cast-cast",
    ),
    # --- what undoes each other ---
    "inverse pairs": Example(
        f"""g (float[N, 4, 6] x, float16[N, 4] h, uint8[N, 4] k, float[N, 3] l)
         => (float[N, 4, 6] y0, float[N, 4, 6] y1, float16[N, 4] y2, uint8[N, 4] y3, float[N, 3] y4, float[N, 3] y5)
        <int64[1] i = {{1}}, int64[1] o = {{0}}, int64[1] end = {{{END}}}, int64[1] three = {{3}}, int64[2] n = {{1, 2}}, float s = {{0.5}}, uint8 z = {{3}}> {{
            a = Unsqueeze(x, i)  b = Squeeze(a, i)  y0 = Exp(b)
            c = Transpose<perm = [1, 2, 0]>(x)  d = Transpose<perm = [2, 0, 1]>(c)  y1 = Sin(d)
            e = Cast<to = 1>(h)  f = Cast<to = 10>(e)  y2 = Abs(f)
            p = DequantizeLinear(k, s, z)  q = QuantizeLinear(p, s, z)  y3 = Max(q, q)
            r = Concat<axis = 1>(l, l)  t = Slice(r, o, three, i)  y4 = Cos(t)
            u, v = Split<axis = 1>(l, n)  w = Concat<axis = 1>(u, v)  y5 = Neg(w) }}""",
        {"Exp": 1, "Sin": 1, "Abs": 1, "Identity": 1, "Cos": 1, "Neg": 1},
        "squeeze-unsqueeze[Squeeze,Unsqueeze] transpose-transpose cast-cast quantize-dequantize slice-concat-head concat-split[2]",
        (13, 17),
    ),
    # --- other words ---
    "Conv + MatMul (1x1)": Example(
        """g (float[N, 4, 5, 5] x) => (float[N, 5, 5, 7] y) <float[6, 4, 3, 3] v, float[6, 7] w> {
            a = Conv<pads = [1, 1, 1, 1]>(x, v)  b = Transpose<perm = [0, 2, 3, 1]>(a)  y = MatMul(b, w) }""",
        {"Conv": 1, "Transpose": 1},
        "matmul-transpose-conv conv-conv-last",
        SOME,
    ),
    "Relu + Clip": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float m = {-1}, float six = {6}> { a = Relu(x)  y = Clip(a, m, six) }""",
        {"Clip": 1},
        "max-min-clip",
    ),
    "MatMul + scale -> weights": Example(
        """g (float[N, L, 4] x) => (float[N, L, 3] y) <float[4, 3] w, float f = {0.5}> { a = MatMul(x, w)  y = Div(a, f) }""",
        {"MatMul": 1},
        "mul-matmul",
    ),
    "Gemm between flattened and restored images is a 1x1 Conv": Example(
        """g (float[N, 4, 5, 5] x) => (float[N, 6, 5, 5] y) <float[4, 6] w, float[6] b, int64[2] rows = {-1, 4}, int64[4] image = {-1, 5, 5, 6}> {
            a = Transpose<perm = [0, 2, 3, 1]>(x)  c = Reshape(a, rows)  d = Gemm(c, w, b)  e = Reshape(d, image)
            f = Transpose<perm = [0, 3, 1, 2]>(e)  y = Relu(f) }""",
        {"Conv": 1, "Relu": 1},
        "reshape-matmul matmul-transpose-conv",
        SOME,
    ),
    "old forms of Pad": Example(
        """g (float[N, 4, H, W] x) => (float[N, 6, Y, Z] y, float[N, 4, A, B] z) <float[6, 4, 3, 3] w> {
            a = Pad<pads = [0, 0, 1, 1, 0, 0, 1, 1]>(x)  y = Conv(a, w)
            b = Pad<pads = [0, 0, 0, 0, 0, 0, 0, 0], mode = "reflect">(x)  c = Pad<pads = [0, 0, 1, 0, 0, 0, 1, 0], value = 2.0>(b)  z = Exp(c) }""",
        {"Conv": 1, "Pad": 1, "Exp": 1},
        "conv-pad pad-nothing",
        (9, 10),
    ),
    "MatMul + BatchNormalization, through Reshape and Transpose": Example(
        """g (float[N, 5, 3] x) => (float[N, 4, 5] y)
        <float[3, 4] w, int64[2] rows = {-1, 3}, int64[3] sizes = {-1, 5, 4}, float[4] scale, float[4] shift, float[4] mean, float[4] var = {1, 4, 9, 2}> {
            a = Reshape(x, rows)  b = MatMul(a, w)  c = Reshape(b, sizes)  d = Transpose<perm = [0, 2, 1]>(c)
            y = BatchNormalization(d, scale, shift, mean, var) }""",
        {"MatMul": 1, "Add": 1, "Transpose": 1},
        "reshape-matmul batchnorm-affine mul-matmul",
        SOME,
    ),
    "Gemm + Sum": Example(
        """g (float[N, 4] x, float[N, 3] z) => (float[N, 3] y) <float[4, 3] w> { a = Gemm(x, w)  y = Sum(a, z) }""",
        {"Gemm": 1},
        "sum-two gemm-add",
    ),
    "Transpose(weight)": Example(
        """g (float[N, L, 4] x) => (float[N, L, 3] y) <float[3, 4] w> { a = Transpose(w)  y = MatMul(x, a) }""",
        {"MatMul": 1},
    ),
    "matmul reassociation by cost": Example(
        """g (float[N, 4, 8] x, float[8, 8] k) => (float[N, 4, 3] y, float[8, 3] z) <float[8, 3] w> {
            a = MatMul(x, k)  y = MatMul(a, w)  z = MatMul(k, w) }""",
        {"MatMul": 2},
        "matmul-assoc",
    ),
    "Flatten between global pooling and Gemm": Example(
        """g (float[N, 4, H, W] x) => (float[N, 3] y) <float[4, 3] w, float[3] b> { a = GlobalAveragePool(x)  c = Flatten(a)  y = Gemm(c, w, b) }""",
        {"ReduceMean": 1, "Gemm": 1},
        "flatten-reshape globalaveragepool-reducemean reduction-reshape[ReduceMean]",
    ),
    "GlobalAveragePool, Conv 1x1, Flatten": Example(
        """g (float[N, 4, H, W] x) => (float[N, 3] y) <float[3, 4, 1, 1] w, float[3] b> { a = GlobalAveragePool(x)  c = Conv(a, w, b)  y = Flatten(c) }""",
        {"ReduceMean": 1, "Gemm": 1},
        "conv-gemm",
        SOME,
    ),
    "Reduce -> global pooling, and global pooling -> Reduce": Example(
        """g (float[N, 4, H, W] x) => (float[N, 4, 1, 1] y) { a = ReduceMean<axes = [2, 3]>(x)  b = GlobalAveragePool(x)  y = Add(a, b) }""",
        {"ReduceMean": 1, "Add": 1},
        "globalaveragepool-reducemean",
        (13, 17),
    ),
    "Reshape of a vector to [-1]": Example(
        "g (float[N] x) => (float[N] y) <int64[1] all = {-1}> { a = Reshape(x, all)  y = Exp(a) }",
        {"Exp": 1},
        "reshape-nothing",
    ),
    "Slice from 0 to at least the end": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <int64[2] a = {0, 0}, int64[2] b = {2147483647, 100}, int64[2] axes = {0, 1}> {
            s = Slice(x, a, b, axes)  y = Exp(s) }""",
        {"Exp": 1},
        "slice-nothing",
    ),
}

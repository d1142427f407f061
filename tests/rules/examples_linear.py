"""Examples of absorption into Conv, ConvTranspose, Gemm, MatMul and normalizations."""

from __future__ import annotations

from tests.rules.examples import Example

AXES = (13, 21)  # axes and pads are inputs
SOME = (11, 17)
IMAGE = "float[N, 4, 6, 6] x"
STATISTICS = """float[4] scale = {1, 2, 3, 4}, float[4] shift = {4, 3, 5, 1}, float[4] mean = {1, -1, 2, -2}, float[4] var = {1, 4, 9, 2}"""

EXAMPLES = {
    "a term less Conv": Example(
        """g (float[N, 2, H, W] x) => (float[N, 3, Y, Z] y) <float[3, 2, 3, 3] w, float[3] b, float[3, 1, 1] t> { c = Conv(x, w, b)  y = Sub(t, c) }""",
        {"Conv": 1},
        "conv-subtracted[Conv]",
    ),
    "Conv without a bias, and BatchNormalization": Example(
        """g (float[N, 2, H, W] x) => (float[N, 3, Y, Z] y)
        <float[3, 2, 3, 3] w, float[3] scale, float[3] shift, float[3] mean, float[3] var = {1, 4, 9}> {
            c = Conv(x, w)  y = BatchNormalization(c, scale, shift, mean, var) }""",
        {"Conv": 1},
        "conv-batchnorm-bare",
    ),
    "Conv with a computed bias, factor and term": Example(
        """g (float[1, 2, 5, 5] x, float[3] b) => (float[1, 3, 3, 3] y) <float[3, 2, 3, 3] w, float[3, 1, 1] f, float[3, 1, 1] t> {
            c = Conv(x, w, b)  m = Mul(c, f)  y = Add(m, t) }""",
        {"Conv": 1, "Mul": 1, "Add": 1},
        "conv-mul-computed conv-add[Conv]",
    ),
    "Conv with a bias, and a factor": Example(
        """g (float[N, 2, H, W] x) => (float[N, 3, Y, Z] y) <float[3, 2, 3, 3] w, float[3] b, float[3, 1, 1] f> { c = Conv(x, w, b)  y = Mul(c, f) }""",
        {"Conv": 1},
        "conv-mul",
    ),
    "Conv without a bias, and a factor": Example(
        """g (float[N, 4, H, W] x) => (float[N, 6, Y, Z] y) <float[6, 2, 3, 3] w, float[1, 6, 1, 1] f> {
            c = Conv<group = 2, pads = [1, 1, 1, 1]>(x, w)  y = Mul(f, c) }""",
        {"Conv": 1},
        "conv-mul-bare",
    ),
    "Conv without a bias, and a term": Example(
        """g (float[N, 2, H, W] x) => (float[N, 3, Y, Z] y) <float[3, 2, 3, 3] w, float[3, 1, 1] t> { c = Conv(x, w)  y = Add(c, t) }""",
        {"Conv": 1},
        "conv-add-bare",
    ),
    "a normalized Conv between images whose channels come last, as Keras exports it": Example(
        """g (float[N, 6, 6, 2] x) => (float[N, 6, 6, 3] y) <float[3, 2, 3, 3] w, float[1, 1, 1, 3] f, float[1, 1, 1, 3] t> {
            i = Transpose<perm = [0, 3, 1, 2]>(x)  c = Conv<pads = [1, 1, 1, 1]>(i, w)  o = Transpose<perm = [0, 2, 3, 1]>(c)
            m = Mul(o, f)  y = Add(m, t) }""",
        {"Conv": 1, "Transpose": 2},
        "conv-mul-bare conv-add-bare",
    ),
    "factor and term before Conv": Example(
        """g (float[N, 4, H, W] x) => (float[N, 6, Y, Z] y) <float[6, 2, 3, 3] w, float[4, 1, 1] f, float[1, 4, 1, 1] t> {
            s = Mul(x, f)  u = Add(s, t)  y = Conv<group = 2>(u, w) }""",
        {"Conv": 1},
        "conv-mul-before conv-add-before",
        SOME,
    ),
    "BatchNormalization before a Conv with strides": Example(
        f"""g (float[N, 4, H, W] x) => (float[N, 6, Y, Z] y) <float[6, 4, 3, 3] w, float[6] b, {STATISTICS}> {{
            s = BatchNormalization(x, scale, shift, mean, var)  y = Conv<strides = [2, 2]>(s, w, b) }}""",
        {"Conv": 1},
        "conv-mul-before conv-add-before batchnorm-affine",
        SOME,
    ),
    "padding is zero, and not the term: a term before it stays": Example(
        """g (float[N, 4, H, W] x) => (float[N, 6, Y, Z] y) <float[6, 4, 3, 3] w, float[4, 1, 1] f, float[1, 4, 1, 1] t> {
            s = Add(x, t)  u = Mul(s, f)  y = Conv<pads = [1, 1, 1, 1]>(u, w) }""",
        {"Add": 1, "Conv": 1},
        "conv-mul-before",
        SOME,
    ),
    "factor before ConvTranspose": Example(
        """g (float[N, 4, H, W] x) => (float[N, 6, Y, Z] y) <float[4, 3, 3, 3] w, float[4, 1, 1] f> {
            s = Mul(x, f)  y = ConvTranspose<group = 2>(s, w) }""",
        {"ConvTranspose": 1},
        "convtranspose-mul-before",
        SOME,
    ),
    "a column of ones is a bias": Example(
        """g (float[2, 3] x) => (float[2, 4] y) <float[2, 1] c = {2, 2}, float[4, 4] w> { a = Concat<axis = 1>(x, c)  y = MatMul(a, w) }""",
        {"Gemm": 1},
        "matmul-column-bias",
    ),
    "zero bias removal": Example(
        """g (float[N, 4, H, W] x, float[N, 4] v, float[4, 2] w2) => (float[N, 6, Y, Z] y, float[N, 3, Y, Z] z, float[N, 2] u)
        <float[6, 4, 3, 3] w, float[6] b = {0, 0, 0, 0, 0, 0}, float[4, 3, 3, 3] w1, float[3] b1 = {0, 0, 0}, float[2] b2 = {0, 0}> {
            y = Conv(x, w, b)  z = ConvTranspose(x, w1, b1)  u = Gemm(v, w2, b2) }""",
        {"Conv": 1, "ConvTranspose": 1, "Gemm": 1},
        "conv-no-bias[Conv] conv-no-bias[ConvTranspose] gemm-no-bias",
        SOME,
    ),
    "Conv, something added, BatchNormalization of it: the shift goes into the bias": Example(
        """g (float[N, 4, 6, 6] x, float[N, 6, 4, 4] r) => (float[N, 6, 4, 4] y) <float[6, 4, 3, 3] w, float[6] b, float[6, 1, 1] t> {
            s = Conv(x, w, b)  u = Add(r, s)  y = Add(u, t) }""",
        {"Conv": 1, "Add": 1},
        "conv-add-across",
        SOME,
    ),
    "Conv(x) + y: the bias moved to the other side": Example(
        """g (float[N, 4, 6, 6] x, float[N, 3, 8, 8] r) => (float[N, 6, 4, 4] y) <float[6, 4, 3, 3] w, float[6] b, float[6, 3, 5, 5] v, float[6] d> {
            s = Conv(x, w, b)  u = Conv(r, v, d)  y = Add(s, u) }""",
        {"Conv": 2, "Add": 1},
        "conv-bias-across",
        SOME,
    ),
    "Conv of Conv, the second 1x1": Example(
        """g (float[N, 4, H, W] x) => (float[N, 5, Y, Z] y) <float[6, 4, 3, 3] w, float[6] b, float[5, 6, 1, 1] v, float[5] d> {
            s = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w, b)  y = Conv(s, v, d) }""",
        {"Conv": 1},
        "conv-conv-last",
        SOME,
    ),
    "Conv of Conv, the first 1x1": Example(
        """g (float[N, 4, H, W] x) => (float[N, 5, Y, Z] y) <float[6, 4, 1, 1] w, float[5, 6, 3, 3] v, float[5] d> {
            s = Conv(x, w)  y = Conv<pads = [1, 1, 1, 1]>(s, v, d) }""",
        {"Conv": 1},
        "conv-conv-first",
        SOME,
    ),
    "Conv of Conv, the first 1x1 with a bias": Example(
        """g (float[N, 4, H, W] x) => (float[N, 5, Y, Z] y) <float[6, 4, 1, 1] w, float[6] b, float[5, 6, 3, 3] v, float[5] d> {
            s = Conv(x, w, b)  y = Conv(s, v, d) }""",
        {"Conv": 1},
        "conv-conv-first-bias",
        SOME,
    ),
    "Conv of Conv, the second 1x1, larger": Example(
        """g (float[N, 4, H, W] x) => (float[N, 5, Y, Z] y) <float[2, 4, 3, 3] w, float[2] b, float[5, 2, 1, 1] v, float[5] d> {
            s = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w, b)  y = Conv(s, v, d) }""",
        {"Conv": 1},
        "conv-conv-last-larger",
        SOME,
    ),
    "Conv of Conv, the first 1x1, larger": Example(
        """g (float[N, 4, H, W] x) => (float[N, 5, Y, Z] y) <float[3, 4, 1, 1] w, float[5, 3, 3, 3] v, float[5] d> {
            s = Conv(x, w)  y = Conv<pads = [1, 1, 1, 1]>(s, v, d) }""",
        {"Conv": 1},
        "conv-conv-first-larger",
        SOME,
    ),
    "Conv of Conv, the first 1x1 with a bias, larger": Example(
        """g (float[N, 4, H, W] x) => (float[N, 5, Y, Z] y) <float[3, 4, 1, 1] w, float[3] b, float[5, 3, 3, 3] v, float[5] d> {
            s = Conv(x, w, b)  y = Conv(s, v, d) }""",
        {"Conv": 1},
        "conv-conv-first-bias-larger",
        SOME,
    ),
    "Pad into Conv": Example(
        """g (float[N, 4, H, W] x) => (float[N, 5, A, B] y) <float[5, 4, 3, 3] w, int64[8] pads = {0, 0, 1, 0, 0, 0, 1, 2}> {
            s = Pad(x, pads)  y = Conv<group = 1>(s, w) }""",
        {"Conv": 1},
        "conv-pad",
        SOME,
    ),
    "Pad into Conv with strides": Example(
        """g (float[N, 4, H, W] x) => (float[N, 5, A, B] y) <float[5, 4, 3, 3] w, int64[8] pads = {0, 0, 1, 0, 0, 0, 1, 2}> {
            s = Pad(x, pads)  y = Conv<strides = [2, 2]>(s, w) }""",
        {"Conv": 1},
        "conv-pad",
        SOME,
    ),
    "Pad into Conv with dilations": Example(
        """g (float[N, 4, H, W] x) => (float[N, 5, A, B] y) <float[5, 4, 3, 3] w, int64[8] pads = {0, 0, 1, 0, 0, 0, 1, 2}> {
            s = Pad(x, pads)  y = Conv<dilations = [2, 2]>(s, w) }""",
        {"Conv": 1},
        "conv-pad",
        SOME,
    ),
    "Pad into Conv that pads itself": Example(
        """g (float[N, 4, H, W] x) => (float[N, 5, A, B] y) <float[5, 4, 3, 3] w, int64[8] pads = {0, 0, 1, 0, 0, 0, 1, 2}> {
            s = Pad(x, pads)  y = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(s, w) }""",
        {"Conv": 1},
        "conv-pad",
        SOME,
    ),
    "Pad into AveragePool": Example(
        """g (float[N, 4, H, W] x) => (float[N, 4, A, B] a, float[N, 4, C, D] b) <int64[8] pads = {0, 0, 1, 0, 0, 0, 1, 2}> {
            s = Pad(x, pads)  a = AveragePool<kernel_shape = [3, 3]>(s)  b = AveragePool<kernel_shape = [3, 3], strides = [2, 2]>(s) }""",
        {"AveragePool": 2},
        "averagepool-pad",
        SOME,
    ),
    "Pad with zeros before MaxPool stays": Example(
        """g (float[N, 4, 8, 8] x) => (float[N, 4, A, B] y) <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
            s = Pad(x, pads)  y = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(s) }""",
        {"Pad": 1, "MaxPool": 1},
        "",
        SOME,
    ),
    "Pad with zeros before MaxPool, behind Relu": Example(
        """g (float[N, 4, 8, 8] x) => (float[N, 4, A, B] y) <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
            r = Relu(x)  s = Pad(r, pads)  y = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(s) }""",
        {"Relu": 1, "MaxPool": 1},
        "maxpool-pad-relu",
        SOME,
    ),
    "1x1 Conv between transposes is a product": Example(
        """g (float[N, L, 4] x) => (float[N, L, 6] y) <float[6, 4, 1] w, float[6] b> {
            s = Transpose<perm = [0, 2, 1]>(x)  t = Conv(s, w, b)  y = Transpose<perm = [0, 2, 1]>(t) }""",
        {"MatMul": 1, "Add": 1},
        "conv-transpose-matmul",
        SOME,
    ),
    "MatMul between transposes is a 1x1 Conv": Example(
        """g (float[N, 4, 5, 5] x) => (float[N, 6, 5, 5] y) <float[4, 6] w, float[6] b> {
            s = Transpose<perm = [0, 2, 3, 1]>(x)  t = MatMul(s, w)  u = Transpose<perm = [0, 3, 1, 2]>(t)  y = Relu(u) }""",
        {"Conv": 1, "Relu": 1},
        "matmul-transpose-conv",
        SOME,
    ),
    "Conv -> Gemm after global pooling": Example(
        """g (float[N, 4, 5, 5] x) => (float[N, 3] y)
        <float[6, 4, 1, 1] w, float[6] b, int64[2] shape = {-1, 6}, float[6, 3] v, float[3] d> {
            s = GlobalAveragePool(x)  t = Conv(s, w, b)  u = Reshape(t, shape)  y = Gemm(u, v, d) }""",
        {"ReduceMean": 1, "Gemm": 1},
        "conv-gemm",
        SOME,
    ),
    "Gemm: transB, alpha and beta go into constants": Example(
        """g (float[N, 4] x) => (float[N, 3] y, float[N, 3] z) <float[3, 4] w, float[3] b, float[3] f> {
            s = Gemm<alpha = 0.5, beta = 2.0, transB = 1>(x, w, b)  y = Mul(s, f)
            t = Gemm<alpha = 0.25, transB = 1>(x, w)  z = Mul(t, f) }""",
        {"Gemm": 1, "MatMul": 1},
        "gemm-matmul-add gemm-matmul matmul-add-gemm",
        SOME,
    ),
    "Gemm + Add": Example(
        """g (float[N, 4] x, float[4, M] w) => (float[N, M] y) <float b = {3}> { s = Gemm(x, w)  y = Add(b, s) }""",
        {"Gemm": 1},
        "gemm-add",
        SOME,
    ),
    "Gemm + BatchNormalization": Example(
        f"""g (float[N, 3] x) => (float[N, 4] y) <float[3, 4] w, float[4] b, {STATISTICS}> {{
            s = Gemm(x, w, b)  y = BatchNormalization(s, scale, shift, mean, var) }}""",
        {"Gemm": 1},
        "gemm-matmul-add batchnorm-affine",
        SOME,
    ),
    "MatMul + BatchNormalization": Example(
        f"""g (float[N, 3] x) => (float[N, 4] y) <float[3, 4] w, {STATISTICS}> {{
            s = MatMul(x, w)  y = BatchNormalization(s, scale, shift, mean, var) }}""",
        {"Gemm": 1},
        "matmul-add-gemm batchnorm-affine",
        SOME,
    ),
    "Transpose into Gemm": Example(
        """g (float[4, N] x, float[M, 4] y, float[M] c) => (float[N, M] z) {
            s = Transpose(x)  t = Transpose<perm = [1, 0]>(y)  z = Gemm(s, t, c) }""",
        {"Gemm": 1},
        "gemm-transpose-first gemm-transpose-second",
        SOME,
    ),
    "Transpose into MatMul": Example(
        """g (float[4, N] x, float[4, M] y, float[K, 4] v, float[M, 4] w) => (float[N, M] z, float[K, M] u) {
            s = Transpose(x)  z = MatMul(s, y)  t = Transpose(w)  u = MatMul(v, t) }""",
        {"Gemm": 2},
        "matmul-transpose-first matmul-transpose-second",
        SOME,
    ),
    "output transpose of Gemm": Example(
        """g (float[N, 4] x, float[4, M] y) => (float[M, N] z) { s = Gemm(x, y)  z = Transpose(s) }""",
        {"Gemm": 1},
        "transpose-gemm",
        SOME,
    ),
    "MatMul * scalar -> alpha": Example(
        """g (float[N, 4] x, float[4, M] y) => (float[N, M] z) <float f = {0.5}> { s = MatMul(x, y)  z = Mul(s, f) }""",
        {"Gemm": 1},
        "mul-matmul-gemm",
        SOME,
    ),
    "scalar on attention scores into a weight": Example(
        """g (float[N, L, 4] x, float[N, 4, L] k) => (float[N, L, L] y) <float[4, 4] w, float[4] b, float root = {2}> {
            q = MatMul(x, w)  p = Add(q, b)  s = MatMul(p, k)  t = Div(s, root)  y = Softmax(t) }""",
        {"MatMul": 2, "Add": 1, "Softmax": 1},
        "mul-matmul-first",
        (13, 21),
    ),
    "BatchNormalization and what stands beside it": Example(
        f"""g (float[N, 4, H, W] x) => (float[N, 4, H, W] y, float[N, 4, H, W] z) <{STATISTICS}, float[4, 1, 1] f, float[4, 1, 1] t> {{
            a = Cos(x)  b = Add(a, t)  c = Mul(b, f)  d = BatchNormalization(c, scale, shift, mean, var)  y = Cos(d)
            k = Sigmoid(x)  l = BatchNormalization(k, scale, shift, mean, var)  m = Mul(l, f)  n = Add(m, t)  z = Cos(n) }}""",
        {"Cos": 3, "Sigmoid": 1, "BatchNormalization": 2},
        "mul-batchnorm add-batchnorm batchnorm-mul batchnorm-add",
        SOME,
    ),
    "LayerNormalization, factor, term": Example(
        """g (float[N, L, 4] x) => (float[N, L, 4] y, float[N, L, 4] z)
        <float[4] scale, float[4] zero = {0, 0, 0, 0}, float[4] f = {1, 2, 3, 4}, float[4] t = {4, 3, 2, 1}> {
            s = LayerNormalization(x, scale)  u = Mul(s, f)  y = Add(u, t)  z = LayerNormalization(x, f, zero) }""",
        {"LayerNormalization": 2},
        "layernorm-zero-bias layernorm-no-bias mul-layernorm add-layernorm",
        (17, 21),
    ),
    "Products of rows in two axes": Example(
        """g (float[2, 8, 4] x) => (float[2, 8, 4] y) <float[4, 4] w, float[4, 4] v, float[4, 4] u, float[4] c> {
            a = MatMul(x, w)  b = Add(a, c)  r = Add(b, x)  s = Relu(r)
            d = MatMul(s, v)  e = Add(d, c)  f = Tanh(e)  p = MatMul(f, u)  y = Add(p, c) }""",
        {"Reshape": 2, "Gemm": 3, "Add": 1, "Relu": 1, "Tanh": 1},
        "matmul-add-rows add-rows",
    ),
    "Add in front of LayerNormalization": Example(
        """g (float[2, 64, 256] x, float[2, 64, 256] y) => (float[2, 64, 256] z) <float[256] scale, float[256] shift> {
            s = Add(x, y)  z = LayerNormalization(s, scale, shift) }""",
        {"Sum": 1, "LayerNormalization": 1},
        "layernormalization-sum",
        (17, 21),
        "onnxruntime-cpu",
    ),
    "Neg and constant differences beside a Conv": Example(
        """g (float[N, 4, 6, 6] x) => (float[N, 6, 4, 4] y) <float[6, 4, 3, 3] w, float[6, 1, 1] c> {
            s = Neg(x)  t = Conv(s, w)  y = Sub(c, t) }""",
        {"Conv": 1},
        "neg-mul const-sub",
        SOME,
    ),
    "positive factors pass activations": Example(
        """g (float[N, 4, 6, 6] x) => (float[N, 6, 6, 6] y) <float[4, 4, 1, 1] w, float[6, 4, 3, 3] v, float f = {2}, float[4, 1, 1] h = {1, 2, 3, 4}> {
            s = Conv(x, w)  t = Relu(s)  u = Mul(t, f)  r = LeakyRelu<alpha = 0.5>(u)  q = Mul(r, h)  y = Conv<pads = [1, 1, 1, 1]>(q, v) }""",
        {"Conv": 2, "Relu": 1},
        "mul-relu[Relu] mul-relu[LeakyRelu]",
        SOME,
    ),
    "positive factors pass MaxPool": Example(
        """g (float[N, 4, 6, 6] x) => (float[N, 6, A, B] y) <float[6, 4, 3, 3] v, float[4, 1, 1] h = {1, 2, 3, 4}> {
            s = Mul(x, h)  t = MaxPool<kernel_shape = [2, 2]>(s)  y = Conv(t, v) }""",
        {"MaxPool": 1, "Conv": 1},
        "maxpool-mul[MaxPool]",
        SOME,
    ),
    "factors pass AveragePool": Example(
        """g (float[N, 4, 6, 6] x) => (float[N, 6, A, B] y, float[N, 6, C, D] z) <float[6, 4, 3, 3] v, float[4, 1, 1] h, float[6, 1, 1] f> {
            s = Mul(x, h)  t = AveragePool<kernel_shape = [2, 2]>(s)  y = Conv(t, v)
            u = Conv(x, v)  r = AveragePool<kernel_shape = [2, 2], pads = [1, 1, 1, 1]>(u)  z = Mul(r, f) }""",
        {"AveragePool": 2, "Conv": 2},
        "averagepool-affine[AveragePool,Mul] affine-averagepool-conv[AveragePool,Mul]",
        SOME,
    ),
    "factors and terms pass GlobalAveragePool": Example(
        """g (float[N, 4, 6, 6] x) => (float[N, 6, A, B] y, float[N, 6, C, D] z)
        <float[6, 4, 1, 1] v, float[4, 1, 1] h, float[4, 1, 1] t, float[6, 1, 1] f, float[6, 1, 1] k> {
            s = Mul(x, h)  s1 = Add(s, t)  p = GlobalAveragePool(s1)  y = Conv(p, v)
            u = Conv(x, v)  r = GlobalAveragePool(u)  r1 = Mul(r, f)  z = Add(r1, k) }""",
        {"GlobalAveragePool": 2, "Conv": 2},
        """averagepool-affine[GlobalAveragePool,Mul] averagepool-affine[GlobalAveragePool,Add]
        affine-averagepool-conv[GlobalAveragePool,Mul] affine-averagepool-conv[GlobalAveragePool,Add]""",
        SOME,
    ),
    "PRelu -> LeakyRelu (uniform slope)": Example(
        "g (float[N, 4, 6, 6] x) => (float[N, 4, 6, 6] y) <float[4, 1, 1] s = {0.25, 0.25, 0.25, 0.25}> { y = PRelu(x, s) }",
        {"LeakyRelu": 1},
        "prelu-leakyrelu",
        SOME,
    ),
    "the guard of attention against NaN behind the product": Example(
        """g (float[1, 4, 128, 128] x, float[1, 4, 128, 16] v) => (float[1, 4, 128, 16] y) <float zero = {0}> {
            p = Softmax<axis = -1>(x)  n = IsNaN(p)  w = Where(n, zero, p)  y = MatMul(w, v) }""",
        {"Softmax": 1, "MatMul": 1, "IsNaN": 1, "Where": 1},
        "guard-after-product",
        (13, 17, 21),
        "generic-gpu",
    ),
    "the guard of attention against NaN, for scores without a mask": Example(
        """g (float[1, 4, 128, 16] q, float[1, 4, 16, 128] k) => (float[1, 4, 128, 128] y) <float zero = {0}> {
            s = MatMul(q, k)  p = Softmax<axis = -1>(s)  n = IsNaN(p)  y = Where(n, zero, p) }""",
        {"Softmax": 1, "MatMul": 1},
        "softmax-guard",
        (13, 17, 21),
    ),
    "a guard against NaN behind a mask of finite numbers": Example(
        """g (float[2, 4, 16] q, float[2, 16, 6] k, bool[4, 6] c, float[2, 4, 6] m, float[2, 6, 3] v) => (float[2, 4, 6] y, float[2, 4, 3] z)
           <float zero = {0.0}, float least = {-3.4028235e38}> {
            w = Where(c, zero, least)  s = MatMul(q, k)  a = Add(s, w)  p = Softmax<axis = -1>(a)  n = IsNaN(p)  y = Where(n, zero, p)
            b = Add(s, m)  h = Softmax<axis = -1>(b)  i = IsNaN(h)  o = Where(i, zero, h)  z = MatMul(o, v) }""",
        {"MatMul": 2, "Where": 2, "Add": 2, "Softmax": 2, "IsNaN": 1},
        "softmax-guard-masked",
    ),
    "a guard behind a product that finite numbers mask": Example(
        """g (float[2, 4, 16] q, float[2, 16, 6] k, bool[4, 6] c, float[2, 6, 3] v) => (float[2, 4, 3] z) <float zero = {0.0}, float least = {-1e9}> {
            w = Where(c, zero, least)  s = MatMul(q, k)  a = Add(s, w)  p = Softmax<axis = -1>(a)  o = MatMul(p, v)  n = IsNaN(o)
            z = Where(n, zero, o) }""",
        {"MatMul": 2, "Where": 1, "Add": 1, "Softmax": 1},
        "softmax-guard-masked-product",
    ),
}

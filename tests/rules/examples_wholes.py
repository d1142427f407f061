"""Examples of rules that make one operator of many, or many of one: attention, cells, Einsum, Convs in parts."""

from __future__ import annotations

from pathlib import Path

from tests.rules.examples import Example

_FEW_MULTIPLIERS = str(Path(__file__).parents[1] / "support" / "few_multipliers.toml")
_SMALL_CACHES = str(Path(__file__).parents[1] / "support" / "small_caches.toml")
_CPU = "onnxruntime-cpu"

EXAMPLES = {
    "Attention in an opset whose version has no kernel": Example(
        """g (float[1, 4, 16, 8] q, float[1, 4, 16, 8] k, float[1, 4, 16, 8] v, float[1, 16, 32] a) => (float[1, 4, 16, 8] y, float[1, 16, 32] z) {
            y = Attention(q, k, v)  z = Attention<q_num_heads = 4, kv_num_heads = 4>(a, a, a) }""",
        {"Softmax": 2, "MatMul": 4, "Transpose": 4, "Mul": 2, "Reshape": 2},
        "attention-apart attention-heads-apart",
        (25,),
        _CPU,
    ),
    "heads that one Split makes": Example(
        """g (float[1, 16, 96] x) => (float[1, 16, 32] y) <int64[5] s = {1, 16, 3, 4, 8}, int64[4] r = {1, 16, 4, 8}, int64[3] e = {1, 16, 32}> {
            f = Reshape(x, s)  i, j, l = Split<axis = 2, num_outputs = 3>(f)  t = Constant<value = int64[1] {2}>()
            a = Squeeze(i, t)  b = Squeeze(j, t)  c = Squeeze(l, t)
            q = Transpose<perm = [0, 2, 1, 3]>(a)  k = Transpose<perm = [0, 2, 3, 1]>(b)  v = Transpose<perm = [0, 2, 1, 3]>(c)
            m = MatMul(q, k)  p = Softmax<axis = -1>(m)  o = MatMul(p, v)  u = Transpose<perm = [0, 2, 1, 3]>(o)  y = Reshape(u, e) }""",
        {"Attention": 1, "Split": 1, "Reshape": 4},
        "attention attention-heads-split",
        (23,),
    ),
    "a GRU cell of PyTorch": Example(
        """g (float[1, 8] x, float[1, 6] h) => (float[1, 6] y) <float[18, 8] w, float[18, 6] r, float[18] b, float[18] c, float one = {1}> {
            i = Gemm<transB = 1>(x, w, b)  j = Gemm<transB = 1>(h, r, c)
            i1, i2, i3 = Split<axis = 1, num_outputs = 3>(i)  j1, j2, j3 = Split<axis = 1, num_outputs = 3>(j)
            a = Add(i1, j1)  s = Sigmoid(a)  d = Add(i2, j2)  z = Sigmoid(d)  m = Mul(s, j3)  e = Add(i3, m)  n = Tanh(e)
            k = Sub(one, z)  o = Mul(k, n)  p = Mul(z, h)  y = Add(o, p) }""",
        {"GRU": 1, "Unsqueeze": 2, "Squeeze": 1},
        "step-towards gru-cell",
        (18,),
    ),
    "a GRU cell of Keras": Example(
        """g (float[1, 8] x, float[1, 6] h) => (float[1, 6] y) <float[8, 18] w, float[6, 18] r, float[18] b, float[18] c, float one = {1}> {
            f = MatMul(x, w)  i = Add(f, b)  g = MatMul(h, r)  j = Add(g, c)
            i1, i2, i3 = Split<axis = 1, num_outputs = 3>(i)  j1, j2, j3 = Split<axis = 1, num_outputs = 3>(j)
            a = Add(i1, j1)  z = Sigmoid(a)  d = Add(i2, j2)  s = Sigmoid(d)  m = Mul(s, j3)  e = Add(i3, m)  n = Tanh(e)
            o = Mul(z, h)  k = Sub(one, z)  p = Mul(k, n)  y = Add(o, p) }""",
        {"GRU": 1, "Unsqueeze": 2, "Squeeze": 1},
        "step-towards gru-cell-keras",
        (18,),
    ),
    "an LSTM cell": Example(
        """g (float[1, 8] x, float[1, 6] h, float[1, 6] c) => (float[1, 6] y, float[1, 6] d) <float[24, 8] w, float[24, 6] r, float[24] b, float[24] e> {
            i = Gemm<transB = 1>(x, w, b)  j = Gemm<transB = 1>(h, r, e)  s = Add(i, j)  a, f, g, o = Split<axis = 1, num_outputs = 4>(s)
            a1 = Sigmoid(a)  f1 = Sigmoid(f)  g1 = Tanh(g)  o1 = Sigmoid(o)  k = Mul(f1, c)  l = Mul(a1, g1)  d = Add(k, l)
            m = Tanh(d)  y = Mul(o1, m) }""",
        {"LSTM": 1, "Unsqueeze": 3, "Squeeze": 2},
        "lstm-cell",
        (18,),
    ),
    "a cell pays where rows are few": Example(
        """g (float[1, 32] x, float[1, 32] h) => (float[1, 32] y) <float[96, 32] w, float[96, 32] r, float[96] b, float[96] c> {
            i = Gemm<transB = 1>(x, w, b)  j = Gemm<transB = 1>(h, r, c)
            i1, i2, i3 = Split<axis = 1, num_outputs = 3>(i)  j1, j2, j3 = Split<axis = 1, num_outputs = 3>(j)
            a = Add(i1, j1)  s = Sigmoid(a)  d = Add(i2, j2)  z = Sigmoid(d)  m = Mul(s, j3)  e = Add(i3, m)  n = Tanh(e)
            k = Sub(h, n)  o = Mul(z, k)  y = Add(o, n) }""",
        {"GRU": 1, "Unsqueeze": 2, "Squeeze": 1},
        "gru-cell",
        (18,),
        _CPU,
    ),
    "Einsum of one operand": Example(
        """g (float[64, 48, 32] x) => (float[32, 64] y) { y = Einsum<equation = "abc->ca">(x) }""",
        {"ReduceSum": 1, "Transpose": 1},
        "einsum-sum",
        (17,),
        _CPU,
    ),
    "Einsum of one operand by letters": Example(
        """g (float[64, 48, 32] x) => (float[32, 64, 48] y) { y = Einsum<equation = "b...d->db...">(x) }""",
        {"Transpose": 1},
        "einsum-order",
        (17,),
        _CPU,
    ),
    "Einsum of two operands is a product of matrices": Example(
        """g (float[8, 64, 4, 32] q, float[8, 48, 4, 32] k) => (float[8, 4, 64, 48] y) { y = Einsum<equation = "bqhd,bkhd->bhqk">(q, k) }""",
        {"Unsqueeze": 1, "Transpose": 2, "Squeeze": 1, "MatMul": 1},
        "einsum-product transpose-inward",
        (17,),
        _CPU,
    ),
    "Einsum whose rows are matrices of their own": Example(
        """g (float[1, 16, 2, 3, 32] q, float[1, 16, 2, 32] k) => (float[1, 2, 3, 16, 16] y) { y = Einsum<equation = "bngrd,blgd->bgrnl">(q, k) }""",
        {"MatMul": 1, "Reshape": 1, "Transpose": 2},
        "einsum-product-rows",
        (17,),
        _CPU,
    ),
    "Einsum of two operands that sums nothing": Example(
        """g (float[64, 48] x, float[48] y) => (float[64, 48] z) { z = Einsum<equation = "...j,j->...j">(x, y) }""",
        {"Mul": 1},
        "einsum-elements",
        (17,),
        _CPU,
    ),
    "Einsum that sums axes of one operand alone": Example(
        """g (float[64, 48, 32] x, float[48, 16] y, float[48, 16] v) => (float[64, 16] z, float[64, 16] u) {
            z = Einsum<equation = "ijl,jk->ik">(x, y)  u = Einsum<equation = "jk,ijl->ik">(v, x) }""",
        {"ReduceSum": 1, "MatMul": 2},
        "einsum-alone einsum-exchange",
        (17,),
        _CPU,
    ),
    "Einsum of three operands": Example(
        """g (float[64, 48] x, float[48, 32] y, float[32, 16] v) => (float[64, 16] z) { z = Einsum<equation = "ij,jk,kl->il">(x, y, v) }""",
        {"MatMul": 2},
        "einsum-pair",
        (17,),
        _CPU,
    ),
    "Conv between space to batch and batch to space": Example(
        """g (float[1, 3, 8, 12] x) => (float[1, 4, 8, 12] y) <float[4, 3, 3, 3] w, float[4] b, int64[6] s = {1, 3, 4, 2, 4, 3},
            int64[4] t = {6, 3, 4, 4}, int64[6] u = {2, 3, 1, 4, 4, 4}, int64[4] v = {1, 4, 8, 12}> {
            a = Reshape(x, s)  c = Transpose<perm = [3, 5, 0, 1, 2, 4]>(a)  d = Reshape(c, t)  e = Conv<pads = [1, 1, 1, 1]>(d, w, b)
            f = Reshape(e, u)  g = Transpose<perm = [2, 3, 4, 0, 5, 1]>(f)  y = Reshape(g, v) }""",
        {"Conv": 1},
        "conv-dilated",
    ),
    "Conv by Winograd's products": Example(
        "g (float[1, 16, 16, 16] x) => (float[1, 16, 16, 16] y) <float[16, 16, 3, 3] w> { y = Conv<pads = [1, 1, 1, 1]>(x, w) }",
        {"Conv": 1, "Reshape": 4, "Transpose": 2, "MatMul": 2},
        "winograd",
        (17,),
        _FEW_MULTIPLIERS,
    ),
    "squeeze and excitation between Convs that run in blocks": Example(
        """g (float[1, 32, 28, 28] x) => (float[1, 32, 28, 28] z) <float[32, 32, 3, 3] w, float[8, 32, 1, 1] v, float[32, 8, 1, 1] u, float[32, 32, 1, 1] t,
            int64[2] axes = {2, 3}> {
            a = Conv<pads = [1, 1, 1, 1]>(x, w)  r = Relu(a)  m = ReduceMean<keepdims = 1>(r, axes)  b = Conv(m, v)  s = Relu(b)
            c = Conv(s, u)  e = Sigmoid(c)  g = Mul(r, e)  z = Conv(g, t) }""",
        {"Conv": 4, "Relu": 2, "GlobalAveragePool": 1, "Sigmoid": 1, "Resize": 1, "Mul": 1},
        "gate-resize reducemean-globalaveragepool",
        (18,),
        _CPU,
    ),
    "Convs over rows run in blocks as those over images": Example(
        """g (float[1, 32, 400] x) => (float[1, 32, 200] z) <float[32, 32, 7] w, float[32] b, float[32, 1, 31] v, float[32] c> {
            d = Conv<pads = [3, 3]>(x, w, b)  e = Relu(d)  f = MaxPool<kernel_shape = [2], strides = [2]>(e)
            h = Conv<group = 32, pads = [15, 15]>(f, v, c)  z = Relu(h) }""",
        {"Conv": 2, "Relu": 2, "MaxPool": 1, "Reshape": 2},
        "conv-row maxpool-row",
        (17,),
        _CPU,
    ),
    "pools of rows between such Convs": Example(
        """g (float[1, 32, 400] x) => (float[1, 32, 200] z) <float[32, 32, 7] w, float[32] b, float[32, 32, 5] v, float[32] c> {
            d = Conv<pads = [3, 3]>(x, w, b)  f = AveragePool<kernel_shape = [2], strides = [2]>(d)
            z = Conv<pads = [2, 2]>(f, v, c) }""",
        {"Conv": 2, "AveragePool": 1, "Unsqueeze": 1, "Squeeze": 1},
        "conv-row averagepool-row",
        (17,),
        _CPU,
    ),
    "averages of windows of few channels are Convs": Example(
        """g (float[1, 3, 64, 64] x, float[1, 3, 500] r) => (float[1, 3, 32, 32] y, float[1, 3, 500] z) {
            y = AveragePool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], count_include_pad = 1>(x)
            z = AveragePool<kernel_shape = [25], pads = [12, 12]>(r) }""",
        {"Conv": 2, "Mul": 1},
        "averagepool-conv averagepool-conv-border",
        (19, 22),
        _CPU,
    ),
    "an activation falls apart behind a product, whose kernel computes it no faster": Example(
        """g (float[256, 64] x) => (float[256, 1024] y) <float[64, 1024] w, float[1024] b> { g = Gemm(x, w, b)  y = Elu(g) }""",
        {"Concat": 1, "MatMul": 1, "Exp": 1, "Min": 1, "Sub": 1, "Max": 1},
        "elu-apart",
        (17,),
        _CPU,
    ),
    "a reduction over axes that lie apart is one after the other": Example(
        """g (float[8, 16, 32, 64] x) => (float[8, 32] y, float[1, 16, 1, 64] z) {
            y = ReduceMean<axes = [1, 3], keepdims = 0>(x)  z = ReduceMax<axes = [0, -2]>(x) }""",
        {"ReduceMean": 2, "ReduceMax": 2},
        "reduction-apart[ReduceMean] reduction-apart[ReduceMax]",
        (17,),
        _CPU,
    ),
    "Convs over few places are products of all images": Example(
        """g (float[sequence, 34, 2] x, float[64, 34, 2] r) => (float[sequence, 32, 1] y, float[64, 8, 2] z)
        <float[32, 34, 3] w, float[32] b, float[8, 34, 3] v> {
            a = Conv<pads = [1, 1], strides = [2]>(x, w, b)  y = Relu(a)  z = Conv<pads = [1, 1]>(r, v) }""",
        {"Gemm": 1, "Relu": 1, "MatMul": 1, "Reshape": 4},
        "conv-few-places conv-few-places-bias",
        (17,),
        _CPU,
    ),
    "pixels that are nearest in the middle repeat between Convs": Example(
        """g (float[1, 16, 16, 16] x, float[1, 16, 32, 32] t) => (float[1, 16, 48, 32] y, float[1, 16, 64, 64] z)
        <float[16, 16, 3, 3] w, float[4] s = {1, 1, 3, 2}, int64[4] d = {1, 16, 64, 64}> {
            a = Conv<pads = [1, 1, 1, 1]>(x, w)  b = Resize<mode = "nearest">(a, , s)  y = Conv<pads = [1, 1, 1, 1]>(b, w)
            p = Conv<pads = [1, 1, 1, 1]>(t, w)
            q = Resize<mode = "nearest", coordinate_transformation_mode = "pytorch_half_pixel", nearest_mode = "round_prefer_ceil">(p, , , d)
            z = Conv<pads = [1, 1, 1, 1]>(q, w) }""",
        {"Conv": 4, "Resize": 2},
        "resize-nearest-whole resize-nearest-whole-sizes",
        (13, 19),
        _CPU,
    ),
    "linear interpolation with PyTorch's coordinates runs between Convs": Example(
        """g (float[1, 16, 16, 16] x, float[1, 16, 32, 32] t) => (float[1, 16, 32, 32] y, float[1, 16, 64, 64] z)
        <float[16, 16, 3, 3] w, float[4] s = {1, 1, 2, 2}, int64[4] d = {1, 16, 64, 64}> {
            a = Conv<pads = [1, 1, 1, 1]>(x, w)  b = Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">(a, , s)
            y = Conv<pads = [1, 1, 1, 1]>(b, w)
            p = Conv<pads = [1, 1, 1, 1]>(t, w)  q = Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">(p, , , d)
            z = Conv<pads = [1, 1, 1, 1]>(q, w) }""",
        {"Conv": 4, "Resize": 2},
        "resize-pytorch resize-pytorch-sizes",
        (13, 19),
        _CPU,
    ),
    "half as many pixels by linear interpolation are means": Example(
        """g (float[1, 16, 64, 64] x) => (float[1, 16, 32, 32] y) <float[16, 16, 3, 3] w, float[4] s = {1, 1, 0.5, 0.5}> {
            a = Conv<pads = [1, 1, 1, 1]>(x, w)  b = Resize<mode = "linear">(a, , s)  y = Conv<pads = [1, 1, 1, 1]>(b, w) }""",
        {"Conv": 2, "AveragePool": 1},
        "resize-factors resize-half",
        (13, 19),
        _CPU,
    ),
    "pixels of few channels that repeat eight times": Example(
        """g (float[1, 3, 16, 16] x) => (float[1, 3, 128, 128] y) <int64[4] d = {1, 3, 128, 128}> {
            y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(x, , , d) }""",
        {"Resize": 3},
        "resize-twice",
        (13, 19),
        _CPU,
    ),
    "heads of a batch of one move behind an axis of size one": Example(
        """g (float[1, 128, 256] x) => (float[1, 8, 128, 32] y) <int64[4] s = {1, 128, 8, 32}> {
            r = Reshape(x, s)  t = Transpose<perm = [0, 2, 1, 3]>(r)  y = Relu(t) }""",
        {"Reshape": 1, "Transpose": 1, "Relu": 1},
        "transpose-inward-batch",
        (17,),
        _CPU,
    ),
    "a Transpose that would move single elements moves runs, and then a matrix": Example(
        """g (float[64, 2, 96, 2, 24] x) => (float[64, 96, 24, 2, 2] y) { y = Transpose<perm = [0, 2, 4, 1, 3]>(x) }""",
        {"Unsqueeze": 1, "Transpose": 2, "Squeeze": 1, "Reshape": 2},
        "transpose-first transpose-inward",
        (17,),
        _CPU,
    ),
    "weights of a batch of one are a matrix": Example(
        """g (float[N, 128, 256] x) => (float[N, 128, 512] y) <float[1, 256, 512] w> { y = MatMul(x, w) }""",
        {"MatMul": 1},
        "matmul-weights-batch",
        (17,),
        _CPU,
    ),
    "averages of windows of few channels, which earlier versions compute at once": Example(
        """g (float[1, 3, 64, 64] x) => (float[1, 3, 31, 31] y) { y = AveragePool<kernel_shape = [3, 3], strides = [2, 2]>(x) }""",
        {"AveragePool": 1},
        "",
        (18,),
        _CPU,
    ),
    "averages of windows of images in blocks": Example(
        """g (float[1, 32, 64, 64] x) => (float[1, 32, 31, 31] y) { y = AveragePool<kernel_shape = [3, 3], strides = [2, 2]>(x) }""",
        {"AveragePool": 1},
        "",
        (22,),
        _CPU,
    ),
    "a bias of many rows is a row of weights": Example(
        """g (float[1, 3136, 48] x) => (float[1, 3136, 192] y) <float[48, 192] w, float[192] b> { p = MatMul(x, w)  y = Add(p, b) }""",
        {"Concat": 1, "MatMul": 1},
        "bias-ones pad-column-concat",
        (17,),
        _CPU,
    ),
    "a bias of few rows stays, and one of rows that kernels take at a time": Example(
        """g (float[1, 4, 48] x, float[1, 3136, 256] u) => (float[1, 4, 192] y, float[1, 3136, 1024] z)
        <float[48, 192] w, float[192] b, float[256, 1024] v, float[1024] c> {
            p = MatMul(x, w)  y = Add(p, b)  q = MatMul(u, v)  z = Add(q, c) }""",
        {"MatMul": 2, "Add": 2},
        "",
        (17,),
        _CPU,
    ),
    "products of few rows by many weights are Convs of pixels": Example(
        """g (float[1, 32, 256] x) => (float[1, 32, 256] y) <float[256, 512] u, float[512] b, float[512, 256] v, float[256] c> {
            p = MatMul(x, u)  q = Add(p, b)  r = Relu(q)  s = MatMul(r, v)  y = Add(s, c) }""",
        {"Unsqueeze": 1, "Transpose": 2, "Conv": 2, "Relu": 1, "Squeeze": 1},
        "conv-of-matmul-add-rows unary-of-rows[Relu]",
        (17,),
        _SMALL_CACHES,
    ),
    "an approximate Gelu between products of few rows is one between Convs": Example(
        """g (float[1, 16, 256] x) => (float[1, 16, 256] y) <float[256, 1024] u, float[1024, 256] v,
        float half = {0.5}, float one = {1}, float three = {3}, float root = {0.7978846}, float cubic = {0.044715}> {
            p = MatMul(x, u)  a = Mul(p, half)  b = Pow(p, three)  c = Mul(b, cubic)  d = Add(p, c)  e = Mul(d, root)  f = Tanh(e)  h = Add(f, one)
            r = Mul(a, h)  y = MatMul(r, v) }""",
        {"Unsqueeze": 1, "Transpose": 2, "Conv": 2, "Pow": 1, "Tanh": 1, "Mul": 4, "Add": 2, "Squeeze": 1},
        "gelu-tanh-cube unary-of-rows[Gelu] conv-of-matmul-rows",
        (17,),
        _SMALL_CACHES,
    ),
    "gated products of few rows are Convs of pixels": Example(
        """g (float[1, 32, 256] x) => (float[1, 32, 256] y) <float[256, 512] u, float[256, 512] v, float[512, 256] w, float f = {1.702}> {
            p = MatMul(x, u)  q = Mul(p, f)  e = Sigmoid(q)  r = Mul(p, e)  s = MatMul(x, v)  t = Mul(r, s)  y = MatMul(t, w) }""",
        {"Unsqueeze": 1, "Transpose": 2, "Conv": 3, "Sigmoid": 1, "Mul": 3, "Squeeze": 1},
        "conv-of-matmul-rows unary-of-rows[Sigmoid] binary-of-rows[Mul] factor-of-rows",
        (17,),
        _SMALL_CACHES,
    ),
    "gates of Swish run between Convs of pixels as their definition": Example(
        """g (float[1, 32, 256] x) => (float[1, 32, 256] y, float[1, 32, 256] z)
        <float[256, 512] u, float[256, 512] v, float[512, 256] w, float[256, 512] k, float[512, 256] l> {
            p = MatMul(x, u)  e = Swish(p)  s = MatMul(x, v)  t = Mul(e, s)  y = MatMul(t, w)
            q = MatMul(x, k)  f = Swish<alpha = 1.5>(q)  z = MatMul(f, l) }""",
        {"Unsqueeze": 1, "Transpose": 3, "Conv": 5, "Sigmoid": 2, "Mul": 4, "Squeeze": 2},
        "swish-sigmoid swish-sigmoid-multiple conv-of-matmul-rows unary-of-rows[Sigmoid] binary-of-rows[Mul] factor-of-rows",
        (24,),
        _SMALL_CACHES,
    ),
    "gates of QuickGelu run so, too": Example(
        """g (float[1, 32, 256] x) => (float[1, 32, 256] y) <float[256, 512] u, float[256, 512] v, float[512, 256] w> {
            p = MatMul(x, u)  e = com.microsoft.QuickGelu<alpha = 1.0>(p)  s = MatMul(x, v)  t = Mul(e, s)  y = MatMul(t, w) }""",
        {"Unsqueeze": 1, "Transpose": 2, "Conv": 3, "Sigmoid": 1, "Mul": 2, "Squeeze": 1},
        "quickgelu-swish swish-sigmoid binary-of-rows[Mul]",
        (17,),
        _SMALL_CACHES,
        allow_domain="com.microsoft",
    ),
    "Gemms of few rows are Convs of pixels": Example(
        """g (float[32, 256] x) => (float[32, 256] y) <float[256, 512] u, float[512] b, float[512, 256] v, float[256] c> {
            p = Gemm(x, u, b)  q = Relu(p)  y = Gemm(q, v, c) }""",
        {"Unsqueeze": 1, "Transpose": 2, "Conv": 2, "Relu": 1, "Squeeze": 1},
        "gemm-matmul-add conv-of-matmul-add-rows unary-of-rows[Relu]",
        (17,),
        _SMALL_CACHES,
    ),
    "products of pixels are Convs": Example(
        """g (float[1, 6, 6, 256] x) => (float[1, 6, 6, 256] y)
        <float[256, 512] t, float[512] b, float[256, 512] u, float[512, 256] v, float f = {1.702}> {
            p = MatMul(x, t)  q = Add(p, b)  a = Mul(q, f)  e = Sigmoid(a)  r = Mul(q, e)  s = MatMul(x, u)  m = Mul(r, s)  y = MatMul(m, v) }""",
        {"Transpose": 2, "Conv": 3, "Sigmoid": 1, "Mul": 3},
        "conv-of-matmul-image conv-of-matmul-add-image unary-of-image[Sigmoid] binary-of-image[Mul] factor-of-image",
        (17,),
        _SMALL_CACHES,
    ),
    "a column of ones beside rows and pixels is the bias of a Conv": Example(
        """g (float[1, 200, 128] x, float[1, 14, 14, 128] z) => (float[1, 200, 128] y, float[1, 14, 14, 128] m)
        <float[128, 512] u, float[512] b, float[512, 128] v> {
            p = MatMul(x, u)  q = Add(p, b)  r = Relu(q)  y = MatMul(r, v)
            a = MatMul(z, u)  c = Add(a, b)  d = Relu(c)  m = MatMul(d, v) }""",
        {"Unsqueeze": 1, "Transpose": 4, "Conv": 4, "Relu": 2, "Squeeze": 1},
        "matmul-column-bias conv-of-matmul-add-rows conv-of-matmul-add-image",
        (17,),
        _SMALL_CACHES,
    ),
    "Convs over volumes whose windows are one deep run over frames": Example(
        """g (float[1, 32, 8, 20, 20] x) => (float[1, 32, 8, 20, 20] z) <float[32, 32, 1, 3, 3] w, float[32] b> {
            z = Conv<pads = [0, 1, 1, 0, 1, 1]>(x, w, b) }""",
        {"Conv": 1, "Transpose": 2, "Reshape": 2},
        "conv-frames",
        (17,),
        _CPU,
    ),
    "Convs over volumes whose windows are one wide and high run over rows of frames": Example(
        """g (float[1, 32, 8, 20, 20] x) => (float[1, 32, 8, 20, 20] z) <float[32, 32, 3, 1, 1] w, float[32] b> {
            z = Conv<pads = [1, 0, 0, 1, 0, 0]>(x, w, b) }""",
        {"Conv": 1, "Reshape": 2},
        "conv-depths",
        (17,),
        _CPU,
    ),
    "Convs over volumes read several frames as channels": Example(
        """g (float[1, 32, 8, 20, 20] x) => (float[1, 32, 8, 20, 20] z) <float[32, 32, 3, 3, 3] w, float[32] b> {
            z = Conv<pads = [1, 1, 1, 1, 1, 1]>(x, w, b) }""",
        {"Conv": 1, "Transpose": 2, "Reshape": 2, "Pad": 1, "Gather": 1},
        "conv-stacks",
        (17,),
        _CPU,
    ),
    "MatMul by Strassen's products": Example(
        "g (float[64, 64] x, float[64, 64] y) => (float[64, 64] z) { z = MatMul(x, y) }",
        {"Slice": 8, "Add": 12, "Sub": 6, "MatMul": 7, "Concat": 3},
        "strassen",
        (17,),
        _FEW_MULTIPLIERS,
    ),
}

"""Examples of forms for which ONNX Runtime has faster kernels, by its measured prices."""

from __future__ import annotations

from tests.rules.examples import Example

TARGET = "onnxruntime-cpu"

EXAMPLES = {
    "LRN over many channels": Example(
        "g (float[1, 64, 28, 28] x) => (float[1, 64, 28, 28] y) { a = Relu(x)  y = LRN<size = 5, alpha = 0.001, bias = 2.0>(a) }",
        {"Relu": 1, "Mul": 3, "Unsqueeze": 1, "AveragePool": 1, "Squeeze": 1, "Add": 1, "Sqrt": 2, "Div": 1},
        "lrn-pool",
        (13, 18),
        TARGET,
    ),
    "LRN over many channels, whose averages are a Conv": Example(
        "g (float[1, 64, 28, 28] x) => (float[1, 64, 28, 28] y) { a = Relu(x)  y = LRN<size = 5, alpha = 0.001, bias = 2.0>(a) }",
        {"Relu": 1, "Mul": 2, "Unsqueeze": 1, "Conv": 1, "Reshape": 1, "Sqrt": 2, "Div": 1},
        "lrn-pool averagepool-conv",
        (22,),
        TARGET,
    ),
    "LRN with another power": Example(
        "g (float[1, 64, 28, 28] x) => (float[1, 64, 28, 28] y) { a = Relu(x)  y = LRN<size = 3, beta = 0.6>(a) }",
        {"Relu": 1, "Mul": 1, "Unsqueeze": 1, "Conv": 1, "Reshape": 1, "Pow": 1, "Div": 1},
        "lrn-pool-power averagepool-conv",
        (13, 22),
        TARGET,
    ),
    "Mish of an image, spelled out": Example(
        "g (float[1, 32, 28, 28] x) => (float[1, 32, 28, 28] y) { s = Softplus(x)  t = Tanh(s)  y = Mul(x, t) }",
        {"Min": 1, "Exp": 1, "Add": 2, "Mul": 2, "Div": 1},
        "tanh-softplus",
        (13, 22),
        TARGET,
    ),
    "Mish of an image": Example(
        "g (float[1, 32, 28, 28] x) => (float[1, 32, 28, 28] y) { y = Mish(x) }",
        {"Min": 1, "Exp": 1, "Add": 2, "Mul": 2, "Div": 1},
        "mish tanh-softplus",
        (18, 22),
        TARGET,
    ),
    "PRelu by slopes of at most 1": Example(
        """g (float[1, 4, 56, 56] x) => (float[1, 4, 56, 56] y) <float[4, 1, 1] s = {0.25, -0.5, 0, 1}> { y = PRelu(x, s) }""",
        {"Mul": 1, "Max": 1},
        "prelu-apart",
        (13, 16),
        TARGET,
    ),
    "PRelu by any slopes": Example(
        """g (float[1, 4, 56, 56] x, float[4, 1, 1] t) => (float[1, 4, 56, 56] y, float[1, 4, 56, 56] z) <float[4, 1, 1] s = {0.25, -0.5, 0, 3}> {
            y = PRelu(x, s)  e = Exp(x)  r = Sin(e)  z = PRelu(r, t) }""",
        {"Relu": 2, "Min": 2, "Mul": 2, "Add": 2, "Exp": 1, "Sin": 1},
        "prelu-parts-apart",
        (13, 16),
        TARGET,
    ),
    "Elu of an image": Example(
        """g (float[1, 32, 28, 28] x, float[1, 32, 28, 28] b) => (float[1, 32, 28, 28] y, float[1, 32, 28, 28] z) {
            a = Sub(x, b)  y = Elu(a)  z = Elu<alpha = 0.5>(a) }""",
        {"Sub": 1, "Min": 1, "Exp": 1, "Add": 1, "Mul": 1, "Max": 2},
        "elu-apart",
        (13, 22),
        TARGET,
    ),
    "Selu of an image": Example(
        "g (float[1, 32, 28, 28] x, float[1, 32, 28, 28] b) => (float[1, 32, 28, 28] y) { a = Sub(x, b)  y = Selu(a) }",
        {"Sub": 1, "Relu": 1, "Min": 1, "Exp": 1, "Mul": 2, "Add": 2},
        "selu-apart",
        (13, 22),
        TARGET,
    ),
    "A product by a vector": Example(
        "g (float[2, 64, 256] x, float[256] v) => (float[2, 64] y) { y = MatMul(x, v) }",
        {"Unsqueeze": 1, "MatMul": 1, "Squeeze": 1},
        "matmul-vector",
        (13, 21),
        TARGET,
    ),
    "Softplus of an image": Example(
        "g (float[1, 32, 28, 28] x, float[1, 32, 28, 28] b) => (float[1, 32, 28, 28] y) { a = Sub(x, b)  y = Softplus(a) }",
        {"Sub": 1, "Relu": 1, "Abs": 1, "Neg": 1, "Exp": 1, "Add": 2, "Log": 1},
        "softplus-apart",
        (13, 22),
        TARGET,
    ),
    "Softmax over the channels of an image": Example(
        """g (float[1, 21, 28, 28] x) => (float[1, 21, 28, 28] y, float[1, 21, 28, 28] z) {
            y = Softmax<axis = 1>(x)  a = Relu(x)  z = LogSoftmax<axis = 1>(a) }""",
        {"Softmax": 1, "LogSoftmax": 1, "Relu": 1, "Reshape": 4},
        "softmax-joined[Softmax] softmax-joined[LogSoftmax]",
        (13, 21),
        TARGET,
    ),
    "Norms of rows": Example(
        "g (float[256, 512] x) => (float[256, 512] y) { n = ReduceL2<axes = [1]>(x)  y = Div(x, n) }",
        {"Mul": 1, "ReduceSum": 1, "Sqrt": 1, "Div": 1},
        "reducel2-sum",
        (13, 17),
        TARGET,
    ),
    "Sums of absolute values and their logarithms": Example(
        """g (float[64, 64] x, float[64, 64] z) => (float[64, 1] y, float[64, 1] l) {
            y = ReduceL1<axes = [1]>(x)  e = Exp(z)  l = ReduceLogSum<axes = [1]>(e) }""",
        {"Abs": 1, "ReduceSum": 2, "Exp": 1, "Log": 1},
        "reducel1-sum reducelogsum-sum",
        (13, 17),
        TARGET,
    ),
    "Channels that become pixels": Example(
        """g (float[1, 16, 56, 56] x) => (float[1, 4, 112, 112] y, float[1, 4, 112, 112] z) {
            y = DepthToSpace<blocksize = 2>(x)  a = Relu(x)  z = DepthToSpace<blocksize = 2, mode = "CRD">(a) }""",
        {"Transpose": 4, "Relu": 1, "Reshape": 6},
        "depthtospace-moves depthtospace-moves-crd",
        (13, 21),
        TARGET,
    ),
    "The mean over the tokens of one sequence": Example(
        """g (float[1, 197, 768] x) => (float[1, 768] y, float[1, 1, 768] z) {
            y = ReduceMean<axes = [1], keepdims = 0>(x)  e = Exp(x)  z = ReduceMax<axes = [1]>(e) }""",
        {"ReduceMean": 1, "ReduceMax": 1, "Exp": 1, "Reshape": 1},
        "reduction-single[ReduceMean]",
        (13, 17),
        TARGET,
    ),
    "A linear Resize of a small image": Example(
        """g (float[1, 32, 8, 8] x) => (float[1, 32, 32, 24] y) <int64[4] z = {1, 32, 32, 24}> {
            a = Relu(x)  y = Resize<mode = "linear">(a, , , z) }""",
        {"Relu": 1, "MatMul": 2},
        "resize-matmul",
        (13, 18, 21),
        TARGET,
    ),
    "A cubic Resize": Example(
        """g (float[N, 3, 28, 28] x) => (float[N, 3, 48, 48] y) <int64[3] z = {3, 48, 48}, int64[1] i = {0}> {
            s = Shape(x)  n = Gather(s, i)  t = Concat<axis = 0>(n, z)
            y = Resize<mode = "cubic", coordinate_transformation_mode = "align_corners">(x, , , t) }""",
        {"MatMul": 2},
        "resize-matmul",
        (13, 18, 21),
        TARGET,
    ),
    "A linear Resize to the size that is there": Example(
        """g (float[1, 3, 28, 28] x) => (float[1, 3, 28, 28] y) <int64[4] z = {1, 3, 28, 28}> {
            a = Resize<mode = "linear">(x, , , z)  y = Exp(a) }""",
        {"Exp": 1},
        "resize-itself",
        (13, 18, 21),
        TARGET,
    ),
    "A 1x1 Conv behind a Resize": Example(
        """g (float[1, 16, 16, 16] x) => (float[1, 8, 64, 64] y) <int64[4] z = {1, 16, 64, 64}, float[8, 16, 1, 1] w, float[8] b> {
            a = Resize<mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric">(x, , , z)  y = Conv(a, w, b) }""",
        {"Conv": 1, "Resize": 2, "Add": 1},
        "conv-resize resize-twice",
        (13, 18, 21),
        TARGET,
    ),
    "The head of a SegFormer": Example(
        """g (float[1, 32, 32, 32] p, float[1, 32, 16, 16] q, float[1, 32, 8, 8] r, float[1, 32, 4, 4] s) => (float[1, 32, 32, 32] y)
          <int64[4] z = {1, 32, 32, 32}, float[32, 128, 1, 1] w, float[32] b> {
            i = Resize<mode = "linear">(p, , , z)  j = Resize<mode = "linear">(q, , , z)  k = Resize<mode = "linear">(r, , , z)
            l = Resize<mode = "linear">(s, , , z)  c = Concat<axis = 1>(l, k, j, i)  d = Conv(c, w, b)  y = Relu(d) }""",
        {"Conv": 4, "Resize": 3, "Add": 3, "Relu": 1},
        "conv-resized-part resize-itself",
        (13, 18, 21),
        TARGET,
    ),
}

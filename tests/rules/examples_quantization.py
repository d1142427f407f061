"""Examples of rules about quantization, and of operators that another operator can express."""

from __future__ import annotations

from tests.rules.examples import Example

_UNIT = "float s = {0.5}, uint8 z = {3}"  # one scale and zero point

EXAMPLES = {
    "quantized again by equal parameters": Example(
        f"g (uint8[N, 4] x) => (uint8[N, 4] y) <{_UNIT}> {{ d = DequantizeLinear(x, s, z)  q = QuantizeLinear(d, s, z)  y = Identity(q) }}",
        {"Identity": 1},
        "quantize-dequantize",
    ),
    "twice quantized and dequantized": Example(
        f"""g (float[N, 4] x) => (float[N, 4] y) <{_UNIT}> {{
            a = QuantizeLinear(x, s, z)  b = DequantizeLinear(a, s, z)  c = QuantizeLinear(b, s, z)  d = DequantizeLinear(c, s, z)  y = Exp(d) }}""",
        {"QuantizeLinear": 1, "DequantizeLinear": 1, "Exp": 1},
        "quantize-dequantize",
    ),
    "a zero point that is absent and one that is zero": Example(
        """g (uint8[N, 4] x) => (float[N, 4] y) <float s = {0.5}, uint8 z = {0}> {
            a = DequantizeLinear(x, s)  b = QuantizeLinear(a, s, z)  c = DequantizeLinear(b, s, z)  d = QuantizeLinear(c, s)  e = DequantizeLinear(d, s)
            y = Exp(e) }""",
        {"DequantizeLinear": 1, "Exp": 1},
        "quantize-dequantize dequantize-zero-point quantize-zero-point",
    ),
    "integers with a sign": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float s = {0.5}, int8 z = {-3}, int8[4] c = {1, -128, 127, 0}, int8 v = {0}> {
            q = QuantizeLinear(x, s, z)  a = DequantizeLinear(q, s, z)  b = DequantizeLinear(c, s, v)
            m = Mul(a, b)  n = QuantizeLinear(m, s, z)  o = DequantizeLinear(n, s, z)  y = Exp(o) }""",
        {"QuantizeLinear": 2, "DequantizeLinear": 3, "Mul": 1, "Exp": 1},
        "quantize-unsigned constant-unsigned[Mul]",
        target="onnxruntime-cpu",
    ),
    "scales per channel": Example(
        """g (int8[N, 3] x) => (int8[3, N] y) <float[3] s = {0.5, 0.25, 2}, int8[3] z = {1, 2, 3}> {
            a = DequantizeLinear<axis = 1>(x, s, z)  b = Transpose<perm = [1, 0]>(a)  y = QuantizeLinear<axis = 0>(b, s, z) }""",
        {"Transpose": 1},
        "quantize-dequantize transpose-dequantize",
        (13, 17, 21),
    ),
    "what is cut anyway": Example(
        """g (float[N, 4] x) => (uint8[N, 4] a, int8[N, 4] b) <float s = {0.02}, uint8 z = {0}, int8 w = {-128}, float lo = {0}, float hi = {5.1}> {
            r = Relu(x)  a = QuantizeLinear(r, s, z)
            c = Clip(x, lo, hi)  b = QuantizeLinear(c, s, w) }""",
        {"QuantizeLinear": 2},
        "quantize-relu quantize-clip",
    ),
    "bounds behind": Example(
        """g (uint8[N, 4] x, int8[N, 4] y) => (float[N, 4] a, int8[N, 4] b, float[N, 4] c)
        <float s = {0.02}, uint8 z = {0}, int8 w = {1}, float lo = {0}, float hi = {6}> {
            d = DequantizeLinear(x, s, z)  r = Relu(d)  a = Exp(r)
            e = DequantizeLinear(y, s, w)  t = Relu(e)  b = QuantizeLinear(t, s, w)
            u = Clip(d, lo, hi)  c = Sin(u) }""",
        {"DequantizeLinear": 1, "Exp": 1, "Sin": 1, "Clip": 1},
        "relu-dequantize needless-clip clip-dequantize quantize-dequantize",
        (13, 17, 21),
    ),
    "moves between": Example(
        f"""g (uint8[2, 1, 6, 3] x) => (uint8[36] a, uint8[2, 18] b, uint8[2, 6, 3] c, uint8[2, 1, 1, 6, 3] d, uint8[2, 1, 3, 3] e)
        <{_UNIT}, int64[1] all = {{-1}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] five = {{5}}, int64[1] i = {{0}}> {{
            f = DequantizeLinear(x, s, z)
            f1 = Reshape(f, all)  a = QuantizeLinear(f1, s, z)
            f2 = Flatten<axis = 1>(f)  b = QuantizeLinear(f2, s, z)
            f3 = Squeeze(f, one)  c = QuantizeLinear(f3, s, z)
            f4 = Unsqueeze(f, one)  d = QuantizeLinear(f4, s, z)
            f5 = Slice(f, two, five, two)  e = QuantizeLinear(f5, s, z) }}""",
        {"Reshape": 1, "Flatten": 1, "Squeeze": 1, "Unsqueeze": 1, "Slice": 1},
        "quantize-dequantize reshape-dequantize[Reshape] flatten-dequantize squeeze-dequantize reshape-dequantize[Unsqueeze] slice-dequantize",
        (13, 17, 21),
    ),
    "a table of quantized rows": Example(
        """g (int64[N] i) => (float[N, 4] y)
        <int8[3, 4] x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float s = {0.5}, int8 z = {3}, int8[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {
            d = DequantizeLinear(x, s, z)  y = Gather(d, i) }""",
        {"Gather": 1, "DequantizeLinear": 1},
        "gather-dequantize",
        (13, 21),
    ),
    "parts that are joined": Example(
        f"""g (uint8[N, 4] x, uint8[N, 3] y, uint8[N, 2] w) => (uint8[N, 9] c) <{_UNIT}> {{
            dx = DequantizeLinear(x, s, z)  dy = DequantizeLinear(y, s, z)  dw = DequantizeLinear(w, s, z)
            j = Concat<axis = 1>(dx, dy, dw)  c = QuantizeLinear(j, s, z) }}""",
        {"Concat": 1},
        "concat-dequantize quantize-dequantize",
        (13, 21),
    ),
    "parts that are split": Example(
        f"""g (uint8[N, 5] x) => (uint8[N, 2] a, uint8[N, 3] b, uint8[N, 1] c, uint8[N, 2] d, uint8[N, 2] e)
        <{_UNIT}, int64[2] n = {{2, 3}}, int64[3] m = {{1, 2, 2}}> {{
            f = DequantizeLinear(x, s, z)  f1, f2 = Split<axis = 1>(f, n)  a = QuantizeLinear(f1, s, z)  b = QuantizeLinear(f2, s, z)
            g1, g2, g3 = Split<axis = 1>(f, m)  c = QuantizeLinear(g1, s, z)  d = QuantizeLinear(g2, s, z)  e = QuantizeLinear(g3, s, z) }}""",
        {"Split": 2},
        "split-dequantize[2] split-dequantize[3] quantize-dequantize",
        (13, 21),
    ),
    "zeros around": Example(
        f"""g (uint8[N, 4] x) => (uint8[N, 7] y) <{_UNIT}, int64[4] pads = {{0, 1, 0, 2}}> {{
            d = DequantizeLinear(x, s, z)  p = Pad(d, pads)  y = QuantizeLinear(p, s, z) }}""",
        {"Pad": 1},
        "pad-dequantize quantize-dequantize",
        (13, 21),
    ),
    "largest of windows": Example(
        f"""g (uint8[N, 2, 8, 8] x) => (uint8[N, 2, 4, 4] a, uint8[N, 2, 4, 4] b, uint8[N, 2, 8, 8] c) <{_UNIT}> {{
            d = DequantizeLinear(x, s, z)
            d1 = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(d)  a = QuantizeLinear(d1, s, z)
            d2 = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(d)  b = QuantizeLinear(d2, s, z)
            d3 = MaxPool<kernel_shape = [3, 3], auto_pad = "SAME_UPPER">(d)  c = QuantizeLinear(d3, s, z) }}""",
        {"MaxPool": 3},
        "maxpool-dequantize quantize-dequantize",
        (13, 21),
    ),
    "no narrow MaxPool at opset 11": Example(
        f"""g (uint8[N, 2, 8, 8] x) => (uint8[N, 2, 4, 4] y) <{_UNIT}> {{
            d = DequantizeLinear(x, s, z)  p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(d)  y = QuantizeLinear(p, s, z) }}""",
        {"DequantizeLinear": 1, "MaxPool": 1, "QuantizeLinear": 1},
        "",
        (11,),
    ),
    "a bias of zeros": Example(
        """g (uint8[N, 1, 5, 5] x) => (uint8[N, 1, 3, 3] y)
        <float s = {0.5}, uint8 z = {3}, uint8[1, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, int32[1] b = {0}> {
            y = QLinearConv(x, s, z, w, s, z, s, z, b) }""",
        {"QLinearConv": 1},
        "qlinearconv-zero-bias",
    ),
    "equal parameters under two names": Example(
        """g (float[N, 4] x) => (float[N, 4] a, float[N, 4] b) <float s = {0.5}, uint8 z = {3}, float t = {0.5}, uint8 w = {3}> {
            c = QuantizeLinear(x, s, z)  d = QuantizeLinear(x, t, w)  e = DequantizeLinear(c, s, z)  f = DequantizeLinear(d, t, w)  a = Exp(e)  b = Sin(f) }""",
        {"QuantizeLinear": 1, "DequantizeLinear": 1, "Exp": 1, "Sin": 1},
    ),
    "quantized weights stay as they are": Example(
        """g (float[N, 2] x) => (float[N, 2] y) <int8[2, 2] w = {1, 2, 3, 4}, float s = {0.5}, int8 z = {0}> {
            d = DequantizeLinear(w, s, z)  t = Transpose<perm = [1, 0]>(d)  y = MatMul(x, t) }""",
        {"DequantizeLinear": 1, "MatMul": 1},
        "transpose-dequantize",
    ),
    "sums and means of one and two": Example(
        """g (float[N, 4] x, float[N, 4] y) => (float[N, 4] a, float[N, 4] b) <float[4] c = {1, 2, 3, 4}, float[4] d = {3, 4, 5, 6}> {
            r = Sum(x)  s = Sum(r, c)  t = Sum(s, d)  a = Exp(t)
            u = Mean(y)  v = Mean(u, c)  w = Mul(v, d)  z = Add(w, d)  b = Exp(z) }""",
        {"Add": 2, "Mul": 1, "Exp": 2},
        "variadic-one[Sum] sum-two variadic-one[Mean] mean-two associative-const[Add] associative-const[Mul]",
    ),
    "largest and smallest of one": Example(
        "g (float[N, 4] x) => (float[N, 4] y) { a = Max(x)  b = Min(a)  y = Exp(b) }",
        {"Exp": 1},
        "variadic-one[Max] variadic-one[Min]",
    ),
    "pools over all": Example(
        """g (float[N, 2, 7, 7] x) => (float[N, 2, 1, 1] a, float[N, 2, 1, 1] b, float[N, 2, 1, 1] c, float[N, 2, 1, 1] d, float[N, 2, 1, 1] j) {
            e = GlobalAveragePool(x)  a = Exp(e)
            f = AveragePool<kernel_shape = [7, 7]>(x)  b = Sin(f)
            h = AveragePool<kernel_shape = [7, 7], strides = [7, 7]>(x)  c = Abs(h)
            k = AveragePool<kernel_shape = [1280, 9], strides = [1280, 3], ceil_mode = 1, count_include_pad = 1>(x)  j = Cos(k)
            i = GlobalMaxPool(x)  d = Exp(i) }""",
        {"GlobalAveragePool": 1, "GlobalMaxPool": 1, "Exp": 2, "Sin": 1, "Abs": 1, "Cos": 1},
        "averagepool-global globalaveragepool-reducemean globalmaxpool-reducemax",
    ),
    "Softmax and LogSoftmax": Example(
        "g (float[N, 4] x, float[N, 4] y) => (float[N, 4] a, float[N, 4] b) { c = Softmax(x)  a = Log(c)  d = LogSoftmax(y)  b = Exp(d) }",
        {"LogSoftmax": 1, "Softmax": 1},
        "log-softmax[Log,Softmax,LogSoftmax] log-softmax[Exp,LogSoftmax,Softmax]",
        (11, 13, 21),
    ),
}

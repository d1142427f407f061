"""Examples of nodes without effect at inference, and of layers in other spellings."""

from __future__ import annotations

from tests.rules.examples import Example

SOME = (11, 17)
BOTH = (13, 21)
END = "9223372036854775807"

EXAMPLES = {
    "Dropout (inference)": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <int64[1] four = {4}> {
            a = Dropout(x)  b = Identity(a)  c = Split<axis = 1>(b, four)  d = Dropout(c)  y = Exp(d) }""",
        {"Exp": 1},
        "dropout-nothing split-one",
        (13, 17),
    ),
    "Dropout of old opsets": Example(
        "g (float[N, 4] x) => (float[N, 4] y) { a = Dropout<ratio = 0.5>(x)  y = Exp(a) }",
        {"Exp": 1},
        "",
        (9, 11),
    ),
    "Slices and Convs -> group Conv": Example(
        f"""g (float[N, 4, H, W] x) => (float[N, 6, Y, Z] y)
        <float[3, 2, 3, 3] v, float[3, 2, 3, 3] w, int64[1] i = {{1}}, int64[1] o = {{0}}, int64[1] two = {{2}}, int64[1] end = {{{END}}}> {{
            a = Slice(x, o, two, i)  b = Slice(x, two, end, i)  c = Conv(a, v)  d = Conv(b, w)  y = Concat<axis = 1>(c, d) }}""",
        {"Conv": 1},
        "conv-slices-groups",
        BOTH,
    ),
    "ReduceMean chains -> LayerNormalization": Example(
        """g (float[N, L, 8] x) => (float[N, L, 8] y) <float[8] s, float[8] b, float e = {0.00001}, float two = {2}> {
            m = ReduceMean<axes = [-1]>(x)  d = Sub(x, m)  p = Pow(d, two)  v = ReduceMean<axes = [2]>(p)  a = Add(v, e)  r = Sqrt(a)
            n = Div(d, r)  t = Mul(n, s)  y = Add(t, b) }""",
        {"LayerNormalization": 1},
        "layernorm-chain mul-layernorm add-layernorm",
        (17,),
    ),
    "ReduceMean chains -> LayerNormalization, axes as inputs, by a product with the reciprocal, of two axes": Example(
        """g (float[N, 6, 8] x) => (float[N, 6, 8] y) <float[6, 8] s, float[6, 8] b, float e = {0.00001}, int64[2] axes = {-2, -1}> {
            m = ReduceMean(x, axes)  d = Sub(x, m)  p = Mul(d, d)  v = ReduceMean(p, axes)  a = Add(v, e)  r = Sqrt(a)  q = Reciprocal(r)
            n = Mul(d, q)  t = Mul(n, s)  y = Add(t, b) }""",
        {"LayerNormalization": 1},
        "layernorm-chain mul-layernorm add-layernorm inverse-operand[Mul,Div,Reciprocal]",
        (18, 21),
    ),
    "Dropout whose mask is read": Example(
        "g (float[3, 4] x) => (float[3, 4] y, bool[3, 4] z) { a, m = Dropout(x)  y = Exp(a)  z = Not(m) }",
        {"Exp": 1},
        "dropout-mask",
        (13, 17),
    ),
    "Pad(0) into ConvInteger": Example(
        """g (uint8[N, 2, 5, 5] x) => (int32[N, 1, 6, 6] y) <uint8[1, 2, 2, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}, int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> {
            a = Pad(x, p)  y = ConvInteger(a, w) }""",
        {"ConvInteger": 1},
        "convinteger-pad",
        BOTH,
    ),
    "Resize by 1, to the sizes that are there": Example(
        """g (float[2, 3, 8, 8] x) => (float[2, 3, 8, 8] y) <float[4] scales = {1, 1, 1, 1}, int64[4] sizes = {2, 3, 8, 8}> {
            a = Resize<mode = "nearest">(x, , scales)  b = Resize<mode = "nearest">(a, , , sizes)  y = Exp(b) }""",
        {"Exp": 1},
        "resize-nothing resize-nothing-sizes",
        BOTH,
    ),
    "Upsample by 1": Example(
        "g (float[N, 3, 8, 8] x) => (float[N, 3, 8, 8] y) <float[4] scales = {1, 1, 1, 1}> { a = Upsample(x, scales)  y = Exp(a) }",
        {"Exp": 1},
        "resize-nothing",
        (9,),
    ),
    "Reduce over axes of size 1": Example(
        """g (float[N, 1, 4] x) => (float[N, 1, 4] y, float[N, 1, 4] z, float[N, 1, 4] u) {
            a = ReduceMean<axes = [1]>(x)  y = Exp(a)  b = ReduceMax<axes = [1]>(x)  z = Sin(b)  c = ReduceMin<axes = [1]>(x)  u = Cos(c) }""",
        {"Exp": 1, "Sin": 1, "Cos": 1},
        "reduction-nothing[ReduceMean] reduction-nothing[ReduceMax] reduction-nothing[ReduceMin]",
        (13, 17),
    ),
    "ReduceSum over an axis of size 1": Example(
        "g (float[N, 1, 4] x) => (float[N, 1, 4] y) <int64[1] i = {1}> { a = ReduceSum(x, i)  y = Exp(a) }",
        {"Exp": 1},
        "reduction-nothing[ReduceSum]",
        BOTH,
    ),
    "the values of a single key": Example(
        """g (float[2, 5, 8] q, float[2, 1, 8] k, float[2, 1, 8] v, float[2, 5, 8] x) => (float[2, 5, 8] y) {
            t = Transpose<perm = [0, 2, 1]>(k)  s = MatMul(q, t)  p = Softmax<axis = 2>(s)  m = MatMul(p, v)  y = Add(m, x) }""",
        {"Add": 1},
        "softmax-alone[Softmax] matmul-ones",
        BOTH,
    ),
    "the values of a single key, from the other side": Example(
        """g (float[2, 1, 5] s, float[2, 8, 1] v, float[2, 8, 5] x) => (float[2, 8, 5] y) {
            p = Softmax<axis = 1>(s)  m = MatMul(v, p)  y = Mul(m, x) }""",
        {"Mul": 1},
        "softmax-alone[Softmax] ones-matmul",
        BOTH,
    ),
    "the only element of an axis": Example(
        """g (float[2, 1, 4] x) => (float[2, 1, 4] a, float[2, 1, 4] b, int64[2, 1, 4] i, float[2, 1, 4] c, int64[2, 1, 4] j)
            <int64[1] k = {1}, int64 one = {1}> {
            l = LogSoftmax<axis = 1>(x)  a = Add(l, x)  h = Hardmax<axis = 1>(x)  b = Mul(h, x)
            n = ArgMax<axis = 1>(x)  m = ArgMin<axis = 1>(x)  i = Add(n, m)  s = CumSum(x, one)  c, j = TopK<axis = 1>(s, k) }""",
        {"Identity": 3},
        "softmax-alone[LogSoftmax] softmax-alone[Hardmax] place-nothing[ArgMax] place-nothing[ArgMin] cumsum-nothing topk-nothing",
        BOTH,
    ),
    "Einsum -> Transpose, Einsum of a transposed operand -> MatMul": Example(
        """g (float[N, 4] x, float[B, H, L, 4] q, float[B, H, 4, M] k) => (float[N, 4] y, float[B, H, L, M] z) {
            a = Einsum<equation = "ij->ji">(x)  b = Transpose(a)  y = Exp(b)
            c = Transpose<perm = [0, 1, 3, 2]>(k)  z = Einsum<equation = "bhqd,bhkd->bhqk">(q, c) }""",
        {"Exp": 1, "MatMul": 1},
        "einsum-transpose einsum-matmul-transposed",
        BOTH,
    ),
    "Transpose through Resize": Example(
        """g (float[N, 4, 6, 8] x) => (float[N, 4, A, B] y, float[1, 4, 12, 16] z)
        <float[4] scales = {1, 2, 3, 1}, int64[4] sizes = {1, 12, 16, 4}, int64[1] o = {0}, int64[1] i = {1}> {
            a = Transpose<perm = [0, 2, 3, 1]>(x)
            b = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(a, , scales)
            y = Transpose<perm = [0, 3, 1, 2]>(b)
            c = Slice(x, o, i, o)  d = Transpose<perm = [0, 2, 3, 1]>(c)  e = Resize<mode = "nearest">(d, , , sizes)
            z = Transpose<perm = [0, 3, 1, 2]>(e) }""",
        {"Resize": 2, "Slice": 1},
        "transpose-resize transpose-resize-sizes",
        BOTH,
    ),
}

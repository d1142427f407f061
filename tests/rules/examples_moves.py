"""Examples of moves: Transpose, Reshape in all its spellings, Expand and Cast.

They compose, cancel, and sink below operators that do not depend on them.
"""

from __future__ import annotations

from tests.rules.examples import Example


def _chains(calls: str, there: str, back: str) -> str:
    """Returns a chain for each call of `_`: a move of x, the call, and the move back."""
    lines = [f"t{i} = {there}  s{i} = {call.strip().replace('_', f't{i}')}  y{i} = {back.replace('_', f's{i}')}" for i, call in enumerate(calls.split(";"))]
    return "\n".join(lines)


def _outputs(count: int, of: str) -> str:
    return ", ".join(f"{of} y{i}" for i in range(count))


THERE, BACK = "Transpose<perm = [0, 2, 3, 1]>(x)", "Transpose<perm = [0, 3, 1, 2]>(_)"
FLAT, BLOCK = "Reshape(x, flat)", "Reshape(_, block)"
UNARY = "Relu(_); LeakyRelu<alpha = 0.2>(_); Clip(_, low, high); Sigmoid(_); Tanh(_); HardSigmoid<alpha = 0.3>(_); Erf(_); Exp(_); Sqrt(_); Neg(_)"
MORE = "Elu(_); Softplus(_); Log(_); Reciprocal(_); Abs(_)"
THROUGH = "Abs Elu Erf Exp HardSigmoid LeakyRelu Log Neg Reciprocal Relu Sigmoid Softplus Sqrt Tanh".split()

EXAMPLES = {
    "Transpose through unary operators": Example(
        f"""g (float[N, 4, H, W] x) => ({_outputs(15, "float[N, 4, H, W]")}) <float low = {{-1}}, float high = {{2}}> {{
            {_chains(UNARY + ";" + MORE, THERE, BACK)} }}""",
        dict.fromkeys(["Clip", *THROUGH], 1),
        " ".join(f"transpose-unary[{name}]" for name in THROUGH) + " transpose-clip transpose-transpose transpose-nothing",
        (11, 17),
    ),
    "Transpose and Reshape through younger operators": Example(
        """g (float[N, 4, H, 6] x) => (float[N, 4, H, 6] y, float[N, 4, H, 6] z) <int64[3] flat = {0, 0, -1}, int64[4] block = {0, 4, -1, 6}> {
            a = Transpose<perm = [0, 2, 3, 1]>(x)  b = HardSwish(a)  c = Gelu<approximate = "tanh">(b)  y = Transpose<perm = [0, 3, 1, 2]>(c)
            r = Reshape(x, flat)  s = HardSwish(r)  t = Gelu(s)  z = Reshape(t, block) }""",
        {"HardSwish": 1, "Gelu": 2},
        "transpose-unary[HardSwish] transpose-unary[Gelu] reshape-unary[HardSwish] reshape-unary[Gelu]",
        (20, 21),
    ),
    "Cast position: where moves sink below casts, casts meet": Example(
        """g (float[N, 4, H, 6] x) => (double[N, 4, H, 6] y, double[N, 4, H, 6] z) <int64[3] flat = {0, 0, -1}, int64[4] block = {0, 4, -1, 6}> {
            a = Transpose<perm = [0, 2, 3, 1]>(x)  b = Cast<to = 11>(a)  c = Transpose<perm = [0, 3, 1, 2]>(b)  d = Exp(c)  y = Cast<to = 11>(d)
            r = Reshape(x, flat)  s = Cast<to = 11>(r)  t = Reshape(s, block)  z = Tanh(t) }""",
        {"Cast": 1, "Exp": 1, "Tanh": 1},
        "transpose-unary[Cast] reshape-unary[Cast] cast-nothing",
    ),
    "Cast of both parts of a Concat": Example(
        """g (float[N, 4] x, float[N, 3] y) => (double[N, 7] z) {
            a = Cast<to = 11>(x)  b = Cast<to = 11>(y)  z = Concat<axis = 1>(a, b) }""",
        {"Concat": 1, "Cast": 1},
        "concat-cast",
        (13, 21),
    ),
    "Transpose through binary operators, of two": Example(
        f"""g (float[N, 4, H, W] x, float[N, 4, H, W] z) => ({_outputs(6, "float[N, 4, H, W]")}) {{
            u = Transpose<perm = [0, 2, 3, 1]>(z)
            {_chains("Add(_, u); Mul(_, u); Sub(_, u); Div(_, u); Max(_, u); Min(_, u)", THERE, BACK)} }}""",
        {"Add": 1, "Mul": 1, "Sub": 1, "Div": 1, "Max": 1, "Min": 1},
        "transpose-binary[Add] transpose-binary[Mul] transpose-binary[Sub] transpose-binary[Div] transpose-binary[Max] transpose-binary[Min]",
        (13, 21),
    ),
    "Transpose through binary operators, with a constant": Example(
        f"""g (float[N, 4, H, W] x) => ({_outputs(8, "float[N, 4, H, W]")}) <float[4] c, float e = {{3}}> {{
            {_chains("Add(_, c); Mul(_, c); Pow(_, e); Max(_, c); Min(_, c); PRelu(_, c); Sub(c, _); Pow(e, _)", THERE, BACK)} }}""",
        {"Add": 1, "Mul": 1, "Pow": 2, "Max": 1, "Min": 1, "PRelu": 1, "Sub": 1},
        """transpose-binary-const[Add] transpose-binary-const[Mul] transpose-binary-const[Pow] transpose-binary-const[Max] transpose-binary-const[Min]
        transpose-binary-const[PRelu] transpose-binary-const[mirrored-Sub] transpose-binary-const[mirrored-Pow]""",
        (13, 21),
    ),
    "a residual network exported with channels last": Example(
        """g (float[N, 4, H, W] x) => (float[N, 4, H, W] y) <float[4, 4, 3, 3] v, float[4, 4, 3, 3] w, float[4] b, float[4] c> {
            t = Conv<pads = [1, 1, 1, 1]>(x, v)  r0 = Transpose<perm = [0, 2, 3, 1]>(t)
            a = Mul(r0, b)  d = Add(a, c)  e = Relu(d)
            f = Transpose<perm = [0, 3, 1, 2]>(e)  g = Conv<pads = [1, 1, 1, 1]>(f, w)  h = Transpose<perm = [0, 2, 3, 1]>(g)
            i = Add(e, h)  j = Relu(i)  y = Transpose<perm = [0, 3, 1, 2]>(j) }""",
        {"Conv": 2, "Relu": 2, "Add": 1},
        "transpose-binary-const[Mul] transpose-binary-const[Add] transpose-unary[Relu] conv-mul conv-add[Conv]",
    ),
    "Transpose through Concat": Example(
        """g (float[N, 4, H, W] x, float[N, 3, H, W] z) => (float[N, 7, H, W] y0, float[N, 11, H, W] y1, float[N, 15, H, W] y2) {
            a = Transpose<perm = [0, 2, 3, 1]>(x)  b = Transpose<perm = [0, 2, 3, 1]>(z)
            c = Concat<axis = 3>(a, b)  d = Concat<axis = -1>(b, a, a)  e = Concat<axis = -1>(a, b, a, a)
            y0 = Transpose<perm = [0, 3, 1, 2]>(c)  y1 = Transpose<perm = [0, 3, 1, 2]>(d)  y2 = Transpose<perm = [0, 3, 1, 2]>(e) }""",
        {"Concat": 3},
        "transpose-concat",
        (13, 21),
    ),
    "Transpose through Split": Example(
        """g (float[N, 6, H, W] x) => (float[N, 2, H, W] y0, float[N, 4, H, W] y1, float[N, 1, H, W] y2, float[N, 2, H, W] y3, float[N, 3, H, W] y4)
        <int64[2] two = {2, 4}, int64[3] three = {1, 2, 3}> {
            a = Transpose<perm = [0, 2, 3, 1]>(x)
            b, c = Split<axis = 3>(a, two)  d, e, f = Split<axis = -1>(a, three)
            y0 = Transpose<perm = [0, 3, 1, 2]>(b)  y1 = Transpose<perm = [0, 3, 1, 2]>(c)
            y2 = Transpose<perm = [0, 3, 1, 2]>(d)  y3 = Transpose<perm = [0, 3, 1, 2]>(e)  y4 = Transpose<perm = [0, 3, 1, 2]>(f) }""",
        {"Split": 2},
        "transpose-split[2] transpose-split[3]",
        (13, 21),
    ),
    "Transpose through Pad, Slice, Tile, Gather": Example(
        f"""g (float[N, 4, H, W] x) => (float[N, 4, A, B] y0, float[N, 4, C, D] y1, float[N, 4, E, F] y2, float[N, 2, H, W] y3)
        <int64[8] pads = {{0, 1, 2, 0, 0, 3, 0, 0}}, int64[4] n = {{1, 2, 1, 1}}, int64[2] i = {{3, 0}}, int64[1] one = {{1}}, int64[1] end = {{-1}}> {{
            {_chains("Pad(_, pads); Slice(_, one, end, one); Tile(_, n); Gather<axis = 3>(_, i)", THERE, BACK)} }}""",
        {"Pad": 1, "Slice": 1, "Tile": 1, "Gather": 1},
        "transpose-pad transpose-tile transpose-gather",
        (13, 21),
    ),
    "Transpose through Softmax": Example(
        "g (float[N, 4, L] x) => (float[N, 4, L] y) { a = Transpose<perm = [0, 2, 1]>(x)  b = Softmax<axis = 2>(a)  y = Transpose<perm = [0, 2, 1]>(b) }",
        {"Softmax": 1},
        "transpose-softmax[Softmax]",
        (13, 21),
    ),
    "Transpose through reductions, axes as attributes": Example(
        """g (float[N, 4, H, W] x) => (float[N, 4] y0, float[N, 4, 1, 1] y1, float[4, N] y2, int64[N, H, W] y3) {
            t = Transpose<perm = [0, 2, 3, 1]>(x)
            y0 = ReduceMean<axes = [1, 2], keepdims = 0>(t)
            a = ReduceMax<axes = [1, 2]>(t)  y1 = Transpose<perm = [0, 3, 1, 2]>(a)
            b = Transpose<perm = [3, 0, 1, 2]>(t)  y2 = ReduceMin<axes = [2, 3], keepdims = 0>(b)
            y3 = ArgMax<axis = -1, keepdims = 0>(t) }""",
        {"ReduceMean": 1, "ReduceMax": 1, "ReduceMin": 1, "Transpose": 1, "ArgMax": 1},
        "transpose-reduction[ReduceMean] transpose-reduction[ReduceMax] transpose-arg[ArgMax]",
        (11, 13),
    ),
    "Transpose through reductions, axes as inputs": Example(
        """g (float[N, 4, H, W] x) => (float[N, 4] y0, float[N, 4, 1, 1] y1) <int64[2] hw = {1, 2}> {
            t = Transpose<perm = [0, 2, 3, 1]>(x)
            y0 = ReduceMean<keepdims = 0>(t, hw)  a = ReduceSum(t, hw)  y1 = Transpose<perm = [0, 3, 1, 2]>(a) }""",
        {"ReduceMean": 1, "ReduceSum": 1},
        "transpose-reduction[ReduceMean] transpose-reduction[ReduceSum]",
        (18, 21),
    ),
    "Transpose through LayerNormalization": Example(
        """g (float[N, 4, L, 8] x) => (float[N, 4, L, 8] y) <float[8] s, float[8] b> {
            a = Transpose<perm = [0, 2, 1, 3]>(x)  c = LayerNormalization(a, s, b)  y = Transpose<perm = [0, 2, 1, 3]>(c) }""",
        {"LayerNormalization": 1},
        "transpose-layernormalization",
        (17, 21),
    ),
    "moves through quantization": Example(
        """g (float[N, 4, H, 6] x) => (float[N, 4, H, 6] y, float[N, 4, H, 6] z)
        <float s = {0.5}, uint8 o = {3}, float[4] scales = {0.5, 1, 2, 4}, int8[4] zeros = {0, 1, 2, 3},
         int64[3] flat = {0, 0, -1}, int64[4] block = {0, 4, -1, 6}> {
            a = Transpose<perm = [0, 2, 3, 1]>(x)  b = QuantizeLinear<axis = 3>(a, scales, zeros)  c = DequantizeLinear<axis = 3>(b, scales, zeros)
            y = Transpose<perm = [0, 3, 1, 2]>(c)
            d = Reshape(x, flat)  e = QuantizeLinear(d, s, o)  f = DequantizeLinear(e, s, o)  z = Reshape(f, block) }""",
        {"QuantizeLinear": 2, "DequantizeLinear": 2},
        """transpose-quantization[QuantizeLinear] transpose-quantization[DequantizeLinear]
        reshape-quantization[QuantizeLinear] reshape-quantization[DequantizeLinear]""",
        (13, 21),
    ),
    "Transpose, view, Transpose": Example(
        """g (float[N, 4, 6, 8] x) => (float[N, 4, 48] y) <int64[3] joined = {0, -1, 4}> {
            a = Transpose<perm = [0, 2, 3, 1]>(x)  b = Reshape(a, joined)  y = Transpose<perm = [0, 2, 1]>(b) }""",
        {"Reshape": 1},
        "transpose-reshape",
    ),
    "Transpose -> Reshape when only axes of size 1 move": Example(
        """g (float[N, 1, 6] x) => (float[N, 6] y) <int64[2] sizes = {0, 6}> {
            a = Transpose<perm = [0, 2, 1]>(x)  b = Exp(a)  y = Reshape(b, sizes) }""",
        {"Reshape": 1, "Exp": 1},
        "transpose-ones reshape-reshape",
    ),
    "Transpose of products": Example(
        """g (float[N, 4, 5] x, float[N, 6, 4] z) => (float[N, 6, 5] y0, float[N, 7, 5] y1, float[N, 5, 7] y2) <float[4, 7] v, float[7, 4] w> {
            a = Transpose<perm = [0, 2, 1]>(x)  b = Transpose<perm = [0, 2, 1]>(z)  c = MatMul(a, b)  y0 = Transpose<perm = [0, 2, 1]>(c)
            d = MatMul(a, v)  y1 = Transpose<perm = [0, 2, 1]>(d)
            e = Transpose<perm = [0, 2, 1]>(a)  f = Exp(e)  g = Transpose<perm = [0, 2, 1]>(f)  h = Transpose<perm = [0, 2, 1]>(g)
            i = MatMul(w, h)  y2 = Transpose<perm = [0, 2, 1]>(i) }""",
        {"MatMul": 3, "Exp": 1, "Transpose": 1},
        "matmul-transposes matmul-transpose-const",
        (13, 21),
    ),
    "a product by a matrix asks for no order of rows": Example(
        """g (float[N, 4, L, 8] x, float[N, 8, 4] z) => (float[N, 4, L, 5] y, float[N, 4, 6] u) <float[8, 5] w, float[6, 8] v> {
            a = Transpose<perm = [0, 2, 1, 3]>(x)  b = MatMul(a, w)  y = Transpose<perm = [0, 2, 1, 3]>(b)
            c = Transpose<perm = [0, 2, 1]>(z)  d = Sigmoid(c)  e = Transpose<perm = [0, 2, 1]>(d)  f = MatMul(v, e)  u = Transpose<perm = [0, 2, 1]>(f) }""",
        {"MatMul": 2, "Sigmoid": 1, "Transpose": 1},
        "matmul-transpose-rows",
        (13, 21),
    ),
    "a constant matrix times a transposed one": Example(
        """g (float[N, 4, 5] x) => (float[N, 4, 7] y) <float[7, 5] w> {
            a = Transpose<perm = [0, 2, 1]>(x)  b = MatMul(w, a)  y = Transpose<perm = [0, 2, 1]>(b) }""",
        {"MatMul": 1},
        "matmul-const-transpose",
        (13, 21),
    ),
    "Reshape-Transpose-Reshape -> DepthToSpace": Example(
        """g (float[N, 12, 4, 6] x) => (float[N, 3, 8, 12] y, float[N, 3, 8, 12] z)
        <int64[6] blocks = {-1, 2, 2, 3, 4, 6}, int64[6] channels = {-1, 3, 2, 2, 4, 6}, int64[4] image = {-1, 3, 8, 12}> {
            a = Reshape(x, blocks)  b = Transpose<perm = [0, 3, 4, 1, 5, 2]>(a)  y = Reshape(b, image)
            c = Reshape(x, channels)  d = Transpose<perm = [0, 1, 4, 2, 5, 3]>(c)  z = Reshape(d, image) }""",
        {"DepthToSpace": 2},
        "depthtospace-blocks depthtospace-channels",
    ),
    "Reshape-Transpose-Reshape -> SpaceToDepth": Example(
        """g (float[N, 3, 8, 12] x) => (float[N, 12, 4, 6] y) <int64[6] blocks = {-1, 3, 4, 2, 6, 2}, int64[4] image = {-1, 12, 4, 6}> {
            a = Reshape(x, blocks)  b = Transpose<perm = [0, 3, 5, 1, 2, 4]>(a)  y = Reshape(b, image) }""",
        {"SpaceToDepth": 1},
        "spacetodepth-blocks",
    ),
    "ShuffleChannel stays as Reshape and Transpose": Example(
        """g (float[N, 6, 4, 5] x) => (float[N, 6, 4, 5] y) <int64[5] groups = {-1, 2, 3, 4, 5}, int64[4] image = {-1, 6, 4, 5}> {
            a = Reshape(x, groups)  b = Transpose<perm = [0, 2, 1, 3, 4]>(a)  y = Reshape(b, image) }""",
        {"Reshape": 2, "Transpose": 1},
    ),
    "any two of Reshape, Squeeze, Unsqueeze, Flatten -> Reshape, axes as attributes": Example(
        """g (float[N, 1, 4, 6] x) => (float[N, 24] y, float[N, 4, 6, 1] z, float[N, 24, 1] u) <int64[2] sizes = {-1, 24}> {
            a = Squeeze<axes = [1]>(x)  y = Flatten(a)
            b = Squeeze<axes = [1]>(x)  z = Unsqueeze<axes = [3]>(b)
            c = Reshape(x, sizes)  u = Unsqueeze<axes = [2]>(c) }""",
        {"Reshape": 2, "Unsqueeze": 1},
        "flatten-reshape axes-reshape[Squeeze] axes-reshape[Unsqueeze] reshape-reshape",
        (11,),
    ),
    "any two of Reshape, Squeeze, Unsqueeze, Flatten -> Reshape, axes as inputs": Example(
        """g (float[N, 1, 4, 6] x) => (float[N, 24] y, float[N, 4, 6, 1] z, float[N, 24, 1] u)
        <int64[2] sizes = {-1, 24}, int64[1] i = {1}, int64[1] j = {2}, int64[1] k = {3}> {
            a = Squeeze(x, i)  y = Flatten(a)
            b = Squeeze(x, i)  z = Unsqueeze(b, k)
            c = Reshape(x, sizes)  u = Unsqueeze(c, j) }""",
        {"Reshape": 2, "Unsqueeze": 1},
        "flatten-reshape axes-reshape[Squeeze] axes-reshape[Unsqueeze] reshape-reshape",
        (13, 21),
    ),
    "Flatten that changes nothing": Example(
        "g (float[N, M] x) => (float[N, M] y) { a = Flatten(x)  y = Exp(a) }",
        {"Exp": 1},
        "flatten-reshape reshape-nothing",
    ),
    "Reshape around unary operators": Example(
        f"""g (float[N, 4, 6] x) => ({_outputs(10, "float[N, 4, 6]")})
        <float low = {{-1}}, float high = {{2}}, int64[2] flat = {{-1, 8}}, int64[3] block = {{-1, 4, 6}}> {{
            {_chains(UNARY, FLAT, BLOCK)} }}""",
        dict.fromkeys("Relu LeakyRelu Clip Sigmoid Tanh HardSigmoid Erf Exp Sqrt Neg".split(), 1),
        " ".join(f"reshape-unary[{name}]" for name in "Erf Exp HardSigmoid LeakyRelu Neg Relu Sigmoid Sqrt Tanh".split()) + " reshape-clip",
        (11, 17),
    ),
    "Reshape around binary operators": Example(
        f"""g (float[N, 4, 6] x, float[N, 4, 6] z) => ({_outputs(7, "float[N, 4, 6]")})
        <float[24] c, float[1, 24] d, int64[2] flat = {{-1, 24}}, int64[3] block = {{-1, 4, 6}}> {{
            u = Reshape(z, flat)
            {_chains("Add(_, u); Mul(_, u); Sub(_, u); Div(_, u); Add(_, c); Mul(_, d); Sub(c, _)", FLAT, BLOCK)} }}""",
        {"Add": 2, "Mul": 2, "Sub": 2, "Div": 1},
        """reshape-binary[Add] reshape-binary[Mul] reshape-binary[Sub] reshape-binary[Div] reshape-binary-const[Add] reshape-binary-const[Mul]
        reshape-binary-const[mirrored-Sub]""",
        (13, 21),
    ),
    "Reshape around a layer, LayerNormalization and Softmax": Example(
        """g (float[N, L, 4] x) => (float[N, L, 6] y) <float[4, 6] w, float[6] b, float[6] s, float[6] t, int64[2] flat = {-1, 4}, int64[2] keep = {-1, 6}> {
            a = Reshape(x, flat)  c = MatMul(a, w)  d = Add(c, b)  e = LayerNormalization(d, s, t)  f = Softmax<axis = 1>(e)
            i = Shape(x)  j = Constant<value_ints = [0]>()  k = Constant<value_ints = [2]>()  l = Constant<value_ints = [6]>()  m = Constant<value_ints = [0]>()
            n = Slice(i, j, k, m)  o = Concat<axis = 0>(n, l)  y = Reshape(f, o) }""",
        {"MatMul": 1, "Add": 1, "LayerNormalization": 1, "Softmax": 1},
        "reshape-matmul reshape-binary-const[Add] reshape-layernormalization reshape-softmax[Softmax]",
        (17, 21),
    ),
    "Reshape, Flatten or Squeeze after global pooling": Example(
        """g (float[N, 4, H, W] x) => (float[N, 4] y) { a = GlobalAveragePool(x)  b = Flatten(a)  y = Relu(b) }""",
        {"ReduceMean": 1, "Relu": 1},
        "flatten-reshape reduction-reshape[ReduceMean]",
    ),
    "Reduce(keepdims = 0) + Unsqueeze, Reduce(keepdims = 1) + Squeeze, axes as attributes": Example(
        """g (float[N, 4, 6] x) => (float[N, 1, 6] y0, float[N, 4, 1] y1, float[N, 4] y2, float[N, 6] y3, float[4, 6] y4, int64[N, 1, 6] y5) {
            a = ReduceMean<axes = [1], keepdims = 0>(x)  y0 = Unsqueeze<axes = [1]>(a)
            b = ReduceSum<axes = [-1], keepdims = 0>(x)  y1 = Unsqueeze<axes = [2]>(b)
            c = ReduceMax<axes = [2]>(x)  y2 = Squeeze<axes = [2]>(c)
            d = ReduceMin<axes = [1]>(x)  y3 = Squeeze<axes = [1]>(d)
            e = ReduceL2<axes = [0]>(x)  y4 = Squeeze<axes = [0]>(e)
            f = ArgMax<axis = 1, keepdims = 0>(x)  y5 = Unsqueeze<axes = [1]>(f) }""",
        {"ReduceMean": 1, "ReduceSum": 1, "ReduceMax": 1, "ReduceMin": 1, "ReduceL2": 1, "ArgMax": 1},
        """reduction-reshape[ReduceMean] reduction-reshape[ReduceSum] reduction-reshape[ReduceMax] reduction-reshape[ReduceMin]
        reduction-reshape[ReduceL2] arg-reshape[ArgMax]""",
        (11,),
    ),
    "Reduce(keepdims = 0) + Unsqueeze, Reduce(keepdims = 1) + Squeeze, axes as inputs": Example(
        """g (float[N, 4, 6] x) => (float[N, 1, 6] y0, float[N, 4] y1) <int64[1] i = {1}, int64[1] j = {2}> {
            a = ReduceMean<keepdims = 0>(x, i)  y0 = Unsqueeze(a, i)
            b = ReduceSum(x, j)  y1 = Squeeze(b, j) }""",
        {"ReduceMean": 1, "ReduceSum": 1},
        "reduction-reshape[ReduceMean] reduction-reshape[ReduceSum]",
        (18, 21),
    ),
    "Reduce after Reduce": Example(
        """g (float[N, 4, 6, 5] x) => (float[N, 6] y0, float[N, 1, 1, 5] y1, float[4] y2, float[4, 6] y3)
        <int64[1] i = {1}, int64[1] j = {2}, int64[1] k = {0}> {
            a = ReduceMean<keepdims = 0>(x, i)  y0 = ReduceMean<keepdims = 0>(a, j)
            b = ReduceSum(x, i)  y1 = ReduceSum(b, j)
            c = ReduceMax<keepdims = 0>(x, j)  d = ReduceMax<keepdims = 0>(c, j)  y2 = ReduceMax<keepdims = 0>(d, k)
            e = ReduceMin<keepdims = 0>(x, k)  y3 = ReduceMin<keepdims = 0>(e, j) }""",
        {"ReduceMean": 1, "ReduceSum": 1, "ReduceMax": 1, "ReduceMin": 1},
        "reduction-reduction[ReduceMean] reduction-reduction[ReduceSum] reduction-reduction[ReduceMax] reduction-reduction[ReduceMin]",
        (18, 21),
    ),
    "Expand before a broadcasting operator": Example(
        f"""g (float[N, 1, 6] x, float[N, 4, 6] z) => ({_outputs(6, "float[N, 4, 6]")}) <int64[3] sizes = {{1, 4, 1}}> {{
            e = Expand(x, sizes)
            y0 = Add(e, z)  y1 = Mul(z, e)  y2 = Sub(e, z)  y3 = Sub(z, e)  y4 = Div(e, z)  y5 = Div(z, e) }}""",
        {"Add": 1, "Mul": 1, "Sub": 2, "Div": 2},
        "expand-binary[Add] expand-binary[Mul] expand-binary[Sub] expand-binary[mirrored-Sub] expand-binary[Div] expand-binary[mirrored-Div]",
    ),
    "Expand before a unary operator": Example(
        """g (float[N, 1, 6] x, float[N, 4, 6] z) => (float[N, 4, 6] y) <int64[3] sizes = {1, 4, 1}> { e = Expand(x, sizes)  f = Relu(e)  y = Add(f, z) }""",
        {"Relu": 1, "Add": 1},
        "expand-unary[Relu]",
    ),
    "Expand before Where": Example(
        f"""g (bool[N, 1] c, float[4] x, float[N, 4] z, bool[N, 4] d) => ({_outputs(3, "float[N, 4]")}) <int64[2] sizes = {{1, 4}}> {{
            e = Expand(c, sizes)  f = Expand(x, sizes)
            y0 = Where(e, x, z)  y1 = Where(d, f, z)  y2 = Where(d, z, f) }}""",
        {"Where": 3},
        "expand-condition expand-where where-expand",
        (13, 21),
    ),
    "Expand after Expand": Example(
        """g (float[N, 1, 1] x) => (float[N, 4, 6] y) <int64[3] some = {1, 4, 1}, int64[3] all = {1, 1, 6}> {
            a = Expand(x, some)  y = Expand(a, all) }""",
        {"Expand": 1},
        "expand-expand",
    ),
    "Einsum that copies, and one that is MatMul": Example(
        """g (float[N, 5, 4] x, float[N, 6, 5] z) => (float[N, 6, 4] y) {
            a = Einsum<equation = "bij->bij">(x)  b = Transpose<perm = [0, 2, 1]>(a)  c = Transpose<perm = [0, 2, 1]>(z)
            d = Einsum<equation = "bij,bjk->bik">(b, c)  y = Transpose<perm = [0, 2, 1]>(d) }""",
        {"MatMul": 1},
        "einsum-nothing einsum-matmul matmul-transposes",
        (13, 21),
    ),
    "matrices of a symbolic number of rows, transposed at three axes": Example(
        """g (float[B, 4, S, 8] x) => (float[B, 4, 8, S] y) <int64[1] none = {-1}, int64[1] four = {4}, int64[1] eight = {8}> {
            s = Shape(x)  b = Slice<starts = [0], ends = [1]>(s)  n = Slice<starts = [2], ends = [3]>(s)
            t = Concat<axis = 0>(none, n, eight)  u = Reshape(x, t)  v = Transpose<perm = [0, 2, 1]>(u)
            w = Concat<axis = 0>(b, four, eight, n)  y = Reshape(v, w) }""",
        {"Transpose": 1},
        "transpose-matrices",
        (9,),
    ),
    "a size of its own beside a -1, with allowzero": Example(
        """g (float[B, S, 8] x) => (float[B, T, 8] y) <int64[1] none = {-1}, int64[1] eight = {8}> {
            b = Shape<start = 0, end = 1>(x)  t = Concat<axis = 0>(b, none, eight)  u = Reshape<allowzero = 1>(x, t)  v = Exp(u)
            n = Shape<start = 1, end = 2>(x)  w = Concat<axis = 0>(none, n, eight)  y = Reshape<allowzero = 1>(v, w) }""",
        {"Exp": 1},
        "reshape-nothing",
        (15, 21),
    ),
    "rows of a symbolic number, all of them in order": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <int64 zero = {0}, int64 one = {1}, int64 first = {0}> {
            s = Shape(x)  n = Gather<axis = 0>(s, first)  r = Range(zero, n, one)  g = Gather<axis = 0>(x, r)  y = Exp(g) }""",
        {"Exp": 1},
        "gather-range",
        (11, 17),
    ),
    "a bias with more axes behind a product": Example(
        """g (float[2, 128, 64] x) => (float[2, 128, 8, 16] y) <float[64, 128] w, float[8, 16] b, int64[4] s = {2, 128, 8, 16}> {
            p = MatMul(x, w)  r = Reshape(p, s)  y = Add(r, b) }""",
        {"MatMul": 1, "Add": 1, "Reshape": 1},
        "add-vector reshape-binary-const[Add]",
        (17,),
        "onnxruntime-cpu",
    ),
    "a mask read at every row and every column": Example(
        """g (bool[2, 600] x) => (bool[2, 1, 1, 600] y) <int64 zero = {0}, int64 one = {1}, int64[1] last = {4}, int64[3] front = {0, 1, 2},
            int64[3] back = {1, 2, 3}> {
            t = Shape(x)  b = Gather<axis = 0>(t, zero)  c = Gather<axis = 0>(t, one)  r = Range(zero, b, one)  q = Range(zero, c, one)
            i = Unsqueeze(r, back)  j = Unsqueeze(q, front)  m = Max(i, j)  s = Shape(m)  d = Expand(i, s)  e = Expand(j, s)
            u = Unsqueeze(d, last)  v = Unsqueeze(e, last)  w = Concat<axis = 4>(u, v)  y = GatherND(x, w) }""",
        {"Unsqueeze": 1},
        "gathernd-grid gather-range",
        (13, 17),
    ),
    "a mask of named sizes read at every row and every column": Example(
        """g (bool[B, S] x) => (bool[B, 1, 1, S] y) <int64 zero = {0}, int64 one = {1}, int64[1] last = {4}, int64[3] front = {0, 1, 2},
            int64[3] back = {1, 2, 3}> {
            t = Shape(x)  b = Gather<axis = 0>(t, zero)  c = Gather<axis = 0>(t, one)  r = Range(zero, b, one)  q = Range(zero, c, one)
            i = Unsqueeze(r, back)  j = Unsqueeze(q, front)  m = Max(i, j)  s = Shape(m)  d = Expand(i, s)  e = Expand(j, s)
            u = Unsqueeze(d, last)  v = Unsqueeze(e, last)  w = Concat<axis = 4>(u, v)  y = GatherND(x, w) }""",
        {"Unsqueeze": 1},
        "gathernd-whole",
        (13, 17),
    ),
    "a mask read at places in a row": Example(
        """g (bool[B, S] x) => (bool[B, 1, 1, S] y) <int64 zero = {0}, int64 one = {1}, int64[1] second = {1}, int64[3] front = {0, 1, 2},
            int64[3] back = {1, 2, 3}> {
            t = Shape(x)  b = Gather<axis = 0>(t, zero)  c = Gather<axis = 0>(t, one)  r = Range(zero, b, one)  q = Range(zero, c, one)
            n = Gather<axis = 0>(t, second)  i = Unsqueeze(r, back)  k = Mul(i, n)  j = Unsqueeze(q, front)  p = Add(j, k)
            f = Flatten<axis = 2>(x)  g = Gather(f, p)  s = Shape(p)  y = Reshape(g, s) }""",
        {"Unsqueeze": 1},
        "gather-flatten-ranges axes-restored[Unsqueeze]",
        (13, 17),
    ),
    "a Reshape back to the sizes before axes were removed": Example(
        """g (float[B, 1, S, 1] x) => (float[B, 1, S, 1] y) <int64[2] a = {1, 3}> {
            v = Shape(x)  s = Squeeze(x, a)  y = Reshape(s, v) }""",
        {"Identity": 1},
        "axes-restored[Squeeze]",
        (13, 17),
    ),
    "rows of one index, of sizes known at run time": Example(
        """g (float[B, S, 8] x) => (float[B, S, 8] y) <float[2, 8] w, int64[1, 16] i = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
            int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}> {
            t = Shape(x)  n = Slice(t, one, two, zero)  s = Slice(i, zero, n, one)  p = Slice(t, zero, two, zero)  e = Expand(s, p)
            r = Gather(w, e)  y = Add(x, r) }""",
        {"Add": 1},
        "gather-same",
        (13, 17),
    ),
    "one of several sizes as a list": Example(
        """g (float[B, S, 4] x) => (int64[1] y) <int64 i = {1}, int64[1] z = {0}> {
            s = Shape(x)  g = Gather<axis = 0>(s, i)  y = Unsqueeze(g, z) }""",
        {"Shape": 1},
        "gather-shape",
        (17,),
    ),
}

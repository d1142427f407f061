"""Examples of changes that need no rule.

Constants are folded, shapes evaluated, equal values shared, and dead code dropped.
"""

from __future__ import annotations

from tests.rules.examples import Example

_AXES = "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64 first = {0}, int64 second = {1}"

EXAMPLES = {
    "constant folding": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float[4] a = {1, 2, 3, 4}, float b = {2}> {
            c = Mul(a, b)  d = Exp(c)  e = Sqrt(d)  y = Max(x, e) }""",
        {"Max": 1},
    ),
    "fold size guard": Example(
        "g (float[N, 999] x) => (float[N, 999] y) <float[1] a = {1}, int64[2] s = {999, 999}> { b = Expand(a, s)  y = MatMul(x, b) }",
        {"Expand": 1, "MatMul": 1},
    ),
    "keep DequantizeLinear/QDQ unfolded": Example(
        """g (float[N, 2] x) => (float[N, 2] y) <int8[2, 2] w = {1, 2, 3, 4}, float s = {0.5}, int8 z = {0}> {
            d = DequantizeLinear(w, s, z)  y = MatMul(x, d) }""",
        {"DequantizeLinear": 1, "MatMul": 1},
    ),
    "never fold/merge random ops": Example(
        """g (float[4] x) => (float[4] y) {
            a = RandomNormal<shape = [4]>()  b = RandomNormal<shape = [4]>()
            c = Add(a, x)  d = Sub(c, b)  e = Mul(d, x)  f = IsNaN(e)  y = Cast<to = 1>(f) }""",
        {"RandomNormal": 2, "Add": 1, "Sub": 1, "Mul": 1, "IsNaN": 1, "Cast": 1},
        "",
        (13, 17, 21),
    ),
    "Shape op -> constant (static)": Example(
        "g (float[2, 3] x) => (int64[2] y) { e = Exp(x)  s = Shape(e)  y = Identity(s) }",
        {},
    ),
    "Shape->Gather / Shape->Slice partial dims": Example(
        f"""g (float[N, 3, 4] x) => (float[N, 3, 4] y) <{_AXES}> {{
            s = Shape(x)  a = Gather(s, second)  b = Slice(s, two, two2, zero)  c = Unsqueeze(a, zero)  d = Concat<axis = 0>(c, b)
            e = ConstantOfShape(d)  y = Add(x, e) }}""".replace("int64[1] two = {2}", "int64[1] two = {2}, int64[1] two2 = {3}"),
        {"Identity": 1},
        "",
        (13, 21),
    ),
    "symbolic shape-value evaluation": Example(
        f"""g (float[N, 6] x) => (float[M, 3] y) <{_AXES}, int64[1] three = {{3}}> {{
            s = Shape(x)  n = Gather(s, zero)  k = Gather(s, one)  p = Mul(n, k)  m = Div(p, three)  t = Concat<axis = 0>(m, three)
            r = Reshape(x, t)  y = Exp(r) }}""",
        {"Reshape": 1, "Exp": 1},
    ),
    "Reshape shape materialisation": Example(
        f"""g (float[N, 4, 6] x) => (float[N, 24] y) <{_AXES}, int64[1] rest = {{-1}}> {{
            s = Shape(x)  n = Gather(s, zero)  t = Concat<axis = 0>(n, rest)  r = Reshape(x, t)  y = Exp(r) }}""",
        {"Reshape": 1, "Exp": 1},
    ),
    "Concat(Shape parts) == Shape(x)": Example(
        f"""g (float[N, M] x, float[K] z) => (float[N, M] y) <{_AXES}> {{
            s = Shape(x)  a = Gather(s, zero)  b = Gather(s, one)  t = Concat<axis = 0>(a, b)  r = Reshape(x, t)  y = Exp(r) }}""",
        {"Exp": 1},
        "reshape-nothing",
    ),
    "Size, Range, NonZero, ConstantOfShape fold": Example(
        """g (float[2, 3] x) => (int64[6] a, float[6] b) <int64 start = {0}, int64 step = {1}, int64[1] six = {6}, int64[6] some = {1, 0, 2, 0, 0, 3}> {
            n = Size(x)  a = Range(start, n, step)
            c = ConstantOfShape(six)  z = NonZero(some)  k = ReduceMax<keepdims = 0>(z)  h = Cast<to = 1>(k)  u = Add(h, c)
            q = Reshape(x, six)  b = Max(q, u) }""",
        {"Reshape": 1, "Max": 1},
        "",
        (13, 17),
    ),
    "Constant node -> initializer": Example(
        "g (float[N] x) => (float[N] y) { c = Constant<value_float = 2.0>()  d = Constant<value_float = 3.0>()  a = Pow(x, c)  y = Max(a, d) }",
        {"Pow": 1, "Max": 1},
        "",
        (13, 21),
    ),
    "dead node / dead subgraph elimination": Example(
        "g (float[N, 4] x) => (float[N, 4] y) { a = Exp(x)  b = Sin(a)  c = Cos(b)  y = Abs(x) }",
        {"Abs": 1},
    ),
    "unused initializer / unused input initializer": Example(
        "g (float[N, 4] x) => (float[N, 4] y) <float[4] a = {1, 2, 3, 4}, float[4] b = {1, 2, 3, 4}> { y = Abs(x) }",
        {"Abs": 1},
    ),
    "unused functions / opset imports": Example(
        """<ir_version: 8, opset_import: ["" : 17, "local" : 1, "other" : 1]>
        g (float[N] x) => (float[N] y) { y = Abs(x) }
        <domain: "local", opset_import: ["" : 17]> f (a) => (b) { b = Exp(a) }""",
        {"Abs": 1},
        "",
        (17,),
    ),
    "unused outputs of node": Example(
        "g (float[N, 4] x) => (float[N, 2] y) { z = Unsqueeze<axes = [0]>(x)  a, b = MaxPool<kernel_shape = [3]>(z)  y = Squeeze<axes = [0]>(a) }",
        {"Unsqueeze": 1, "MaxPool": 1, "Squeeze": 1},
        "",
        (11,),
    ),
    "CSE": Example(
        """g (float[N, 4] x) => (float[N, 4] a, float[N, 4] b) {
            s = Softmax<axis = 1>(x)  t = Softmax<axis = -1>(x)  u = Exp(s)  v = Exp(t)  a = Cos(u)  b = Sin(v) }""",
        {"Softmax": 1, "Exp": 1, "Cos": 1, "Sin": 1},
    ),
    "duplicate initializer merge / weight tying": Example(
        """g (float[N, 4] x) => (float[N, 4] a, float[N, 4] b) <float[4] v = {1, 2, 3, 4}, float[4] w = {1, 2, 3, 4}> {
            s = Max(x, v)  t = Max(x, w)  a = Exp(s)  b = Sin(t) }""",
        {"Max": 1, "Exp": 1, "Sin": 1},
    ),
    "identical-children consolidation": Example(
        """g (float[N, 4] x) => (float[4, N] a, float[4, N] b, float[4, N] c) {
            s = Transpose(x)  t = Transpose(x)  u = Transpose<perm = [1, 0]>(x)  a = Exp(s)  b = Sin(t)  c = Abs(u) }""",
        {"Transpose": 1, "Exp": 1, "Sin": 1, "Abs": 1},
    ),
    "Shape-input merge (equal symbolic shapes)": Example(
        """g (float[N, 4] x, float[1, 4] z) => (float[N, 4] a, float[N, 4] b) {
            e = Exp(x)  s = Shape(x)  t = Shape(e)  u = Expand(z, s)  v = Expand(z, t)  a = Sin(u)  w = Add(v, e)  b = Abs(w) }""",
        {"Exp": 1, "Shape": 1, "Expand": 1, "Sin": 1, "Add": 1, "Abs": 1},
    ),
    "function inlining": Example(
        """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[N] x) => (float[N] y) { a = local.f(x)  y = Abs(a) }
        <domain: "local", opset_import: ["" : 17]> f (a) => (b) { c = Identity(a)  b = Exp(c) }""",
        {"Exp": 1},
        "",
        (17,),
    ),
}

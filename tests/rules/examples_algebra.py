"""Examples of algebra: numbers, signs, bounds, logic, casts and integers."""

from __future__ import annotations

from tests.rules.examples import Example

BOTH = (13, 21)

EXAMPLES = {
    # --- what does nothing ---
    "x + 0, 0 + x, x - 0, x * 1, 1 * x, x / 1": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float zero = {0}, float[4] zeros = {0, 0, 0, 0}, float one = {1}, float[1, 1] ones = {1}> {
            a = Add(x, zero)  b = Add(zeros, a)  c = Sub(b, zero)  d = Mul(c, one)  e = Mul(ones, d)  f = Div(e, one)  y = Exp(f) }""",
        {"Exp": 1},
        "neutral-zero[Add] neutral-zero[Sub] neutral-one[Mul] neutral-one[Div]",
        BOTH,
    ),
    "a zero that is larger stays": Example(
        "g (float[1, 4] x) => (float[3, 4] y) <float[3, 4] zeros = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}> { s = Add(x, zeros)  y = Exp(s) }",
        {"Add": 1, "Exp": 1},
        "",
        BOTH,
    ),
    "And true, Or false, Xor false, Pow 1": Example(
        """g (bool[N, 4] x, float[N, 4] p) => (bool[N, 4] y, float[N, 4] q) <bool yes = {1}, bool no = {0}, float one = {1}> {
            a = And(x, yes)  b = Or(no, a)  c = Xor(b, no)  y = Not(c)  r = Pow(p, one)  q = Exp(r) }""",
        {"Not": 1, "Exp": 1},
        "neutral-one[And] neutral-zero[Or] neutral-zero[Xor] pow-one",
        BOTH,
    ),
    "And false, Or true decide, Xor true is Not": Example(
        """g (bool[3, 4] x, bool[3, 4] c) => (bool[3, 4] y, bool[3, 4] z) <bool yes = {1}, bool no = {0}> {
            a = And(x, no)  b = Or(x, yes)  d = Or(c, a)  y = And(d, b)  z = Xor(c, yes) }""",
        {"Identity": 1, "Not": 1},
        "absorbing-bool[And] absorbing-bool[Or] xor-true",
        BOTH,
    ),
    "x * 0, x - x, x / x of integers": Example(
        """g (int32[3, 4] x, int32[3, 4] z) => (int32[3, 4] y, float[3, 4] w, float[3, 4] v) <int32 zero = {0}, float f = {0}> {
            a = Mul(z, zero)  b = Sub(z, z)  c = Div(z, z)  d = Add(x, a)  e = Add(d, b)  p = Mul(e, c)  y = Neg(p)
            t = Cast<to = 1>(x)  w = Mul(t, f)  v = Sub(t, t) }""",
        {"Neg": 1, "Cast": 1, "Mul": 1, "Sub": 1},
        "absorbing-zero[Mul] difference-itself[Sub] div-itself",
        (14, 21),
    ),
    "Relu(Relu), idempotent Ceil, Floor, Round, Sign, Abs": Example(
        """g (float[N, 4] x) => (float[N, 4] a, float[N, 4] b, float[N, 4] c, float[N, 4] d, float[N, 4] e) {
            a0 = Ceil(x)  a = Ceil(a0)  b0 = Floor(x)  b = Floor(b0)  c0 = Round(x)  c = Round(c0)  d0 = Sign(x)  d = Sign(d0)
            e0 = Relu(x)  e1 = Relu(e0)  e2 = Abs(e1)  e3 = Abs(e2)  e = Relu(e3) }""",
        {"Ceil": 1, "Floor": 1, "Round": 1, "Sign": 1, "Relu": 1},
        "rounding-whole[Ceil,Ceil] rounding-whole[Floor,Floor] rounding-whole[Round,Round] "
        "idempotent-idempotent[Sign] idempotent-idempotent[Relu] nonnegative[Abs] idempotent-idempotent[Abs]",
        BOTH,
    ),
    "Abs and Relu of what has no sign": Example(
        """g (float[N, 4] x) => (float[N, 4] a, float[N, 4] b) { r = Exp(x)  s = Relu(r)  a = Abs(s)  t = Abs(x)  b = Relu(t) }""",
        {"Exp": 1, "Abs": 1},
        "nonnegative[Relu] nonnegative[Abs]",
        BOTH,
    ),
    "odd functions hand on the sign": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) { a = Neg(x)  b = Sin(a)  y = Sub(z, b) }""",
        {"Sin": 1, "Add": 1},
        "odd-neg[Sin]",
        BOTH,
    ),
    "nothing is less than itself": Example(
        """g (float[3] x, bool[3] c) => (bool[3] y) { a = Less(x, x)  b = Or(c, a)  y = Not(b) }""",
        {"Not": 1},
        "unequal-itself[Less]",
        BOTH,
    ),
    "LogSoftmax(LogSoftmax)": Example(
        "g (float[N, 4] x) => (float[N, 4] y) { s = LogSoftmax<axis = -1>(x)  y = LogSoftmax<axis = 1>(s) }",
        {"LogSoftmax": 1},
        "logsoftmax-logsoftmax",
        BOTH,
    ),
    "Neg(Neg), Not(Not), Log(Exp), Reciprocal(Reciprocal)": Example(
        """g (float[N, 4] x, bool[N, 4] c) => (float[N, 4] y, bool[N, 4] d) {
            s = Neg(x)  t = Neg(s)  u = Exp(t)  v = Log(u)  w = Reciprocal(v)  r = Reciprocal(w)  y = Sin(r)  e = Not(c)  f = Not(e)  d = And(f, c) }""",
        {"Sin": 1, "Identity": 1},
        "involutive-involutive[Neg] involutive-involutive[Not] log-exp involutive-involutive[Reciprocal] equal-operands[And]",
        BOTH,
    ),
    "ArgMax of what keeps the order": Example(
        """g (float[N, 4] x) => (int64[N, 1] a, int64[N, 1] b) <float f = {3}> {
            s = Mul(x, f)  t = Softmax<axis = 1>(s)  a = ArgMax<axis = 1>(t)
            u = LogSoftmax<axis = -1>(x)  b = ArgMax<axis = 1, keepdims = 1>(u) }""",
        {"ArgMax": 1, "Identity": 1},
        "argmax-softmax[Softmax] argmax-softmax[LogSoftmax] argmax-mul[ArgMax]",
        BOTH,
    ),
    # --- chains of constants ---
    "Mul(Mul), Add(Add), Mul-Add sequences": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float a = {2}, float[4] b = {1, 2, 3, 4}, float[1, 4] c = {4, 3, 2, 5}> {
            s = Mul(x, b)  t = Add(s, a)  u = Mul(c, t)  v = Sub(u, b)  w = Div(v, c)  y = Add(a, w) }""",
        {"Mul": 1, "Add": 1},
        "associative-const[Mul] associative-const[Add] mul-add-const sub-const div-const",
        BOTH,
    ),
    "constants deep inside": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) <float a = {2}, float[4] b = {1, 2, 3, 4}> {
            s = Mul(x, b)  t = Mul(s, z)  u = Mul(t, a)  v = Mul(a, z)  y = Mul(u, v) }""",
        {"Mul": 3},
        "const-last[Mul] associative-const[Mul]",
        BOTH,
    ),
    "constants deep inside quotients": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) <float a = {2}, float[4] b = {1, 2, 3, 4}> {
            s = Mul(x, b)  t = Mul(z, a)  u = Div(s, t)  y = Mul(u, b) }""",
        {"Div": 1, "Mul": 1},
        "div-mul-const div-by-mul-const associative-const[Mul]",
        BOTH,
    ),
    "signs of constants and of sums": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 4] a, float[N, 4] b, float[N, 4] c, float[N, 4] d) <float m = {-1}, float[4] k = {1, 2, 3, 4}> {
            s = Mul(x, k)  a = Neg(s)  t = Neg(x)  b = Add(t, z)  u = Mul(z, m)  c = Sub(x, u)  v = Sub(z, x)  w = Neg(v)  d = Mul(w, w) }""",
        {"Mul": 2, "Sub": 1, "Add": 1},
        "neg-mul-const inverse-operand[Add,Sub,Neg] mul-minus-one inverse-operand[Sub,Add,Neg] inverse-swap[Neg,Sub]",
        BOTH,
    ),
    "signs in products": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 4] a, float[N, 4] b, float[N, 4] c) <float[4] k = {1, 2, 3, 4}> {
            s = Neg(x)  a = Mul(s, k)  t = Neg(z)  b = Mul(s, t)  c = Abs(t) }""",
        {"Mul": 2, "Abs": 1},
        "mul-neg-const neg-across[Mul] even-neg[Abs]",
        BOTH,
    ),
    "signs that go back and forth come to an end": Example(
        """g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) <float m = {-1}, float[4] k = {1, 2, 3, 4}> {
            s = Neg(x)  t = Mul(s, m)  u = Mul(t, k)  y = Exp(u)  z = Mul(s, k) }""",
        {"Mul": 2, "Exp": 1},
        "involutive-involutive[Neg] mul-minus-one mul-neg-const",
        BOTH,
    ),
    # --- quotients, powers, logarithms ---
    "Div(1, x) * y -> y / x": Example(
        "g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) <float one = {1}> { s = Div(one, x)  y = Mul(z, s) }",
        {"Div": 1},
        "div-one-reciprocal inverse-operand[Mul,Div,Reciprocal]",
        BOTH,
    ),
    "Div(c, x) * y": Example(
        "g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) <float c = {3}, float[4] k = {1, 2, 3, 4}> { s = Div(c, x)  t = Mul(s, z)  y = Mul(t, k) }",
        {"Div": 1, "Mul": 1},
        "div-from-const inverse-operand[Mul,Div,Reciprocal] associative-const[Mul]",
        BOTH,
    ),
    "A / sqrt(B), Sqrt and Reciprocal": Example(
        """g (float[N, 4] a, float[N, 4] b) => (float[N, 4] z, float[N, 4] w) {
            s = Sqrt(b)  r = Reciprocal(s)  y = Mul(a, r)  z = Div(a, r)  w = Reciprocal(y) }""",
        {"Sqrt": 1, "Div": 1, "Mul": 1},
        "inverse-operand[Mul,Div,Reciprocal] inverse-operand[Div,Mul,Reciprocal] inverse-swap[Reciprocal,Div]",
        BOTH,
    ),
    "Pow(x, 2) -> Mul, Pow(x, -1), root of a square": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 4] a, float[N, 4] b, float[N, 4] c) <float two = {2}, float m = {-1}> {
            s = Pow(x, two)  a = Sqrt(s)  t = Pow(z, m)  b = Mul(t, x)  u = Abs(z)  c = Mul(u, u) }""",
        {"Abs": 1, "Div": 1, "Mul": 1},
        "pow-square pow-reciprocal sqrt-square inverse-operand[Mul,Div,Reciprocal] square-abs",
        BOTH,
    ),
    "exp(a) * exp(b) -> exp(a + b)": Example(
        """g (float[N, 4] a, float[4] b, float[N, 4] c) => (float[N, 4] y) {
            p = Exp(a)  q = Exp(b)  r = Exp(c)  s = Mul(p, q)  y = Div(s, r) }""",
        {"Add": 1, "Sub": 1, "Exp": 1},
        "exp-exp[Mul,Add] exp-exp[Div,Sub]",
        BOTH,
    ),
    "log(pow), log(sqrt)": Example(
        """g (float[N, 4] x, float[N, 4] z) => (float[N, 4] a, float[N, 4] b) <float four = {4}, float[4] k = {1, 2, 3, 4}> {
            s = Pow(x, four)  t = Log(s)  a = Mul(t, k)  u = Sqrt(z)  v = Log(u)  b = Mul(v, k) }""",
        {"Abs": 1, "Log": 2, "Mul": 2},
        "log-pow log-sqrt associative-const[Mul]",
        BOTH,
    ),
    # --- bounds ---
    "Relu after Clip, Clip after Relu, Clip after Clip": Example(
        """g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) <float m = {-3}, float one = {1}, float six = {6}, float nine = {9}> {
            s = Clip(x, m, six)  y = Relu(s)  t = Relu(x)  u = Clip(t, m, nine)  z = Clip(u, one, six) }""",
        {"Clip": 2},
        "relu-max clip-max-min min-max-order bound-bound[Max] bound-bound[Min] max-min-clip",
        BOTH,
    ),
    "bounds that contradict each other are one Clip": Example(
        """g (float[N, 4] x) => (float[N, 4] y) <float six = {6}, float two = {2}> { a = Max(x, six)  y = Min(a, two) }""",
        {"Clip": 1},
        "max-min-clip",
        BOTH,
    ),
    "Min and Max of constants are Clip, or Relu": Example(
        """g (float[N, 4] x, float[N, 4] w) => (float[N, 4] y, float[N, 4] z)
        <float zero = {0}, float m = {-1}, float six = {6}, float[4] nine = {9, 9, 9, 9}> {
            s = Min(x, six)  t = Min(nine, s)  y = Max(zero, t)  u = Max(w, m)  z = Max(u, zero) }""",
        {"Clip": 1, "Relu": 1},
        "min-max-order bound-bound[Min] bound-bound[Max] max-relu max-min-clip",
        BOTH,
    ),
    "bounds of one kind": Example(
        """g (int32[N, 4] x) => (int32[N, 4] y, int32[N, 4] z) <int32 zero = {0}, int32 m = {-1}, int32 six = {6}> {
            s = Clip(x, m)  y = Clip(s, zero)  t = Clip(x, , six)  u = Min(t, t)  v = Clip(u, , m)  z = Max(v, v) }""",
        {"Max": 1, "Min": 1},
        "clip-max clip-min equal-operands[Max] equal-operands[Min]",
        (13,),
    ),
    "a Clip of floats bounds infinities, whatever bounds it states": Example(
        """g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z, float[N, 4] r) <float zero = {0}, float m = {-1}> {
            s = Clip(x, m)  y = Clip(s, zero)  z = Clip(x, , m)  t = Max(x, zero)  u = Max(t, t)  r = Neg(u) }""",
        {"Clip": 1, "Min": 1, "Relu": 1, "Neg": 1},
        "equal-operands[Max] max-relu",
        BOTH,
    ),
    "no bounds": Example(
        "g (int32[N, 4] x) => (int32[N, 4] y) { r = Clip(x)  y = Neg(r) }",
        {"Neg": 1},
        "needless-clip",
        BOTH,
    ),
    "bounds that do not meet": Example(
        "g (float[N, 4] x) => (float[N, 4] y) <float two = {2}, float six = {6}> { s = Min(x, two)  t = Max(s, six)  y = Exp(t) }",
        {"Clip": 1, "Exp": 1},
        "min-max-order",
        BOTH,
    ),
    # --- logic ---
    "Where(Not c, x, y)": Example(
        "g (bool[N, 4] c, float[N, 4] x, float[4] y) => (float[N, 4] z) { d = Not(c)  z = Where(d, x, y) }",
        {"Where": 1},
        "where-not",
        BOTH,
    ),
    "choices that are none": Example(
        """g (bool[N, 4] c, float[N, 4] x, float[4] y) => (float[N, 4] z) <bool yes = {1}, bool[4] no = {0, 0, 0, 0}> {
            s = Where(c, x, x)  t = Where(yes, s, y)  u = Where(no, y, t)  v = Where(c, u, y)  w = Where(c, v, y)  r = Where(c, x, w)  z = Exp(r) }""",
        {"Where": 1, "Exp": 1},
        "where-itself where-true where-false where-where-first where-where-second",
        BOTH,
    ),
    "Not of comparisons of integers": Example(
        """g (int32[3] x, int32[3] y, int32[3] z) => (bool[3] a, bool[3] b) {
            s = Less(x, y)  t = Not(s)  u = Equal(x, x)  a = And(t, u)  v = GreaterOrEqual(x, z)  b = Not(v) }""",
        {"LessOrEqual": 1, "Less": 1},
        "not-less[Less,LessOrEqual] not-less[LessOrEqual,Less] greater-less[GreaterOrEqual,LessOrEqual] equal-itself[Equal] neutral-one[And]",
        BOTH,
    ),
    "comparisons from either side": Example(
        """g (float[N] x, float[N] y) => (bool[N] a) {
            s = GreaterOrEqual(x, y)  t = LessOrEqual(y, x)  a = And(s, t) }""",
        {"GreaterOrEqual": 1},
        "greater-less[GreaterOrEqual,LessOrEqual] equal-operands[And]",
        BOTH,
    ),
    "less or equal": Example(
        "g (float[N] x, float[N] y) => (bool[N] z) { s = Greater(y, x)  t = Equal(y, x)  z = Or(s, t) }",
        {"LessOrEqual": 1},
        "greater-less[Greater,Less] less-or-equal",
        BOTH,
    ),
    "And, Or, Not": Example(
        """g (bool[N] a, bool[N] b) => (bool[N] x, bool[N] y) {
            p = Not(a)  q = Not(b)  x = And(p, q)  r = Or(p, q)  s = Or(r, r)  y = Not(s) }""",
        {"Or": 1, "Not": 1, "And": 1},
        "not-not[And,Or] not-not[Or,And] equal-operands[Or] involutive-involutive[Not]",
        BOTH,
    ),
    # --- casts ---
    "Cast(Cast): only what loses nothing, or what the last one drops anyway": Example(
        """g (float16[N] x, int64[N] i, float[N] f, int64[N] j) => (double[N] a, int8[N] b, float[N] c, float[N] d) {
            s = Cast<to = 1>(x)  a = Cast<to = 11>(s)  t = Cast<to = 6>(i)  b = Cast<to = 3>(t)
            u = Cast<to = 10>(f)  c = Cast<to = 1>(u)  v = Cast<to = 6>(j)  d = Cast<to = 1>(v) }""",
        {"Cast": 6},
        "cast-cast cast-cast-integers",
        BOTH,
    ),
    "Cast there and back": Example(
        "g (float16[N] x) => (float16[N] y) { s = Cast<to = 1>(x)  t = Cast<to = 10>(s)  y = Exp(t) }",
        {"Exp": 1},
        "cast-cast cast-nothing",
        BOTH,
    ),
    "CastLike": Example(
        "g (int64[N] x, float16[M] z) => (float16[N] y) { u = Exp(z)  y = CastLike(x, u) }",
        {"Cast": 1},
        "castlike-cast",
        (15, 21),
    ),
    "Cast before Shape": Example(
        "g (float[N, M] x) => (float[N, M] y, int64[2] z) { y = Exp(x)  s = Cast<to = 7>(y)  z = Shape(s) }",
        {"Exp": 1, "Shape": 1},
        "shape-cast",
        BOTH,
    ),
    "the largest of bfloat16 may be found in single precision": Example(
        "g (bfloat16[N, 8] x) => (bfloat16[N, 1] y) <int64[1] a = {1}> { y = ReduceMax(x, a) }",
        {"ReduceMax": 1},
        "cast-extreme[ReduceMax]",
        (18, 21),
    ),
    "Cast before IsInf and IsNaN": Example(
        "g (float16[N, M] x) => (bool[N, M] y, bool[N, M] z) { a = Cast<to = 1>(x)  y = IsInf(a)  b = Cast<to = 11>(x)  z = IsNaN(b) }",
        {"IsInf": 1, "IsNaN": 1},
        "cast-condition[IsInf] cast-condition[IsNaN]",
        (20, 21),
    ),
    "unary operators of a Where between two numbers": Example(
        "g (bool[N, M] c) => (float16[N, M] y, float[N, M] z) <float a = {1.5}, float[1] b = {2.5}>"
        " { w = Where(c, a, b)  n = Neg(w)  y = Cast<to = 10>(n)  z = Exp(w) }",
        {"Where": 2},
        "where-unary[Cast] where-unary[Exp] where-unary[Neg]",
        BOTH,
    ),
    "Cast(ConstantOfShape)": Example(
        "g (float[N, M] x) => (double[N, M] y) { s = Shape(x)  t = ConstantOfShape<value = float[1] {2}>(s)  y = Cast<to = 11>(t) }",
        {"Shape": 1, "Expand": 1},
        "constantofshape-expand cast-expand",
        BOTH,
    ),
    # --- integers ---
    "BitShift(BitShift), and by nothing": Example(
        """g (uint32[N] x) => (uint32[N] y) <uint32 three = {3}, uint32 five = {5}, uint32 zero = {0}> {
            s = BitShift<direction = "LEFT">(x, three)  t = BitShift<direction = "LEFT">(s, zero)  y = BitShift<direction = "LEFT">(t, five) }""",
        {"BitShift": 1},
        "bitshift-bitshift neutral-zero[BitShift]",
        BOTH,
    ),
    "bits": Example(
        """g (int32[N] x) => (int32[N] y) <int32 a = {255}, int32 b = {15}> {
            s = BitwiseNot(x)  t = BitwiseNot(s)  u = BitwiseAnd(t, a)  v = BitwiseAnd(u, b)  w = BitwiseOr(v, v)  y = BitwiseAnd(w, w) }""",
        {"BitwiseAnd": 1},
        "involutive-involutive[BitwiseNot] associative-const[BitwiseAnd] equal-operands[BitwiseOr] equal-operands[BitwiseAnd]",
        (18, 21),
    ),
    "quotients of integers": Example(
        "g (int64[N] x) => (int64[N] y) <int64 two = {2}, int64 three = {3}> { s = Div(x, two)  y = Div(s, three) }",
        {"Div": 1},
        "div-div-integers",
        BOTH,
    ),
    "true and false, chosen": Example(
        """g (bool[N] c, bool[N] d) => (bool[N] y) <bool yes = {1}, bool no = {0}> {
            s = Where(c, yes, no)  t = Where(d, no, yes)  y = Xor(s, t) }""",
        {"Not": 1, "Xor": 1},
        "where-true-false where-false-true",
        (21,),
    ),
}

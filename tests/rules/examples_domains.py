"""Examples of rules about runtimes' own operators, which a run may write if it is asked."""

from __future__ import annotations

from functools import partial

from tests.rules.examples import Example

_SKIP = "com.microsoft.SkipLayerNormalization"
_SQUARE = "float[2, 8, 8]"

_Own = partial(Example, target="onnxruntime-cpu", allow_domain="com.microsoft")

EXAMPLES = {
    "a product of scaled queries and exchanged keys": _Own(
        """g (float[1, 4, 64, 16] q, float[1, 4, 64, 16] k) => (float[1, 4, 64, 64] y) <float c = {0.25}> {
            t = Transpose<perm = [0, 1, 3, 2]>(k)  p = MatMul(q, t)  y = Mul(p, c) }""",
        {"FusedMatMul": 1},
        "fusedmatmul-transpose fusedmatmul-scale fusedmatmul-transpose-again fusedmatmul-scale-again",
    ),
    "a factor of the queries": _Own(
        f"g ({_SQUARE} q, {_SQUARE} k) => ({_SQUARE} y) <float c = {{0.25}}> {{ s = Mul(q, c)  y = MatMul(s, k) }}",
        {"FusedMatMul": 1},
        "fusedmatmul-factor",
    ),
    "products that exchange axes, and read exchanged ones": _Own(
        f"""g ({_SQUARE} a, {_SQUARE} b) => ({_SQUARE} y, {_SQUARE} z) {{
            s = Transpose<perm = [0, 2, 1]>(a)  t = Transpose<perm = [0, 2, 1]>(a)
            y = com.microsoft.FusedMatMul<transA = 1, alpha = 1.0>(s, b)  z = com.microsoft.FusedMatMul<transB = 1, transBatchA = 0>(b, t) }}""",
        {"MatMul": 2},
        "fusedmatmul-exchange fusedmatmul-exchange-first fusedmatmul-matmul",
    ),
    "a quick GELU": _Own(
        "g (float[64, 64] x) => (float[64, 64] y) <float c = {1.702}> { s = Mul(x, c)  t = Sigmoid(s)  y = Mul(x, t) }",
        {"QuickGelu": 1},
        "quickgelu-sigmoid",
    ),
    "a SiLU": _Own(
        "g (float[64, 64] x) => (float[64, 64] y) { s = Sigmoid(x)  y = Mul(x, s) }",
        {"QuickGelu": 1},
        "quickgelu-swish",
    ),
    "attention without a mask and with one": _Own(
        """g (float[1, 16, 32] x, float[1, 16, 32] w, float[1, 16, 32] k, float[1, 1, 16, 16] m) => (float[1, 16, 32] y, float[1, 16, 32] z)
            <int64[4] s = {1, 16, 4, 8}, int64[3] r = {1, 16, 32}> {
            a = Reshape(x, s)  q = Transpose<perm = [0, 2, 1, 3]>(a)  b = Reshape(k, s)  t = Transpose<perm = [0, 2, 3, 1]>(b)
            v = Transpose<perm = [0, 2, 1, 3]>(b)  c = MatMul(q, t)  p = Softmax<axis = 3>(c)  d = MatMul(p, v)
            e = Transpose<perm = [0, 2, 1, 3]>(d)  y = Reshape(e, r)
            o = Reshape(w, s)  u = Transpose<perm = [0, 2, 1, 3]>(o)  j = MatMul(u, t)
            f = Add(j, m)  g = Softmax<axis = 3>(f)  h = MatMul(g, v)  i = Transpose<perm = [0, 2, 1, 3]>(h)  z = Reshape(i, r) }""",
        {"MultiHeadAttention": 2, "ReduceMax": 1, "Mul": 1, "Sub": 1},
        "multiheadattention multiheadattention-mask",
        (17,),
    ),
    "attention of the runtime where the opset has its own": _Own(
        """g (float[1, 16, 32] x, float[1, 16, 32] k) => (float[1, 16, 32] y) { y = com.microsoft.MultiHeadAttention<num_heads = 4>(x, k, k) }""",
        {"Attention": 1},
        "multiheadattention-apart",
        (23,),
    ),
    "normalizations that the runtime had fused": _Own(
        f"""g (float[1, 128, 64] x, float[1, 128, 64] y) => (float[1, 128, 64] n, float[1, 128, 64] s) <float[64] w, float[64] b, float[64] c> {{
            m = {_SKIP}<epsilon = 0.00001>(x, y, w, b)  k, , , s = {_SKIP}<epsilon = 0.00001>(m, y, w, b)
            n = {_SKIP}<epsilon = 0.00001>(k, s, w, b, c) }}""",
        {"Add": 3, "Sum": 1, "LayerNormalization": 3},
        "skiplayernormalization-layernormalization skiplayernormalization-bias skiplayernormalization-sum",
        (17, 21),
    ),
    "normalizations by the mean square that the runtime had fused": _Own(
        """g (float[1, 128, 64] x, float[1, 128, 64] y) => (float[1, 128, 64] n, float[1, 128, 64] s) <float[64] w> {
            n, , , s = com.microsoft.SkipSimplifiedLayerNormalization<epsilon = 0.00001>(x, y, w) }""",
        {"Add": 1, "RMSNormalization": 1},
        "skipsimplifiedlayernormalization-rmsnormalization skipsimplifiedlayernormalization-sum",
        (23,),
    ),
    "a dynamically quantized layer": _Own(
        """g (float[16, 4] x) => (float[16, 3] y)
            <int8[4, 3] w = {1, -2, 3, 4, -5, 6, 7, 8, 9, -1, 2, 5}, float ws = {0.5}, int8 wz = {0}, float[3] b> {
            q, s, z = DynamicQuantizeLinear(x)  p = MatMulInteger(q, w, z, wz)  f = Cast<to = 1>(p)  t = Mul(s, ws)  m = Mul(f, t)  y = Add(m, b) }""",
        {"DynamicQuantizeMatMul": 1},
        "matmulintegertofloat-scales matmulintegertofloat-bias dynamicquantizematmul-dynamicquantizelinear",
        (11, 17, 21),
    ),
    "activations between quantized tensors": _Own(
        """g (uint8[64, 64] x, int8[64, 64] z) => (uint8[64, 64] y, int8[64, 64] l)
            <float s = {0.05}, uint8 o = {128}, float t = {0.004}, uint8 p = {0}, int8 r = {3}> {
            d = DequantizeLinear(x, s, o)  e = Sigmoid(d)  y = QuantizeLinear(e, t, p)
            f = DequantizeLinear(z, s, r)  h = LeakyRelu<alpha = 0.25>(f)  l = QuantizeLinear(h, t, r) }""",
        {"QLinearSigmoid": 1, "QLinearLeakyRelu": 1},
        "qlinearsigmoid-sigmoid qlinearleakyrelu-leakyrelu",
        (13, 21),
    ),
}

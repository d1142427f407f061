"""Examples of attention with masks by a condition, with heads that are repeated, and with a past."""

from __future__ import annotations

from tests.rules.examples import Example

_CACHE = "float[1, 2, 1, 8] k, float[1, 2, 1, 8] v, float[1, 2, 7, 8] i, float[1, 2, 7, 8] j"
_WEIGHTS = "t = Transpose<perm = [0, 1, 3, 2]>(ks)  s = MatMul(q, t)  c = Mul(s, f)"

EXAMPLES = {
    "a condition of minus infinity is a mask": Example(
        f"""g (float[1, 2, 5, 8] q, float[1, 2, 7, 8] ks, float[1, 2, 7, 8] v, bool[5, 7] m) => (float[1, 2, 5, 8] y)
            <float f = {{0.35}}, float n = {{-inf}}> {{
            {_WEIGHTS}  a = Where(m, c, n)  p = Softmax<axis = -1>(a)  y = MatMul(p, v) }}""",
        {"Attention": 1, "Where": 1, "ReduceMax": 1, "Sub": 1},
        "attention-where attention-scale",
        (23,),
    ),
    "a constant condition becomes a constant mask": Example(
        f"""g (float[1, 2, 2, 8] q, float[1, 2, 3, 8] ks, float[1, 2, 3, 8] v) => (float[1, 2, 2, 8] y)
            <float f = {{0.35}}, float n = {{-inf}}, bool[2, 3] m = {{0, 1, 1, 0, 0, 1}}> {{
            {_WEIGHTS}  a = Where(m, n, c)  p = Softmax<axis = -1>(a)  y = MatMul(p, v) }}""",
        {"Attention": 1},
        "attention-where-not",
        (23,),
    ),
    "a condition without NaN is the mask itself": Example(
        f"""g (float[1, 2, 5, 8] q, float[1, 2, 7, 8] ks, float[1, 2, 7, 8] v, bool[5, 7] m) => (float[1, 2, 5, 8] y)
            <float f = {{0.35}}, float n = {{-inf}}, float z = {{0}}> {{
            {_WEIGHTS}  b = Where(m, z, n)  a = Add(c, b)  p = Softmax<axis = -1>(a)  e = IsNaN(p)  w = Where(e, z, p)  y = MatMul(w, v) }}""",
        {"Attention": 1},
        "attention-condition-mask",
        (23,),
    ),
    "a mask of a large number stays": Example(
        f"""g (float[1, 2, 5, 8] q, float[1, 2, 7, 8] ks, float[1, 2, 7, 8] v, bool[5, 7] m) => (float[1, 2, 5, 8] y)
            <float f = {{0.35}}, float n = {{-1e9}}> {{
            {_WEIGHTS}  a = Where(m, c, n)  p = Softmax<axis = -1>(a)  y = MatMul(p, v) }}""",
        {"MatMul": 2, "Mul": 1, "Softmax": 1, "Transpose": 1, "Where": 1},
        "",
        (23,),
    ),
    "keys and values of the past, which the model returns": Example(
        f"""g (float[1, 2, 1, 8] q, {_CACHE}) => (float[1, 2, 1, 8] y, float[1, 2, 8, 8] ks, float[1, 2, 8, 8] vs) <float f = {{0.35}}> {{
            ks = Concat<axis = -2>(i, k)  vs = Concat<axis = -2>(j, v)  {_WEIGHTS}  p = Softmax<axis = -1>(c)  y = MatMul(p, vs) }}""",
        {"Attention": 1},
        "attention-past",
        (23,),
    ),
    "keys and values of the past, which nobody else reads": Example(
        f"""g (float[1, 2, 1, 8] q, {_CACHE}) => (float[1, 2, 1, 8] y) <float f = {{0.35}}> {{
            ks = Concat<axis = -2>(i, k)  vs = Concat<axis = -2>(j, v)  {_WEIGHTS}  p = Softmax<axis = -1>(c)  y = MatMul(p, vs) }}""",
        {"Attention": 1},
        "attention-past",
        (23,),
    ),
    "fewer heads of keys than of queries, of the past, and a mask": Example(
        f"""g (float[1, 4, 1, 8] q, {_CACHE}, float[1, 1, 1, 8] m) => (float[1, 4, 1, 8] y, float[1, 2, 8, 8] a, float[1, 2, 8, 8] b)
            <float f = {{0.35}}, int64[1] two = {{2}}, int64[5] e = {{1, 2, 2, 8, 8}}, int64[4] r = {{1, 4, 8, 8}}> {{
            a = Concat<axis = 2>(i, k)  b = Concat<axis = 2>(j, v)  au = Unsqueeze(a, two)  bu = Unsqueeze(b, two)
            ae = Expand(au, e)  be = Expand(bu, e)  ks = Reshape(ae, r)  vs = Reshape(be, r)
            {_WEIGHTS}  d = Add(c, m)  p = Softmax<axis = -1>(d)  y = MatMul(p, vs) }}""",
        {"Attention": 1, "ReduceMax": 1, "Sub": 1},
        "attention-groups attention-past",
        (23,),
    ),
    "heads that a Tile repeats": Example(
        f"""g (float[1, 4, 5, 8] q, float[1, 2, 5, 8] k, float[1, 2, 5, 8] v) => (float[1, 4, 5, 8] y)
            <float f = {{0.35}}, int64[1] two = {{2}}, int64[5] e = {{1, 1, 2, 1, 1}}, int64[4] r = {{1, 4, 5, 8}}> {{
            a = Unsqueeze(k, two)  b = Unsqueeze(v, two)  at = Tile(a, e)  bt = Tile(b, e)  ks = Reshape(at, r)  vs = Reshape(bt, r)
            {_WEIGHTS}  p = Softmax<axis = -1>(c)  y = MatMul(p, vs) }}""",
        {"Attention": 1},
        "tile-expand attention-groups",
        (23,),
    ),
    "heads that a Gather repeats": Example(
        f"""g (float[1, 4, 5, 8] q, float[1, 2, 5, 8] k, float[1, 2, 5, 8] v) => (float[1, 4, 5, 8] y)
            <float f = {{0.35}}, int64[4] n = {{0, 0, 1, 1}}> {{
            ks = Gather<axis = 1>(k, n)  vs = Gather<axis = 1>(v, n)  {_WEIGHTS}  p = Softmax<axis = -1>(c)  y = MatMul(p, vs) }}""",
        {"Attention": 1},
        "attention-groups-gather",
        (23,),
    ),
    "a Gather that repeats heads in another order stays": Example(
        f"""g (float[1, 4, 5, 8] q, float[1, 2, 5, 8] k, float[1, 2, 5, 8] v) => (float[1, 4, 5, 8] y)
            <float f = {{0.35}}, int64[4] n = {{0, 1, 0, 1}}> {{
            ks = Gather<axis = 1>(k, n)  vs = Gather<axis = 1>(v, n)  {_WEIGHTS}  p = Softmax<axis = -1>(c)  y = MatMul(p, vs) }}""",
        {"Attention": 1, "Gather": 2},
        "",
        (23,),
    ),
    "heads repeated behind positions": Example(
        f"""g (float[1, 4, 5, 8] q, float[1, 5, 2, 8] k, float[1, 5, 2, 8] v) => (float[1, 4, 5, 8] y)
            <float f = {{0.35}}, int64[1] three = {{3}}, int64[5] e = {{1, 5, 2, 2, 8}}, int64[4] r = {{1, 5, 4, 8}}> {{
            a = Unsqueeze(k, three)  b = Unsqueeze(v, three)  ae = Expand(a, e)  be = Expand(b, e)  ar = Reshape(ae, r)  br = Reshape(be, r)
            ks = Transpose<perm = [0, 2, 1, 3]>(ar)  vs = Transpose<perm = [0, 2, 1, 3]>(br)  {_WEIGHTS}  p = Softmax<axis = -1>(c)  y = MatMul(p, vs) }}""",
        {"Attention": 1, "Transpose": 2},
        "attention-groups-behind",
        (23,),
    ),
}

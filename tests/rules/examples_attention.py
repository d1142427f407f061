"""Examples of attention with masks by a condition, with heads that are repeated or in groups, and with a past."""

from __future__ import annotations

from tests.rules.examples import Example

_CACHE = "float[1, 2, 1, 8] k, float[1, 2, 1, 8] v, float[1, 2, 7, 8] i, float[1, 2, 7, 8] j"
_WEIGHTS = "t = Transpose<perm = [0, 1, 3, 2]>(ks)  s = MatMul(q, t)  c = Mul(s, f)"
# Heads of queries are numbered by a group and a place in it, and those of keys by the group alone.
_GROUPS = "float[1, 5, 48] x, float[1, 7, 2, 8] k, float[1, 7, 2, 8] w"
_SIZES = "float f = {0.35}, int64[5] apart = {1, 5, 2, 3, 8}, int64[1] two = {2}, int64[3] joint = {1, 5, 48}"
_SCORES = """xs = Reshape(x, apart)  q = Transpose<perm = [0, 2, 3, 1, 4]>(xs)  kt = Transpose<perm = [0, 2, 3, 1]>(k)  t = Unsqueeze(kt, two)
             wt = Transpose<perm = [0, 2, 1, 3]>(w)  v = Unsqueeze(wt, two)  s = MatMul(q, t)  c = Mul(s, f)"""
# Two layers behind one mask, with a guard against NaN in each.
_LAYERS = "g (float[1, 4, 64, 16] q, float[1, 4, 16, 64] k, float[1, 4, 64, 16] v, float[1, 4, 64, 16] x, bool[1, 1, 64, 64] c) => (float[1, 4, 64, 16] y)"
_GUARDED = """<float z = {0}, float n = {-inf}> {
    m = Where(c, z, n)  s = MatMul(q, k)  a = Add(s, m)  p = Softmax<axis = -1>(a)  e = IsNaN(p)  g = Where(e, z, p)  h = MatMul(g, v)
    t = MatMul(h, k)  b = Add(t, m)  o = Softmax<axis = -1>(b)  f = IsNaN(o)  w = Where(f, z, o)  y = MatMul(w, x) }"""
_RESULT = "o = MatMul(p, v)  u = Transpose<perm = [0, 3, 1, 2, 4]>(o)  y = Reshape(u, joint)"
# Neighbours of each head that rotate by sines and by cosines, which follow.
_NEIGHBOURS = """g (float[2, 3, 2, 4] x) => (float[2, 3, 2, 4] y)
            <float[1, 1, 2, 4] s = {0.1, 0.1, 0.2, 0.2, 0.3, 0.3, 0.4, 0.4}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2},
             int64[1] end = {9223372036854775807}, int64[1] last = {3}, int64[1] apart = {-1}, int64[4] same = {2, 3, 2, 4}, float[1, 1, 2, 4] c"""
_ROTATED = """{
            a = Slice(x, zero, end, last, two)  b = Slice(x, one, end, last, two)  n = Neg(b)  nu = Unsqueeze(n, apart)  au = Unsqueeze(a, apart)
            k = Concat<axis = -1>(nu, au)  r = Reshape(k, same)  p = Mul(x, c)  q = Mul(r, s)  y = Add(p, q) }"""

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
    "guards of layers become thresholds": Example(
        f"{_LAYERS} {_GUARDED}",
        {"MatMul": 4, "Add": 2, "Softmax": 2, "Where": 1, "ThresholdedRelu": 2},
        "guard-threshold",
        (13, 17, 21),
        "onnxruntime-cpu",
    ),
    "guards of layers read the mask": Example(
        f"{_LAYERS} {_GUARDED}",
        {"MatMul": 4, "Add": 2, "Softmax": 2, "Where": 3, "ReduceMax": 1, "IsInf": 1},
        "guard-mask",
        (13, 17),
    ),
    "guards of layers read the condition of the mask": Example(
        f"{_LAYERS} {_GUARDED}",
        {"MatMul": 4, "Add": 2, "Softmax": 2, "Where": 3, "ReduceMax": 1},
        "guard-mask hidden-rows",
        (21,),
    ),
    "a condition that hides nothing beside one that may": Example(
        """g (float[2, 3, 4, 6] s, float[2, 3, 4, 6] t, bool[2, 1, 1, 6] c) => (float[2, 3, 4, 6] y, float[2, 3, 4, 6] x)
        <bool[4, 1] all = {1, 1, 1, 1}, int64[4] l = {2, 1, 4, 6}, float z = {0}, float n = {-1e9}> {
            b = And(c, all)  e = Expand(b, l)  m = Where(e, z, n)  w = Where(b, z, n)  a = Add(s, m)  y = Exp(a)  d = Add(t, w)  x = Exp(d) }""",
        {"Where": 1, "Add": 2, "Exp": 2},
        "mask-condition mask-condition-expand mask-expand",
    ),
    "a condition that hides nothing, of sizes known at run time": Example(
        """g (float[B, 4, S, S] s, bool[B, 1, 1, S] c) => (float[B, 4, S, S] y)
        <int64 zero = {0}, int64 one = {1}, int64[3] axes = {0, 1, 3}, float z = {0}, float n = {-inf}, int64 two = {2}> {
            t = Shape(s)  l = Gather<axis = 0>(t, two)  r = Range(zero, l, one)  q = Unsqueeze(r, axes)  all = GreaterOrEqual(q, zero)
            b = And(all, c)  m = Where(b, z, n)  y = Add(s, m) }""",
        {"Where": 1, "Add": 1},
        "mask-condition mask-expand",
        (13, 17),
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
        {"Attention": 1, "ReduceMax": 1, "Mul": 1, "Sub": 1},
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
    "groups of heads as an axis": Example(
        f"""g ({_GROUPS}) => (float[1, 5, 48] y) <{_SIZES}> {{ {_SCORES}  p = Softmax<axis = -1>(c)  {_RESULT} }}""",
        {"Attention": 1, "Reshape": 2},
        "attention-axes attention-scale attention-heads",
        (23,),
    ),
    "groups of heads as an axis, and a mask": Example(
        f"""g ({_GROUPS}, float[1, 1, 1, 5, 7] m) => (float[1, 5, 48] y) <{_SIZES}> {{
            {_SCORES}  a = Add(c, m)  p = Softmax<axis = -1>(a)  {_RESULT} }}""",
        {"Attention": 1, "Reshape": 3, "ReduceMax": 1, "Mul": 1, "Sub": 1},
        "attention-axes-mask",
        (23,),
    ),
    "groups of heads as an axis, and a mask of their own": Example(
        f"""g ({_GROUPS}, float[2, 3, 1, 7] m) => (float[1, 5, 48] y) <{_SIZES}> {{
            {_SCORES}  a = Add(c, m)  p = Softmax<axis = -1>(a)  {_RESULT} }}""",
        {"Attention": 1, "Expand": 1, "Reshape": 3, "ReduceMax": 1, "Mul": 1, "Sub": 1},
        "attention-axes-mask",
        (23,),
    ),
    "groups of heads as an axis, and a condition": Example(
        f"""g ({_GROUPS}, bool[5, 7] m) => (float[1, 5, 48] y) <{_SIZES}, float n = {{-inf}}> {{
            {_SCORES}  a = Where(m, n, c)  p = Softmax<axis = -1>(a)  {_RESULT} }}""",
        {"Attention": 1, "Reshape": 2, "ReduceMax": 1, "Mul": 1, "Sub": 1, "Where": 1},
        "attention-axes-mask where-infinity-not",
        (23,),
    ),
    "groups of heads as an axis, and a condition without NaN": Example(
        f"""g ({_GROUPS}, bool[5, 7] m) => (float[1, 5, 48] y) <{_SIZES}, float n = {{-inf}}, float z = {{0}}> {{
            {_SCORES}  a = Where(m, c, n)  h = Softmax<axis = -1>(a)  e = IsNaN(h)  p = Where(e, z, h)  {_RESULT} }}""",
        {"Attention": 1, "Reshape": 2},
        "attention-axes-condition where-infinity",
        (23,),
    ),
    "groups of heads that do not share neighbours stay": Example(
        """g (float[1, 3, 2, 5, 8] q, float[1, 1, 2, 8, 7] t, float[1, 1, 2, 7, 8] v) => (float[1, 3, 2, 5, 8] y) {
            s = MatMul(q, t)  p = Softmax<axis = -1>(s)  y = MatMul(p, v) }""",
        {"MatMul": 2, "Softmax": 1},
        "",
        (23,),
    ),
    "all heads of queries share keys": Example(
        """g (float[1, 4, 5, 8] q, float[1, 1, 8, 7] t, float[1, 1, 7, 8] v) => (float[1, 4, 5, 8] y) {
            s = MatMul(q, t)  p = Softmax<axis = -1>(s)  y = MatMul(p, v) }""",
        {"Attention": 1, "Transpose": 1},
        "attention-axes",
        (23,),
    ),
    "heads that share keys as rows of one matrix": Example(
        """g (float[1, 5, 48] x, float[1, 7, 2, 8] ks, float[1, 7, 2, 8] vs, float[1, 1, 1, 5, 7] m) => (float[1, 5, 48] y)
            <int64[5] apart = {1, 5, 2, 3, 8}, int64[4] rows = {1, 2, 15, 8}, int64[5] five = {1, 2, 3, 5, 7}, int64[4] four = {1, 2, 15, 7},
             int64[5] back = {1, 2, 3, 5, 8}, int64[3] joint = {1, 5, 48}> {
            xs = Reshape(x, apart)  xt = Transpose<perm = [0, 2, 3, 1, 4]>(xs)  q = Reshape(xt, rows)
            t = Transpose<perm = [0, 2, 3, 1]>(ks)  v = Transpose<perm = [0, 2, 1, 3]>(vs)
            s = MatMul(q, t)  a = Reshape(s, five)  c = Add(a, m)  p = Softmax<axis = -1>(c)  r = Reshape(p, four)
            o = MatMul(r, v)  b = Reshape(o, back)  u = Transpose<perm = [0, 3, 1, 2, 4]>(b)  y = Reshape(u, joint) }""",
        {"Attention": 1, "Reshape": 3, "ReduceMax": 1, "Mul": 1, "Sub": 1},
        "attention-rows-apart attention-rows-together attention-axes-mask attention-heads",
        (23,),
    ),
    "all heads of queries as rows of one matrix": Example(
        """g (float[1, 5, 32] x, float[1, 7, 8] k, float[1, 7, 8] v) => (float[1, 5, 32] y)
            <int64[3] rows = {1, 20, 8}, int64[4] apart = {1, 5, 4, 7}, int64[3] together = {1, 20, 7}, int64[3] joint = {1, 5, 32}> {
            q = Reshape(x, rows)  t = Transpose<perm = [0, 2, 1]>(k)  s = MatMul(q, t)  a = Reshape(s, apart)
            p = Softmax<axis = -1>(a)  r = Reshape(p, together)  o = MatMul(r, v)  y = Reshape(o, joint) }""",
        {"Attention": 1, "Reshape": 4},
        "attention-rows-apart attention-rows-together attention-axes",
        (23,),
    ),
    "heads in the batch of matrices": Example(
        """g (float[2, 3, 5, 8] x, float[2, 3, 7, 8] k, float[2, 3, 7, 8] w) => (float[2, 3, 5, 8] y)
            <float f = {0.35}, int64[3] many = {6, -1, 8}, int64[4] heads = {2, 3, 5, 8}> {
            q = Reshape(x, many)  ks = Reshape(k, many)  v = Reshape(w, many)  t = Transpose<perm = [0, 2, 1]>(ks)
            s = MatMul(q, t)  c = Mul(s, f)  p = Softmax<axis = -1>(c)  o = MatMul(p, v)  y = Reshape(o, heads) }""",
        {"Attention": 1, "Reshape": 4},
        "attention-axes attention-scale-reshape",
        (23,),
    ),
    "heads in the batch of matrices, and a mask": Example(
        """g (float[2, 3, 5, 8] x, float[2, 3, 7, 8] k, float[2, 3, 7, 8] w, float[6, 5, 7] m) => (float[2, 3, 5, 8] y)
            <float f = {0.35}, int64[3] many = {6, -1, 8}, int64[4] heads = {2, 3, 5, 8}> {
            q = Reshape(x, many)  ks = Reshape(k, many)  v = Reshape(w, many)  t = Transpose<perm = [0, 2, 1]>(ks)
            u = Mul(q, f)  s = MatMul(u, t)  a = Add(s, m)  p = Softmax<axis = -1>(a)  o = MatMul(p, v)  y = Reshape(o, heads) }""",
        {"Attention": 1, "Reshape": 5, "ReduceMax": 1, "Mul": 1, "Sub": 1},
        "attention-axes-mask",
        (23,),
    ),
    "heads in the batch of matrices, and apart beside the mask": Example(
        """g (float[2, 5, 24] x, float[2, 7, 24] k, float[2, 7, 24] w, float[2, 1, 5, 7] m) => (float[2, 5, 24] y)
            <int64[4] queries = {2, 5, 3, 8}, int64[4] keys = {2, 7, 3, 8}, int64[3] many = {6, -1, 8}, int64[4] apart = {2, 3, 5, 7},
             int64[3] scores = {6, 5, 7}, int64[4] heads = {2, 3, 5, 8}, int64[3] joint = {2, 5, 24}> {
            xa = Reshape(x, queries)  xt = Transpose<perm = [0, 2, 1, 3]>(xa)  q = Reshape(xt, many)
            ka = Reshape(k, keys)  kt = Transpose<perm = [0, 2, 1, 3]>(ka)  ks = Reshape(kt, many)
            wa = Reshape(w, keys)  wt = Transpose<perm = [0, 2, 1, 3]>(wa)  v = Reshape(wt, many)
            t = Transpose<perm = [0, 2, 1]>(ks)  s = MatMul(q, t)  a = Reshape(s, apart)  b = Add(a, m)  c = Reshape(b, scores)
            p = Softmax<axis = -1>(c)  o = MatMul(p, v)  oa = Reshape(o, heads)  ot = Transpose<perm = [0, 2, 1, 3]>(oa)  y = Reshape(ot, joint) }""",
        {"Attention": 1, "ReduceMax": 1, "Mul": 1, "Sub": 1},
        "attention-batch-mask attention-heads",
        (23,),
    ),
    "positions first": Example(
        """g (float[5, 2, 24] x, float[7, 2, 24] k, float[7, 2, 24] w) => (float[5, 2, 24] y)
            <float f = {0.35}, int64[3] queries = {5, 6, 8}, int64[3] keys = {7, 6, 8}, int64[4] apart = {2, 3, -1, 8}, int64[3] joint = {5, 2, 24}> {
            xa = Reshape(x, queries)  xt = Transpose<perm = [1, 0, 2]>(xa)  q = Reshape(xt, apart)
            ka = Reshape(k, keys)  kt = Transpose<perm = [1, 0, 2]>(ka)  ks = Reshape(kt, apart)
            wa = Reshape(w, keys)  wt = Transpose<perm = [1, 0, 2]>(wa)  v = Reshape(wt, apart)
            t = Transpose<perm = [0, 1, 3, 2]>(ks)  s = MatMul(q, t)  c = Mul(s, f)  p = Softmax<axis = -1>(c)  o = MatMul(p, v)
            ot = Transpose<perm = [2, 0, 1, 3]>(o)  y = Reshape(ot, joint) }""",
        {"Attention": 1, "Transpose": 4},
        "attention-heads-positions",
        (23,),
    ),
    "a factor of keys that a Reshape follows": Example(
        """g (float[2, 3, 5, 8] x, float[2, 7, 24] k, float[2, 3, 7, 8] w) => (float[2, 3, 5, 8] y)
            <float f = {0.35}, int64[4] heads = {2, 3, 7, 8}> {
            u = Mul(k, f)  ks = Reshape(u, heads)  y = Attention(x, ks, w) }""",
        {"Attention": 1, "Reshape": 1},
        "attention-scale-keys-reshape",
        (23,),
    ),
    "factors that Transposes follow": Example(
        """g (float[2, 5, 3, 8] x, float[2, 7, 3, 8] k, float[2, 3, 7, 8] w) => (float[2, 3, 5, 8] y) <float f = {0.35}> {
            u = Mul(x, f)  q = Transpose<perm = [0, 2, 1, 3]>(u)  v = Mul(k, f)  ks = Transpose<perm = [0, 2, 1, 3]>(v)
            y = Attention(q, ks, w) }""",
        {"Attention": 1, "Transpose": 2},
        "attention-scale-transpose attention-scale-keys-transpose",
        (23,),
    ),
    "groups of heads by Einsum": Example(
        f"""g ({_GROUPS}) => (float[1, 5, 48] y) <{_SIZES}> {{
            q = Reshape(x, apart)  s = Einsum<equation = "bngrd,blgd->bgrnl">(q, k)  p = Softmax<axis = -1>(s)
            o = Einsum<equation = "bgrnl,blgd->bngrd">(p, w)
            y = Reshape(o, joint) }}""",
        {"Attention": 1, "Reshape": 2},
        "einsum-product-rows einsum-rows-order attention-axes",
        (23,),
    ),
    "a condition of minus infinity is added where it is constant": Example(
        """g (float[2, 4, 16, 16] x) => (float[2, 4, 16, 16] y, float[2, 4, 16, 16] z)
            <bool[16, 1] m = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0}, float n = {-inf}> {
            y = Where(m, x, n)  z = Where(m, n, x) }""",
        {"Add": 2},
        "where-infinity where-infinity-not",
        target="onnxruntime-cpu",
    ),
    "a factor of keys that are repeated": Example(
        """g (float[1, 4, 5, 8] q, float[1, 2, 1, 7, 8] k, float[1, 2, 1, 7, 8] v) => (float[1, 4, 5, 8] y)
            <float f = {0.35}, int64[5] e = {1, 2, 2, 7, 8}, int64[4] r = {1, 4, 7, 8}, int64[4] rt = {1, 4, 8, 7}> {
            ke = Expand(k, e)  kf = Mul(ke, f)  kt = Transpose<perm = [0, 1, 2, 4, 3]>(kf)  t = Reshape(kt, rt)
            ve = Expand(v, e)  w = Reshape(ve, r)  s = MatMul(q, t)  p = Softmax<axis = -1>(s)  y = MatMul(p, w) }""",
        {"Attention": 1, "Reshape": 2},
        "attention-factor-expand attention-groups",
        (23,),
    ),
    "scores of layers with a bias and a mask": Example(
        """g (float[1, 4, 8, 16] q, float[1, 4, 16, 8] k, float[1, 4, 8, 16] v, float[1, 4, 8, 16] x, float[1, 4, 8, 8] b, float[1, 1, 8, 8] m)
            => (float[1, 4, 8, 16] y) {
            s = MatMul(q, k)  a = Add(s, b)  c = Add(a, m)  p = Softmax<axis = -1>(c)  h = MatMul(p, v)
            t = MatMul(h, k)  d = Add(t, b)  e = Add(m, d)  o = Softmax<axis = -1>(e)  y = MatMul(o, x) }""",
        {"MatMul": 4, "Add": 3, "Softmax": 2},
        "mask-terms",
        (13, 17),
    ),
    "scores of layers with a factor, a bias and a mask": Example(
        """g (float[1, 4, 8, 16] q, float[1, 4, 16, 8] k, float[1, 4, 8, 16] v, float[1, 4, 8, 16] x, float[1, 4, 8, 8] b, float[1, 1, 8, 8] m, float f)
            => (float[1, 4, 8, 16] y) {
            s = MatMul(q, k)  u = Mul(s, f)  a = Add(u, b)  c = Add(a, m)  p = Softmax<axis = -1>(c)  h = MatMul(p, v)
            t = MatMul(h, k)  w = Div(t, f)  d = Add(w, b)  e = Add(m, d)  o = Softmax<axis = -1>(e)  y = MatMul(o, x) }""",
        {"MatMul": 4, "Mul": 1, "Div": 1, "Add": 3, "Softmax": 2},
        "mask-terms-scaled[Mul] mask-terms-scaled[Div]",
        (13, 17),
    ),
    "scores of layers with a bias and a mask, in kernels of their own": Example(
        """g (float[1, 4, 8, 16] q, float[1, 4, 8, 16] k, float[1, 4, 8, 16] v, float[1, 4, 8, 16] x, float[1, 4, 8, 8] b, float[1, 1, 8, 8] m)
            => (float[1, 4, 8, 16] y) {
            kt = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, kt)  a = Add(s, b)  c = Add(a, m)  p = Softmax<axis = -1>(c)  h = MatMul(p, v)
            t = MatMul(h, kt)  d = Add(t, b)  e = Add(m, d)  o = Softmax<axis = -1>(e)  y = MatMul(o, x) }""",
        {"Attention": 2, "Add": 1, "ReduceMax": 1, "Mul": 1, "Sub": 1},
        "mask-terms attention-mask-raised",
        (23,),
    ),
    "cosines and sines that are stored twice": Example(
        """g (float[2, 3, 2, 4] x) => (float[2, 3, 2, 4] y)
            <float[1, 1, 2, 4] c = {0.5, 0.25, 0.5, 0.25, -0.5, 1, -0.5, 1}, float[1, 1, 2, 4] s = {0.1, 0.2, 0.1, 0.2, 0.3, 0.4, 0.3, 0.4}> {
            a, b = Split<axis = -1, num_outputs = 2>(x)  n = Neg(b)  r = Concat<axis = -1>(n, a)  p = Mul(x, c)  q = Mul(r, s)  y = Add(p, q) }""",
        {"RotaryEmbedding": 1},
        "rotary-embedding-table",
        (23,),
    ),
    "cosines and sines that are not the same twice": Example(
        """g (float[2, 3, 2, 4] x) => (float[2, 3, 2, 4] y)
            <float[1, 1, 2, 4] c = {0.5, 0.25, 0.5, 0.25, -0.5, 1, -0.5, 1}, float[1, 1, 2, 4] s = {0.1, 0.2, 0.1, 0.2, 0.3, 0.4, 0.3, 0.5}> {
            a, b = Split<axis = -1, num_outputs = 2>(x)  n = Neg(b)  r = Concat<axis = -1>(n, a)  p = Mul(x, c)  q = Mul(r, s)  y = Add(p, q) }""",
        {"Split": 1, "Neg": 1, "Concat": 1, "Mul": 2, "Add": 1},
        "",
        (23,),
    ),
    "cosines and sines of a table, by positions": Example(
        """g (float[B, 3, 2, 4] x, int64[1, 2] i) => (float[B, 3, 2, 4] y)
            <float[2, 4] c = {0.5, 0.25, 0.5, 0.25, -0.5, 1, -0.5, 1}, float[2, 4] s = {0.1, 0.2, 0.1, 0.2, 0.3, 0.4, 0.3, 0.4}, int64[1] one = {1}> {
            cg = Gather(c, i)  cu = Unsqueeze(cg, one)  sg = Gather(s, i)  su = Unsqueeze(sg, one)
            a, b = Split<axis = -1, num_outputs = 2>(x)  n = Neg(b)  r = Concat<axis = -1>(n, a)  p = Mul(x, cu)  q = Mul(r, su)  y = Add(p, q) }""",
        {"RotaryEmbedding": 1, "Gather": 2, "Shape": 1, "Concat": 1, "Expand": 2},
        "rotary-embedding-table slice-gather",
        (23,),
    ),
    "rotary embeddings of heads that stay together": Example(
        """g (float[B, 5, 24] x, float[B, 7, 24] k, float[B, 7, 24] v, float[B, 5, 4] c, float[B, 5, 4] s) => (float[B, 5, 24] y)
            <int64[4] apart = {0, -1, 3, 8}, int64[3] joint = {0, -1, 24}> {
            a = Reshape(x, apart)  t = Transpose<perm = [0, 2, 1, 3]>(a)  r = RotaryEmbedding(t, c, s)
            u = Transpose<perm = [0, 2, 1, 3]>(r)  y = Reshape(u, joint) }""",
        {"RotaryEmbedding": 1},
        "rotary-embedding-heads",
        (23,),
    ),
    "neighbours rotate by cosines and sines that are stored twice": Example(
        f"{_NEIGHBOURS} = {{0.5, 0.5, 0.25, 0.25, -0.5, -0.5, 1, 1}}> {_ROTATED}",
        {"RotaryEmbedding": 1},
        "rotary-embedding-pairs",
        (23,),
    ),
    "neighbours that rotate by other cosines each": Example(
        f"{_NEIGHBOURS} = {{0.5, 0.5, 0.25, 0.25, -0.5, -0.5, 1, 0.75}}> {_ROTATED}",
        {"Slice": 2, "Neg": 1, "Unsqueeze": 2, "Concat": 1, "Reshape": 1, "Mul": 2, "Add": 1},
        "",
        (23,),
    ),
    # The table repeats each cosine when the model runs. A part of each head rotates, as in GPT-J.
    "a part of each head rotates by neighbours, behind positions": Example(
        """g (float[B, 5, 24] h, float[B, 5, 2] c, float[B, 5, 2] s) => (float[B, 3, 5, 8] y)
            <int64[4] heads = {0, 5, 3, 8}, int64[2] parts = {4, 4}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2},
             int64[1] end = {9223372036854775807}, int64[1] last = {3}, int64[1] apart = {-1}, int64[4] same = {0, 5, 3, 4},
             int64[4] twice = {1, 1, 1, 2}, int64[4] table = {0, 5, 1, 4}> {
            x = Reshape(h, heads)  z, o = Split<axis = -1>(x, parts)
            cu = Unsqueeze(c, apart)  ce = Expand(cu, twice)  ct = Reshape(ce, table)  su = Unsqueeze(s, apart)  se = Expand(su, twice)  st = Reshape(se, table)
            a = Slice(z, zero, end, last, two)  b = Slice(z, one, end, last, two)  n = Neg(b)  nu = Unsqueeze(n, apart)  au = Unsqueeze(a, apart)
            k = Concat<axis = -1>(nu, au)  r = Reshape(k, same)  p = Mul(z, ct)  q = Mul(r, st)  w = Add(p, q)  j = Concat<axis = -1>(w, o)
            y = Transpose<perm = [0, 2, 1, 3]>(j) }""",
        {"RotaryEmbedding": 1, "Unsqueeze": 2, "Expand": 2, "Slice": 2, "Reshape": 3, "Transpose": 1},
        "rotary-embedding-pairs-behind rotary-embedding-part-behind",
        (23,),
    ),
    "a mask of numbers above the least one stays": Example(
        """g (float[1, 2, 5, 8] q, float[1, 2, 7, 8] k, float[1, 2, 7, 8] v, bool[5, 7] c) => (float[1, 2, 5, 8] y) <float z = {0}, float n = {-1e9}> {
            m = Where(c, z, n)  t = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, t)  a = Add(s, m)  p = Softmax<axis = -1>(a)  y = MatMul(p, v) }""",
        {"Attention": 1, "Where": 1},
        "attention-mask",
        (23,),
    ),
    "a divisor of scores is the scale": Example(
        """g (float[1, 2, 5, 8] q, float[1, 2, 7, 8] k, float[1, 2, 7, 8] v, bool[5, 7] c) => (float[1, 2, 5, 8] y)
            <float d = {3}, float z = {0}, float n = {-1e9}> {
            m = Where(c, z, n)  t = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, t)  e = Div(s, d)  a = Add(e, m)  p = Softmax<axis = -1>(a)
            y = MatMul(p, v) }""",
        {"Attention": 1, "Where": 1},
        "attention-factor[Div] attention-scale",
        (23,),
    ),
    "a factor of queries is the scale, of a mask of one row": Example(
        """g (float[1, 2, 5, 8] q, float[1, 2, 7, 8] k, float[1, 2, 7, 8] v, bool[1, 1, 1, 7] c) => (float[1, 2, 5, 8] y)
            <float d = {0.25}, float z = {0}, float n = {-3.4028235e38}> {
            m = Where(c, z, n)  t = Transpose<perm = [0, 1, 3, 2]>(k)  f = Mul(q, d)  s = MatMul(f, t)  a = Add(s, m)  p = Softmax<axis = -1>(a)
            y = MatMul(p, v) }""",
        {"Attention": 1, "Where": 1, "ReduceMax": 1, "Mul": 1, "Sub": 1, "Expand": 1},
        "attention-mask-raised-scale",
        (23,),
    ),
    "a guard against NaN is not needed where a computed condition hides keys by numbers": Example(
        """g (float[1, 2, 70, 8] q, float[1, 2, 8, 70] k, float[1, 2, 70, 8] v) => (float[1, 2, 70, 8] y)
            <int64 first = {0}, int64 one = {1}, int64 all = {70}, int64[1] apart = {1}, float z = {0}, float n = {-3.4028235e38}> {
            r = Range(first, all, one)  u = Unsqueeze(r, apart)  c = LessOrEqual(r, u)  m = Where(c, z, n)  s = MatMul(q, k)  a = Add(s, m)
            p = Softmax<axis = -1>(a)  e = IsNaN(p)  w = Where(e, z, p)  y = MatMul(w, v) }""",
        {"MatMul": 2, "Add": 1, "Softmax": 1},
        "softmax-guard-masked",
        (17,),
    ),
}

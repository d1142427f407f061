"""A page of rules that shows most of the language, in the printer's own layout."""

PAGE = """\
# Merge two constant terms: the constants meet, and folding makes them one.
real rule add-add-const:
    Add(Add(x, c1), c2) => Add(x, Add(c1, c2))
    where const c1, const c2
    test x: T[2, 3], c1: T[3], c2: T[]

# A missing bias is a zero bias, so no other rule has to mention its absence.
real rule conv-zero-bias:
    Conv<..p>(x, w) => Conv<..p>(x, w, Expand(T(0), [m]))
    where w: T[m, .._]
    test x: T[2, 4, 5, 5], w: T[6, 4, 3, 3]

# An inference BatchNormalization is an affine map per channel: Conv absorbs it.
real rule conv-batchnorm:
    BatchNormalization<epsilon = e, momentum = _>(Conv<..p>(x, w, b), scale, shift, mean, var)
 => Conv<..p>(x, Mul(w, Reshape(s, [m, ..ones(k)])), Add(Mul(Sub(b, mean), s), shift))
    where w: T[m, ..k], scale: T, mean: T, const w, const scale, const var
          s = Div(scale, Sqrt(Add(var, T(e))))
    test x: T[2, 4, 5, 5], w: T[6, 4, 3, 3], b: T[6], scale: T[6], shift: T[6], mean: T[6], var: T[6], e = 0.5

# Adding axes and removing the same ones changes nothing.
exact rule squeeze-unsqueeze:
    Squeeze(Unsqueeze(x, axes), axes) => x
    test x: T[2, 3], axes = [1]

# Two transposes are one.
exact rule transpose-transpose:
    Transpose<perm = p>(Transpose<perm = q>(x)) => Transpose<perm = [q[i] for i in p]>(x)
    test x: T[2, 3, 4], q = [2, 0, 1], p = [1, 0, 2]

# A slice that stays inside the first part of a Concat reads only that part.
exact rule slice-concat-head:
    Slice(Concat<axis = a>(x, .._), [i], [j], [a]) => Slice(x, [i], [j], [a])
    where 0 <= i <= j <= dim(x, a)
    test x: T[5, 3], _: T[2, 3] T[4, 3], a = 0, i = 1, j = 4

# Two products of one input become one wider product.
real rule matmul-matmul:
    y1 = MatMul(x, w1)
    y2 = MatMul(x, w2)
 => y1, y2 = Split<axis = -1>(MatMul(x, Concat<axis = -1>(w1, w2)), [n1, n2])
    where w1: T[_, n1], w2: T[_, n2], const w1, const w2
    test x: T[2, 4, 5], w1: T[5, 3], w2: T[5, 6]

# Products associate; the cost model decides which grouping is cheaper.
real rule matmul-assoc:
    MatMul(MatMul(x, y), z) <=> MatMul(x, MatMul(y, z))
    where y: _[_, _]
    test x: T[2, 4, 5], y: T[5, 6], z: T[6, 3]
"""

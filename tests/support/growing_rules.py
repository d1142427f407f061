"""Rules that can fire on their own results, with models, for tests of schedules and limits."""

PAIRS = """
# Products with one input are one product.
real rule pairs:
    y1 = MatMul(x, w1)
    y2 = MatMul(x, w2)
 => y1, y2 = Split<axis = -1>(MatMul(x, Concat<axis = -1>(w1, w2)), [n1, n2])
    where w1: T[_, n1], w2: T[_, n2], const w1, const w2
    test x: T[2, 4, 5], w1: T[5, 3], w2: T[5, 6]
"""
ASSOCIATE = """
# Sums associate, in both directions.
real rule associate:
    Add(Add(x, y), z) <=> Add(x, Add(y, z))
    test x: T[2], y: T[2], z: T[2]
"""

"""Two rules of which the second needs the first one's result, with a model on which both fire."""

SUMS = """
exact rule minus:
    Sub(z, Neg(x)) => Add(z, x)
    test x: T[2], z: T[2]

real rule three:
    Add(Add(x, y), z) => Sum(x, y, z)
    test x: T[2], y: T[2], z: T[2]
"""
SHORT = "g (float[8] x, float[8] z, float[8] w) => (float[8] y) { a = Neg (x)  b = Sub (z, a)  y = Add (b, w) }"

"""Expressions of rules for tests, written in Python's syntax or drawn at random.

The language's syntax is a part of Python's (`*k` is `..k`).
"""

import ast
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import strategies as st
from onnx import TensorProto

from eqsat.facts import dims
from eqsat.facts.dims import Poly, symbol
from eqsat.facts.fact import Fact
from eqsat.language import syntax
from eqsat.language.expressions import Unevaluable, evaluate
from eqsat.language.syntax import Expression, Name, Number, Place, Spread
from eqsat.language.values import DTYPES, DType, Tensor, Value, is_list

FLOAT, INT64, BOOL = int(TensorProto.FLOAT), int(TensorProto.INT64), int(TensorProto.BOOL)
N, M = symbol("N"), symbol("M")

BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"}
COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in", ast.NotIn: "not in"}


def read(text: str) -> Expression:
    """Returns the expression of a text."""
    return convert(ast.parse(text, mode="eval").body)


def convert(node: ast.AST) -> Expression:
    place = Place(1, getattr(node, "col_offset", 0) + 1)
    match node:
        case ast.Name(name):
            return Name(name, place)
        case ast.Constant(str(value)):
            return syntax.Text(value, place)
        case ast.Constant(int(value) | float(value)):
            return Number(value, repr(value), place)
        case ast.List(items):
            return syntax.Items(tuple(map(convert, items)), place)
        case ast.Starred(item):
            return Spread(convert(item), place)
        case ast.ListComp(item, [ast.comprehension(ast.Name(target), source, conditions)]):
            return syntax.Comprehension(convert(item), target, convert(source), tuple(map(convert, conditions)), place)
        case ast.UnaryOp(operator, operand):
            return syntax.Unary("not" if isinstance(operator, ast.Not) else "-", convert(operand), place)
        case ast.BinOp(left, operator, right):
            return syntax.Binary(BINARY[type(operator)], convert(left), convert(right), place)
        case ast.Compare(left, operators, operands):
            return syntax.Comparison(tuple(map(convert, (left, *operands))), tuple(COMPARISONS[type(item)] for item in operators), place)
        case ast.BoolOp(operator, operands):
            return syntax.Logic("and" if isinstance(operator, ast.And) else "or", tuple(map(convert, operands)), place)
        case ast.IfExp(condition, yes, no):
            return syntax.Conditional(convert(condition), convert(yes), convert(no), place)
        case ast.Subscript(source, ast.Slice(start, stop)):
            return syntax.Slice(convert(source), start and convert(start), stop and convert(stop), place)
        case ast.Subscript(source, index):
            return syntax.Index(convert(source), convert(index), place)
        case ast.Call(ast.Name(function), arguments):
            return syntax.Call(function, tuple(map(convert, arguments)), place)
    raise AssertionError(ast.dump(node))


def value(text: str, **names: Value | None) -> Value | None:
    """Returns the value of a text."""
    return evaluate(read(text), names)


def reason(text: str, **names: Value | None) -> str:
    """Returns the reason why a text has no value."""
    with pytest.raises(Unevaluable) as caught:
        evaluate(read(text), names)
    return caught.value.reason


def tensor(shape: tuple[Any, ...] | None) -> Tensor:
    return Tensor(Fact(FLOAT, shape))


def indices(elements: tuple[Any, ...]) -> Tensor:
    return Tensor(Fact(INT64, (len(elements),), ints=elements))


# --- expressions of every sort, at random; each is one that Python has a value for, or an error ---

Draw = Callable[[st.SearchStrategy[Any]], Any]

INTEGER_FORMS = (
    "({i} + {i})", "({i} - {i})", "({i} * {i})", "({i} // {i})", "({i} % {i})", "({i} // 2)", "({i} % 3)", "({i} ** 2)", "(2 ** {i})", "-{i}", "abs({i})",
    "min({i}, {i})", "max({i}, {i})", "min({l})", "max({l})", "sum({l})", "prod({l})", "len({l})", "{l}[{i}]", "{l}[0]", "dim({x}, {i})", "dim({x}, -1)",
    "rank({x})", "elements({x})", "({i} if {c} else {i})", "bound({i}, {s})", "index({l}, {i})", "count({l}, {i})", "floor({f})", "ceil({f})", "round({f})",
    "floor({i})", "normalized({i}, rank({x}))", "bits({t})",
)  # fmt: skip
LIST_FORMS = (
    "[{i}, {i}]", "[{i}, *{l}]", "({l} + {l})", "{l}[{i}:]", "{l}[:{i}]", "{l}[{i}:{i}]", "[{j} for j in {l}]", "[{j} for j in {l} if {d}]", "sorted({l})",
    "reversed({l})", "unique({l})", "range({i})", "range({i}, {i})", "range({i}, {i} + 3)", "range({i}, {i}, {i})", "repeat({i}, {i})", "ones({l})",
    "zeros({i})", "shape({x})", "values({k})", "inverse({l})", "normalized({l}, rank({x}))", "broadcast({l}, {l})", "({l} if {c} else {l})",
)  # fmt: skip
CONDITION_FORMS = (
    "({i} < {i})", "({i} <= {i})", "({i} > {i})", "({i} >= {i})", "({i} == {i})", "({i} != {i})", "({i} <= {i} < {i})", "({l} == {l})", "({l} != {l})",
    "({i} in {l})", "({i} not in {l})", "(not {c})", "({c} and {c})", "({c} or {c})", "({c} and {c} and {c})", "all([{d} for j in {l}])",
    "any([{d} for j in {l}])", "is_permutation({l}, {i})", "broadcasts_to({l}, {l})", "same_without_ones({s2}, {s2})", "moves_only_ones({l}, {s2})",
    "({t} == {t})", "floating({t})", "signed({t})", "integral({t})", "({f} < {f})", "({f} == {i})", "({c} if {c} else {c})", "lossless({t}, {t})",
)  # fmt: skip
FLOAT_FORMS = ("({f} + {f})", "({f} * {i})", "({f} / {f})", "({i} / {i})", "-{f}", "sqrt({f})", "float({i})", "abs({f})", "exp({f})", "({f} if {c} else {f})")
LEAVES = {
    "i": ("0", "1", "2", "-1", "3", "N", "M", "n", "u"),
    "s": ("N", "M", "3", "(N + 1)", "(2 * M)"),
    "l": ("[]", "[1]", "p", "q", "r", "l", "shape(x)", "values(k)"),
    "s2": ("shape(x)", "shape(y)", "[1, N]", "[N]", "[N, 1, 3]", "[3]", "[M, 3]", "[1, 1, N]", "[N, M]"),
    "c": ("(N < 1)", "(n == 2)", "(u == 1)", "(0 <= N)", "b"),
    "f": ("f", "g", "1.5", "-2.0", "0.0"),
    "t": ("T", "U", "float16", "uint8"),
    "x": ("x", "y", "z"),
    "k": ("k",),
}
FORMS = {"i": INTEGER_FORMS, "l": LIST_FORMS, "c": CONDITION_FORMS, "f": FLOAT_FORMS}


def grown(draw: Draw, sort: str, depth: int, inside: bool = False) -> str:
    """Draws an expression of a sort.

    `j` and `d` are integers and conditions inside a comprehension, which may name `j`.
    """
    if sort in "jd":
        return grown(draw, {"j": "i", "d": "c"}[sort], depth, True)
    if inside and sort == "i" and draw(st.integers(0, 2)) == 0:
        return "j"
    if depth == 0 or sort not in FORMS:
        return draw(st.sampled_from(LEAVES[sort]))
    form: str = draw(st.sampled_from(FORMS[sort]))
    text = ""
    for position, part in enumerate(form.replace("}", "{").split("{")):
        # Forms with a comprehension bind j themselves, and their source is outside it.
        text += grown(draw, part, depth - 1, inside and "for j" not in form) if position % 2 else part
    return text


@st.composite
def expressions(draw: Draw, sorts: str = "ilcf") -> str:
    return grown(draw, draw(st.sampled_from(sorts)), draw(st.integers(1, 3)))


SIZES = st.fixed_dictionaries({"N": st.integers(0, 5), "M": st.integers(0, 5)})
DIMS = st.sampled_from([0, 1, 2, 3, 4, N, M, dims.add(N, 1), dims.mul(N, 2), dims.mul(N, M), dims.floordiv(N, 2), None])
SMALL = st.integers(-2, 4)
CODES = [code.code for code in DTYPES.values() if code.code not in (TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.COMPLEX128)]

# The same names twice, symbolic or unknown, and known; and the sizes of the known ones.
Environments = tuple[dict[str, Value | None], dict[str, Value | None], dict[str, int]]


@st.composite
def environments(draw: Draw) -> Environments:
    """Draws values of all names that the leaves use.

    The first are symbolic or unknown, the second are known values at some sizes, the third are
    these sizes.
    """
    sizes = draw(SIZES)

    def at(item: Any) -> Any:
        return draw(st.integers(0, 4)) if item is None else dims.evaluate(item, sizes)

    def both(items: Any) -> tuple[Any, Any]:
        return items, tuple(map(at, items))

    shapes = {name: both(draw(st.lists(DIMS, max_size=3).map(tuple))) for name in "xy"}
    shapes["z"] = (None, tuple(draw(st.lists(st.integers(0, 3), max_size=3))))
    elements = both(draw(st.lists(DIMS, max_size=3).map(tuple)))
    q = both((None, 2))
    r = both(draw(st.lists(DIMS, max_size=4).map(tuple)))
    permutation = tuple(draw(st.permutations(range(draw(st.integers(0, 3))))))
    code, other = draw(st.sampled_from(CODES)), draw(st.sampled_from(CODES))
    pairs: dict[str, tuple[Any, Any]] = {
        "N": (N, sizes["N"]), "M": (M, sizes["M"]), "n": (2, 2), "u": (None, draw(SMALL)), "p": (permutation, permutation), "q": q, "r": r,
        "l": (None, tuple(draw(st.lists(SMALL, max_size=3)))), "b": (None, draw(st.booleans())),
        "f": (0.5, 0.5), "g": (None, draw(st.sampled_from((0.0, -1.5)))),
        "T": (DType(code), DType(code)), "U": (None, DType(other)),
        "k": (indices(elements[0]), indices(elements[1])),
    }  # fmt: skip
    pairs |= {name: (tensor(known), tensor(exact)) for name, (known, exact) in shapes.items()}
    return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}, sizes


def covers(found: Value | None, exact: Value | None, sizes: Mapping[str, int]) -> bool:
    """Tells whether a result with symbolic sizes is true of the value at `sizes`."""
    if found is None:
        return True
    if isinstance(found, Poly):
        return dims.evaluate(found, sizes) == exact
    if is_list(found):
        return is_list(exact) and len(found) == len(exact) and all(covers(a, b, sizes) for a, b in zip(found, exact, strict=True))
    return type(found) is type(exact) and (found == exact or found != found)

"""The rule language's text: what is read, that nothing is lost when it is shown again, and that no
text breaks the reader.
"""

import re
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eqsat.language import syntax
from eqsat.language.parse import parse
from eqsat.language.printer import expression, show_file
from eqsat.language.problems import RuleErrors
from eqsat.language.resolve import load
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Binary, Call, Comparison, Guard, Index, Items, Name, Number, Rule, RuleFile, Term, Type
from tests.support.rule_page import PAGE


def one(text: str) -> Rule:
    """The only rule of a file."""
    (rule,) = parse(text, "one.rules").rules
    return rule


def side(text: str) -> syntax.Expression:
    """What is read of an expression that stands on the right."""
    return one(f"exact rule one:\n    Neg(x) => {text}\n").right[0].value


def where(text: str) -> tuple[syntax.Condition, ...]:
    return one(f"exact rule one:\n    Neg(x) => x\n    where {text}\n").conditions


# --- the page that defines the language ---


def test_the_page_is_shown_as_it_is_written() -> None:
    assert show_file(parse(PAGE, "page.rules")) == PAGE


def test_the_page_resolves() -> None:
    resolved = {found.rule.name: found for found in load(PAGE, "page.rules")}
    assert len(resolved) == 8
    assert resolved["matmul-matmul"].roots == ("y1", "y2")
    assert resolved["add-add-const"].roots == ("",)
    assert resolved["conv-batchnorm"].sorts == {
        **dict.fromkeys(("x", "w", "b", "scale", "shift", "mean", "var", "s"), Sort.TENSOR),
        "e": Sort.FLOAT,
        "p": Sort.ATTRIBUTES,
        "T": Sort.DTYPE,
        "m": Sort.INTEGER,
        "k": Sort.LIST,
    }
    assert resolved["slice-concat-head"].sorts == {"x": Sort.TENSOR, **dict.fromkeys("aij", Sort.INTEGER)}


def test_a_rule_knows_its_text() -> None:
    rule = parse(PAGE, "rules/page.rules").rules[1]
    assert rule.file == "rules/page.rules" and rule.documentation == ("A missing bias is a zero bias, so no other rule has to mention its absence.",)
    assert rule.source.split("\n")[0] == "real rule conv-zero-bias:" and rule.source.endswith("w: T[6, 4, 3, 3]")
    assert PAGE.split("\n")[rule.place.line - 1] == "real rule conv-zero-bias:"


def test_the_name_of_a_group_is_the_stem_of_its_file() -> None:
    assert parse("", "rules/shape.rules") == RuleFile("shape", (), ())


# --- what resolving finds ---


@pytest.mark.parametrize(
    "text, roots, sorts",
    [
        ("Slice(Neg(x), s, e, a?) => Neg(Slice(x, s, e, a))\n    test x: T[4], s = [0], e = [1]", [""], {"s": Sort.LIST, "a": Sort.LIST}),
        ("CumSum(Neg(x), i) => Neg(CumSum(x, i))\n    test x: T[4], i = 0", [""], {"i": Sort.INTEGER}),
        ("Cast<to = T>(Cast<to = U>(x)) => Cast<to = T>(x)\n    where lossless(T, U)\n    test x: T[4], T = float, U = double", [""], {"T": Sort.DTYPE}),
        ('Pad<mode = m>(Neg(x), p) => Neg(Pad<mode = m>(x, p))\n    test x: T[4], p = [0, 1], m = "edge"', [""], {"m": Sort.STRING}),
        ("Concat<axis = a>(..xs) => Concat<axis = a>(..xs)\n    test xs: T[4] T[3], a = 0", [""], {"xs": Sort.TENSORS}),
        ("p, _ = Split(_, _)\n    y = Neg(p)\n => y = Relu(p)\n    test _: T[4]", ["y"], {"p": Sort.TENSOR}),
        ("y = Neg(x)\n    z = Relu(x)\n => s = Abs(x)\n    z = Add(s, s)\n    y = s\n    test x: T[4]", ["y", "z"], {"s": Sort.TENSOR}),
        ("Clip(Neg(x), a?, b?) => Clip(x, a, b)\n    test x: T[4]", [""], {"a": Sort.TENSOR}),
        ("Clip(Neg(x), , b) => Clip(x, , b)\n    test x: T[4], b: T[]", [""], {"b": Sort.TENSOR}),
        (
            "Add(Relu(x), _) => Relu(x)\n    where n = dim(x, 0), l = [n] + [2]\n          n in l, f = sqrt(n), f < 2\n    test x: T[4], _: T[]",
            [""],
            {"f": Sort.FLOAT},
        ),
        ("s = Shape(x)\n    y = Reshape(_, s)\n => y = Reshape(x, s)\n    test x: T[4], _: T[4]", ["y"], {"s": Sort.TENSOR}),
        ("Reshape(Reshape(x, [n, ..k]), [n, ..k]) => Reshape(x, [n, ..k])\n    test x: T[4], n = 2, k = [2]", [""], {"n": Sort.INTEGER, "k": Sort.LIST}),
        ("Mul(x, ~sqrt(2)) => Mul(x, int64(2))\n    test x: T[4]", [""], {"x": Sort.TENSOR}),
        ("Add(MaxPool<..p>(x), MaxPool<..p>(y)) => Add(MaxPool<..p>(y), MaxPool<..p>(x))\n    test x: T[4], y: T[4]", [""], {"p": Sort.ATTRIBUTES}),
        ("Reshape(x, [n, m]) => x\n    where x: _[n, m]\n    test x: T[2, 3]", [""], {"n": Sort.INTEGER}),
        ("Squeeze(x, k) => Squeeze(x, [i for i in k])\n    where [i for i in k] == k\n    test x: T[1], k = [0]", [""], {"k": Sort.LIST}),
        ("Neg(Neg(x)) <=> t\n    where s = Abs(x)\n          t = Relu(s)\n    test x: T[4]", [""], {"t": Sort.TENSOR}),
        ("Neg(Add(x, y)) <=> Add(s, Neg(y))\n    where s = Neg(x)\n    test x: T[4], y: T[4]", [""], {"s": Sort.TENSOR}),
    ],
)
def test_names_have_sorts(text: str, roots: list[str], sorts: dict[str, Sort]) -> None:
    (resolved,) = load(f"exact rule right:\n    {text}\n", "right.rules")
    assert list(resolved.roots) == roots
    assert {name: resolved.sorts[name] for name in sorts} == sorts


# --- what is read ---


@pytest.mark.parametrize(
    "text, tree",
    [
        ("x[1 + 2 * -3 ** n]", "x[(1 + (2 * (-(3 ** n))))]"),
        ("f(a - b - c // d % e)", "f(((a - b) - ((c // d) % e)))"),
        ("f(2 ** -x ** y)", "f((2 ** (-(x ** y))))"),
        ("f(not a == b and c or d)", "f((((not (a == b)) and c) or d))"),
        ("f(a if b else c if d else e)", "f((a if b else (c if d else e)))"),
        ("f(a not in b)", "f((a not in b))"),
        ("f(-x[0][1:])", "f((-((x[0])[1:])))"),
    ],
)
def test_what_binds_stronger(text: str, tree: str) -> None:
    """`tree` says the same in parentheses."""
    assert side(text) == side(tree)
    assert expression(side(tree)) == text


def test_expressions() -> None:
    n, k = Name("n"), Name("k")
    assert side("f(0 <= n < 3)") == Call("f", (Comparison((Number(0, "0"), n, Number(3, "3")), ("<=", "<")),))
    assert side("[n, ..k]") == Items((n, syntax.Spread(k)))
    assert side("[q[i] for i in k if i > 0 if n]") == syntax.Comprehension(
        Index(Name("q"), Name("i")), "i", k, (Comparison((Name("i"), Number(0, "0")), (">",)), n)
    )
    assert side("k[:]") == syntax.Slice(k, None, None) and side("k[n:]") == syntax.Slice(k, n, None) and side("k[:n]") == syntax.Slice(k, None, n)
    assert side("f(n - 1, -1, - n)") == Call("f", (Binary("-", n, Number(1, "1")), Number(-1, "-1"), syntax.Unary("-", n)))
    assert side("T(0)") == syntax.Constant("T", Number(0, "0")) and side("int64(0)") == syntax.Constant("int64", Number(0, "0"))
    assert side("float(0)") == Call("float", (Number(0, "0"),))
    assert side("[1.5e-3, 2e3, -9223372036854775808]") == Items((Number(0.0015, ""), Number(2000.0, ""), Number(-(2**63), "")))
    assert side(r'f("a \"b\" \\ # c")') == Call("f", (syntax.Text('a "b" \\ # c'),))


def test_a_list_may_be_long() -> None:
    """Only what is nested is bounded."""
    assert expression(side("[" + ", ".join(["-1 + n"] * 300) + "]")).count("n") == 300
    assert len(where("\n ".join(["n + 1 == 2"] * 300))) == 300


def test_terms() -> None:
    x = Name("x")
    assert side("Conv<group = g, ..p>(x, _, b?)") == Term("Conv", (syntax.Attribute("group", Name("g")),), "p", (x, syntax.Wildcard(), syntax.Maybe("b")))
    assert side("Clip(x, , ~sqrt(2))") == Term("Clip", (), None, (x, None, syntax.Near(Call("sqrt", (Number(2, "2"),)))))
    assert side("Constant<.._>()") == Term("Constant", (), "_", ())
    assert side("com.microsoft.Gelu(..xs)") == Term("Gelu", (), None, (syntax.Spread(Name("xs")),), "com.microsoft")
    assert side("Relu(x)[0]") == Index(Term("Relu", (), None, (x,)), Number(0, "0"))


def test_conditions() -> None:
    assert where("w: T[m, .._], x: _, y: float16[]") == (
        syntax.Judgement("w", Type("T", (Name("m"), syntax.Spread(syntax.Wildcard())))),
        syntax.Judgement("x", Type("_", None)),
        syntax.Judgement("y", Type("float16", ())),
    )
    split = Term("Split", (), None, (Name("x"), Name("s")))
    assert where("ok\n a, _, b = Split(x, s), const w") == (Guard(Name("ok")), syntax.Definition(("a", "_", "b"), split), syntax.Const("w"))
    assert where("const w, a, b = Split(x, s), ok") == (syntax.Const("w"), syntax.Definition(("a", "b"), split), Guard(Name("ok")))


def test_tests() -> None:
    rule = one('exact rule one:\n    Neg(x) => x\n    test x: T[2, 3], _: T[] float[1]\n         T[4],\n    e = 0.5, xs:\n    test m = "edge", T = int8\n')
    first, second = rule.tests
    sizes = Number(2, "2"), Number(3, "3")
    assert first.given == (
        syntax.Given("x", (Type("T", sizes),)),
        syntax.Given("_", (Type("T", ()), Type("float", (Number(1, "1"),)), Type("T", (Number(4, "4"),)))),
        syntax.Given("e", value=Number(0.5, "0.5")),
        syntax.Given("xs"),
    )
    assert second.given == (syntax.Given("m", value=syntax.Text("edge")), syntax.Given("T", value=Name("int8")))


def test_line_breaks() -> None:
    """A line goes on inside brackets, and behind what can not end it."""
    left = "exact rule one:\n\n  y =\n    Neg(\n x\n)\n\n  =>\n  y = x\n\n"
    where = "  where a <\n b,\n const x\n   dim(x,\n\n 0) == 1 +\n 2\n\n\n"
    rule = one(left + where + "  test x:\n T[2],\n y: T[3]\n")
    assert rule == one("exact rule one:\n y = Neg(x) => y = x\n where a < b, const x, dim(x, 0) == 1 + 2 test x: T[2], y: T[3]")


def test_windows_line_ends_and_byte_order_mark() -> None:
    assert parse("\ufeff" + PAGE.replace("\n", "\r\n"), "page.rules") == parse(PAGE, "page.rules")


def test_comments() -> None:
    text = "# about\n#\n#   the file\n\n#no blank\nexact rule a:\n    Neg(x) => x\n\n  # first  \n  # second\nreal rule b:\n    Neg(x) => x\n"
    file = parse(text, "comments.rules")
    assert file.preamble == ("about", "", "  the file")
    assert [rule.documentation for rule in file.rules] == [("no blank",), ("first", "second")]
    assert parse("# only a comment", "comments.rules").preamble == ("only a comment",)


def test_lark_is_loaded_when_a_rule_is() -> None:
    code = "import sys; from eqsat.language.parse import parse; parse('# nothing', ''); assert 'lark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- any text ---


def read(text: str) -> None:
    """Either rules or errors with their places, and nothing else."""
    try:
        load(text, "any.rules")
    except RuleErrors as error:
        lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        for problem in error.problems:
            assert 1 <= problem.place.line <= len(lines), problem
            assert 1 <= problem.place.column <= len(lines[problem.place.line - 1]) + 1, problem
            assert not re.search(r"__ANON|LPAR|RSQB|NEWLINE|[$]END", problem.message), problem


@given(st.text())
@example("exact rule")
@example("real rule a")
@example("rule :\n=>")
@example("exact rule a:\n=><=>")
@example("exact rule a:\n    where")
@example("exact rule a:\n    test")
def test_any_text_is_read_or_refused(text: str) -> None:
    read(text)


WORDS = "and or not in if else for where test const rule exact real x y T _ Add Split Conv float rank(x) Slice(x, [i], [j])"
SYMBOLS = '[ ] ( ) < > , : = == => <=> .. ? ~ + - * ** // 0 1 0.5 1e999 "s" #'
TOKENS = st.sampled_from([*WORDS.split(), *SYMBOLS.split(), "\n", "\n    ", "\t", "exact rule a:\n"])


@given(st.lists(TOKENS, max_size=40).map(" ".join))
def test_any_tokens_are_read_or_refused(text: str) -> None:
    read("exact rule any:\n    " + text)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_damaged_rules_are_read_or_refused(data: st.DataObject) -> None:
    text = PAGE
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(len(text), begin + data.draw(st.integers(0, 12)))
        text = text[:begin] + data.draw(st.text(max_size=2) | TOKENS) + text[end:]
    read(text)

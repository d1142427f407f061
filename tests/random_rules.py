"""Rules of every shape that the grammar has, for property tests; most of them mean nothing."""

from typing import Any

from hypothesis import strategies as st

from eqsat.language import syntax, values
from eqsat.language.syntax import Binary, Call, Comparison, Guard, Index, Items, Name, Number, Rule, RuleFile, Term, Type

DTYPE_NAMES = frozenset(values.DTYPES)
RESERVED = frozenset("and or not in if else for where test const rule".split())
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,3}", fullmatch=True).filter(lambda name: name not in RESERVED)
DTYPES = st.sampled_from(["T", "U", "T1"])
OPERATORS = st.sampled_from(["Add", "LRN", "Conv", "If", "Or", "BiasGeluGrad_dX"])
NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
LINE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])).map(lambda line: line.rstrip(" "))
FUNCTIONS = NAMES.filter(lambda name: name not in DTYPE_NAMES)


def number(value: float) -> Number:
    return Number(value, repr(value))


def several(item: Any, least: int = 0, most: int = 3) -> Any:
    return st.lists(item, min_size=least, max_size=most).map(tuple)


def negated(value: syntax.Expression) -> syntax.Expression:
    """A minus before a literal is part of the literal."""
    return value if isinstance(value, Number) and not value.text.startswith("-") else syntax.Unary("-", value)


def extend(inner: Any) -> Any:
    item = inner | inner.map(syntax.Spread)
    comparisons = several(st.sampled_from([*"== != < <= > >= in".split(), "not in"]), 1, 2).flatmap(
        lambda operators: st.builds(Comparison, st.tuples(*[inner] * (len(operators) + 1)), st.just(operators))
    )
    return st.one_of(
        st.builds(Items, several(item)),
        st.builds(syntax.Comprehension, inner, NAMES, inner, several(inner, most=2)),
        inner.map(negated),
        st.builds(syntax.Unary, st.just("not"), inner),
        st.builds(Binary, st.sampled_from("+ - * / // % **".split()), inner, inner),
        comparisons,
        st.builds(syntax.Logic, st.sampled_from(["and", "or"]), several(inner, 2)),
        st.builds(syntax.Conditional, inner, inner, inner),
        st.builds(Index, inner, inner),
        st.builds(syntax.Slice, inner, st.none() | inner, st.none() | inner),
        st.builds(Call, FUNCTIONS, several(inner)),
        st.builds(syntax.Constant, DTYPES | st.just("int64"), inner),
        st.builds(
            Term,
            OPERATORS,
            several(st.builds(syntax.Attribute, NAMES, inner), most=2),
            st.none() | NAMES | st.just("_"),
            several(st.none() | item | inner.map(syntax.Near) | NAMES.map(syntax.Maybe)).map(without_empty_end),
            st.sampled_from(["", "com.microsoft", "ai.onnx.ml"]),
        ),
    )


def without_empty_end(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return inputs


EXPRESSIONS = st.recursive(
    st.one_of(NAMES.map(Name), DTYPES.map(Name), st.just(syntax.Wildcard()), NUMBERS.map(number), LINE.map(syntax.Text)), extend, max_leaves=12
)
TARGETS = NAMES | st.just("_")
TYPES = st.builds(Type, DTYPES | st.just("_") | st.just("float16"), st.none() | several(EXPRESSIONS | EXPRESSIONS.map(syntax.Spread)))
CONDITIONS = st.one_of(
    st.builds(syntax.Judgement, NAMES, TYPES),
    st.builds(syntax.Const, NAMES),
    st.builds(Guard, EXPRESSIONS),
    st.builds(syntax.Definition, several(TARGETS | DTYPES, 1), EXPRESSIONS),
)
GIVEN = st.builds(syntax.Given, TARGETS, several(TYPES)) | st.builds(syntax.Given, NAMES | DTYPES, st.just(()), EXPRESSIONS)
SIDES = several(st.builds(syntax.Line, several(TARGETS), EXPRESSIONS), 1, 2)
RULES = st.builds(
    Rule,
    st.from_regex(r"[A-Za-z0-9_]+(-[a-z0-9]+){0,2}", fullmatch=True),
    st.sampled_from(syntax.Label),
    several(LINE),
    SIDES,
    SIDES,
    st.booleans(),
    several(CONDITIONS),
    several(st.builds(syntax.Test, several(GIVEN, 1)), most=2),
    st.none() | EXPRESSIONS,
)
FILES = st.builds(RuleFile, st.just("drawn"), several(LINE), several(RULES))

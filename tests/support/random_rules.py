"""Rules of every form that the grammar has, for property tests; most of them mean nothing."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from hypothesis import strategies as st

from eqsat.language import syntax, values
from eqsat.language.syntax import Binary, Call, Comparison, Guard, Index, Items, Name, Number, Rule, RuleFile, Term, Type

DTYPE_NAMES = frozenset(values.DTYPES)
RESERVED = frozenset("and or not in if else for where test const rule def mirrored".split())
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
    """Negates an expression other than a literal, whose minus would be part of it."""
    return value if isinstance(value, Number) and not value.text.startswith("-") else syntax.Unary("-", value)


def extend(inner: Any) -> Any:
    item = inner | inner.map(syntax.Spread)
    comparisons = several(st.sampled_from([*"== != < <= > >= in".split(), "not in"]), 1, 2).flatmap(
        lambda operators: st.builds(Comparison, st.tuples(*[inner] * (len(operators) + 1)), st.just(operators))
    )
    mapped = st.builds(syntax.Mapped, inner, several(NAMES, 1), several(NAMES, 1))
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
            several(st.builds(syntax.Attribute, NAMES, inner | NAMES.map(syntax.Maybe)), most=2),
            st.none() | NAMES | st.just("_"),
            several(st.none() | item | inner.map(syntax.Near) | NAMES.map(syntax.Maybe) | mapped).map(without_empty_end),
            st.sampled_from(["", "com.microsoft", "ai.onnx.ml"]),
        ),
    )


def without_empty_end(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return inputs


def signed(sets: st.SearchStrategy[syntax.OperatorSet]) -> st.SearchStrategy[syntax.OperatorSet]:
    return st.builds(lambda part, removed: replace(part, removed=removed), sets, st.booleans())


def ranging(variables: tuple[str, ...]) -> st.SearchStrategy[syntax.Range]:
    """Draws a range of variables, whose choices have any number of operators."""
    choices = several(several(OPERATORS.map(Name), 1), 1)
    sets = st.builds(syntax.OperatorSet, NAMES, mirrored=st.booleans()) | st.builds(syntax.OperatorSet, st.just(""), choices, mirrored=st.booleans())
    return st.builds(syntax.Range, st.just(variables), st.builds(lambda first, rest: (first, *rest), sets, several(signed(sets))))


def applied(tree: Any, variables: frozenset[str] = frozenset()) -> Any:
    """Returns the rule with the variables of its ranges in place of operators.

    A constant of a data type of these names gets the type int64.
    """
    if isinstance(tree, Rule):
        variables = frozenset(name for part in tree.ranges for name in part.variables)
        parts = {name: applied(getattr(tree, name), variables) for name in ("left", "right", "conditions", "tests", "exact_if")}
        return replace(tree, **parts)
    if isinstance(tree, tuple):
        return tuple(applied(part, variables) for part in tree)
    if not is_dataclass(tree) or isinstance(tree, (type, syntax.Place)):
        return tree
    tree = replace(tree, **{field.name: applied(getattr(tree, field.name), variables) for field in fields(tree)})
    match tree:
        case Term("Or", domain="") if variables:
            return replace(tree, operator=min(variables))
        case syntax.Constant(dtype) if dtype in variables:
            return replace(tree, dtype="int64")
        case Name(name) | syntax.Type(name) if name in variables:
            return replace(tree, **{"name" if isinstance(tree, Name) else "dtype": "U1"})
        case _:
            return tree


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
RANGES = several(several(DTYPES | st.just("F"), 1).flatmap(ranging), most=2)
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
    st.just(()),
)
FAMILIES = st.builds(lambda rule, ranges: applied(replace(rule, ranges=ranges)), RULES, RANGES)
DEFINITIONS = st.builds(syntax.FileDefinition, NAMES, several((NAMES | DTYPES).map(Name)), EXPRESSIONS, several(LINE))
FILES = st.builds(RuleFile, st.just("drawn"), several(LINE), several(RULES | FAMILIES), several(DEFINITIONS))

"""What is shown of rules: it is read as the same rules, places lead into it, and its layout is the
canonical one.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from eqsat.language import syntax
from eqsat.language.parse import parse
from eqsat.language.printer import WIDTH, expression, show, show_file
from eqsat.language.problems import RuleErrors
from eqsat.language.resolve import load
from eqsat.language.syntax import Binary, Call, Comparison, Index, Items, Name, Rule, RuleFile, Term
from tests.support.random_rules import FILES, RULES, negated, number


def one(text: str) -> Rule:
    """The only rule of a file."""
    (rule,) = parse(text, "one.rules").rules
    return rule


def nodes(value: Any) -> Iterator[Any]:
    """All nodes of a tree."""
    if dataclasses.is_dataclass(value):
        yield value
        for field in dataclasses.fields(value):
            yield from nodes(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from nodes(item)


def shapes(a: syntax.Expression, b: syntax.Expression) -> list[syntax.Expression]:
    """An expression of each kind, made of two others."""
    return [
        *(Binary(operator, a, b) for operator in "+ - * / // % **".split()),
        Comparison((a, b), ("<",)),
        syntax.Logic("and", (a, b)),
        syntax.Logic("or", (a, b)),
        negated(a),
        syntax.Unary("not", a),
        syntax.Conditional(a, b, a),
        syntax.Conditional(b, a, b),
        Index(a, b),
        syntax.Slice(a, b, None),
        Items((a, syntax.Spread(b))),
        syntax.Comprehension(a, "i", b, (a,)),
        syntax.Comprehension(b, "i", a, (b,)),
        Call("f", (a, b)),
        Term("Add", (syntax.Attribute("axis", a),), None, (syntax.Near(b), a)),
    ]


def test_every_expression_in_every_other_is_read_as_the_same() -> None:
    leaves = [Name("n"), number(-2), number(2.5)]
    small = [*leaves, *(shape for leaf in leaves for shape in shapes(leaf, Name("m")))]
    lines = [shape for inner in small for shape in (*shapes(inner, Name("k")), *shapes(Name("k"), inner))]
    rules = [Rule(f"r{index}", syntax.Label.REAL, (), (syntax.Line((), line),), (syntax.Line((), line),), False, (), ()) for index, line in enumerate(lines)]
    file = RuleFile("all", (), tuple(rules))
    assert parse(show_file(file), "all.rules") == file


@pytest.mark.slow
@given(FILES)
def test_what_is_shown_is_read_as_the_same(file: RuleFile) -> None:
    text = show_file(file)
    read = parse(text, "drawn.rules")
    assert read == file
    assert show_file(read) == text


@given(RULES)
def test_places_lead_to_the_text(rule: Rule) -> None:
    text = show(rule)
    lines = text.split("\n")
    for node in nodes(one(text)):
        if not isinstance(node, syntax.Place | syntax.Test | Rule):
            line = lines[node.place.line - 1][node.place.column - 1 :]
            assert 0 < node.place.length <= len(line), node
            found = line[: node.place.length]
            if isinstance(node, syntax.Expression):
                shown = expression(node)
                assert found in (shown, f"({shown})"), node
            elif not isinstance(node, syntax.Given):
                assert show(rule).count(found), node


@given(RULES)
def test_parentheses_are_needed(rule: Rule) -> None:
    """Without any one pair of them, the text is no longer read as the same rule."""
    text = show(dataclasses.replace(rule, documentation=()))
    for begin, end in pairs(text):
        if not text[:begin].endswith(("_", ">")) and not text[:begin][-1:].isalnum():
            shorter = text[:begin] + " " + text[begin + 1 : end] + " " + text[end + 1 :]
            try:
                same = one(shorter) == dataclasses.replace(rule, documentation=())
            except RuleErrors:
                same = False
            assert not same, shorter


def pairs(text: str) -> Iterator[tuple[int, int]]:
    """The positions of parentheses that belong together, those in strings left out."""
    opened: list[int] = []
    quoted = escaped = False
    for position, character in enumerate(text):
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character == "(":
            opened.append(position)
        elif character == ")":
            yield opened.pop(), position


def test_long_rules_are_broken() -> None:
    name = "a" * 25
    term = f"Concat<axis = 0>({name}, {name}, {name})"
    conditions = ", ".join(f"const {name}{number}" for number in range(10))
    sizes = ", ".join(f"{name}{number}: T[2, 3]" for number in range(10))
    text = f"exact rule long:\n    {term} => {term}\n    where {conditions}\n    test {sizes}\n"
    shown = show_file(parse(text, "long.rules"))
    lines = shown.split("\n")
    assert max(map(len, lines)) <= WIDTH and lines[1:3] == [f"    {term}", f" => {term}"]
    assert [line[:10] for line in lines[3:6]] == ["    where ", " " * 10, " " * 10]
    assert [line[:10] for line in lines[6:9]] == ["          ", "    test a", "         a"]
    assert show_file(parse(shown, "long.rules")) == shown


def test_named_roots_stand_on_their_own_lines() -> None:
    text = "exact rule named:\n    y = Neg(Neg(x))\n => y = x\n    test x: T[2]\n"
    assert show_file(parse(text.replace("\n =>", " =>"), "named.rules")) == text


@given(RULES)
def test_any_rule_is_resolved_or_refused(rule: Rule) -> None:
    try:
        (resolved,) = load(show(rule), "any.rules")
        assert resolved.rule == rule
    except RuleErrors as error:
        assert {problem.rule for problem in error.problems} == {rule.name}

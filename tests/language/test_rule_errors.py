"""Wrong rule files: each file in `bad/` begins with the exact message that it must cause, as a
comment.
"""

import pickle
from pathlib import Path

import pytest

from eqsat.errors import InputError
from eqsat.language.parse import SIZE_LIMIT, decode, parse
from eqsat.language.problems import Problem, RuleErrors
from eqsat.language.resolve import duplicates, load, resolve
from eqsat.language.syntax import Place

BAD = sorted((Path(__file__).parent / "bad").glob("*.rules"))


def expected(text: str) -> list[str]:
    """The lines of the comment at the top of a file."""
    return [line.removeprefix("#").removeprefix(" ") for line in text.partition("\n\n")[0].split("\n")]


def message(text: str, file: str = "wrong.rules") -> str:
    with pytest.raises(RuleErrors) as caught:
        load(text, file)
    return str(caught.value)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert message(text, path.name).split("\n") == expected(text)


def test_there_are_bad_files() -> None:
    assert len(BAD) > 100


RIGHT = """exact rule right:
    Neg(Neg(x)) => x
    test x: T[2]
"""


@pytest.mark.parametrize(
    "text, position, law",
    [
        ("exact rule a:\n    Neg(\0x) => x\n", "2:9", "U+0000 is no character of a text"),
        ("# \x1b[31m red\n" + RIGHT, "1:3", "U+001B is no character of a text"),
        ("exact rule a:\r    Neg(x) => x\n", "1:14", "U+000D is no character of a text"),
        ("exact rule a:\n    Neg(x) => x\u2028\n", "2:16", "U+2028 is no character of a text"),
        ("exact rule a:\n    Neg(é) => x\n", "2:9", "`é` is no part of the language"),
        ('exact rule a:\n    Cast<to = "\\n">(x) => x\n', "2:15", 'a string ends with `"`'),
    ],
)
def test_characters_that_no_rule_has(text: str, position: str, law: str) -> None:
    text = message(text)
    (line,) = [line for line in text.split("\n") if line.startswith(f"wrong.rules:{position}: ")]
    assert law in line
    assert text.replace("\n", "").isprintable()


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(RuleErrors) as caught:
        decode("# é\n# ab".encode() + b"\xff", "wrong.rules")
    assert str(caught.value) == "wrong.rules:2:5: the text is not UTF-8"
    assert decode(b"# \xc3\xa9", "right.rules") == "# é"


@pytest.mark.parametrize("read", [lambda: decode(b"#" * (SIZE_LIMIT + 1), "large.rules"), lambda: parse("x" * (SIZE_LIMIT + 1), "large.rules")])
def test_a_file_that_is_too_large(read: object) -> None:
    assert callable(read)
    with pytest.raises(RuleErrors, match=r"large\.rules:1:1: a rule file has at most 4 MiB; split it"):
        read()


@pytest.mark.parametrize("inner", ["(", "[", "Neg(", "-", "not ", "x + ", "x ** ", "[x for x in ", "y if x else "])
def test_what_is_nested_too_deep(inner: str) -> None:
    for text in (inner * 10_000 + "x", "Neg(x) => " + inner * 10_000 + "x", "x" + "[0]" * 10_000):
        assert "nested more than 100 levels deep" in message(f"exact rule deep:\n    {text}\n").split("\n")[0]


def test_what_is_nested_as_deep_as_it_may_be() -> None:
    deep = "-(" * 49 + "n" + ")" * 49
    (resolved,) = load(f"exact rule deep:\n    Neg(Reshape(x, [n])) => Reshape(x, [{deep}])\n    test x: T[4], n = 4\n", "deep.rules")
    assert resolved.sorts["n"] == "integer"


def test_comparisons_in_comparisons_take_no_time() -> None:
    deep = "(" * 45 + "n == 1" + ") == (n == 1)" * 45
    load(f"exact rule deep:\n    Reshape(x, [n]) => Reshape(x, [n])\n    where {deep}\n    test x: T[4], n = 4\n", "deep.rules")


def test_a_chain_of_definitions_is_bounded() -> None:
    chain = "\n          ".join(f"s{number} = Neg(s{number + 1})" for number in range(2_000))
    text = f"exact rule chain:\n    Neg(x) => Relu(s0)\n    where {chain}\n    test x: T[1]\n"
    assert message(text).split("\n")[0] == "wrong.rules:103:11: rule chain: a rule has at most 100 conditions"


def test_definitions_that_double_take_no_time() -> None:
    chain = "\n          ".join(f"s{number + 1} = Add(s{number}, s{number})" for number in range(90))
    load(f"real rule chain:\n    Add(x, x) <=> Neg(s90)\n    where s0 = Neg(x)\n          {chain}\n    test x: T[1]\n", "chain.rules")


def test_a_file_of_nonsense_is_given_up() -> None:
    with pytest.raises(RuleErrors) as caught:
        parse("exact rule a:\n" * 10_000, "nonsense.rules")
    assert len(caught.value.problems) == 200


def test_a_long_line_is_shown_around_its_error() -> None:
    lines = message("exact rule long:\n    " + "Neg(x), " * 1000 + "\n").split("\n")
    assert all(len(line) < 200 for line in lines)
    line = "exact rule long:\n    Max(" + "x, " * 300 + "$" + ", x" * 300 + ") => x\n"
    _, source, caret = message(line).split("\n")
    assert source[caret.index("^")] == "$"


def test_errors_are_input_errors_in_order() -> None:
    problems = [Problem("b", Place(1, 1), "r", "fourth"), Problem("a", Place(2, 1), "r", "second"), Problem("a", Place(1, 9), "", "first")]
    error = RuleErrors([*problems, Problem("a", Place(2, 1), "r", "third")])
    assert isinstance(error, InputError)
    assert str(error).split("\n") == ["a:1:9: first", "a:2:1: rule r: second", "a:2:1: rule r: third", "b:1:1: rule r: fourth"]


def test_errors_cross_to_another_process() -> None:
    with pytest.raises(RuleErrors) as caught:
        load("exact rule a:\n    Neg(x) => y\n", "wrong.rules")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and copy.problems == caught.value.problems


def test_a_file_has_one_preamble() -> None:
    assert message("# about the file\n\n# and more\n\n" + RIGHT) == "wrong.rules:3:1: comments stand above a rule\n    # and more\n    ^"


def test_names_are_unique_across_files() -> None:
    files = [parse(RIGHT, "a.rules"), parse("\n" + RIGHT, "b.rules")]
    (problem,) = duplicates(files)
    assert str(problem).split("\n")[0] == "b.rules:2:12: rule right: another rule has this name, at a.rules:1"
    assert duplicates(files[:1]) == []


def test_resolve_reports_all_rules() -> None:
    text = "".join(f"exact rule r{number}:\n    Neg(x) => y\n    test x: T[2]\n\n" for number in range(20))
    with pytest.raises(RuleErrors) as caught:
        resolve(parse(text, "wrong.rules"))
    assert [problem.rule for problem in caught.value.problems] == [f"r{number}" for number in range(20) for _ in range(2)]


@pytest.mark.parametrize(
    ("text", "law"),
    [
        (f"exact rule {'a' * 10**6}:\n    Neg(Neg(x)) => x\n    test x: T[2]\n", "a name has at most 100 characters"),
        (f"exact rule a:\n    Neg(Neg({'x' * 10**6})) => y\n    test x: T[2]\n", "a name has at most 100 characters"),
        ("exact rule a:\n    Neg(Neg(x)) => x\n" + "    test x: T[2]\n" * 3000, "a rule has at most 100 test lines"),
        (f"exact rule a:\n    Neg(Neg(x)) => x\n    test x: T[{'1, ' * 2000}1]\n", "a tensor in a test line has at most 32 axes"),
    ],
)
def test_what_is_too_much_is_said_shortly(text: str, law: str) -> None:
    error = message(text)
    assert law in error and len(error) < 1000


def test_thousands_of_errors_are_counted() -> None:
    text = "".join(f"exact rule r{number}:\n    Neg(x) => y\n    test x: T[2]\n\n" for number in range(1000))
    lines = message(text).split("\n")
    assert lines[-1] == "and 1800 more errors" and sum(line.startswith("wrong.rules:") for line in lines) == 200

"""The rule language as plain data: parsers make it, the printer writes it, later stages read it.

Nothing here knows the meaning of operators and names. `Place` lets any stage point at the text.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TypeAlias

from eqsat.frozen import frozen


@frozen
class Place:
    """A place in a file. Line and column count from 1; `length` ends with the part's first line.

    A part from a `def` has the place of its call; `source` is the name of the `def`.
    """

    line: int
    column: int
    length: int = 1
    source: str = ""


NOWHERE = Place(0, 0)


# --- expressions of numbers, lists and strings, and terms, whose values are tensors ---


@frozen
class Name:
    """A variable of any sort, a data type `T` included, or the name of a data type (`float16`)."""

    name: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Wildcard:
    """`_`: any one value."""

    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Number:
    """A number with its minus, if any; `text` keeps its digits for the printer."""

    value: int | float
    text: str = field(compare=False)
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Text:
    """A string in double quotes."""

    value: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Spread:
    """`..xs`, `.._` or `..ones(k)` in a list, type or inputs: the rest, or the items of a list."""

    item: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Items:
    """`[a, 1, ..k]`."""

    items: tuple[Expression, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Comprehension:
    """`[item for target in source if condition]`; all conditions must hold."""

    item: Expression
    target: str
    source: Expression
    conditions: tuple[Expression, ...] = ()
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Unary:
    """`-x`, where x is no plain number, or `not x`."""

    operator: str
    operand: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Binary:
    """One of `+ - * / // % **` between two values; lists can be added."""

    operator: str
    left: Expression
    right: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Comparison:
    """`0 <= i < n`, with `== != < <= > >= in` and `not in`: all comparisons must hold."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Logic:
    """`a and b and c` or `a or b`."""

    operator: str
    operands: tuple[Expression, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Conditional:
    """`a if condition else b`."""

    condition: Expression
    yes: Expression
    no: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Index:
    """`x[i]`; negative numbers count from the end."""

    source: Expression
    index: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Slice:
    """`x[a:b]`, both ends optional."""

    source: Expression
    start: Expression | None
    stop: Expression | None
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Call:
    """A named function of the language: `dim(x, 0)`."""

    function: str
    arguments: tuple[Expression, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Near:
    """`~sqrt(2)` as an input on the left: a number up to rounding in the tensor's type."""

    value: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Maybe:
    """`x?` as an input or an attribute on the left: it may be absent."""

    name: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Mapped:
    """`[F(x, y) for x, y in ..xs, ..ys]`, an input or a list of results: a node for each item."""

    item: Expression
    targets: tuple[str, ...]
    sources: tuple[str, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Constant:
    """`T(0)`: a constant scalar of a data type."""

    dtype: str
    value: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Attribute:
    """`axis = a` between angle brackets."""

    name: str
    value: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Term:
    """`Conv<group = g, ..p>(x, w)`: an operator applied to inputs. `carried` is the name after `..`
    and stands for all other attributes.

    An input is a nested term, a name, `_`, a number, `Near`, `Maybe`, a list or other expression
    where ONNX passes integers, or a `Spread` or `Mapped` at the end. None is an input left empty:
    `Clip(x, , high)`.
    """

    operator: str
    attributes: tuple[Attribute, ...]
    carried: str | None
    inputs: tuple[Expression | None, ...]
    domain: str = ""
    place: Place = field(default=NOWHERE, compare=False, repr=False)


Expression: TypeAlias = (
    Name | Wildcard | Number | Text | Spread | Items | Comprehension | Unary | Binary | Comparison | Logic | Conditional | Index | Slice
    | Call | Near | Maybe | Mapped | Constant | Term
)  # fmt: skip


# --- rules ---


@frozen
class Line:
    """`a, _ = Split(x, s)`, `..ys = Split(x, s)` (`..ys` is one target), or a lone expression."""

    targets: tuple[str, ...]
    value: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Type:
    """`T[m, ..k]`; `dtype` is a variable, a data type's name, or `_`. Without `dims`: any shape."""

    dtype: str
    dims: tuple[Expression, ...] | None
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Judgement:
    """`w: T[m, ..k]`."""

    name: str
    type: Type
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Const:
    """`const w`."""

    name: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Guard:
    """A condition that must be known to hold."""

    condition: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Definition:
    """`s = Div(scale, c)` or `n = dim(x, 0)`: a name for the right side or later conditions."""

    targets: tuple[str, ...]
    value: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


Condition: TypeAlias = Judgement | Const | Guard | Definition


@frozen
class Given:
    """An entry of a test line: types of a tensor (several for `_` and `..xs`), or another value."""

    name: str
    types: tuple[Type, ...] = ()
    value: Expression | None = None
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Test:
    """A `test` line: an instance that must fire."""

    given: tuple[Given, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


class Label(StrEnum):
    """The promise of a rule, strongest first. Each includes those that follow."""

    EXACT = "exact"  # equal in every bit
    REAL = "real"  # equal in real arithmetic, whatever the left side reads
    FINITE = "finite"  # equal in real arithmetic if the left side reads no NaN and no infinity

    def covers(self, other: Label) -> bool:
        """Whether this promise includes another one."""
        order = list(Label)
        return order.index(self) <= order.index(other)


@frozen
class OperatorSet:
    """A family by its name, or choices in brackets: `removed` if a minus stands before it,
    `mirrored` if the operands of each operator change places. A choice has an operator for each
    variable of the range.
    """

    name: str  # "" for choices in brackets
    choices: tuple[tuple[Name, ...], ...] = ()
    removed: bool = False
    mirrored: bool = False
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Range:
    """`F in unary - [Not]` or `(F, G) in [(And, Or), (Or, And)]`: variables, and the operators that
    they range over together.
    """

    variables: tuple[str, ...]
    sets: tuple[OperatorSet, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@frozen
class Rule:
    """One rule of a file. Roots are lone expressions, or names that both sides define.

    A rule with `ranges` or lists of results is a family. `operators` are a member's choices for the
    variables, mirrored or not, and `results` is the length of its lists of results.
    """

    name: str
    label: Label
    documentation: tuple[str, ...]  # the comment lines above it, without "# "
    left: tuple[Line, ...]
    right: tuple[Line, ...]
    both: bool  # <=>
    conditions: tuple[Condition, ...]
    tests: tuple[Test, ...]
    exact_if: Expression | None = None  # a condition that makes the rule exact
    ranges: tuple[Range, ...] = ()
    operators: tuple[str, ...] = ()
    results: int | None = None
    file: str = field(default="", compare=False)
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    # The rule's own text, first line to last, without its documentation.
    source: str = field(default="", compare=False, repr=False)
    # The line of the file on which that text begins.
    begin: int = field(default=0, compare=False, repr=False)

    @property
    def family(self) -> str:
        """The name as written in the file: a member's name without the part in brackets."""
        return self.name.partition("[")[0]


@frozen
class FileDefinition:
    """`def f(a, b) = ...`: a shared part of the rules of a file."""

    name: str
    parameters: tuple[Name, ...]
    value: Expression
    documentation: tuple[str, ...] = ()
    file: str = field(default="", compare=False)
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    source: str = field(default="", compare=False, repr=False)
    begin: int = field(default=0, compare=False, repr=False)


@frozen
class RuleFile:
    """A file, which is a group of rules: its preamble of comment lines, definitions and rules."""

    name: str
    preamble: tuple[str, ...]
    rules: tuple[Rule, ...]
    definitions: tuple[FileDefinition, ...] = ()

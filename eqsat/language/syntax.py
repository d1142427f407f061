"""The rule language as plain data: what the parser makes, the printer writes, and every later stage reads.

Nothing here knows what an operator or a name means; `Place` leads back to the text, so that any stage can point at it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in its file: line and column count from 1, `length` is that of its first line's part."""

    line: int
    column: int
    length: int = 1


NOWHERE = Place(0, 0)


# --- expressions: numbers, lists, strings and the functions of them; and terms, whose values are tensors ---


@dataclass(frozen=True, slots=True)
class Name:
    """A variable: of a tensor, number, list, string, or data type (`T`); or the name of a data type (`float16`)."""

    name: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_`: any one thing."""

    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is written, a minus right before it included: `text` keeps its digits for the printer."""

    value: int | float
    text: str = field(compare=False)
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A string in double quotes."""

    value: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Spread:
    """`..xs`, `.._` or `..ones(k)` inside a list, a type or the inputs of an operator: all that remain, or all items of a list."""

    item: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Items:
    """`[a, 1, ..k]`."""

    items: tuple[Expression, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comprehension:
    """`[item for target in source if condition]`; all conditions must hold."""

    item: Expression
    target: str
    source: Expression
    conditions: tuple[Expression, ...] = ()
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x`, where x is no plain number, or `not x`."""

    operator: str
    operand: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """One of `+ - * / // % **` between two values; lists can be added."""

    operator: str
    left: Expression
    right: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`0 <= i < n`: operators `== != < <= > >= in` and `not in` between operands, all of which must hold."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Logic:
    """`a and b and c` or `a or b`."""

    operator: str
    operands: tuple[Expression, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    """`a if condition else b`."""

    condition: Expression
    yes: Expression
    no: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Index:
    """`x[i]`; negative numbers count from the end."""

    source: Expression
    index: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Slice:
    """`x[a:b]`, both ends optional."""

    source: Expression
    start: Expression | None
    stop: Expression | None
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A named function of the language: `dim(x, 0)`."""

    function: str
    arguments: tuple[Expression, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Near:
    """`~sqrt(2)` as an input on the left: a number that is met within the rounding of the tensor's data type."""

    value: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Maybe:
    """`x?` as an input on the left: it may be absent."""

    name: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """`T(0)`: a constant scalar of a data type."""

    dtype: str
    value: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Attribute:
    """`axis = a` between angle brackets."""

    name: str
    value: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Term:
    """`Conv<group = g, ..p>(x, w)`: an operator applied to inputs. `carried` is the name after `..`, that of all other attributes.

    An input is a nested term, a name, `_`, a number, `Near`, `Maybe`, a list or other expression where ONNX passes
    integers, or a `Spread` at the end. None is an input left empty: `Clip(x, , high)`.
    """

    operator: str
    attributes: tuple[Attribute, ...]
    carried: str | None
    inputs: tuple[Expression | None, ...]
    domain: str = ""
    place: Place = field(default=NOWHERE, compare=False, repr=False)


Expression: TypeAlias = (
    Name | Wildcard | Number | Text | Spread | Items | Comprehension | Unary | Binary | Comparison | Logic | Conditional | Index | Slice
    | Call | Near | Maybe | Constant | Term
)  # fmt: skip


# --- rules ---


@dataclass(frozen=True, slots=True)
class Line:
    """`a, b = Split(x, s)`, or a lone expression (no targets). A target `_` is an output that nobody names."""

    targets: tuple[str, ...]
    value: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Type:
    """`T[m, ..k]`; `dtype` is a variable (`T`), the name of a data type, or `_`; no `dims`: any shape."""

    dtype: str
    dims: tuple[Expression, ...] | None
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Judgement:
    """`w: T[m, ..k]`."""

    name: str
    type: Type
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Const:
    """`const w`."""

    name: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that must be known to hold."""

    condition: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Definition:
    """`s = Div(scale, c)` or `n = dim(x, 0)`: a name for what the right side, or a later condition, uses."""

    targets: tuple[str, ...]
    value: Expression
    place: Place = field(default=NOWHERE, compare=False, repr=False)


Condition: TypeAlias = Judgement | Const | Guard | Definition


@dataclass(frozen=True, slots=True)
class Given:
    """One entry of a test line: types of a tensor (several for `_` and for `..xs`), or the value of a number, list or string."""

    name: str
    types: tuple[Type, ...] = ()
    value: Expression | None = None
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Test:
    """A `test` line: an instance that must fire."""

    given: tuple[Given, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


class Label(StrEnum):
    """What a rule promises of its two sides, the strongest promise first: each includes those that follow."""

    EXACT = "exact"  # equal in every bit
    REAL = "real"  # equal in real arithmetic, whatever the left side reads
    FINITE = "finite"  # equal in real arithmetic where the left side reads no NaN and no infinity

    def covers(self, other: Label) -> bool:
        """Whether this promise includes another one."""
        order = list(Label)
        return order.index(self) <= order.index(other)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a file. `left` and `right` are lines: roots are lone expressions, or names that both sides define."""

    name: str
    label: Label
    documentation: tuple[str, ...]  # the comment lines above it, without "# "
    left: tuple[Line, ...]
    right: tuple[Line, ...]
    both: bool  # <=>
    conditions: tuple[Condition, ...]
    tests: tuple[Test, ...]
    exact_if: Expression | None = None  # of a rule that is not exact: a condition under which it is
    file: str = field(default="", compare=False)
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    source: str = field(default="", compare=False, repr=False)  # the rule's own text, first line to last, without its documentation


@dataclass(frozen=True, slots=True)
class RuleFile:
    """A file: comment lines at its top that no rule follows directly, and its rules. The file is the group."""

    name: str
    preamble: tuple[str, ...]
    rules: tuple[Rule, ...]

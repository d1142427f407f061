"""The sorts of expressions whose names are known. None stands for an expression that can have any
sort.

The sorter reports expressions that no values can give a meaning: unknown names and functions, wrong
numbers of arguments, and sorts that do not fit. The sort of a list does not tell the sort of its
items, so an item can have any sort.
"""

from __future__ import annotations

from eqsat.language import syntax
from eqsat.language.functions import FUNCTIONS, Function
from eqsat.language.naming import Names, with_article
from eqsat.language.printer import expression as shown
from eqsat.language.problems import nearest
from eqsat.language.schemas import standard_operators
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Expression
from eqsat.language.values import DTYPES

BOOLEAN, DTYPE, FLOAT, INTEGER, LIST, TENSOR, TENSORS = Sort.BOOLEAN, Sort.DTYPE, Sort.FLOAT, Sort.INTEGER, Sort.LIST, Sort.TENSOR, Sort.TENSORS
_NUMBERS = (INTEGER, FLOAT, None)


def fits(found: Sort | None, wanted: Sort | None) -> bool:
    """Whether a value of one sort can stand where another is expected. An integer is a number, and
    tensors are a list.
    """
    return found is None or wanted is None or found is wanted or (found, wanted) in ((INTEGER, FLOAT), (TENSORS, LIST))


class Sorter:
    """Finds the sorts of the expressions of one rule."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.report = names.report
        self._targets: list[str] = []  # names bound by the enclosing comprehensions

    def expect(self, value: Expression, wanted: Sort | None) -> Sort | None:
        """The sort of `value`, which must fit `wanted`."""
        return self._fit(value, self.sort(value), wanted)

    def _fit(self, value: Expression, found: Sort | None, wanted: Sort | None) -> Sort | None:
        if fits(found, wanted):
            return found
        assert found is not None and wanted is not None
        self.report.add(value.place, f"{shown(value)} is {with_article(found)} where {with_article(wanted)} is expected")
        return wanted

    def expect_list(self, value: Expression, of: Sort) -> None:
        """Checks that `value` is a list, and that its items fit `of` if their sort is known."""
        if isinstance(value, syntax.Items):
            self._items_of(value.items, of)
        else:
            self.expect(value, LIST)

    def _items_of(self, items: tuple[Expression, ...], of: Sort | None) -> None:
        for item in items:
            if isinstance(item, syntax.Spread):
                self.expect(item.item, LIST)
            elif self.expect(item, of) in (TENSOR, TENSORS):
                self.report.add(item.place, f"{shown(item)} is a tensor; lists are of numbers and strings")

    def sort(self, value: Expression) -> Sort | None:
        """The sort of an expression; None if it can be any, or if its problem was reported."""
        match value:
            case syntax.Name():
                return self._name(value)
            case syntax.Number(number):
                return FLOAT if isinstance(number, float) else INTEGER
            case syntax.Text():
                return Sort.STRING
            case syntax.Items(items):
                self._items_of(items, None)
                return LIST
            case syntax.Comprehension():
                return self._comprehension(value)
            case syntax.Unary("not", operand):
                self.expect(operand, BOOLEAN)
                return BOOLEAN
            case syntax.Unary(_, operand):
                return self._number(operand, self.sort(operand))
            case syntax.Binary():
                return self._binary(value)
            case syntax.Comparison():
                self._comparison(value)
                return BOOLEAN
            case syntax.Logic(_, operands):
                for operand in operands:
                    self.expect(operand, BOOLEAN)
                return BOOLEAN
            case syntax.Conditional():
                return self._conditional(value)
            case syntax.Index(source, index):
                self.expect(index, INTEGER)
                return TENSOR if self.expect(source, LIST) is TENSORS else None
            case syntax.Slice(source, start, stop):
                for end in (start, stop):
                    if end is not None:
                        self.expect(end, INTEGER)
                return self.expect(source, LIST)
            case syntax.Call():
                return self._call(value)
            case _:
                self.report.add(value.place, _strangers(value))
                return None

    def _name(self, value: syntax.Name) -> Sort | None:
        name, names = value.name, self.names
        if name in self._targets:
            return None
        names.use(name, value, value.place)
        if name in names.sorts:
            if names.sorts[name] is Sort.ATTRIBUTES:
                self.report.add(value.place, f"`..{name}` can only be carried over")
            elif name in names.made:
                self.report.add(value.place, f"{name} is made by the rule, and nothing is known of it before")
            return names.sorts[name]
        if name in DTYPES:
            return DTYPE
        names.unbound(name, value.place)
        return None

    def _number(self, value: Expression, found: Sort | None) -> Sort | None:
        if found not in _NUMBERS:
            self.report.add(value.place, f"{shown(value)} is {with_article(found)} where a number is expected")
            return None
        return found

    def _comprehension(self, value: syntax.Comprehension) -> Sort:
        self.expect(value.source, LIST)
        if value.target in self.names.sorts or value.target in self._targets or value.target in DTYPES:
            self.report.add(value.place, f"{value.target} means something else outside this list; choose another name")
        self._targets.append(value.target)
        self.sort(value.item)
        for condition in value.conditions:
            self.expect(condition, BOOLEAN)
        self._targets.pop()
        return LIST

    def _binary(self, value: syntax.Binary) -> Sort | None:
        left, right = self.sort(value.left), self.sort(value.right)
        if value.operator == "+" and LIST in (left, right):
            self._fit(value.left, left, LIST)
            self._fit(value.right, right, LIST)
            return LIST
        left, right = self._number(value.left, left), self._number(value.right, right)
        if None in (left, right):
            return None
        return INTEGER if (left, right) == (INTEGER, INTEGER) and value.operator != "/" else FLOAT

    def _comparison(self, value: syntax.Comparison) -> None:
        sorts = [self.sort(operand) for operand in value.operands]
        for index, operator in enumerate(value.operators):
            left, right = value.operands[index : index + 2]
            if operator in ("in", "not in"):
                self._fit(right, sorts[index + 1], LIST)
            elif operator in ("==", "!="):
                self._comparable(left, right, sorts[index], sorts[index + 1])
            else:
                self._number(left, sorts[index])
                self._number(right, sorts[index + 1])

    def _comparable(self, left: Expression, right: Expression, a: Sort | None, b: Sort | None) -> None:
        for operand, sort in ((left, a), (right, b)):
            if sort is TENSOR or sort is TENSORS:
                self.report.add(operand.place, f"{shown(operand)} is {with_article(sort)}; equal tensors have one name")
                return
        if not fits(a, b) and not fits(b, a):
            assert a is not None and b is not None
            self.report.add(left.place, f"{shown(left)} is {with_article(a)} and {shown(right)} {with_article(b)}: they are never equal")

    def _conditional(self, value: syntax.Conditional) -> Sort | None:
        self.expect(value.condition, BOOLEAN)
        yes, no = self.sort(value.yes), self.sort(value.no)
        if fits(yes, no):
            return None if yes is None else no
        if not fits(no, yes):
            assert yes is not None and no is not None
            self.report.add(value.place, f"this is {with_article(yes)} or {with_article(no)}; both must be alike")
        return yes

    def _call(self, value: syntax.Call) -> Sort | None:
        function = FUNCTIONS.get(value.function)
        if function is None:
            hint = nearest(value.function, [*FUNCTIONS, *standard_operators()])
            self.report.add(value.place, f"there is no function {value.function}{hint}")
            for argument in value.arguments:
                self.sort(argument)
            return None
        if not _takes(function, len(value.arguments)):
            self.report.add(value.place, f"{function.name} takes {_arity(function)}, not {len(value.arguments)}")
        if function.name == "given":
            self._given(value.arguments)
        for position, argument in enumerate(value.arguments):
            self.expect(argument, function.parameters[min(position, len(function.parameters) - 1)])
        return function.result

    def _given(self, arguments: tuple[Expression, ...]) -> None:
        for argument in arguments:
            if not isinstance(argument, syntax.Name) or argument.name not in self.names.absent:
                self.report.add(argument.place, f"{shown(argument)} is never absent; the left side says of a name that it may be by `?`")


def _takes(function: Function, count: int) -> bool:
    most = len(function.parameters)
    return most - function.optional <= count and (function.variadic or count <= most)


def _arity(function: Function) -> str:
    most = len(function.parameters)
    least = most - function.optional
    if function.variadic:
        return f"at least {least} argument{'s' * (least != 1)}"
    return f"{least} to {most} arguments" if least < most else f"{most} argument{'s' * (most != 1)}"


def _strangers(value: Expression) -> str:
    match value:
        case syntax.Wildcard():
            return "`_` stands in patterns; here a value is needed"
        case syntax.Term() | syntax.Constant():
            return f"{shown(value)} is a tensor that the rule makes, and nothing is known of it before"
        case _:
            return f"`{shown(value)}` is no value"

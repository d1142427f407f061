"""Left sides, name by name: the meaning of each name in the lines of a pattern.

Inputs bind tensors. Parameters and attributes bind integers and lists. Types bind data types, and
`..p` binds attributes. A computed expression is only compared, so it must read names that are bound
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from graphlib import CycleError, TopologicalSorter

from eqsat.frozen import mutable
from eqsat.language import syntax
from eqsat.language.naming import Names
from eqsat.language.printer import expression as shown
from eqsat.language.problems import Report
from eqsat.language.schemas import attribute_sort, item_sort, known_attributes, known_operator, parameter_sort
from eqsat.language.scope import names as mentioned
from eqsat.language.sorting import Sorter
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Expression, Place
from eqsat.language.values import DTYPES
from eqsat.traits import PARAMETERS


@mutable
class Left:
    """The contents of a left side, apart from the sorts of its names."""

    # By each name that a line defines, the line.
    targets: dict[str, syntax.Line] = field(default_factory=dict[str, syntax.Line])
    # Names of inputs that come from outside.
    tensors: dict[str, None] = field(default_factory=dict[str, None])
    # Tensors, parameters and attributes that may be absent.
    optional: dict[str, None] = field(default_factory=dict[str, None])
    # Names of lists, `..xs`.
    lists: dict[str, None] = field(default_factory=dict[str, None])
    # Lists that are mapped over together; none is empty.
    together: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    # Names that attributes and parameters bind.
    values: dict[str, None] = field(default_factory=dict[str, None])
    # The number of inputs written `_`.
    wildcards: int = 0
    # Whether some inputs are written `.._`.
    rest: bool = False
    # By name p, the first term with `..p`.
    carried: dict[str, syntax.Term] = field(default_factory=dict[str, syntax.Term])
    # False if a wrong term hides the meaning of its names.
    complete: bool = True


class LeftReader:
    """Reads a left side, and the judgements of `where`, into `names`."""

    def __init__(self, names: Names) -> None:
        self.left = Left()
        self.names = names
        self.report = names.report
        # Expressions to compare, each with its sort and the sort of its items. They are checked
        # when all names are bound.
        self._reads: list[tuple[Expression, Sort, Sort]] = []
        self._locals: list[tuple[str, syntax.Mapped]] = []  # names for the items of lists

    def side(self, lines: tuple[syntax.Line, ...]) -> None:
        """Binds all names in the lines."""
        for line in lines:
            for target in line.targets:
                if target in self.left.targets:
                    self.report.add(line.place, f"{target} is defined twice")
                elif target != "_":
                    self.left.targets[target] = line
                    self.names.bind(target, Sort.TENSOR, line, line.place)
        for line in lines:
            if isinstance(line.value, syntax.Term):
                self._term(line.value, max(1, len(line.targets)))
            else:
                self.report.add(line.value.place, f"a left side is made of operators; {shown(line.value)} matches everything")
                self._blur(line.value)
            if line.targets and not set(line.targets) - {"_"}:
                self.report.add(line.place, "this line names no output; name one that is used")
        for name, mapped in self._locals:
            if name in self.names.sorts:
                self.report.add(mapped.place, f"{name} means something else outside this list; choose another name")
        self._check_order(lines)

    def judge(self, judgement: syntax.Judgement) -> list[str]:
        """Binds the names in a typing judgement; returns them."""
        dtype = judgement.type.dtype
        if dtype != "_" and dtype not in DTYPES:
            self.names.bind(dtype, Sort.DTYPE, judgement.type, judgement.type.place)
        return [dtype, *self._pattern(judgement.type.dims or (), judgement.type.place)]

    def compare(self, sorter: Sorter) -> None:
        """Checks the computed expressions of the left side, once all names have their sorts."""
        for value, sort, items in self._reads:
            if sort is Sort.LIST:
                sorter.expect_list(value, items)
            else:
                sorter.expect(value, sort)

    def _check_order(self, lines: tuple[syntax.Line, ...]) -> None:
        """Reports a line that depends on itself."""
        targets = self.left.targets
        numbers = {id(line): number for number, line in enumerate(lines)}
        try:
            TopologicalSorter(
                {number: {numbers[id(targets[name])] for name in inputs_of(line.value) if name in targets} for number, line in enumerate(lines)}
            ).prepare()
        except CycleError as error:
            loop: list[int] = error.args[1]
            self.report.add(lines[min(loop)].place, "this is made of itself")

    def _term(self, term: syntax.Term, outputs: int) -> None:
        operator = known_operator(term, outputs, self.report)
        if operator is None:
            self._blur(term)
            return
        known = known_attributes(term, operator)
        for attribute in known:
            sort = attribute_sort(operator, attribute.name)
            assert sort is not None
            value = attribute.value
            if isinstance(value, syntax.Name) and not (sort is Sort.DTYPE and value.name in DTYPES):
                self.names.bind(value.name, sort, value, value.place)
                self.left.values[value.name] = None
            elif isinstance(value, syntax.Maybe):
                self.names.bind_alone(value.name, sort, value, value.place, _MAYBE_ALONE)
                self._absent(value.name)
            elif not isinstance(value, syntax.Wildcard):
                self._reads.append((value, sort, item_sort(operator, attribute.name)))
        for attribute in term.attributes:
            if attribute not in known:
                self._blur(attribute.value)
        if term.carried not in (None, "_"):
            self._carry(term, term.carried)
        for position, item in enumerate(term.inputs):
            wanted = parameter_sort(operator, position)
            if isinstance(item, syntax.Term):
                self._term(item, 1)
            elif item is not None and wanted is None:
                self._tensor(item)
            elif item is not None and wanted is not None:
                self._parameter(item, wanted)

    def _absent(self, name: str) -> None:
        """Marks an attribute or a parameter as one that may be absent."""
        self.names.absent.add(name)
        self.left.optional[name] = self.left.values[name] = None

    def _blur(self, value: Expression) -> None:
        """Leaves the names in a wrong term or attribute without a sort."""
        self.left.complete = False
        for name in mentioned(value):
            self.names.blur(name)

    def _carry(self, term: syntax.Term, name: str) -> None:
        self.names.bind(name, Sort.ATTRIBUTES, term, term.place)
        first = self.left.carried.setdefault(name, term)
        if first.operator != term.operator:
            self.report.add(term.place, f"`..{name}` is between different operators, {first.operator} and {term.operator}")
        elif {attribute.name for attribute in first.attributes} != {attribute.name for attribute in term.attributes}:
            self.report.add(term.place, f"`..{name}` is all attributes but those that are named beside it: name the same ones in both places")

    def _tensor(self, item: Expression) -> None:
        left, names = self.left, self.names
        match item:
            case syntax.Name(name):
                names.bind(name, Sort.TENSOR, item, item.place)
                if name not in left.targets:
                    left.tensors[name] = None
            case syntax.Maybe(name):
                names.bind(name, Sort.TENSOR, item, item.place)
                names.absent.add(name)
                left.optional[name] = left.tensors[name] = None
            case syntax.Spread(syntax.Name(name)):
                names.bind(name, Sort.TENSORS, item, item.place)
                left.lists[name] = None
            case syntax.Spread(syntax.Wildcard()):
                left.rest = True
            case syntax.Mapped():
                self._mapped(item)
            case syntax.Wildcard():
                left.wildcards += 1
            case syntax.Number():
                pass
            case syntax.Near(value):
                self._reads.append((value, Sort.FLOAT, Sort.FLOAT))
            case syntax.Constant():
                self.report.add(item.place, f"a left side matches a number of any data type; write {shown(item.value)}")
            case _:
                self.report.add(item.place, f"{shown(item)} is no tensor; a computed number is matched by `~`")

    def _mapped(self, mapped: syntax.Mapped) -> None:
        """Binds the names of a term that must match each of the remaining inputs."""
        check_mapped(mapped, self.report)
        for place, text in _common(mapped.item):
            self.report.add(place, text)
        for source in mapped.sources:
            self.names.bind_alone(source, Sort.TENSORS, mapped, mapped.place, _LIST_ALONE)
            self.left.lists[source] = None
        self.left.together.append(mapped.sources)
        for target in mapped.targets:
            self.names.open(target, Sort.TENSOR, mapped, mapped.place)
        outside = set(self.left.tensors)
        if isinstance(mapped.item, syntax.Term):
            self._term(mapped.item, 1)
        for target in mapped.targets:
            self.names.close(target, mapped)
            if target not in outside:
                self.left.tensors.pop(target, None)
        self._locals += [(target, mapped) for target in mapped.targets]

    def _parameter(self, item: Expression, wanted: Sort) -> None:
        match item:
            case syntax.Wildcard():
                pass
            case syntax.Name(name) if name in self.left.targets:
                self.names.use(name, item, item.place)
            case syntax.Name(name):
                self.names.bind(name, wanted, item, item.place)
                self.left.values[name] = None
            case syntax.Maybe(name):
                self.names.bind(name, wanted, item, item.place)
                self._absent(name)
            case syntax.Items(items) if wanted is Sort.LIST:
                self.left.values.update(dict.fromkeys(self._pattern(items, item.place)))
            case _:
                self._reads.append((item, wanted, Sort.INTEGER))

    def _pattern(self, items: tuple[Expression, ...], place: Place) -> list[str]:
        """Binds the names among the items of a list or a type; returns them."""
        bound: list[str] = []
        if sum(isinstance(item, syntax.Spread) for item in items) > 1:
            self.report.add(place, "more than one `..`: where one ends and the next begins is open")
        for item in items:
            match item:
                case syntax.Wildcard() | syntax.Spread(syntax.Wildcard()):
                    pass
                case syntax.Name(name):
                    self.names.bind(name, Sort.INTEGER, item, item.place)
                    bound.append(name)
                case syntax.Spread(syntax.Name(name)):
                    self.names.bind(name, Sort.LIST, item, item.place)
                    bound.append(name)
                case syntax.Spread(value):
                    self._reads.append((value, Sort.LIST, Sort.INTEGER))
                case _:
                    self._reads.append((item, Sort.INTEGER, Sort.INTEGER))
        return bound


_MAYBE_ALONE = "is an attribute that may be absent: bind another name here, and compare the two in `where`"
_LIST_ALONE = "is a list that is mapped over, and stands once on a left side"


def check_mapped(mapped: syntax.Mapped, report: Report) -> None:
    """Reports the problems of `[F(x) for x in ..xs]` on either side."""
    if not isinstance(mapped.item, syntax.Term):
        report.add(mapped.item.place, f"{shown(mapped.item)} is no operator of an item; the list itself is written `..{mapped.sources[0]}`")
    if len(mapped.targets) != len(mapped.sources):
        report.add(mapped.place, f"{_counted(len(mapped.targets), 'name')} for the items of {_counted(len(mapped.sources), 'list')}")
    for place in _lists_in(mapped.item):
        report.add(place, "a term for each item of a list contains no other list; name the other list's result outside")
    for names in (mapped.targets, mapped.sources):
        for name in sorted({name for name in names if names.count(name) > 1}):
            report.add(mapped.place, f"{name} stands twice in this list")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _lists_in(value: Expression | None) -> Iterator[Place]:
    for item in value.inputs if isinstance(value, syntax.Term) else ():
        if isinstance(item, syntax.Spread | syntax.Mapped):
            yield item.place
        yield from _lists_in(item)


def _common(value: Expression | None) -> Iterator[tuple[Place, str]]:
    """The parts of a mapped term that could differ from item to item, each with a message."""
    match value:
        case syntax.Term():
            for attribute in value.attributes:
                if isinstance(attribute.value, syntax.Maybe) or (not isinstance(attribute.value, syntax.Name) and any(mentioned(attribute.value))):
                    yield attribute.value.place, "for each item of a list an attribute is a number, `_`, or a name, which `where` can compare"
            for position, item in enumerate(value.inputs):
                if position not in PARAMETERS.get(value.operator, {}) and isinstance(item, syntax.Wildcard):
                    yield item.place, "for each item of a list a tensor has a name: `for x, y in ..xs, ..ys`"
                else:
                    yield from _common(item)
        case syntax.Maybe():
            yield value.place, "an input of an item of a list can not be optional"
        case syntax.Near() if any(mentioned(value)):
            yield value.place, "for each item of a list a number is written in full"
        case _:
            pass


def inputs_of(value: Expression) -> set[str]:
    """The names among the inputs of a term, nested terms included."""
    found: set[str] = set()
    for item in value.inputs if isinstance(value, syntax.Term) else ():
        if isinstance(item, syntax.Name):
            found.add(item.name)
        elif isinstance(item, syntax.Mapped):
            found |= inputs_of(item.item) - set(item.targets)
        elif item is not None:
            found |= inputs_of(item)
    return found

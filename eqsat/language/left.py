"""Left sides, name by name: the lines of a pattern come in; what each of its names stands for goes out.

Bound are: tensors, by the inputs that they are; integers and lists, by the parameters and attributes that they are written
for; data types; the attributes behind `..p`. Whatever is computed is only compared: it must read what other places bind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from eqsat.language import syntax
from eqsat.language.naming import Names
from eqsat.language.printer import expression as shown
from eqsat.language.schemas import attribute_sort, item_sort, known_attributes, known_operator, parameter_sort
from eqsat.language.scope import names as mentioned
from eqsat.language.sorting import Sorter
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Expression, Place
from eqsat.language.values import DTYPES


@dataclass(slots=True)
class Left:
    """What a left side holds, beside the sorts of its names."""

    targets: dict[str, syntax.Line] = field(default_factory=dict[str, syntax.Line])  # the names of its lines
    tensors: dict[str, None] = field(default_factory=dict[str, None])  # names of inputs that come from outside
    optional: dict[str, None] = field(default_factory=dict[str, None])  # those of them that may be absent, and parameters that may
    lists: dict[str, None] = field(default_factory=dict[str, None])  # `..xs`
    values: dict[str, None] = field(default_factory=dict[str, None])  # what attributes and parameters bind
    wildcards: int = 0  # inputs written `_`
    rest: bool = False  # inputs written `.._`
    carried: dict[str, syntax.Term] = field(default_factory=dict[str, syntax.Term])  # by name, the first term that `..p` stands in
    complete: bool = True  # no term is wrong in a way that hides what its names are


class LeftReader:
    """Reads a left side, and the judgements of `where`, into `names`."""

    def __init__(self, names: Names) -> None:
        self.left = Left()
        self.names = names
        self.report = names.report
        # What is compared, with its sort and, of a list, that of its items; looked at when all names are bound.
        self._reads: list[tuple[Expression, Sort, Sort]] = []

    def side(self, lines: tuple[syntax.Line, ...]) -> None:
        """All names that the lines bind."""
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
        self._check_order(lines)

    def judge(self, judgement: syntax.Judgement) -> list[str]:
        """Binds the names in a typing judgement; returns them."""
        dtype = judgement.type.dtype
        if dtype != "_" and dtype not in DTYPES:
            self.names.bind(dtype, Sort.DTYPE, judgement.type, judgement.type.place)
        return [dtype, *self._pattern(judgement.type.dims or (), judgement.type.place)]

    def compare(self, sorter: Sorter) -> None:
        """Looks at what is computed on the left side, now that all names have their sorts."""
        for value, sort, items in self._reads:
            if sort is Sort.LIST:
                sorter.expect_list(value, items)
            else:
                sorter.expect(value, sort)

    def _check_order(self, lines: tuple[syntax.Line, ...]) -> None:
        """No line may be made of itself."""
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

    def _blur(self, value: Expression) -> None:
        """What a wrong term or attribute binds is not known."""
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
                left.optional[name] = left.tensors[name] = None
            case syntax.Spread(syntax.Name(name)):
                names.bind(name, Sort.TENSORS, item, item.place)
                left.lists[name] = None
            case syntax.Spread(syntax.Wildcard()):
                left.rest = True
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
                self.names.absent[name] = wanted
                self.left.optional[name] = self.left.values[name] = None
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


def inputs_of(value: Expression) -> set[str]:
    """The names among the inputs of a term, those of its nested terms included."""
    found: set[str] = set()
    for item in value.inputs if isinstance(value, syntax.Term) else ():
        if isinstance(item, syntax.Name):
            found.add(item.name)
        elif item is not None:
            found |= inputs_of(item)
    return found

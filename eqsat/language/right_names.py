"""Right sides, name by name: checks of the lines and definitions that a rule makes. Each broken law
becomes a problem.

Operators make tensors from those that the left side matched and those made before. All other values
are computed from the values that the left side bound.
"""

from __future__ import annotations

from eqsat.language import syntax
from eqsat.language.functions import FUNCTIONS
from eqsat.language.left_names import Left, check_mapped
from eqsat.language.naming import with_article
from eqsat.language.printer import expression as shown
from eqsat.language.schemas import attribute_sort, item_sort, known_attributes, known_operator, parameter_sort, required_attributes
from eqsat.language.sorting import Sorter
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Expression, Place
from eqsat.language.values import DTYPES
from eqsat.operators import Operator

_NUMBERS = (Sort.INTEGER, Sort.FLOAT, Sort.BOOLEAN, None)


class RightReader:
    """Checks the values that a rule makes from those of `left`. `sorter` knows the names."""

    def __init__(self, left: Left, sorter: Sorter) -> None:
        self.left = left
        self.sorter = sorter
        self.names = sorter.names
        self.report = sorter.report
        self.complete = True  # False if a wrong term or attribute hides some names
        self._waiting: set[str] = set()  # names that lines of the right side are about to define

    def side(self, lines: tuple[syntax.Line, ...]) -> None:
        """Checks all lines of a right side. Each may read the names that earlier lines define."""
        self._waiting = {target for line in lines for target in line.targets}
        for line in lines:
            self.made(line.targets, line.value, line.place)
            for target in line.targets:
                if target == "_":
                    continue
                if target not in self.left.targets or target not in self._waiting:
                    self.names.declare(target, Sort.TENSOR, line.place)
                    self.names.made.add(target)
                self._waiting.discard(target)
                self.names.use(target, line, line.place)

    def made(self, targets: tuple[str, ...], value: Expression, place: Place) -> None:
        """Checks a tensor, or the outputs of one operator."""
        if isinstance(value, syntax.Term):
            self._term(value, max(1, len(targets)))
            return
        if len(targets) > 1:
            self.report.add(place, "only an operator has several outputs")
        self._tensor(value)

    def _term(self, term: syntax.Term, outputs: int) -> None:
        operator = known_operator(term, outputs, self.report)
        if operator is None:
            self.complete = False
            return
        known = known_attributes(term, operator)
        for attribute in term.attributes:
            if attribute in known:
                self._attribute(attribute, operator)
            else:
                self.complete = False
        if term.carried is not None:
            self._carry(term, operator, term.carried)
        for position, item in enumerate(term.inputs):
            wanted = parameter_sort(operator, position)
            if item is not None and wanted is None:
                self._tensor(item)
            elif item is not None:
                self._parameter(item, wanted)

    def _attribute(self, attribute: syntax.Attribute, operator: Operator) -> None:
        wanted, value = attribute_sort(operator, attribute.name), attribute.value
        if isinstance(value, syntax.Name) and value.name in self.names.absent and attribute.name in required_attributes(operator):
            self.report.add(value.place, f"{value.name} may be absent, and {operator.name} needs the attribute {attribute.name}")
        if wanted is Sort.LIST:
            self.sorter.expect_list(value, item_sort(operator, attribute.name))
        else:
            self.sorter.expect(value, wanted)

    def _carry(self, term: syntax.Term, operator: Operator, name: str) -> None:
        origin = self.left.carried.get(name)
        if name == "_":
            self.report.add(term.place, "`.._` stands only in patterns; attributes that the right side carries over have a name, `..p`")
        elif origin is None:
            self.names.use(name, term, term.place)
            self.report.add(term.place, f"the left side binds no attributes `..{name}`")
        elif origin.operator != operator.name:
            self.names.use(name, term, term.place)
            self.report.add(term.place, f"`..{name}` is between different operators, {origin.operator} and {operator.name}")
        else:
            self.names.use(name, term, term.place)
            taken = {attribute.name for attribute in origin.attributes} - {attribute.name for attribute in term.attributes}
            for lost in sorted(required_attributes(operator) & taken):
                self.report.add(term.place, f"{term.operator} needs the attribute {lost}, which `..{name}` does not hold")

    def _tensor(self, item: Expression) -> None:
        match item:
            case syntax.Term():
                self._term(item, 1)
            case syntax.Name():
                self._name(item, Sort.TENSOR)
            case syntax.Spread(syntax.Name() as name):
                self._name(name, Sort.TENSORS)
            case syntax.Mapped():
                self._mapped(item)
            case syntax.Constant():
                self._constant(item)
            case syntax.Number(_, text):
                self.report.add(item.place, f"a number is no tensor; write `T({text})`, of a data type T")
            case syntax.Wildcard() | syntax.Near() | syntax.Maybe() | syntax.Spread():
                self.report.add(item.place, f"`{shown(item)}` stands only in patterns; here a tensor is needed")
            case syntax.Call(function) if function not in FUNCTIONS:
                self.sorter.sort(item)
            case _:
                found = self.sorter.sort(item)
                word = "no tensor" if found is None else f"{with_article(found)} where a tensor is expected"
                self.report.add(item.place, f"{shown(item)} is {word}")

    def _mapped(self, mapped: syntax.Mapped) -> None:
        """Checks a node that is made for each item of lists."""
        check_mapped(mapped, self.report)
        for source in mapped.sources:
            self._name(syntax.Name(source, mapped.place), Sort.TENSORS)
        for target in mapped.targets:
            self.names.open(target, Sort.TENSOR, mapped, mapped.place)
        if isinstance(mapped.item, syntax.Term):
            self._term(mapped.item, 1)
        for target in mapped.targets:
            self.names.close(target, mapped)

    def _name(self, value: syntax.Name, wanted: Sort) -> None:
        name, names = value.name, self.names
        names.use(name, value, value.place)
        found = names.sorts.get(name)
        if name in self._waiting:
            self.report.add(value.place, f"{name} is defined by this line or one below it")
        elif name not in names.sorts:
            if name in DTYPES:
                self.report.add(value.place, f"{name} is a data type where {with_article(wanted)} is expected")
            else:
                names.unbound(name, value.place)
        elif found is not None and found is not wanted:
            hint = f"; write `..{name}`" if found is Sort.TENSORS else ""
            self.report.add(value.place, f"{name} is {with_article(found)} where {with_article(wanted)} is expected{hint}")

    def _constant(self, value: syntax.Constant) -> None:
        names = self.names
        if value.dtype not in DTYPES:
            names.use(value.dtype, value, value.place)
            if value.dtype not in names.sorts:
                self.report.add(value.place, f"nothing binds {value.dtype}; write `x: {value.dtype}` in `where`, of a tensor of this data type")
        found = self.sorter.sort(value.value)
        if found not in _NUMBERS:
            self.report.add(value.value.place, f"{shown(value.value)} is {with_article(found)} where a number is expected")

    def _parameter(self, item: Expression, wanted: Sort | None) -> None:
        """Checks a parameter: integers computed when the rule fires, or a tensor of them."""
        if isinstance(item, syntax.Term | syntax.Constant):
            self._tensor(item)
        elif isinstance(item, syntax.Name) and self.names.sorts.get(item.name) is Sort.TENSOR:
            self._name(item, Sort.TENSOR)
        elif wanted is Sort.LIST:
            self.sorter.expect_list(item, Sort.INTEGER)
        else:
            self.sorter.expect(item, wanted)

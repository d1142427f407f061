"""Test lines: checks of the types and values that `test` lines give. A missing, unknown or
impossible entry becomes a problem.
"""

from __future__ import annotations

from collections.abc import Iterable

from eqsat.language import syntax
from eqsat.language.left_names import Left
from eqsat.language.naming import Names
from eqsat.language.problems import nearest
from eqsat.language.sorting import Sorter
from eqsat.language.sorts import Sort
from eqsat.language.values import DTYPES

_AXES = 32  # the highest rank that any runtime takes


def check_tests(tests: Iterable[syntax.Test], left: Left, names: Names, measured: set[str]) -> None:
    """Reports each test line that gives more or less than an instance needs. `measured` are the
    names that types determine.
    """
    for test in tests:
        _Check(left, names, measured).test(test)


class _Check:
    def __init__(self, left: Left, names: Names, measured: set[str]) -> None:
        self.left = left
        self.names = names
        self.report = names.report
        self.values = left.values.keys() - measured
        self.sorter = Sorter(Names(self.report))  # test lines see no names

    def test(self, test: syntax.Test) -> None:
        seen: set[str] = set()
        for given in test.given:
            if given.name in seen:
                self.report.add(given.place, f"{given.name} is given twice")
            seen.add(given.name)
            if given.value is None:
                self._types(given)
            else:
                self._value(given, given.value)
        self._lists({given.name: len(given.types) for given in test.given}, test)
        if any(self.names.sorts.get(name, Sort.TENSOR) is None for name in seen):
            return  # a name that is misspelt elsewhere is not missing here
        wanted = [*self.left.tensors, *self.left.values] + ["_"] * (self.left.wildcards > 0)
        for name in wanted:
            if name not in seen | self.left.optional.keys() and (name in self.left.tensors or name == "_" or name in self.values):
                what = f"the sizes of {name}" if name not in self.values else f"a value of {name}"
                self.report.add(test.place, f"the test line does not give {what}")

    def _lists(self, counts: dict[str, int], test: syntax.Test) -> None:
        for together in self.left.together:
            found = {counts.get(name, 0) for name in together}
            if len(found) > 1:
                self.report.add(test.place, f"{' and '.join(together)} are mapped over together: the test line gives each equally many types")
            elif found == {0}:
                self.report.add(test.place, f"the test line does not give the sizes of {together[0]}")

    def _types(self, given: syntax.Given) -> None:
        count, left = len(given.types), self.left
        for type in given.types:
            self._type(type)
        if given.name == "_":
            if count < left.wildcards or (count > left.wildcards and not left.rest):
                number = f"{'at least ' if left.rest else ''}{left.wildcards or 'no'}"
                self.report.add(given.place, f"the left side has {number} `_` among its tensors, not {count}")
        elif given.name in left.tensors:
            if count != 1:
                self.report.add(given.place, f"{given.name} is one tensor and has one type, not {count}")
        elif given.name not in left.lists:
            self._unknown(given, "a tensor of the left side")

    def _type(self, type: syntax.Type) -> None:
        if type.dtype != "_" and type.dtype not in DTYPES and not type.dtype[0].isupper():
            self.report.add(type.place, f"{type.dtype} is no data type{nearest(type.dtype, DTYPES)}")
        if type.dims is None:
            self.report.add(type.place, f"the sizes are missing; `{type.dtype}[]` is a scalar")
        if len(type.dims or ()) > _AXES:
            self.report.add(type.place, f"a tensor in a test line has at most {_AXES} axes")
        for dim in type.dims or ():
            if not (isinstance(dim, syntax.Number) and isinstance(dim.value, int) and dim.value >= 0):
                self.report.add(dim.place, "the sizes in a test line are integers, 0 or more")

    def _value(self, given: syntax.Given, value: syntax.Expression) -> None:
        if given.name in self.values:
            self.sorter.expect(value, self.names.sorts[given.name])
        else:
            self._unknown(given, "an attribute or a parameter of the left side")

    def _unknown(self, given: syntax.Given, what: str) -> None:
        if self.names.sorts.get(given.name, Sort.TENSOR) is None:
            return  # its problem was reported where the rule uses it
        if given.name not in self.names.sorts:
            known = [*self.left.tensors, *self.left.lists, *self.values]
            self.report.add(given.place, f"the left side has no {given.name}{nearest(given.name, known)}")
        elif given.name in self.left.targets or given.name not in self.left.values.keys() | self.left.tensors.keys() | self.left.lists.keys():
            self.report.add(given.place, f"{given.name} follows from what the rule says; it is not given")
        elif given.name in self.left.values and given.name not in self.values:
            self.report.add(given.place, f"{given.name} follows from the types; it is not given")
        else:
            self.report.add(given.place, f"{given.name} is not {what}")

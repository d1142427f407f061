"""The names of one rule: each with its sort, its places, and its permitted uses.

The stages that read names report every place where a name is bound or used. The result is one sort
for each name, and a problem for each broken law about names. A name that begins with a capital
letter stands for a data type, and no other name does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from eqsat.language.problems import Report, nearest
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Place
from eqsat.language.values import DTYPES


def with_article(sort: Sort) -> str:
    """The word for a sort, with its article; the one for attributes has none."""
    if sort is Sort.ATTRIBUTES:
        return str(sort)
    return f"an {sort}" if sort[0] in "aei" else f"a {sort}"


class Names:
    """The names of a rule, or of one side of a `<=>`. A name has the sort None if another problem
    with it was reported.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        # Tensors that the rule makes, which have no value during matching.
        self.made: set[str] = set()
        # Names that may be absent, `x?`; an absent name has no value, but the right side can pass
        # it on.
        self.absent: set[str] = set()
        # Names that only one place may bind, each with the reason.
        self.alone: dict[str, str] = {}
        self._sorts: dict[str, Sort | None] = {}
        self._uses: dict[str, dict[int, Place]] = {}

    @property
    def sorts(self) -> Mapping[str, Sort | None]:
        """The sort of each name."""
        return MappingProxyType(self._sorts)

    def use(self, name: str, node: object, place: Place) -> None:
        """Records a use of `name` in `node`. A node is one use, however often it is visited."""
        self._uses.setdefault(name, {})[id(node)] = place

    def uses(self, name: str) -> list[Place]:
        """The places that mention a name, including those that bind it."""
        return list(self._uses[name].values())

    def bind(self, name: str, sort: Sort, node: object, place: Place) -> None:
        """Binds `name` to a sort. A name that has a sort already must have the same one."""
        self.use(name, node, place)
        if name in DTYPES or name[0].isupper() != (sort is Sort.DTYPE):
            self.blur(name)
        if name[0].isupper() != (sort is Sort.DTYPE):
            if sort is Sort.DTYPE:
                self.report.add(place, f"{name} is no data type (any is a capital letter, as `T`){nearest(name, DTYPES)}")
            else:
                self.report.add(place, f"{name} is a data type where {with_article(sort)} is expected")
        elif name in DTYPES:
            self.report.add(place, f"{name} is a data type and can name nothing else")
        else:
            known = self._sorts.setdefault(name, sort)
            if name in self.alone:
                self.report.add(place, f"{name} {self.alone[name]}")
            if known is not None and known is not sort:
                self.report.add(place, f"{name} is {with_article(sort)} here and {with_article(known)} elsewhere")

    def bind_alone(self, name: str, sort: Sort, node: object, place: Place, reason: str) -> None:
        """Binds `name`, which no other place may bind. A message about another binding quotes
        `reason`.
        """
        if name in self._sorts:
            self.report.add(place, f"{name} {reason}")
        self.bind(name, sort, node, place)
        self.alone[name] = reason

    def open(self, name: str, sort: Sort, node: object, place: Place) -> None:
        """Binds a name for a part of the rule: until `close`."""
        if name in self._sorts or name in DTYPES:
            self.report.add(place, f"{name} means something else outside this list; choose another name")
        else:
            self.bind(name, sort, node, place)

    def close(self, name: str, node: object) -> None:
        """Ends the scope of `name`, which `node` bound."""
        if id(node) not in self._uses.get(name, {}):
            return
        uses, sort = self._uses.pop(name), self._sorts.pop(name)
        if sort is not None and len(uses) == 1:
            self.report.add(uses[id(node)], f"{name} is not used for the items of the list")

    def declare(self, name: str, sort: Sort | None, place: Place) -> None:
        """Binds `name` by a definition, which must be its only binding."""
        if self._sorts.get(name) is not None:
            self.report.add(place, f"{name} is bound already; compare with `==`" if name not in self.made else f"{name} is defined twice")
        elif sort is None or name[0].isupper() == (sort is Sort.DTYPE):
            self._sorts[name] = sort
        else:
            self._sorts[name] = None
            self.report.add(place, f"{name} is {with_article(sort)}; names of data types, and only they, begin with a capital letter")

    def blur(self, name: str) -> None:
        """Leaves `name` without a sort, because its surroundings are wrong."""
        self._sorts.setdefault(name, None)

    def unbound(self, name: str, place: Place) -> None:
        """Reports that nothing binds `name`."""
        self.report.add(place, f"nothing binds {name}{nearest(name, [*self._sorts, *DTYPES])}")
        self._sorts[name] = None

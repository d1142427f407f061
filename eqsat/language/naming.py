"""The names of one rule: each with its sort, where it stands, and what it may be used for.

Comes in: every place where a name is bound or used. Goes out: one sort for each name, and the laws about names that are
broken. A name that begins with a capital letter stands for a data type, and no other name does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from eqsat.language.errors import Report, nearest
from eqsat.language.sorts import Sort
from eqsat.language.syntax import Place
from eqsat.language.values import DTYPES


def with_article(sort: Sort) -> str:
    """The word for a sort, with its article; the one for attributes has none."""
    if sort is Sort.ATTRIBUTES:
        return str(sort)
    return f"an {sort}" if sort[0] in "aei" else f"a {sort}"


class Names:
    """The names of a rule, or of one side of a `<=>`. Sort None: something else is wrong with it, which was reported."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.made: set[str] = set()  # tensors that the rule makes: they have no value while it is being matched
        self.absent: dict[str, Sort] = {}  # parameters that may be absent: they can be handed on, and have no value
        self._sorts: dict[str, Sort | None] = {}
        self._uses: dict[str, dict[int, Place]] = {}

    @property
    def sorts(self) -> Mapping[str, Sort | None]:
        """By name."""
        return MappingProxyType(self._sorts)

    def use(self, name: str, node: object, place: Place) -> None:
        """`name` stands in the node `node`: a node is one use, however often it is looked at."""
        self._uses.setdefault(name, {})[id(node)] = place

    def uses(self, name: str) -> list[Place]:
        """Where a name stands, what binds it included."""
        return list(self._uses[name].values())

    def bind(self, name: str, sort: Sort, node: object, place: Place) -> None:
        """`name` stands for a `sort` here. Where it stands for one already, that must be the same sort."""
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
            if known is not None and known is not sort:
                self.report.add(place, f"{name} is {with_article(sort)} here and {with_article(known)} elsewhere")

    def declare(self, name: str, sort: Sort | None, place: Place) -> None:
        """A definition gives `name` a meaning, which nothing else does."""
        if self._sorts.get(name) is not None:
            self.report.add(place, f"{name} is bound already; compare with `==`" if name not in self.made else f"{name} is defined twice")
        elif sort is None or name[0].isupper() == (sort is Sort.DTYPE):
            self._sorts[name] = sort
        else:
            self._sorts[name] = None
            self.report.add(place, f"{name} is {with_article(sort)}; names of data types, and only they, begin with a capital letter")

    def blur(self, name: str) -> None:
        """`name` stands where nothing can be said of it, because something else is wrong there."""
        self._sorts.setdefault(name, None)

    def unbound(self, name: str, place: Place) -> None:
        """Nothing gives `name` a meaning."""
        self.report.add(place, f"nothing binds {name}{nearest(name, [*self._sorts, *DTYPES])}")
        self._sorts[name] = None

"""Bindings: the values of a rule's names while an instance is drawn, and the conditions of `where`
on them.

The input is patterns of attributes and parameters, the values drawn for them, and facts of tensors.
The output is an environment for the language's expressions. A name keeps its first value. A
condition counts as broken only if it is known not to hold. Each condition is decided as soon as all
names in it have values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from eqsat.checker.drawing.conditions import Open, free_names, whole_number
from eqsat.checker.drawing.dtypes import RULE, Key
from eqsat.checker.samplers.drawn_node import Asked, Setting, Slot
from eqsat.facts.fact import Fact
from eqsat.frozen import mutable
from eqsat.language.by_identity import ByIdentity
from eqsat.language.expressions import Names, Unevaluable, evaluate
from eqsat.language.judgements import judge
from eqsat.language.printer import expression as text
from eqsat.language.syntax import (
    Call,
    Comparison,
    Comprehension,
    Definition,
    Expression,
    Guard,
    Index,
    Items,
    Judgement,
    Name,
    Near,
    Place,
    Spread,
    Wildcard,
)
from eqsat.language.values import DTYPES, DType, Tensor, Value, every, is_list
from eqsat.operators import AttributeValue

_LENGTHS = 16  # no list that a rule prescribes is longer
_LARGEST_ASKED = 1 << 8  # no size that a draw takes from a condition is larger
_INSIDE = {"<": -1, ">": 1}  # steps from a number that is excluded to the next one that is not
_FAR = 1 << 31  # beyond it an integer is neither a size nor an index of a tensor


@mutable
class Bindings:
    """The environment of one draw: values of names, attributes of `..p`, and open conditions."""

    pending: tuple[Open, ...]
    values: dict[str, Value | None] = field(default_factory=dict[str, "Value | None"])
    carried: dict[str, dict[str, Setting]] = field(default_factory=dict[str, "dict[str, Setting]"])
    # Expressions with names that are not bound yet, and the values they must equal.
    deferred: tuple[tuple[Expression, Setting], ...] = ()
    # By name of a list of tensors, the names of its items.
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    broken: Place | None = None  # the place of a broken condition in the rule's text
    settled: int = -1  # the number of values with which all conditions were tried last

    def copy(self) -> Bindings:
        """Bindings that can be changed without changing these."""
        return Bindings(self.pending, dict(self.values), dict(self.carried), self.deferred, self.lists, None, self.settled)

    def leave_out(self, absent: frozenset[str]) -> None:
        """Makes no condition wait for the optional names that are absent and never get a value."""
        if not absent:
            return
        self.pending = tuple(
            [
                condition._replace(needs=condition.needs - absent, equals={name: value for name, value in condition.equals.items() if name not in absent})
                for condition in self.pending
            ]
        )

    def set_dtypes(self, dtypes: Mapping[Key, int]) -> None:
        """Binds the type variables of the rule."""
        for key, code in dtypes.items():
            if isinstance(key, tuple) and key[0] == RULE:
                self.values[key[1]] = DType(code)

    def slot(self, pattern: Expression, given: Mapping[str, Setting]) -> Slot | None:
        """The constraints that `pattern` has on a value so far; None if it can have no value."""
        match pattern:
            case Wildcard():
                return Slot(carried=True)
            case Name(name) if name not in self.values and name not in DTYPES:
                if not any(name in condition.needs for condition in self.pending):
                    return Slot(given=given.get(name))
                length = next((rival for symbol, rival in self.rivals(f"len({name})", (name,)) if symbol == "==" and isinstance(rival, int)), None)
                items = (None,) * length if length is not None and 0 < length <= _LENGTHS else None
                whole, first, second = (self._near(read, (name,)) for read in (name, f"{name}[0]", f"{name}[1]"))
                equal = next((setting(rival) for symbol, rival in self.rivals(name, (name,)) if symbol == "=="), None)
                return Slot(items=items, given=given.get(name), rivals=(whole + first, second), asked=equal)
            case Items(items) if not self._is_known(pattern):
                if any(isinstance(item, Spread) for item in items):
                    return Slot()
                known = [self.evaluate(item) if self._is_known(item) else None for item in items]
                if not all(value is None or isinstance(value, int) for value in known):
                    return None
                items = tuple(value if isinstance(value, int) else None for value in known)
                return Slot(items=items, rivals=tuple(self._near_item(item) if value is None else () for item, value in zip(pattern.items, items, strict=True)))
            case _ if not self._is_known(pattern):
                return Slot()
            case _:
                value = setting(self.evaluate(pattern))
                return None if value is None else Slot(value)

    def _near_item(self, item: Expression) -> tuple[int, ...]:
        return self._near(text(item), _mentioned(item) or ()) if isinstance(item, Name | Index) else ()

    def _near(self, read: str, names: Iterable[str]) -> tuple[int, ...]:
        """The integers at the borders that conditions set to the integer that `read` reads."""
        found = ((rival, _INSIDE.get(symbol, 0)) for symbol, value in self.rivals(read, names) if symbol != "in" for rival in numbers_in([value]))
        return tuple(rival + step for rival, step in found if isinstance(rival, int) and abs(rival) < _FAR)

    def bind(self, pattern: Expression, value: Setting) -> bool:
        """Matches a drawn value and binds the new names of `pattern`; False if the value does not
        match.

        An expression over names of a later node is compared once they are bound.
        """
        match pattern:
            case Wildcard():
                return True
            case Name(name) if name not in self.values and name not in DTYPES:
                self.values[name] = value
                return True
            case Items(items) if isinstance(value, tuple) and not self._is_known(pattern):
                return self._bind_items(items, value)
            case _ if not self._is_known(pattern):
                self.deferred += ((pattern, value),)
                return True
            case _:
                return setting(self.evaluate(pattern)) == value

    def _bind_items(self, items: tuple[Expression, ...], value: tuple[int | float | str, ...]) -> bool:
        place = next((place for place, item in enumerate(items) if isinstance(item, Spread)), None)
        if place is None:
            return len(items) == len(value) and all(self.bind(item, part) for item, part in zip(items, value, strict=True))
        tail = len(items) - place - 1
        if len(value) < place + tail:
            return False
        spread = items[place]
        assert isinstance(spread, Spread)
        rest = value[place : len(value) - tail]
        head_fits = all(self.bind(item, part) for item, part in zip(items[:place], value, strict=False))
        tail_fits = all(self.bind(item, part) for item, part in zip(items[place + 1 :], value[len(value) - tail :], strict=True))
        return head_fits and tail_fits and self.bind(spread.item, rest)  # type: ignore[arg-type]

    def _is_known(self, expression: Expression) -> bool:
        mentioned = _mentioned(expression)
        return mentioned is not None and mentioned <= self.values.keys()

    def evaluate(self, expression: Expression) -> Value | None:
        """The value of an expression over the bound names; None if there is none, or unknown."""
        return _value(expression, self.values)

    def number(self, pattern: Expression) -> float | None:
        """The value that a number among the inputs prescribes; None if it has none."""
        value = self.evaluate(pattern.value if isinstance(pattern, Near) else pattern)
        return value if isinstance(value, int | float) else None

    def settle(self, facts: Mapping[str, Fact]) -> bool:
        """Decides the conditions that can be decided, and binds their definitions; False if one is
        broken.
        """
        for name, fact in facts.items():
            if name not in self.values:
                self.values[name] = Tensor(fact)
        for name, items in self.lists.items():
            if name not in self.values and all(item in self.values for item in items):
                self.values[name] = tuple([self.values[item] for item in items])
        # A name keeps its value, so only a new one decides more.
        progress = len(self.values) != self.settled
        while progress:
            before = len(self.values)
            left: list[Open] = []
            for condition in self.pending:
                if condition.equals:
                    self._equate(condition.equals)
                decided = self._decide(condition.condition) if condition.needs <= self.values.keys() else None
                if decided is False:
                    self.broken = condition.condition.place
                    return False
                if decided is None:
                    left.append(condition)
            progress = len(left) < len(self.pending) or len(self.values) > before
            self.pending = tuple(left)
        self.settled = len(self.values)
        self.broken = None
        if self.deferred:
            due = [(pattern, value) for pattern, value in self.deferred if self._is_known(pattern)]
            self.deferred = tuple(pair for pair in self.deferred if pair not in due)
            self.broken = next((pattern.place for pattern, value in due if setting(self.evaluate(pattern)) != value), None)
        return self.broken is None

    def _equate(self, equals: Mapping[str, Expression]) -> None:
        """Binds a name to the integers that a guard demands of it, once they are known: with others the
        instance would be broken, and the later that shows, the more was drawn in vain.
        """
        for name, expression in equals.items():
            if name not in self.values and free_names(expression) <= self.values.keys():
                value = self.evaluate(expression)
                if type(value) is int or (type(value) is tuple and all(type(item) is int for item in value)):
                    self.values[name] = value

    def _decide(self, condition: Judgement | Definition | Guard) -> bool | None:
        """Whether a condition holds; None if that is unknown. All its names must have values."""
        match condition:
            case Judgement(name, type_):
                found = self.values.get(name)
                tensors = [one for one in (found if is_list(found) else (found,)) if isinstance(one, Tensor)]
                if not tensors:
                    return None
                environment = dict(self.values)
                try:
                    holds = every([judge(type_, one.fact, environment) for one in tensors])
                except Unevaluable:
                    return None
                if holds:
                    self.values = environment
                return holds
            case Definition(targets, value):
                self.values[targets[0]] = self.evaluate(value)
                return True
            case Guard(expression):
                try:
                    found = evaluate(expression, self.values)
                except Unevaluable:
                    return False
                return found is not False

    def asked(self, name: str) -> Asked | None:
        """Returns the shape that open conditions ask of a tensor; None if they do not tell its
        rank.
        """
        if not any(name in one.sizes for one in self.pending):
            return None
        types = [one.condition.type.dims for one in self.pending if type(one.condition) is Judgement and one.condition.name == name]
        dims = next((dims for dims in map(self._spread, types) if dims is not None), None)
        if dims is not None:
            sizes = [self.evaluate(size) if self._is_known(size) else size.name if isinstance(size, Name) else None for size in dims]
        else:
            sizes = next((rival for symbol, rival in self.rivals(f"shape({name})", (name,)) if symbol == "==" and isinstance(rival, tuple)), None)
        return None if sizes is None else tuple(size if isinstance(size, int | str) else None for size in sizes)

    def _spread(self, dims: tuple[Expression, ...] | None) -> tuple[Expression, ...] | None:
        """The sizes of a judgement with the lists in it spread out; None if one is not known yet."""
        found: list[Expression] = []
        for size in dims or ():
            if not isinstance(size, Spread):
                found.append(size)
                continue
            values = self.evaluate(size.item) if self._is_known(size.item) else None
            if not isinstance(values, tuple) or not all(isinstance(value, int) for value in values):
                return None
            found.extend([whole_number(value) for value in values if isinstance(value, int)])
        return None if dims is None else tuple(found)

    def sizes_asked(self, name: str, rank: int) -> dict[int, int]:
        """Returns the sizes that open conditions ask of a tensor of this rank, by axis, as far as
        they are known: those of a judgement, and those that a guard compares with `dim(name, axis)`.
        """
        found: dict[int, int] = {}
        for one in self.pending:
            if name not in one.sizes:
                continue
            condition = one.condition
            if isinstance(condition, Judgement):
                asked = ((axis, size, self.values) for axis, size in _aligned(self._spread(condition.type.dims) or condition.type.dims or (), rank))
            elif isinstance(condition, Guard):
                asked = ((_value(axis, values), size, values) for values, axis, size in self._measured(condition.condition, name, rank))
            else:
                continue
            for place, size, values in asked:
                wanted = _value(size, values) if values is not self.values or self._is_known(size) else None
                if isinstance(place, int) and isinstance(wanted, int) and -rank <= place < rank and 0 <= wanted <= _LARGEST_ASKED:
                    found[place % rank] = wanted
        return found

    def _measured(self, expression: Expression, name: str, rank: int) -> Iterator[tuple[Names, Expression, Expression]]:
        """The axes of a tensor whose sizes a guard compares, each with what its size has to equal, and
        the values of the names in both.
        """
        match expression:
            case Comparison((left, right), ("==",)):
                for read, rival in ((left, right), (right, left)):
                    if isinstance(read, Call) and read.function == "dim" and read.arguments[0] == Name(name):
                        yield self.values, read.arguments[1], rival
            case Call("all", (Comprehension(item, target, _, conditions),)):
                for axis in range(rank):
                    values = {**self.values, target: axis}
                    if all(_value(test, values) for test in conditions):
                        yield from ((values, place, rival) for _, place, rival in self._measured(item, name, 0))
            case _:
                return

    def rivals(self, read: str, names: Iterable[str]) -> list[tuple[str, Value | None]]:
        """The symbols and values with which open conditions compare an expression, which stands on the
        left of each symbol. None stands for an unknown value. `read` is the text of the expression,
        and `names` are those in it.
        """
        found: list[tuple[str, Value | None]] = []
        unknown: set[str] | None = None
        for _, needs, rivals, *_ in self.pending:
            if not rivals or (pairs := rivals.get(read)) is None:
                continue
            if unknown is None:
                unknown = {name for name in names if name not in self.values}
            if unknown and unknown <= needs:
                known = needs - unknown <= self.values.keys()
                found.extend([(symbol, self.evaluate(rival) if known else None) for symbol, rival in pairs])
        return found

    def rivals_of(self, read: str, name: str, fact: Fact) -> list[tuple[str, Value | None]]:
        """As `rivals`, once the tensor `name` has this fact, of which other names may follow."""
        then = self.copy()
        then.settle({name: fact})
        pairs = [pair for _, needs, rivals, *_ in self.pending if needs <= then.values.keys() for pair in (rivals or {}).get(read, ())]
        return [(symbol, then.evaluate(rival)) for symbol, rival in pairs]


def numbers_in(values: Iterable[Value | None]) -> list[float | None]:
    """The numbers among values, those in lists included, and None for each unknown value."""
    items = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
    return [item for item in items if item is None or isinstance(item, int | float)]


def _aligned(dims: tuple[Expression, ...], rank: int) -> list[tuple[int, Expression]]:
    """The axes of a judgement, each with its size. Those behind a `..k` count from the end; those of
    `..ones(k)` are 1, whatever k is.
    """
    rest = next((dim for dim in dims if isinstance(dim, Spread)), None)
    place = len(dims) if rest is None else dims.index(rest)
    behind = max(len(dims) - place - 1, 0)
    if place + behind > rank or (rest is None and place != rank):
        return []
    one = rest is not None and isinstance(rest.item, Call) and rest.item.function == "ones"
    between = [(axis, whole_number(1)) for axis in range(place, rank - behind)] if one else []
    return [*enumerate(dims[:place]), *between, *zip(range(rank - behind, rank), dims[len(dims) - behind :], strict=True)]


def _value(expression: Expression, values: Names) -> Value | None:
    try:
        return evaluate(expression, values)
    except Unevaluable:
        return None


def _needed(expression: Expression) -> frozenset[str] | None:
    return None if isinstance(expression, Wildcard) or _has_wildcard(expression) else free_names(expression)


_mentioned = ByIdentity(_needed, 1 << 12)
"""The names that an expression needs before it has a value; None if it matches anything."""


def _has_wildcard(expression: Expression) -> bool:
    return isinstance(expression, Items) and any(
        isinstance(item, Wildcard) or (isinstance(item, Spread) and isinstance(item.item, Wildcard)) for item in expression.items
    )


def setting(value: Value | None) -> Setting | None:
    """A value of the language as that of an attribute or parameter; None if it can not be one."""
    if isinstance(value, DType):
        return value.code
    if isinstance(value, tuple):
        return value if all(isinstance(item, int | float | str) for item in value) else None  # type: ignore[return-value]
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else None


def attribute(value: Setting) -> AttributeValue:
    """A setting as inference takes it: strings are bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, tuple):
        return tuple(item.encode() if isinstance(item, str) else item for item in value)  # type: ignore[return-value]
    return value

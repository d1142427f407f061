"""Functions of lists and of numbers in them, known or symbolic, for the table in `functions.py`.

The arguments are known values of the sorts in the table; the items of a list may be unknown.
Results follow the table's conventions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from eqsat.facts import dims
from eqsat.facts.dims import Known
from eqsat.language.values import (
    LIST_LIMIT,
    List,
    NoValue,
    Value,
    arithmetic,
    at_most,
    concrete,
    condition,
    contains,
    described,
    equal,
    every,
    is_integer,
    is_list,
    is_number,
    some,
)


def length(items: Value) -> int:
    """`len`."""
    if not is_list(items):
        raise NoValue(f"len takes a list, not {described(items)}")
    return len(items)


def total(items: List) -> Value | None:
    """`sum`."""
    # `dims.add` takes all at once, so the sum is known even if a partial sum leaves int64.
    integers = [item for item in items if item is None or is_integer(item)]
    return dims.add(*integers) if len(integers) == len(items) else functools.reduce(_adder("+", "sum"), items, 0)


def product(items: List) -> Value | None:
    """`prod`."""
    integers = [item for item in items if item is None or is_integer(item)]
    return dims.product(integers) if len(integers) == len(items) else functools.reduce(_adder("*", "prod"), items, 1)


def _adder(symbol: str, name: str) -> Callable[[Value | None, Value | None], Value | None]:
    def step(a: Value | None, b: Value | None) -> Value | None:
        _numbers((b,), name)
        return arithmetic(symbol, a, b)

    return step


def _numbers(items: List, name: str) -> None:
    for item in items:
        if item is not None and not is_number(item):
            raise NoValue(f"{name} is of numbers, not of {described(item)}")


def extreme(name: str, *arguments: Value | None) -> Value | None:
    """`min` and `max` of the items of one list, or of several numbers. A NaN among them is the
    result.
    """
    items: List = arguments[0] if len(arguments) == 1 and is_list(arguments[0]) else arguments
    _numbers(items, name)
    if not items or arguments == (None,):
        raise NoValue(f"{name} of no numbers, or of a list that is not known")
    choose = dims.minimum if name == "min" else dims.maximum
    integers = [item for item in items if item is None or is_integer(item)]
    if len(integers) == len(items):
        # One by one, so that the size of the symbolic minimum or maximum stays bounded.
        return functools.reduce(choose, integers)
    known = [item for item in items if isinstance(item, int | float)]
    if len(known) < len(items):
        return None
    nans = [item for item in known if item != item]
    return nans[0] if nans else (min if name == "min" else max)(known)


class _Undecided(Exception):
    pass


def in_order(items: List) -> Value | None:
    """`sorted`. If the order of two items is unknown, all items are."""
    _numbers(items, "sorted")
    known = [item for item in items if is_number(item)]
    if any(item != item for item in known):
        raise NoValue("a NaN has no place in an order")
    if len(known) < len(items):
        return (None,) * len(items)
    plain = [item for item in known if isinstance(item, int | float)]
    if len(plain) == len(known):
        return tuple(sorted(plain))
    try:
        return tuple(sorted(known, key=functools.cmp_to_key(_precedes)))
    except _Undecided:
        return (None,) * len(items)


def _precedes(a: Value, b: Value) -> int:
    if not is_integer(a) or not is_integer(b):
        raise _Undecided
    if at_most(a, b):
        return -1
    if at_most(b, a):
        return 1
    raise _Undecided


def steps(*bounds: Known) -> Value | None:
    """`range`, as in Python. The items may be symbolic if their number is not."""
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    by = concrete(step, "the step")
    if by == 0:
        raise NoValue("a range with the step 0")
    known = range(start, stop, by) if isinstance(start, int) and isinstance(stop, int) else None
    count = dims.maximum(0, dims.ceildiv(dims.sub(stop, start), by)) if known is None else len(known)
    if not isinstance(count, int):
        return None
    if count > LIST_LIMIT:
        raise NoValue(f"a range of {count} numbers; a list has at most {LIST_LIMIT} items")
    return tuple(dims.add(start, by * position) for position in range(count)) if known is None else tuple(known)


def repeat(value: Value, count: Known) -> Value | None:
    """`repeat`."""
    if not isinstance(count, int):
        return None
    if count > LIST_LIMIT:
        raise NoValue(f"a list of {count} items; a list has at most {LIST_LIMIT}")
    return (value,) * count


def filled(item: int, count: Value) -> Value | None:
    """`ones` and `zeros`."""
    if is_list(count):
        return (item,) * len(count)
    if not is_integer(count):
        raise NoValue(f"{described(count)} is no number of items")
    return repeat(item, count)


def backwards(items: List) -> List:
    """`reversed`."""
    return items[::-1]


def all_hold(items: List) -> bool | None:
    """`all`."""
    return every([condition(item) for item in items])


def one_holds(items: List) -> bool | None:
    """`any`."""
    return some([condition(item) for item in items])


def first_index(items: List, wanted: Value) -> int | None:
    """`index`."""
    truths = [equal(item, wanted) for item in items]
    if True not in truths:
        raise NoValue("no item of the list is known to be this one")
    return None if None in truths[: truths.index(True)] else truths.index(True)


def count(items: List, wanted: Value) -> int | None:
    """`count`."""
    truths = [equal(item, wanted) for item in items]
    return None if None in truths else truths.count(True)


def unique(items: List) -> Value | None:
    """`unique`. If the equality of two items is unknown, the number of items is unknown too."""
    kept: list[Value | None] = []
    for item in items:
        found = contains(tuple(kept), item)
        if found is None:
            return None
        if not found:
            kept.append(item)
    return tuple(kept)

"""Functions of axes, permutations, and lists of sizes, known or symbolic, for the table in
`functions.py`.

The arguments are known values of the sorts in the table; the items of a list may be unknown.
Results follow the table's conventions.
"""

from __future__ import annotations

from eqsat.facts import dims
from eqsat.facts.dims import Dim, Known
from eqsat.facts.shapes import UNBOUNDED
from eqsat.language.values import List, NoValue, Value, at_most, concrete, described, equal, every, is_integer, is_list, negation, some


def integers(items: List, what: str) -> tuple[Dim, ...]:
    """The items of a list that must hold integers."""
    found = tuple(item for item in items if item is None or is_integer(item))
    if len(found) < len(items):
        raise NoValue(f"{what} are integers")
    return found


def _numbers(items: List, what: str) -> list[int]:
    found = [item for item in integers(items, what) if isinstance(item, int)]
    if len(found) < len(items):
        raise NoValue(f"{what} are not all known")
    return found


# --- axes and permutations ---


def _from_front(axis: Value | None, rank: int) -> int:
    if not is_integer(axis):
        raise NoValue("an axis is not known" if axis is None else f"{described(axis)} is no axis")
    number = concrete(axis, "an axis")
    if not -rank <= number < rank:
        raise NoValue(f"axis {number} of {rank}")
    return number % rank


def normalized(axes: Value, rank: Known) -> Value:
    """`normalized`."""
    among = concrete(rank, "the rank")
    return tuple(_from_front(axis, among) for axis in axes) if is_list(axes) else _from_front(axes, among)


def is_permutation(items: List, count: Known) -> bool | None:
    """`is_permutation`."""
    found = integers(items, "the items of a permutation")
    known = [item for item in found if isinstance(item, int)]
    right_length = equal(len(found), count)
    repeated = len(set(known)) < len(known)
    if right_length is False or repeated or any(not 0 <= item < len(found) for item in known):
        return False
    return right_length if len(known) == len(found) else None


def inverse(permutation: List) -> List:
    """`inverse`."""
    order = _numbers(permutation, "the items of a permutation")
    if not is_permutation(permutation, len(order)):
        raise NoValue("a list that is no permutation has no inverse")
    return tuple(order.index(axis) for axis in range(len(order)))


def moves_only_ones(permutation: List, sizes: List) -> bool | None:
    """`moves_only_ones`."""
    order = _numbers(permutation, "the items of a permutation")
    if not is_permutation(permutation, len(sizes)):
        raise NoValue("this is no permutation of the axes")
    ones = [equal(size, 1) for size in integers(sizes, "sizes")]
    # If the axes that may be longer than 1 keep their relative order, the elements do too. If the
    # axes that are longer than 1 do not, the elements do not either.
    maybe, surely = [axis for axis in order if ones[axis] is not True], [axis for axis in order if ones[axis] is False]
    return True if maybe == sorted(maybe) else False if surely != sorted(surely) else None


# --- sizes ---


def broadcast(*shapes: List) -> List:
    """`broadcast`."""
    known = [integers(sizes, "sizes") for sizes in shapes]
    rank = max(map(len, known))
    return tuple(_broadcast_size([sizes[axis - rank] for sizes in known if axis >= rank - len(sizes)]) for axis in range(rank))


def _broadcast_size(column: list[Dim]) -> Dim:
    others = list(dict.fromkeys(size for size in column if size != 1))
    if len(others) > 1 or column.count(None) > 1:
        raise NoValue(f"sizes {', '.join(map(dims.render, others))} may not broadcast together")
    return others[0] if others else 1


def broadcasts_to(sizes: List, target: List) -> bool | None:
    """`broadcasts_to`."""
    given, wanted = integers(sizes, "sizes"), integers(target, "sizes")
    if len(given) > len(wanted):
        return False
    pairs = zip(reversed(given), reversed(wanted), strict=False)
    return every(some((equal(size, 1), equal(size, other))) for size, other in pairs)


def same_without_ones(a: List, b: List) -> bool | None:
    """`same_without_ones`."""
    left, right = (tuple(size for size in integers(sizes, "sizes") if size != 1) for sizes in (a, b))
    matched = equal(left, right)
    if matched or all(equal(size, 1) is False for size in (*left, *right)):
        return matched
    # Sizes that are equal without their ones have the same product.
    return False if equal(dims.product(left), dims.product(right)) is False else None


def bound(position: Known, size: Known) -> Dim:
    """`bound`."""
    if isinstance(position, int) and position >= UNBOUNDED:
        return size
    backward = negation(at_most(0, position))
    if backward is None:
        return None
    return dims.maximum(0, dims.add(position, size)) if backward else dims.minimum(position, size)


def regroup(a: List, b: List) -> List:
    """`regroup`."""
    sides = (integers(a, "sizes"), integers(b, "sizes"))
    if not equal(dims.product(sides[0]), dims.product(sides[1])):
        raise NoValue("the sizes are not known to make up as many elements")
    groups: list[tuple[int, int]] = []
    starts = [0, 0]
    while starts[0] < len(a) or starts[1] < len(b):
        counts = _group(sides[0][starts[0] :], sides[1][starts[1] :])
        if counts is None:
            # The remaining products differ, which only an earlier size of 0 allows, or are not
            # known to be equal.
            return ((len(a), len(b)),)
        groups.append(counts)
        starts = [starts[0] + counts[0], starts[1] + counts[1]]
    return tuple(groups)


def _group(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[int, int] | None:
    """The fewest first sizes on either side with equal products. If only one side begins with a 1,
    that 1 is a group of its own.
    """
    ones = (a[:1] == (1,), b[:1] == (1,))
    if ones[0] != ones[1]:
        return (int(ones[0]), int(ones[1]))
    counts = [1, 1]
    while counts[0] <= len(a) and counts[1] <= len(b):
        left, right = dims.product(a[: counts[0]]), dims.product(b[: counts[1]])
        if equal(left, right):
            return (counts[0], counts[1])
        divides = dims.exact_divide(right, left) is not None
        counts[0 if (divides and counts[0] < len(a)) or counts[1] == len(b) else 1] += 1
    return None

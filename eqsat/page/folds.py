"""Folds: the nodes of two corresponding graphs in one tree of named groups, which a reader opens
step by step.

The tree follows the original: the scopes in its names, or in the metadata of its exporter. Long
lists of nodes are cut into repeated blocks, or where few values cross. A node of the other graph is
in the fold of its counterpart, or of the node that had its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from eqsat.page.correspondence import Correspondence
from eqsat.page.flat import Step

WIDE = 40
"""The most items of a fold, where the original has them."""
_LEAST = 3  # nodes of a scope that is a fold of its own
_DEEPEST = 12  # scopes; names are untrusted, and folds are nested as deep
_PERIODS = range(5, 161)  # lengths of repeated blocks that are looked for


@dataclass(slots=True)
class Fold:
    """A group of nodes and of other groups, in the order of the graph."""

    title: str
    items: list[int | Fold] = field(default_factory=list["int | Fold"])

    def nodes(self) -> Iterator[int]:
        """Yields the nodes of this fold and of those inside."""
        for item in self.items:
            if isinstance(item, Fold):
                yield from item.nodes()
            else:
                yield item


@dataclass(frozen=True, slots=True)
class Folds:
    """The tree as lists. Fold 0 is the whole graph; the others come after the one they are in."""

    titles: Sequence[str]
    parents: Sequence[int]
    before: Sequence[int]
    """By node of the original, its fold."""
    after: Sequence[int]
    """By node of the other graph, its fold."""


def folds(before: Sequence[Step], after: Sequence[Step], found: Correspondence) -> Folds:
    """Returns the tree of two graphs that correspond as `found` says."""
    root = Fold("")
    known: dict[tuple[str, ...], Fold] = {(): root}
    for number, step in enumerate(before):
        path = scopes_of(step)
        for depth in range(len(path)):
            if path[: depth + 1] not in known:
                known[path[:depth]].items.append(fold := Fold(path[depth]))
                known[path[: depth + 1]] = fold
        known[path].items.append(number)
    _tidy(root, before)
    while len(root.items) == 1 and isinstance(inner := root.items[0], Fold):
        root = inner  # an outermost scope around everything tells nothing
    titles, parents, places = [""], [0], [0] * len(before)
    waiting = [(0, root)]
    for place, fold in waiting:
        for item in fold.items:
            if isinstance(item, Fold):
                titles.append(item.title)
                parents.append(place)
                waiting.append((len(titles) - 1, item))
            else:
                places[item] = place
    return Folds(titles, parents, places, _places_after(before, after, found, places))


def scopes_of(step: Step) -> tuple[str, ...]:
    """Returns the scopes that a node is in, the outermost first: the bodies, then the modules."""
    path = step.scopes
    if not path:
        named = next((name for name in (step.name, *step.outputs) if "/" in name), "")
        path = tuple(part for part in named.split("/")[:-1] if part)
    return (*step.within, *path)[:_DEEPEST]


def _tidy(fold: Fold, steps: Sequence[Step]) -> None:
    """Makes a fold easy to read: no tiny folds, no folds of one fold, and no long lists."""
    items: list[int | Fold] = []
    for item in fold.items:
        if isinstance(item, Fold):
            _tidy(item, steps)
            while len(item.items) == 1 and isinstance(inner := item.items[0], Fold):
                item = Fold(f"{item.title}/{inner.title}", inner.items)
            if sum(1 for _ in item.nodes()) < _LEAST:
                items += item.items
                continue
        items.append(item)
    fold.items = items
    _cut(fold, steps)


def _cut(fold: Fold, steps: Sequence[Step]) -> None:
    """Cuts a list that is too long into folds, and those again."""
    while len(fold.items) > WIDE:
        chunks = _chunks(fold.items, steps)
        if len(chunks) == len(fold.items) or len(chunks) == 1:
            return
        for chunk in chunks:
            if isinstance(chunk, Fold):
                _cut(chunk, steps)
        fold.items = chunks


def _chunks(items: Sequence[int | Fold], steps: Sequence[Step]) -> list[int | Fold]:
    """Returns a list cut into folds: repeated blocks, and parts between them."""
    kinds = [item.title.rstrip("0123456789") if isinstance(item, Fold) else steps[item].operator for item in items]
    crossing = _crossing(items, steps)
    found: list[int | Fold] = []
    parts = 0
    for start, end, period in _runs(kinds, 0, len(items)):
        if period:
            shift = min(range(period), key=lambda shift: sum(crossing[start + shift : end : period]) / len(range(start + shift, end, period)))
            places = [start, *(place for place in range(start + shift, end, period) if place > start), end]
        else:
            places = _narrow(crossing, start, end)
        for first, last in pairwise(places):
            inside = list(items[first:last])
            if len(inside) == 1:
                found += inside
                continue
            parts += 1
            names = list(dict.fromkeys(kinds[first:last]))
            found.append(Fold(f"{'block' if period else 'part'} {parts}: {', '.join(names[:3])}{', …' if len(names) > 3 else ''}", inside))
    return found


def _runs(kinds: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields the runs of a list, each with its period; 0 if nothing in it is repeated."""
    best = (start, start, 0)
    for period in _PERIODS:
        if end - start < 2 * period:
            break
        since = start
        for place in range(start, end - period + 1):
            if place == end - period or kinds[place] != kinds[place + period]:
                # A longer period must explain clearly more: blocks inside blocks repeat as well.
                if place - since >= period and place + period - since > 1.2 * (best[1] - best[0]):
                    best = (since, place + period, period)
                since = place + 1
    if not best[2]:
        if end > start:
            yield start, end, 0
        return
    yield from _runs(kinds, start, best[0])
    yield best
    yield from _runs(kinds, best[1], end)


def _crossing(items: Sequence[int | Fold], steps: Sequence[Step]) -> list[int]:
    """Returns, for each place in a list, how many values made before it are used at or after it."""
    made: dict[str, int] = {}
    last: dict[str, int] = {}
    members = [[item] if isinstance(item, int) else list(item.nodes()) for item in items]
    for place, nodes in enumerate(members):
        for number in nodes:
            made.update(dict.fromkeys(steps[number].outputs, place))
    for place, nodes in enumerate(members):
        for number in nodes:
            last.update((key, place) for key in (*steps[number].inputs, *steps[number].results) if made.get(key, place) < place)
    change = [0] * (len(items) + 1)
    for key, place in last.items():
        change[made[key] + 1] += 1
        change[place + 1] -= 1
    total, found = 0, list[int]()
    for step in change:
        total += step
        found.append(total)
    return found


def _narrow(crossing: Sequence[int], start: int, end: int) -> list[int]:
    """Returns the places at which to cut a list: where the fewest values cross."""
    places = [start]
    while end - places[-1] > WIDE:
        least = places[-1] + WIDE // 3
        places.append(min(range(least, places[-1] + WIDE + 1), key=lambda place: (crossing[place], -place)))
    return [*places, end]


def _places_after(before: Sequence[Step], after: Sequence[Step], found: Correspondence, places: Sequence[int]) -> list[int]:
    """Returns, by node of the other graph, the fold of the node that had its value, of its first
    user, or of its first source.
    """
    homes: dict[str, int] = {}
    for number, step in enumerate(before):
        for key in step.outputs:
            if key in found.same:
                homes.setdefault(found.same[key], places[number])
    placed: list[int | None] = [None] * len(after)
    users: dict[str, int] = {}
    for number, step in reversed(list(enumerate(after))):
        placed[number] = place = next((place for place in (*map(homes.get, step.outputs), *map(users.get, step.outputs)) if place is not None), None)
        if place is not None:
            users.update(dict.fromkeys((*step.inputs, *step.results), place))
    makers: Mapping[str, int] = {key: number for number, step in enumerate(after) for key in step.outputs}
    for number, step in enumerate(after):
        if placed[number] is None:
            placed[number] = next((place for key in step.inputs if key in makers and (place := placed[makers[key]]) is not None), 0)
    return [place or 0 for place in placed]

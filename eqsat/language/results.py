"""Lists of results: a rule about `..ys = Split(x, s)` stands for one plain rule for each length.

The input is a rule without calls of definitions and without families. The output is its members,
whose lists of results are written out: `ys_1, ys_2 = Split(x, s)`. Lists that are mapped over
together with results have the same length, so they are written out, too. This happens on the syntax
tree, so later stages never see lists of results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from eqsat.frozen import frozen
from eqsat.language import syntax
from eqsat.language.left_names import check_mapped
from eqsat.language.problems import Report
from eqsat.language.scope import condition_names
from eqsat.language.scope import names as mentioned
from eqsat.language.syntax import Expression, Line, Name, Rule
from eqsat.language.trees import introduced, nodes, rebuilt, rebuilt_rule

LENGTHS = range(2, 9)
"""The lengths that a list of results may have. Each is a rule of its own, so there is a maximum."""


def has_results(rule: Rule) -> bool:
    """Whether a line of the rule names a list of results."""
    return any(_targets(line) for line in (*rule.left, *rule.right))


def is_family(rule: Rule) -> bool:
    """Whether a rule as written stands for several."""
    return bool(rule.ranges) or has_results(rule)


def of_each_length(rule: Rule, report: Report) -> list[Rule]:
    """The members of a rule with lists of results, or the rule itself if it has none. Problems go
    to the report.
    """
    if not has_results(rule):
        return [rule]
    lists = _lists(rule, report)
    _check_uses(rule, report)
    taken = {name for node in nodes((rule.left, rule.right, rule.conditions, rule.tests, rule.exact_if)) for name in introduced(node)}
    for name in sorted({_item(name, number) for name in lists for number in range(1, LENGTHS.stop)} & taken):
        report.add(rule.place, f"{name} is the name of an item of a list of results; choose another name")
    for test in rule.tests:
        counts = {len(given.types) for given in test.given if given.name in lists}
        if not counts:
            report.add(test.place, "this line does not tell how many results there are: it gives the types of no list that is as long")
        elif len(counts) > 1 or not counts.issubset(LENGTHS):
            found = " and ".join(map(str, sorted(counts)))
            report.add(test.place, f"this line gives lists of {found} tensors; lists of results have {LENGTHS.start} to {LENGTHS.stop - 1}, all equally many")
    members: list[Rule] = []
    for length in LENGTHS:
        if report.problems:
            return []
        members.append(_Member(lists, length, report).of(rule))
    return members


def _lists(rule: Rule, report: Report) -> frozenset[str]:
    """The names of all lists that have the length of the results."""
    lines = (*rule.left, *rule.right)
    found = {target for line in lines for target in _targets(line)}
    together: list[tuple[str, ...]] = []
    for line in lines:
        match line.value:
            case syntax.Spread(Name(name)):
                together.append((*_targets(line), name))
            case syntax.Mapped(_, _, sources):
                together.append((*_targets(line), *sources))
            case syntax.Term():
                pass
            case _ if _targets(line):
                report.add(line.value.place, "a list of results is made by an operator, by one for each item of a list, or is a list `..xs`")
            case _:
                pass
    mapped = [node for node in nodes((rule.left, rule.right, rule.conditions)) if isinstance(node, syntax.Mapped)]
    together += [node.sources for node in mapped]
    while more := {name for names in together if not found.isdisjoint(names) for name in names} - found:
        found |= more
    for node in mapped:
        if not found.isdisjoint(node.sources):
            check_mapped(node, report)
            for name in sorted(set(node.targets) - set(mentioned(node.item))):
                report.add(node.place, f"{name} is not used for the items of the list")
    return frozenset(found)


def _check_uses(rule: Rule, report: Report) -> None:
    """Reports a list of results that the rule names once."""
    lines = (*rule.left, *rule.right)
    targets = [(name, line.place) for line in lines for name in _targets(line)]
    read = {name for line in lines for name in mentioned(line.value)}
    read |= {name for condition in rule.conditions for name in condition_names(condition)}
    for name, place in targets:
        if name not in read and [other for other, _ in targets].count(name) == 1:
            report.add(place, f"..{name} is used once, so the rule says nothing of these results")


def _targets(line: Line) -> tuple[str, ...]:
    """The lists of results that a line names."""
    return tuple(target.removeprefix("..") for target in line.targets if target.startswith(".."))


def _item(name: str, number: int) -> str:
    return f"{name}_{number}"


@frozen
class _Written(syntax.Items):
    """The items of a list of results, in place of the list, while a tree is rebuilt."""


class _Member:
    """The member of a rule for one length."""

    def __init__(self, lists: frozenset[str], length: int, report: Report) -> None:
        self._lists = lists
        self._length = length
        self._report = report

    def of(self, rule: Rule) -> Rule:
        """The member of this rule."""
        tests = tuple(test for test in rule.tests if all(len(given.types) == self._length for given in test.given if given.name in self._lists))
        tests = tuple(replace(test, given=tuple(one for given in test.given for one in self._given(given))) for test in tests)
        found = rebuilt_rule(replace(rule, tests=tests), self._changed)
        family, _, operators = rule.name.removesuffix("]").partition("[")
        found = replace(
            found,
            name=f"{family}[{','.join(filter(None, (operators, str(self._length))))}]",
            left=tuple(self._split(found.left)),
            right=tuple(self._split(found.right)),
            conditions=tuple(one for condition in found.conditions for one in self._condition(condition)),
            results=self._length,
        )
        for node in nodes((found.left, found.right, found.conditions, found.exact_if)):
            if isinstance(node, _Written):
                self._report.add(node.place, "a list that is as long as results is read as xs[0], len(xs) or [... for x in xs]")
        return found

    def _names(self, name: str) -> list[str]:
        return [_item(name, number) for number in range(1, self._length + 1)]

    def _changed(self, node: Any) -> Any:
        """The replacement of a node whose parts have been changed."""
        match node:
            case Name(name, place) if name in self._lists:
                return _Written(tuple(Name(one, place) for one in self._names(name)), place)
            case syntax.Mapped(item, targets, sources, place) if self._lists.issuperset(sources):
                items = zip(*map(self._names, sources), strict=True)
                return _Written(tuple(_renamed(item, dict(zip(targets, names, strict=True))) for names in items), place)
            case syntax.Term():
                return replace(node, inputs=tuple(one for item in node.inputs for one in _written_out(item)))
            case syntax.Index(_Written(items), syntax.Number(int(number))) if -len(items) <= number < len(items):
                return items[number]
            case syntax.Call("len", (_Written(items),)):
                return syntax.Number(len(items), str(len(items)), node.place)
            case syntax.Comprehension(item, target, _Written(items), (), place):
                return syntax.Items(tuple(_renamed(item, {target: one.name}) for one in items if isinstance(one, Name)), place)
            case _:
                return node

    def _split(self, lines: Sequence[Line]) -> Iterator[Line]:
        """The lines with names for the items of their lists. A list that is made item by item
        becomes a line for each item.
        """
        for line in lines:
            names = [name for target in _targets(line) for name in self._names(target)]
            match line.value:
                case _Written(items) | syntax.Spread(_Written(items)) if names:
                    yield from (Line((name,), item, line.place) for name, item in zip(names, items, strict=True))
                case _:
                    yield replace(line, targets=tuple(names) or line.targets)

    def _condition(self, condition: syntax.Condition) -> Iterator[syntax.Condition]:
        if isinstance(condition, syntax.Judgement | syntax.Const) and condition.name in self._lists:
            yield from (replace(condition, name=name) for name in self._names(condition.name))
        else:
            yield condition

    def _given(self, given: syntax.Given) -> Iterator[syntax.Given]:
        if given.name in self._lists:
            yield from (replace(given, name=name, types=(one,)) for name, one in zip(self._names(given.name), given.types, strict=True))
        else:
            yield given


def _written_out(item: Expression | None) -> Iterable[Expression | None]:
    """The inputs that one input of a term stands for."""
    match item:
        case _Written(items) | syntax.Spread(_Written(items)):
            return items
        case _:
            return (item,)


def _renamed(tree: Expression, names: dict[str, str]) -> Expression:
    return rebuilt(tree, lambda node: replace(node, name=names[node.name]) if isinstance(node, Name) and node.name in names else node)

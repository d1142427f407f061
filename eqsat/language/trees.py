"""Syntax trees as plain trees: iteration over all nodes, and rebuilding with changed nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from eqsat.language import syntax
from eqsat.language.syntax import Place, Rule

Node = TypeVar("Node")


def rebuilt(node: Node, change: Callable[[Any], Any]) -> Node:
    """The tree with `change` applied to each of its nodes, inner nodes first. Unchanged parts are
    shared.
    """
    if isinstance(node, tuple):
        parts: tuple[Any, ...] = tuple(rebuilt(part, change) for part in node)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return parts if any(a is not b for a, b in zip(parts, node, strict=True)) else node  # pyright: ignore
    if not dataclasses.is_dataclass(node) or isinstance(node, (type, Place)):
        return node
    made: dict[str, Any] = {}
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if (part := rebuilt(value, change)) is not value:
            made[field.name] = part
    return change(replace(node, **made) if made else node)


def rebuilt_rule(rule: Rule, change: Callable[[Any], Any]) -> Rule:
    """The rule with `change` applied to its sides, conditions and tests."""
    parts = {name: getattr(rule, name) for name in ("left", "right", "conditions", "tests", "exact_if")}
    return replace(rule, **{name: rebuilt(part, change) for name, part in parts.items()})


def nodes(node: Any) -> Iterator[Any]:
    """All nodes of a tree."""
    if isinstance(node, tuple):
        for part in node:  # pyright: ignore[reportUnknownVariableType]
            yield from nodes(part)
    elif dataclasses.is_dataclass(node) and not isinstance(node, Place):
        yield node
        for field in dataclasses.fields(node):
            yield from nodes(getattr(node, field.name))


def introduced(node: Any) -> Iterator[str]:
    """The names that a node itself introduces."""
    match node:
        case syntax.Name(name) | syntax.Maybe(name) | syntax.Given(name) | syntax.Judgement(name) | syntax.Const(name) | syntax.Comprehension(_, name):
            yield name
        case syntax.Line(targets) | syntax.Definition(targets):
            yield from targets
        case syntax.Term(_, _, str(carried)):
            yield carried
        case _:
            pass

"""The names that the steps of a left side give values to, those that they read, and their columns."""

from __future__ import annotations

from eqsat.language import syntax
from eqsat.language.query import AreSizes, BindAttribute, BindTensor, BindTensors, CheckAttribute, Holds, MatchNumber, MatchParameter, Step
from eqsat.language.scope import condition_names, names


def gives(step: Step) -> set[str]:
    """The names that a step binds."""
    match step:
        case BindAttribute() | BindTensor() | BindTensors():
            return {step.name} - {""}
        case MatchParameter():
            return _bound(step.pattern)
        case Holds(syntax.Definition(targets, _)):
            return set(targets)
        case Holds(syntax.Judgement(_, type)):
            return {type.dtype, *(name for dim in type.dims or () for name in _bound(dim))}
        case _:
            return set()


def _bound(pattern: syntax.Expression) -> set[str]:
    """The names that a parameter or a dimension of a judgement binds. Names inside computed
    expressions are only read.
    """
    match pattern:
        case syntax.Name(name):
            return {name}
        case syntax.Spread(item):
            return _bound(item)
        case syntax.Items(items):
            return {name for item in items for name in _bound(item)}
        case _:
            return set()


def reads(step: Step) -> set[str]:
    """The names that a step mentions, including some that it binds."""
    match step:
        case BindAttribute() | BindTensor() | BindTensors() | AreSizes():
            return set()
        case CheckAttribute() | MatchNumber():
            return set(names(step.value))
        case MatchParameter():
            return set(names(step.pattern))
        case Holds():
            return condition_names(step.condition)


def sources(step: Step) -> tuple[int, ...]:
    """The columns of a match that a step looks at."""
    match step:
        case BindAttribute() | BindTensor() | BindTensors() | MatchParameter():
            return (step.source,)
        case CheckAttribute():
            return (step.source, *step.inputs)
        case MatchNumber():
            return (step.source, *step.others)
        case AreSizes():
            return (step.allowzero, step.sizes)
        case Holds():
            return ()

"""Columns that differ in each match that fires, and classes that differ in each match that is of use, as far as the
text of a rule shows.

`pads = q` fails where the attribute is absent, and `g > h` where both have the same handle. egglog compares two columns
itself, so such pairs of nodes never reach the callback, which costs a hundred times as much.
"""

from __future__ import annotations

from collections.abc import Iterator

from eqsat.frozen import frozen
from eqsat.language import syntax
from eqsat.language.construction import Construction, Value
from eqsat.language.query import BindAttribute, Holds, NodeAtom, Pattern
from eqsat.operators import AttributeValue
from eqsat.terms.attribute_meaning import AXIS_ATTRIBUTES

_UNEQUAL = frozenset({"<", ">", "!="})


@frozen
class Differing:
    """An attribute column that differs from another one, or else from a value; None stands for an
    absent attribute.
    """

    first: int  # a source of the pattern, as is `second`
    second: int | None = None
    value: AttributeValue | None = None


def differing(pattern: Pattern) -> Iterator[Differing]:
    """Yields the pairs of columns that a pattern wants to differ: an attribute with a name must be
    present, and some guards want it to have another value.
    """
    for step in pattern.steps:
        if isinstance(step, BindAttribute) and not step.optional:
            yield Differing(step.source)
    bound = {step.name: step for step in pattern.steps if isinstance(step, BindAttribute) and not _is_axis(step)}
    for step in pattern.steps:
        match step:
            case Holds(syntax.Guard(syntax.Comparison((syntax.Name(left), right), (operator,)))) if left in bound and operator in _UNEQUAL:
                first = bound[left]
                match right:
                    # An absent attribute stands for its default, which other operators do not share.
                    case syntax.Name(name) if name in bound and (bound[name].operator, bound[name].attribute) == (first.operator, first.attribute):
                        yield Differing(first.source, bound[name].source)
                    case syntax.Number(int(number)):
                        yield Differing(first.source, value=number)
                    case _:
                        pass
            case _:
                pass


def apart(pattern: Pattern, construction: Construction) -> Iterator[tuple[str, str]]:
    """Yields the pairs of classes that are apart where a rule makes one node of two of its operator, as
    F(F(x, a), b) => F(x, c).

    A node that is in the class of its own input changes nothing. Without it, or in its place, there is a node already
    that computes what the merged one does. And to merge such nodes with each other never ends, where the engine does
    not know that c is a or b.
    """
    if len(pattern.roots) != 1 or len(construction.roots) != 1:
        return
    (root,), (made,) = pattern.roots.values(), construction.roots.values()
    nodes = {atom.variable: atom for atom in pattern.atoms if isinstance(atom, NodeAtom)}
    outer = nodes.get(root)
    if outer is None or not isinstance(made, Value) or construction.nodes[made.node].operator != outer.operator:
        return
    for position, name in enumerate(outer.inputs):
        inner = None if name is None else nodes.get(name)
        source = inner.inputs[position] if inner is not None and inner.operator == outer.operator and position < len(inner.inputs) else None
        if inner is not None and source is not None:
            yield inner.variable, source
            yield outer.variable, inner.variable


def _is_axis(step: BindAttribute) -> bool:
    """Tells whether the value counts axes: equal numbers may mean other axes of other tensors."""
    return (step.operator.name, step.attribute) in AXIS_ATTRIBUTES

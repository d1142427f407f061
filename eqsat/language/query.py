"""The query of a left side as plain data: the atoms of a match, and the steps that a match must
pass.

A query is structural. It holds operators, fixed attributes and the nodes at each input. Conditions
on values (typing judgements, integers, guards) are steps. They read attributes and facts of the
matched classes, one step after the other, and stop at the first that is not known to hold.
"""

from __future__ import annotations

import functools
from collections.abc import Set
from dataclasses import field
from typing import NamedTuple, TypeAlias

from eqsat.frozen import frozen, mutable
from eqsat.language import syntax
from eqsat.operators import AttributeValue, Operator
from eqsat.terms.terms import Signature


@frozen
class Fixed:
    """An attribute column with one admitted value; None stands for an absent attribute."""

    value: AttributeValue | None


@frozen
class NodeAtom:
    """One operator node of a query: variables of its class, its attributes and its inputs; an input
    that is None is absent.
    """

    variable: str
    operator: Operator
    signature: Signature
    attributes: tuple[Fixed | str, ...]
    inputs: tuple[str | None, ...]  # the single inputs, or both operands of a view
    items: tuple[str | None, ...]  # at the front of the list of further inputs
    rest: str | None  # the variable of the list after the items, or None for its end
    view: bool  # matched through the view that holds both orders
    term: syntax.Term


@frozen
class OutputAtom:
    """A value that is one output of a node."""

    variable: str
    index: int
    node: str
    place: syntax.Place


@frozen
class FactAtom:
    """`source` is the fact of a class. Every class has a fact, so such an atom never fails."""

    source: str
    variable: str
    listed: bool  # whether the class is a list


@frozen
class MappedAtom:
    """A non-empty list whose items are all terms of one form.

    `item` is the class of the current item. `atoms` describe its form, and `steps` its further
    conditions, given the `sources` of one item. The values of the item's names form lists of their
    own. Other `classes` and `attributes` that the rest of the rule reads are the same for all
    items.
    """

    variable: str
    item: str
    atoms: tuple[Atom, ...]
    steps: tuple[Step, ...]
    sources: tuple[str, ...]
    parts: tuple[tuple[str, str], ...]  # the class variable of one item, and that of the list
    classes: tuple[str, ...]
    attributes: tuple[str, ...]
    term: syntax.Term

    @property
    def lists(self) -> tuple[str, ...]:
        """The class variables of the lists that it forms."""
        return tuple(listed for _, listed in self.parts)

    @property
    def nodes(self) -> tuple[NodeAtom, ...]:
        """The nodes of one item."""
        return tuple(atom for atom in self.atoms if isinstance(atom, NodeAtom))


Atom: TypeAlias = NodeAtom | OutputAtom | FactAtom | MappedAtom


@frozen
class BindAttribute:
    """Binds `name` to the value of the attribute in column `source`. An `optional` attribute may be
    absent.
    """

    source: int
    operator: Operator
    attribute: str
    name: str
    optional: bool
    place: syntax.Place


@frozen
class CheckAttribute:
    """The attribute in column `source` equals an expression. Axes are compared as counts from the
    front.
    """

    source: int
    operator: Operator
    attribute: str
    value: syntax.Expression | None  # None: the default
    # The facts of the node's inputs, or of their list, which resolve negative axes.
    inputs: tuple[int, ...]
    place: syntax.Place


@frozen
class BindTensor:
    """Binds `name` ("" for no name) to the class with the fact `source`, which must be a present
    tensor.
    """

    source: int
    name: str
    optional: bool
    place: syntax.Place


@frozen
class BindTensors:
    """Binds `name` to the list of tensors with the fact `source`."""

    source: int
    name: str
    place: syntax.Place


@frozen
class MatchParameter:
    """Matches the integers of a parameter with a name, or with a list of names and values. An
    `optional` parameter may be absent.
    """

    source: int
    rank: int
    pattern: syntax.Expression
    optional: bool
    place: syntax.Place


@frozen
class MatchNumber:
    """The elements of a non-empty constant all equal a number, and broadcasting with the constant
    does not enlarge the other inputs.
    """

    source: int
    value: syntax.Expression
    near: bool
    others: tuple[int, ...]  # the facts of the node's other inputs if the operator broadcasts
    place: syntax.Place


@frozen
class AreSizes:
    """The integers of a Reshape are the sizes of its result: none is a 0 that copies a size of the
    data.
    """

    allowzero: int
    sizes: int
    place: syntax.Place


@frozen
class Holds:
    """One condition of `where`: a judgement, `const`, a guard, or the definition of a value."""

    condition: syntax.Condition
    place: syntax.Place


Step: TypeAlias = BindAttribute | CheckAttribute | BindTensor | BindTensors | MatchParameter | MatchNumber | AreSizes | Holds


Edge: TypeAlias = tuple[str, int, str]
"""The operator of a node or `LISTED`, the position of an input or `ANY`, and the operator of the
node that computes this input.
"""

LISTED = ""
"""The operator of an edge to an item of a list, whichever operator reads the list."""

ANY = -1
"""The position of an edge to any input of a node."""


class Needs(NamedTuple):
    """The operators and the edges that a graph must have for a match. A match may need more."""

    operators: frozenset[str]
    edges: frozenset[Edge]

    def met(self, operators: Set[str], edges: Set[Edge]) -> bool:
        """Whether a graph with these operators and edges may have a match."""
        return self.operators <= operators and self.edges <= edges


@mutable(slots=False)
class Pattern:
    """A left side that is ready to be matched."""

    atoms: list[Atom] = field(default_factory=list[Atom])
    # Query variables that steps read: attributes and facts.
    sources: list[str] = field(default_factory=list[str])
    steps: list[Step] = field(default_factory=list[Step])
    # Class variables by name of a tensor, parameter or list.
    classes: dict[str, str] = field(default_factory=dict[str, str])
    # Sources that are facts, by class variable.
    facts: dict[str, int] = field(default_factory=dict[str, int])
    carried: dict[str, tuple[Operator, dict[str, int]]] = field(default_factory=dict[str, tuple[Operator, dict[str, int]]])
    # Class variables by name ("" for a lone expression).
    roots: dict[str, str] = field(default_factory=dict[str, str])
    # The facts of all tensors, for rules that must keep every bit.
    tensors: list[int] = field(default_factory=list[int])

    @functools.cached_property
    def nodes(self) -> tuple[NodeAtom, ...]:
        """The nodes of a match, including those for each item of a list."""
        return tuple(node for atom in self.atoms for node in (atom.nodes if isinstance(atom, MappedAtom) else (atom,)) if isinstance(node, NodeAtom))

    @functools.cached_property
    def signatures(self) -> frozenset[Signature]:
        """The forms of the terms that a graph must have for a match."""
        return frozenset(atom.signature for atom in self.nodes)

    @functools.cached_property
    def needs(self) -> Needs:
        """What a graph must have for a match."""
        mapped = [atom for atom in self.atoms if isinstance(atom, MappedAtom)]
        atoms = [*self.atoms, *(atom for one in mapped for atom in one.atoms)]
        nodes = [(atom.variable, atom.operator.name) for atom in self.nodes]
        made = nodes + [(output.variable, name) for output in atoms if isinstance(output, OutputAtom) for variable, name in nodes if variable == output.node]
        read: list[tuple[str, int, str | None]] = [(LISTED, ANY, one.item) for one in mapped]
        for atom in self.nodes:
            # A list may hold the node anywhere, and a view has the operands in both orders.
            read += [(LISTED, ANY, variable) for variable in (*atom.items, *(atom.inputs if atom.view and atom.signature.rest else ()))]
            if not atom.signature.rest or not atom.view:
                read += [(atom.operator.name, ANY if atom.view else position, variable) for position, variable in enumerate(atom.inputs)]
        edges = frozenset((reader, position, maker) for reader, position, variable in read for output, maker in made if output == variable)
        return Needs(frozenset(signature.operator.name for signature in self.signatures), edges)

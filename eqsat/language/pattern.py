"""Left sides: the lines of a rule come in, the query for the e-graph and the steps that a match must pass go out.

A query is structural: operators, fixed attributes, what stands at which input. All that depends on values (typing
judgements, integers, guards) are steps: they read attributes and facts of the matched classes, one after the other,
and stop at the first that is not known to hold.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TypeAlias

from onnx import defs

from eqsat.attributes import AXIS_ATTRIBUTES
from eqsat.language import syntax
from eqsat.language.values import DTYPES
from eqsat.operators import AttributeValue, Operator, attribute_default, find_operator
from eqsat.terms import Signature
from eqsat.traits import COMMUTATIVE, NEWEST, PARAMETERS, SYMMETRIC


@dataclass(frozen=True, slots=True)
class Fixed:
    """An attribute column with one admitted value; None: the attribute is absent."""

    value: AttributeValue | None


@dataclass(frozen=True, slots=True)
class NodeAtom:
    """One operator node of a query: variables of its class, its attributes and its inputs; an input that is None is absent."""

    variable: str
    operator: Operator
    signature: Signature
    attributes: tuple[Fixed | str, ...]
    inputs: tuple[str | None, ...]  # the single ones, or both where it is a view
    items: tuple[str | None, ...]  # at the front of the list of further inputs
    rest: str | None  # what follows the items: a variable, or None for nothing
    view: bool  # matched through the view that holds both orders
    term: syntax.Term


@dataclass(frozen=True, slots=True)
class OutputAtom:
    """A value that is one output of a node."""

    variable: str
    index: int
    node: str
    place: syntax.Place


@dataclass(frozen=True, slots=True)
class FactAtom:
    """`source` is what is known of a class. Every class has a fact: such an atom never fails."""

    source: str
    variable: str
    listed: bool  # whether the class is a list


Atom: TypeAlias = NodeAtom | OutputAtom | FactAtom


@dataclass(frozen=True, slots=True)
class BindAttribute:
    """The attribute in column `source` has a value, which is called `name`."""

    source: int
    operator: Operator
    attribute: str
    name: str
    place: syntax.Place


@dataclass(frozen=True, slots=True)
class CheckAttribute:
    """The attribute in column `source` equals an expression; axes are compared counted from the front."""

    source: int
    operator: Operator
    attribute: str
    value: syntax.Expression | None  # None: the default
    inputs: tuple[int, ...]  # the facts of the node's inputs, which say what -1 means
    place: syntax.Place


@dataclass(frozen=True, slots=True)
class BindTensor:
    """The class whose fact is `source` is a present tensor, called `name` ("" where nobody names it)."""

    source: int
    name: str
    optional: bool
    place: syntax.Place


@dataclass(frozen=True, slots=True)
class BindTensors:
    """The list of tensors whose fact is `source` is called `name`."""

    source: int
    name: str
    place: syntax.Place


@dataclass(frozen=True, slots=True)
class MatchParameter:
    """The integers of a parameter are what the pattern says: a name, or a list of names and values."""

    source: int
    rank: int
    pattern: syntax.Expression
    place: syntax.Place


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """The elements of a non-empty constant all equal a number, and it does not broadcast the other inputs up."""

    source: int
    value: syntax.Expression
    near: bool
    others: tuple[int, ...]  # the facts of the node's other inputs, where the operator broadcasts
    place: syntax.Place


@dataclass(frozen=True, slots=True)
class AreSizes:
    """The integers of a Reshape are the sizes of its result: none of them is a 0 that copies a size of the data."""

    allowzero: int
    sizes: int
    place: syntax.Place


@dataclass(frozen=True, slots=True)
class Holds:
    """One condition of `where`: a judgement, `const`, a guard, or the definition of a value."""

    condition: syntax.Condition
    place: syntax.Place


Step: TypeAlias = BindAttribute | CheckAttribute | BindTensor | BindTensors | MatchParameter | MatchNumber | AreSizes | Holds

BROADCASTING = frozenset(
    """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul Or
    Pow PRelu Sub Sum Where Xor
    """.split()
)


@dataclass
class Pattern:
    """A left side that is ready to be matched."""

    atoms: list[Atom] = field(default_factory=list[Atom])
    sources: list[str] = field(default_factory=list[str])  # query variables that steps read: attributes and facts
    steps: list[Step] = field(default_factory=list[Step])
    classes: dict[str, str] = field(default_factory=dict[str, str])  # by name of a tensor, parameter or list, its class variable
    facts: dict[str, int] = field(default_factory=dict[str, int])  # by class variable, the source that is its fact
    carried: dict[str, tuple[Operator, dict[str, int]]] = field(default_factory=dict[str, tuple[Operator, dict[str, int]]])
    roots: dict[str, str] = field(default_factory=dict[str, str])  # by name ("" for a lone expression), a class variable
    tensors: list[int] = field(default_factory=list[int])  # the facts of all tensors, for rules that must keep every bit

    @functools.cached_property
    def signatures(self) -> frozenset[Signature]:
        """The forms of the terms that a graph must have for a match."""
        return frozenset(atom.signature for atom in self.atoms if isinstance(atom, NodeAtom))

    @functools.cached_property
    def operators(self) -> frozenset[str]:
        """The names of the operators that a graph must have for a match."""
        return frozenset(signature.operator.name for signature in self.signatures)


def newest(term: syntax.Term) -> Operator:
    """The operator that a rule means."""
    return find_operator(term.domain, term.operator, NEWEST)


def outputs_of(operator: Operator, count: int) -> tuple[int, ...] | None:
    """The hidden column of an operator with any number of outputs; None where there is no such column."""
    schema = operator.schema
    assert schema is not None
    variadic = bool(schema.outputs) and schema.outputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic
    return (1,) * count if variadic else None


class _Left:
    def __init__(self, roots: tuple[str, ...]) -> None:
        self.out = Pattern()
        self.wanted = roots
        self.fresh = 0

    def variable(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def source(self, variable: str) -> int:
        sources = self.out.sources
        if variable not in sources:
            sources.append(variable)
        return sources.index(variable)

    def fact(self, variable: str, listed: bool = False) -> int:
        """The source that is the fact of a class."""
        known = self.out.facts.get(variable)
        if known is None:
            self.out.atoms.append(FactAtom(f"f_{variable}", variable, listed))
            known = self.out.facts[variable] = self.source(f"f_{variable}")
        return known

    def named(self, name: str) -> str:
        return self.out.classes.setdefault(name, f"v_{name}")

    def lines(self, lines: tuple[syntax.Line, ...]) -> Pattern:
        for line in lines:
            assert isinstance(line.value, syntax.Term)
            operator = newest(line.value)
            single = operator.schema is not None and operator.schema.max_output == 1
            if not line.targets:
                self.out.roots[""] = self.term(line.value)
                continue
            if single:
                self.node(line.value, self.named(line.targets[0]), 1)
            else:
                node = self.node(line.value, self.variable("n"), len(line.targets))
                for index, target in enumerate(line.targets):
                    if target != "_":
                        self.out.atoms.append(OutputAtom(self.named(target), index, node, line.place))
            for target in line.targets:
                if target != "_":
                    self.present(self.named(target), target, line.place)
                    if target in self.wanted:
                        self.out.roots[target] = self.named(target)
        return self.out

    def present(self, variable: str, name: str, place: syntax.Place, optional: bool = False) -> None:
        source = self.fact(variable)
        step = BindTensor(source, name, optional, place)
        if step not in self.out.steps:
            self.out.steps.append(step)
        if source not in self.out.tensors:
            self.out.tensors.append(source)

    def term(self, term: syntax.Term) -> str:
        """The class variable of a nested term's value."""
        operator = newest(term)
        assert operator.schema is not None
        if operator.schema.max_output == 1:
            value = self.node(term, self.variable("n"), 1)
        else:
            node = self.node(term, self.variable("n"), 1)
            value = self.variable("n")
            self.out.atoms.append(OutputAtom(value, 0, node, term.place))
        self.present(value, "", term.place)
        return value

    def node(self, term: syntax.Term, variable: str, outputs: int) -> str:
        operator = newest(term)
        signature = Signature.of(operator)
        view = self.is_view(term)
        inputs, rest, steps = self.inputs(term, operator, signature)
        attributes = self.attributes(term, operator, signature, outputs, tuple(self.out.facts[v] for v in inputs if v in self.out.facts))
        single = len(inputs) if view else signature.inputs
        self.out.atoms.append(NodeAtom(variable, operator, signature, attributes, tuple(inputs[:single]), tuple(inputs[single:]), rest, view, term))
        self.out.steps += steps
        return variable

    def is_view(self, term: syntax.Term) -> bool:
        either = term.operator in COMMUTATIVE or (term.operator in SYMMETRIC and len(term.inputs) == 2)
        return either and not term.domain and not any(isinstance(item, syntax.Spread) for item in term.inputs)

    def inputs(self, term: syntax.Term, operator: Operator, signature: Signature) -> tuple[list[str | None], str | None, list[Step]]:
        """The variables of the inputs, that of the rest of the list, and steps that need all inputs' facts."""
        found: list[str | None] = []
        rest: str | None = None
        numbers: list[tuple[str, syntax.Expression, bool]] = []
        for position, item in enumerate(term.inputs):
            if isinstance(item, syntax.Spread):
                rest = self.rest(item)
            elif isinstance(item, (syntax.Number, syntax.Near)) and position not in PARAMETERS.get(operator.name, {}):
                variable = self.variable("c")
                self.present(variable, "", item.place)
                numbers.append((variable, item.value if isinstance(item, syntax.Near) else item, isinstance(item, syntax.Near)))
                found.append(variable)
            else:
                found.append(self.input(item, operator, position))
        found += [None] * (signature.inputs - len(found))
        broadcasts = operator.name in BROADCASTING
        steps: list[Step] = []
        for variable, value, near in numbers:
            others = tuple(self.out.facts[v] for v in found if v != variable and v in self.out.facts) if broadcasts else ()
            steps.append(MatchNumber(self.out.facts[variable], value, near, others, value.place))
        return found, rest, steps

    def rest(self, item: syntax.Spread) -> str:
        name = item.item.name if isinstance(item.item, syntax.Name) else ""
        variable = self.named(name) if name else self.variable("l")
        if name:
            self.out.steps.append(BindTensors(self.fact(variable, listed=True), name, item.place))
        return variable

    def input(self, item: syntax.Expression | None, operator: Operator, position: int) -> str | None:
        rank = PARAMETERS.get(operator.name, {}).get(position)
        if item is None:
            return None
        if isinstance(item, syntax.Term):
            return self.term(item)
        if rank is not None:
            return self.parameter(item, rank)
        if isinstance(item, syntax.Maybe):
            variable = self.named(item.name)
            self.present(variable, item.name, item.place, optional=True)
        elif isinstance(item, syntax.Name):
            variable = self.named(item.name)
            self.present(variable, item.name, item.place)
        else:
            assert isinstance(item, syntax.Wildcard)
            variable = self.variable("w")
            self.present(variable, "", item.place)
        return variable

    def parameter(self, item: syntax.Expression, rank: int) -> str:
        if isinstance(item, (syntax.Wildcard, syntax.Maybe)):
            variable = self.variable("w") if isinstance(item, syntax.Wildcard) else self.named(item.name)
            self.out.steps.append(BindTensor(self.fact(variable), "", isinstance(item, syntax.Maybe), item.place))
            return variable
        known = isinstance(item, syntax.Name) and item.name in self.out.classes
        variable = self.named(item.name) if isinstance(item, syntax.Name) else self.variable("s")
        source = self.fact(variable)
        if not known:
            self.out.steps.append(MatchParameter(source, rank, item, item.place))
        return variable

    def attributes(self, term: syntax.Term, operator: Operator, signature: Signature, outputs: int, inputs: tuple[int, ...]) -> tuple[Fixed | str, ...]:
        named = {attribute.name: attribute.value for attribute in term.attributes}
        columns: list[Fixed | str] = []
        carried: dict[str, int] = {}
        shared = self.out.carried[term.carried][1] if term.carried in self.out.carried and term.carried != "_" else {}
        for name in signature.attributes:
            if (operator.name, name) == ("Reshape", "allowzero") and name not in named and term.carried is None:
                variable = self.variable("a")
                self.out.steps.append(AreSizes(self.source(variable), inputs[1], term.place))
                columns.append(variable)
                continue
            if name not in named and term.carried is None:
                hidden = outputs_of(operator, outputs) if name.startswith("#") else None
                value = hidden if hidden is not None else attribute_default(operator, name)
                if hidden is None and (operator.name, name) in AXIS_ATTRIBUTES:
                    columns.append(self.checked(operator, name, None, inputs, term.place))
                else:
                    columns.append(Fixed(value))
                continue
            if name.startswith("#"):
                columns.append(Fixed(outputs_of(operator, outputs)))
                continue
            value = named.get(name)
            if value is None:
                # What is carried by one name is the same in all nodes that it stands in.
                variable = self.out.sources[shared[name]] if name in shared else self.variable("a")
                carried[name] = self.source(variable)
                columns.append(variable)
            elif isinstance(value, syntax.Wildcard):
                columns.append(self.variable("a"))
            elif isinstance(value, syntax.Name) and value.name not in self.out.classes and value.name not in DTYPES:
                variable = self.variable("a")
                self.out.steps.append(BindAttribute(self.source(variable), operator, name, value.name, value.place))
                columns.append(variable)
            else:
                columns.append(self.checked(operator, name, value, inputs, value.place))
        if term.carried is not None:
            self.out.carried[term.carried] = (operator, carried)
        return tuple(columns)

    def checked(self, operator: Operator, name: str, value: syntax.Expression | None, inputs: tuple[int, ...], place: syntax.Place) -> str:
        variable = self.variable("a")
        self.out.steps.append(CheckAttribute(self.source(variable), operator, name, value, inputs, place))
        return variable


def pattern_of(lines: tuple[syntax.Line, ...], roots: tuple[str, ...], conditions: tuple[syntax.Condition, ...]) -> Pattern:
    """The query and the steps for a left side; `conditions` are checked in the order in which their names become known."""
    pattern = _Left(roots).lines(lines)
    pattern.steps = [step for step in pattern.steps if not isinstance(step, (CheckAttribute, MatchNumber))] + [
        step for step in pattern.steps if isinstance(step, (CheckAttribute, MatchNumber))
    ]
    pattern.steps += [Holds(condition, condition.place) for condition in conditions]
    return pattern

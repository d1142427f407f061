"""Left sides: the query for the e-graph, and the steps that a match must pass, for the lines of a
rule.
"""

from __future__ import annotations

from dataclasses import replace

from onnx import defs

from eqsat.families import members
from eqsat.language import syntax
from eqsat.language.query import (
    AreSizes,
    BindAttribute,
    BindTensor,
    BindTensors,
    CheckAttribute,
    FactAtom,
    Fixed,
    Holds,
    MappedAtom,
    MatchNumber,
    MatchParameter,
    NodeAtom,
    OutputAtom,
    Pattern,
    Step,
)
from eqsat.language.values import DTYPES
from eqsat.operators import Operator, attribute_default, contributed_operator, find_operator
from eqsat.terms.attribute_meaning import AXIS_ATTRIBUTES
from eqsat.terms.terms import Signature
from eqsat.traits import COMMUTATIVE, NEWEST, PARAMETERS, SYMMETRIC

BROADCASTING = members("binary") | members("variadic") | {"PRelu", "Where"}


def newest(term: syntax.Term) -> Operator:
    """The newest version of an operator, which is the one that rules refer to."""
    return contributed_operator(term.domain, term.operator) or find_operator(term.domain, term.operator, NEWEST)


def outputs_of(operator: Operator, count: int) -> tuple[int, ...] | None:
    """The hidden attribute that counts the outputs of a variadic operator; None for any other."""
    schema = operator.schema
    assert schema is not None
    variadic = bool(schema.outputs) and schema.outputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic
    return (1,) * count if variadic else None


class _Left:
    def __init__(self, roots: tuple[str, ...], constants: frozenset[str]) -> None:
        self.out = Pattern()
        self.wanted = roots
        self.constants = constants
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
        """The class variable for the value of a nested term."""
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
        facts = tuple(self.out.facts[v] for v in inputs if v in self.out.facts)
        if rest is not None and not facts and any(not isinstance(attribute.value, syntax.Name | syntax.Wildcard) for attribute in term.attributes):
            facts = (self.fact(rest, listed=True),)
        attributes = self.attributes(term, operator, signature, outputs, facts)
        single = len(inputs) if view else signature.inputs
        self.out.atoms.append(NodeAtom(variable, operator, signature, attributes, tuple(inputs[:single]), tuple(inputs[single:]), rest, view, term))
        self.out.steps += steps
        return variable

    def is_view(self, term: syntax.Term) -> bool:
        either = term.operator in COMMUTATIVE or (term.operator in SYMMETRIC and len(term.inputs) == 2)
        return either and not term.domain and not any(isinstance(item, syntax.Spread | syntax.Mapped) for item in term.inputs)

    def inputs(self, term: syntax.Term, operator: Operator, signature: Signature) -> tuple[list[str | None], str | None, list[Step]]:
        """The variables of the inputs, the variable of the rest of the list, and the steps that
        need the facts of all inputs.
        """
        found: list[str | None] = []
        rest: str | None = None
        numbers: list[tuple[str, syntax.Expression, bool]] = []
        for position, item in enumerate(term.inputs):
            if isinstance(item, syntax.Spread):
                rest = self.rest(item)
            elif isinstance(item, syntax.Mapped):
                rest = self.mapped(item)
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
        constants = {variable for variable, _, _ in numbers}  # one number may be as large as another
        for variable, value, near in numbers:
            others = tuple(self.out.facts[v] for v in found if v not in constants and v in self.out.facts) if broadcasts else ()
            steps.append(MatchNumber(self.out.facts[variable], value, near, others, value.place))
        return found, rest, steps

    def rest(self, item: syntax.Spread) -> str:
        name = item.item.name if isinstance(item.item, syntax.Name) else ""
        variable = self.named(name) if name else self.variable("l")
        if name:
            self.listed(variable, name, item.place)
        return variable

    def listed(self, variable: str, name: str, place: syntax.Place) -> None:
        source = self.fact(variable, listed=True)
        self.out.steps.append(BindTensors(source, name, place))
        self.out.tensors.append(source)

    def mapped(self, mapped: syntax.Mapped) -> str:
        """The class variable of a list whose items all match the term."""
        assert isinstance(mapped.item, syntax.Term)
        own = {target: self.variable(f"{target}_") for target in mapped.targets}
        inner = _Left((), self.constants)
        inner.fresh = self.fresh
        inner.out.classes = {**self.out.classes, **own}
        for name, (operator, columns) in self.out.carried.items():
            inner.out.carried[name] = (operator, {key: inner.source(self.out.sources[at]) for key, at in columns.items()})
        item, found = inner.term(mapped.item), inner.out
        self.fresh = inner.fresh
        self.out.classes.update((name, variable) for name, variable in found.classes.items() if name not in own)
        outside = [variable for variable in self.out.classes.values() if variable in found.facts]
        attributes: dict[str, None] = {}
        checks: list[Step] = []
        for step in found.steps:
            match step:
                case BindAttribute():
                    attributes[found.sources[step.source]] = None
                    self.out.steps.append(replace(step, source=self.source(found.sources[step.source])))
                case MatchParameter():
                    variable = next(variable for variable, source in found.facts.items() if source == step.source)
                    outside.append(variable)
                    self.out.steps.append(replace(step, source=self.fact(variable)))
                case BindTensor(_, name, _, place) if name and name not in own:
                    self.present(found.classes[name], name, place)
                case _:
                    checks.append(step)
        own_columns = {column for atom in found.atoms if isinstance(atom, NodeAtom) for column in atom.attributes}
        for name, (operator, columns) in found.carried.items():
            if not own_columns.issuperset(found.sources[at] for at in columns.values()):
                continue  # a node outside of the list has its columns
            attributes.update((found.sources[at], None) for at in columns.values())
            self.out.carried[name] = (operator, {key: self.source(found.sources[at]) for key, at in columns.items()})
        parts: list[tuple[str, str]] = []
        for (target, variable), source in zip(own.items(), mapped.sources, strict=True):
            parts.append((variable, self.named(source)))
            self.listed(self.named(source), source, mapped.place)
            if source in self.constants:
                # If the operands match in either order, the name refers to the constant one.
                checks.append(Holds(syntax.Const(target, mapped.place), mapped.place))
        rest = self.variable("l")
        classes = tuple(dict.fromkeys(outside))
        sources = tuple(found.sources)
        self.out.atoms.append(MappedAtom(rest, item, tuple(found.atoms), tuple(checks), sources, tuple(parts), classes, tuple(attributes), mapped.item))
        return rest

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
        if isinstance(item, syntax.Wildcard):
            variable = self.variable("w")
            self.out.steps.append(BindTensor(self.fact(variable), "", False, item.place))
            return variable
        optional = isinstance(item, syntax.Maybe)
        pattern = syntax.Name(item.name, item.place) if isinstance(item, syntax.Maybe) else item
        known = isinstance(pattern, syntax.Name) and pattern.name in self.out.classes
        variable = self.named(pattern.name) if isinstance(pattern, syntax.Name) else self.variable("s")
        source = self.fact(variable)
        if not known:
            self.out.steps.append(MatchParameter(source, rank, pattern, optional, item.place))
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
                # One name carries the same attributes in all nodes.
                variable = self.out.sources[shared[name]] if name in shared else self.variable("a")
                carried[name] = self.source(variable)
                columns.append(variable)
            elif isinstance(value, syntax.Wildcard):
                columns.append(self.variable("a"))
            elif isinstance(value, syntax.Maybe) or (isinstance(value, syntax.Name) and value.name not in self.out.classes and value.name not in DTYPES):
                variable = self.variable("a")
                self.out.steps.append(BindAttribute(self.source(variable), operator, name, value.name, isinstance(value, syntax.Maybe), value.place))
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
    """The query and the steps for a left side. `conditions` are checked as soon as their names are
    known.
    """
    constants = frozenset(condition.name for condition in conditions if isinstance(condition, syntax.Const))
    pattern = _Left(roots, constants).lines(lines)
    pattern.steps = [step for step in pattern.steps if not isinstance(step, (CheckAttribute, MatchNumber))] + [
        step for step in pattern.steps if isinstance(step, (CheckAttribute, MatchNumber))
    ]
    pattern.steps += [Holds(condition, condition.place) for condition in conditions]
    return pattern

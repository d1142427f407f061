"""Reasons: for an assignment, whether the rule fires, or else the place in the rule's text that
stops it, and why.

Places are those of the rule; names are those of the model. If the whole left side matches, the
reason is that of a run. Otherwise it is the first part that nothing matches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from eqsat.egraph.plain_matching import Assignment, Assignments, Mismatch
from eqsat.language import syntax
from eqsat.language.attribute_values import to_value
from eqsat.language.expressions import Unevaluable, evaluate
from eqsat.language.firing import Firing
from eqsat.language.matching import Environment, Refusal
from eqsat.language.matching import match as match_steps
from eqsat.language.printer import expression as shown
from eqsat.language.query import AreSizes, Atom, CheckAttribute, FactAtom, Fixed, Holds, MappedAtom, MatchNumber, MatchParameter, NodeAtom, OutputAtom, Step
from eqsat.language.scope import condition_names, names
from eqsat.language.values import Tensor
from eqsat.model.model import Node
from eqsat.terms.terms import OUTPUTS, Terms
from eqsat.why.class_names import Landmarks, show

_TERMS = 64  # terms of a value, or of its users, that the search for the closest one looks at


@dataclass(frozen=True, slots=True)
class Stop:
    """The obstacle to a rule: its place in the rule's text, the reason, and the values there."""

    place: syntax.Place
    reason: str
    seen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for columns that match a whole left side: how many steps hold, the values that
    they bind, and the refusal if the rule does not fire.
    """

    passed: int
    environment: Environment
    refusal: Refusal | None


class Reasons:
    """Explains the assignments of one direction of a rule in one graph."""

    def __init__(self, assignments: Assignments, firing: Firing, terms: Terms, landmarks: Landmarks) -> None:
        self._assignments = assignments
        self._pattern = assignments.pattern
        self._firing = firing
        self._terms = terms
        self._landmarks = landmarks
        self._outcomes: dict[tuple[int, ...], Outcome] = {}

    def outcome(self, assignment: Assignment) -> Outcome:
        """The outcome for an assignment of the whole left side."""
        handles = self._assignments.handles(assignment)
        found = self._outcomes.get(handles)
        if found is None:
            steps = self._pattern.steps
            passed = len(steps)
            while isinstance(environment := match_steps(steps[:passed], self._terms, handles), Refusal):
                passed -= 1
            found = self._outcomes[handles] = Outcome(passed, environment, self._firing.refusal(handles))
        return found

    def refused(self, assignment: Assignment) -> Stop | None:
        """The reason why the rule does not fire on an assignment of the whole left side; None if it
        fires.
        """
        outcome = self.outcome(assignment)
        if outcome.refusal is None:
            return None
        steps = self._pattern.steps
        # If the right side can not be made, all names are bound.
        at_step = outcome.passed < len(steps)
        seen = self._seen(steps[outcome.passed], outcome.environment, assignment) if at_step else self.bindings(assignment, outcome.environment)
        return Stop(outcome.refusal.place, outcome.refusal.reason, tuple(f"{name} = {value}" for name, value in seen.items()))

    def bindings(self, assignment: Assignment, environment: Environment) -> dict[str, str]:
        """The names of the rule that have a value here; tensors have their names in the model."""
        classes = self._pattern.classes.items()
        found = {name: self._landmarks.text(assignment.bindings[variable]) for name, variable in classes if variable in assignment.bindings}
        return found | {name: show(value) for name, value in environment.items() if not isinstance(value, Tensor)}

    def _seen(self, step: Step, environment: Environment, assignment: Assignment) -> dict[str, str]:
        """The values that a refusing step looks at."""
        known = self.bindings(assignment, environment)
        if not isinstance(step, Holds):
            source, wanted = _reads(step)
            variables = {fact: variable for variable, fact in self._pattern.facts.items()}
            there = {} if source is None else {"the input": self._landmarks.text(assignment.bindings[variables[source]])}
            return there | {name: known[name] for name in names(wanted) if name in known}
        mentioned = condition_names(step.condition)
        seen = {name: value for name, value in known.items() if name in mentioned}
        if isinstance(step.condition, syntax.Guard):
            for part in _parts(step.condition.condition):
                try:
                    seen.setdefault(shown(part), show(evaluate(part, environment)))
                except Unevaluable:
                    continue  # it has no value, and that is the reason given
        return seen

    def missed(self, assignment: Assignment, node: Node) -> Stop:
        """Why the rest of a left side is not found, at a place where `node` is its root."""
        atom = assignment.missed[0]
        via = self._assignments.via(atom)
        if isinstance(atom, MappedAtom):
            return self._unlisted(atom, assignment)
        terms = itertools.islice(self._assignments.candidates(atom, via, assignment), _TERMS)
        found = [result for term in terms for result in self._assignments.unified(atom, term, assignment.bindings)]
        mismatches = [result for result in found if isinstance(result, Mismatch)]
        if len(mismatches) < len(found):
            return Stop(_place(atom), "the search ended here: there are too many ways to go on")
        if isinstance(atom, OutputAtom):
            if via == atom.node:
                return Stop(atom.place, f"output {atom.index} of {self._landmarks.node(assignment.bindings[atom.node])} is not used")
            if mismatches:
                return Stop(atom.place, f"it is output {mismatches[0].term.data[0]}; the rule wants output {atom.index}")
            atom = self._assignments.producer(atom.variable)
        assert isinstance(atom, NodeAtom)
        if mismatches:
            return self._unlike(atom, max(mismatches, key=lambda found: found.column), assignment)
        return self._unmade(atom, via, assignment, node)

    def _unlisted(self, atom: MappedAtom, assignment: Assignment) -> Stop:
        """The stop at a list with an item that the rule does not admit."""
        place, wanted = atom.term.place, f"each item of the list to be {_article(atom.term.operator)}"
        if atom.variable not in assignment.bindings:
            return Stop(place, f"the rule wants {wanted}")
        item = self._assignments.unlike(atom, assignment)
        if item is None:
            return Stop(place, "the items of the list have nothing in common that the rule wants the same for all, or there are none")
        return Stop(place, f"an item of the list is {self._landmarks.origin(item)}; the rule wants {wanted}, as it says there")

    def _unmade(self, atom: NodeAtom, via: str | None, assignment: Assignment, node: Node) -> Stop:
        """The stop at a value without a term of the operator."""
        place, wanted = atom.term.place, atom.operator.name
        if via is None:
            return Stop(place, f"there is no {wanted}")
        if atom is self._assignments.root:
            return Stop(place, self._landmarks.hidden(node))
        value = assignment.bindings[via]
        parent = self._user(via)
        if parent is None:
            return Stop(place, f"no {wanted} uses {self._landmarks.text(value)}")
        at = self._landmarks.node(assignment.bindings[parent.variable])
        others = [variable for variable in parent.inputs if variable != via and variable is not None]
        if not parent.view:
            position = (*parent.inputs, *parent.items).index(via)
            return Stop(place, f"input {_formal(parent, position)} of {at} is {self._landmarks.origin(value)}; the rule wants {_article(wanted)}")
        if any(self._is_made(variable, assignment) for variable in others):
            return Stop(place, f"the other input of {at} is {self._landmarks.origin(value)}; the rule wants {_article(wanted)}")
        both = " and ".join(self._landmarks.origin(assignment.bindings[variable]) for variable in parent.inputs if variable is not None)
        return Stop(place, f"the inputs of {at} are {both}; the rule wants {_article(wanted)} at one of them")

    def _unlike(self, atom: NodeAtom, mismatch: Mismatch, assignment: Assignment) -> Stop:
        """The stop at a term of the operator in another form than the rule's."""
        term = mismatch.term
        at = self._landmarks.node(term.eclass)
        if mismatch.column < len(atom.attributes):
            return Stop(atom.term.place, self._attribute(atom, mismatch, at))
        inputs, actual = (*atom.inputs, *atom.items), self._inputs(atom, mismatch)
        position = mismatch.column - len(atom.attributes)
        if position >= min(len(inputs), len(actual)):
            return Stop(atom.term.place, f"{at} has {len(actual)} inputs; the rule has {len(inputs)}")
        written = atom.term.inputs[position] if position < len(atom.term.inputs) else None
        place = atom.term.place if written is None else written.place
        variable, value = inputs[position], self._landmarks.text(actual[position])
        if variable is None:
            return Stop(place, f"input {_formal(atom, position)} of {at} is present, {value}; the rule wants it absent")
        # A variable without a value occurs twice among the inputs of this very node.
        wanted = assignment.bindings.get(variable, actual[inputs.index(variable)])
        where = f"no input of {at} is" if atom.view else f"input {_formal(atom, position)} of {at} is {value}, not"
        return Stop(place, f"{where} {self._landmarks.text(wanted)}, as elsewhere in the rule")

    def _inputs(self, atom: NodeAtom, mismatch: Mismatch) -> list[int]:
        """The classes of a term's inputs, those of its list included."""
        children = list(mismatch.term.children)
        if atom.signature.rest:
            index = self._assignments.index
            children += index.items(children.pop(), len(index.facts))[0]
        return children

    def _attribute(self, atom: NodeAtom, mismatch: Mismatch, at: str) -> str:
        """A message about an attribute with another value than the rule fixes."""
        name, fixed = atom.signature.attributes[mismatch.column], atom.attributes[mismatch.column]
        assert isinstance(fixed, Fixed)
        stored = self._terms.attributes.get(mismatch.term.data[mismatch.column])
        if name == OUTPUTS:
            assert isinstance(fixed.value, tuple) and isinstance(stored, tuple)
            return f"{at} has {len(stored)} outputs; the rule has {len(fixed.value)}"
        actual, wanted = ("absent" if value is None else show(to_value(atom.operator, name, value)) for value in (stored, fixed.value))
        return f"the attribute {name} of {at} is {actual}; the rule has its default, {wanted}"

    def _user(self, variable: str) -> NodeAtom | None:
        """The node of the left side that uses a value which another node makes."""
        if not any(variable == atom.variable for atom in self._pattern.atoms if isinstance(atom, (NodeAtom, OutputAtom))):
            return None
        outputs = {atom.node: atom.variable for atom in self._pattern.atoms if isinstance(atom, OutputAtom)}
        wanted = outputs.get(variable, variable)
        users = (atom for atom in self._pattern.atoms if isinstance(atom, NodeAtom) and wanted in (*atom.inputs, *atom.items))
        return next(users, None)

    def _is_made(self, variable: str, assignment: Assignment) -> bool:
        """Whether a node of the left side makes the variable, and that node was found."""
        makers = [atom for atom in self._pattern.atoms if isinstance(atom, (NodeAtom, OutputAtom)) and atom.variable == variable]
        return bool(makers) and not any(atom is missed for atom in makers for missed in assignment.missed)


def _reads(step: Step) -> tuple[int | None, syntax.Expression | None]:
    """The fact of the input that a step is about, and the rule's expression for it."""
    match step:
        case MatchParameter():
            return step.source, step.pattern
        case MatchNumber():
            return step.source, step.value
        case CheckAttribute():
            return None, step.value
        case AreSizes():
            return step.sizes, None
        case _:
            return None, None


def _place(atom: Atom) -> syntax.Place:
    assert not isinstance(atom, FactAtom)
    return atom.place if isinstance(atom, OutputAtom) else atom.term.place


def _parts(condition: syntax.Expression) -> Iterator[syntax.Expression]:
    """The expressions that a condition compares and whose values its text does not show."""
    match condition:
        case syntax.Comparison(operands) | syntax.Logic(_, operands):
            for operand in operands:
                yield from _parts(operand)
        case syntax.Unary("not", operand):
            yield from _parts(operand)
        case syntax.Name():
            return
        case _:
            if any(names(condition)):
                yield condition


def _formal(atom: NodeAtom, position: int) -> str:
    """The schema's name of an input; the number of a further one."""
    schema = atom.operator.schema
    assert schema is not None
    return schema.inputs[position].name if position < atom.signature.inputs else str(position)


def _article(operator: str) -> str:
    return f"{'an' if operator[0] in 'AEIOU' else 'a'} {operator}"

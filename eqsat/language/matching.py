"""Matching: the values of a left side's names, from the facts of the matched classes, or the reason
why the classes do not match.
"""

from __future__ import annotations

from collections.abc import Sequence

from eqsat.facts.dims import equal
from eqsat.facts.fact import Fact
from eqsat.facts.node import broadcast
from eqsat.frozen import frozen
from eqsat.language import syntax
from eqsat.language.attribute_values import from_value, to_value
from eqsat.language.expressions import Unevaluable, evaluate
from eqsat.language.judgements import judge
from eqsat.language.literals import is_number
from eqsat.language.query import AreSizes, BindAttribute, BindTensor, BindTensors, CheckAttribute, Holds, MatchNumber, MatchParameter, Step
from eqsat.language.values import NoValue, Tensor, Value, is_list
from eqsat.language.values import equal as equal_values
from eqsat.operators import AttributeValue, attribute_default
from eqsat.terms.attribute_meaning import axis_span, is_default
from eqsat.terms.terms import Terms

Environment = dict[str, Value | None]


@frozen
class Refusal:
    """The reason why a match does not fire, with its place in the rule's text."""

    place: syntax.Place
    reason: str


def match(steps: Sequence[Step], terms: Terms, handles: tuple[int, ...]) -> Environment | Refusal:
    """The values of a left side's names if every step is known to hold for these columns; otherwise
    the refusal by the first step that is not.
    """
    matching = _Matching(terms, handles)
    for step in steps:
        try:
            reason = matching.step(step)
        except Unevaluable as error:
            return Refusal(error.place, error.reason)
        except NoValue as error:
            return Refusal(step.place, str(error))
        if reason is not None:
            return Refusal(step.place, reason)
    return matching.environment


class _Matching:
    def __init__(self, terms: Terms, handles: tuple[int, ...]) -> None:
        self.terms = terms
        self.handles = handles
        self.environment: Environment = {}

    def fact(self, source: int) -> Fact | None:
        return self.terms.value_fact(self.handles[source])

    def step(self, step: Step) -> str | None:
        """Binds the names of a step. Returns the reason why the step is not known to hold, or None
        if it holds.
        """
        match step:
            case BindTensor():
                return self.bind_tensor(step)
            case BindTensors():
                facts = [self.terms.facts.get(handle) for handle in self.terms.chain(self.handles[step.source])]
                self.environment[step.name] = tuple(Tensor(fact) if isinstance(fact, Fact) else None for fact in facts)
                return None
            case BindAttribute():
                stored = self.terms.attributes.get(self.handles[step.source])
                value = None if stored is None else to_value(step.operator, step.attribute, stored)
                if value is None:
                    return None if step.optional else f"the attribute {step.attribute} is absent"
                return self.bind(step.name, value)
            case CheckAttribute():
                return self.check_attribute(step)
            case MatchParameter():
                return self.match_parameter(step)
            case MatchNumber():
                return self.match_number(step)
            case AreSizes():
                sizes = self.fact(step.sizes)
                known = sizes is not None and sizes.ints is not None and 0 not in sizes.ints
                return None if known or self.terms.attributes.get(self.handles[step.allowzero]) == 1 else "a 0 may copy a size of the data"
            case Holds():
                return self.holds(step.condition)

    def bind(self, name: str, value: Value | None) -> str | None:
        """Binds a name, or compares the value with the one it is bound to."""
        if name not in self.environment:
            self.environment[name] = value
            return None
        return None if equal_values(self.environment[name], value) is True else f"{name} is not known to be the same here"

    def bind_tensor(self, step: BindTensor) -> str | None:
        fact = self.fact(step.source)
        if fact is None:
            return None if step.optional else "the input is absent"
        if step.name:
            self.environment[step.name] = Tensor(fact)
        return None

    def check_attribute(self, step: CheckAttribute) -> str | None:
        stored = self.terms.attributes.get(self.handles[step.source])
        if step.value is None:
            if is_default(step.operator, step.attribute, stored):
                return None
            wanted = attribute_default(step.operator, step.attribute)
        else:
            wanted = from_value(step.operator, step.attribute, evaluate(step.value, self.environment))
        if wanted is None or stored is None:
            return f"the attribute {step.attribute} is absent or not known"
        inputs = [item for source in step.inputs for item in (self.terms.chain(self.handles[source]) or (self.handles[source],))]
        facts = map(self.terms.facts.get, inputs)
        span = axis_span(step.operator, step.attribute, tuple(fact if isinstance(fact, Fact) else None for fact in facts))
        if _from_front(wanted, span) == _from_front(stored, span):
            return None
        return f"the attribute {step.attribute} is {_show(stored)}"

    def match_parameter(self, step: MatchParameter) -> str | None:
        fact = self.fact(step.source)
        if fact is None:
            return None if step.optional else "the parameter is absent"
        value: Value | None = None
        if fact.ints is not None:
            value = fact.ints if step.rank == 1 else fact.ints[0] if len(fact.ints) == 1 else None
        if isinstance(step.pattern, syntax.Name) and step.pattern.name not in self.environment:
            # An unknown parameter is still a class, which the right side can use.
            self.environment[step.pattern.name] = value
            return None
        if value is None:
            return "the parameter is not known"
        return self.match_value(step.pattern, value)

    def match_value(self, pattern: syntax.Expression, value: Value | None) -> str | None:
        if isinstance(pattern, syntax.Wildcard):
            return None
        if isinstance(pattern, syntax.Name):
            return self.bind(pattern.name, value)
        if isinstance(pattern, syntax.Items) and is_list(value):
            return self.match_items(pattern.items, value)
        return None if equal_values(evaluate(pattern, self.environment), value) is True else "the value is another"

    def match_items(self, patterns: tuple[syntax.Expression, ...], values: tuple[Value | None, ...]) -> str | None:
        spread = next((place for place, item in enumerate(patterns) if isinstance(item, syntax.Spread)), None)
        after = 0 if spread is None else len(patterns) - spread - 1
        if len(values) != len(patterns) if spread is None else len(values) < len(patterns) - 1:
            return f"the list has {len(values)} items"
        front = patterns if spread is None else patterns[:spread]
        reasons = [self.match_value(pattern, value) for pattern, value in zip(front, values, strict=False)]
        if spread is not None:
            middle = patterns[spread]
            assert isinstance(middle, syntax.Spread)
            reasons.append(self.match_value(middle.item, values[spread : len(values) - after]))
            reasons += [self.match_value(pattern, value) for pattern, value in zip(patterns[spread + 1 :], values[len(values) - after :], strict=True)]
        return next((reason for reason in reasons if reason is not None), None)

    def match_number(self, step: MatchNumber) -> str | None:
        fact = self.fact(step.source)
        wanted = evaluate(step.value, self.environment)
        if fact is None or not isinstance(wanted, (int, float)) or not is_number(fact, wanted, step.near):
            return "the input is not known to be that number"
        shapes = [known.shape for source in step.others if (known := self.fact(source)) is not None]
        if not shapes:
            return None
        known_shapes = [shape for shape in shapes if shape is not None]
        if fact.shape is None or len(known_shapes) < len(shapes):
            return "the ranks are not known"
        without = broadcast(*known_shapes)
        together = broadcast(without, fact.shape)
        if len(without) == len(together) and all(a is not None and (a == b or equal(a, b) is True) for a, b in zip(without, together, strict=True)):
            return None
        return "the number is not known to keep the shape"

    def holds(self, condition: syntax.Condition) -> str | None:
        match condition:
            case syntax.Judgement(name, type):
                tensor = self.environment.get(name)
                tensors = tensor if is_list(tensor) else (tensor,)
                if not all(isinstance(one, Tensor) for one in tensors):
                    return f"{name} is absent"
                judged = (judge(type, one.fact, self.environment) for one in tensors if isinstance(one, Tensor))
                return None if all(found is True for found in judged) else f"the type of {name} is not known to be that"
            case syntax.Const(name):
                # An absent input does not stop a value from being constant.
                tensor = self.environment.get(name)
                tensors = tensor if is_list(tensor) else (tensor,)
                known = name not in self.environment or all(isinstance(one, Tensor) and one.fact.const for one in tensors)
                return None if known else f"{name} is no constant"
            case syntax.Guard(expression):
                found = evaluate(expression, self.environment)
                return None if found is True else "the condition is false" if found is False else "the condition is not known to hold"
            case syntax.Definition(targets, expression):
                return self.bind(targets[0], evaluate(expression, self.environment))


def _from_front(value: AttributeValue, span: int | None) -> AttributeValue:
    """The axis counted from the front, if the rank is known."""
    return value + span if isinstance(value, int) and span is not None and value < 0 else value


def _show(value: AttributeValue) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(list(value)) if isinstance(value, tuple) else str(value)

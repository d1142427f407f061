"""Why a rule fires on a model and why not: the input is a rule and a model file, the output an
`Answer`.

Each graph is encoded and saturated with the laws alone, so that the rule meets the model as it is
written. At each node with the operator of the rule's left root, the answer says whether the rule
fires, or how much of it matches and what stops it. The work is bounded, and the answer says where a
bound ended it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx

from eqsat.choose.folding import Folding
from eqsat.contributed import DOMAINS
from eqsat.control.calls import speaks_as_model
from eqsat.deadline import Deadline
from eqsat.egraph.admission import RuleSet
from eqsat.egraph.encode import Encoding, encode
from eqsat.egraph.finiteness import Finiteness
from eqsat.egraph.limits import Limits
from eqsat.egraph.outer import Outer
from eqsat.egraph.phases import load as load_plan
from eqsat.egraph.plain_matching import Assignment, Assignments, Index, root_of
from eqsat.egraph.saturate import EngineFailure, saturate
from eqsat.egraph.tables import EGraph
from eqsat.extract import ExtractionError
from eqsat.facts.fact import UNKNOWN, Contradiction, Fact
from eqsat.language.compile import Compiled, compile_rule
from eqsat.language.firing import Firing
from eqsat.language.library import Library
from eqsat.language.problems import Report
from eqsat.language.resolved import Resolved
from eqsat.language.syntax import Rule
from eqsat.model.imports import standard_opset
from eqsat.model.model import Graph, Model, Node, NodeCount
from eqsat.model.read import read
from eqsat.model.tensors import ContentIndex
from eqsat.rewriting.body_facts import control_flow_facts
from eqsat.runtime.worker import shared
from eqsat.spelling.versions import RENAMED
from eqsat.terms.derivation import Derivation
from eqsat.terms.terms import Terms
from eqsat.why.choices import Choice, Choices, solution
from eqsat.why.class_names import Landmarks, label
from eqsat.why.reasons import Outcome, Reasons, Stop

SHOWN = 5  # places that the terminal shows
BUDGET = 2_000_000  # terms looked at in one graph, for one direction of the rule
SHARE = 2_000  # terms looked at in one place
MATCHES = 16  # matches of a whole left side that are tried in one place
SECONDS = 60.0  # for a run with the other rules
MEMORY = 1 << 30  # bytes for evaluating constants


@dataclass(frozen=True, slots=True)
class Spot:
    """A place where the search looked for the rule: a node of the model, and all nodes that compute
    the same.

    `matched` of the `of` nodes of the left side were found.
    """

    node: str
    output: str
    graph: str  # "" is the model's own
    reverse: bool
    matched: int
    of: int
    passed: int  # steps that hold if the whole left side matches; -1 otherwise
    stop: Stop | None  # None: the rule fires
    bindings: dict[str, str]
    more: int = 0  # further nodes that compute the same
    choice: Choice | None = None  # where the rule fires, whether the best graph has what it makes there

    @property
    def near(self) -> bool:
        """Whether the rule does not fire, although more than its root matches."""
        return self.stop is not None and (self.passed >= 0 or self.matched > 1)


@dataclass(slots=True)
class Answer:
    """The places where a rule fires, and the reasons why it does not fire elsewhere."""

    rule: Rule
    operators: tuple[str, ...]  # at the root, by direction
    # By graph and direction, in the order of the model.
    spots: list[Spot] = field(default_factory=list[Spot])
    notes: list[str] = field(default_factory=list[str])
    others: int | None = None  # how often the rule fires together with the other rules

    @property
    def fires(self) -> int:
        """The number of places where the rule fires."""
        return sum(spot.stop is None for spot in self.spots)

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data."""
        places = [
            {
                "node": spot.node,
                "output": spot.output,
                "more": spot.more,
                "graph": spot.graph,
                "reverse": spot.reverse,
                "matched": spot.matched,
                "of": spot.of,
                "fires": spot.stop is None,
                "chosen": None if spot.choice is None else spot.choice.chosen,
                "unused": None if spot.choice is None or spot.choice.reason is None else spot.choice.reason.to_json(),
                "stopped": None if spot.stop is None else {"line": spot.stop.place.line, "column": spot.stop.place.column, "reason": spot.stop.reason},
                "bindings": spot.bindings,
            }
            for spot in self.spots
        ]
        return {"rule": self.rule.name, "fires": self.fires, "fires_with_others": self.others, "places": places, "notes": self.notes}

    def lines(self) -> list[str]:
        """The answer for a terminal: a summary, then the best places."""
        order = sorted(self.spots, key=lambda spot: (spot.stop is not None, -spot.passed, -spot.matched))
        firing = [spot for spot in order if spot.stop is None]
        # Users who ask why want to see the missing part, besides an example that fires.
        shown = firing[: SHOWN - 2] + order[len(firing) :]
        lines = [self._summary()]
        if self.others is not None:
            lines.append(f"with the other rules applied as well it fires {_times(self.others)}")
        lines += self.notes
        for spot in shown[:SHOWN]:
            lines += ["", *self._block(spot)]
        left = len(self.spots) - len(shown[:SHOWN])
        return [*lines, "", f"and {left} more; --json shows all"] if left else lines

    def _summary(self) -> str:
        operators = " or ".join(dict.fromkeys(self.operators))
        if not self.spots:
            return f"rule {self.rule.name}: the model has no {operators}"
        near = sum(spot.near for spot in self.spots)
        choices = [spot.choice.chosen for spot in self.spots if spot.choice is not None]
        chosen = f", chosen at {sum(choices)}" if choices else ""
        return f"rule {self.rule.name}: fires at {_places(self.fires)}{chosen}, nearly matches at {near}; {_looked(self.spots)} ({operators})"

    def _block(self, spot: Spot) -> Iterator[str]:
        where = f" in {spot.graph}" if spot.graph else ""
        more = f" and {_nodes(spot.more)} that {'computes' if spot.more == 1 else 'compute'} the same" if spot.more else ""
        far = f"{spot.matched} of {_nodes(spot.of)}" if spot.stop is not None else "fires" if spot.choice is None else f"fires here, {spot.choice}"
        yield f"{spot.node}{where} (output '{spot.output}'){more}: {far}{', read from right to left' if spot.reverse else ''}"
        if spot.stop is None:
            yield from (f"    {name} = {value}" for name, value in spot.bindings.items())
            return
        report = Report(self.rule)
        report.add(spot.stop.place, spot.stop.reason)
        yield from (f"    {line}" for problem in report.problems for line in str(problem).splitlines())
        yield from (f"    {seen}" for seen in spot.stop.seen)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _places(count: int) -> str:
    return "1 place" if count == 1 else f"{count} places"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _looked(spots: Sequence[Spot]) -> str:
    # Both directions of a rule may have looked at the same node.
    return f"{_nodes(sum({(spot.graph, spot.output): 1 + spot.more for spot in spots}.values()))} looked at"


def why(resolved: Resolved, source: Path, others: Library | None = None, no_empty_inputs: bool = False) -> Answer:
    """The places where the rule fires on the model in a file, and what stops it elsewhere. With
    `others`, also how often it fires together with them. `no_empty_inputs` is the promise that no
    size of an input is 0.

    Raises `InputError` for a bad model.
    """
    directions = compile_rule(resolved)
    answer = Answer(resolved.rule, tuple(_root(compiled) for compiled in directions))
    rules = None if others is None else RuleSet(others.directions, groups=others.group_of, phases=load_plan().phases)
    _Survey(read(source), directions, rules, answer, no_empty_inputs).model()
    return answer


def _root(compiled: Compiled) -> str:
    return root_of(compiled.pattern)[0].operator.name


class _Survey:
    """All graphs of one model."""

    def __init__(self, model: Model, directions: Sequence[Compiled], rules: RuleSet | None, answer: Answer, filled: bool) -> None:
        self.proto = model.proto
        self.filled = filled
        self.source = model
        self.directions = directions
        self.rules = rules
        self.answer = answer
        self.terms = Terms(frozenset(DOMAINS), written=frozenset())
        self.count = NodeCount(function.proto for function in model.functions.values())
        self.derivation = Derivation(self.terms)
        self.contents = ContentIndex()
        self.deadline = Deadline.after(SECONDS)
        if rules is not None:
            answer.others = 0

    def model(self) -> None:
        """Looks at the main graph, its bodies, and the functions that a run would look at."""
        if self.proto.training_info:
            self.answer.notes.append("the model holds training information: a run leaves it as it is")
        self.graph(self.source.graph, Outer(main=True, filled=self.filled), "", list(self.proto.opset_import))
        for function in self.source.functions.values():
            name = f"function {function.proto.domain}.{function.proto.name}"
            if speaks_as_model(function.proto, self.proto):
                opsets = {item.domain: item for item in (*self.proto.opset_import, *function.proto.opset_import)}
                self.graph(function.body, Outer(), name, list(opsets.values()))
            else:
                self.answer.notes.append(f"{name} imports other opsets than the model: a run leaves it as it is")

    def graph(self, graph: Graph, outer: Outer, where: str, opsets: Sequence[onnx.OperatorSetIdProto]) -> tuple[Fact, ...]:
        """Looks at a graph and its bodies; returns the facts of its outputs."""
        folding = Folding(self.source, graph, outer.constants, opsets, shared(), MEMORY)

        def descend(node: Node, inner: Outer) -> tuple[Node, tuple[Fact, ...]]:
            facts = {
                name: self.graph(body, inner.only(body.captured()), f"{name} of {label(node)}" + (f" in {where}" if where else ""), opsets)
                for name, body in node.bodies.items()
            }
            return node, control_flow_facts(node, facts)

        try:
            encoding = encode(graph, self.terms, self.derivation, self.contents, outer, folding.evaluate, descend)
            egraph, record = saturate(encoding, Limits(), RuleSet())
            if record.hit is not None:
                self.answer.notes.append(f"{where or 'the graph'}: the limit of {record.hit} ended the search for facts about its values")
            begin = len(self.answer.spots)
            for compiled in self.directions:
                self.search(graph, encoding, egraph, compiled, where)
            if self.rules is not None:
                opset = standard_opset(opsets)
                self.among_others(encoding, self.rules, where, opset, begin)
        except (Contradiction, EngineFailure) as error:
            self.answer.notes.append(f"{where or 'the graph'} is left as it is: {error}")
            return (UNKNOWN,) * len(graph.outputs)
        return tuple(encoding.fact(name) for name in graph.outputs)

    def among_others(self, encoding: Encoding, rules: RuleSet, where: str, opset: int, begin: int) -> None:
        """Counts how often the rule fires among all rules, and tells what is chosen at the places
        from `begin` on.
        """
        egraph, record = saturate(encoding, Limits(deadline=self.deadline), rules)
        self.answer.others = (self.answer.others or 0) + record.fired.get(self.answer.rule.name, 0)
        if record.hit is not None:
            self.answer.notes.append(f"{where or 'the graph'}: the limit of {record.hit} ended the run with the other rules")
        spots = self.answer.spots
        places = [place for place in range(begin, len(spots)) if spots[place].stop is None]
        if not places:
            return
        try:
            found = solution(encoding, egraph, opset, self.count, MEMORY // 4, shared())
        except ExtractionError as error:
            self.answer.notes.append(f"{where or 'the graph'}: what is chosen is not known: {error}")
            return
        choices = Choices(found, self.answer.rule.name, shared())
        for place in places:
            compiled = next(one for one in self.directions if one.reverse == spots[place].reverse)
            spots[place] = replace(spots[place], choice=choices.at(spots[place].output, compiled))

    def search(self, graph: Graph, encoding: Encoding, egraph: EGraph, compiled: Compiled, where: str) -> None:
        """Looks at each node that the rule's root could be."""
        index = Index(self.terms, egraph)
        assignments = Assignments(compiled.pattern, index, BUDGET, SHARE)
        landmarks = Landmarks(encoding, egraph)
        firing = Firing(compiled, self.terms, self.derivation, special=Finiteness(encoding).special)
        reasons = Reasons(assignments, firing, self.terms, landmarks)
        wanted = assignments.root.operator
        known: dict[int, Spot] = {}
        for node in graph.nodes:
            if (node.operator.domain, RENAMED.get(node.operator.name, node.operator.name)) != (wanted.domain, wanted.name):
                continue
            names = [name for name in node.outputs[assignments.output :] if name] or [name for name in node.outputs if name]
            eclass = egraph.class_of[encoding.values[names[0]]]
            if eclass in known:
                known[eclass] = replace(known[eclass], more=known[eclass].more + 1)
            else:
                found = self.spot(node, eclass, assignments, reasons, compiled, where)
                known[eclass] = replace(found, node=label(node), output=names[0])
        self.answer.spots += known.values()
        if assignments.cut:
            self.answer.notes.append(f"{where or 'the graph'}: there were too many ways to match; not all were tried")

    def spot(self, node: Node, eclass: int, assignments: Assignments, reasons: Reasons, compiled: Compiled, where: str) -> Spot:
        """The answer for one value."""
        of = len(compiled.pattern.nodes)
        best: tuple[Assignment, Outcome] | None = None
        for number, assignment in enumerate(assignments.complete(eclass)):
            if number == MATCHES:
                assignments.cut = True
                break
            outcome = reasons.outcome(assignment)
            if best is None or outcome.passed > best[1].passed or outcome.refusal is None:
                best = assignment, outcome
            if outcome.refusal is None:
                break
        if best is not None:
            assignment, outcome = best
            bindings = reasons.bindings(assignment, outcome.environment)
            return Spot("", "", where, compiled.reverse, of, of, outcome.passed, reasons.refused(assignment), bindings)
        furthest = assignments.furthest(eclass)
        stop = reasons.missed(furthest, node)
        return Spot("", "", where, compiled.reverse, furthest.matched, of, -1, stop, reasons.bindings(furthest, {}))


def contents_of(source: Path) -> tuple[set[str], set[int]]:
    """The operators of a model in a file, by the names that rules use, and the numbers of outputs
    that its nodes have. Bodies and functions count.
    """

    def inside(graph: Graph) -> Iterator[Node]:
        for node in graph.nodes:
            yield node
            for body in node.bodies.values():
                yield from inside(body)

    model = read(source)
    found = [node for graph in (model.graph, *(function.body for function in model.functions.values())) for node in inside(graph)]
    return {RENAMED.get(node.operator.name, node.operator.name) for node in found}, {len(node.outputs) for node in found}

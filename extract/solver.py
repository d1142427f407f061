"""The exact solver: a problem and a choice of it become a model for CP-SAT, a better choice and a proved bound come back.

Every class and node is a literal. A class in use has exactly one node; of the nodes of one class that share a child at most one is chosen, and only if the
child is in use: one clique, where implications one by one would leave the relaxation weak. What is in use has a user. Only inside strongly connected
components classes have positions, each above those of the children chosen there.

The solver works on integers of 64 bits. Weights with longer sums are cut to their leading bits first: what that model proves undercuts the truth by less
than one unit of the cut for each chosen node. A second model then decides, by the bits cut off, among what the first can not tell apart.

Workers are interleaved and their work is measured by the solver's deterministic time, so that the same problem gives the same choice on any machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model

from .graph import impossible
from .problem import Problem
from .work import Work

BITS = 46
"""Of a sum of weights, as the first model sees it."""

WIDEST = 61
"""Bits of any sum that a model may meet."""

_SHARE = 0.8
"""Of what may still be spent, for one call: what comes after a large problem is mostly small, and proved in no time."""

SUBSOLVERS = ("max_lp", "core")
"""One that follows the relaxation and one that grows a bound from conflicts: what resists the one mostly yields to the other."""


def solve(problem: Problem, nodes: list[int], weight: int | None, work: Work) -> tuple[list[int], int | None]:
    """Nodes that weigh at most `weight`, as those given do, and a weight that no choice undercuts; the time it takes is taken from `work`."""
    model = _Model(problem)
    total = sum(max(problem.weight[n] for n in row) for row in problem.nodes_of if row) + sum(abs(term.weight or 0) for term in problem.terms)
    cut = max(0, total.bit_length() - BITS)
    leading = [(literal, value >> cut) for literal, value in model.weights]
    found = model.minimize(leading, nodes, work)
    nodes, weight = _lighter(problem, nodes, weight, found)
    if found is None:
        return nodes, None
    bound = found.bound << cut
    if weight is None:
        return nodes, bound
    slack = (weight >> cut) - found.bound
    trailing = [(literal, value & ((1 << cut) - 1)) for literal, value in model.weights]
    if found.optimal and bound < weight and (sum(value for _, value in trailing) + (slack << cut)).bit_length() <= WIDEST:
        extra = model.excess(leading, found.bound, slack)
        rest = model.minimize([*trailing, (extra, 1 << cut)], nodes, work)
        nodes, _ = _lighter(problem, nodes, weight, rest)
        bound += rest.bound if rest is not None else 0
    return nodes, bound


def _lighter(problem: Problem, nodes: list[int], weight: int | None, found: _Found | None) -> tuple[list[int], int | None]:
    """Of the nodes given and those found, the lighter ones that are allowed."""
    if found is not None and problem.allows(found.nodes):
        other = problem.weigh(found.nodes)
        if other is not None and (weight is None or other < weight):
            return found.nodes, other
    return nodes, weight


@dataclass(frozen=True, slots=True)
class _Found:
    nodes: list[int]
    bound: int  # that no sum of the weights given to `minimize` undercuts
    optimal: bool


class _Model:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.model = cp_model.CpModel()
        # Users before what they use: left without a better reason the solver decides in this order, and from the roots downwards each decision says what
        # is needed next. It is the difference between half a second and no proof at all.
        downwards = sorted((c for c, row in enumerate(problem.nodes_of) if row), key=lambda c: (-problem.order[c], c))
        self.node = {n: self.model.new_bool_var("") for c in downwards for n in problem.nodes_of[c]}
        self.used = {c: self._class(c) for c in downwards}
        self.position: dict[int, cp_model.IntVar] = {}
        for c in downwards:
            self._children(c)
            if not problem.needed[c]:
                self.model.add_bool_or([*(self.node[n] for n in problem.users[c]), ~self.used[c]])
        for members in problem.component:
            if len(members) > 1:
                self._order(members)
        self.weights = [(literal, problem.weight[n]) for n, literal in self.node.items()]
        for t in range(len(problem.terms)):
            self._term(t)
        for amount, limit in zip(problem.amounts, problem.limits, strict=True):
            if limit is not None:
                self._limit(amount, limit)

    # -- constraints -------------------------------------------------------------------------------------------------------------------------------

    def _class(self, c: int) -> cp_model.IntVar:
        nodes = [self.node[n] for n in self.problem.nodes_of[c]]
        if self.problem.needed[c]:
            self.model.add_exactly_one(nodes)
            return self.model.new_constant(1)
        if len(nodes) == 1:
            return nodes[0]
        used = self.model.new_bool_var("")
        self.model.add_exactly_one([*nodes, ~used])
        return used

    def _sharing(self, c: int, among: set[int] | None = None) -> dict[int, list[cp_model.IntVar]]:
        """By child, of those `among` which is asked, the nodes of class c that have it."""
        found: dict[int, list[cp_model.IntVar]] = {}
        for n in self.problem.nodes_of[c]:
            for child in self.problem.children[n]:
                if among is None or child in among:
                    found.setdefault(child, []).append(self.node[n])
        return found

    def _children(self, c: int) -> None:
        for child, nodes in self._sharing(c).items():
            if not self.problem.needed[child]:
                self.model.add_at_most_one([*nodes, ~self.used[child]])

    def _order(self, members: list[int]) -> None:
        for c in members:
            self.position[c] = self.model.new_int_var(0, len(members) - 1, "")
        above: dict[tuple[int, int], cp_model.IntVar] = {}
        for c in members:
            for child, nodes in self._sharing(c, set(members)).items():
                edge = nodes[0]
                if len(nodes) > 1:
                    edge = self.model.new_bool_var("")
                    self.model.add(sum(nodes) == edge)
                above[c, child] = edge
                higher: Any = self.model.add(self.position[c] >= self.position[child] + 1)
                higher.only_enforce_if(edge)
        for (c, child), edge in above.items():
            if c < child and (child, c) in above:
                self.model.add_at_most_one([edge, above[child, c]])

    def _term(self, t: int) -> None:
        term = self.problem.terms[t]
        together = [self.node[n] for n in term.nodes]
        others = [self.node[n] for n in self.problem.users[term.sole] if n != term.nodes[-1]] if term.sole >= 0 else []
        unless = [*(~literal for literal in together), *others]
        if term.weight is None:
            self.model.add_bool_or(unless)
            return
        applied = self.model.new_bool_var("")
        self.model.add_bool_or([*unless, applied])
        for literal in together:
            self.model.add_implication(applied, literal)
        for literal in others:
            self.model.add_implication(applied, ~literal)
        self.weights.append((applied, term.weight))

    def _limit(self, amount: Sequence[int], limit: int) -> None:
        # Amounts are rounded down, and so is the limit: all that fits is still allowed, and what does not is told apart by `fits`.
        cut = max(0, max(limit, sum(amount[n] for n in self.node)).bit_length() - WIDEST)
        self.model.add(sum((amount[n] >> cut) * literal for n, literal in self.node.items() if amount[n] >> cut) <= limit >> cut)

    def excess(self, weights: Sequence[tuple[cp_model.IntVar, int]], least: int, slack: int) -> cp_model.IntVar:
        """By how much a sum of weights, which from now on is at most `least` + `slack`, is above `least`."""
        extra = self.model.new_int_var(0, slack, "")
        self.model.add(sum(value * literal for literal, value in weights if value) == extra + least)
        return extra

    # -- solving -----------------------------------------------------------------------------------------------------------------------------------

    def minimize(self, weights: Sequence[tuple[cp_model.IntVar, int]], hint: Sequence[int], work: Work) -> _Found | None:
        """The best choice found, if any, and what was proved of the least sum."""
        self.model.minimize(sum(value * literal for literal, value in weights if value))
        self._hint(hint)
        solver = cp_model.CpSolver()
        parameters: Any = solver.parameters
        parameters.interleave_search = True
        parameters.num_workers = len(SUBSOLVERS)
        parameters.subsolvers.extend(SUBSOLVERS)
        parameters.linearization_level = 2
        # With limits of many bits this step of the presolve drops choices that just fit, and then proves too much (found by drawing thousands of graphs).
        parameters.presolve_inclusion_work_limit = 0
        parameters.max_deterministic_time = _SHARE * work.solver
        if work.deadline is not None:
            parameters.max_time_in_seconds = max(0.0, work.deadline - time.perf_counter())
        status = solver.solve(self.model)
        work.solver -= solver.response_proto.deterministic_time
        if status == cp_model.INFEASIBLE:
            raise impossible()
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        pick = {self.problem.owner[n]: n for n, literal in self.node.items() if solver.boolean_value(literal)}
        return _Found(self.problem.reached(pick), round(solver.best_objective_bound), status == cp_model.OPTIMAL)

    def _hint(self, nodes: Sequence[int]) -> None:
        self.model.clear_hints()
        chosen = set(nodes)
        in_use = {self.problem.owner[n] for n in nodes}
        for n, literal in self.node.items():
            self.model.add_hint(literal, n in chosen)
        for c, row in enumerate(self.problem.nodes_of):
            if len(row) > 1 and not self.problem.needed[c]:
                self.model.add_hint(self.used[c], c in in_use)

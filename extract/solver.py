"""The exact solver: a CP-SAT model of a problem, hinted by a choice, gives a choice and a bound.

Every class and node is a literal. A class in use has exactly one chosen node. Of the nodes of one
class that share a child, at most one is chosen, and only if the child is in use. This is one
clique, because separate implications would weaken the relaxation. A class in use has a user. Inside
a strongly connected component, classes have positions, each above those of its chosen children.

The solver works on 64-bit integers. Weights with longer sums are first cut to their leading bits:
the bound of that model is too low by less than one unit of the cut for each chosen node. A second
model then decides by the trailing bits among the choices that are equal so far, unless these bits
count changes alone.

Workers are interleaved, and the solver's deterministic time measures their work. So a problem gives
the same choice on any machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .cp_sat import import_cp_model
from .graph import impossible
from .problem import Problem
from .work import Work

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = import_cp_model()

BITS = 46
"""The bits of a sum of weights in the first model."""

WIDEST = 61
"""The bits of any sum in a model."""

_SHARE = 0.8
"""The share of the remaining work for one call.

Problems after a large one are mostly small and quickly proved.
"""

SUBSOLVERS = ("max_lp", "core")
"""The solver's methods: one follows the linear relaxation, one grows a bound from conflicts.

Problems that are hard for one are mostly easy for the other.
"""


def solve(problem: Problem, nodes: list[int], weight: int | None, work: Work) -> tuple[list[int], int | None]:
    """Return nodes of weight at most `weight` and a lower bound on the weight of every choice.

    The given nodes weigh `weight`. The time spent is subtracted from `work`.
    """
    model = _Model(problem)
    total = sum(max(problem.weight[n] for n in row) for row in problem.nodes_of if row) + sum(abs(term.weight or 0) for term in problem.terms)
    cut = max(0, total.bit_length() - BITS)
    leading = [(literal, value >> cut) for literal, value in model.weights]
    found = model.minimize(leading, nodes, work, cut)
    nodes, weight = _lighter(problem, nodes, weight, found)
    if found is None:
        return nodes, None
    bound = found.bound << cut
    if weight is None:
        return nodes, bound
    if cut <= work.changes:
        return nodes, bound
    slack = (weight >> cut) - found.bound
    trailing = [(literal, value & ((1 << cut) - 1)) for literal, value in model.weights]
    if found.optimal and not work.enough(weight, bound) and (sum(value for _, value in trailing) + (slack << cut)).bit_length() <= WIDEST:
        extra = model.excess(leading, found.bound, slack)
        rest = model.minimize([*trailing, (extra, 1 << cut)], nodes, work, 0)
        nodes, _ = _lighter(problem, nodes, weight, rest)
        bound += rest.bound if rest is not None else 0
    return nodes, bound


def _lighter(problem: Problem, nodes: list[int], weight: int | None, found: _Found | None) -> tuple[list[int], int | None]:
    """Return the found nodes if they are lighter and within the limits, else the given ones."""
    if found is not None and problem.allows(found.nodes):
        other = problem.weigh(found.nodes)
        if other is not None and (weight is None or other < weight):
            return found.nodes, other
    return nodes, weight


@dataclass(frozen=True, slots=True)
class _Found:
    nodes: list[int]
    # No sum of the weights given to `minimize` is less.
    bound: int
    optimal: bool


class _Model:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.model = cp_model.CpModel()
        # Users come before their children: by default the solver decides in this order, and from
        # the roots down each decision shows which classes are needed next. This makes the
        # difference between half a second and no proof at all.
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

    # -- constraints -------------------------------------------------------------------------------

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
        """Map each child (of those in `among`, if given) to the nodes of class c that have it."""
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
        # Amounts and the limit are rounded down, so every choice that fits is still allowed. `fits`
        # rejects the others afterwards.
        cut = max(0, max(limit, sum(amount[n] for n in self.node)).bit_length() - WIDEST)
        self.model.add(sum((amount[n] >> cut) * literal for n, literal in self.node.items() if amount[n] >> cut) <= limit >> cut)

    def excess(self, weights: Sequence[tuple[cp_model.IntVar, int]], least: int, slack: int) -> cp_model.IntVar:
        """Return a variable for the excess of a sum over `least`, which is at most `slack`."""
        extra = self.model.new_int_var(0, slack, "")
        self.model.add(sum(value * literal for literal, value in weights if value) == extra + least)
        return extra

    # -- solving -----------------------------------------------------------------------------------

    def minimize(self, weights: Sequence[tuple[cp_model.IntVar, int]], hint: Sequence[int], work: Work, cut: int) -> _Found | None:
        """Minimize a sum of weights without their last `cut` bits.

        Return the best choice found and the proved bound, or None if no choice was found.
        """
        self.model.minimize(sum(value * literal for literal, value in weights if value))
        self._hint(hint)
        solver = cp_model.CpSolver()
        parameters: Any = solver.parameters
        parameters.interleave_search = True
        parameters.num_workers = len(SUBSOLVERS)
        parameters.subsolvers.extend(SUBSOLVERS)
        parameters.linearization_level = 2
        # With limits of many bits this presolve step drops choices that just fit, and then proves
        # too much, as thousands of random graphs showed.
        parameters.presolve_inclusion_work_limit = 0
        parameters.max_deterministic_time = _SHARE * work.solver
        if work.slack:
            parameters.absolute_gap_limit = work.slack >> cut
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

"""The generator of wrong rules makes the same legal mutants each time, and every kind of them."""

from __future__ import annotations

from itertools import islice

from eqsat.language.library import whole_library
from tests.rules.mutants import KINDS, legal, mutants, originals


def test_there_are_mutants_of_every_kind() -> None:
    found = {mutant.kind for resolved in originals() for mutant in mutants(resolved)}
    assert found == set(KINDS)


def test_the_same_mutants_come_each_time() -> None:
    first, second = (list(islice(legal(97, 5, KINDS), 12)) for _ in range(2))
    assert first == second and len(first) == 12
    assert all(mutant.resolved.rule.documentation[0].startswith("Wrong: ") for mutant in first)


def test_a_mutant_is_not_the_rule() -> None:
    by_name = {resolved.rule.name: resolved.rule for resolved in whole_library().rules}
    for mutant in islice(legal(61, 2, KINDS), 20):
        rule, original = mutant.resolved.rule, by_name[mutant.of]
        assert (rule.label, rule.right, rule.conditions) != (original.label, original.right, original.conditions)

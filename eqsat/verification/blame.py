"""Blame: bisection finds the rules that make a result wrong.

The input is the names of the rules that fired, and a function that tells whether a run with some of
them fails. The output is the rules to leave out. Each of them makes the run fail together with the
rules before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def guilty(names: Sequence[str], fails: Callable[[Sequence[str]], bool], most: int = 8) -> list[str] | None:
    """Returns the rules to drop so that the run with the others does not fail.

    Returns None if the run fails without any rule, or if more than `most` rules are guilty.
    """
    if fails(()):
        return None
    kept = list(names)
    found: list[str] = []
    while fails(kept):
        if len(found) == most:
            return None
        # All rules fail and no rules do not: the rule at the border between them is guilty.
        good, bad = 0, len(kept)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if fails(kept[:middle]) else (middle, bad)
        found.append(kept.pop(bad - 1))
    return found

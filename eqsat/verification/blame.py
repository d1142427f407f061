"""Blame: which rules made a result wrong, found by running again with some of the rules.

The input is the names of the rules that fired, and a function that says whether a run with some of
them goes wrong. The output is the rules to leave out, found by bisection. Each of them, together
with the rules before it, is enough to go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def guilty(names: Sequence[str], fails: Callable[[Sequence[str]], bool], most: int = 8) -> list[str] | None:
    """Returns the rules to drop so that the run with the others does not fail.

    None if the run fails without any rule, or if more than `most` rules would have to go.
    """
    if fails(()):
        return None
    kept = list(names)
    found: list[str] = []
    while fails(kept):
        if len(found) == most:
            return None
        # Some prefix fails and the empty one does not: the rule at the border is guilty.
        good, bad = 0, len(kept)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if fails(kept[:middle]) else (middle, bad)
        found.append(kept.pop(bad - 1))
    return found

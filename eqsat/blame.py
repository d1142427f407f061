"""Blame: which rules made a result wrong, found by running again with some of them.

Comes in: the names of the rules that fired, and a function that says whether a run with some of them goes wrong. Goes out:
the rules without which it does not, found by bisection; each is enough, together with those before it, to go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def guilty(names: Sequence[str], fails: Callable[[Sequence[str]], bool], most: int = 8) -> list[str] | None:
    """The rules to drop so that the rest does not fail; None where it fails without any rule, or more than `most` would have to go."""
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

"""How often Python looks for cycles of garbage in a process that is all eqsat's own."""

import gc

_OBJECTS = 100_000  # that are made between two runs of the cycle collector


def collect_rarely() -> None:
    """Makes the cycle collector run rarely: graphs and rules are many small objects, and few of
    them are garbage.
    """
    gc.set_threshold(_OBJECTS)

"""Settings for all tests: hypothesis is deterministic and has no deadline; slow tests run first.

Machines differ in speed, so a deadline would fail on some.
"""

import gc

import pytest
from hypothesis import settings

from eqsat.garbage import collect_rarely

settings.register_profile("eqsat", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("eqsat")

# Modules with tests of half a minute, which come first of all.
LONG = ("end_to_end/test_scale", "end_to_end/test_light_models", "end_to_end/test_corpus", "end_to_end/test_properties", "house/test_docs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts slow tests first, and those that take longest before the others.

    Otherwise one worker could be busy with a slow test at the end while the others are idle.
    """
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, not item.nodeid.startswith(tuple(f"tests/{module}" for module in LONG))))


def pytest_collection_finish() -> None:
    """Spares the garbage collector what collection made, which stays until the end."""
    gc.collect()
    gc.freeze()
    collect_rarely()

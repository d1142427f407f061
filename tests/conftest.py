"""Settings for all tests: hypothesis is deterministic and has no deadline; slow tests run first.

Machines differ in speed, so a deadline would fail on some.
"""

import pytest
from hypothesis import settings

settings.register_profile("eqsat", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("eqsat")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts slow tests first.

    Otherwise one worker could be busy with a slow test at the end while the others are idle.
    """
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)

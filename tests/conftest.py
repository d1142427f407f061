"""Settings for all tests: hypothesis is deterministic and has no deadline, because machines differ
in speed; slow tests run first.
"""

import pytest
from hypothesis import settings

settings.register_profile("eqsat", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("eqsat")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts slow tests first, so that at the end no worker is busy with one while the others have
    nothing to do.
    """
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)

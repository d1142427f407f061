"""Settings for all tests: hypothesis is deterministic and has no deadline, because machines differ in speed."""

from hypothesis import settings

settings.register_profile("eqsat", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("eqsat")

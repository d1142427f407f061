"""The differential fuzzer: random models, optimized and compared with what they were, on the runtime and on the reference."""

import sys
from pathlib import Path

# What the tests share lies beside this package; pytest finds it, `python -m tests.fuzz` does so by this line.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

"""The differential fuzzer: `python -m tests.fuzz --seeds 10000`, from the root of the repository.

Each seed is a model. It is optimized without verification, and both models run on the same inputs, on ONNX Runtime without its
optimizations: other sizes, 0 and 1 among them and sizes beyond the bounds in the model, integers at their ends, a NaN or an
infinity at one place. Where outputs differ by more than rounding explains, ONNX's reference is asked: if it sees no difference, the
runtime is at fault, which is counted apart. Every other difference is made small, and printed as ONNX text with its inputs and the rules it needs.

    --seeds N      how many models (1000)
    --start S      the first seed (0)
    --exact        optimize with `exact`, and compare bits
    --quick        do not make what differs small

Exits with 1 if a model differs, crashes or hangs. The same seeds give the same models.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from .campaign import outcomes, smaller
from .trial import FAILURES, SAME, Outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    runs = 0
    begun = time.perf_counter()
    for number, outcome in enumerate(outcomes(range(given.start, given.start + given.seeds), given.exact), 1):
        counts[outcome.status] += 1
        runs += outcome.runs
        if outcome.status != SAME and outcome.reason:
            print(_told(outcome), flush=True)
            if outcome.status in FAILURES and not given.quick:
                print(smaller(outcome.seed, given.exact), flush=True)
        if number % 500 == 0:
            print(f"... {number} seeds, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    print(f"{given.seeds} models, {runs} runs: {told}; {time.perf_counter() - begun:.0f} s")
    return 1 if any(counts[status] for status in FAILURES) else 0


def _told(outcome: Outcome) -> str:
    rules = f" [{', '.join(outcome.rules)}]" if outcome.rules else ""
    return f"seed {outcome.seed}: {outcome.status}: {outcome.reason} ({outcome.style}){rules}"


if __name__ == "__main__":
    sys.exit(main())

"""The differential fuzzer: `python -m tests.fuzz --seeds 10000`, from the root of the repository.

Each seed is a model. eqsat optimizes it without verification, and both models run on the same
inputs, on ONNX Runtime without its optimizations. The inputs have sizes that the model was not
built with, 0 and 1 and sizes beyond the model's bounds among them, integers at the limits of their
type, and a NaN or an infinity at one place. One model in 25 is verified too. The fuzzer counts
these outcomes:

    same       no output differs by more than rounding explains; with --exact, by a bit
    different  an output does, or the runtime refuses the optimized model, or the process
               crashes or hangs; printed as small ONNX text with its inputs and rules
    left out   verification left out a rule
    given up   verification gave up the whole model
    runtime    ONNX's reference sees no difference: the runtime is wrong on the original, or
               accepts inputs that ONNX does not
    lured      as `runtime`, but the runtime is wrong on the optimized model, or refuses it;
               worth a look
    poles      an output differs where an infinity or a NaN arises inside, of which real
               arithmetic tells nothing
    nothing    no model that runs was drawn, or the runtime crashes on the original

    --seeds N      the number of models (1000)
    --start S      the first seed (0)
    --exact        optimize with `exact`, and compare bits
    --engine E     apply the rules by this engine (saturation), in an order that each seed draws
    --quick        do not make failing models small

The exit code is 1 if a model is different, left out or given up. The same seeds give the same
models.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from eqsat.settings import ENGINES

from .campaign import outcomes, smaller
from .trial import FAILURES, SAME, Outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    runs = 0
    begun = time.perf_counter()
    for number, outcome in enumerate(outcomes(range(given.start, given.start + given.seeds), given.exact, given.engine), 1):
        counts[outcome.status] += 1
        runs += outcome.runs
        if outcome.status != SAME and outcome.reason:
            print(_told(outcome), flush=True)
            if outcome.status in FAILURES and not given.quick:
                print(smaller(outcome.seed, given.exact, given.engine), flush=True)
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

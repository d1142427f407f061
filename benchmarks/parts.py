"""The command: `python -m benchmarks.parts MODEL ... [--groups NAME ...]`.

Compares the predicted time of a default run with that of parts of it: `--effort low`, each group of
rules alone, and a second run over the result. No part should beat the whole by more than 1 %, so
the exit code is 1 if one does. A line for each model names the best part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import eqsat
from eqsat.language.library import built_in

WORTH = 0.01
"""The share of predicted time by which a part may be better."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--groups", nargs="*", default=[group.name for group in built_in().groups], metavar="NAME", help="groups to try (default: all)")
    options = parser.parse_args()
    beaten = 0
    for model in options.models:
        whole = eqsat.optimize(model, verify=False)
        time = _predicted(whole)
        share, part = min((_predicted(result) / time, name) for name, result in _parts(model, whole, options.groups))
        beaten += share < 1 - WORTH
        print(f"{model.stem:<20} {time * 1e6:10.1f} us   the best part: {share:.4f} of it, {part}", flush=True)
    print(f"beaten by more than {WORTH:.0%}: {beaten} of {len(options.models)} models")
    return bool(beaten)


def _parts(model: Path, whole: eqsat.Result, groups: list[str]) -> Iterator[tuple[str, eqsat.Result]]:
    yield "a second run", eqsat.optimize(whole.model, verify=False)
    yield "--effort low", eqsat.optimize(model, verify=False, effort="low")
    for group in groups:
        yield f"--only {group}", eqsat.optimize(model, verify=False, only=[group])


def _predicted(result: eqsat.Result) -> float:
    return result.report["cost"]["after"]["seconds"]


if __name__ == "__main__":
    sys.exit(main())

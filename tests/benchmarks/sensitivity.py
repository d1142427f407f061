"""Measures which errors verification finds: `python -m tests.benchmarks.sensitivity MODEL.onnx ...`.

Each model is optimized, and errors are planted in the result, one at a time
(tests/support/planted.py). The table has, for each kind, how many are found, of how many. Below it
stand those that are not. With `--true`, the results themselves are verified instead, which have to
be equal.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import onnx

import eqsat
from tests.support.planted import Plant, plants


def optimized(path: Path, cache: Path | None) -> onnx.ModelProto:
    """Returns the result of a model. It is kept in the folder `cache`."""
    kept = cache / path.name if cache is not None else None
    if kept is not None and kept.exists():
        return onnx.load(kept)
    model = eqsat.optimize(str(path), verify=False).model
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, kept)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--each", type=int, default=4, help="errors of each kind in a model (default: 4)")
    parser.add_argument("--seed", type=int, default=0, help="another seed plants elsewhere")
    parser.add_argument("--cache", type=Path, help="a folder that keeps the results of optimization")
    parser.add_argument("--kinds", nargs="*", help="only these kinds")
    parser.add_argument("--true", action="store_true", help="verify the results without planted errors")
    options = parser.parse_args()
    missed: list[tuple[str, Plant, str]] = []
    for path in options.models:
        result = optimized(path, options.cache)
        if options.true:
            verdict = eqsat.verify(str(path), result)
            print(f"{path.stem}: {verdict.status} {verdict.reason} {verdict.notes} {verdict.seconds:.1f} s", flush=True)
            continue
        planted, found, started = Counter[str](), Counter[str](), time.perf_counter()
        for plant in plants(result, options.each, options.seed):
            if options.kinds and plant.kind not in options.kinds:
                continue
            planted[plant.kind] += 1
            verdict = eqsat.verify(str(path), plant.model)
            if verdict.status == "different":
                found[plant.kind] += 1
            else:
                missed.append((path.stem, plant, f"{verdict.status} {verdict.reason}"))
        seconds = (time.perf_counter() - started) / max(planted.total(), 1)
        print(f"{path.stem}: {', '.join(f'{kind} {found[kind]} of {count}' for kind, count in planted.items())}; {seconds:.1f} s each", flush=True)
    for name, plant, verdict in missed:
        print(f"missed in {name}: {plant.kind} at {plant.place}: {verdict}")


if __name__ == "__main__":
    main()

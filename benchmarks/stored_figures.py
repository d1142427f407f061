"""The command: `python -m benchmarks.stored_figures KIND FILE ... --machine TEXT -o OUT.json`.

Condenses what other commands measured into a small file that the notebooks read. KIND is

- `orders`: what `eqsat compare MODEL --engines --json` prints, a file for each run;
- `latency`: what `python -m benchmarks.latency --json FILE` writes;
- `growth`: what `eqsat optimize MODEL --json` prints, a file for each model.

The output has the day and the machine class of the measurement, no path, and a line for each model.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from eqsat.settings import RANDOM

Record = Mapping[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stored_figures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS, metavar="KIND")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--machine", required=True, metavar="TEXT", help="the class of the machine, such as '2 cores, not idle'")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), metavar="DAY", help="the day of the measurement (default: today)")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="OUT.json")
    options = parser.parse_args()
    records = [json.loads(path.read_text(encoding="utf-8")) for path in options.files]
    models = [model for record in records for model in KINDS[options.kind](record)]
    head = {"date": options.date, "machine": options.machine} | {key: record[key] for record in records for key in ("clock", "versions") if key in record}
    options.output.write_text(text_of(head, models), encoding="utf-8")
    return 0


def text_of(head: Record, models: list[Record]) -> str:
    """Returns the text of a file: the head, then a line for each model, by name."""
    lines = ",\n".join(json.dumps(model) for model in sorted(models, key=lambda model: model["model"]))
    return f'{json.dumps(head)[:-1]}, "models": [\n{lines}\n]}}\n'


def orders_of(record: Record) -> Iterator[Record]:
    """Yields, for each model, the costs in all orders of its rules."""
    for model in record["models"]:
        by_chance = [one for one in model["greedy"] if one["order"].startswith(RANDOM)]
        (in_files,) = [one for one in model["greedy"] if one not in by_chance]
        yield {
            "model": PurePath(model["model"]).stem,
            **{key: model[key] for key in ("target", "unit", "nodes", "close")},
            "cost": _short(model["cost"]),
            "saturation": _outcome(model["saturation"]),
            "in_files": _outcome(in_files),
            "random": {key: [_short(one[key]) for one in by_chance] for key in ("cost", "nodes", "took")},
            "verify": dict(sorted(Counter(one["verify"] for one in model["greedy"]).items())),
            "limits": dict(sorted(Counter(one["hit"] for one in model["greedy"] if one["hit"]).items())),
        }


def latency_of(record: Record) -> Iterator[Record]:
    """Yields, for each model, what each optimizer made of it, by the name of the optimizer."""
    for model in record["models"]:
        measured = model["measurement"]["measured"]
        yield {
            "model": model["model"],
            "rounds": model["measurement"]["rounds"],
            "spread": _short(model["measurement"]["spread"]),
            "results": {
                name: {
                    "status": variant["status"],
                    "nodes": variant["nodes"],
                    "launches": measured[name]["launches"],
                    "milliseconds": _short(measured[name]["median"]),
                    "least": _short(measured[name]["minimum"]),
                    "predicted": _short(model["predicted"][name]),
                    "seconds": _short(variant["cpu_seconds"]),
                }
                for name, variant in model["variants"].items()
                if name in measured
            },
        }


def growth_of(record: Record) -> Iterator[Record]:
    """Yields the size of the e-graph of a model after each step."""
    steps = [[step["phase"], step["step"], step["nodes"], step["classes"]] for step in record["saturation"]["steps"]]
    yield {"model": PurePath(record["input"]).stem, "nodes": record["nodes"]["before"], "limit": record["limits"]["hit"], "steps": steps}


KINDS: dict[str, Callable[[Record], Iterator[Record]]] = {"orders": orders_of, "latency": latency_of, "growth": growth_of}


def _outcome(one: Record) -> Record:
    return {"cost": _short(one["cost"]), "nodes": one["nodes"], "took": _short(one["took"])}


def _short(figure: float) -> float:
    """Returns a figure with six digits, which is more than any measurement has."""
    return figure if isinstance(figure, int) else float(f"{figure:.6g}")


if __name__ == "__main__":
    sys.exit(main())

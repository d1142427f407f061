"""The command: `python -m benchmarks.orders MODEL ... [--orders N] [--json FILE] [...]`.

Optimizes each model by saturation, and by the greedy engine in many orders of the same rules, with
the same prices and checks. The table has the predicted cost of each. The figures of all runs go to
a JSON file, which is written anew after each model. Other options are those of `eqsat optimize`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from eqsat.cli.options import add_settings, count, given_settings
from eqsat.cli.progress import shown_progress
from eqsat.errors import InputError
from eqsat.orders import Orders, orders, table
from eqsat.settings import Settings

_SETTINGS = "verify exact strict target objective effort time_limit memory_limit max_growth opset dims assume_dims rules only skip phases".split()
WRONG_USE = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orders", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="ONNX files")
    parser.add_argument("--orders", type=count, default=100, metavar="N", help="random orders of the rules, of the seeds 1 to N (100 by default)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures of all runs there")
    add_settings(parser, _SETTINGS)
    options = parser.parse_args()
    rows: list[Orders] = []
    try:
        with shown_progress(quiet=False) as progress:
            settings = Settings(**given_settings(options), progress=progress)
            for model in options.models:
                rows.append(orders(model, settings, range(1, options.orders + 1)))
                if options.json:
                    options.json.write_text(json.dumps([row.to_json() for row in rows], indent=2) + "\n", encoding="utf-8")
                if len(rows[-1].greedy) <= options.orders:
                    break  # interrupted
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_USE
    except OSError as error:
        print(f"error: {options.json}: can not write it: {error.strerror}", file=sys.stderr)
        return WRONG_USE
    print("\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

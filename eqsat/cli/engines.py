"""`eqsat compare --engines`: saturation against the greedy engine, over many orders of the rules."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from eqsat.cli.progress import shown_progress


def compare_engines(options: argparse.Namespace, given: Mapping[str, Any]) -> int:
    """Optimizes each model by saturation and in many orders, and shows the costs. `given` are the
    settings of all runs. An interrupt ends the runs; the finished ones are shown.
    """
    from eqsat.orders import Orders, orders, table
    from eqsat.settings import Settings

    rows: list[Orders] = []
    with shown_progress(options.json) as progress:
        settings = Settings(**given, progress=progress)
        for model in options.models:
            rows.append(orders(model, settings, range(1, options.orders + 1)))
            if len(rows[-1].greedy) <= options.orders:
                break  # interrupted
    if options.json:
        print(json.dumps({"models": [row.to_json() for row in rows]}))
    else:
        print("\n".join(table(rows)))
    return 0

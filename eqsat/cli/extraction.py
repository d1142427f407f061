"""The command line of extraction: `eqsat extract GRAPH.json[.gz]`."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from eqsat.cli.available_memory import available_memory
from eqsat.cli.options import seconds, size
from eqsat.cli.progress import shown_progress
from eqsat.errors import InputError
from eqsat.settings import METHODS


def add_extract(commands: Any) -> None:
    """Adds `extract` to the commands of a parser."""
    extract = commands.add_parser("extract", help="choose the cheapest program from an e-graph in the egraph-serialize format")
    extract.add_argument("graph", metavar="GRAPH.json[.gz]", help="the e-graph, plain or compressed by gzip")
    extract.add_argument("--extractor", choices=METHODS, default="exact", help="prove the best choice, or search for a good one, or by the least trees")
    extract.add_argument("--time-limit", metavar="S", type=seconds, help="stop improving after S seconds; the choice is valid anyway")
    extract.add_argument("--memory-limit", metavar="SIZE", type=size, help="refuse a graph that needs more (default: three quarters of the available memory)")
    extract.add_argument("--json", action="store_true", help="print one JSON object, with the chosen node of each class")
    extract.set_defaults(command=_extract)


def _extract(options: argparse.Namespace) -> int:
    from eqsat.extract import ExtractionError, extract
    from eqsat.extract.serialize import read

    path = Path(options.graph)
    memory = available_memory() * 3 // 4 if options.memory_limit is None else options.memory_limit
    with shown_progress(options.json) as progress:
        try:
            progress("read")
            with path.open("rb") as file:
                graph, names = read(file, memory)
            progress("extract")
            start = time.perf_counter()
            choice = extract(graph, method=options.extractor, time_limit=options.time_limit, memory_limit=memory)
            elapsed = time.perf_counter() - start
        except ExtractionError as error:
            raise InputError(f"{path}: {error}") from None
        except OSError as error:
            raise InputError(f"{path}: can not read it: {error.strerror or error}") from None
        except MemoryError:
            raise InputError(f"{path}: there is not enough memory for it") from None
    if options.json:
        record = {
            "status": choice.status,
            "cost": choice.cost,
            "bound": choice.bound,
            "bound_for": choice.bound_for,
            "seconds": elapsed,
            "nodes": len(choice.nodes),
            "choice": {names.classes[eclass]: names.nodes[index] for eclass, index in choice.nodes.items()},
        }
        print(json.dumps(record))
        return 0
    print(f"nodes   {len(choice.nodes)} of {len(graph.nodes)}")
    print(f"cost    {choice.cost!r}")
    print(f"bound   {choice.bound!r}, " + ("which the cost meets" if choice.cost == choice.bound else f"{choice.gap:.2%} below the cost"))
    print(f"status  {choice.status}")
    print(f"time    {elapsed:.2f} s")
    return 0

"""Measures the graphs of TASO and Tensat: `python -m tests.benchmarks.taso [NAME ...]`.

All rules are used. For each graph it prints nodes, products and Convs before and after, seconds to
saturate, to extract, and in all, beside the published search times of TASO and Tensat. Those come
from another machine (with a T4 GPU): compare orders of magnitude, not digits. The graphs have
random weights of the published sizes; `--width` takes a factor for the number of channels.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import onnx

import eqsat
from tests.support import taso_models

PUBLISHED = {  # search seconds of TASO and Tensat, from the paper on Tensat (MLSys 2021)
    "bert": (13.6, 1.4),
    "resnext50": (25.3, 0.7),
    "nasnet": (1226, 10.6),
    "nasrnn": (177.3, 0.5),
    "inception": (68.6, 5.1),
    "squeezenet": (16.4, 0.3),
    "vgg19": (8.9, 0.4),
}
GROWTH = 1 << 30  # bytes that a file may grow, because enlarged kernels store zeros


def count(model: onnx.ModelProto, *operators: str) -> int:
    """Returns the number of nodes of these operators."""
    return sum(node.op_type in operators for node in model.graph.node)


def measure(name: str, width: float, verify: bool) -> dict[str, Any]:
    """Returns eqsat's result on a graph, and its times."""
    model = taso_models.build(name, width)
    result = eqsat.optimize(model, max_growth=GROWTH, verify=verify, target="launches")
    report = result.report
    taso, tensat = PUBLISHED[name]
    return {
        "graph": name,
        "width": width,
        "nodes": report["nodes"],
        "products": {"before": count(model, "MatMul", "Gemm"), "after": count(result.model, "MatMul", "Gemm")},
        "convs": {"before": count(model, "Conv"), "after": count(result.model, "Conv")},
        "verify": report["verify"]["status"],
        "limit": report["limits"]["hit"],
        "extraction": report["extraction"]["status"],
        "seconds": report["seconds"],
        "published": {"taso": taso, "tensat": tensat},
    }


def rows(names: list[str], width: float, verify: bool) -> Iterator[str]:
    """Yields the lines of a table."""
    yield "| graph | nodes | MatMul | Conv | verified | limit | saturate s | extract s | all s | TASO s | Tensat s |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name in names:
        found = measure(name, width, verify)
        counts = " | ".join(f"{found[key]['before']} -> {found[key]['after']}" for key in ("nodes", "products", "convs"))
        seconds = " | ".join(f"{found['seconds'][key]:.2f}" for key in ("saturate", "extract", "total"))
        searched = f"{found['published']['taso']} | {found['published']['tensat']}"
        yield f"| {name} | {counts} | {found['verify']} | {found['limit'] or ''} | {seconds} | {searched} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PUBLISHED)} (default: all)")
    parser.add_argument("--width", type=float, default=1.0, help="a factor for the number of channels (default: 1)")
    parser.add_argument("--no-verify", action="store_true", help="do not run the models")
    parser.add_argument("--json", action="store_true", help="print one JSON object per graph")
    options = parser.parse_args()
    names = options.names or list(PUBLISHED)
    if unknown := set(names) - PUBLISHED.keys():
        parser.error(f"there is no graph {', '.join(sorted(unknown))}")
    if options.json:
        for name in names:
            print(json.dumps(measure(name, options.width, not options.no_verify)), flush=True)
    else:
        for row in rows(names, options.width, not options.no_verify):
            print(row, flush=True)


if __name__ == "__main__":
    main()

"""The command line of low rank: `eqsat low-rank MODEL --error BOUND -o FILE.onnx`."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eqsat.cli.progress import shown_progress
from eqsat.cli.streams import STANDARD, check_file, check_output, print_model, source_of
from eqsat.errors import InputError


def add_low_rank(commands: Any) -> None:
    """Adds `low-rank` to the commands of a parser."""
    low_rank = commands.add_parser(
        "low-rank", help="make two thinner weights of those of products, with an error that you bound; not equal, so no part of optimize"
    )
    low_rank.add_argument("model", metavar="MODEL", help="an ONNX file; - reads it from standard input")
    low_rank.add_argument(
        "--error",
        type=_share,
        required=True,
        metavar="BOUND",
        help="the most that a weight may change, as a share of its largest singular value: above 0, below 1",
    )
    low_rank.add_argument("-o", "--output", metavar="FILE.onnx", required=True, help="where to write the model; - is standard output")
    low_rank.add_argument("--json", action="store_true", help="print one JSON object")
    low_rank.set_defaults(command=_low_rank)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0 and below 1")
    return share


def _low_rank(options: argparse.Namespace) -> int:
    from eqsat.model.external_data import has_external_data
    from eqsat.model.file_bytes import model_bytes
    from eqsat.model.low_rank import factor
    from eqsat.model.read import normalize
    from eqsat.model.sources import load, path_of
    from eqsat.model.write import save

    standard = options.output == STANDARD
    check_output() if standard else check_file(Path(options.output))
    source = source_of(options.model)
    proto, folder = load(source)
    path = path_of(source)
    normalize(proto, folder, path)  # names what is wrong with a model that is none
    before = model_bytes(proto)
    outside = has_external_data(proto)
    if standard and outside:
        raise InputError(f"{options.model}: its weights are in files of their own, and standard output is one file; give a file: -o FILE.onnx")
    with shown_progress(options.json) as progress:
        found = factor(proto, folder, options.error, progress)
        if not found:
            raise InputError(
                f"{options.model}: no weight of a product has a rank that saves multiplications within --error {options.error:g}; nothing is written"
            )
        progress("write")
        if standard:
            print_model(proto)
        else:
            save(proto, folder, Path(options.output), None if path is None else Path(path), outside)
    size = {"before": before, "after": model_bytes(proto)}
    record = {"model": options.model, "output": options.output, "bound": options.error, "weights": [asdict(each) for each in found], "bytes": size}
    print(json.dumps(record) if options.json else "\n".join(_lines(record)), file=sys.stderr if standard else sys.stdout)
    return 0


def _lines(record: dict[str, Any]) -> Iterator[str]:
    width = max(len(each["weight"]) for each in record["weights"])
    for each in record["weights"]:
        rows, columns = each["shape"]
        yield f"weight  {each['weight']:{width}} {rows} x {columns} -> rank {each['rank']}, error {each['error']:.3g}"
    yield f"file    {record['bytes']['before']} -> {record['bytes']['after']} bytes"
    yield f"wrote   {record['output']}"

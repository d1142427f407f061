"""The command line of the examples: `eqsat example [NAME -o FILE.onnx]`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from eqsat.cli.streams import check_file
from eqsat.errors import InputError


def add_example(commands: Any) -> None:
    """Adds `example` to the commands of a parser."""
    example = commands.add_parser("example", help="make a model to try things out, without a download; without a name, list them")
    example.add_argument("name", metavar="NAME", nargs="?", help="the example")
    example.add_argument("-o", "--output", metavar="FILE.onnx", help="where to write it (default: NAME.onnx, unless another file is there)")
    example.add_argument("--json", action="store_true", help="print one JSON object")
    example.set_defaults(command=_example)


def _example(options: argparse.Namespace) -> int:
    from eqsat.examples.examples import EXAMPLES
    from eqsat.model.model import count_nodes

    if options.name is None:
        if options.output is not None:
            raise InputError(f"-o goes with the name of an example; there are {', '.join(EXAMPLES)}")
        abouts = {name: about for name, (about, _) in EXAMPLES.items()}
        print(json.dumps(abouts) if options.json else "\n".join(f"{name:8}{about}" for name, about in abouts.items()))
        return 0
    if options.name not in EXAMPLES:
        raise InputError(f"no example is called '{options.name}'; there are {', '.join(EXAMPLES)}")
    path = Path(f"{options.name}.onnx" if options.output is None else options.output)
    check_file(path)
    about, make = EXAMPLES[options.name]
    model = make()
    data = model.SerializeToString(deterministic=True)
    if options.output is None and path.exists() and path.read_bytes() != data:
        raise InputError(f"{path}: is there already, with other contents; give a file: -o FILE.onnx")
    _write(data, path)
    nodes, size = count_nodes(model), len(data)
    record = {"output": str(path), "about": about, "nodes": nodes, "bytes": size}
    print(json.dumps(record) if options.json else f"model   {about}\nnodes   {nodes}\nfile    {size} bytes\nwrote   {path}")
    return 0


def _write(data: bytes, path: Path) -> None:
    """Writes a file, whole or not at all."""
    from eqsat.model.write import replacing

    try:
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"{path}: can not write it: {error.strerror}") from None

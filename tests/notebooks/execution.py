"""Execution of notebooks, each in a kernel of its own, in the folder of the notebooks.

It needs nbclient, nbformat and ipykernel: the extra `notebooks`.
"""

from __future__ import annotations

import json
import os
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.notebooks.notebook import FOLDER, Notebook

_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
_LIMIT = 300  # seconds of one cell, and of the start: a busy machine is no failure


def executed(notebook: Notebook) -> Notebook:
    """Returns the notebook with the outputs of a run from its first cell to its last, and without
    anything that depends on the machine. An error in a cell is a `CellExecutionError`.
    """
    node: Any = nbformat.reads(json.dumps(notebook), as_version=4)
    for cell in node.cells:
        cell.metadata.pop("execution", None)
    # The kernel imports this checkout, and sets the backend of matplotlib itself if nothing else does.
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(FOLDER.parent), environment.get("PYTHONPATH")]))
    # Pieces of a stream are joined, since how a stream is cut depends on time.
    client = NotebookClient(
        node,
        timeout=_LIMIT,
        startup_timeout=_LIMIT,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
        record_timing=False,
        coalesce_streams=True,
    )
    client.execute(env=environment)
    node.metadata = nbformat.from_dict({"kernelspec": _KERNEL, "language_info": {"name": "python"}})
    return node


def text_of(notebook: Notebook) -> str:
    """Returns the text of the file of a notebook, which must be valid."""
    node: Any = nbformat.from_dict(notebook)
    nbformat.validate(node)
    return nbformat.writes(node) + "\n"

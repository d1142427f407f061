"""Notebooks as plain data: their cells, and the text that stored outputs show.

A notebook is the JSON of its file. Cells tagged `times` show figures that differ from run to run,
so their outputs are stored but not compared. Of cells tagged `digits`, decimal fractions are not
compared, because processors round differently.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
TIMES, DIGITS, OPTIMIZER = "times", "digits", "optimizer"
TAGS = {TIMES, DIGITS, OPTIMIZER}
_FRACTION = re.compile(r"-?\d+\.\d+(e[+-]\d+)?")

Notebook = dict[str, Any]
Cell = dict[str, Any]


def read(path: Path) -> Notebook:
    """Returns the notebook in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def code_cells(notebook: Notebook) -> list[Cell]:
    """Returns the cells that run, in their order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def source(cell: Cell) -> str:
    """Returns the text of a cell."""
    return _joined(cell["source"])


def tags(cell: Cell) -> list[str]:
    """Returns the tags of a cell."""
    return cell["metadata"].get("tags", [])


def texts(cell: Cell) -> list[str]:
    """Returns what each output of a cell shows as text, in their order. A picture shows its plain
    text only, and pieces of one stream count as one.
    """
    found: list[tuple[str, str]] = []
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            kind, text = output["name"], _joined(output["text"])
        elif output["output_type"] == "error":
            kind, text = "error", f"{output['ename']}: {output['evalue']}"
        else:
            kind, text = "data", _joined(output["data"].get("text/plain", ""))
        if found and kind != "data" and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1] + text)
        else:
            found.append((kind, text))
    return [f"{kind}: {text}" for kind, text in found]


def compared(cell: Cell) -> list[str] | None:
    """Returns what of the outputs of a cell is the same in each run, or None if nothing has to be."""
    if TIMES in tags(cell):
        return None
    return [_FRACTION.sub("#", text) for text in texts(cell)] if DIGITS in tags(cell) else texts(cell)


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)

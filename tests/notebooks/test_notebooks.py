"""The notebooks are true: they are stored as they were executed, and show the same when executed anew.

`python -m tests.notebooks [NAME ...]` executes notebooks and stores their outputs. Execution needs
the extra `notebooks`; the other tests read files only.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks.notebook import FOLDER, OPTIMIZER, PATHS, TAGS, Cell, code_cells, compared, read, source, tags, texts

MOST_LINES = 150
"""The lines of the optimizer on egglog, as its title promises."""

MACHINE = re.compile(r"/(home|root|tmp|work|Users|var|opt|usr)/|[A-Z]:\\|site-packages|\bat 0x[0-9a-f]{4,}", re.ASCII)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")

each = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def cell_of(*outputs: dict[str, Any], **metadata: Any) -> Cell:
    return {"cell_type": "code", "metadata": metadata, "execution_count": 1, "source": ["1\n"], "outputs": list(outputs)}


def printed(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


# --- as stored ---


def test_there_are_five() -> None:
    assert [path.name[:2] for path in PATHS] == ["1-", "2-", "3-", "4-", "5-"]


@each
def test_cells_were_executed_in_order(path: Path) -> None:
    cells = code_cells(read(path))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "store the outputs: python -m tests.notebooks"
    assert any(cell["outputs"] for cell in cells) and cells[-1]["outputs"], "a notebook ends with something to see"


@each
def test_outputs_show_no_machine_and_no_error(path: Path) -> None:
    for cell in code_cells(read(path)):
        for output in cell["outputs"]:
            shown = {kind: text for kind, text in output.get("data", output).items() if not kind.startswith("image/")}
            assert not MACHINE.search(json.dumps(shown)), source(cell)
            assert output["output_type"] != "error" and output.get("name") != "stderr", source(cell)


@pytest.mark.parametrize("text", ["/home/me/x", "/tmp/x", "C:\\x", "lib/site-packages/x", "<object at 0x7f51915ae390>"])
def test_a_machine_is_recognized(text: str) -> None:
    assert MACHINE.search(text)


@each
def test_tags_are_known(path: Path) -> None:
    assert {tag for cell in code_cells(read(path)) for tag in tags(cell)} <= TAGS


@each
def test_links_lead_to_files(path: Path) -> None:
    prose = "".join("".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == "markdown")
    assert [link for link in LINK.findall(prose) if not (FOLDER / link).exists()] == []


def test_readme_lists_every_notebook() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [link for link in LINK.findall(text) if link.endswith(".ipynb")] == [path.name for path in PATHS]
    assert [link for link in LINK.findall(text) if not (FOLDER / link).exists()] == []


def test_the_optimizer_is_as_small_as_promised() -> None:
    (path,) = [path for path in PATHS if OPTIMIZER in path.name]
    lines = [line for cell in code_cells(read(path)) if OPTIMIZER in tags(cell) for line in source(cell).splitlines()]
    assert 0 < len(lines) <= MOST_LINES


# --- as executed ---


@each
@pytest.mark.slow
def test_execution_shows_what_is_stored(path: Path) -> None:
    pytest.importorskip("nbclient", reason="needs the extra `notebooks`")
    pytest.importorskip("ipykernel", reason="needs the extra `notebooks`")
    pytest.importorskip("matplotlib", reason="needs the extra `notebooks`")
    from tests.notebooks.execution import executed

    stored = read(path)
    for old, new in zip(code_cells(stored), code_cells(executed(stored)), strict=True):
        assert compared(new) == compared(old), f"{source(old)}\n\nstore the outputs anew if that is right: python -m tests.notebooks {path.name}"


def test_pieces_of_a_stream_are_one() -> None:
    pieces, whole = cell_of(printed("a\n"), printed("b\n")), cell_of(printed("a\nb\n"))
    assert texts(pieces) == texts(whole) == ["stdout: a\nb\n"]
    assert texts(cell_of(printed("a"), printed("b", "stderr"))) == ["stdout: a", "stderr: b"]


def test_a_picture_is_compared_by_its_text_only() -> None:
    one, other = ({"output_type": "display_data", "data": {"image/png": data, "text/plain": ["<Figure>"]}} for data in "ab")
    assert texts(cell_of(one)) == texts(cell_of(other)) == ["data: <Figure>"]


def test_what_may_differ_is_not_compared() -> None:
    a, b = printed("3 nodes, 0.25"), printed("3 nodes, -1.5e-07")
    assert compared(cell_of(a)) != compared(cell_of(b))
    assert compared(cell_of(a, tags=["digits"])) == compared(cell_of(b, tags=["digits"]))
    assert compared(cell_of(a, tags=["digits"])) != compared(cell_of(printed("4 nodes, 0.25"), tags=["digits"]))
    assert compared(cell_of(a, tags=["times"])) is None

"""The files of `eqsat optimize --report`: a page for people, or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eqsat.cli.summary import summary
from eqsat.errors import InputError

if TYPE_CHECKING:
    from eqsat.pipeline import Result
    from eqsat.settings import Settings


def write_reports(paths: Sequence[Path], result: Result, settings: Settings) -> None:
    """Writes the report of a run to each path, as a page if it ends in .html and else as JSON.

    Raises `InputError` for a path that can not be written.
    """
    page = ""
    for path in paths:
        if is_page(path) and not page:
            from eqsat.page.document import report_page

            settings.progress("draw the graphs")
            page = report_page(result, settings, summary(result.report))
        _write(path, page if is_page(path) else _text(result.report))


def write_data(paths: Sequence[Path], data: Mapping[str, Any]) -> None:
    """Writes data to each path, as JSON. Raises `InputError` for a path that can not be written."""
    for path in paths:
        _write(path, _text(data))


def is_page(path: Path) -> bool:
    """Tells whether a report at this path is a page for people."""
    return path.suffix.lower() in (".html", ".htm")


def _text(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=2) + "\n"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: can not write it: {error.strerror}") from None

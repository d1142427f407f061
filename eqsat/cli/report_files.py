"""The files of `eqsat optimize --report`: a page for people, or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from eqsat.cli.summary import summary
from eqsat.errors import InputError
from eqsat.page.document import report_page
from eqsat.pipeline import Result
from eqsat.settings import Settings


def write_reports(paths: Sequence[Path], result: Result, settings: Settings) -> None:
    """Writes the report of a run to each path, as a page if it ends in .html and else as JSON.

    Raises `InputError` for a path that can not be written.
    """
    page = ""
    for path in paths:
        drawn = path.suffix.lower() in (".html", ".htm")
        if drawn and not page:
            settings.progress("draw the graphs")
            page = report_page(result, settings, summary(result.report))
        try:
            path.write_text(page if drawn else json.dumps(result.report, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: can not write it: {error.strerror}") from None

"""Progress: the current stage of a long run, shown on a terminal and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from eqsat.settings import silent


@contextmanager
def shown_progress(quiet: bool) -> Generator[Callable[[str], None], None, None]:
    """Yields a function that shows the current stage of a run on a terminal. Without a terminal, or
    if `quiet`, the function does nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # Names of rules and of files have brackets, which are no markup.
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    # Results that go to a file while progress is shown must not be drawn on the terminal.
    drawn = sys.stdout.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=drawn) as progress:
        task = progress.add_task("start")

        def show(stage: str) -> None:
            progress.update(task, description=stage)

        yield show

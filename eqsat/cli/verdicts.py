"""The verdicts of `eqsat rules check`: as lines, as plain data, and the files of counterexamples."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eqsat.checker.check import Verdict
from eqsat.checker.standing import Standing
from eqsat.errors import InputError

_NAMES = 3  # of rules under check that are shown


def standing_line(standing: Standing) -> str:
    """Returns in one line how far a check is."""
    failed = f", {standing.failed} did not pass" if standing.failed else ""
    names = standing.under_check
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    now = f"checking {', '.join(names[:_NAMES])}{more}" if names else "processes start"
    return f"{standing.done} of {standing.total} rules{failed}, {standing.fired} instances; {now}"


class Counterexamples:
    """The files of counterexamples, in the folder that the user named or in a temporary one."""

    def __init__(self, folder: str | None) -> None:
        self.paths: dict[str, str] = {}
        self._folder = None if folder is None else Path(folder)

    def save(self, verdict: Verdict) -> None:
        """Writes the counterexample of a rule, if it has one."""
        if verdict.counterexample is None:
            return
        self._folder = Path(tempfile.mkdtemp(prefix="eqsat-refuted-")) if self._folder is None else self._folder
        path = self._folder / f"{verdict.rule}.onnx"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(verdict.counterexample.model)
        except OSError as error:
            raise InputError(f"{self._folder}: can not write counterexamples there: {error.strerror}") from None
        self.paths[verdict.rule] = str(path)


class Verdicts:
    """Shows verdicts in the order of the rules. A terminal, which shows progress meanwhile, gets all
    at the end. A file or a pipe gets each one as soon as those before it are known.
    """

    def __init__(self, files: Counterexamples, prints: bool) -> None:
        self._files = files
        self._prints = prints
        self._early = not sys.stdout.isatty()
        self._lines: dict[int, list[str]] = {}
        self._next = 0

    @property
    def files(self) -> Mapping[str, str]:
        """By rule, the file that holds its counterexample."""
        return self._files.paths

    def add(self, place: int, verdict: Verdict) -> None:
        """Saves the counterexample of the verdict at a place, and shows what can be shown."""
        self._files.save(verdict)
        self._lines[place] = _lines(verdict, self.files)
        if self._early:
            self.finish()

    def finish(self) -> None:
        """Shows all verdicts that are known and not shown."""
        while self._next in self._lines:
            if self._prints:
                print("\n".join(self._lines[self._next]), flush=True)
            self._next += 1


def record(verdict: Verdict, files: Mapping[str, str]) -> dict[str, Any]:
    """Returns a verdict as plain data. `files` are those of counterexamples, by rule."""
    found = {name: value for name, value in asdict(verdict).items() if name != "counterexample"}
    example = verdict.counterexample
    if example is not None:
        found["counterexample"] = {"left": example.left, "right": example.right, "origin": example.origin, "file": files[verdict.rule]}
        found["counterexample"] |= {"evidence": example.evidence, "note": example.note}
    return found


def _lines(verdict: Verdict, files: Mapping[str, str]) -> list[str]:
    head = f"{verdict.status:16}  {verdict.rule:32}  {verdict.label}, fired {verdict.fired} of {verdict.drawn}"
    if verdict.members > 1:
        head += f", {verdict.members} members" + (f", {len(verdict.wrong)} of them did not pass: {', '.join(verdict.wrong)}" if verdict.wrong else "")
    if verdict.passed:
        return [head]
    lines = [head, *(f"    {line}" for line in f"{verdict.file}:{verdict.line}: {verdict.reason}".splitlines())]
    example = verdict.counterexample
    if example is not None:
        lines += [f"    {line}" for text in (example.left, example.right) for line in text.strip().splitlines()]
        lines += [f"    {example.note}"] if example.note else []
        lines.append(f"    {files[verdict.rule]} holds both sides: {example.evidence}")
    return lines

"""Children: runs a command in a process of its own, within limits, and measures it.

A supervisor (supervisor.py) stands between this process and the command, so that no crash, hang or
flood of output of the command reaches this process or the user.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from eqsat.comparing import supervisor
from eqsat.comparing.supervisor import MEMORY, OUTPUT, TIME, Account, Order

_LONGEST = 300  # characters of a reason
_BOOT = "import json, runpy, sys; sys.path[:] = json.loads(sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"


@dataclass(frozen=True)
class Limits:
    """The limits of one command: seconds, and bytes of memory."""

    seconds: float
    memory: int | None = None

    def reason(self, limit: str) -> str:
        """Returns the reason for which a command was ended at a limit."""
        gigabytes = "" if self.memory is None else f"{self.memory / (1 << 30):.3g}"
        return {TIME: f"longer than {self.seconds:g} s", MEMORY: f"more memory than {gigabytes} GiB", OUTPUT: "endless output"}[limit]


@dataclass(frozen=True)
class Done:
    """A command that ended. `failure` is empty if it succeeded, and otherwise one line with the
    reason. `stopped` tells whether a limit ended it.

    Seconds of the processor and the memory at its peak are those of the process and of everything
    that it started.
    """

    output: str
    failure: str
    code: int | None = None  # None if a signal or a limit ended it
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_bytes: int = 0
    stopped: bool = False


def run(command: Sequence[str], limits: Limits, text: str = "", environment: Mapping[str, str] | None = None, folder: Path | None = None) -> Done:
    """Runs a command with `text` as its input, in `folder`. When it returns, nothing that the
    command started is left.
    """
    with tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        order = Order(list(command), given.fileno(), limits.seconds, limits.memory, None if folder is None else str(folder))
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, json.dumps(asdict(order))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the others
            pass_fds=[given.fileno()],
            env={**os.environ, **(environment or {})},
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            answer = process.stdout.read()
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()  # the supervisor ends everything
            process.stdout.close()
            process.wait()
    if not answer:
        return Done("", "its supervisor was ended")
    account = Account(**json.loads(answer))
    stopped = bool(account.stopped)
    code = os.waitstatus_to_exitcode(account.status)
    failure = limits.reason(account.stopped) if stopped else _failure(code, account.complaint)
    return Done(account.output, failure, None if stopped or code < 0 else code, account.cpu, account.wall, account.peak, stopped)


def module(name: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module in another process, which imports the modules that
    this one does, whatever its current folder and environment are.
    """
    return [sys.executable, "-c", _BOOT, json.dumps([os.path.abspath(path) for path in sys.path]), name, *arguments]


def printable(text: str) -> str:
    """Returns a text of an untrusted program or model as one line without control characters."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def one_line(text: str) -> str:
    """Returns the same as `printable`, at most as long as a reason should be."""
    line = printable(text)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _failure(code: int, complaint: str) -> str:
    """Returns why a command failed; empty if it did not."""
    if code == 0:
        return ""
    if code < 0:
        try:
            return f"crashed ({signal.Signals(-code).name})"
        except ValueError:
            return f"crashed (signal {-code})"
    lines = [line for line in map(one_line, complaint.splitlines()) if line]
    return lines[-1] if lines else f"exit code {code}"

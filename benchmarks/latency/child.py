"""Children: runs a command in a process of its own, with a time limit, and measures its processor
time.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Done:
    """A command that ended. `failure` is empty if it succeeded, and otherwise one line with the
    reason.

    `cpu_seconds` is the processor time of the process and of everything it started. Outside Linux,
    descendants that outlive the command do not count.
    """

    output: str
    failure: str
    cpu_seconds: float
    timed_out: bool = False


def run(command: Sequence[str], time_limit: float, text: str = "", environment: Mapping[str, str] | None = None) -> Done:
    """Runs a command with `text` as its input. At the time limit, ends everything that it started."""
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        asked.write(text.encode())
        asked.seek(0)
        process = subprocess.Popen(
            command, stdin=asked, stdout=said, stderr=complained, start_new_session=True, env=None if environment is None else {**os.environ, **environment}
        )
        limit = threading.Timer(time_limit, os.killpg, (process.pid, signal.SIGKILL))
        started = time.monotonic()
        limit.start()
        try:
            status, cpu_seconds = _wait(process.pid)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            limit.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (said, complained):
            stream.seek(0)
        timed_out = process.returncode == -signal.SIGKILL and time.monotonic() - started >= time_limit
        failure = f"longer than {time_limit:.0f} s" if timed_out else _failure(process.returncode, complained.read().decode(errors="replace"))
        return Done(said.read().decode(errors="replace"), failure, cpu_seconds, timed_out)


def _wait(leader: int) -> tuple[int, float]:
    """Waits for a process and its group. Returns its status and the processor time of all."""
    _, status, usage = os.wait4(leader, 0)
    cpu_seconds = usage.ru_utime + usage.ru_stime
    while True:
        try:
            _, _, usage = os.wait4(-leader, 0)
        except ChildProcessError:
            return status, cpu_seconds
        cpu_seconds += usage.ru_utime + usage.ru_stime


def adopt_orphans() -> None:
    """Makes this process the parent of its orphaned descendants, so that `run` counts their time."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _failure(code: int, complained: str) -> str:
    if code == 0:
        return ""
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    lines = [line.strip() for line in complained.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {code}"

"""A forked worker process: it begins with all that its parent has imported.

A new interpreter takes a quarter of a second of processor time to import what the parent has
already. A fork takes milliseconds, but is safe only in a process of one thread: the locks of other
threads would stay held in the child forever. `may_fork` tells whether this process has one thread.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable
from typing import IO, NoReturn


def may_fork() -> bool:
    """Tells whether this process has one thread, native ones included. False where that is not known."""
    if sys.platform != "linux":
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class ForkedProcess:
    """A child of this process that runs `serve`, with a pipe to it and a pipe from it.

    It has the part of `subprocess.Popen` that a worker needs. The child has the ends of the pipes as
    its standard input and output, and no other open file.
    """

    def __init__(self, serve: Callable[[], NoReturn]) -> None:
        requests, stdin = os.pipe()
        stdout, replies = os.pipe()
        self.returncode: int | None = None
        # Until the child ignores it, Ctrl-C would unwind the parent's stack in the child.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _become(serve, requests, replies, mask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(requests)
        os.close(replies)
        self.stdin: IO[bytes] = os.fdopen(stdin, "wb")
        self.stdout: IO[bytes] = os.fdopen(stdout, "rb")

    def poll(self) -> int | None:
        """Returns the exit code, or None while the process runs; minus the number of a signal that
        ended it.
        """
        return self._waited(os.WNOHANG)

    def wait(self) -> int:
        """Waits for the end of the process. Returns its exit code, as `poll` does."""
        code = self._waited(0)
        assert code is not None
        return code

    def kill(self) -> None:
        """Ends the process, whatever it is doing."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _waited(self, options: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:
                pid, status = self.pid, 0  # somebody else has waited for it: its code is not known
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _become(serve: Callable[[], NoReturn], requests: int, replies: int, mask: Iterable[int]) -> NoReturn:
    """Makes a forked child the worker. Nothing of the parent's stack may run in it, whatever happens."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.dup2(requests, 0)
        os.dup2(replies, 1)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2:
                with contextlib.suppress(OSError):  # the folder itself is closed by now
                    os.close(int(name))
        serve()
    finally:
        os._exit(1)

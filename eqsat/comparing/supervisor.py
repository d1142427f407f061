"""The supervisor: `python -I -S supervisor.py REQUEST` runs one command within limits.

The command is untrusted: it may crash, hang, fill the memory, print without end, or leave processes
behind. The supervisor adopts everything that the command starts, measures all of it, and ends all
of it at a limit, at the command's end, and when standard input ends, which is when the caller is
gone. The request and the answer are JSON. This file imports only the standard library, and runs
without the package: the kernel counts the memory of a starting process to the process that it
starts, so a supervisor is small.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

TIME, MEMORY, OUTPUT = "time", "memory", "output"
"""The limits that end a command."""

_MOST_OUTPUT = 1 << 26  # bytes of both streams together
_MOST_COMPLAINT = 1 << 16  # bytes at the end of standard error
_PERIOD = 0.2  # seconds between two looks at the memory
_LEAVE = 2.0  # seconds that other processes may outlive the command
_LAST = 10.0  # seconds in which killed processes have to end
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


@dataclass(frozen=True)
class Order:
    """One command and its limits. `stdin` is an open descriptor, and `folder` becomes the current
    folder. `memory` is in bytes; it holds for each process, and for all resident memory together.
    """

    command: list[str]
    stdin: int
    seconds: float
    memory: int | None = None
    folder: str | None = None


@dataclass
class Account:
    """A command that ended. `status` is as `waitpid` has it, and `stopped` is the limit that ended
    it, or "". `peak` is in bytes.
    """

    status: int = 0
    stopped: str = ""
    wall: float = 0.0
    cpu: float = 0.0
    peak: int = 0
    output: str = ""
    complaint: str = ""


class _Stream:
    """One output of the command; a pipe that is read as it fills."""

    def __init__(self, keep: int | None) -> None:
        self.source, self.sink = os.pipe()
        os.set_blocking(self.source, False)
        self._keep = keep  # bytes at the end that are kept; None keeps all
        self._data = bytearray()
        self.total = 0

    def read(self) -> int | None:
        """Reads some of what is there. Returns the number of bytes: None if nothing is there yet, 0
        at the end.
        """
        try:
            piece = os.read(self.source, 1 << 16)
        except BlockingIOError:
            return None
        self.total += len(piece)
        self._data += piece
        if self._keep is not None and len(self._data) > 2 * self._keep:
            del self._data[: -self._keep]
        return len(piece)

    def text(self) -> str:
        return self._data.decode(errors="replace")


class Supervision:
    """The run of one order."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._account = Account()
        self._streams = _Stream(None), _Stream(_MOST_COMPLAINT)
        self._selector = selectors.DefaultSelector()
        self._begun = time.monotonic()
        self._ended: float | None = None  # when the command ended
        self._watched = 0.0  # when memory was last looked at
        self._children = True  # whether there may be processes to wait for

    def run(self) -> Account:
        """Runs the command to its end, or to a limit. Nothing that it started is left."""
        wakeup = self._wake_on_children()
        self._selector.register(0, selectors.EVENT_READ)
        self._selector.register(wakeup, selectors.EVENT_READ)
        leader = self._start()
        for stream in self._streams:
            os.close(stream.sink)
            self._selector.register(stream.source, selectors.EVENT_READ, stream)
        gone = False
        while not gone and not self._over():
            for key, _ in self._selector.select(_PERIOD):
                if isinstance(key.data, _Stream):
                    if key.data.read() == 0:
                        self._selector.unregister(key.fd)
                elif not os.read(key.fd, 1 << 10) and key.fd == 0:
                    gone = True
            self._reap(leader)
            self._watch(leader)
        self._end_all(leader)
        for stream in self._streams:
            while stream.read():
                pass
        self._account.output, self._account.complaint = (stream.text() for stream in self._streams)
        return self._account

    def _wake_on_children(self) -> int:
        """Returns a descriptor that can be read when a process ends."""
        source, sink = os.pipe()
        for end in (source, sink):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(sink)
        _control(_PR_SET_CHILD_SUBREAPER, 1)
        return source

    def _start(self) -> int:
        order = self._order
        leader = os.fork()
        if leader:
            return leader
        try:
            os.setsid()
            _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _limit(resource.RLIMIT_CORE, 0)
            if order.memory is not None:
                _limit(resource.RLIMIT_FSIZE, order.memory)
                if sys.platform == "linux":  # elsewhere the limit counts no mapped memory
                    _limit(resource.RLIMIT_DATA, order.memory)
            for target, source in enumerate((order.stdin, *(stream.sink for stream in self._streams))):
                os.dup2(source, target)
            os.closerange(3, 1 << 10)
            if order.folder is not None:
                os.chdir(order.folder)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.execvp(order.command[0], order.command)
        except OSError as error:
            os.write(2, f"{order.command[0]}: can not start it: {error.strerror}\n".encode())
        finally:
            os._exit(127)

    def _over(self) -> bool:
        """Tells whether nothing is left to wait for."""
        now = time.monotonic()
        if self._ended is None:
            if not self._account.stopped and now - self._begun > self._order.seconds:
                self._account.stopped = TIME
            if not self._account.stopped and sum(stream.total for stream in self._streams) > _MOST_OUTPUT:
                self._account.stopped = OUTPUT
            return bool(self._account.stopped)
        return not self._children or now - self._ended > _LEAVE

    def _reap(self, leader: int) -> None:
        """Takes account of the processes that ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._children = False
                return
            if not pid:
                return
            self._account.cpu += usage.ru_utime + usage.ru_stime
            unit = 1 if sys.platform == "darwin" else 1 << 10
            self._account.peak = max(self._account.peak, usage.ru_maxrss * unit)
            if pid == leader:
                self._account.status = status
                self._ended = time.monotonic()
                self._account.wall = self._ended - self._begun

    def _watch(self, leader: int) -> None:
        """Looks at the memory that all processes have together."""
        now = time.monotonic()
        if self._ended is not None or now - self._watched < _PERIOD:
            return
        self._watched = now
        used = sum(map(_resident, _descendants(leader)))
        self._account.peak = max(self._account.peak, used)
        if self._order.memory is not None and used > self._order.memory:
            self._account.stopped = MEMORY

    def _end_all(self, leader: int) -> None:
        """Ends every process that the command started, those that moved to another session too."""
        end = time.monotonic() + _LAST
        while self._children and time.monotonic() < end:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGKILL)
            for pid in _descendants(leader):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._reap(leader)
            if self._children:
                time.sleep(0.005)


def _control(what: int, value: int) -> None:
    """Sets an attribute of this process that only Linux has."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def _descendants(leader: int) -> list[int]:
    """Returns the processes that this one started or adopted. Without /proc, the leader alone."""
    parents = dict(_parents())
    if not parents:
        return [leader]
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return sorted(found - {os.getpid()})
        found |= more


def _parents() -> Iterator[tuple[int, int]]:
    """Yields each process of the system, and its parent."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it may have ended
            # The name before the last bracket may hold anything.
            yield int(folder.name), int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    return 0


def main() -> None:
    account = Supervision(Order(**json.loads(sys.argv[1]))).run()
    json.dump(asdict(account), sys.stdout)


if __name__ == "__main__":
    main()

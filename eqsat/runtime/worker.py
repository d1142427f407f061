"""A worker process for every call of native code on an untrusted model.

`Worker.call` takes the name of a function, its arguments, a time limit and a memory limit. It
returns the function's result or raises `RemoteError`, `WorkerDied` or `WorkerTimeout`. Whatever the
function does (abort, hang, exhaust memory, print), the calling process survives and the next call
works. Output of the worker never reaches the user. The worker ends with its parent.

The process is a new interpreter, or a fork of this one where `fork_if_alone` was called.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pickle
import queue
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import IO, Any, NoReturn

from eqsat.runtime.forked import ForkedProcess, may_fork

_NEEDED_SOON = ("onnxruntime", "ml_dtypes", "onnx", "eqsat.verification.judge", "eqsat.verification.input_ranges")
_LENGTH = struct.Struct("<Q")
_BUFFERED = 1 << 12  # bytes of a request that the pipe to an idle worker surely takes without waiting
_SOON = 0.02  # seconds: most calls are answered before it pays to start the thread of a deadline
_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from eqsat.runtime.worker import serve; serve()"


class RemoteError(Exception):
    """The function raised an exception: `kind` is its class, `message` its text in one line."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class WorkerDied(Exception):
    """The worker ended before it answered. `signal` killed it; None means a normal exit."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code
        self.signal = -exit_code if exit_code < 0 else None

    def __str__(self) -> str:
        return f"crashed (signal {self.signal})" if self.signal is not None else f"ended (exit code {self.exit_code})"


class WorkerTimeout(Exception):
    """The call took longer than `seconds`, so the worker was killed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"took longer than {self.seconds:g} s"


class Worker:
    """A persistent worker process, started on demand and after each death.

    Several threads may use it.
    """

    forks = False
    """Whether processes are forks of this one while it has a single thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        _workers.add(self)

    def start(self) -> None:
        """Start the process if none runs. Return at once, while the process initializes."""
        with self._lock:
            if self._process is not None:
                if self._process.poll() is None:
                    return
                self.stop()
            self._process = ForkedProcess(serve) if self.forks and may_fork() else _interpreter()

    def stop(self) -> None:
        """End the process, whatever it is doing. A later call starts another one."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                _close(process)
                process.wait()

    def call(self, function: str, *arguments: Any, timeout: float | None = None, memory: int | None = None) -> Any:
        """Call `function` in the worker and return its result.

        `function` is "module:name", or a name in eqsat.runtime. `timeout` is in seconds. `memory`
        is the number of bytes that the call may allocate in addition (enforced on Linux). An
        allocation beyond it fails: the result is a `RemoteError`, or a `WorkerDied` if the code
        does not survive a failed allocation.
        """
        request = pickle.dumps((function, arguments, memory), protocol=5)
        with self._lock:
            self.start()
            process = self._process
            assert process is not None and process.stdin is not None and process.stdout is not None
            deadline = _Deadline(process, timeout)
            try:
                if len(request) > _BUFFERED:
                    deadline.begin()
                _write(process.stdin, request)
                deadline.await_answer(process.stdout)
                answer = _read(process.stdout)
            except (OSError, EOFError):
                deadline.lift()
                process.kill()
                code = process.wait()
                self.stop()
                if timeout is not None and deadline.passed:
                    raise WorkerTimeout(timeout) from None
                raise WorkerDied(code) from None
            except BaseException:
                # After Ctrl-C between a request and its answer, the next call must not read this
                # call's answer.
                deadline.lift()
                self.stop()
                raise
            deadline.lift()
            if deadline.passed:
                self.stop()
        succeeded, value = pickle.loads(answer)
        if not succeeded:
            raise RemoteError(*value)
        return value

    def forget(self) -> None:
        """In a forked child, leave the parent's worker alone and start without one."""
        process, self._process = self._process, None
        self._lock = threading.RLock()
        if process is not None:
            _close(process)
            process.returncode = 0  # only the parent may wait for it


def _interpreter() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _BOOT, json.dumps(sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


class _Deadline:
    """Kills a process after some seconds unless it is lifted in time; `passed` tells whether it did.

    A thread waits for the moment, but only of a call that is not answered soon.
    """

    def __init__(self, process: subprocess.Popen[bytes] | ForkedProcess, seconds: float | None) -> None:
        self.passed = False
        self._lifted = False
        self._lock = threading.Lock()
        self._process = process
        self._at = None if seconds is None else time.monotonic() + seconds
        self._timer: threading.Timer | None = None

    def await_answer(self, answers: IO[bytes]) -> None:
        """Returns when an answer begins, or when a thread watches the deadline. An answer that has
        begun is complete, since a worker writes it in one piece.
        """
        if self._at is not None and self._timer is None and not _readable(answers, min(_SOON, self._at - time.monotonic())):
            self.begin()

    def begin(self) -> None:
        """Lets a thread watch the deadline."""
        if self._at is not None:
            self._timer = threading.Timer(max(0.0, self._at - time.monotonic()), self._expire)
            self._timer.daemon = True
            self._timer.start()

    def lift(self) -> None:
        with self._lock:
            self._lifted = True
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        with self._lock:
            if not self._lifted:
                self.passed = True
                self._process.kill()


def _readable(stream: IO[bytes], seconds: float) -> bool:
    """Waits until a pipe can be read, at most for some seconds. Returns False where pipes can not be
    waited for.
    """
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()
_shared = Worker()


def shared() -> Worker:
    """Return the worker of this process."""
    return _shared


def fork_if_alone() -> None:
    """Let workers be forks of this process while it has a single thread.

    Only a program that is all eqsat's own may ask for it: a worker keeps a copy of the memory that
    its parent had.
    """
    Worker.forks = True


def _stop_all() -> None:
    for worker in list(_workers):
        worker.stop()


def _forget_all() -> None:
    for worker in list(_workers):
        worker.forget()


atexit.register(_stop_all)  # a forked worker ends without it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _close(process: subprocess.Popen[bytes] | ForkedProcess) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # buffered output for a dead process may be lost
                stream.close()


def _write(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)))
    stream.write(message)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes:
    (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    return _read_exactly(stream, length)


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    message = stream.read(length)
    if len(message) != length:
        raise EOFError
    return message


# The rest of this module runs in the worker.


def serve() -> NoReturn:
    """Answer requests until the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, waiting.put), daemon=True).start()
    if waiting.empty():
        gc.disable()  # loading makes many objects, and hardly any garbage
        with contextlib.suppress(ImportError):  # a call that needs a missing module reports that itself
            for module in _NEEDED_SOON:
                importlib.import_module(module)
        gc.freeze()
        gc.enable()
    while True:
        _write(replies, _answer(waiting.get()))


def _listen(requests: io.BufferedIOBase | IO[bytes], put: Callable[[bytes], None]) -> None:
    """Forward requests. A thread of its own notices the parent's end even during a native call."""
    try:
        while True:
            put(_read(requests))  # pyright: ignore[reportArgumentType]
    except (OSError, EOFError):
        os._exit(0)


def _answer(request: bytes) -> bytes:
    try:
        function, arguments, memory = pickle.loads(request)
        module, _, name = function.rpartition(":")
        call = getattr(importlib.import_module(module or "eqsat.runtime.session"), name)
        with _limited(memory):
            value = call(*arguments)
        return pickle.dumps((True, value), protocol=5)
    except BaseException as error:
        return pickle.dumps((False, (type(error).__name__, " ".join(str(error).split()))), protocol=5)


@contextlib.contextmanager
def _limited(memory: int | None):
    if memory is None or sys.platform != "linux":
        yield
        return
    import resource

    # RLIMIT_DATA counts private writable memory. RLIMIT_AS would also count mapped libraries
    # and files.
    with open("/proc/self/statm", "rb") as file:
        used = int(file.read().split()[5]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = used + memory if hard == resource.RLIM_INFINITY else min(hard, used + memory)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))

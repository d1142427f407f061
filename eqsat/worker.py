"""A separate process in which every call of a native runtime on an untrusted model happens.

Comes in: the name of a function, its arguments, a time limit and a memory limit. Goes out: what the function
returned, or one of `RemoteError`, `WorkerDied`, `WorkerTimeout`. Promised: whatever the function does (abort, hang,
eat memory, print), the calling process lives on and the next call works; nothing that the worker prints reaches the
user; the worker ends when its parent does.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import json
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import IO, Any, NoReturn

_NEEDED_SOON = ("onnxruntime", "ml_dtypes", "onnx", "eqsat.judge", "eqsat.ranges")
_LENGTH = struct.Struct("<Q")
_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from eqsat.worker import serve; serve()"


class RemoteError(Exception):
    """The function raised: `kind` is the name of the exception's class, `message` its text on one line."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class WorkerDied(Exception):
    """The worker ended before it answered; `signal` is the signal that ended it, None if it left by itself."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code
        self.signal = -exit_code if exit_code < 0 else None

    def __str__(self) -> str:
        return f"crashed (signal {self.signal})" if self.signal is not None else f"ended (exit code {self.exit_code})"


class WorkerTimeout(Exception):
    """The worker was killed because the call took longer than `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"took longer than {self.seconds:g} s"


class Worker:
    """One persistent worker process, started on demand and after each death; safe to call from several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        _workers.add(self)

    def start(self) -> None:
        """Start the process if none runs; returns at once, while the process prepares itself."""
        with self._lock:
            if self._process is not None:
                if self._process.poll() is None:
                    return
                self.stop()
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )

    def stop(self) -> None:
        """End the process, whatever it is doing; a later call starts another."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                _close(process)
                process.wait()

    def call(self, function: str, *arguments: Any, timeout: float | None = None, memory: int | None = None) -> Any:
        """The result of `function` ("module:name", or a name in eqsat.runtime) called in the worker with `arguments`.

        `timeout` is in seconds. `memory` is how many bytes the call may allocate beyond what the worker has already
        (enforced on Linux): an allocation over it fails, which comes out as a `RemoteError` or, from code that does not
        survive a failed allocation, as `WorkerDied`.
        """
        request = pickle.dumps((function, arguments, memory), protocol=5)
        with self._lock:
            self.start()
            process = self._process
            assert process is not None and process.stdin is not None and process.stdout is not None
            deadline = _Deadline(process, timeout)
            try:
                _write(process.stdin, request)
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
                # Ctrl-C between a request and its answer: the next call must not read this call's answer.
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
        """In a forked child: leave the parent's worker alone and start with none."""
        process, self._process = self._process, None
        self._lock = threading.RLock()
        if process is not None:
            _close(process)
            process.returncode = 0  # it is the parent's to wait for


class _Deadline:
    """Kills a process when the time is over, unless lifted before; `passed` says which of the two came first."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float | None) -> None:
        self.passed = False
        self._lifted = False
        self._lock = threading.Lock()
        self._process = process
        self._timer: threading.Timer | None = None
        if seconds is not None:
            self._timer = threading.Timer(seconds, self._expire)
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


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()
_shared = Worker()


def shared() -> Worker:
    """The worker of this process."""
    return _shared


def _stop_all() -> None:
    for worker in list(_workers):
        worker.stop()


def _forget_all() -> None:
    for worker in list(_workers):
        worker.forget()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # what was still buffered for a dead process is of no use
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


# What follows runs in the worker.


def serve() -> NoReturn:
    """Answer requests until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests, waiting.put), daemon=True).start()
    if waiting.empty():
        with contextlib.suppress(ImportError):  # a call that needs what is missing says so itself
            for module in _NEEDED_SOON:
                importlib.import_module(module)
    while True:
        _write(replies, _answer(waiting.get()))


def _listen(requests: io.BufferedIOBase | IO[bytes], put: Callable[[bytes], None]) -> None:
    """Hand on requests; a thread of its own notices the parent's end even while a native call runs."""
    try:
        while True:
            put(_read(requests))  # pyright: ignore[reportArgumentType]
    except (OSError, EOFError):
        os._exit(0)


def _answer(request: bytes) -> bytes:
    try:
        function, arguments, memory = pickle.loads(request)
        module, _, name = function.rpartition(":")
        call = getattr(importlib.import_module(module or "eqsat.runtime"), name)
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

    # Private writable memory is what RLIMIT_DATA counts; RLIMIT_AS would count mapped libraries and files too.
    with open("/proc/self/statm", "rb") as file:
        used = int(file.read().split()[5]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = used + memory if hard == resource.RLIM_INFINITY else min(hard, used + memory)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))

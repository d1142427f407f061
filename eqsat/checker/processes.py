"""Processes in which rules are checked.

An interrupt reaches the main process alone. No child process outlives the main process, however
that ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from eqsat.garbage import collect_rarely

# Between two runs of the cycle collector: more than the e-graph of a batch of instances has, which
# would be looked through each time and goes away by itself.
_OBJECTS = 5_000_000


@contextlib.contextmanager
def processes(count: int, setup: Callable[..., None] | None = None, *arguments: Any) -> Generator[Callable[..., Future[Any]], None, None]:
    """Yields the `submit` of an executor with `count` processes, each of which begins with
    `setup(*arguments)`. The processes end at once when an exception leaves the block.
    """
    context = get_context("spawn")
    ended, alive = context.Pipe(duplex=False)
    with contextlib.closing(alive), ended, ProcessPoolExecutor(count, context, initializer=_begin, initargs=(ended, setup, arguments)) as pool:

        def submit(function: Callable[..., Any], *given: Any) -> Future[Any]:
            with _uninterrupted():
                return pool.submit(function, *given)

        try:
            yield submit
        except BaseException:
            alive.close()
            raise


@contextlib.contextmanager
def _uninterrupted() -> Generator[None, None, None]:
    """An interrupt in this block takes effect at its end. Processes that start in the block never
    see an interrupt, which a terminal sends to children as well.

    To block the signal is not enough: another thread may receive it, one of a native library for
    instance, and Python then interrupts the main thread. A process whose start is interrupted
    complains, since it is sent only a part of what it needs.
    """
    resource_tracker.ensure_running()  # starting it later would let interrupts through again
    usual = signal.getsignal(signal.SIGINT)
    replaced = usual is not None and threading.current_thread() is threading.main_thread()
    heard: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if replaced:
        signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        yield
    finally:
        if replaced:
            signal.signal(signal.SIGINT, usual)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if heard:
            signal.raise_signal(signal.SIGINT)


def _begin(ended: Connection, setup: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    collect_rarely(_OBJECTS)
    _follow(ended)
    if setup is not None:
        setup(*arguments)


def _follow(ended: Connection) -> None:
    """Ends this process as soon as the other end of the pipe closes, for whatever reason."""
    threading.Thread(target=_end_with, args=(ended,), daemon=True).start()


def _end_with(ended: Connection) -> None:
    with contextlib.suppress(EOFError):
        ended.recv()
    os._exit(1)

"""Processes of the checker: how they start and end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from eqsat.checker import processes as module
from eqsat.checker.processes import processes


@contextmanager
def a_thread_that_receives_signals() -> Generator[None, None, None]:
    """Runs a thread that blocks no signal, as native libraries do."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_an_interrupt_waits_until_a_process_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    finished: list[str] = []

    class Pool(module.ProcessPoolExecutor):
        def submit(self, *arguments: Any, **others: Any) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)  # in which the other thread receives it
            finished.append("submit")
            return super().submit(*arguments, **others)

    monkeypatch.setattr(module, "ProcessPoolExecutor", Pool)
    with a_thread_that_receives_signals(), pytest.raises(KeyboardInterrupt), processes(1) as submit:
        submit(abs, -1)
        finished.append("block")
    assert finished == ["submit"]
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_process_answers_after_the_interrupt_is_let_through_again() -> None:
    with processes(1) as submit:
        assert submit(abs, -1).result() == 1

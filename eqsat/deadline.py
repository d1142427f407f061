"""The deadline of a run: a time limit, and the user's interrupt, which ends the search at once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

INTERRUPTED = "interrupted"


class Deadline:
    """The time by which a search has to end."""

    def __init__(self, at: float | None = None, within: Deadline | None = None) -> None:
        """`at` is in the time of `time.monotonic`; None stands for no time limit. The deadline
        `within`, if there is one, is never later.
        """
        self._at = at
        self._within = within
        self._interrupted = False

    @staticmethod
    def after(seconds: float | None) -> Deadline:
        """Returns the deadline in so many seconds; None stands for no time limit."""
        return Deadline(None if seconds is None else time.monotonic() + seconds)

    def interrupt(self) -> None:
        """Makes the deadline pass now."""
        self._interrupted = True

    def share(self, part: float) -> Deadline:
        """Returns a deadline after a part of the time that is left. It passes on an interrupt."""
        left = self.left
        return self if left is None else Deadline(time.monotonic() + part * left, within=self)

    @property
    def left(self) -> float | None:
        """The seconds that are left, at least 0; None if nothing limits them."""
        if self.hit == INTERRUPTED:
            return 0.0
        return None if self._at is None else max(0.0, self._at - time.monotonic())

    @property
    def hit(self) -> str | None:
        """The limit that has passed: an interrupt or the time limit; None if none has."""
        if self._interrupted or (self._within is not None and self._within.hit == INTERRUPTED):
            return INTERRUPTED
        return "time" if self._at is not None and time.monotonic() > self._at else None


@contextmanager
def ends_on_interrupt(deadline: Deadline, told: Callable[[], None]) -> Generator[None, None, None]:
    """Makes the first Ctrl-C pass the deadline, so that the results so far are kept.

    It calls `told` then. A second Ctrl-C raises `KeyboardInterrupt`, as the first one does where the
    caller has a handler of their own, or runs in another thread than the main one.
    """
    usual = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, usual)
        deadline.interrupt()
        told()

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)

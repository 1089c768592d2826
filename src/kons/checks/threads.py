"""Two threads at once, without luck: one stops at every line of Python and lets the other run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Self

__all__ = ["Intruder"]

# Lines at which the other thread is let in, and how long it may take: it may wait for a lock of the first.
MOST_LINES = 150
SECONDS = 0.05


class Intruder:
    """A second thread that makes a call of its own at each line of a call in the first.

    A race that needs a switch at one certain line is met every time. Used as a context.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._idle, self._over = True, False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.errors: list[Exception] = []
        """What the calls of the second thread raised."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._go.release()
        self._thread.join()

    def meanwhile(self, call: Callable[[], Any]) -> Any:
        """What ``call`` returns when the other thread interferes at each of its lines."""
        lines = 0

        def at_line(frame: Any, event: str, argument: Any) -> Any:
            nonlocal lines
            if event == "line" and lines < MOST_LINES:
                lines += 1
                self._let_in()
            return at_line

        before = sys.gettrace()
        sys.settrace(at_line)
        try:
            return call()
        finally:
            sys.settrace(before)

    def _let_in(self) -> None:
        if self._idle:
            self._go.release()
            self._idle = self._done.acquire(timeout=SECONDS)
        else:  # it waits for a lock, most likely
            self._idle = self._done.acquire(blocking=False)

    def _run(self) -> None:
        while True:
            self._go.acquire()
            if self._over:
                return
            try:
                self._call()
            except Exception as error:
                self.errors.append(error)
            self._done.release()

"""Ctrl-C and its relatives: the first asks a run to stop at the end of a block, the second ends it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

__all__ = ["Interrupted", "Stopping"]

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupted(KeyboardInterrupt):
    """By a signal, whose exit code it has, as shells have it: 128 and its number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code: int = 128 + number


class Stopping:
    """Whether the user has asked to stop; in effect inside ``with``.

    What waits for rows, or has not begun, is interrupted at once: see :attr:`is_idle`.
    """

    def __init__(self) -> None:
        self.number: int = 0
        """Of the first signal, 0 before."""
        self.is_idle: Callable[[], bool] = lambda: True
        """Whether there is nothing to finish: the first signal is then a KeyboardInterrupt as well."""
        self._before: dict[int, Any] = {}

    def asked(self) -> bool:
        """Whether a signal has come."""
        return self.number != 0

    @property
    def exit_code(self) -> int:
        """Of the first signal."""
        return Interrupted(self.number or signal.SIGINT).exit_code

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self  # only the main thread is told of signals
        for name in SIGNALS:
            number = getattr(signal, name, None)
            # nohup and shells ignore some on purpose.
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._come)
        with suppress(ImportError):
            import pyarrow

            pyarrow.enable_signal_handlers(False)  # it would take them away from us while it reads
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _come(self, number: int, _: object) -> None:
        first, self.number = not self.number, self.number or number
        if not first or self.is_idle():
            raise Interrupted(self.number)
        if sys.stderr is not None and sys.stderr.isatty():
            # Not print: it may be what was interrupted.
            with suppress(OSError):
                os.write(2, b"\nstopping at the end of the block; once more to stop at once\n")

"""Ctrl-C waits while a state is between two rows, where it could be neither finished nor taken back."""

from __future__ import annotations

# What the module signal wraps: that looks every handler up among enumerations, for 20 us.
import _signal  # type: ignore[import-not-found]
import threading
from types import FrameType
from typing import Any

from kons.errors import NumericalError

__all__ = ["HeldInterrupts", "stopped_midway"]


class HeldInterrupts:
    """Inside, SIGINT is only noted; its handler is called at the end, or by a second one at once.

    In the main thread, the only one that hears it, and where a Python function would hear it. Costs a
    microsecond or two: not for every row.

    >>> with HeldInterrupts():
    ...     rows, pending = 64, 0
    """

    __slots__ = ("_before", "_heard")

    def __init__(self) -> None:
        self._before: Any = None
        self._heard: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            before = _signal.getsignal(_signal.SIGINT)
            if callable(before):
                self._before = before
                _signal.signal(_signal.SIGINT, self._hear)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._heard is not None and self._before is not None:
            self._before(number, frame)
        self._heard = number, frame

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            _signal.signal(_signal.SIGINT, self._before)
            if self._heard is not None:
                self._before(*self._heard)


def stopped_midway() -> NumericalError:
    """What to raise where an exception from outside left more rows behind than there is room for."""
    return NumericalError(
        "this learner was stopped in the midst of a row, by a signal or an error from outside, and cannot go "
        "on: load the model that was saved last, or begin anew."
    )

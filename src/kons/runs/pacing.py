"""When to write a checkpoint: every few seconds, and for a small part of the time only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Pacing"]

# Seconds between two checkpoints at least, and the part of the time that they may take together.
EVERY = 2.0
SHARE = 0.05
# The next one may cost more than the last: an exact learner grows.
GROWTH = 1.5


class Pacing:
    """Says when a checkpoint is due: when it fits.

    ::

        since the last one  >=  EVERY       and       spent + GROWTH * last  <=  SHARE * elapsed

    so that all of them together take at most ``SHARE`` of the time, as long as each costs at most ``GROWTH``
    times the one before. What the first one costs is not known before: :meth:`expect` is told a guess.

    >>> moments = iter([0.0, 1.0, 3.0, 3.0, 3.3, 6.0, 20.0])
    >>> pacing = Pacing(clock=lambda: next(moments))
    >>> pacing.is_due(), pacing.is_due()
    (False, True)
    >>> with pacing.saving():  # takes 0.3 seconds: the next must wait
    ...     pass
    >>> pacing.is_due(), pacing.is_due()
    (False, True)
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = self._ended = clock()
        self.spent: float = 0.0
        """Seconds in checkpoints so far."""
        self.last: float = 0.0
        """Seconds in the last one; before the first, what was expected of it."""
        self.has_saved: bool = False

    def is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        now = self._clock()
        fits = self.spent + GROWTH * self.last <= SHARE * (now - self._began)
        return fits and now - self._ended >= EVERY

    def expect(self, seconds: float) -> None:
        """What the first one will cost, roughly."""
        if not self.has_saved:
            self.last = seconds

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Around a checkpoint."""
        began = self._clock()
        yield
        self._ended = self._clock()
        self.last, self.has_saved = self._ended - began, True
        self.spent += self.last

"""Whether a source is being waited for: whatever interrupts that does no harm."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kons.streams import Block

__all__ = ["Waiting"]


class Waiting:
    """Blocks of a source, up to an interruption that was asked for."""

    def __init__(self) -> None:
        self.now: bool = True
        """Whether nothing is at work; also before the first block, while a source is opened."""
        self.was_interrupted: bool = False

    def blocks(
        self, blocks: Iterator[Block], stop: Callable[[], bool] | None, *, begun: bool = False
    ) -> Iterator[Block]:
        """One by one. Once the run has ``begun``, an interruption while ``stop()`` is true ends them."""
        while True:
            self.now = True
            try:
                block = next(blocks, None)
            except KeyboardInterrupt:
                if stop is None or not stop() or not begun:
                    raise
                self.was_interrupted = True
                return
            finally:
                self.now = False
            if block is None:
                return
            begun = True
            yield block

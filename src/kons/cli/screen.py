"""Standard error for people: the progress bar, and notices that do not break it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from kons.errors import KonsWarning

__all__ = ["notices", "progress_bar"]


class _ToConsole(logging.Handler):
    """Prints a record above the bar, if there is one."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        self.console.print(record.getMessage(), style="dim", markup=False, highlight=False)


@contextmanager
def notices(*, quiet: bool) -> Iterator[Console]:
    """Show what the ``kons`` logger says on standard error, or nothing; gives the console to draw on."""
    console = Console(stderr=True, quiet=quiet)
    logger, handler = logging.getLogger("kons"), _ToConsole(console)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        with warnings.catch_warnings():
            # Every such warning is logged as well, and shown from there.
            warnings.simplefilter("ignore", KonsWarning)
            yield console
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before


def progress_bar(console: Console, *, quiet: bool) -> Progress:
    """A bar that vanishes when done; nothing at all where standard error is not a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn("{task.fields[facts]}"),
        console=console,
        transient=True,
        expand=True,
        disable=quiet or not console.is_terminal,
    )

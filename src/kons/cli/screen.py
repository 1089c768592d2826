"""What people see: notices and a progress bar on standard error, plain tables on standard output."""

from __future__ import annotations

import json
import logging
import math
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from kons.cli.wording import printable, with_flags
from kons.errors import KonsWarning
from kons.runs.summary import finite

if TYPE_CHECKING:
    from kons.runs import Progress as RunProgress

__all__ = ["Cell", "RunBar", "Sheet", "notices", "print_json", "progress_bar"]

REFRESHED = 0.2  # seconds between two looks of the bar at a run


class _ToConsole(logging.Handler):
    """Prints a record above the bar, if there is one; the same words only once."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self.console = console
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = printable(with_flags(record.getMessage()))
        if message not in self._shown:
            self._shown.add(message)
            self.console.print(message, style="dim", markup=False, highlight=False)


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


def progress_bar(console: Console, *, quiet: bool, by_hand: bool = False) -> Progress:
    """A bar that vanishes when done; nothing at all where standard error is not a terminal."""
    shown = console.is_terminal and not quiet
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TextColumn("{task.fields[facts]}"),
        # rich before 14.3 ends even a disabled bar with an empty line.
        console=console if shown else Console(stderr=True, quiet=True),
        transient=True,
        expand=True,
        auto_refresh=not by_hand,
        disable=not shown,
    )


class RunBar:
    """The bar of a run: rows a second, loss and atoms, drawn a few times a second however many blocks come.

    It draws when it is told something, without a thread of its own: that one would slow the run down.
    """

    def __init__(self, console: Console, name: str, *, quiet: bool, what: str = "loss") -> None:
        self._bar = progress_bar(console, quiet=quiet, by_hand=True)
        self._name, self._what = name, what
        self._drawn = -math.inf
        self._first: RunProgress | None = None

    def __enter__(self) -> RunBar:
        self._bar.start()
        self._task = self._bar.add_task(self._name, total=None, facts="")
        self._bar.refresh()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, now: RunProgress) -> None:
        """Show how far the run is, if it was not shown just now."""
        self._first = self._first or now
        if self._bar.disable or time.monotonic() - self._drawn < REFRESHED:
            return
        self._drawn = time.monotonic()
        seconds = now.seconds - self._first.seconds
        speed = f"{(now.rows - self._first.rows) / seconds:,.0f} rows/s  " if seconds > 0.0 else ""
        self._bar.update(
            self._task,
            total=None if now.done is None else 1.0,
            completed=now.done or 0.0,
            facts=f"{now.rows:,} rows  {speed}{self._what} {now.loss:.4g}  {now.atoms:,} atoms",
            refresh=True,
        )


Cell = str | tuple[str, str]
"""Words, or words and their style."""


class _Output(Console):
    """Standard output; whether it matters that nobody reads on, the command knows."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Sheet:
    """Standard output for people: words as they stand, tables without lines, made safe for the terminal."""

    def __init__(self) -> None:
        self._console = _Output(highlight=False, markup=False, emoji=False)

    def say(self, *parts: Cell, soft_wrap: bool = False) -> None:
        """A line, or an empty one."""
        self._console.print(self._text(*parts), soft_wrap=soft_wrap)

    def command(self, line: str) -> None:
        """A line to be typed: never broken."""
        self.say((f"      {line}", "cyan"), soft_wrap=True)

    def title(self, words: str, told: str) -> None:
        """What this is about, and what is known of it at once."""
        self.say()
        self.say((words, "bold"), f": {told}.")
        self.say()

    def listed(self, texts: Iterable[str]) -> None:
        """Texts with a dash before each, later lines of one below its first."""
        self.table("tt", (("-", text.strip()) for text in texts), indent=2, gap=1)

    def notes(self, texts: Sequence[str]) -> None:
        """What the user was told about, if anything."""
        if texts:
            self.say(("\nNotes", "bold"))
            self.listed(map(with_flags, texts))

    def table(
        self,
        kinds: str,
        rows: Iterable[Sequence[Cell]],
        heads: Sequence[str] = (),
        *,
        indent: int = 0,
        gap: int = 2,
    ) -> None:
        """Rows below their heads. A letter a column says what it holds: name, value, text or dim text."""
        table = Table(
            box=None, pad_edge=False, header_style="bold", padding=(0, gap, 0, 0), show_header=bool(heads)
        )
        for kind, head in zip_longest(kinds, heads, fillvalue=""):
            table.add_column(
                self._safe(head),
                justify="right" if kind == "v" else "left",
                no_wrap=kind in "nv",
                overflow="fold",
                min_width=1,  # a column of nothing would take its gap from the others
                style="dim" if kind == "d" else "",
            )
        for row in rows:
            table.add_row(*map(self._text, row))
        self._console.print(Padding(table, (0, 0, 0, indent), expand=False))

    def _text(self, *parts: Cell) -> Text:
        pairs = ((part, "") if isinstance(part, str) else part for part in parts)
        return Text.assemble(*((self._safe(words), style) for words, style in pairs))

    def _safe(self, text: str) -> str:
        """Names from a file may hold letters that this terminal cannot show, or that would steer it."""
        encoding = self._console.encoding
        return printable(text).encode(encoding, "backslashreplace").decode(encoding)


def print_json(document: dict[str, Any]) -> None:
    """One JSON object on standard output; null for what is not finite, which JSON cannot say."""
    print(json.dumps(finite(document), indent=2, allow_nan=False))

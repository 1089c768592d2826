"""Dated events: what became of the data, of the target and of the model, as rows were learned.

========  ===================  ===================================================================
family    kind                 noticed
========  ===================  ===================================================================
data      out of range         a value far beyond all before; an alarm once 20 in a row are
          frozen               one value, for longer than its usual repeats explain; an alarm
          missing              no value, for longer than its usual gaps explain; an alarm
          new level            a text that was never there, of a column whose texts come again
target    target out of range  as of a column
          new class            a label that was never there
model     turned               the loss is twice the usual, by likelihood ratio (CUSUM); an alarm
          crept                the loss rose slowly, or (auto) old rows are answered otherwise; an
                               alarm
          coverage lost        far more targets outside of the intervals than their level says; an alarm
          novelty high         a row far less like those before than any of late
========  ===================  ===================================================================

What is no alarm is for information. docs/events.md has thresholds, and what silences each. The statistics are
in :mod:`kons.learners.watch`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from kons.errors import ConfigurationError
from kons.state import Field, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["KINDS", "MOST_EVENTS", "Event", "EventLog", "as_kinds"]

#: Events that are remembered.
MOST_EVENTS = 1000
#: An event of the same kind and columns within so many rows is the same one again.
TOGETHER = 1000

#: What there is, and what becomes of a row then.
KINDS = {
    "out of range": "learned as it is",
    "frozen": "learned as it is: look at what measures it",
    "missing": "filled from the values before: look at what sends it",
    "new level": "counts as unknown until it comes again",
    "target out of range": "learned as it is",
    "new class": "learned from now on",
    "turned": "learned on; forgetting learners and auto follow",
    "crept": "learned on; forgetting learners and auto follow",
    "coverage lost": "intervals widen",
    "novelty high": "predicted all the same, with less to go by",
}


@dataclass(frozen=True)
class Event:
    """Something happened at a row: see the table of :mod:`kons.learners.events`."""

    row: int
    """Which row it was first noticed at, counted from 0 over all that were learned."""
    time: Any
    """The moment of that row, of the first column of dates; None, where there is none."""
    kind: str
    severity: str
    """"info" or "alarm"."""
    columns: tuple[Any, ...]
    """Of data, the names; numbers, where rows are arrays."""
    size: float
    """The statistic, at its largest."""
    action: str
    """What becomes of such rows."""
    count: int = 1
    """How often it was noticed."""
    last: int = 0
    """The row at which it was noticed last."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        time = None if self.time is None else _shown(self.time)
        return asdict(self) | {"time": time, "columns": [*map(str, self.columns)]}

    def __str__(self) -> str:
        of = f" of {', '.join(map(str, self.columns))}" if self.columns else ""
        when = "" if self.time is None else f" ({_shown(self.time)})"
        often = "" if self.count == 1 else f", {self.count} times until row {self.last:,}"
        return f"{self.severity}: {self.kind}{of} at row {self.row:,}{when}, {self.size:.3g}{often}"


def _shown(time: Any) -> str:
    return str(time).removesuffix(".000000").removesuffix(":00")


class _Events(Field):
    """A list that is replaced, never changed, of events that are not, either."""

    def save(self, part: Any, name: str) -> Any:
        saved = []
        for event in getattr(part, name):
            time = None if event.time is None else int(event.time.astype("datetime64[us]").view(np.int64))
            told = (event.row, time, event.kind, event.severity, event.size, event.count, event.last)
            saved.append((*told, *event.columns))
        return saved

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        events = []
        for told in stored.items(key):
            try:
                row, time, kind, severity, size, count, last, *columns = told
                when = None if time is None else np.datetime64(time, "us")
                known = kind in KINDS and severity in ("info", "alarm") and isinstance(size, float)
                if not known or not all(isinstance(number, int) and number >= 0 for number in (row, last)):
                    raise ValueError("no event")
                event = Event(row, when, kind, severity, tuple(columns), size, KINDS[kind], count, last)
                hash(event.columns)  # names are whatever tables have: numbers, tuples, ...
                if type(count) is not int or count < 1:
                    raise ValueError("no event")
                events.append(event)
            except (TypeError, ValueError, OverflowError):
                raise stored.error(f"{key} holds something else than events") from None
        if len(events) > MOST_EVENTS:
            raise stored.error(f"{key} holds more than {MOST_EVENTS:,} events")
        return events


class EventLog(Part):
    """The last 1,000 events, one that comes again within 1,000 rows counted."""

    STATE = fields(events=_Events())

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, event: Event) -> Event:
        """Note an event, or count the one that it repeats; what is noted now."""
        for at in range(len(self.events) - 1, -1, -1):
            before = self.events[at]
            if (before.kind, before.columns) == (event.kind, event.columns):
                if event.row - before.last > TOGETHER:
                    break
                worse = "alarm" in (before.severity, event.severity)
                again = replace(
                    before,
                    severity="alarm" if worse else "info",
                    size=max(before.size, event.size),
                    count=before.count + 1,
                    last=event.row,
                )
                self.events = [*self.events[:at], again, *self.events[at + 1 :]]
                return again
        place = len(self.events)  # in the order of rows: what waited is told behind them
        while place and _order(self.events[place - 1]) > _order(event):
            place -= 1
        self.events = [*self.events[:place], event, *self.events[place:]][-MOST_EVENTS:]
        return event


def _order(event: Event) -> tuple[int, str]:
    return event.row, event.kind


OnEvent = Callable[[Event], object] | None


def as_kinds(names: Any) -> list[str]:
    """Kinds of events by name; "alarm" and "info" stand for all of that severity.

    >>> as_kinds(["turned", "alarm"])
    ['turned', 'alarm']
    """
    for name in names:
        if name not in KINDS and name not in ("alarm", "info"):
            raise ConfigurationError(
                f"there is no kind of event called {name!r}: expected alarm, info, or some of "
                f"{', '.join(KINDS)}."
            )
    return list(names)

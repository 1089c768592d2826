"""Text and dates as numbers: a one-hot of small fixed width, and points on circles.

A learner of rows needs a fixed number of columns before it has seen all values, so neither encoder learns
anything: the same value gives the same numbers in every process, on every machine, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, require_integer
from kons.errors import ConfigurationError, InputError

__all__ = ["DATE_PARTS", "HashedOneHot", "date_parts", "parts_that_vary"]

MOST_KEPT = 1 << 16  # values whose place is remembered; beyond, it starts afresh
SALTS = 500

MICROSECONDS_A_DAY = 86_400_000_000

DATE_PARTS = ("hour", "weekday", "yearday")
"""What :func:`date_parts` knows: the time of day, the day of the week, the time of year."""

_PERIODS = {"hour": 1.0, "weekday": 7.0, "yearday": 366.0}  # in days


class HashedOneHot:
    """Any text as a vector of zeros with a single 1, at a place that a hash of the text decides.

    ::

        place = blake2b(text, key = salt) mod width

    With ``width`` columns, two values share a place with probability 1/width: right for a few frequent
    values, not for identifiers. :meth:`without_clashes` looks for a salt that keeps given values apart.
    Values that are not text count as ``str(value)``; None, a missing value, is all zeros. About 0.1 us for
    a value seen before, 1 us for a new one.

    >>> from kons.encoding import HashedOneHot
    >>> encoder = HashedOneHot(width=4)
    >>> encoder.encode(["red", "blue", "red", None])
    array([[1., 0., 0., 0.],
           [0., 0., 0., 1.],
           [1., 0., 0., 0.],
           [0., 0., 0., 0.]])
    >>> encoder.place("red")
    0
    """

    __slots__ = ("_key", "_places", "salt", "width")

    def __init__(self, width: int = 8, salt: int = 0) -> None:
        self.width = require_integer(width, "width", at_least=1)
        self.salt = require_integer(salt, "salt", at_least=0)
        if self.salt >= 1 << 64:
            raise ConfigurationError(f"salt is {salt!r}, expected an integer below 2^64.")
        self._key = self.salt.to_bytes(8, "little")
        self._places: dict[str, int] = {}

    @classmethod
    def without_clashes(cls, values: Iterable[Any], width: int = 8) -> HashedOneHot:
        """The first of some hundred salts that gives the values, most frequent first, places of their own.

        If there are more values than places, as many of the first ones as possible. A function of the
        values and their order only.
        """
        firsts = list(dict.fromkeys(map(str, values)))[:width]
        best, apart = cls(width), -1
        for salt in range(SALTS):
            encoder = cls(width, salt)
            taken: set[int] = set()
            for value in firsts:
                place = encoder.place(value)
                if place in taken:
                    break
                taken.add(place)
            if len(taken) > apart:
                best, apart = encoder, len(taken)
            if apart == len(firsts):
                break
        return cls(best.width, best.salt)

    def place(self, value: Any) -> int:
        """The column of a value that is not missing."""
        text = value if type(value) is str else str(value)
        place = self._places.get(text)
        if place is None:
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=self._key).digest()
            place = int.from_bytes(digest, "little") % self.width
            if len(self._places) >= MOST_KEPT:
                self._places.clear()
            self._places[text] = place
        return place

    def places(self, values: Iterable[Any]) -> NDArray[np.int64]:
        """The column of each value, -1 for None."""
        place = self.place
        return np.array([-1 if value is None else place(value) for value in values], dtype=np.int64)

    def encode(self, values: Iterable[Any]) -> Matrix:
        """One row of ``width`` numbers per value."""
        places = self.places(values)
        encoded = np.zeros((len(places), self.width))
        known = np.flatnonzero(places >= 0)
        encoded[known, places[known]] = 1.0
        return encoded

    def __repr__(self) -> str:
        return f"HashedOneHot(width={self.width}, salt={self.salt})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashedOneHot) and (self.width, self.salt) == (other.width, other.salt)

    def __hash__(self) -> int:
        return hash((self.width, self.salt))

    def __reduce__(self) -> tuple[type[HashedOneHot], tuple[int, int]]:
        return type(self), (self.width, self.salt)


def date_parts(times: Any, parts: Sequence[str] = DATE_PARTS) -> Matrix:
    """Sine and cosine of each part of a date: two columns a part, so that 23:59 is close to 0:00.

    ::

        sin(2 pi phase), cos(2 pi phase)         phase = the fraction of the day, of the week (whole days
                                                 from Monday) or of the year that has passed

    ``times`` is an array of datetime64, or what NumPy makes one of. A missing time (NaT) is all zeros,
    the middle of the circles.

    >>> import numpy as np
    >>> from kons.encoding import date_parts
    >>> date_parts(["2024-01-01T06:00", "2024-01-01T18:00"], ["hour"]).round(3)
    array([[ 1.,  0.],
           [-1., -0.]])
    """
    stamps = _stamps(times)
    known = stamps != np.iinfo(np.int64).min
    encoded = np.zeros((len(stamps), 2 * len(parts)))
    for i, part in enumerate(parts):
        angle = 2.0 * np.pi * _phase(stamps, part)
        encoded[:, 2 * i] = np.where(known, np.sin(angle), 0.0)
        encoded[:, 2 * i + 1] = np.where(known, np.cos(angle), 0.0)
    return encoded


def parts_that_vary(times: Any) -> tuple[str, ...]:
    """The parts worth having: all but those that stay the same though their whole period has passed.

    Days at midnight have no hour; a week is too short to tell whether the time of year will matter.

    >>> from kons.encoding import parts_that_vary
    >>> parts_that_vary(["2024-01-01", "2024-01-02", "2024-01-03"])
    ('weekday', 'yearday')
    """
    stamps = _stamps(times)
    stamps = stamps[stamps != np.iinfo(np.int64).min]
    if not len(stamps):
        return ()
    # As floats: the range of two far stamps would overflow.
    days = (float(stamps.max()) - float(stamps.min())) / MICROSECONDS_A_DAY
    return tuple(part for part in DATE_PARTS if days < _PERIODS[part] or np.ptp(_phase(stamps, part)) > 0.0)


def _stamps(times: Any) -> NDArray[np.int64]:
    """Microseconds since 1970; the smallest integer for NaT."""
    try:
        array = np.asarray(times, dtype="datetime64[us]")
    except (ValueError, TypeError, OverflowError):
        raise InputError("times hold something that is no date, expected datetime64 values.") from None
    return array.ravel().view(np.int64)


def _phase(stamps: NDArray[np.int64], part: str) -> NDArray[np.float64]:
    """The fraction of the part's period that has passed, in [0, 1)."""
    if part == "hour":
        return np.asarray((stamps % MICROSECONDS_A_DAY) / MICROSECONDS_A_DAY)
    days = stamps // MICROSECONDS_A_DAY
    if part == "weekday":
        return np.asarray(((days + 3) % 7) / 7.0)  # 1970 began on a Thursday
    if part == "yearday":
        years = stamps.view("datetime64[us]").astype("datetime64[Y]")
        start, end = ((years + np.timedelta64(i, "Y")).astype("datetime64[D]").view(np.int64) for i in (0, 1))
        passed = (days - start) + (stamps % MICROSECONDS_A_DAY) / MICROSECONDS_A_DAY
        return np.asarray(passed / np.maximum(end - start, 1))  # NaT has no year: masked later
    raise ConfigurationError(f"there is no part {part!r} of a date, expected {', '.join(DATE_PARTS)}.")
